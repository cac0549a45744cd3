"""The timeline of a trial: what engine, monitors and runtime recorded of it, in steps of time. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from redline.findings import RULES, warm_up
from redline.findings.courses import ticks
from redline.lazily import dataclass
from redline.model import Cell, Finding, Grade, Histogram, HistogramTable, Interval, Recording, Series, Traffic
from redline.model.hdr import SLOTS, highest_of
from redline.model.timeline import ROWS_PER_DECADE, HeatColumn, TimedSteps, TimelineEvent, TrialTimeline
from redline.model.traffic import TICK_NS
from redline.stats import Trial, enough_beyond
from redline.stats.series import median

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

Edges = NDArray[np.int64]
"""Ends of steps in nanoseconds since the load began, ascending."""


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
    edges = np.array([merged[0].start_ns, *(step.end_ns for step in merged)])
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
        ends_s=float(edges[-1]) / 1e9,
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
        return cls(
            start_ns=parts[0].start_ns,
            end_ns=parts[-1].end_ns,
            due=sum(part.counts.due for part in parts),
            completed=sum(part.counts.completed for part in parts),
            errors=sum(part.counts.outcomes.errors for part in parts),
            engine_cpu_ns=sum(part.engine_cpu_ns for part in parts),
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
    rates = {
        "offered": [step.due for step in steps],
        "answered": [step.completed for step in steps],
        "errors": [step.errors for step in steps],
    }
    values: dict[str, tuple[float | None, ...]] = {
        name: tuple(count / lasts for count, lasts in zip(counts, seconds, strict=True))
        for name, counts in rates.items()
    }
    values |= _times(table)
    values["engine"] = tuple(step.engine_cpu_ns / step.lasts_ns for step in steps)
    return TimedSteps(edges_s=_seconds(edges), values={name: row for name, row in values.items() if _is_known(row)})


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


def _times(table: HistogramTable) -> dict[str, tuple[float | None, ...]]:
    """Percentiles and the maximum by step, as far as it has enough requests."""
    counts = table.counts.tolist()
    columns = table.quantiles_ns((*_QUANTILES.values(), 1.0)).T.tolist()
    of_all = {**_QUANTILES, "max": 0.0}
    return {
        name: tuple(float(ns) if enough_beyond(count, q) else None for count, ns in zip(counts, column, strict=True))
        for (name, q), column in zip(of_all.items(), columns, strict=True)
    }


def _columns(table: HistogramTable) -> Iterator[HeatColumn]:
    """The response times of every step."""
    for slots, counts in table.filled():
        rows = _rows()[slots]
        if not len(rows):
            yield HeatColumn()
            continue
        filled = np.bincount(rows - rows[0], weights=counts).astype(np.int64)
        yield HeatColumn(first=int(rows[0]), counts=tuple(filled.tolist()))


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
        edges = self._coarse([times for parts in known.values() for _, times in parts])
        values = {}
        for name, parts in known.items():
            first, *others = (_cores(series, times, edges) for series, times in parts)
            values[name] = _with_gaps(sum(others, first))
        return _as_steps(edges, values)

    def gauges(self, wanted: Mapping[str, str]) -> TimedSteps:
        """The largest values of gauges of the server; None where none was sampled."""
        found = {name: self._all(gauge, ("server",)) for name, gauge in wanted.items()}
        known = {name: parts[0] for name, parts in found.items() if parts}
        edges = self._coarse([times for _, times in known.values()])
        return _as_steps(edges, {name: _with_gaps(_most(*of, edges)) for name, of in known.items()})

    def _all(self, name: str, subjects: Sequence[str]) -> list[tuple[Series, Edges]]:
        """The series of these subjects with their times since the load began; empty unless all of them are known."""
        if self._recording.hosts:
            return []
        found = [self._recording.find(name, subject) for subject in subjects]  # type: ignore[arg-type]
        series = [one for one in found if one is not None and len(one.values) > 1]
        if len(series) < len(found):
            return []
        return [(one, np.array(one.times_unix_ns, dtype=np.int64) - self._epoch) for one in series]

    def _coarse(self, sampled: Sequence[Edges]) -> Edges:
        """The edges of the load's steps, without as many as leave too few of the times of samples in a step."""
        periods = [median((times[1:] - times[:-1]).astype(np.float64)) for times in sampled]
        least = _PER_STEP * max(periods, default=0.0)
        first, *between, last = self._edges.tolist()
        kept = [first]
        for edge in between:
            if edge == self._measured_ns and edge - kept[-1] < least and len(kept) > 1:
                kept[-1] = edge
            elif edge - kept[-1] >= least or edge == self._measured_ns:
                kept.append(edge)
        if len(kept) > 1 and last - kept[-1] < least and kept[-1] != self._measured_ns:
            kept.pop()
        return np.array([*kept, last])


Values = NDArray[np.float64]


def _cores(series: Series, times: Edges, edges: Edges) -> Values:
    """The mean increase over each step, from the samples within it; NaN if they span too little of it."""
    values = np.asarray(series.values)
    first, past = np.searchsorted(times, edges[:-1], "left"), np.searchsorted(times, edges[1:], "right")
    enough = past - first >= 2
    low, high = np.where(enough, first, 0), np.where(enough, past - 1, 1)
    spans = (times[high] - times[low]).astype(np.float64)
    enough &= spans >= _SPANNED * np.diff(edges)
    with np.errstate(divide="ignore", invalid="ignore"):
        cores: Values = np.where(enough, (values[high] - values[low]) / spans, np.nan)
    return cores


def _most(series: Series, times: Edges, edges: Edges) -> Values:
    first, past = np.searchsorted(times, edges[:-1], "left"), np.searchsorted(times, edges[1:], "left")
    within = zip(first.tolist(), past.tolist(), strict=True)
    return np.array([max(series.values[a:b]) if a < b else math.nan for a, b in within])


def _with_gaps(values: Values) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(value) else value for value in np.asarray(values).tolist())


def _as_steps(edges: Edges, values: Mapping[str, tuple[float | None, ...]]) -> TimedSteps:
    known = {name: row for name, row in values.items() if _is_known(row)}
    return TimedSteps(edges_s=_seconds(edges) if known else (), values=known)


def _is_known(row: Iterable[float | None]) -> bool:
    return any(value is not None for value in row)


def _seconds(edges: Edges) -> tuple[float, ...]:
    return tuple((edges / 1e9).tolist())


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
