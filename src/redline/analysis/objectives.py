"""What became of objectives: of a cell over all of its trials, and of one load."""

from collections.abc import Iterable, Sequence

from redline.analysis.judged import JudgedCell
from redline.findings import only_lengthened, servers_doing
from redline.model import Cell, Counts, Failure, Finding, Grade, Histogram, Objective, ObjectiveResult, Traffic
from redline.stats import TrialNumbers
from redline.stats.objectives import DEPTHS, LoadTotals, judge_objective


def objective_results(judged: JudgedCell, objectives: Iterable[Objective]) -> tuple[ObjectiveResult, ...]:
    """Every objective that applies to the cell.

    Nothing is met when the server lost a trial: the trials that it did not lose say how it is on a good day, and an
    objective is about every day. What the others met is not known where the engine failed. Of an invalid cell nothing
    is known but what its trials bound.
    """
    cell = judged.cell
    if cell.role == "ceiling":
        return ()
    applying = [objective for objective in objectives if objective.applies_to(cell)]
    made = _measured(judged, judged.used or judged.bounding)
    if lost := _lost(judged):
        return missed_all(applying, made, lost)
    if judged.valid:
        return _not_seen(judged, judged_all(applying, made))
    if bounding := judged.bounding:
        return judged_all(applying, _measured(judged, bounding), at_most=True)
    return unknown_all(applying, "the cell is invalid")


def load_objectives(
    cell: Cell,
    traffic: Traffic,
    findings: Sequence[Finding],
    objectives: Iterable[Objective],
    failure: Failure | None = None,
) -> tuple[ObjectiveResult, ...]:
    """Every objective of one load; `failure`: why it failed, if it did."""
    applying, made = [objective for objective in objectives if objective.applies_to(cell)], LoadTotals.of_load(traffic)
    if kinds := servers_doing(findings, failure):
        return missed_all(applying, made, f"the load is invalid by {', '.join(dict.fromkeys(kinds))}")
    if traffic.seconds > 0 and all(finding.grade is not Grade.INVALID for finding in findings):
        return judged_all(applying, made)
    if traffic.seconds > 0 and only_lengthened(cell, findings):
        return judged_all(applying, made, at_most=True)
    return unknown_all(applying, "the load is invalid")


def judged_all(
    objectives: Iterable[Objective], made: LoadTotals, *, at_most: bool = False
) -> tuple[ObjectiveResult, ...]:
    """Each by what was counted and how long responses took; `at_most`: these are upper bounds."""
    return tuple(_result(objective, made, at_most=at_most) for objective in objectives)


def missed_all(objectives: Iterable[Objective], made: LoadTotals, reason: str) -> tuple[ObjectiveResult, ...]:
    """None was met, by the server's doing."""
    results = judged_all(objectives, made)
    return tuple(result.unmet(reason, known=True) for result in results)


def unknown_all(objectives: Iterable[Objective], reason: str) -> tuple[ObjectiveResult, ...]:
    """None is known to be met, or missed."""
    return tuple(
        ObjectiveResult(objective=one, actual=None, met=False, known=False, reason=reason) for one in objectives
    )


def _result(objective: Objective, made: LoadTotals, *, at_most: bool) -> ObjectiveResult:
    found = judge_objective(objective, made)
    return ObjectiveResult(
        objective=objective,
        actual=found.actual,
        met=found.state == "met",
        known=found.state != "not known",
        at_most=at_most and found.state == "met" and objective.metric in DEPTHS,
        reason=found.reason,
    )


def _measured(judged: JudgedCell, trials: Sequence[TrialNumbers]) -> LoadTotals:
    """What these trials took; counts, and the lateness that excuses them, are those of all trials that were made."""
    made = [trial.numbers.traffic for trial in judged.trials if trial.numbers.traffic]
    used = [trial.traffic for trial in trials if trial.traffic]
    return LoadTotals(
        Counts.merged(each.counts for each in made),
        sum(each.in_window for each in made),
        Histogram.merged(each.response for each in used),
        Histogram.merged(each.service for each in used),
        Histogram.merged(each.lateness for each in used),
        max((each.lateness.max_ns for each in made), default=0),
        sum(each.seconds for each in made) / max(len(made), 1),
    )


def _not_seen(judged: JudgedCell, results: tuple[ObjectiveResult, ...]) -> tuple[ObjectiveResult, ...]:
    """What was met is not known after all, where nobody saw what the server did in some trials."""
    failed = sum(trial.engine_failed for trial in judged.trials)
    if not failed:
        return results
    reason = f"{failed} of {len(judged.trials)} trials failed on the engine's side"
    return tuple(result.unmet(reason, known=False) if result.met else result for result in results)


def _lost(judged: JudgedCell) -> str:
    """How many trials the server lost, and to what; empty when none."""
    lost = [trial.lost_to for trial in judged.trials if trial.lost_to]
    kinds = sorted({kind for kinds in lost for kind in kinds})
    return f"{len(lost)} of {len(judged.trials)} trials lost to {', '.join(kinds)}" if lost else ""
