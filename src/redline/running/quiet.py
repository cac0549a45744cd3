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


def wait_until_quiet(
    seen: Callable[[Look], None],
    look: Callable[[float], Shares] = sample_shares,
    clock: Callable[[], float] = time.monotonic,
) -> Look | None:
    """Wait until steal and other processes' load are below the doctor's thresholds. Returns the last look on giving up.

    `look` samples the machine for some seconds; `seen` gets every look but the last.
    """
    begun = clock()
    quiet_since: float | None = None
    while True:
        before = clock()
        steal, busy = look(_LOOK_S)
        if (steal or 0.0) <= MOST_STEAL and (busy or 0.0) <= MOST_BUSY:
            quiet_since = before if quiet_since is None else quiet_since
            if clock() - quiet_since >= _QUIET_S:
                return None
        else:
            quiet_since = None
        latest = Look(steal, busy, clock() - begun)
        if latest.waited_s >= AT_MOST_S and quiet_since is None:
            return latest
        seen(latest)
