"""How often control groups ran out of their CPU quota."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from redline.plugins.linux.procfs import read_bytes


@dataclass(frozen=True)
class Throttling:
    """Since the groups were made: periods that had work in them, those of which the quota ran out, and for how long.

    The time counts once for each core on which something had to wait for the next period.
    """

    periods: int
    throttled: int
    throttled_ns: int


def throttling(groups: Iterable[Path]) -> Throttling | None:
    """The sum over these groups, of version 1 or 2; None when none of them tells."""
    told = [counts for group in groups if (counts := _read(group)) is not None]
    if not told:
        return None
    return Throttling(
        sum(one.periods for one in told), sum(one.throttled for one in told), sum(one.throttled_ns for one in told)
    )


def _read(group: Path) -> Throttling | None:
    """Version 1 counts nanoseconds (`throttled_time`), version 2 microseconds (`throttled_usec`)."""
    words = read_bytes(f"{group}/cpu.stat").split()
    stat = dict(zip(words[::2], words[1::2], strict=False))
    try:
        v2 = b"throttled_usec" in stat
        time_ns = int(stat[b"throttled_usec"]) * 1000 if v2 else int(stat[b"throttled_time"])
        return Throttling(int(stat[b"nr_periods"]), int(stat[b"nr_throttled"]), time_ns)
    except (KeyError, ValueError):
        return None
