"""`--wait-quiet`: wait until the machine is quiet, for a limited time."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from redline.cli.show import OneLine
from redline.document.format import duration
from redline.quantities import percent
from redline.running import quiet
from redline.running.quiet import AT_MOST_S, Look, Shares
from redline.watching.machine import sample_shares


def wait_until_quiet(
    console: Console,
    look: Callable[[float], Shares] = sample_shares,
    clock: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait, and show the reason. Returns whether the machine became quiet; if it did not, prints a message."""
    with OneLine(console) as line:

        def seen(now: Look) -> None:
            waiting = f"waiting for the machine to be quiet: {_look_text(now)}"
            line.say(Text(f"{waiting}; {now.waited_s:.0f} s of at most {AT_MOST_S:.0f} s"))

        last = quiet.wait_until_quiet(seen, look, clock)
    if last is None:
        return True
    text = f"the machine is not quiet after {last.waited_s:.0f} s: {_look_text(last)}; measuring all the same"
    console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)
    return False


def waiting_text(look: Look, at_most_s: float) -> str:
    """What a start waits for, and how long."""
    until = f"{duration(look.waited_s * 1e9)} of at most {duration(at_most_s * 1e9)}"
    return f"waiting for the machine to be quiet: {_look_text(look)}; {until}"


def waited_text(last: Look | None, waited_s: float) -> str:
    """How long a start has waited, and whether the machine is quiet now."""
    took = duration(waited_s * 1e9)
    if last is None:
        return f"waited {took} for the machine to be quiet"
    seen = _look_text(last)
    return f"the machine is not quiet after {took}: {seen}; measuring all the same, and no start waits any more"


def _look_text(look: Look) -> str:
    return f"the host takes {_share(look.steal)} of the CPU time, other processes use {_share(look.busy)}"


def _share(share: float | None) -> str:
    return "an unknown share" if share is None else percent(round(share, 3))
