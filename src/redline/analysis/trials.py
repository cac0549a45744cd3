"""Judge a trial by its recording: its numbers, its findings, and its part of the report. Pure."""

from collections.abc import Iterator, Sequence

from redline.analysis.bounds import Times, bound_by, load_bounds
from redline.analysis.impossible import IMPOSSIBLE, holds_what_cannot_be
from redline.findings import (
    Touch,
    Touched,
    at_each_time,
    ends_early,
    judge_trial,
    touched_by,
    until_cut,
    usable,
    warm_up,
)
from redline.findings.machine import engine_share, server_share
from redline.lazily import dataclass
from redline.model import (
    Bound,
    Cell,
    Finding,
    Metric,
    Moment,
    Recording,
    Traffic,
    TrialReport,
    numbers_of,
)
from redline.stats import QUANTILE_OF, Trial, TrialNumbers, enough_beyond
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


def _trial_of(recording: Recording) -> Trial:
    """The trial; a failed one, which says so, if its distributions cannot be decoded."""
    try:
        return Trial(recording)
    except IMPOSSIBLE as error:
        return _unusable(recording, error)


def _unusable(recording: Recording, error: Exception) -> Trial:
    return Trial(recording.unusable(f"the recording of trial {recording.position} {holds_what_cannot_be(error)}"))


def judged_trial(cell: Cell, recording: Recording, *, is_load: bool = False) -> tuple[Trial, TrialResult]:
    """The trial and its result; where its recording holds what cannot be, a failed trial, which says so.

    `is_load`: it is the only trial of a load, of which all is known that was measured until a user ended it.
    """
    trial = _trial_of(recording)
    try:
        return trial, _judged(cell, trial, is_load=is_load)
    except IMPOSSIBLE as error:
        unusable = _unusable(trial.recording, error)
        return unusable, _judged(cell, unusable)


def _judged(cell: Cell, trial: Trial, *, is_load: bool = False) -> TrialResult:
    findings, recording, traffic = judge_trial(cell, trial), trial.recording, trial.traffic
    failure, numbers = recording.failure, trial.numbers
    used, lasted = usable(recording, findings), traffic is not None and traffic.seconds > 0
    touched, ended = touched_by(cell, findings), ends_early(findings)
    own = touched_by(cell, until_cut(findings)) if ended else touched
    if is_load and lasted and traffic and traffic.ended in ("interrupted", "aborted"):
        touched = own
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
            bounds=_bounds_of(trial, own, findings),
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
        made[Metric.THROUGHPUT] = trial.rate_per_s
    if traffic and traffic.response.count:
        made[Metric.P50], p99 = traffic.response.quantiles_ns((0.5, 0.99))
        made |= {Metric.P99: p99} if enough_beyond(traffic.response.count, 0.99) else {}
    if trial.cpu_per_request_ns is not None:
        made[Metric.CPU_PER_REQUEST] = trial.cpu_per_request_ns
    return made


def _bounds_of(trial: Trial, touched: Touched, findings: Sequence[Finding]) -> dict[Metric, Bound]:
    """What is known in place of the numbers of a trial that its findings hide."""
    traffic = trial.traffic
    if traffic is None:
        return {}
    times = Times.of_trial(trial, traffic, findings)
    known = load_bounds(touched, times, trial.rate_per_s, 0.0, (Metric.P50, Metric.P99))
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
                p99_ns=p99 if timed and enough_beyond(interval.response.count, 0.99) else 0,
            )
