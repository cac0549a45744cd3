"""The warden: nothing stays behind when the lab is killed, and no output fills the disk."""

import logging
import os
import signal
import socket
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.launching.failures import tail
from redline.launching.guard import WARDEN, Guard, LaunchOrder, NotStarted, Started
from redline.launching.process import ProcessLauncher
from redline.launching.warden import HIDDEN, CappedLog, Redactor
from redline.linux import cgroup
from redline.ports import Launch, Placement
from tests.fakes.servers.entries import alive, eventually, make_catalogue, server

LAB = """
    import sys, time
    from pathlib import Path
    from redline.model import Variant
    from redline.launching.process import ProcessLauncher
    from redline.ports import Launch, Placement

    folder = Path(sys.argv[1])
    variant = Variant.model_validate_json(sys.argv[2])
    launcher = ProcessLauncher(folder / "catalogue", folder / "cache")
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, Placement(), folder / "server.log")) as running:
        print(running.endpoint.port, running.facts.pid, flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("behaviour", ["healthy", "deaf", "scattering"])
def test_nothing_stays_behind_when_the_lab_is_killed(tmp_path: Path, behaviour: str) -> None:
    make_catalogue(tmp_path / "catalogue")
    variant = server(behaviour, grace_ms=300)
    command = [sys.executable, "-c", textwrap.dedent(LAB), str(tmp_path), variant.model_dump_json()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout is not None
        port, pid = (int(word) for word in lab.stdout.readline().split())
        group = cgroup.own_group_of(pid)
        assert alive(variant)
        lab.send_signal(signal.SIGKILL)
    assert eventually(lambda: alive(variant) == [])
    assert group is None or eventually(lambda: not group.exists())
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_the_server_goes_with_its_warden(tmp_path: Path) -> None:
    variant = server()
    launcher = ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")
    launcher.build([variant], lambda _building: None)
    with launcher.running(Launch(variant, Placement(), tmp_path / "server.log")) as running:
        (warden,) = set(alive(variant)) - {running.facts.pid}
        os.kill(warden, signal.SIGKILL)
        assert eventually(lambda: alive(variant) == [])
        assert eventually(lambda: running.death() is not None)
        death = running.death()
    assert death is not None
    assert "vanished with its warden" in death.message


def test_a_group_that_a_killed_warden_left_is_removed_by_the_next_start(tmp_path: Path) -> None:
    parent = cgroup.parent_for_servers()
    if parent is None:
        pytest.skip("no control group may be made here")
    with subprocess.Popen(["true"]) as ended:
        pass
    stale = parent / f"redline-{ended.pid}-1"
    stale.mkdir()
    cgroup.parent_for_servers()
    assert not stale.exists()


def order(log: Path, *command: str, head: int = 1 << 20, last: int = 1 << 12) -> LaunchOrder:
    return LaunchOrder(
        command=command,
        folder=log.parent,
        env=dict(os.environ),
        cpus=(),
        grace_ns=1_000_000_000,
        cgroup_parent=None,
        log=log,
        log_head=head,
        log_tail=last,
    )


def test_a_flood_of_output_is_cut_in_the_middle_and_counted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = "import os\nfor i in range(64): os.write(1, b'%063d\\n' % i * (1 << 14))\nos.write(2, b'the end\\n')"
    guard = Guard(order(log, sys.executable, "-S", "-c", script))
    try:
        assert isinstance(guard.started(), Started)
        assert guard.poll(60) is not None
    finally:
        guard.stop()
    kept = log.read_bytes()
    written = 64 * (1 << 20) + len(b"the end\n")
    head, mark, rest = kept[: 1 << 20], *kept[1 << 20 :].split(b"here]\n")
    assert set(head.split(b"\n")) == {b"0" * 63, b""}
    assert rest.endswith(b"%063d\nthe end\n" % 63)
    assert len(rest) == 1 << 12
    assert f"{written - len(head) - len(rest)} bytes" in mark.decode()


def test_a_flood_does_not_keep_a_server_from_becoming_ready(tmp_path: Path) -> None:
    variant = server("flooding", within_ms=60_000)
    launcher = ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache")
    launcher.build([variant], lambda _building: None)
    log = tmp_path / "server.log"
    with launcher.running(Launch(variant, Placement(), log)):
        pass
    assert (16 << 20) < log.stat().st_size < (17 << 20)
    assert tail(log, 1) == "the last line"


def test_a_lab_that_gives_no_order_leaves_no_warden() -> None:
    done = subprocess.run(WARDEN, input=b"", timeout=60, check=False)
    assert done.returncode == 0


def test_what_cannot_be_executed_is_reported_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a program")
    guard = Guard(order(tmp_path / "log", str(tmp_path / "text")))
    try:
        assert guard.started() == NotStarted(13, "Permission denied")
    finally:
        guard.stop()


def test_a_capped_log_keeps_short_output_as_it_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        log = CappedLog(file.fileno(), head=10, tail=4, redactor=Redactor(()))
        log.write(b"0123")
        log.settle()
        log.write(b"456789")
        log.settle()
    assert (tmp_path / "log").read_bytes() == b"0123456789"


def test_a_capped_log_with_little_more_than_its_head_drops_nothing(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        log = CappedLog(file.fileno(), head=10, tail=4, redactor=Redactor(()))
        log.write(b"0123456789ab")
        log.settle()
        log.write(b"cd")
        log.settle()
        assert (tmp_path / "log").read_bytes() == b"0123456789abcd"
        log.write(b"efgh")
        log.settle()
    kept = (tmp_path / "log").read_bytes()
    assert kept == b"0123456789\n[redline: 4 bytes of output were dropped here]\nefgh"


def test_secrets_are_as_long_as_their_bytes_and_may_be_no_text() -> None:
    redactor = Redactor(("abcdefghij", "é" * 8, "key-\udcff\udcfe"))
    text = b"<" + ("é" * 8).encode() + b"> <key-\xff\xfe> <abcdefghij>"
    passed = b"".join(redactor.passed(bytes([byte])) for byte in text) + redactor.passed(b"", last=True)
    assert passed == b"<***> <***> <***>"


def test_the_tail_of_a_program_that_describes_itself_begins_with_what_is_wrong(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    flags = "".join(f"  -flag{number} string\n" for number in range(50))
    log.write_text(f"starting\nflag provided but not defined: -port\nUsage of ./server:\n{flags}")
    assert tail(log, 4).splitlines() == [
        "starting",
        "flag provided but not defined: -port",
        "Usage of ./server:",
        "  -flag0 string",
    ]
    log.write_text(f"Usage of ./server:\n{flags}")
    assert tail(log, 1) == "  -flag49 string"


def test_the_tail_is_plain_text(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\x1b[31mred\x1b[0m \x00\xff\r\n\n" + b"y" * 2000 + b"\n")
    lines = tail(tmp_path / "log").splitlines()
    assert lines == ["red \N{REPLACEMENT CHARACTER}", "y" * 500]
    assert tail(tmp_path / "missing") == ""


def test_a_full_disk_loses_the_log_and_not_the_server(tmp_path: Path) -> None:
    script = "import os\nfor i in range(8): os.write(1, b'x' * (1 << 20))\nos._exit(5)"
    asked = replace(order(tmp_path / "log", sys.executable, "-S", "-c", script), log=Path("/dev/full"))
    guard = Guard(asked)
    try:
        assert isinstance(guard.started(), Started)
        exited = guard.poll(60)
    finally:
        guard.stop()
    assert exited is not None
    assert str(exited) == "exited with code 5"


SECRETS = st.lists(st.text("ab", min_size=6, max_size=9), min_size=1, max_size=3).map(
    lambda texts: sorted(set(texts), key=lambda text: (-len(text), text))
)


@given(SECRETS, st.text("abc", max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_secrets_are_hidden_however_output_is_cut_into_parts(secrets: list[str], text: str, cuts: list[int]) -> None:
    redactor, ends = Redactor(secrets), [*sorted(cuts), len(text)]
    parts = [text[begin:end].encode() for begin, end in zip([0, *ends], ends, strict=False)]
    written = b"".join([*map(redactor.passed, parts), redactor.passed(b"", last=True)])
    assert written == Redactor(secrets).passed(text.encode(), last=True)
    assert written.decode().replace("***", "").count("c") == text.count("c")
    assert not any(secret in written.decode() for secret in secrets)


def test_a_log_shows_all_but_secrets_once_the_server_has_ended(tmp_path: Path) -> None:
    script = "import os; print('token', 'hunter' + '22', flush=True); os._exit(3)"
    guard = Guard(replace(order(tmp_path / "log", sys.executable, "-c", script), secrets=("hunter22",)))
    try:
        assert isinstance(guard.started(), Started)
        assert guard.poll(10.0) is not None
        assert (tmp_path / "log").read_bytes() == b"token " + HIDDEN + b"\n"
    finally:
        guard.stop()


def test_a_step_shows_the_command_without_secrets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    secret = "it's $ecret"
    command = order(tmp_path / "log", sys.executable, "-c", "pass", f"--key={secret}")
    guard = Guard(replace(command, secrets=(secret,)))
    with caplog.at_level(logging.DEBUG, "redline"):
        try:
            assert isinstance(guard.started(), Started)
        finally:
            guard.stop()
    assert "'--key=***'" in caplog.text
    assert "ecret" not in caplog.text
