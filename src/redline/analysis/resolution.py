"""What difference each undecided comparison could have shown, and what it takes to show less. Pure."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from redline.analysis.judged import JudgedCell
from redline.findings import undecided
from redline.model import Comparison, Finding, Frozen, Metric, Plan, Report, Verdict
from redline.quantities import duration
from redline.stats import rounds_for, scatter_of, shown_by
from redline.suite import expected_length_ns


class ShownDifference(Frozen):
    """The smallest relative difference that a plan can show in one comparison, by how earlier rounds differed."""

    cell_id: str
    baseline_id: str
    metric: Metric
    difference: float = Field(description="0.05 is 5%: half the width of the interval of so many rounds")


WORTH_SHOWING = 0.05
"""A difference for whose sake people run a lab."""
_MINUTE_NS = 60_000_000_000
LONGEST_NS = 24 * 60 * _MINUTE_NS
"""Nobody waits for rounds that take longer."""


def resolutions(
    judged: Mapping[str, JudgedCell], comparisons: Sequence[Comparison], plan: Plan, folder: str = ""
) -> dict[str, tuple[Finding, ...]]:
    """A finding for each cell that has undecided comparisons, by the cell's id. The run is in `folder`, if known."""
    found: dict[str, list[Comparison]] = {}
    for one in comparisons:
        if one.verdict is Verdict.INCONCLUSIVE and one.resolution is not None:
            found.setdefault(one.cell_id, []).append(one)
    if not found:
        return {}
    rounds = 1 + max((step.round for step in plan.steps), default=0)
    round_ns = expected_length_ns(plan) // rounds
    return {
        cell_id: undecided(
            judged[cell_id].cell,
            [(one.metric, one.resolution or 0.0) for one in alike],
            takes(alike, plan, rounds, round_ns, folder),
        )
        for cell_id, alike in found.items()
    }


def takes(comparisons: Sequence[Comparison], plan: Plan, rounds: int, round_ns: int, folder: str) -> str:
    """`for 5% take ...`: what would show a difference of 5% in all of these, after so many rounds of such length."""
    needed = list(_needed(comparisons))
    by_duet = all(one.duet for one in comparisons)
    offers = [] if by_duet or plan.duets else ["`design: duet`, which shows more in the same time"]
    if None not in needed and plan.suite.auto is None:
        trials = max(rounds + 1, *(each for each in needed if each is not None))
        more_ns = round_ns * (trials - rounds)
        where = shlex.quote(folder) if folder else "DIR"
        if more_ns <= LONGEST_NS:
            offers.append(f"`redline run --resume {where} --trials {trials}` (about {_in_minutes(more_ns)} more)")
    return (
        f"for {WORTH_SHOWING:.0%} take {', or '.join(offers)}"
        if offers
        else f"more rounds will hardly show {WORTH_SHOWING:.0%}"
    )


def _in_minutes(ns: int) -> str:
    return duration(max(1, round(ns / _MINUTE_NS)) * _MINUTE_NS)


def _needed(comparisons: Sequence[Comparison]) -> Iterator[int | None]:
    for one in comparisons:
        scatter = scatter_of(one.ratio) if one.ratio else None
        yield rounds_for(scatter, WORTH_SHOWING) if scatter is not None else None


def forecast(plan: Plan, before: Report) -> tuple[ShownDifference, ...]:
    """What the plan can show in each comparison that an earlier report of the same cells and design made."""
    known = []
    for one in before.comparisons:
        scatter = scatter_of(one.ratio) if one.ratio and one.primary else None
        alike = one.cell_id in plan.cells and one.baseline_id in plan.cells and bool(one.duet) == bool(plan.duets)
        if scatter is not None and alike and plan.suite.trials > 1:
            shown = ShownDifference(
                cell_id=one.cell_id,
                baseline_id=one.baseline_id,
                metric=one.metric,
                difference=shown_by(scatter, plan.suite.trials),
            )
            known.append(shown)
    return tuple(known)
