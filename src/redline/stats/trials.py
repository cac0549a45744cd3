"""What each metric reads from the recordings of trials."""

from collections.abc import Sequence

import numpy as np

from redline.model import Metric, Recording, Traffic
from redline.stats.samples import Floats, Quantiles, Ratios, Sample

SHARES = {Metric.P50: 0.5, Metric.P90: 0.9, Metric.P99: 0.99, Metric.P999: 0.999}


FEWEST_BEYOND = 10
"""Requests that must lie beyond a percentile for it to be given: 10 fix it to a third of the tail's own scale."""


def enough_beyond(count: int, q: float) -> bool:
    """Whether `count` requests tell their quantile `q`; any request tells something of the lower half."""
    return count > 0 and (q <= 0.5 or round(count * (1 - q), 6) >= FEWEST_BEYOND)


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
        return Ratios(_array([_traffic(r).counts.completed for r in recordings]), _seconds(recordings))
    if metric is Metric.CPU_PER_REQUEST:
        cpu = _array([server_cpu_ns(r) or 0.0 for r in recordings])
        return Ratios(cpu, _array([_traffic(r).counts.completed for r in recordings]))
    if metric is Metric.MEMORY:
        return Ratios(_array([most_memory_bytes(r) for r in recordings]), np.ones(len(recordings)))
    return Quantiles(tuple(_traffic(r).response for r in recordings), SHARES[metric])


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


def _seconds(recordings: Sequence[Recording]) -> Floats:
    return _array([_traffic(r).seconds for r in recordings])


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
