"""Measurements on one machine take turns if asked to, and know of each other in any case."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from redline.errors import UsageError
from redline.lazily import dataclass
from redline.quantities import duration
from redline.watching.measurements import Measurement, Measurements, OwnMeasurement, State, measurements
from redline.wording import part

LOOK_S = 0.2
"""A signal that arrives while it waits is seen when this is over."""


@dataclass(frozen=True)
class TurnOptions:
    """What a measurement wants of others: to wait for them for at most `wait_s`, and to be `alone`."""

    wait_s: float | None = None
    alone: bool = False

    @property
    def part(self) -> str:
        """The part that asks for it; empty if it takes what comes."""
        return "wait" if self.wait_s is not None else "alone" if self.alone else ""

    @property
    def state(self) -> State:
        """What it does once it is its turn."""
        return "alone" if self.alone else "measuring"


@dataclass(frozen=True)
class Waiting:
    """What is waited for, how long already, and how long at most."""

    others: tuple[Measurement, ...]
    waited_s: float
    at_most_s: float


AT_ONCE = TurnOptions()
Clock = tuple[Callable[[], float], Callable[[float], object]]
"""The time in seconds, and what waits for some."""


@contextmanager
def measuring(
    command: str,
    turn: TurnOptions,
    beside: Callable[[tuple[Measurement, ...]], object],
    waiting: Callable[[Waiting], object],
    *,
    clock: Clock = (time.monotonic, time.sleep),
) -> Iterator[None]:
    """Measure for a block, known to others on this machine, once it is this measurement's turn.

    `beside` gets those that measure already, if it goes on all the same; `waiting` every look at those it waits for.
    Raises UsageError if it should be alone and is not, and if others still measure after the time.
    """
    known = measurements()
    with ExitStack() as entered:
        try:
            first: State = "waiting" if turn.wait_s is not None else turn.state
            entry = entered.enter_context(known.entered(command, first)) if known is not None else None
        except OSError:
            entry = None
        if known is None or entry is None:
            _check_matters_not(turn)
        else:
            _begin(known, entry, turn, beside, lambda ahead: _wait(ahead, turn, waiting, clock))
        yield


def _check_matters_not(turn: TurnOptions) -> None:
    """Raise UsageError if others matter, which are not known."""
    if turn.part:
        raise UsageError(
            part(turn.part) + ": it is not known what else measures on this machine, whose users share no directory",
            hint="make /run/lock or /tmp writable for all, with the sticky bit; or leave out the flag",
        )


def _begin(
    known: Measurements,
    entry: OwnMeasurement,
    turn: TurnOptions,
    beside: Callable[[tuple[Measurement, ...]], object],
    wait: Callable[[Callable[[], tuple[Measurement, ...]]], None],
) -> None:
    """Begin to measure once it is the turn of an entry. Raises UsageError."""
    if turn.wait_s is not None:
        wait(lambda: tuple(it for it in known.others(than=entry) if not it.is_waiting or it.turn < entry.turn))
        entry.become(turn.state)
    others = tuple(it for it in known.others(than=entry) if not it.is_waiting)
    if turn == TurnOptions(alone=True) and (before := [it for it in others if it.turn < entry.turn]):
        hint = f"wait for that with {part('wait')}; or leave out {part('alone')}: each then names the other"
        raise UsageError(part("alone") + f": {listed(before)} measures on this machine", hint=hint)
    if others:
        beside(others)


def _wait(
    ahead: Callable[[], tuple[Measurement, ...]], turn: TurnOptions, waiting: Callable[[Waiting], object], clock: Clock
) -> None:
    """Wait until nothing is ahead. Raises UsageError after the time."""
    (now_s, pause), at_most_s = clock, turn.wait_s or 0.0
    began_s = now_s()
    while others := ahead():
        waited_s = now_s() - began_s
        if waited_s >= at_most_s:
            does = "waits before this one" if others[0].is_waiting else "still measures"
            message = part("wait") + f": after {duration(at_most_s * 1e9)}, {listed(others)} {does}"
            hint = f"give it more time, such as {part('wait', '2h')}; or leave it out, to measure at the same time"
            raise UsageError(message, hint=hint)
        waiting(Waiting(others, waited_s, at_most_s))
        pause(min(LOOK_S, at_most_s - waited_s))


def listed(others: Sequence[Measurement]) -> str:
    """Name the first, and count the others."""
    more = len(others) - 1
    return f"{others[0]}{f' and {more} more' if more else ''}"
