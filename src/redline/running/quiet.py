"""Wait until the machine is quiet, or until there is no hope that it will be."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from redline.analysis.doctor import MOST_BUSY, MOST_STEAL
from redline.watching.machine import sample_shares

AT_MOST_S = 300.0
_LOOK_S = 1.0
_QUIET_S = 3.0
"""The machine must be quiet for this long in a row; many machines are quiet between two bursts."""

Shares = tuple[float | None, float | None]
"""Shares of all cores' time: stolen by the host, and used by other processes; None if the kernel does not say."""


@dataclass(frozen=True)
class Look:
    """What was seen of the machine, and the time waited so far."""

    steal: float | None
    busy: float | None
    waited_s: float


@dataclass
class Quiet:
    """How the starts of a session wait until the machine is quiet: for `at_most_s` in all."""

    at_most_s: float
    look: Callable[[float], Shares] = sample_shares
    clock: Callable[[], float] = time.monotonic
    waited_s: float = 0.0

    def wait(self, seen: Callable[["Look", float], None], ended: Callable[["Look | None", float], None]) -> None:
        """Wait before a start, for what is left of the time; a machine that is quiet at once holds up for a second.

        `seen` gets every look, and how long this start may wait; `ended` the last look if the machine is not quiet,
        and how long this start waited.
        """
        if self.waited_s >= self.at_most_s:
            return
        begun, left_s = self.clock(), self.at_most_s - self.waited_s
        steal, busy = self.look(_LOOK_S)
        if is_quiet(steal, busy):
            return
        last = wait_until_quiet(lambda look: seen(look, left_s), self.look, self.clock, left_s)
        took_s = self.clock() - begun
        self.waited_s += took_s
        ended(last, took_s)


def is_quiet(steal: float | None, busy: float | None) -> bool:
    """Whether steal and other processes' load are below the doctor's thresholds; what is not known does not count."""
    return (steal or 0.0) <= MOST_STEAL and (busy or 0.0) <= MOST_BUSY


def wait_until_quiet(
    seen: Callable[[Look], None],
    look: Callable[[float], Shares] = sample_shares,
    clock: Callable[[], float] = time.monotonic,
    at_most_s: float = AT_MOST_S,
) -> Look | None:
    """Wait until steal and other processes' load are below the doctor's thresholds. Returns the last look on giving up.

    `look` samples the machine for some seconds; `seen` gets every look but the last.
    """
    begun = clock()
    quiet_since: float | None = None
    while True:
        before = clock()
        steal, busy = look(_LOOK_S)
        if is_quiet(steal, busy):
            quiet_since = before if quiet_since is None else quiet_since
            if clock() - quiet_since >= _QUIET_S:
                return None
        else:
            quiet_since = None
        latest = Look(steal, busy, clock() - begun)
        if latest.waited_s >= at_most_s and quiet_since is None:
            return latest
        seen(latest)
