"""What each metric reads from the recordings of trials."""

import math
from collections.abc import Sequence

import numpy as np

from redline.model import Histogram, Interval, Metric, Recording, Traffic
from redline.stats.samples import BLOCKS, Floats, Quantiles, Ratios, Sample, block_sums

SHARES = {Metric.P50: 0.5, Metric.P90: 0.9, Metric.P99: 0.99, Metric.P999: 0.999, Metric.P9999: 0.9999}

PAGE_BYTES = 4096
"""Memory comes in pages, so trials that agree to the byte agree to a page."""

FEWEST_BEYOND = 10
"""Requests that must lie beyond a percentile for it to be given: 10 fix it to a third of the tail's own scale."""


def enough_beyond(count: int, q: float) -> bool:
    """Whether `count` requests tell their quantile `q`; any request tells something of the lower half."""
    return count > 0 and (q <= 0.5 or round(count * (1 - q), 6) >= FEWEST_BEYOND)


def requests_needed(q: float) -> int:
    """How many requests tell the quantile `q`: 100,000 for 0.9999."""
    return 1 if q <= 0.5 else math.ceil(round(FEWEST_BEYOND / (1 - q), 6))


def tells(recording: Recording, metric: Metric) -> bool:
    """Whether a recording says anything about the metric."""
    if recording.traffic is None:
        return False
    if metric is Metric.THROUGHPUT:
        return recording.traffic.seconds > 0
    if metric is Metric.CPU_PER_REQUEST:
        return recording.traffic.counts.completed > 0 and server_cpu_ns(recording) is not None
    if metric is Metric.MEMORY:
        return recording.find("rss_bytes", "server") is not None
    return recording.traffic.response.count > 0


def sample_of(recordings: Sequence[Recording], metric: Metric) -> Sample:
    """The recordings as that metric sees them. Each must tell it; the order is kept."""
    if metric is Metric.THROUGHPUT:
        traffics = [_traffic(r) for r in recordings]
        return Ratios(
            _array([traffic.counts.completed for traffic in traffics]),
            _array([traffic.seconds for traffic in traffics]),
            blocks=_answered(traffics),
        )
    if metric is Metric.CPU_PER_REQUEST:
        cpu = _array([server_cpu_ns(r) or 0.0 for r in recordings])
        return Ratios(cpu, _array([_traffic(r).counts.completed for r in recordings]))
    if metric is Metric.MEMORY:
        most = _array([most_memory_bytes(r) for r in recordings])
        return Ratios(most, np.ones(len(recordings)), resolution=PAGE_BYTES / max(float(most.mean()), PAGE_BYTES))
    traffics = [_traffic(r) for r in recordings]
    return Quantiles(
        tuple(traffic.response for traffic in traffics),
        SHARES[metric],
        parts=tuple(_responses(traffic) for traffic in traffics),
    )


def server_cpu_ns(recording: Recording) -> float | None:
    """CPU time of the server's processes within the measurement window; None when no probe saw it."""
    return recording.increase("cpu_ns", "server")


def cpu_per_request_ns(recording: Recording) -> float | None:
    """The server's CPU time for each right answer within the window; None when not known."""
    cpu = server_cpu_ns(recording)
    completed = recording.traffic.counts.completed if recording.traffic else 0
    return cpu / completed if cpu is not None and completed > 0 else None


def most_memory_bytes(recording: Recording) -> float:
    """The largest resident size of the server's processes that a probe saw; 0 when none looked."""
    series = recording.find("rss_bytes", "server")
    return max(series.values) if series else 0.0


def _traffic(recording: Recording) -> Traffic:
    if recording.traffic is None:
        raise ValueError(f"trial {recording.position} has no traffic")
    return recording.traffic


def _measured(traffic: Traffic) -> list[Interval]:
    return [interval for interval in traffic.intervals if interval.phase == "measure"]


def _answered(traffics: Sequence[Traffic]) -> tuple[Floats, Floats] | None:
    """Right answers and seconds by trial and block. CPU has none: what a reading is late is in the next block again."""
    measured = [_measured(traffic) for traffic in traffics]
    blocks = min([BLOCKS, *map(len, measured)])
    if blocks < 2:
        return None
    answers = [block_sums([each.counts.completed for each in trial], blocks) for trial in measured]
    seconds = [block_sums([(each.end_ns - each.start_ns) / 1e9 for each in trial], blocks) for trial in measured]
    return np.array(answers), np.array(seconds)


def _responses(traffic: Traffic) -> tuple[Histogram, ...]:
    """Of each interval that was measured; what was answered after the window's end belongs to the last one."""
    parts = [interval.response for interval in _measured(traffic)]
    drained = [each.response for each in traffic.intervals if each.phase == "drain" and each.response.count]
    return (*parts[:-1], Histogram.merged([*parts[-1:], *drained])) if drained else tuple(parts)


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
