"""Judge a run's recordings by cell: which trials are usable, and what is doubtful."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from math import inf
from typing import TypeAlias

import numpy as np
from pydantic import ConfigDict

from redline.analysis.bounds import Times, bound_by, bound_of_gap
from redline.analysis.load_facts import load_facts
from redline.analysis.memory import memory_report
from redline.analysis.timelines import Detail, trial_timeline
from redline.analysis.trials import TrialResult, judged_trial
from redline.analysis.watched import watched_series
from redline.findings import (
    is_valid,
    judge_cell,
    left_by_all,
    servers_doing,
)
from redline.findings.two_modes import gaps_of
from redline.lazily import dataclass
from redline.model import (
    RESPONSE_TIMES,
    Bound,
    Cell,
    Estimate,
    Finding,
    Grade,
    Histogram,
    MemoryReport,
    Metric,
    Numbers,
    PlannedTrial,
    Recording,
    Run,
    WatchedSeries,
    numbers_of,
)
from redline.model.load_result import LoadFacts
from redline.model.timeline import TrialTimeline
from redline.stats import QUANTILE_OF, Sample, Trial, TrialNumbers, enough_beyond, merged_of, sample_of
from redline.stats.estimate import estimate
from redline.stats.gaps import Gap
from redline.stats.samples import Merged, Quantiles
from redline.stats.trials import MESSAGE_QUANTILES


@dataclass(frozen=True)
class CellResult:
    """A cell, its trials so far, and the findings about the cell as a whole."""

    cell: Cell
    planned: int
    trials: tuple[TrialResult, ...]
    own_findings: tuple[Finding, ...]
    valid: bool
    memory: MemoryReport | None = None
    watched: tuple[WatchedSeries, ...] = ()
    timelines: tuple[TrialTimeline, ...] = ()
    load_facts: LoadFacts | None = None
    _having: dict[Metric, tuple[TrialNumbers, ...]] = field(default_factory=dict, compare=False, repr=False)
    _samples: dict[Metric, Sample] = field(default_factory=dict, compare=False, repr=False)
    _estimates: dict[Metric, Estimate] = field(default_factory=dict, compare=False, repr=False)
    _merged: dict[tuple[int, ...], Merged] = field(default_factory=dict, compare=False, repr=False)
    _responses: dict[tuple[int, ...], Histogram] = field(default_factory=dict, compare=False, repr=False)
    _bounds: dict[Metric, Bound | None] = field(default_factory=dict, compare=False, repr=False)
    _reaches: dict[Metric, tuple[float, float] | None] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def id(self) -> str:
        """The id of the cell: a hash of its content."""
        return self.cell.id

    def know_id(self, cell_id: str) -> None:
        """Take over the id of the cell, whose hash takes long."""
        self.__dict__["id"] = cell_id

    @cached_property
    def used(self) -> tuple[TrialNumbers, ...]:
        """The trials that count for its numbers, in the run's order."""
        return tuple(trial.numbers for trial in self.trials if trial.used)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings: about its trials in the run's order, then about the cell, which often follow from them."""
        return (*(finding for trial in self.trials for finding in trial.findings), *self.own_findings)

    @property
    def why_invalid(self) -> str:
        """The first finding that makes it invalid; empty if there is none."""
        return next((finding.message for finding in self.findings if finding.grade is Grade.INVALID), "")

    @cached_property
    def blames_server(self) -> bool:
        """Whether the server lost any trial: what is known of it is not compared with servers that lost none."""
        return any(servers_doing(trial.findings, trial.numbers.failure) for trial in self.trials)

    @cached_property
    def whole(self) -> tuple[TrialResult, ...]:
        """The trials that were measured to their end; all of them if none was."""
        return tuple(trial for trial in self.trials if not trial.report.ended_early) or self.trials

    @property
    def resting(self) -> tuple[TrialNumbers, ...]:
        """The trials of which anything may be shown: of a valid cell those used, else those measured to their end."""
        return self.used if self.valid else tuple(trial.numbers for trial in self.whole)

    @property
    def comparable(self) -> bool:
        """Whether what is known of it is compared: not if it is invalid because the server lost trials."""
        return self.valid or not self.blames_server

    def leaving(self, numbers: Numbers) -> tuple[TrialNumbers, ...]:
        """The trials on which these numbers rest; those of an invalid cell, if enough of its trials leave them."""
        if self.valid:
            return self.used
        known = tuple(trial.numbers for trial in self.whole if numbers not in trial.touched)
        return known if is_valid(len(self.whole), len(known)) else ()

    def having(self, metric: Metric) -> tuple[TrialNumbers, ...]:
        """The trials that have the metric, and on which it rests: of a valid cell those used, else enough others."""
        if metric not in self._having:
            self._having[metric] = tuple(self._that_have(metric))
        return self._having[metric]

    def _that_have(self, metric: Metric) -> Sequence[TrialNumbers]:
        if metric in self.gaps:
            return ()
        if self.valid:
            return [trial for trial in self.used if trial.has_metric(metric)]
        left = [trial.numbers for trial in self.whole if trial.touch(metric) is None]
        known = [trial for trial in left if trial.has_metric(metric)]
        return known if is_valid(len(self.whole), len(known)) else []

    def bound(self, metric: Metric) -> Bound | None:
        """What is known in place of a metric of an invalid cell; None if the metric is known, or was not measured.

        Also of any percentile that lies in a gap of the response times.
        """
        if metric not in self._bounds:
            is_known = metric not in self.gaps and (self.valid or bool(self.having(metric)))
            self._bounds[metric] = None if is_known else self._bound(metric)
        return self._bounds[metric]

    @cached_property
    def gaps(self) -> Mapping[Metric, Gap]:
        """The percentiles that lie in a gap of the response times of all trials that it rests on."""
        resting = [trial for trial in self.resting if trial.traffic is not None]
        return gaps_of(self.response_of(resting)) if resting else {}

    def response_of(self, trials: Sequence[TrialNumbers]) -> Histogram:
        """The response times of these trials together."""
        made = {trial.position: trial.traffic.response for trial in trials if trial.traffic is not None}
        if (places := tuple(made)) not in self._responses:
            self._responses[places] = Histogram.merged(made.values())
        return self._responses[places]

    def reach(self, metric: Metric) -> tuple[float, float] | None:
        """Where a metric lies that is only bounded: up to the end of what was measured, with its interval, or from it.

        None without a bound from one side, or without an interval.
        """
        if metric not in self._reaches:
            self._reaches[metric] = self._reach(metric)
        return self._reaches[metric]

    def _reach(self, metric: Metric) -> tuple[float, float] | None:
        left, bound = left_by_all([touch for trial in self.whole if (touch := trial.touch(metric))]), self.bound(metric)
        if left is None or bound is None or not bound.says_something:
            return None
        measured = estimate(sample_of([trial.numbers for trial in self.whole], metric), metric).interval
        if measured is None:
            return None
        return (0.0, measured[1]) if left.leaves == "at most" else (measured[0], inf)

    def _bound(self, metric: Metric) -> Bound | None:
        """A bound by all whole trials, if all of them are known or bounded from the same side; of messages, none."""
        if metric in MESSAGE_QUANTILES:
            return None
        left = left_by_all([touch for trial in self.whole if (touch := trial.touch(metric))])
        if left is None:
            return bound_of_gap(metric, self.gaps[metric]) if metric in self.gaps else None
        made = [trial.numbers for trial in self.whole]
        traffics = [trial.traffic for trial in made if trial.traffic is not None and trial.has_metric(metric)]
        if left.leaves == "unknown" or len(traffics) < len(made):
            return bound_by(left, metric)
        if numbers_of(metric) == "response times":
            return Times.of(traffics, self.findings).bound(metric, left)
        value = sample_of(made, metric).value
        return bound_by(left, metric, value) if left.leaves == "at least" else bound_by(left, metric, None, value)

    @property
    def perturbed(self) -> bool:
        """Whether a monitor disturbed any used trial, of an invalid cell any trial, which rules out comparisons."""
        return any(trial.perturbed for trial in self.resting)

    def sample(self, metric: Metric) -> Sample:
        """The sample of all trials that have the metric, one or more; computed once."""
        if metric not in self._samples:
            trials = self.having(metric)
            shared = None
            if numbers_of(metric) == "response times" and metric not in MESSAGE_QUANTILES:
                places = tuple(trial.position for trial in trials)
                shared = self._merged[places] = self._merged.get(places) or merged_of(trials)
            self._samples[metric] = sample_of(trials, metric, shared)
        return self._samples[metric]

    def estimate(self, metric: Metric) -> Estimate:
        """The estimate over these trials; computed once."""
        if metric not in self._estimates:
            sample = self.sample(metric)
            if isinstance(sample, Quantiles) and sample.q in sample.merged.samples:
                Quantiles.several(sample.merged, [*QUANTILE_OF.values()])
            self._estimates[metric] = estimate(sample, metric)
        return self._estimates[metric]

    def level(self, metric: Metric) -> Estimate | None:
        """The estimate; None unless it is known, with enough requests for a percentile."""
        trials = self.having(metric)
        requests = sum(trial.traffic.counts.due for trial in trials if trial.traffic)
        return self.estimate(metric) if trials and not too_few_for(metric, requests) else None

    def compute_ahead(self) -> None:
        """Compute what comparisons read of decoded histograms, while they are decoded."""
        self.reach(self.cell.load.primary_metric)
        for metric in RESPONSE_TIMES:
            if self.having(metric):
                _ = self.sample(metric).by_trial

    @property
    def known(self) -> "Computed":
        """What was computed of it so far."""
        made = [trial.numbers.traffic for trial in self.trials]
        quantiles = {metric: own for metric, own in self._samples.items() if isinstance(own, Quantiles)}
        main = self.cell.load.primary_metric
        scores = vars(quantiles[main]).get("scores") if main in quantiles else None
        return Computed(
            counts=tuple(traffic.response.count if traffic else None for traffic in made),
            gaps=dict(self.gaps),
            bounds=self._bounds,
            reaches=self._reaches,
            estimates=self._estimates,
            by_trial={
                metric: tuple(sample.by_trial.tolist())
                for metric, sample in quantiles.items()
                if "by_trial" in vars(sample)
            },
            scores={} if scores is None else {main: tuple(map(tuple, scores.tolist()))},
        )

    def know(self, known: "Computed") -> None:
        """Take over what was computed before of the same trials, which is then not computed again.

        Raises ValueError for what is of other trials.
        """
        for trial, count in zip(self.trials, known.counts, strict=True):
            if trial.numbers.traffic and count is not None:
                trial.numbers.traffic.response.know_count(count)
        self.__dict__["gaps"] = known.gaps
        self._bounds.update(known.bounds)
        self._reaches.update(known.reaches)
        self._estimates.update(known.estimates)
        for metric, values in known.by_trial.items():
            self.sample(metric).by_trial = np.array(values)
        for metric, scores in known.scores.items():
            self.sample(metric).scores = np.array(scores)

    def release(self) -> None:
        """Free its decoded histograms, which are large; values computed from them stay."""
        self._responses.clear()
        for merged in self._merged.values():
            merged.release()
        for trial in self.trials:
            trial.release()


def too_few_for(metric: Metric, requests: int) -> str:
    """`99 requests are too few for p99`; empty where there are enough."""
    q = QUANTILE_OF.get(metric)
    return "" if q is None or enough_beyond(requests, q) else f"{requests:,} requests are too few for {metric}"


@dataclass(frozen=True)
class Computed:
    """What was computed of a cell: the number of response times of each trial, percentiles in gaps, bounds, estimates.

    `by_trial` are the percentiles of every trial by itself, and `scores` those of the batches of the main percentile.
    """

    counts: tuple[int | None, ...]
    gaps: dict[Metric, Gap]
    bounds: dict[Metric, Bound | None]
    reaches: dict[Metric, tuple[float, float] | None]
    estimates: dict[Metric, Estimate]
    by_trial: dict[Metric, tuple[float, ...]]
    scores: dict[Metric, tuple[tuple[float, ...], ...]]

    __pydantic_config__ = ConfigDict(ser_json_inf_nan="constants")


Results: TypeAlias = Mapping[str, CellResult]
"""Judged cells by their ids."""


def judge_run(run: Run) -> dict[str, CellResult]:
    """Every cell of the plan by its id, in the plan's order, including cells without recordings."""
    plan, planned, places = run.manifest.plan, planned_trials(run), run.by_cell()
    ceilings: dict[tuple[str, str], float] = {}
    results = {}
    for cell_id, cell in sorted(plan.cells.items(), key=lambda item: item[1].role != "ceiling"):
        key = cell.scenario.name, cell.load.name
        recordings = (run.recordings[place] for place in places[cell_id])
        results[cell_id] = result = judged_cell(cell, recordings, planned[cell_id], ceilings.get(key), Detail())
        if cell.role == "ceiling" and (rate := rate_per_s(result)):
            ceilings[key] = rate
        result.compute_ahead()
        result.release()
    return {cell_id: results[cell_id] for cell_id in plan.cells}


def planned_trials(run: Run) -> Counter[str]:
    """How many trials of each cell are wanted, by its id."""
    return Counter(step.cell_id for step in run.wanted if isinstance(step, PlannedTrial))


def subjects_by_name(results: Mapping[str, CellResult]) -> dict[tuple[str, str, str], CellResult]:
    """The subjects, in their order, by the names of their server, scenario and load."""
    subjects = [cell for cell in results.values() if cell.cell.role == "subject"]
    return {
        (subject.cell.variant.slug, subject.cell.scenario.name, subject.cell.load.name): subject for subject in subjects
    }


class GrowingRun:
    """A run between its rounds: every trial is judged once, whatever is added later.

    Cells as a whole are judged only for validity, since other judgements need all trials again.
    """

    def __init__(self) -> None:
        self._trials: dict[int, TrialResult] = {}

    def judge(self, run: Run) -> dict[str, CellResult]:
        """Every cell of the plan by its id, in the plan's order, without findings about the cell itself."""
        positions, places = run.positions, run.by_cell()
        results = {}
        for cell_id, cell in run.manifest.plan.cells.items():
            for place in places[cell_id]:
                if positions[place] not in self._trials:
                    _, trial = judged_trial(cell, run.recordings[place])
                    self._trials[positions[place]] = trial
                    trial.release()
            results[cell_id] = cell_of_trials(cell, tuple(self._trials[positions[place]] for place in places[cell_id]))
        return results


def cell_of_trials(cell: Cell, trials: tuple[TrialResult, ...]) -> CellResult:
    """A cell by trials that were judged before, without findings about the cell itself."""
    valid = is_valid(len(trials), sum(trial.used for trial in trials))
    return CellResult(cell=cell, planned=len(trials), trials=trials, own_findings=(), valid=valid)


def judged_cell(
    cell: Cell, recordings: Iterable[Recording], planned: int, ceiling_per_s: float | None, detail: Detail
) -> CellResult:
    """A cell by the recordings of its trials, whose histograms stay decoded until it is released.

    `ceiling_per_s` is the rate of the ceiling in its scenario and load, if one was measured.
    """
    judged = [judged_trial(cell, recording, is_load=detail.is_load) for recording in recordings]
    trials, results = [trial for trial, _ in judged], tuple(result for _, result in judged)
    used = [trial for trial, own in zip(trials, results, strict=True) if own.used]
    result = CellResult(
        cell=cell,
        planned=planned,
        trials=results,
        own_findings=judge_cell(cell, used, planned=planned, ceiling_per_s=ceiling_per_s),
        valid=is_valid(len(results), len(used)),
        timelines=tuple(_timelines(cell, trials, results, detail)),
        load_facts=load_facts(cell, trials[0], results[0].touched) if detail.is_load and trials else None,
    )
    costing = {trial.position for trial in result.leaving("CPU and memory")}
    watched = [trial for trial in trials if not costing or trial.recording.position in costing]
    return replace(result, memory=memory_report(cell, watched), watched=watched_series(watched))


def _timelines(
    cell: Cell, trials: list[Trial], results: tuple[TrialResult, ...], detail: Detail
) -> Iterator[TrialTimeline]:
    """Those of all trials, or of the middle one by its rate."""
    if not detail.steps:
        return
    pairs = list(zip(trials, results, strict=True))
    if detail.middle_only:
        used = sorted((pair for pair in pairs if pair[1].used), key=lambda pair: pair[1].report.rate_per_s or 0.0)
        pairs = used[len(used) // 2 :][:1] or pairs[:1]
    for trial, result in pairs:
        if timeline := trial_timeline(cell, trial, result.findings, detail.steps):
            yield timeline


def rate_per_s(cell: CellResult) -> float | None:
    """Right answers per second over its used trials."""
    traffics = [trial.traffic for trial in cell.used if trial.traffic]
    seconds = sum(traffic.seconds for traffic in traffics)
    return sum(traffic.in_window for traffic in traffics) / seconds if seconds > 0 else None
