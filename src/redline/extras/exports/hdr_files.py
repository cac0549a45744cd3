"""Distributions for the tools of HdrHistogram: percentile distributions (.hgrm) and interval logs (.hlog).

Source: `outputPercentileDistribution` and `HistogramLogWriter` of the Java library org.hdrhistogram:HdrHistogram 2.2,
whose readers the tests use.
"""

import math
import re
from collections.abc import Iterable, Iterator
from decimal import ROUND_HALF_UP, Decimal

import numpy as np

from redline.analysis.distributions import RecordedSpan, RecordedTimes
from redline.analysis.percentile_levels import ReachedLevel, percentile_levels
from redline.model import Histogram, Signed, hdr

_MS = 1e6
_SECOND = 1e9
_DELIMITERS = re.compile(r"[\s,]")


def percentile_distribution(times: Histogram | Signed) -> bytes:
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


def _left(level: ReachedLevel) -> str:
    return f" {_fixed(1 / (1 - level.q), 2):>14}" if level.q < 1 else ""


def _fixed(value: float, places: int) -> str:
    """Format a number with this many decimals. Java rounds a half up, Python to the even digit."""
    return f"{Decimal(repr(value)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP):f}"


def _moments_ns(times: Histogram | Signed) -> tuple[float, float]:
    """Mean and standard deviation, from the midpoints of slots as in the Java library; 0 for an empty histogram."""
    values_ns, counts = times.buckets()
    if not len(values_ns):
        return 0.0, 0.0
    slots = hdr.slots_of(np.abs(values_ns))
    low, high = hdr.lowest_of(slots), hdr.highest_of(slots)
    middle = np.sign(values_ns) * (low + (high - low + 1) // 2)
    mean = float(np.average(middle, weights=counts))
    return mean, math.sqrt(float(np.average((middle - mean) ** 2, weights=counts)))


def interval_log(parts: Iterable[RecordedTimes], about: str) -> Iterator[bytes]:
    """The log of all distributions, distinguished by tags; times are Unix time in seconds, the largest value is in ms.

    Every line is an interval as the engine reported it. `about` is a comment. The format has no negative values: those
    of one-way times have a tag of their own, `….to-server.negative`, with their absolute values.
    """
    spans = sorted(
        ((span.start_unix_ns, name, span, times) for part in parts for name, span, times in _unsigned(part)),
        key=lambda it: it[:2],
    )
    yield f"#[{_DELIMITERS.sub(' ', about)}]\n#[Histogram log format version 1.3]\n".encode()
    if spans:
        yield f"#[StartTime: {spans[0][0] / _SECOND:.3f} (seconds since epoch)]\n".encode()
    yield b'"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    for start_ns, name, span, times in spans:
        length, largest = (span.end_unix_ns - start_ns) / _SECOND, times.max_ns / _MS
        tag = _DELIMITERS.sub("_", name)
        yield f"Tag={tag},{start_ns / _SECOND:.3f},{length:.3f},{largest:.3f},{times.encode()}\n".encode()


def _unsigned(part: RecordedTimes) -> Iterator[tuple[str, RecordedSpan, Histogram]]:
    """The spans of a distribution with their tags; signed times below 0 have another tag, where there are any."""
    for span in part.spans:
        match span.times:
            case Histogram():
                yield part.name, span, span.times
            case Signed(positive=positive, negative=negative):
                yield part.name, span, positive
                if negative.count:
                    yield f"{part.name}.negative", span, negative
