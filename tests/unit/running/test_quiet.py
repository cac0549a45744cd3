"""`--wait-quiet` waits until the machine is quiet for a while, and gives up in the end."""

import io
from collections.abc import Iterable, Iterator

import pytest
from rich.console import Console

from redline.cli.quiet import wait_until_quiet, waited_text, waiting_text
from redline.running import quiet
from redline.running.quiet import Look, Shares

QUIET: Shares = (0.0, 0.01)
BUSY: Shares = (0.0, 0.4)
STOLEN: Shares = (0.05, 0.01)


class Machine:
    """A machine with these shares in turn, and then the last for ever; its clock counts the looks."""

    def __init__(self, seen: Iterable[Shares]) -> None:
        self._seen: Iterator[Shares] = iter(seen)
        self._last = QUIET
        self.now = 0.0

    def look(self, seconds: float) -> Shares:
        self.now += seconds
        self._last = next(self._seen, self._last)
        return self._last


def waited(machine: Machine) -> tuple[bool, str]:
    console = Console(file=io.StringIO(), width=200)
    done = wait_until_quiet(console, machine.look, lambda: machine.now)
    assert isinstance(console.file, io.StringIO)
    return done, console.file.getvalue()


@pytest.mark.parametrize(
    ("seen", "takes"),
    [((QUIET,), 3), ((BUSY, BUSY, QUIET), 5), ((QUIET, QUIET, STOLEN, QUIET), 6), (((None, None),), 3)],
)
def test_it_waits_for_three_quiet_seconds_in_a_row(seen: tuple[Shares, ...], takes: float) -> None:
    machine = Machine(seen)
    assert waited(machine) == (True, "")
    assert machine.now == takes


def test_it_gives_up_and_says_what_was_in_the_way() -> None:
    machine = Machine((STOLEN, BUSY))
    done, said = waited(machine)
    assert (done, machine.now) == (False, 300)
    assert said == (
        "the machine is not quiet after 300 s: the host takes 0% of the CPU time, other processes use 40%; "
        "measuring all the same\n"
    )


def test_a_quiet_moment_at_the_end_is_waited_for() -> None:
    assert waited(Machine([BUSY] * 299 + [QUIET])) == (True, "")


@pytest.mark.parametrize(
    ("shares", "is_quiet"),
    [((0.01, 0.05), True), ((0.011, 0.0), False), ((0.0, 0.051), False), ((None, 0.04), True), ((0.02, None), False)],
)
def test_a_hundredth_of_steal_and_a_twentieth_of_load_are_quiet(shares: Shares, *, is_quiet: bool) -> None:
    assert waited(Machine((shares,)))[0] is is_quiet


def test_every_look_but_the_last_is_told_with_the_time_waited() -> None:
    machine, told = Machine((BUSY, QUIET)), list[Look]()
    assert quiet.wait_until_quiet(told.append, machine.look, lambda: machine.now) is None
    assert told == [Look(*BUSY, 1.0), Look(*QUIET, 2.0), Look(*QUIET, 3.0)]


def test_starts_wait_for_so_long_in_all() -> None:
    machine, seen, ended = Machine([QUIET, BUSY, BUSY, QUIET, QUIET, QUIET, STOLEN]), list[float](), list[bool]()
    waits = quiet.Quiet(10.0, machine.look, lambda: machine.now)

    def start() -> None:
        waits.wait(lambda _look, at_most_s: seen.append(at_most_s), lambda last, _took_s: ended.append(last is None))

    start()
    assert (machine.now, waits.waited_s, ended) == (1.0, 0.0, []), "it is quiet at once"
    start()
    assert (waits.waited_s, ended) == (5.0, [True])
    assert set(seen) == {10.0}
    start()
    assert (waits.waited_s, ended) == (11.0, [True, False])
    assert seen[-1] == 5.0
    start()
    assert machine.now == 12.0, "the time is over: it does not even look"


def test_it_says_how_long_a_start_waited_and_for_what() -> None:
    look = Look(0.05, 0.4, 12.0)
    assert waiting_text(look, 300.0) == (
        "waiting for the machine to be quiet: the host takes 5% of the CPU time, other processes use 40%; "
        "12.0 s of at most 5 min"
    )
    assert waited_text(None, 12.0) == "waited 12.0 s for the machine to be quiet"
    assert waited_text(look, 300.0).startswith("the machine is not quiet after 5 min: the host takes 5%")
