"""Measurements on a machine know of each other, and take turns if asked to; what others write there is only shown."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.running.turns import AT_ONCE, LOOK_S, TurnOptions, Waiting, measuring
from redline.watching import measurements as module
from redline.watching.measurements import NAMED_BY, Measurement, Measurements, State, measurements

HOLDS = """
import sys
from pathlib import Path
from redline.watching.measurements import Measurements
with Measurements(Path(sys.argv[1])).entered(sys.argv[2], sys.argv[3]):
    print("entered", flush=True)
    sys.stdin.read()
"""
HOUR_S = 3600.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the machine's measurements."""
    monkeypatch.setenv(NAMED_BY, str(tmp_path / "shared"))
    known = measurements()
    assert known is not None
    return known.folder


@contextmanager
def holding(folder: Path, command: str, state: State) -> Iterator[subprocess.Popen[str]]:
    """Another process that measures, until the block ends."""
    arguments = [sys.executable, "-c", HOLDS, str(folder), command, state]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "entered\n"
        try:
            yield process
        finally:
            with suppress(BrokenPipeError):
                process.communicate()


def named(others: tuple[Measurement, ...]) -> list[tuple[str, State]]:
    return [(other.command, other.state) for other in others]


class Machine:
    """What a measurement is told; time goes on by `events`, one per look, and then as fast as it waits."""

    def __init__(self, *events: Callable[[], object]) -> None:
        self.events, self.now_s = list(events), 0.0
        self.beside: list[tuple[Measurement, ...]] = []
        self.waited: list[Waiting] = []

    def _pause(self, seconds: float) -> None:
        self.now_s += seconds
        if self.events:
            self.events.pop(0)()

    def measures(self, turn: TurnOptions = AT_ONCE) -> AbstractContextManager[None]:
        clock = (lambda: self.now_s, self._pause)
        return measuring("redline ab", turn, self.beside.append, self.waited.append, clock=clock)


def test_two_processes_know_of_each_other(folder: Path) -> None:
    known = Measurements(folder)
    with holding(folder, "redline limit", "measuring") as process:
        (other,) = known.others()
        assert (other.command, other.pid, other.state) == ("redline limit", process.pid, "measuring")
        assert str(other).startswith(f"redline limit (pid {process.pid}, of {other.user}, since ")
    assert known.others() == ()
    assert list(folder.iterdir()) == []


def test_a_killed_process_leaves_nothing_that_counts(folder: Path) -> None:
    known = Measurements(folder)
    with holding(folder, "redline run", "alone") as process:
        process.kill()
        process.wait()
        assert len(list(folder.iterdir())) == 1
        assert known.others() == ()
        assert list(folder.iterdir()) == []


def test_a_measurement_is_no_other_of_its_own_process(folder: Path) -> None:
    known = measurements()
    assert known is not None
    with known.entered("redline.ab", "measuring") as entry, known.entered("redline.load", "measuring"):
        assert known.others() == ()
        assert named(known.others(than=entry)) == [("redline.load", "measuring")], "two threads"


@pytest.mark.parametrize(
    ("content", "shown", "pid"),
    [
        (b"", "a measurement", None),
        (b"[1]", "a measurement", None),
        (b"[" * 1_000, "a measurement", None),
        (b'{"command": 1, "pid": true}', "a measurement", None),
        (b'{"command": "", "pid": -1}', "a measurement", None),
        (json.dumps({"command": "a\x1b[2J\n\nb", "pid": 7}).encode(), "a\\u001b[2J b", 7),
        (json.dumps({"command": "x" * 500, "pid": 2**40}).encode(), "x" * 80, None),
        (json.dumps({"command": "x" * 5_000, "pid": 1}).encode(), "a measurement", None),
    ],
)
def test_what_another_user_writes_is_only_shown(folder: Path, content: bytes, shown: str, pid: int | None) -> None:
    file = folder / f"{'a' * 16}.measuring"
    file.write_bytes(content)
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (other,) = Measurements(folder).others()
        assert (other.command, other.pid) == (shown, pid)


def test_what_is_no_file_of_a_measurement_is_passed_over(folder: Path, tmp_path: Path) -> None:
    """Links lead elsewhere, a pipe would make its reader wait, and nobody holds the last."""
    (tmp_path / "secret").write_text("{}")
    (folder / f"{'a' * 16}.alone").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / f"{'b' * 16}.alone")
    (folder / f"{'c' * 16}.alone").mkdir()
    (folder / "notes.alone").write_text("{}")
    assert Measurements(folder).others() == ()
    assert (tmp_path / "secret").exists()


def test_few_of_many_files_are_looked_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 3)
    for number in range(5):
        (folder / f"{number}").touch()
    read: list[str] = []
    monkeypatch.setattr(module.os, "open", lambda *_: read.append("opened"))
    assert Measurements(folder).others() == ()
    assert read == []


def test_the_directory_is_for_all_users_and_nobody_removes_what_is_another_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first place that is shared, and in it no directory that one user has made for himself."""
    monkeypatch.delenv(NAMED_BY, raising=False)
    private, first, second = (tmp_path / name for name in ("private", "first", "second"))
    for parent in (private, first, second):
        parent.mkdir()
    first.chmod(0o1777)
    second.chmod(0o1777)
    monkeypatch.setattr(module, "_PARENTS", (private, first, second))
    known = measurements()
    assert known is not None
    assert known.folder.parent == first
    assert known.folder.stat().st_mode & 0o7777 == 0o1777
    known.folder.chmod(0o755)
    known = measurements()
    assert known is not None
    assert known.folder.parent == second
    monkeypatch.setattr(module, "_PARENTS", (private,))
    assert measurements() is None


@pytest.mark.parametrize("state", ["measuring", "alone"])
def test_by_default_both_go_on_and_are_told(folder: Path, state: State) -> None:
    machine = Machine()
    with holding(folder, "redline limit", state), machine.measures():
        assert [named(others) for others in machine.beside] == [[("redline limit", state)]]
        assert machine.waited == []


def test_what_only_waits_disturbs_nobody(folder: Path) -> None:
    machine = Machine()
    with holding(folder, "redline limit", "waiting"), machine.measures(TurnOptions(alone=True)):
        assert machine.beside == []


def refused(turn: TurnOptions, machine: Machine | None = None) -> UsageError:
    """The error with which a measurement does not begin."""
    with pytest.raises(UsageError) as raised, (machine or Machine()).measures(turn):
        raise AssertionError
    return raised.value


@pytest.mark.parametrize("state", ["measuring", "alone"])
def test_alone_refuses_and_names_the_other(folder: Path, state: State) -> None:
    with holding(folder, "redline limit", state) as process:
        error = refused(TurnOptions(alone=True))
        assert f"redline limit (pid {process.pid}, of " in error.message
        assert "--wait" in error.hint
        assert len(list(folder.iterdir())) == 1, "it holds nothing any more"


def test_alone_is_not_refused_for_what_came_later(folder: Path) -> None:
    with Machine().measures(TurnOptions(alone=True)), holding(folder, "redline load", "alone"):
        first, second = Measurements(folder).others()
        assert (first.pid, first.state, second.state) == (os.getpid(), "alone", "alone")


@pytest.mark.parametrize("alone", [False, True])
def test_wait_begins_when_the_other_has_ended(folder: Path, alone: bool) -> None:
    other = holding(folder, "redline limit", "measuring")
    other.__enter__()
    machine = Machine(lambda: None, lambda: other.__exit__(None, None, None))
    with machine.measures(TurnOptions(HOUR_S, alone=alone)):
        assert [now.waited_s for now in machine.waited] == [0.0, LOOK_S]
        assert machine.beside == []
        (ours,) = Measurements(folder).others()
        assert ours.state == ("alone" if alone else "measuring")


def test_wait_ends_after_its_time_and_names_the_other(folder: Path) -> None:
    machine = Machine()
    with holding(folder, "redline limit", "measuring") as process:
        error = refused(TurnOptions(10.0), machine)
        assert error.message.startswith(f"--wait: after 10.0 s, redline limit (pid {process.pid}, of ")
    assert machine.now_s == pytest.approx(10.0)


def test_those_that_wait_begin_one_after_the_other(folder: Path) -> None:
    """The one that has waited for longest first: it does not wait for those behind it, and they do for it."""
    machine = Machine()
    with machine.measures(TurnOptions(HOUR_S)), holding(folder, "redline run", "waiting"):
        assert machine.waited == []
    with holding(folder, "redline run", "waiting"):
        assert refused(TurnOptions(1.0)).message.endswith("waits before this one")


def test_an_interrupt_ends_the_wait(folder: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with (
        holding(folder, "redline limit", "measuring"),
        pytest.raises(KeyboardInterrupt),
        Machine(interrupt).measures(TurnOptions(HOUR_S)),
    ):
        raise AssertionError
    assert list(folder.iterdir()) == []


def test_where_nothing_is_shared_only_the_flags_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A measurement needs no directory; one that asks for its turn does."""
    monkeypatch.setenv(NAMED_BY, str(tmp_path / "nowhere" / "shared"))
    with Machine().measures():
        pass
    for turn in (TurnOptions(alone=True), TurnOptions(HOUR_S)):
        assert "it is not known what else measures" in refused(turn).message
