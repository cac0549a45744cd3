"""The cost of a profiler: how a server changes while it is profiled, within a start."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from redline.model import Estimate, Interval, Metric, Recording, Slice
from redline.stats import CONFIDENCE
from redline.stats.distributions import t_quantile
from redline.stats.series import Switched, switched

STRETCHES = 20
"""The number of periods in a measurement, with and without the profiler."""
SHORTEST_NS = 250_000_000
"""The least length of a period: more than one sample of the CPU time."""
_FEWEST = 2
"""The fewest periods before, during and after the profile: with fewer, a trend would pass for its cost."""
_METHOD = "t interval of the log ratio over periods of one start, its trend taken out"


def overhead(recordings: Iterable[Recording]) -> dict[Metric, Estimate]:
    """The ratios of throughput and CPU time per request with the profiler to those without, in profiled trials.

    Empty if a trial was profiled from begin to end.
    """
    trials = [periods for recording in recordings if (periods := tuple(_periods(recording)))]
    changes = {
        metric: [change for periods in trials if (change := _changed(periods, metric))]
        for metric in (Metric.THROUGHPUT, Metric.CPU_PER_REQUEST)
    }
    return {metric: _estimate(known) for metric, known in changes.items() if known}


@dataclass(frozen=True)
class _Period:
    """A part of a measurement, with or without the profiler."""

    middle_ns: float
    profiled: bool
    values: Mapping[Metric, float | None]


def _periods(recording: Recording) -> Iterator[_Period]:
    """The periods before, during and after the profile, without its edges; empty if a part is short."""
    traffic, profile = recording.traffic, recording.profile
    if traffic is None or profile is None or profile.started is None or profile.stopped is None:
        return
    begins, ends = profile.started, profile.stopped
    pieces: dict[str, list[Interval]] = {"before": [], "during": [], "after": []}
    measured = [interval for interval in traffic.intervals if interval.phase == "measure"]
    for interval in measured:
        start, end = traffic.epoch_unix_ns + interval.start_ns, traffic.epoch_unix_ns + interval.end_ns
        if end <= begins.start:
            pieces["before"].append(interval)
        elif start >= begins.end and end <= ends.start:
            pieces["during"].append(interval)
        elif start >= ends.end:
            pieces["after"].append(interval)
    whole_ns = measured[-1].end_ns - measured[0].start_ns if measured else 0
    length_ns = max(whole_ns / STRETCHES, SHORTEST_NS)
    split = {name: _split(piece, length_ns) for name, piece in pieces.items()}
    if all(len(periods) >= _FEWEST for periods in split.values()):
        for name, periods in split.items():
            for period in periods:
                yield _period(recording, period, traffic.epoch_unix_ns, profiled=name == "during")


def _split(intervals: Sequence[Interval], length_ns: float) -> list[list[Interval]]:
    """Split intervals into pieces of about this length."""
    lasts_ns = intervals[-1].end_ns - intervals[0].start_ns if intervals else 0
    pieces = min(round(lasts_ns / length_ns), len(intervals))
    return list(map(list, np.array_split(np.array(intervals, dtype=object), pieces))) if pieces else []


def _period(recording: Recording, intervals: Sequence[Interval], epoch_unix_ns: int, *, profiled: bool) -> _Period:
    during = Slice(intervals[0].start_ns, intervals[-1].end_ns)
    completed = sum(interval.counts.completed for interval in intervals)
    series = recording.find("cpu_ns", "server")
    cpu_ns = series.increase(epoch_unix_ns + during.start, epoch_unix_ns + during.end) if series else None
    return _Period(
        middle_ns=(during.start + during.end) / 2,
        profiled=profiled,
        values={
            Metric.THROUGHPUT: completed / (during.end - during.start) * 1e9,
            Metric.CPU_PER_REQUEST: cpu_ns / completed if cpu_ns is not None and completed else None,
        },
    )


def _changed(periods: Sequence[_Period], metric: Metric) -> Switched | None:
    values = [period.values[metric] for period in periods]
    known = [value for value in values if value]
    if len(known) < len(values):
        return None
    at = np.array([period.middle_ns for period in periods])
    return switched(np.log(known), at, np.array([period.profiled for period in periods]))


def _estimate(changes: Sequence[Switched]) -> Estimate:
    """The mean over trials."""
    value = math.fsum(change.value for change in changes) / len(changes)
    error = math.sqrt(math.fsum(change.error**2 for change in changes)) / len(changes)
    half = t_quantile((1 + CONFIDENCE) / 2, sum(change.freedom for change in changes)) * error
    ends = math.exp(value - half), math.exp(value + half)
    return Estimate(value=math.exp(value), low=ends[0], high=ends[1], unit="ratio", n=len(changes), method=_METHOD)
