"""The results of objectives: of a cell over all of its trials, and of a load."""

from collections.abc import Iterable, Sequence

from redline.analysis.judged import JudgedCell
from redline.findings import of_engine, only_lengthened, servers_doing
from redline.model import Cell, Counts, Failure, Finding, Grade, Histogram, Objective, ObjectiveResult, Traffic
from redline.stats import TrialNumbers
from redline.stats.objectives import DEPTHS, LoadTotals, judge_objective


def objective_results(judged: JudgedCell, objectives: Iterable[Objective]) -> tuple[ObjectiveResult, ...]:
    """The results of all objectives that apply to the cell.

    If the server lost a trial, no objective is met: the other trials show only its good days. If the engine failed in a
    trial, objectives that the others met are not known. For an invalid cell, only what its trials bound is known.
    """
    cell = judged.cell
    if cell.role == "ceiling":
        return ()
    applying = [objective for objective in objectives if objective.applies_to(cell)]
    made = _measured(judged, judged.used or judged.bounding)
    if lost := _lost(judged):
        return missed_all(applying, made, lost)
    if judged.valid:
        return _not_seen(judged, judge_all(applying, made))
    if bounding := judged.bounding:
        return judge_all(applying, _measured(judged, bounding), at_most=True)
    return unknown_all(applying, "the cell is invalid")


def load_objectives(
    cell: Cell,
    traffic: Traffic,
    findings: Sequence[Finding],
    objectives: Iterable[Objective],
    failure: Failure | None = None,
) -> tuple[ObjectiveResult, ...]:
    """The results of all objectives of a load; `failure`: why it failed, if it did."""
    applying, made = [objective for objective in objectives if objective.applies_to(cell)], LoadTotals.of_load(traffic)
    if kinds := servers_doing(findings, failure):
        return missed_all(applying, made, f"the load is invalid by {', '.join(dict.fromkeys(kinds))}")
    if traffic.seconds > 0 and all(finding.grade is not Grade.INVALID for finding in findings):
        return judge_all(applying, made)
    if traffic.seconds > 0 and only_lengthened(cell, findings):
        return judge_all(applying, made, at_most=True)
    return unknown_all(applying, "the load is invalid")


def judge_all(
    objectives: Iterable[Objective], made: LoadTotals, *, at_most: bool = False
) -> tuple[ObjectiveResult, ...]:
    """The results from counts and response times; `at_most`: the times are upper bounds."""
    return tuple(_result(objective, made, at_most=at_most) for objective in objectives)


def missed_all(objectives: Iterable[Objective], made: LoadTotals, reason: str) -> tuple[ObjectiveResult, ...]:
    """All objectives as missed by the server."""
    results = judge_all(objectives, made)
    return tuple(result.unmet(reason, known=True) for result in results)


def unknown_all(objectives: Iterable[Objective], reason: str) -> tuple[ObjectiveResult, ...]:
    """All objectives as not known."""
    return tuple(
        ObjectiveResult(objective=objective, actual=None, met=False, known=False, reason=reason)
        for objective in objectives
    )


def _result(objective: Objective, made: LoadTotals, *, at_most: bool) -> ObjectiveResult:
    judged = judge_objective(objective, made)
    return ObjectiveResult(
        objective=objective,
        actual=judged.actual,
        met=judged.state == "met",
        known=judged.state != "not known",
        at_most=at_most and judged.state == "met" and objective.metric in DEPTHS,
        reason=judged.reason,
    )


def _measured(judged: JudgedCell, trials: Sequence[TrialNumbers]) -> LoadTotals:
    """The response times of these trials; counts, and the lateness that excuses them, are those of all trials."""
    made = [trial.numbers.traffic for trial in judged.trials if trial.numbers.traffic]
    used = [trial.traffic for trial in trials if trial.traffic]
    return LoadTotals(
        Counts.merged(traffic.counts for traffic in made),
        sum(traffic.in_window for traffic in made),
        Histogram.merged(traffic.response for traffic in used),
        Histogram.merged(traffic.service for traffic in used),
        Histogram.merged(traffic.lateness for traffic in used),
        max((traffic.lateness.max_ns for traffic in made), default=0),
        sum(traffic.seconds for traffic in made) / max(len(made), 1),
    )


def _not_seen(judged: JudgedCell, results: tuple[ObjectiveResult, ...]) -> tuple[ObjectiveResult, ...]:
    """Turn met objectives into not known if trials failed on the engine's side."""
    failed = sum(of_engine(trial.numbers.failure) for trial in judged.trials)
    if not failed:
        return results
    reason = f"{failed} of {len(judged.trials)} trials failed on the engine's side"
    return tuple(result.unmet(reason, known=False) if result.met else result for result in results)


def _lost(judged: JudgedCell) -> str:
    """The number of trials that the server lost, and why; empty if it lost none."""
    lost = [doing for trial in judged.trials if (doing := servers_doing(trial.findings, trial.numbers.failure))]
    kinds = sorted({kind for kinds in lost for kind in kinds})
    return f"{len(lost)} of {len(judged.trials)} trials lost to {', '.join(kinds)}" if lost else ""
