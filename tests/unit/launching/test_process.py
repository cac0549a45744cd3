"""The process launcher with real small servers that behave and misbehave."""

import errno
import http.server
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.errors import LaunchError, StoreError
from redline.launching import failures, process
from redline.launching.guard import Exited
from redline.launching.process import ProcessLauncher, free_port
from redline.linux import cgroup
from redline.model import Tool, Variant
from redline.ports import Launch, Placement
from tests.fakes.asking import request_status
from tests.fakes.servers.entries import alive, eventually, make_catalogue, server
from tests.fakes.serving import serving

FREE = Placement()


@pytest.fixture
def launcher(tmp_path: Path) -> ProcessLauncher:
    return ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "server.log"


def refused(launcher: ProcessLauncher, variant: Variant, log: Path, placement: Placement = FREE) -> LaunchError:
    launcher.build([variant], lambda _building: None)
    with pytest.raises(LaunchError) as caught, launcher.running(Launch(variant, placement, log)):
        pass
    assert alive(variant) == []
    assert "\n" not in caught.value.problems[0].message
    assert caught.value.hint
    return caught.value


def test_a_healthy_server_answers_and_leaves_nothing_behind(launcher: ProcessLauncher, log: Path) -> None:
    variant = server()
    build = launcher.build([variant], lambda _building: None).hash_of(variant.slug)
    with launcher.running(Launch(variant, FREE, log)) as running:
        assert request_status("127.0.0.1", running.endpoint.port, "/", 5) == 200
        assert running.facts.pid in alive(variant)
        assert running.facts.build == build
        assert running.facts.port == running.endpoint.port
        assert running.facts.command[-2:] == (str(running.endpoint.port), "healthy")
        assert running.facts.ready_ns > 0
        assert running.death() is None
        group = cgroup.own_group_of(running.facts.pid)
        assert running.facts.cgroup == (group is not None)
    assert alive(variant) == []
    assert group is None or not group.exists()
    with socket.create_server(("127.0.0.1", running.endpoint.port), reuse_port=False):
        pass


def test_a_slow_start_is_waited_for_and_reported(launcher: ProcessLauncher, log: Path) -> None:
    variant = server("slow")
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, FREE, log)) as running:
        assert running.facts.ready_ns >= 300_000_000


def test_command_environment_folder_cores_and_limits_are_as_asked(launcher: ProcessLauncher, log: Path) -> None:
    options: dict[str, str | int | bool] = {"mode": "fast", "deep": True}
    plain = server("echoes").catalogued.start.command
    asked = (*plain, "{mode}-{deep}-{cpus}")
    variant = server("echoes", options=options, env={"GREETING": "hello {mode}"}, command=asked)
    launcher.build([variant], lambda _building: None)
    first = min(os.sched_getaffinity(0))
    with launcher.running(Launch(variant, Placement(server_cpus=(first,)), log)) as running:
        assert running.facts.cpus == (first,)
        folder = log.parents[1] / "catalogue" / "fake"
        assert eventually(lambda: "stdin" in log.read_text())
        assert log.read_text().splitlines() == [
            "fast-on-1 hello fast",
            f"in {folder} on [{first}]",
            "files True, stdin ''",
        ]


def test_the_size_of_the_environment_is_drawn_from_the_seed(launcher: ProcessLauncher, log: Path) -> None:
    variant = server()
    launcher.build([variant], lambda _building: None)
    sizes = []
    for seed in (1, 2, 1, None):
        with launcher.running(Launch(variant, FREE, log, seed)) as running:
            environment = Path(f"/proc/{running.facts.pid}/environ").read_text()
            given = dict(each.partition("=")[::2] for each in environment.split("\0"))
            assert len(given.get("REDLINE_PADDING", "")) == running.facts.padding_bytes
            sizes.append(running.facts.padding_bytes)
    assert 0 < sizes[0] != sizes[1] > 0
    assert sizes[2:] == [sizes[0], 0]


def test_a_server_that_exits_at_once_is_reported_with_its_code_and_last_words(
    launcher: ProcessLauncher, log: Path
) -> None:
    error = refused(launcher, server("exits"), log)
    assert error.kind == "start"
    assert "exited with code 1" in str(error)
    assert "no configuration found" in error.problems[0].message
    assert error.log_tail == "no configuration found"
    assert str(log) in error.hint


def test_a_server_that_crashes_is_reported_with_its_signal(launcher: ProcessLauncher, log: Path) -> None:
    error = refused(launcher, server("crashes"), log)
    assert "SIGSEGV" in str(error)
    assert "it wrote nothing" in str(error)


@pytest.mark.parametrize(
    ("behaviour", "seen", "advised"),
    [
        ("sleeps", "nothing listened", "if it only needs longer"),
        ("silent", "no answer within", "if it only needs longer"),
        ("garbage", "malformed: ", "fix what answers so"),
    ],
)
def test_a_server_that_never_becomes_ready(
    launcher: ProcessLauncher, log: Path, behaviour: str, seen: str, advised: str
) -> None:
    error = refused(launcher, server(behaviour, within_ms=900), log)  # Python starts within that on a busy machine
    assert error.kind == "not_ready"
    assert "not ready within 900 ms" in str(error)
    assert seen in str(error)
    assert error.hint.startswith(advised)


def test_a_server_that_listens_elsewhere_is_reported(launcher: ProcessLauncher, log: Path) -> None:
    error = refused(launcher, server("elsewhere", within_ms=1500), log)
    port = log.read_text().split()[-1]
    assert re.search(rf"nothing listened; python\S* \(\d+\) listens at 127\.0\.0\.1:{port};", str(error))
    assert "`start.command` in its server.yaml listen on {port}" in error.hint


def test_a_wrong_status_is_reported_with_the_right_one(launcher: ProcessLauncher, log: Path) -> None:
    error = refused(launcher, server("wrong", within_ms=900), log)
    assert error.kind == "not_ready"
    assert "status 404 in place of 200" in str(error)


def test_a_command_that_does_not_exist(launcher: ProcessLauncher, log: Path) -> None:
    error = refused(launcher, server(command=("{folder}/no-such-program", "{port}")), log)
    assert re.search(r"could not be started: there is no /\S+/no-such-program", str(error))


def test_a_missing_tool_is_reported_with_its_hint(launcher: ProcessLauncher, tmp_path: Path, log: Path) -> None:
    tool = tmp_path / "bin" / "redline-test-tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    variant = server(needs=(Tool(command=str(tool), hint="install the tool"),))
    launcher.build([variant], lambda _building: None)
    tool.unlink()
    with pytest.raises(LaunchError, match="is not installed") as caught, launcher.running(Launch(variant, FREE, log)):
        pass
    assert caught.value.hint == "install the tool"


def test_cores_that_do_not_exist_are_named(launcher: ProcessLauncher, log: Path) -> None:
    error = refused(launcher, server(), log, Placement(server_cpus=(1023,)))
    assert "could not be pinned to cores 1023" in str(error)


def test_a_server_that_is_not_built_is_not_started(launcher: ProcessLauncher, log: Path) -> None:
    with pytest.raises(LaunchError, match="is not built"), launcher.running(Launch(server(), FREE, log)):
        pass


def test_a_log_that_cannot_be_written(launcher: ProcessLauncher, tmp_path: Path) -> None:
    variant = server()
    launcher.build([variant], lambda _building: None)
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StoreError, match=r"server\.log"),
        launcher.running(Launch(variant, FREE, tmp_path / "file" / "server.log")),
    ):
        pass


def test_another_port_is_tried_when_the_first_is_taken(
    launcher: ProcessLauncher, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = server()
    launcher.build([variant], lambda _building: None)
    free = free_port()
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        ports = iter([squatter.getsockname()[1], free])
        monkeypatch.setattr(process, "free_port", lambda: next(ports))
        # The squatter takes the connection of the readiness request and does not answer; the server ends by then.
        with launcher.running(Launch(variant, FREE, log)) as running:
            assert running.endpoint.port == free


def test_a_port_that_is_always_taken(launcher: ProcessLauncher, log: Path) -> None:
    error = refused(launcher, server("taken"), log)
    assert "found a port in use in 4 starts, and none of them was that which it was given" in str(error)
    assert "Address already in use" in error.log_tail


@pytest.fixture
def impostor() -> Iterator[int]:
    """Another HTTP server, in this process, that answers every request with 200."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)) as other:
        yield other.server_address[1]


def test_the_answer_of_another_process_is_never_taken_for_the_servers(
    launcher: ProcessLauncher, log: Path, monkeypatch: pytest.MonkeyPatch, impostor: int
) -> None:
    variant = server("sleeps")
    launcher.build([variant], lambda _building: None)
    monkeypatch.setattr(process, "free_port", lambda: impostor)
    with pytest.raises(LaunchError, match="found its port in use"), launcher.running(Launch(variant, FREE, log)):
        pass
    assert alive(variant) == []


def test_sigterm_that_is_ignored_is_followed_by_sigkill(launcher: ProcessLauncher, log: Path) -> None:
    variant = server("deaf", grace_ms=200)
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, FREE, log)):
        assert alive(variant)
    assert alive(variant) == []


def test_children_that_left_the_session_are_stopped_too(launcher: ProcessLauncher, log: Path) -> None:
    variant = server("scattering")
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, FREE, log)):
        assert eventually(lambda: len(alive(variant)) == 4), "warden, server, and two that left it"
    assert alive(variant) == []


def test_they_are_stopped_without_a_control_group_as_well(
    launcher: ProcessLauncher, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "parent_for_servers", lambda: None)
    variant = server("scattering")
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, FREE, log)) as running:
        assert not running.facts.cgroup
        assert eventually(lambda: len(alive(variant)) == 4)
    assert alive(variant) == []


def test_a_server_that_dies_under_load(launcher: ProcessLauncher, log: Path) -> None:
    variant = server("dying")
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, FREE, log)) as running:
        assert running.death() is None
        request_status("127.0.0.1", running.endpoint.port, "/", 5)
        assert eventually(lambda: running.death() is not None)
        death = running.death()
    assert death is not None
    assert (death.stage, death.kind) == ("load", "died")
    assert "exited with code 1 while it was under test; its last words: out of patience" in death.message
    assert death.log_tail == "out of patience"


def test_a_server_that_is_killed_is_reported_with_its_signal(launcher: ProcessLauncher, log: Path) -> None:
    variant = server()
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, FREE, log)) as running:
        os.kill(running.facts.pid, signal.SIGKILL)
        assert eventually(lambda: running.death() is not None)
        death = running.death()
    assert death is not None
    assert "SIGKILL" in death.message
    assert "so somebody else sent SIGKILL" in death.hint or "`dmesg`" in death.hint  # as far as the kernel counts


@pytest.mark.parametrize(
    ("oom_kills", "says"),
    [(None, "which `dmesg` says"), (0, "so somebody else sent SIGKILL"), (2, "the kernel ended 2 for want of memory")],
)
def test_memory_is_blamed_only_where_the_kernel_counted_it(tmp_path: Path, oom_kills: int | None, says: str) -> None:
    exited = Exited(None, signal.SIGKILL, 0, oom_kills=oom_kills)
    assert says in (hint := failures.died_under_load("it", exited, tmp_path / "log").hint)
    assert hint.endswith(f"its whole output is in {tmp_path / 'log'}")


@pytest.mark.parametrize("exited", [Exited(7, None, 0), Exited(None, signal.SIGKILL, 0, oom_kills=2)])
def test_a_log_that_is_not_kept_is_not_named(tmp_path: Path, exited: Exited) -> None:
    hint = failures.died_under_load("it", exited, tmp_path / "log", is_kept=False).hint
    assert str(tmp_path) not in hint
    assert hint.endswith("keep it with -o DIR")


@pytest.mark.parametrize("behaviour", ["exits", "elsewhere"])
def test_a_log_that_is_not_kept_is_not_named_by_a_failed_start(
    launcher: ProcessLauncher, log: Path, behaviour: str
) -> None:
    variant = server(behaviour, within_ms=800)
    launcher.build([variant], lambda _building: None)
    with pytest.raises(LaunchError) as caught, launcher.running(Launch(variant, FREE, log, log_is_kept=False)):
        pass
    assert str(log) not in caught.value.hint
    assert caught.value.hint.endswith("keep it with -o DIR")


def test_an_interrupt_stops_the_server(launcher: ProcessLauncher, log: Path) -> None:
    variant = server("scattering")
    launcher.build([variant], lambda _building: None)
    with pytest.raises(KeyboardInterrupt), launcher.running(Launch(variant, FREE, log)):
        raise KeyboardInterrupt
    assert alive(variant) == []


def test_a_machine_without_room_for_a_warden(
    launcher: ProcessLauncher, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = server()
    launcher.build([variant], lambda _building: None)

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with (
        pytest.raises(LaunchError, match="Resource temporarily unavailable"),
        launcher.running(Launch(variant, FREE, log)),
    ):
        pass
