"""The difference that an undecided comparison could have shown, and what it takes to show less. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from redline.analysis.results import CellResult
from redline.findings import undecided
from redline.model import Cell, Comparison, Finding, Frozen, Metric, Plan, Report, Verdict
from redline.quantities import duration, percent
from redline.stats import rounds_for, scatter_of, scatter_showing, shown_by, within_trials
from redline.suite import expected_length_ns
from redline.wording import as_argument


class ShownDifference(Frozen):
    """The smallest relative difference that a plan can show in a comparison, by the scatter of earlier rounds."""

    cell_id: str
    baseline_id: str
    metric: Metric
    difference: float = Field(description="0.05 is 5%: half the width of the interval of so many rounds")


WORTH_SHOWING = 0.05
"""A difference that is worth a measurement."""
_SECOND_NS, _MINUTE_NS = 1_000_000_000, 60_000_000_000
_ROUND_NS = 5 * _SECOND_NS
"""The step of suggested lengths of loads."""
HOUR_NS = 60 * _MINUTE_NS
TIMES_SPENT = 10
"""The longest suggested time: an hour, or this many times the time already spent, if that is longer."""
_DUET_NS = _MINUTE_NS
"""The shortest suggested duet."""
_OF_LOAD = 6
"""A server's share of a duet of two: a third, since the baseline runs twice, and half of that is load."""


@dataclass(frozen=True)
class _Scatter:
    """The scatter of a comparison's rounds, as standard deviations of the log ratio.

    `within` is the part that batches explain, which longer loads average out; None if it is not known.
    """

    rounds: int
    total: float
    within: float | None
    load_ns: int

    @property
    def between(self) -> float:
        """The scatter that remains however long loads are."""
        return math.sqrt(max(0.0, self.total**2 - (self.within or 0.0) ** 2))

    def load_for(self, difference: float) -> int | None:
        """The length of loads with which as few rounds show the difference; None if no length is enough."""
        wanted = scatter_showing(difference, self.rounds)
        if self.within is None or wanted <= self.between:
            return None
        return math.ceil(self.load_ns * self.within**2 / (wanted**2 - self.between**2))

    def duet_for(self, difference: float) -> int | None:
        """The length of a duet whose batches scatter as in trials; None if it is not known."""
        if self.within is None:
            return None
        loaded_ns = self.load_ns * (2 * self.within / math.log1p(difference)) ** 2
        return max(_DUET_NS, math.ceil(_OF_LOAD * loaded_ns))


def resolutions(
    results: Mapping[str, CellResult], comparisons: Sequence[Comparison], plan: Plan, folder: str | None = ""
) -> dict[str, tuple[Finding, ...]]:
    """A finding for each cell that has undecided comparisons, by the cell's id.

    The run is in `folder`, if that is known; None if it is not kept, so that nothing can be added to it.
    """
    undecided_by_cell: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.verdict is Verdict.INCONCLUSIVE and comparison.resolution is not None:
            undecided_by_cell.setdefault(comparison.cell_id, []).append(comparison)
    if not undecided_by_cell:
        return {}
    round_ns = expected_length_ns(plan) // (1 + max((step.round for step in plan.steps), default=0))
    findings = {}
    for cell_id, alike in undecided_by_cell.items():
        cell, scatters = results[cell_id].cell, tuple(_scatter(comparison, results) for comparison in alike)
        known = [(comparison.metric, comparison.resolution or 0.0) for comparison in alike]
        findings[cell_id] = undecided(cell, known, _Remedy(plan, round_ns, folder, scatters, cell).text())
    return findings


def _scatter(comparison: Comparison, results: Mapping[str, CellResult]) -> _Scatter | None:
    """The scatter of a comparison's rounds; None if more rounds would not narrow its interval."""
    total = scatter_of(comparison.ratio, _bias(comparison)) if comparison.ratio else None
    if comparison.ratio is None or total is None:
        return None
    cell, rounds = results[comparison.cell_id], comparison.ratio.n
    if comparison.duet:
        return _Scatter(rounds, total, comparison.duet.blocks_se, cell.cell.load.duration_ns)
    baseline = results[comparison.baseline_id]
    having = cell.having(comparison.metric), baseline.having(comparison.metric)
    batches = within_trials(cell.sample(comparison.metric), baseline.sample(comparison.metric)) if all(having) else None
    within = math.sqrt(batches.variance * rounds) if batches else None
    for side in (cell, baseline):
        side.release()
    return _Scatter(rounds, total, within, cell.cell.load.duration_ns)


@dataclass(frozen=True)
class _Remedy:
    """What would show a worthwhile difference in all undecided comparisons of a cell."""

    plan: Plan
    round_ns: int
    folder: str | None
    scatters: tuple[_Scatter | None, ...]
    cell: Cell

    def text(self) -> str:
        """`for 5% take ...`, or that these loads cannot show it, and what can."""
        worth, rounds = f"{WORTH_SHOWING:.0%}", self._rounds()
        others = [other for other in (self._duet(), self._longer_loads()) if other]
        if rounds:
            return f"for {worth} take {', or '.join([rounds, *others])}"
        if others:
            return f"these loads cannot show {worth}, but {', or '.join(others)}{',' * (len(others) > 1)} can"
        return f"nothing that takes {_in_minutes(self._bound_ns)} shows {worth}{self._why()}"

    @property
    def _rounds_made(self) -> int:
        return max((scatter.rounds for scatter in self.scatters if scatter), default=1)

    @property
    def _bound_ns(self) -> int:
        return max(HOUR_NS, TIMES_SPENT * self._rounds_made * self.round_ns)

    def _rounds(self) -> str:
        """The command that makes enough rounds; empty if they take too long."""
        needed = [rounds_for(scatter.total, WORTH_SHOWING) if scatter else None for scatter in self.scatters]
        if None in needed:
            return ""
        rounds = max(self._rounds_made + 1, *(count for count in needed if count is not None))
        more_ns = self.round_ns * (rounds - self._rounds_made)
        if more_ns > self._bound_ns:
            return ""
        where, auto = as_argument(self.folder) if self.folder else "DIR", self.plan.suite.auto
        if auto is None:
            return f"`redline run --resume {where} --trials {rounds}` (about {_in_minutes(more_ns)} more)"
        # At least a minute more than the budget: a shorter one would add nothing.
        budget_ns = auto.budget_ns or 0
        minutes = max(math.ceil(self.round_ns * rounds / _MINUTE_NS), budget_ns // _MINUTE_NS + 1)
        if auto.precision is not None:
            return ""
        return f"`--for {minutes}m`" if self.folder is None else f"`redline ab --resume {where} --for {minutes}m`"

    def _duet(self) -> str:
        """The length of a duet, by the scatter of batches in trials; empty if there is a duet or cannot be."""
        if self.plan.duets or not self.cell.load.fits_duet:
            return ""
        lengths = [scatter.duet_for(WORTH_SHOWING) if scatter else None for scatter in self.scatters]
        known = [length for length in lengths if length is not None]
        if len(known) < len(lengths) or max(known) > self._bound_ns:
            return ""
        return f"a duet of {_in_minutes(max(known))}"

    def _longer_loads(self) -> str:
        """The necessary length of loads; empty if they take too long, or no length is enough."""
        lengths = [scatter.load_for(WORTH_SHOWING) if scatter else None for scatter in self.scatters]
        if None in lengths or self.cell.load.changes:
            return ""
        longest = math.ceil(max(length for length in lengths if length is not None) / _ROUND_NS) * _ROUND_NS
        own_ns = self.cell.load.duration_ns
        if longest <= own_ns or self._rounds_made * self.round_ns * longest / own_ns > self._bound_ns:
            return ""
        return f"`-d {longest // _SECOND_NS}s`"

    def _why(self) -> str:
        known = [scatter for scatter in self.scatters if scatter]
        if not known:
            return ""
        worst = max(known, key=lambda scatter: scatter.total)
        what = "starts" if self.plan.duets else "rounds"
        return f": {what} differ by {percent(round(math.expm1(min(worst.total, 5.0)), 2))}"


def _bias(comparison: Comparison) -> float | None:
    return comparison.duet.bias if comparison.duet else 0.0


def _in_minutes(ns: int) -> str:
    return duration(max(1, math.ceil(ns / _MINUTE_NS)) * _MINUTE_NS)


def forecast(plan: Plan, before: Report) -> tuple[ShownDifference, ...]:
    """What the plan can show in every comparison of an earlier report with the same cells and design."""
    known = []
    for comparison in before.comparisons:
        judged = comparison.ratio if comparison.primary else None
        scatter = scatter_of(judged, _bias(comparison)) if judged else None
        alike = (
            comparison.cell_id in plan.cells
            and comparison.baseline_id in plan.cells
            and bool(comparison.duet) == bool(plan.duets)
        )
        if scatter is not None and alike and plan.suite.trials > 1:
            shown = ShownDifference(
                cell_id=comparison.cell_id,
                baseline_id=comparison.baseline_id,
                metric=comparison.metric,
                difference=shown_by(scatter, plan.suite.trials),
            )
            known.append(shown)
    return tuple(known)
