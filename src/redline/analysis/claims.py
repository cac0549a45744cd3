"""What the measurements of a run say to published claims. Pure."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from redline.analysis.compare import compare_cells
from redline.analysis.results import CellResult
from redline.model import FEWEST_TRIALS, CellReport, Comparison, Estimate, Metric, Plan, Suite
from redline.model.claim import Claim, ClaimResult, ClaimState

# They may share starts, so nothing is known of how their errors go together.
_QUOTIENT = "the quotient of two ratios to the same baseline, as wide as both intervals allow"


class _ClaimedNumber(NamedTuple):
    """A ratio or a level; None if it is not known, and why."""

    estimate: Estimate | None
    reason: str = ""
    fewest: int = FEWEST_TRIALS


def claim_results(
    plan: Plan, results: Mapping[str, CellResult], cells: Iterable[CellReport], comparisons: Iterable[Comparison]
) -> tuple[ClaimResult, ...]:
    """The result of every claim, in their order. A claim about a cell that was not run is *not measured*.

    `results` and `cells` are the run's judged cells, and how its report shows them.
    """
    by_slug = {cell.slug: cell for cell in cells if cell.role == "subject"}
    skipped = {each.slug: each.reason for each in plan.skipped}
    ratios = {(each.metric, each.cell_id, each.baseline_id): each for each in comparisons}
    return tuple(_result(claim, by_slug, skipped, results, ratios, plan.suite) for claim in plan.suite.claims)


_Ratios = Mapping[tuple[Metric, str, str], Comparison]


def _result(  # noqa: PLR0913, PLR0917 - a claim, and all that a run knows of its cells
    claim: Claim,
    cells: Mapping[str, CellReport],
    skipped: Mapping[str, str],
    results: Mapping[str, CellResult],
    ratios: _Ratios,
    suite: Suite,
) -> ClaimResult:
    asked = [slug for slug in (claim.of, claim.to) if slug]
    absent = [f"{slug}: {why}" for slug in asked if (why := _absence(slug, cells, skipped))]
    if claim.missing or absent:
        return ClaimResult(claim=claim, state="not measured", measured=None, reason=claim.missing or absent[0])
    of = cells[claim.of]
    if claim.to:
        found = _ratio(results[of.cell_id], results[cells[claim.to].cell_id], claim.metric, ratios, suite)
    else:
        found = _level(of, results.get(of.cell_id), claim.metric)
    state, reason = _judged(claim, found)
    return ClaimResult(claim=claim, state=state, measured=found.estimate, reason=reason)


def _absence(slug: str, cells: Mapping[str, CellReport], skipped: Mapping[str, str]) -> str:
    """Why a cell was not run; empty if it was. A run that goes on has not come to all of its cells."""
    if slug not in cells:
        return skipped.get(slug, "not in this run")
    return "" if cells[slug].trials or cells[slug].estimates else "not measured so far"


def _judged(claim: Claim, found: _ClaimedNumber) -> tuple[ClaimState, str]:
    estimate, high = found.estimate, math.inf if claim.high is None else claim.high
    if estimate is None:
        return "not known", found.reason
    if estimate.n < found.fewest or estimate.low is None or estimate.high is None:
        return "not known", f"measured {estimate.n} of {found.fewest} times"
    if claim.low <= estimate.low and estimate.high <= high:
        return "agrees", ""
    return ("differs", "") if estimate.high < claim.low or estimate.low > high else ("not known", "")


def _level(of: CellReport, result: CellResult | None, metric: Metric) -> _ClaimedNumber:
    """The level that the report shows, or one that it has no column for."""
    if bound := of.bounds.get(metric):
        return _ClaimedNumber(None, f"it is {bound.words}")
    level = of.known.get(metric) or (result.level(metric) if result else None)
    return _ClaimedNumber(level, "" if level else f"{metric.words} was not measured, or of too few answers")


def _ratio(of: CellResult, to: CellResult, metric: Metric, ratios: _Ratios, suite: Suite) -> _ClaimedNumber:
    """The ratio by the run's own comparisons if they have it; else by trials, or by their ratios to one baseline."""
    if direct := _compared(metric, of.id, to.id, ratios):
        return direct
    if suite.alone:
        comparison = compare_cells(of, to, metric, suite.threshold)
        return _ClaimedNumber(comparison.ratio, comparison.refused)
    baseline = next((base for at, cell_id, base in ratios if (at, cell_id) == (metric, of.id)), None)
    ours, theirs = (_compared(metric, cell.id, baseline or "", ratios) for cell in (of, to))
    if any({of.id, to.id} <= {cell_id, base} for _, cell_id, base in ratios):
        return _ClaimedNumber(None, f"{metric.words} is not compared in duets")
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
