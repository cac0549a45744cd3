"""What the measurements of a run say to published claims. Pure."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from redline.analysis.compare import compare_cells
from redline.analysis.results import CellResult
from redline.model import FEWEST_TRIALS, Comparison, Estimate, Metric, Plan, Suite
from redline.model.claim import Claim, ClaimResult, ClaimState

# They may share starts, so nothing is known of how their errors go together.
_QUOTIENT = "the quotient of two ratios to the same baseline, as wide as both intervals allow"


class _ClaimedNumber(NamedTuple):
    """A ratio or a level; None if it is not known, and why."""

    estimate: Estimate | None
    reason: str = ""
    fewest: int = FEWEST_TRIALS


def claim_results(
    plan: Plan, results: Mapping[str, CellResult], comparisons: Iterable[Comparison]
) -> tuple[ClaimResult, ...]:
    """The result of every claim, in their order. A claim about a cell that was not run is *not measured*."""
    cells = {cell.slug: results[cell_id] for cell_id, cell in plan.cells.items() if cell_id in results}
    skipped = {each.slug: each.reason for each in plan.skipped}
    ratios = {(each.metric, each.cell_id, each.baseline_id): each for each in comparisons}
    return tuple(_result(claim, cells, skipped, ratios, plan.suite) for claim in plan.suite.claims)


_Ratios = Mapping[tuple[Metric, str, str], Comparison]


def _result(
    claim: Claim, cells: Mapping[str, CellResult], skipped: Mapping[str, str], ratios: _Ratios, suite: Suite
) -> ClaimResult:
    asked = [slug for slug in (claim.of, claim.to) if slug]
    absent = [f"{slug}: {skipped.get(slug, 'not in this run')}" for slug in asked if not _is_run(cells.get(slug))]
    if claim.missing or absent:
        return ClaimResult(claim=claim, state="not measured", measured=None, reason=claim.missing or absent[0])
    of = cells[claim.of]
    found = _ratio(of, cells[claim.to], claim.metric, ratios, suite) if claim.to else _level(of, claim.metric)
    state, reason = _judged(claim, found)
    return ClaimResult(claim=claim, state=state, measured=found.estimate, reason=reason)


def _is_run(cell: CellResult | None) -> bool:
    return cell is not None and bool(cell.trials)


def _judged(claim: Claim, found: _ClaimedNumber) -> tuple[ClaimState, str]:
    estimate, high = found.estimate, math.inf if claim.high is None else claim.high
    if estimate is None:
        return "not known", found.reason
    if estimate.n < found.fewest or estimate.low is None or estimate.high is None:
        return "not known", f"measured {estimate.n} of {found.fewest} times"
    if claim.low <= estimate.low and estimate.high <= high:
        return "agrees", ""
    return ("differs", "") if estimate.high < claim.low or estimate.low > high else ("not known", "")


def _level(of: CellResult, metric: Metric) -> _ClaimedNumber:
    if bound := of.bound(metric):
        return _ClaimedNumber(None, f"it is {bound.words}")
    level = of.level(metric)
    return _ClaimedNumber(level, "" if level else "too few answers")


def _ratio(of: CellResult, to: CellResult, metric: Metric, ratios: _Ratios, suite: Suite) -> _ClaimedNumber:
    """The ratio by the run's own comparisons if they have it; else by trials, or by their ratios to one baseline."""
    if direct := _compared(metric, of.id, to.id, ratios):
        return direct
    if suite.alone:
        comparison = compare_cells(of, to, metric, suite.threshold)
        return _ClaimedNumber(comparison.ratio, comparison.refused)
    baseline = next((base for at, cell_id, base in ratios if (at, cell_id) == (metric, of.id)), None)
    ours, theirs = (_compared(metric, cell.id, baseline or "", ratios) for cell in (of, to))
    if ours is None or theirs is None:
        return _ClaimedNumber(None, "these cells were not compared: no duet has both, nor a baseline of both")
    if ours.estimate is None or theirs.estimate is None:
        return _ClaimedNumber(None, ours.reason or theirs.reason)
    return _ClaimedNumber(ours.estimate.over(theirs.estimate, _QUOTIENT), fewest=max(ours.fewest, theirs.fewest))


def _compared(metric: Metric, of: str, to: str, ratios: _Ratios) -> _ClaimedNumber | None:
    """The ratio of two cells that were compared, in either direction; None if they were not."""
    if comparison := ratios.get((metric, of, to)):
        return _ClaimedNumber(comparison.ratio, comparison.refused, comparison.fewest)
    if comparison := ratios.get((metric, to, of)):
        return _ClaimedNumber(comparison.ratio and comparison.ratio.inverse, comparison.refused, comparison.fewest)
    return None
