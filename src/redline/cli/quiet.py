"""`--wait-quiet`: nothing is measured before the machine is quiet, or until there is no hope that it will be."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from redline.analysis.doctor import MOST_BUSY, MOST_STEAL
from redline.cli.show import OneLine
from redline.plugins.machine import sample_shares
from redline.quantities import percent

_AT_MOST_S = 300.0
_LOOK_S = 1.0
_QUIET_S = 3.0
"""Quiet for so long in a row; many a machine is between two bursts."""

Shares = tuple[float | None, float | None]
"""Of all cores' time: stolen by the host, and used by other processes; None where the kernel does not say."""


def wait_until_quiet(
    console: Console,
    look: Callable[[float], Shares] = sample_shares,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait until steal and other processes' load are below the doctor's thresholds; False when it gave up.

    `look` takes seconds, lasts so long, and says what it saw.
    """
    begun = clock()
    quiet_since: float | None = None
    with OneLine(console) as line:
        while True:
            before = clock()
            steal, busy = look(_LOOK_S)
            if (steal or 0.0) <= MOST_STEAL and (busy or 0.0) <= MOST_BUSY:
                quiet_since = before if quiet_since is None else quiet_since
                if clock() - quiet_since >= _QUIET_S:
                    return True
            else:
                quiet_since = None
            seen = f"the host takes {_share(steal)} of the CPU time, other processes use {_share(busy)}"
            waited = clock() - begun
            if waited >= _AT_MOST_S and quiet_since is None:
                break
            line.show(
                Text(f"waiting for the machine to be quiet: {seen}; {waited:.0f} s of at most {_AT_MOST_S:.0f} s")
            )
    text = f"the machine is not quiet after {waited:.0f} s: {seen}; measuring all the same"
    console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)
    return False


def _share(share: float | None) -> str:
    return "an unknown share" if share is None else percent(round(share, 3))
