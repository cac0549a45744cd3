"""The results of objectives, of a cell over all of its trials."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from redline.analysis.percentiles import requests_due
from redline.findings import Touch, is_late_at, left_by_all, of_engine, servers_doing, touched_by
from redline.model import (
    Counts,
    Histogram,
    Numbers,
    Objective,
    ObjectiveResult,
    RequestTraffic,
    StreamTraffic,
)
from redline.model.percentile import Effect
from redline.model.traffic import merged_requests
from redline.stats import TrialNumbers
from redline.stats.objectives import DEPTHS, LoadTotals, evaluate_objective

if TYPE_CHECKING:  # a load has none
    from redline.analysis.results import CellResult


def objective_results(cell_result: "CellResult", objectives: Iterable[Objective]) -> tuple[ObjectiveResult, ...]:
    """The results of all objectives that apply to the cell.

    If the server lost a trial, no objective is met: the other trials show only its good days. If the engine failed in a
    trial, objectives that the others met are not known. For an invalid cell, an objective is known as far as its
    number, or a bound of it, is.
    """
    cell = cell_result.cell
    applying = [objective for objective in objectives if objective.applies_to(cell)]
    if cell.role == "ceiling" or not applying:
        return ()
    made = _measured(cell_result, cell_result.used or [trial.numbers for trial in cell_result.trials])
    if lost := _lost(cell_result):
        return missed_all(applying, made, lost)
    if cell_result.valid:
        return _not_seen(cell_result, evaluate_all(applying, made))
    if not cell_result.trials:
        return unknown_all(applying, "the cell is invalid")
    everything = _measured(cell_result, [trial.numbers for trial in cell_result.whole])
    judged = [touched_by(cell, trial.findings) for trial in cell_result.whole]  # nothing is met by half a load
    left = {
        numbers: left_by_all([touched[numbers] for touched in judged if numbers in touched])
        for numbers in get_args(Numbers)
    }
    return _not_seen(cell_result, tuple(_by_what_is_left(objective, everything, left) for objective in applying))


def _by_what_is_left(
    objective: Objective, made: LoadTotals, touched: Mapping[Numbers, Touch | None]
) -> ObjectiveResult:
    """The result by what findings leave of the objective's number.

    A bound from above shows what is met, and what is not met by more than the client was late. A bound from below
    shows the opposite.
    """
    touch = _left(objective, made, touched)
    if touch is None:
        return _result(objective, made, at_most=False)
    if touch.leaves == "at most" and objective.metric in DEPTHS:
        return _result(objective, made, at_most=_is_late(objective, made))
    result = _result(objective, made, at_most=False)
    shows = result.met == (objective.below if touch.leaves == "at most" else not objective.below)
    if touch.leaves != "unknown" and result.known and shows:
        return result
    return unknown_all([objective], f"hidden by {touch.finding.kind}")[0]


def _is_late(objective: Objective, made: LoadTotals) -> bool:
    """Whether the client's lateness makes up so much of the objective's number that it is a bound; others are known."""
    totals = made if objective.request is None else made.of_request(objective.request)
    totals = totals.of_times(objective.times) if totals and objective.times else totals
    q = DEPTHS.get(objective.metric)
    return totals is None or q is None or is_late_at(q, totals.lateness, totals.response)


def _left(objective: Objective, made: LoadTotals, touched: Mapping[Numbers, Touch | None]) -> Touch | None:
    """What is left of the objective's number: of times, or of what they make good. Longer times make fewer good."""
    if objective.metric != "goodput":
        return touched.get(_numbers_of(objective))
    about = made if objective.request is None else made.of_request(objective.request) or made
    decides: dict[Numbers, bool] = {
        "counts": True,
        "response times": about.good_from_due,
        "message times": about.good_between,
    }
    left = [touch for numbers, touch in touched.items() if touch and decides.get(numbers)]
    return left_by_all([replace(touch, leaves=_OF_GOOD[touch.leaves]) for touch in left])


_OF_GOOD: Mapping[Effect, Effect] = {"at most": "at least", "at least": "at most", "unknown": "unknown"}
"""What a bound of times says of the share that stays below a limit."""


def _numbers_of(objective: Objective) -> Numbers:
    """The numbers that a metric belongs to."""
    if objective.metric in DEPTHS:
        return "response times" if objective.times in ("", "first-message") else "message times"
    return "counts" if objective.metric == "errors" else "throughput"


def evaluate_all(
    objectives: Iterable[Objective], made: LoadTotals, *, at_most: bool = False
) -> tuple[ObjectiveResult, ...]:
    """The results from counts and response times; `at_most`: the times are upper bounds."""
    return tuple(_result(objective, made, at_most=at_most) for objective in objectives)


def missed_all(objectives: Iterable[Objective], made: LoadTotals, reason: str) -> tuple[ObjectiveResult, ...]:
    """All objectives as missed by the server."""
    results = evaluate_all(objectives, made)
    return tuple(result.unmet(reason, known=True) for result in results)


def unknown_all(objectives: Iterable[Objective], reason: str) -> tuple[ObjectiveResult, ...]:
    """All objectives as not known."""
    return tuple(
        ObjectiveResult(objective=objective, actual=None, met=False, known=False, reason=reason)
        for objective in objectives
    )


def _result(objective: Objective, made: LoadTotals, *, at_most: bool) -> ObjectiveResult:
    evaluated = evaluate_objective(objective, made)
    return ObjectiveResult(
        objective=objective,
        actual=evaluated.actual,
        met=evaluated.state == "met",
        known=evaluated.state != "not known",
        at_most=at_most and evaluated.state == "met" and objective.metric in DEPTHS,
        reason=evaluated.reason,
    )


def _measured(cell_result: "CellResult", trials: Sequence[TrialNumbers]) -> LoadTotals:
    """The response times of these trials; counts, and the lateness that excuses them, are those of all whole trials."""
    made = [trial.numbers.traffic for trial in cell_result.whole if trial.numbers.traffic]
    used = [trial.traffic for trial in trials if trial.traffic]
    totals = LoadTotals(
        Counts.merged(traffic.counts for traffic in made),
        sum(traffic.in_window for traffic in made),
        Histogram.merged(traffic.response for traffic in used),
        Histogram.merged(traffic.service for traffic in used),
        Histogram.merged(traffic.lateness for traffic in used),
        max((traffic.lateness.max_ns for traffic in made), default=0),
        sum(traffic.seconds for traffic in made) / max(len(made), 1),
        streams=StreamTraffic.merged(traffic.streams for traffic in used),
    )
    # Errors are those of all trials, but times are those of these trials.
    counted = merged_requests(traffic.requests for traffic in used)
    all_counted = merged_requests(traffic.requests for traffic in made)
    scenario = cell_result.cell.scenario
    due = requests_due(scenario, sum(traffic.counts.due for traffic in used), counted)
    totals = totals.with_requests(scenario, tuple(map(RequestTraffic.timed_by, all_counted, counted)))
    return replace(totals, conversations=sum(many for asked, many in due if asked.stream and asked.stream.good))


def _not_seen(cell_result: "CellResult", results: tuple[ObjectiveResult, ...]) -> tuple[ObjectiveResult, ...]:
    """Turn met objectives into not known if trials failed on the engine's side."""
    failed = sum(of_engine(trial.numbers.failure) for trial in cell_result.trials)
    if not failed:
        return results
    reason = f"{failed} of {len(cell_result.trials)} trials failed on the engine's side"
    return tuple(result.unmet(reason, known=False) if result.met else result for result in results)


def _lost(cell_result: "CellResult") -> str:
    """The number of trials that the server lost, and why; empty if it lost none."""
    lost = [doing for trial in cell_result.trials if (doing := servers_doing(trial.findings, trial.numbers.failure))]
    kinds = sorted({kind for kinds in lost for kind in kinds})
    if lost and cell_result.planned == 1:
        return f"the load is invalid by {', '.join(dict.fromkeys(lost[0]))}"
    return f"{len(lost)} of {len(cell_result.trials)} trials lost to {', '.join(kinds)}" if lost else ""
