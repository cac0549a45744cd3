"""Reports about commands that are unusual servers: only observations."""

import os
import re
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from redline.errors import LaunchError
from redline.launching import failures, observed
from redline.launching.process import ProcessLauncher, free_port
from redline.model import Variant
from redline.ports import Launch, Placement
from tests.fakes.servers.entries import alive, make_catalogue, server
from tests.fakes.servers.service import service

ODD = Path(__file__).parents[2] / "fakes/servers/odd.py"
PYTHON = r"python\S* \(\d+\)"


@pytest.fixture
def launcher(tmp_path: Path) -> ProcessLauncher:
    return ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")


def odd(habit: str, more: str = "", within_ms: int = 20_000) -> Variant:
    return server(command=(sys.executable, "-I", "-S", str(ODD), "{port}", habit, more), within_ms=within_ms)


def test_a_port_of_both_families_has_listeners_in_an_order() -> None:
    with socket.socket(socket.AF_INET6) as six, socket.socket() as four:
        six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        six.bind(("::1", 0))
        port = six.getsockname()[1]
        four.bind(("127.0.0.1", port))
        six.listen()
        four.listen()
        assert [str(held.at) for held in observed.holders_of(port)] == [f"127.0.0.1:{port}", f"[::1]:{port}"]
        assert {listener.at.port for listener in observed.listening(os.getpid())} >= {port}


def refused(launcher: ProcessLauncher, variant: Variant, tmp_path: Path) -> LaunchError:
    launcher.build([variant], lambda _building: None)
    with pytest.raises(LaunchError) as caught, launcher.running(Launch(variant, Placement(), tmp_path / "server.log")):
        pass
    assert alive(variant) == []
    return caught.value


def matches(pattern: str, error: LaunchError) -> None:
    assert re.search(pattern, error.message), error.message


def test_a_command_that_goes_into_the_background(launcher: ProcessLauncher, tmp_path: Path) -> None:
    error = refused(launcher, odd("daemon"), tmp_path)
    left = rf"exited with code 0 .*, and left {PYTHON} running in the background; {PYTHON} listens at 127\.0\.0\.1:\d+"
    matches(left, error)
    assert "foreground" in error.hint


def test_a_command_that_only_asks_another_process_and_ends(launcher: ProcessLauncher, tmp_path: Path) -> None:
    with service(tmp_path) as name:
        error = refused(launcher, odd("client", name), tmp_path)
    who = re.escape(observed.procfs.name_of(os.getpid()))
    # Where the other answers before the client has ended, its answer is what is seen, on four ports.
    matches(
        rf"exited with code 0 .* {who} listens at .*which it did not start|another process answered; {who} lis", error
    )
    assert "another process" in error.hint


def test_a_command_that_only_asks_another_process_and_stays(launcher: ProcessLauncher, tmp_path: Path) -> None:
    with service(tmp_path) as name:
        error = refused(launcher, odd("attached_client", name), tmp_path)
    who = re.escape(observed.procfs.name_of(os.getpid()))
    matches(rf"on 4 ports one after the other, another process answered; {who} listens at 127\.0\.0\.1:\d+", error)


@pytest.mark.parametrize("habit", ["second", "second_said"])
def test_a_second_port_that_another_copy_has(launcher: ProcessLauncher, tmp_path: Path, habit: str) -> None:
    fixed = str(free_port())
    first, other = odd(habit, fixed), odd(habit, fixed)
    launcher.build([first], lambda _building: None)
    with launcher.running(Launch(first, Placement(), tmp_path / "first.log")):
        error = refused(launcher, other, tmp_path)
    if habit == "second":
        matches("none of them was that which it was given: nothing listens on", error)
        matches(rf"at the same time, {PYTHON} listens at .*127\.0\.0\.1:{fixed}", error)
    else:
        matches(
            rf"found port {fixed} in use, which it wants besides \d+: {PYTHON} listens at 127\.0\.0\.1:{fixed}", error
        )
        matches("which runs at the same time for this test", error)
    assert "let each listen on {port} alone" in error.hint


def test_a_second_port_that_a_strange_process_has(launcher: ProcessLauncher, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        error = refused(launcher, odd("second_said", str(port)), tmp_path)
    matches(rf"found port {port} in use.*: {re.escape(observed.procfs.name_of(os.getpid()))} listens at", error)


@pytest.mark.parametrize("host", ["::1", "::"])
def test_a_server_at_another_address_of_its_port(launcher: ProcessLauncher, tmp_path: Path, host: str) -> None:
    error = refused(launcher, odd("sixth", host, within_ms=1500), tmp_path)
    matches(rf"nothing listened; {PYTHON} listens at \[{host}\]:\d+", error)
    assert "at 127.0.0.1 or at all addresses" in error.hint


def test_a_folder_from_which_nothing_may_be_executed_is_named_where_that_was_denied(
    launcher: ProcessLauncher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "noexec" not in str(refused(launcher, odd("denied"), tmp_path))
    mounted = {Path(tempfile.gettempdir()): "/some is mounted noexec"}
    monkeypatch.setattr(failures, "noexec_mount", lambda path: mounted.get(path, ""))
    error = refused(launcher, odd("denied"), tmp_path)
    matches("before it was ready, and /some is mounted noexec; its last words: ./helper: Permission denied", error)
    assert "TMPDIR" in error.hint
    assert "noexec" not in str(refused(launcher, server("exits"), tmp_path))
