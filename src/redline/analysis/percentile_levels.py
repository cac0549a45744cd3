"""The levels of a distribution that all HdrHistogram tools print."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from redline.model import Histogram, Signed

_TICKS = 5
"""Lines for each halving of the distance to 100%."""


class ReachedLevel(NamedTuple):
    """A level of a distribution: `requests` requests, at least a share `q` of all, do not exceed `ns`."""

    ns: int
    q: float
    requests: int


def percentile_levels(times: Histogram | Signed) -> Iterator[ReachedLevel]:
    """Yield the levels of the Java library's percentile iterator; the last has the largest time."""
    values_ns, counts = times.buckets()
    cumulative = np.cumsum(counts)
    if not len(cumulative):
        return
    total, percent, at = int(cumulative[-1]), 0.0, -1
    reached = 100.0 * cumulative / total
    while at < 0 or cumulative[at] < total:
        at = max(at, int(np.searchsorted(reached, percent)))
        yield ReachedLevel(int(values_ns[at]), percent / 100, int(cumulative[at]))
        halvings = int(math.log(100.0 / (100.0 - percent)) / math.log(2)) + 1
        percent += 100.0 / (_TICKS * 2**halvings)
    yield ReachedLevel(int(values_ns[-1]), 1.0, total)
