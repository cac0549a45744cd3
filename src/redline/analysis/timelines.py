"""The timeline of a trial: what engine, monitors and runtime recorded of it, in steps of time. Pure."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from redline.findings import RULES, warm_up
from redline.findings.courses import ticks
from redline.lazily import dataclass
from redline.model import Cell, Finding, Grade, Histogram, HistogramTable, Interval, Recording, Series, Traffic
from redline.model.hdr import SLOTS, highest_of
from redline.model.timeline import ROWS_PER_DECADE, HeatColumn, TimedSteps, TimelineEvent, TrialTimeline
from redline.model.traffic import TICK_NS
from redline.stats import Trial
from redline.stats.series import median
from redline.stats.trials import enough

MOST_STEPS = 240
"""The most steps of a trial: more than that are merged. A plot is about as many points wide on a phone."""
FEWEST_STEPS = 12
"""No study is so large that a trial has fewer, if it has as many intervals."""
MOST_STEPS_OF_RUN = 12_000
"""About the most steps of all trials of a run: as many as a page can carry."""

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
_PER_STEP = 3
"""Samples that a step of a monitor's values has at least, at the usual distance between samples."""
_SPANNED = 0.5
"""Share of a step that the samples in it have to span, if a counter's increase is to stand for all of it."""
_MOST_EVENTS = 60
_MOST_TICKS = 1200
"""The most steps of the rate by ticks: those of a minute as they are, as a short stall shows in no wider step."""

Edges: TypeAlias = Sequence[int]
"""Ends of steps in nanoseconds since the load began, ascending."""
Row: TypeAlias = tuple[float | None, ...]


@dataclass(frozen=True)
class Detail:
    """How many steps a trial gets, and whether only the middle trial of each cell gets a timeline.

    Without steps there are no courses and no curves. `is_load`: there is a single trial, of a load by itself.
    """

    steps: int = 0
    middle_only: bool = False
    is_load: bool = False


def detail_for(trials: int, cells: int) -> Detail:
    """The detail of a run with so many trials in so many cells, so that its page stays small."""
    per_trial = MOST_STEPS_OF_RUN // max(trials, 1)
    if per_trial >= 2 * FEWEST_STEPS:
        return Detail(min(MOST_STEPS, per_trial))
    return Detail(max(FEWEST_STEPS, min(MOST_STEPS, MOST_STEPS_OF_RUN // max(cells, 1))), middle_only=True)


def trial_timeline(cell: Cell, trial: Trial, findings: Sequence[Finding], steps: int) -> TrialTimeline | None:
    """The timeline of a trial in at most about so many steps; None if it has no intervals."""
    recording, traffic = trial.recording, trial.traffic
    intervals = [interval for interval in trial.intervals if interval.phase != "drain" and interval.lasts_ns > 0]
    if traffic is None or not intervals:
        return None
    merged = _merged(intervals, steps)
    responses = [step.response for step in merged]
    table = trial.responses if len(merged) == len(trial.intervals) else HistogramTable(responses)
    edges = [merged[0].start_ns, *(step.end_ns for step in merged)]
    sampled = _MonitorSteps(recording, traffic, edges)
    facts = recording.runtime
    cpu = sampled.steps(
        {
            "server": ("cpu_ns", tuple(recording.parts)),
            "collector": ("collector_cpu_ns", ("server",)),
            "compiler": ("compiler_cpu_ns", ("server",)),
        }
    )
    taken = sampled.steps(
        {
            "steal": ("steal_ns", ("machine",)),
            "busy": ("busy_ns", ("machine",)),
            "throttled": ("throttled_ns", ("server",)),
        }
    )
    epoch = traffic.epoch_unix_ns

    def since(unix_ns: int) -> float:
        return (unix_ns - epoch) / 1e9

    own = facts if not recording.hosts else None
    return TrialTimeline(
        position=recording.position,
        intervals=len(intervals),
        measured_from_s=traffic.measure_start_ns / 1e9,
        ends_s=edges[-1] / 1e9,
        load=_load(merged, table, edges),
        ticks=_ticks(traffic) if any(finding.kind == "stalled" for finding in findings) else TimedSteps.none(),
        heat=tuple(_columns(table)),
        cpu=cpu,
        memory=sampled.gauges({"resident": "rss_bytes", "heap": "heap_capacity_bytes"}),
        taken=taken,
        live=tuple((since(at), size) for at, size in zip(own.live_unix_ns, own.live_bytes, strict=False))
        if own
        else (),
        pauses=_longest(
            TimelineEvent(at_s=since(pause.start_unix_ns), lasts_ns=pause.duration_ns, name=pause.cause)
            for pause in (own.longest_pauses if own else ())
        ),
        collections=_longest(
            TimelineEvent(at_s=since(made.start_unix_ns), lasts_ns=made.duration_ns, name=made.kind)
            for made in (own.longest_collections if own else ())
        ),
        pauses_in_all=own.pauses.count if own else 0,
        collections_in_all=sum(collected.count for collected in own.collections) if own else 0,
        events=tuple(sorted(_events(cell, trial, findings, intervals, (cpu, taken)), key=lambda event: event.at_s)),
        apart=bool(recording.hosts),
    )


@dataclass(frozen=True, slots=True)
class _LoadStep:
    """A step of the load: an interval, or neighbours of a phase together."""

    start_ns: int
    end_ns: int
    due: int
    completed: int
    errors: int
    engine_cpu_ns: int
    response: Histogram

    @classmethod
    def of(cls, parts: Sequence[Interval]) -> "_LoadStep":
        """The step of these neighbours."""
        counts = [part.counts for part in parts]
        return cls(
            start_ns=parts[0].start_ns,
            end_ns=parts[-1].end_ns,
            due=sum([own.due for own in counts]),
            completed=sum([own.completed for own in counts]),
            errors=sum([own.outcomes.errors for own in counts]),
            engine_cpu_ns=sum([part.engine_cpu_ns for part in parts]),
            response=parts[0].response if len(parts) == 1 else Histogram.merged(part.response for part in parts),
        )

    @property
    def lasts_ns(self) -> int:
        """Its length."""
        return self.end_ns - self.start_ns


def _merged(intervals: Sequence[Interval], most: int) -> list[_LoadStep]:
    """Neighbours of a phase merged until there are at most about `most`: histograms are added, nothing is left out."""
    together = math.ceil(len(intervals) / max(most, 1))
    steps: list[_LoadStep] = []
    for phase in ("warmup", "measure"):
        alike = [interval for interval in intervals if interval.phase == phase]
        steps += [_LoadStep.of(alike[first : first + together]) for first in range(0, len(alike), together)]
    return steps


def _load(steps: Sequence[_LoadStep], table: HistogramTable, edges: Edges) -> TimedSteps:
    """The load by steps, whose response times are those of the table."""
    seconds = [step.lasts_ns / 1e9 for step in steps]
    values: dict[str, Row] = {
        "offered": tuple([step.due / lasts for step, lasts in zip(steps, seconds, strict=True)]),
        "answered": tuple([step.completed / lasts for step, lasts in zip(steps, seconds, strict=True)]),
        "errors": tuple([step.errors / lasts for step, lasts in zip(steps, seconds, strict=True)]),
        **_times(table),
        "engine": tuple([step.engine_cpu_ns / step.lasts_ns for step in steps]),
    }
    return _as_steps(edges, values)


def _ticks(traffic: Traffic) -> TimedSteps:
    """The rate by ticks of the measurement; none if they are not all known."""
    known = sum(len(interval.ticks) for interval in traffic.intervals)
    fine = ticks(traffic, max(math.ceil(known / _MOST_TICKS), 1), TICK_NS)
    if fine is None or not fine.requests:
        return TimedSteps.none()
    since_s = traffic.measure_start_ns / 1e9
    edges_s = tuple(round(since_s + at_s, 6) for at_s in (*fine.starts_s, fine.ends_s[-1]))
    rates = (
        count / (end_s - start_s)
        for count, start_s, end_s in zip(fine.requests, fine.starts_s, fine.ends_s, strict=True)
    )
    return TimedSteps(edges_s=edges_s, values={"answered": tuple(rates)})


def _times(table: HistogramTable) -> dict[str, Row]:
    """Percentiles and the maximum by step, as far as it has enough requests."""
    counts = table.counts.tolist()
    columns = table.quantiles_ns((*_QUANTILES.values(), 1.0)).T.astype(np.float64).tolist()
    return {
        name: tuple([ns if count >= least else None for count, ns in zip(counts, column, strict=True)])
        for (name, least), column in zip(_least_counts().items(), columns, strict=True)
    }


@cache
def _least_counts() -> dict[str, int]:
    """The fewest requests of each percentile, and of the maximum."""
    return {name: enough(q) for name, q in _QUANTILES.items()} | {"max": 1}


def _columns(table: HistogramTable) -> Iterator[HeatColumn]:
    """The response times of every step."""
    rows_of = _rows()
    for slots, counts in table.filled():
        if not len(slots):
            yield HeatColumn()
            continue
        rows = rows_of[slots]
        first = int(rows[0])
        filled = np.bincount(rows - first, weights=counts).astype(np.int64)
        yield HeatColumn(first=first, counts=tuple(filled.tolist()))


@cache
def _rows() -> NDArray[np.int64]:
    """The row of the heat map by the slot of a time."""
    values = highest_of(np.arange(SLOTS))
    return np.floor(np.log10(np.maximum(values, 1)) * ROWS_PER_DECADE + 1e-9).astype(np.int64)


class _MonitorSteps:
    """What the monitors of a trial sampled, in steps that have enough samples; nothing of a host with another clock."""

    def __init__(self, recording: Recording, traffic: Traffic, edges: Edges) -> None:
        self._recording, self._epoch, self._edges = recording, traffic.epoch_unix_ns, edges
        self._measured_ns = traffic.measure_start_ns

    def steps(self, wanted: Mapping[str, tuple[str, Sequence[str]]]) -> TimedSteps:
        """Increases of counters of time, in cores: sums over the subjects, known if that of every subject is."""
        found = {name: self._all(counter, subjects) for name, (counter, subjects) in wanted.items()}
        known = {name: parts for name, parts in found.items() if parts}
        edges = self._coarse([series for parts in known.values() for series in parts])
        values = {}
        for name, parts in known.items():
            cores = [[*_cores(series, self._epoch, edges)] for series in parts]
            values[name] = tuple(
                [None if None in own else sum(filter(None, own), 0.0) for own in zip(*cores, strict=True)]
            )
        return _as_steps(edges, values)

    def gauges(self, wanted: Mapping[str, str]) -> TimedSteps:
        """The largest values of gauges of the server; None where none was sampled."""
        found = {name: self._all(gauge, ("server",)) for name, gauge in wanted.items()}
        known = {name: parts[0] for name, parts in found.items() if parts}
        edges = self._coarse([*known.values()])
        return _as_steps(edges, {name: tuple(_most(series, self._epoch, edges)) for name, series in known.items()})

    def _all(self, name: str, subjects: Sequence[str]) -> list[Series]:
        """The series of these subjects; empty unless all of them are known."""
        if self._recording.hosts:
            return []
        found = [self._recording.find(name, subject) for subject in subjects]  # type: ignore[arg-type]
        series = [one for one in found if one is not None and len(one.values) > 1]
        return series if len(series) == len(found) else []

    def _coarse(self, sampled: Iterable[Series]) -> Edges:
        """The edges of the load's steps, without as many as leave too few of the times of samples in a step."""
        times = {series.times_unix_ns for series in sampled}  # those of a monitor are mostly the same
        periods = [median(np.diff(np.array(own, dtype=np.int64)).astype(np.float64)) for own in times]
        least = _PER_STEP * max(periods, default=0.0)
        first, *between, last = self._edges
        kept = [first]
        for edge in between:
            if edge == self._measured_ns and edge - kept[-1] < least and len(kept) > 1:
                kept[-1] = edge
            elif edge - kept[-1] >= least or edge == self._measured_ns:
                kept.append(edge)
        if len(kept) > 1 and last - kept[-1] < least and kept[-1] != self._measured_ns:
            kept.pop()
        return [*kept, last]


def _cores(series: Series, epoch_unix_ns: int, edges: Edges) -> Iterator[float | None]:
    """The mean increase over each step, from the samples within it; None if they span too little of it."""
    times, values = series.times_unix_ns, series.values
    for start, end in pairwise([epoch_unix_ns + edge for edge in edges]):
        first, last = bisect_left(times, start), bisect_right(times, end) - 1
        span = times[last] - times[first] if last > first else 0
        yield (values[last] - values[first]) / span if span > 0 and span >= _SPANNED * (end - start) else None


def _most(series: Series, epoch_unix_ns: int, edges: Edges) -> Iterator[float | None]:
    """The largest value in each step; None without a sample in it."""
    ends = [bisect_left(series.times_unix_ns, epoch_unix_ns + edge) for edge in edges]
    yield from (max(series.values[first:past]) if first < past else None for first, past in pairwise(ends))


def _as_steps(edges: Edges, values: Mapping[str, Row]) -> TimedSteps:
    known = {name: row for name, row in values.items() if _is_known(row)}
    return TimedSteps(edges_s=_seconds(edges) if known else (), values=known)


def _is_known(row: Row) -> bool:
    return row.count(None) < len(row)


def _seconds(edges: Edges) -> tuple[float, ...]:
    return tuple([edge / 1e9 for edge in edges])


def _longest(events: Iterable[TimelineEvent]) -> tuple[TimelineEvent, ...]:
    longest = sorted(events, key=lambda event: -event.lasts_ns)[:_MOST_EVENTS]
    return tuple(sorted(longest, key=lambda event: event.at_s))


def _events(
    cell: Cell, trial: Trial, findings: Sequence[Finding], intervals: Sequence[Interval], sampled: Iterable[TimedSteps]
) -> Iterator[TimelineEvent]:
    """The first failures, and the stretches that findings are about; most findings are about the whole trial."""
    traffic = trial.traffic
    assert traffic is not None, "a trial without traffic has no timeline"
    for failure in traffic.failures:
        yield TimelineEvent(at_s=failure.time_ns / 1e9, name=f"first {failure.outcome.replace('_', ' ')}")
    grades = {finding.kind: finding.grade for finding in findings}
    if grade := grades.get("engine-paused"):
        paused = [(made.start_ns / 1e9, made.end_ns / 1e9) for made in intervals if made.paused_ns]
        yield from _stretches("engine-paused", grade, paused)
    for steps in sampled:
        for kind, shares in _shares(steps):
            if grade := grades.get(kind):
                limit = RULES[kind].note or 0.0
                ends = zip(pairwise(steps.edges_s), shares, strict=True)
                yield from _stretches(kind, grade, [at for at, share in ends if share is not None and share > limit])
    warmth = warm_up(cell, trial)
    if (grade := grades.get("slowing-down")) and warmth and warmth.steady_from_ns is not None:
        yield from _stretches("slowing-down", grade, [(warmth.steady_from_ns / 1e9, traffic.measure_end_ns / 1e9)])


def _shares(steps: TimedSteps) -> Iterator[tuple[str, Sequence[float | None]]]:
    """What rules grade over the whole measurement, by step: the kind of their finding, and values in its unit."""
    values = steps.values
    if "steal" in values and "busy" in values:
        pairs = zip(values["steal"], values["busy"], strict=True)
        yield "cpu-steal", [None if a is None or b is None or not a + b else a / (a + b) for a, b in pairs]
    if "throttled" in values:
        yield "throttled", values["throttled"]
    if "compiler" in values:
        yield "still-compiling", values["compiler"]


def _stretches(kind: str, grade: Grade, ends: Iterable[tuple[float, float]]) -> Iterator[TimelineEvent]:
    """A stretch for neighbouring steps."""
    start = until = None
    for low, high in ends:
        if start is not None and until is not None and low > until:
            yield _stretch(kind, grade, start, until)
            start = None
        start, until = low if start is None else start, high
    if start is not None and until is not None:
        yield _stretch(kind, grade, start, until)


def _stretch(kind: str, grade: Grade, start: float, end: float) -> TimelineEvent:
    return TimelineEvent(at_s=start, lasts_ns=round((end - start) * 1e9), name=kind, grade=grade)
