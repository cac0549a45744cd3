"""Parts of a cell's report: its percentiles, its course over time, its trials, its objectives."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from redline.analysis.judged import JudgedCell, JudgedTrial
from redline.findings import warm_up
from redline.model import (
    AgreedTls,
    Cell,
    Closed,
    Counts,
    Histogram,
    Metric,
    Moment,
    Objective,
    ObjectiveResult,
    Outcomes,
    Percentile,
    Recording,
    TooFew,
    TrialReport,
)
from redline.stats import SHARES, cpu_per_request_ns, enough_beyond, requests_needed

_COARSE = (0.0, 0.25, 0.5, 0.75)
_DEEPEST = 9


def percentiles(histogram: Histogram) -> tuple[Percentile, ...]:
    """The distribution on a grid of nines, as deep as its count supports, and its maximum; empty for nothing."""
    if histogram.count == 0:
        return ()
    shares = [q for q in _nines() if enough_beyond(histogram.count, q)]
    found = histogram.quantiles_ns(shares)
    points = [Percentile(q=q, ns=ns) for q, ns in zip(shares, found, strict=True)]
    return (*points, Percentile(q=1.0, ns=histogram.max_ns))


def too_few(histogram: Histogram) -> tuple[TooFew, ...]:
    """The percentiles that its count does not tell, shallowest first, with what they want; nothing of nothing."""
    count = histogram.count
    return tuple(
        TooFew(metric=metric, needs=requests_needed(q), missing=requests_needed(q) - count)
        for metric, q in SHARES.items()
        if count and not enough_beyond(count, q)
    )


def timeline(recordings: Iterable[Recording]) -> tuple[Moment, ...]:
    """Every interval in which something happened, of every trial, at its middle."""
    return tuple(moment for recording in recordings for moment in _moments(recording))


def trial_report(cell: Cell, trial: JudgedTrial) -> TrialReport:
    """One judged trial in a line."""
    recording, traffic, failure = trial.recording, trial.recording.traffic, trial.recording.failure
    p50, p99 = traffic.response.quantiles_ns((0.5, 0.99)) if traffic and traffic.response.count else (None, None)
    return TrialReport(
        position=recording.position,
        round=recording.round,
        used=trial.used,
        rate_per_s=traffic.rate_per_s if traffic else None,
        p50_ns=p50,
        p99_ns=p99,
        cpu_per_request_ns=cpu_per_request_ns(recording),
        warm_up=warm_up(cell, recording),
        failure=f"{failure.stage}: {failure.message}" if failure else "",
        log_tail=failure.log_tail if failure else "",
    )


def told_by_servers(judged: JudgedCell, fact: Literal["build", "runtime_version"]) -> str:
    """What its servers said of themselves. That they differ from trial to trial is worth seeing, so all are listed."""
    servers = [trial.recording.server for trial in judged.trials if trial.recording.server]
    return ", ".join(dict.fromkeys(value for server in servers if (value := str(getattr(server, fact)))))


def agreed_tls(judged: JudgedCell) -> tuple[AgreedTls, ...]:
    """What the first handshake of each trial agreed on, each once; empty without TLS."""
    agreed = [trial.recording.traffic.tls for trial in judged.trials if trial.recording.traffic]
    return tuple(dict.fromkeys(tls for tls in agreed if tls))


def objective_results(
    judged: JudgedCell, objectives: Iterable[Objective], response: Histogram
) -> tuple[ObjectiveResult, ...]:
    """Every objective that applies to the cell; `response` is merged over its used trials.

    What was not measured is not met. Neither is anything when the server lost a trial: the trials that it did not lose
    say how it is on a good day, and an objective is about every day.
    """
    cell = judged.cell
    if cell.role == "ceiling":
        return ()
    made = summed([trial.recording.traffic.counts for trial in judged.trials if trial.recording.traffic])
    reason = _lost(judged) or ("" if judged.valid else "the cell is invalid")
    return tuple(
        _result(objective, _actual(objective.metric, made, response), response, reason)
        for objective in objectives
        if objective.metric != "achieved" or not isinstance(cell.load.shape, Closed)
    )


def summed(parts: Sequence[Counts]) -> Counts:
    """The sums of counters."""
    plain = [name for name in Counts.model_fields if name not in {"status", "outcomes"}]
    classes = sorted({name for part in parts for name in part.status})
    return Counts(
        **{name: sum(getattr(part, name) for part in parts) for name in plain},
        status={name: sum(part.status.get(name, 0) for part in parts) for name in classes},
        outcomes=Outcomes(
            **{name: sum(getattr(part.outcomes, name) for part in parts) for name in Outcomes.model_fields}
        ),
    )


def _nines() -> Iterator[float]:
    """0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999 and so on."""
    yield from _COARSE
    for nines in range(1, _DEEPEST + 1):
        yield round(1 - 10**-nines, nines)
        yield round(1 - 5 * 10 ** -(nines + 1), nines + 1)


def _moments(recording: Recording) -> Iterator[Moment]:
    for interval in recording.traffic.intervals if recording.traffic else ():
        length_ns = interval.end_ns - interval.start_ns
        if length_ns <= 0 or (interval.counts.completed == 0 and interval.response.count == 0):
            continue
        p50, p99 = interval.response.quantiles_ns((0.5, 0.99))
        yield Moment(
            position=recording.position,
            phase=interval.phase,
            at_s=(interval.start_ns + length_ns / 2) / 1e9,
            rate_per_s=interval.counts.completed / length_ns * 1e9,
            p50_ns=p50,
            p99_ns=p99,
        )


def _lost(judged: JudgedCell) -> str:
    """How many trials the server lost, and to what; empty when none."""
    lost = [trial.lost_to for trial in judged.trials if trial.lost_to]
    kinds = sorted({kind.value for kinds in lost for kind in kinds})
    return f"{len(lost)} of {len(judged.trials)} trials lost to {', '.join(kinds)}" if lost else ""


def _actual(metric: str, made: Counts, response: Histogram) -> float | None:
    if metric in ("errors", "achieved"):
        part = made.outcomes.errors if metric == "errors" else made.completed
        return part / made.due if made.due else None
    if metric == "max":
        return float(response.max_ns) if response.count else None
    share = SHARES[Metric(metric)]
    return float(response.quantile_ns(share)) if enough_beyond(response.count, share) else None


def _result(objective: Objective, actual: float | None, response: Histogram, reason: str) -> ObjectiveResult:
    if actual is None and not reason:
        reason = f"{response.count:,} requests are too few for {objective.metric}"
    within = actual is not None and (actual < objective.limit if objective.below else actual > objective.limit)
    return ObjectiveResult(objective=objective, actual=actual, met=within and not reason, reason=reason)
