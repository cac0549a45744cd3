"""Findings about known patterns in response times: multiples of a timer, and one slow request in k."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from redline.findings.rules import Observation, Rule
from redline.model import Histogram, Traffic
from redline.quantities import duration, percent
from redline.stats.gaps import FEWEST_BESIDE, Gap, clearest_gap

MS = 1_000_000
_PERIODS = tuple(ms * MS for ms in (1_000, 500, 250, 200, 100, 50, 40, 30, 25, 20, 16, 15, 10, 5, 4, 2))
"""Periods of timers that people and kernels choose. The longest one that fits is meant: multiples of it are also
multiples of its parts."""
_EARLY, _LATE = 0.02, 0.10
"""How far from a multiple a time may be, as a share of the period: the request itself comes on top."""
_FITS = 0.95
"""The least share of the times from half a period on that are near a multiple."""
_OF_A_MULTIPLE = 0.05

_MOST_K = 1_000
_FEWEST_INTERVALS, _FEWEST_SLOW = 9, 20
"""With fewer intervals, or fewer slow requests in one, regular and random ones look alike."""
_REGULAR, _MOST_ARE = 0.25, 0.75
"""Three of four intervals are within so many standard deviations of random numbers: by chance 3 times in 10,000. Others
may have a stall."""


@Rule("timer-multiples", when="answers", note=0.2)
def timer_multiples(traffic: Traffic) -> Observation | None:
    """Requests whose times lie at two or more multiples of a period of 2 ms to 1 s, up to a tenth later, and hardly any
    elsewhere from half a period on.

    They wait for a timer once, twice, …, such as a poll or a sleep between attempts; or for turns of equal length in a
    pool of workers.

    Advice: Look for a sleep, poll or retry of this length in the server and in what it waits for, and for a pool with
    fewer workers than users.
    """
    values, counts = traffic.response.buckets()
    n = int(counts.sum())
    for period_ns in _PERIODS:
        if found := _multiples(values, counts, period_ns):
            share = sum(found.values()) / n
            shown = ", ".join(duration(multiple * period_ns) for multiple in sorted(found)[:3])
            shown += ", …" if len(found) > 3 else ""
            message = (
                f"{percent(share)} of the requests took multiples of {duration(period_ns)} ({shown}), and hardly any a "
                "time between: they waited for a timer, or for turns of that length."
            )
            return Observation(share, message)
    return None


def _multiples(values: NDArray[np.int64], counts: NDArray[np.int64], period_ns: int) -> dict[int, int]:
    """The numbers of times near multiples of a period; empty unless nearly all times from half of it on are."""
    later = values >= period_ns / 2
    n = int(counts[later].sum())
    nearest = np.floor(values[later] / period_ns + _EARLY).astype(np.int64)
    beyond = values[later] / period_ns - nearest
    near = (beyond <= _LATE) & (nearest >= 1)
    if counts[later][near].sum() < _FITS * n:
        return {}
    by_multiple = {
        int(multiple): int(counts[later][near & (nearest == multiple)].sum()) for multiple in np.unique(nearest[near])
    }
    many = [count for count in by_multiple.values() if count >= max(FEWEST_BESIDE, _OF_A_MULTIPLE * n)]
    return by_multiple if len(many) > 1 else {}


@Rule("one-in-k", when="answers", note=0.0)
def one_in_k(traffic: Traffic) -> Iterator[Observation]:
    """*Loads of one request.* Slow requests, apart from the others by a factor of two, whose share is the same in most
    intervals, far more exactly than by chance: of ten or more, with 20 of them on average.

    One of k servers or connections behind it is slow, or every k-th request sets off more work: a flush, a batch, a
    cache that is filled.

    Advice: Ask each server behind it by itself, and look for what counts requests.
    """
    if traffic.requests or traffic.journeys is not None:
        return
    gap = clearest_gap(traffic.response)
    if gap is None or not 2 <= round(1 / gap.above) <= _MOST_K:
        return
    measured = [one.response for one in traffic.intervals if one.phase == "measure" and one.response.count]
    if _is_regular(measured[1:], gap):  # slow requests of before are missing in the first
        message = (
            f"One request in {round(1 / gap.above)} took {duration(gap.high_ns)} or longer, the others at most "
            f"{duration(gap.low_ns)}, and that regularly, not by chance."
        )
        yield Observation(gap.above, message)


def _is_regular(intervals: Sequence[Histogram], gap: Gap) -> bool:
    """Whether the same share of the requests is slow in most intervals, far more exactly than by chance."""
    total = np.array([times.count for times in intervals], dtype=np.float64)
    slow = np.array([_above(times, gap) for times in intervals], dtype=np.float64)
    if len(total) < _FEWEST_INTERVALS or slow.mean() < _FEWEST_SLOW:
        return False
    share = float(np.median(slow / total))
    off = np.abs(slow - share * total) / np.sqrt(total * share * (1 - share)) if 0 < share < 1 else np.array([np.inf])
    return bool(np.mean(off <= _REGULAR) >= _MOST_ARE)


def _above(times: Histogram, gap: Gap) -> int:
    values, counts = times.buckets()
    return int(counts[values > gap.low_ns].sum())
