"""Judge a run's recordings by cell: which trials are usable, and what is doubtful."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

from redline.analysis.bounds import Times, bound_by, bound_of_gap, load_bounds
from redline.analysis.impossible import IMPOSSIBLE, holds_what_cannot_be
from redline.analysis.memory import memory_report
from redline.analysis.timelines import Detail, detail_for, trial_timeline
from redline.analysis.watched import watched_series
from redline.findings import (
    Touch,
    Touched,
    at_each_time,
    ends_early,
    is_valid,
    judge_cell,
    judge_trial,
    left_by_all,
    servers_doing,
    touched_by,
    until_cut,
    usable,
    warm_up,
)
from redline.findings.machine import engine_share, server_share
from redline.findings.two_modes import gaps_of
from redline.model import (
    Bound,
    Cell,
    Estimate,
    Finding,
    Grade,
    Histogram,
    MemoryReport,
    Metric,
    Moment,
    Numbers,
    PlannedTrial,
    Recording,
    Run,
    Traffic,
    TrialReport,
    WatchedSeries,
    numbers_of,
)
from redline.model.timeline import TrialTimeline
from redline.stats import QUANTILE_OF, Sample, Trial, TrialNumbers, enough_beyond, merged_of, sample_of
from redline.stats.estimate import estimate
from redline.stats.gaps import Gap
from redline.stats.samples import Merged
from redline.stats.trials import MeasuredTraffic


@dataclass(frozen=True)
class TrialResult:
    """The numbers of a trial, its findings, and its part of the report, without the recording.

    `server_share` is the used share of the server's cores, and `engine_share` that of the engine's time; None if not
    known.
    """

    numbers: TrialNumbers
    findings: tuple[Finding, ...]
    touched: Touched
    report: TrialReport
    timeline: tuple[Moment, ...]
    server_share: float | None
    engine_share: float | None
    setup_ns: int

    @property
    def used(self) -> bool:
        """Whether the trial counts for the cell's numbers."""
        return self.report.used

    def touch(self, metric: Metric) -> Touch | None:
        """What its invalid findings leave of a metric; None if that is known."""
        return _touch(self.touched, self.numbers.traffic, metric)

    def release(self) -> None:
        """Free its decoded histograms."""
        if self.numbers.traffic:
            self.numbers.traffic.compress()


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
    _samples: dict[Metric, Sample] = field(default_factory=dict, compare=False, repr=False)
    _merged: dict[tuple[int, ...], Merged] = field(default_factory=dict, compare=False, repr=False)
    _bounds: dict[Metric, Bound | None] = field(default_factory=dict, compare=False, repr=False)
    _reaches: dict[Metric, tuple[float, float] | None] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def id(self) -> str:
        """The id of the cell: a hash of its content."""
        return self.cell.id

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

    def having(self, metric: Metric) -> list[TrialNumbers]:
        """The trials that have the metric, and on which it rests: of a valid cell those used, else enough others."""
        if metric in self.gaps:
            return []
        if self.valid:
            return [trial for trial in self.used if trial.has_metric(metric)]
        known = [trial.numbers for trial in self.whole if trial.touch(metric) is None]
        return [trial for trial in known if trial.has_metric(metric)] if is_valid(len(self.whole), len(known)) else []

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
        made = [trial.traffic.response for trial in self.resting if trial.traffic is not None]
        return gaps_of(Histogram.merged(made)) if made else {}

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
        """A bound by all whole trials, if all of them are known or bounded from the same side."""
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
            if numbers_of(metric) == "response times":
                places = tuple(trial.position for trial in trials)
                shared = self._merged[places] = self._merged.get(places) or merged_of(trials)
            self._samples[metric] = sample_of(trials, metric, shared)
        return self._samples[metric]

    def estimate(self, metric: Metric) -> Estimate:
        """The estimate over these trials."""
        return estimate(self.sample(metric), metric)

    def level(self, metric: Metric) -> Estimate | None:
        """The estimate; None unless it is known, with enough requests for a percentile."""
        trials = self.having(metric)
        requests = sum(trial.traffic.counts.due for trial in trials if trial.traffic)
        return self.estimate(metric) if trials and not too_few_for(metric, requests) else None

    def release(self) -> None:
        """Free its decoded histograms, which are large; values computed from them stay."""
        for merged in self._merged.values():
            merged.release()
        for trial in self.trials:
            trial.release()


def too_few_for(metric: Metric, requests: int) -> str:
    """`99 requests are too few for p99`; empty where there are enough."""
    q = QUANTILE_OF.get(metric)
    return "" if q is None or enough_beyond(requests, q) else f"{requests:,} requests are too few for {metric}"


def judge_run(run: Run) -> dict[str, CellResult]:
    """Every cell of the plan by its id, in the plan's order, including cells without recordings."""
    results = dict(cell_results(run))
    return {cell_id: results[cell_id] for cell_id in run.manifest.plan.cells}


def cell_results(run: Run, *, timed: bool = False) -> Iterator[tuple[str, CellResult]]:
    """Every cell of the plan with its id, ceilings first, including cells without recordings; if `timed`, timelines.

    Only one cell's recordings are in memory at a time, since a large run does not fit. A cell's decoded histograms are
    freed when the next cell is requested, so take its estimates before.
    """
    plan = run.manifest.plan
    planned = Counter(step.cell_id for step in run.wanted if isinstance(step, PlannedTrial))
    places = run.by_cell()
    ceilings: dict[tuple[str, str], float] = {}
    detail = detail_for(len(run.recordings), len(plan.cells)) if timed else Detail()
    for cell_id, cell in sorted(plan.cells.items(), key=lambda item: item[1].role != "ceiling"):
        trials = [_trial_of(run.recordings[place]) for place in places[cell_id]]
        key = cell.scenario.name, cell.load.name
        result = _judge_cell(cell, trials, planned[cell_id], ceilings.get(key), detail)
        rate = _rate_per_s(result)
        if cell.role == "ceiling" and rate:
            ceilings[key] = rate
        result.reach(cell.load.primary_metric)  # while its histograms are decoded
        yield cell_id, result
        result.release()


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
                    _, trial = _judge_trial(cell, _trial_of(run.recordings[place]))
                    self._trials[positions[place]] = trial
                    trial.release()
            trials = tuple(self._trials[positions[place]] for place in places[cell_id])
            results[cell_id] = CellResult(
                cell=cell,
                planned=len(trials),
                trials=trials,
                own_findings=(),
                valid=is_valid(len(trials), sum(trial.used for trial in trials)),
            )
        return results


def _judge_cell(
    cell: Cell, trials: list[Trial], planned: int, ceiling_per_s: float | None, detail: Detail
) -> CellResult:
    judged = [_judge_trial(cell, trial) for trial in trials]
    trials, results = [trial for trial, _ in judged], tuple(result for _, result in judged)
    used = [trial for trial, own in zip(trials, results, strict=True) if own.used]
    result = CellResult(
        cell=cell,
        planned=planned,
        trials=results,
        own_findings=judge_cell(cell, used, planned=planned, ceiling_per_s=ceiling_per_s),
        valid=is_valid(len(results), len(used)),
        timelines=tuple(_timelines(cell, trials, results, detail)),
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


def _trial_of(recording: Recording) -> Trial:
    """The trial; a failed one, which says so, if its distributions cannot be decoded."""
    try:
        return Trial(recording)
    except IMPOSSIBLE as error:
        return _unusable(recording, error)


def _unusable(recording: Recording, error: Exception) -> Trial:
    return Trial(recording.unusable(f"the recording of trial {recording.position} {holds_what_cannot_be(error)}"))


def _judge_trial(cell: Cell, trial: Trial) -> tuple[Trial, TrialResult]:
    """The trial and its result; where its recording holds what cannot be, a failed trial, which says so."""
    try:
        return trial, _judged(cell, trial)
    except IMPOSSIBLE as error:
        unusable = _unusable(trial.recording, error)
        return unusable, _judged(cell, unusable)


def _judged(cell: Cell, trial: Trial) -> TrialResult:
    findings, recording, traffic = judge_trial(cell, trial), trial.recording, trial.traffic
    failure, numbers = recording.failure, trial.numbers
    used, lasted = usable(recording, findings), traffic is not None and traffic.seconds > 0
    touched, ended = touched_by(cell, findings), ends_early(findings)
    own = touched_by(cell, until_cut(findings)) if ended else touched
    in_time = touched_by(cell, at_each_time(findings))
    known = {metric: value for metric, value in _by_trial(trial).items() if _touch(own, traffic, metric) is None}
    p50, p99 = known.get(Metric.P50), known.get(Metric.P99)
    return TrialResult(
        numbers=numbers,
        findings=findings,
        touched=touched,
        report=TrialReport(
            position=recording.position,
            round=recording.round,
            used=used,
            ended_early=ended,
            rate_per_s=known.get(Metric.THROUGHPUT),
            p50_ns=None if p50 is None else int(p50),
            p99_ns=None if p99 is None else int(p99),
            cpu_per_request_ns=known.get(Metric.CPU_PER_REQUEST),
            bounds=_bounds_of(traffic, own, findings),
            seconds=traffic.seconds if traffic and ended else None,
            outcomes=traffic.counts.outcomes if traffic and ended else None,
            warm_up=warm_up(cell, trial),
            failures=traffic.failures if traffic else (),
            aborted_by=traffic.aborted_by if traffic else "",
            failure=f"{failure.stage}: {failure.message}" if failure else "",
            log_tail=failure.log_tail if failure else "",
        ),
        timeline=() if "throughput" in in_time else tuple(_moments(trial, timed="response times" not in in_time)),
        server_share=server_share(trial) if lasted else None,
        engine_share=engine_share(trial, traffic) if traffic and lasted else None,
        setup_ns=recording.setup_ns,
    )


def _touch(touched: Touched, traffic: MeasuredTraffic | Traffic | None, metric: Metric) -> Touch | None:
    """What findings leave of a metric of a trial; None if it is known."""
    touch, is_time = touched.get(numbers_of(metric)), numbers_of(metric) == "response times"
    if touch is None or traffic is None or not is_time:
        return touch
    return Times.of([traffic]).left_at(QUANTILE_OF.get(metric), touch)


def _by_trial(trial: Trial) -> dict[Metric, float]:
    """The numbers of a trial that reports have of every trial."""
    traffic, made = trial.traffic, dict[Metric, float]()
    if traffic and traffic.counts.completed:
        made[Metric.THROUGHPUT] = traffic.rate_per_s
    if traffic and traffic.response.count:
        made[Metric.P50], made[Metric.P99] = traffic.response.quantiles_ns((0.5, 0.99))
    if trial.cpu_per_request_ns is not None:
        made[Metric.CPU_PER_REQUEST] = trial.cpu_per_request_ns
    return made


def _bounds_of(traffic: Traffic | None, touched: Touched, findings: Sequence[Finding]) -> dict[Metric, Bound]:
    """What is known in place of the numbers of a trial that its findings hide."""
    if traffic is None:
        return {}
    known = load_bounds(touched, Times.of([traffic], findings), traffic.rate_per_s, 0.0)
    if touch := touched.get("CPU and memory"):
        known[Metric.CPU_PER_REQUEST] = bound_by(touch, Metric.CPU_PER_REQUEST)
    by_trial = (Metric.THROUGHPUT, Metric.P50, Metric.P99, Metric.CPU_PER_REQUEST)
    return {metric: known[metric] for metric in by_trial if metric in known}


def _moments(trial: Trial, *, timed: bool) -> Iterator[Moment]:
    """Every interval with traffic, at its middle; unless it is `timed`, without response times."""
    for interval, (p50, _, p99) in zip(trial.intervals, trial.interval_quantiles_ns, strict=True):
        if interval.lasts_ns > 0 and (interval.counts.completed or p99):
            yield Moment(
                position=trial.recording.position,
                phase=interval.phase,
                at_s=(interval.start_ns + interval.lasts_ns / 2) / 1e9,
                rate_per_s=interval.counts.completed / interval.lasts_ns * 1e9,
                p50_ns=p50 if timed else 0,
                p99_ns=p99 if timed else 0,
            )


def _rate_per_s(cell: CellResult) -> float | None:
    """Right answers per second over its used trials."""
    traffics = [trial.traffic for trial in cell.used if trial.traffic]
    seconds = sum(traffic.seconds for traffic in traffics)
    return sum(traffic.in_window for traffic in traffics) / seconds if seconds > 0 else None
