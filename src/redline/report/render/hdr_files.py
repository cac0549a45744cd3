"""Distributions for the tools of HdrHistogram: percentile distributions (.hgrm) and interval logs (.hlog).

Source: `outputPercentileDistribution` and `HistogramLogWriter` of the Java library org.hdrhistogram:HdrHistogram 2.2,
whose readers the tests use.
"""

import math
import re
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

import numpy as np

from redline.analysis.distributions import RecordedTimes
from redline.model import hdr
from redline.model.histogram import Histogram

_TICKS = 5
"""Lines for each halving of the distance to 100%, as all HdrHistogram tools print."""
_MS = 1e6
_SECOND = 1e9
_DELIMITERS = re.compile(r"[\s,]")


def percentile_distribution(times: Histogram) -> bytes:
    """The distribution in milliseconds, with its footer; only header and footer for an empty histogram."""
    lines = [f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}", ""]
    lines += [
        f"{_fixed(level.ns / _MS, 3):>12} {_fixed(level.q, 12)} {level.requests:10d}{_left(level)}"
        for level in percentile_levels(times)
    ]
    mean, deviation = _moments_ns(times)
    lines += [
        f"#[Mean    = {_fixed(mean / _MS, 3):>12}, StdDeviation   = {_fixed(deviation / _MS, 3):>12}]",
        f"#[Max     = {_fixed(times.max_ns / _MS, 3):>12}, Total count    = {times.count:12d}]",
        f"#[Buckets = {hdr.BUCKETS:12d}, SubBuckets     = {2 * hdr.HALF:12d}]",
    ]
    return ("\n".join(lines) + "\n").encode()


def _left(level: "ReachedLevel") -> str:
    return f" {_fixed(1 / (1 - level.q), 2):>14}" if level.q < 1 else ""


def _fixed(value: float, places: int) -> str:
    """Format a number with this many decimals. Java rounds a half up, Python to the even digit."""
    return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):f}"


class ReachedLevel(NamedTuple):
    """A level of a distribution: `requests` requests, at least a share `q` of all, do not exceed `ns`."""

    ns: int
    q: float
    requests: int


def percentile_levels(times: Histogram) -> Iterator[ReachedLevel]:
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


def _moments_ns(times: Histogram) -> tuple[float, float]:
    """Mean and standard deviation, from the midpoints of slots as in the Java library; 0 for an empty histogram."""
    values_ns, counts = times.buckets()
    if not len(values_ns):
        return 0.0, 0.0
    slots = hdr.slots_of(values_ns)
    low, high = hdr.lowest_of(slots), hdr.highest_of(slots)
    middle = low + (high - low + 1) // 2
    mean = float(np.average(middle, weights=counts))
    return mean, math.sqrt(float(np.average((middle - mean) ** 2, weights=counts)))


def interval_log(parts: Iterable[RecordedTimes], about: str) -> Iterator[bytes]:
    """The log of all distributions, distinguished by tags; times are Unix time in seconds, the largest value is in ms.

    Every line is an interval as the engine reported it. `about` is a comment.
    """
    spans = sorted(
        ((span.start_unix_ns, part.name, span) for part in parts for span in part.spans), key=lambda it: it[:2]
    )
    yield f"#[{_DELIMITERS.sub(' ', about)}]\n#[Histogram log format version 1.3]\n".encode()
    if spans:
        yield f"#[StartTime: {spans[0][0] / _SECOND:.3f} (seconds since epoch)]\n".encode()
    yield b'"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    for start_ns, name, span in spans:
        length, largest = (span.end_unix_ns - start_ns) / _SECOND, span.times.max_ns / _MS
        tag = _DELIMITERS.sub("_", name)
        yield f"Tag={tag},{start_ns / _SECOND:.3f},{length:.3f},{largest:.3f},{span.times.encode()}\n".encode()
