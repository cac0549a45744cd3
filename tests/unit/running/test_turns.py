"""A measurement goes on beside others, refuses to start, or waits for its turn, as its flags ask."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.running.turns import AT_ONCE, LOOK_S, TurnOptions, Waiting, listed, measuring
from redline.watching.measurements import NAMED_BY, Measurement, Measurements, State, measurements
from tests.fakes.measuring import holding, named

HOUR_S = 3600.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the machine's measurements."""
    monkeypatch.setenv(NAMED_BY, str(tmp_path / "shared"))
    known = measurements()
    assert known is not None
    return known.folder


class Machine:
    """The looks at others that a measurement gets: time passes by an event per look, and then as fast as it waits."""

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


def test_others_are_named_by_the_first_and_their_number() -> None:
    assert [listed(["a", "b", "c"][:count]) for count in (1, 2, 3)] == ["a", "a and 1 more", "a and 2 more"]  # type: ignore[arg-type]
