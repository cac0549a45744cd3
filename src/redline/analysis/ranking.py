"""Rank the subjects of a scenario and load, with equal ranks if nothing distinguishes them. Pure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from redline.analysis.results import CellResult
from redline.model import Bound, CellReport, Comparison, Estimate, Metric, Place, Ranking, Suite, Variant, Verdict
from redline.model.variant import PLACE, ROUTE


def rankings(
    results: Mapping[str, CellResult],
    cells: Iterable[CellReport],
    suite: Suite,
    comparisons: Iterable[Comparison] = (),
    of_other_pairs: Iterable[Comparison] = (),
) -> tuple[Ranking, ...]:
    """Every ranking of two or more cells, in the order of the run's cells. docs/concepts/statistics.md has the rule.

    `comparisons` are those of cells with their baselines, `of_other_pairs` all others in the report.
    """
    estimates = {cell.cell_id: cell.known for cell in cells}
    against, others = tuple(comparisons), tuple(of_other_pairs)
    axes = _shared_axes(suite.variants)
    groups: dict[tuple[str, str, str], list[CellResult]] = {}
    for cell in results.values():
        if cell.cell.role == "subject":
            setting = ", ".join(f"{name}={cell.cell.variant.settings[name]}" for name in axes)
            key = (cell.cell.scenario.name, cell.cell.load.name, setting)
            groups.setdefault(key, []).append(cell)
    made = []
    for (scenario, load, setting), members in groups.items():
        first = members[0].cell.load
        if any(member.cell.load != first for member in members):
            continue  # rates that are shares of each group's own capacity: no server is faster for having less load
        metric = suite.metric or first.primary_metric
        # Perturbed trials are never compared, so they are not ranked either.
        counting = [member for member in members if member.comparable and not member.perturbed]
        levels = {member.id: estimates[member.id].get(metric) for member in counting}
        ranked = places(
            {name: level for name, level in levels.items() if level},
            [comparison for comparison in against if comparison.metric is metric],
            [comparison for comparison in others if comparison.metric is metric],
            higher_is_better=metric.higher_is_better,
        )
        bounded = [
            Bounded(member.id, bound, reach)
            for member in counting
            if (bound := member.bound(metric)) and (reach := member.reach(metric))
        ]
        ranked = with_bounds(ranked, bounded, higher_is_better=metric.higher_is_better)
        if len(ranked) > 1:
            placed = {place.cell_id for place in ranked}
            without = {member.id: _why_without(member, metric) for member in members if member.id not in placed}
            made.append(
                Ranking(scenario=scenario, load=load, setting=setting, metric=metric, places=ranked, without=without)
            )
    return tuple(made)


def _why_without(cell: CellResult, metric: Metric) -> str:
    if not cell.trials:
        return "it has no trials"
    if cell.perturbed:
        return "it was measured with a monitor that perturbs"
    if not cell.comparable:
        return cell.why_invalid
    bound = cell.bound(metric)
    return f"{metric.words} is {bound.unknown}" if bound else f"{metric.words} has no interval"


class Bounded(NamedTuple):
    """A cell of which only a bound is known, and where its number lies, with the interval of the bound."""

    cell_id: str
    bound: Bound
    reach: tuple[float, float]


def with_bounds(ranked: tuple[Place, ...], bounded: Sequence[Bounded], *, higher_is_better: bool) -> tuple[Place, ...]:
    """The places with those cells whose bounds decide that they are before, or after, all that are ranked.

    A bound leaves one side open: cells that are bounded from the same side are not distinguished.
    """
    ends = [place.estimate.interval for place in ranked if place.estimate and place.estimate.interval]
    highest, lowest = max((high for _, high in ends), default=0.0), min((low for low, _ in ends), default=math.inf)
    below = [cell for cell in bounded if cell.reach[1] < lowest and math.isfinite(cell.reach[1])]
    above = [cell for cell in bounded if cell.reach[0] > highest]
    if not ends and max((c.reach[1] for c in below), default=math.inf) >= min((c.reach[0] for c in above), default=0.0):
        return ranked  # no number, and bounds that do not tell any of them apart
    first, last = (above, below) if higher_is_better else (below, above)
    moved = [place.after(len(first)) for place in ranked]
    after = len(first) + len(moved) + 1
    return (
        *(Place(rank=1, cell_id=cell.cell_id, estimate=None, bound=cell.bound) for cell in first),
        *moved,
        *(Place(rank=after, cell_id=cell.cell_id, estimate=None, bound=cell.bound) for cell in last),
    )


def places(
    estimates: Mapping[str, Estimate],
    comparisons: Iterable[Comparison] = (),
    of_other_pairs: Iterable[Comparison] = (),
    *,
    higher_is_better: bool,
) -> tuple[Place, ...]:
    """The estimates with an interval, best first; equal values in the order of their names.

    A place shares the rank above it if nothing distinguishes it from any place of that rank; otherwise its rank is its
    position, from 1.
    """
    sign = -1 if higher_is_better else 1
    known = {name: level for name, level in estimates.items() if level.interval}
    field = _Field(known, tuple(comparisons), tuple(of_other_pairs))
    ordered = sorted(known, key=lambda name: (sign * field.values[name], name))
    ranked: list[Place] = []
    for position, name in enumerate(ordered, start=1):
        alike = [place.cell_id for place in ranked if place.rank == ranked[-1].rank]
        shares = bool(alike) and not any(field.distinguishes(name, other) for other in alike)
        rank = ranked[-1].rank if shares else position
        comparison = field.against.get(name)
        ratio, in_duets = (comparison.ratio, comparison.duet is not None) if comparison else (None, False)
        ranked.append(Place(rank=rank, cell_id=name, estimate=known[name], ratio=ratio, in_duets=in_duets))
    return tuple(ranked)


@dataclass(frozen=True)
class Standing:
    """The logarithm of a cell's ratio to the first of its baselines, `root`, with its interval."""

    root: str
    value: float = 0.0
    low: float = 0.0
    high: float = 0.0


class _Field:
    """The cells of a ranking: their levels by trials alone, and the comparisons, which are more precise."""

    def __init__(
        self,
        levels: Mapping[str, Estimate],
        comparisons: Iterable[Comparison],
        of_other_pairs: Iterable[Comparison],
    ) -> None:
        self.levels = levels
        self._intervals = {name: level.interval for name, level in levels.items() if level.interval}
        with_interval = list(filter(_bounds, comparisons))
        self.against = {comparison.cell_id: comparison for comparison in with_interval if comparison.cell_id in levels}
        others = filter(_bounds, of_other_pairs)
        self._pairs = {(pair.cell_id, pair.baseline_id): pair for pair in (*others, *with_interval)}
        self._standings = {name: standing(name, self.against) for name in levels}

    @cached_property
    def values(self) -> dict[str, float]:
        """The logarithm of every cell's value. Compared cells differ by their ratios, around a common level.

        That level is the mean over the trials of all of them.
        """
        levels: dict[str, list[float]] = {}
        for name, at in self._standings.items():
            level = self.levels[name].value
            levels.setdefault(at.root, []).append(math.log(level) - at.value if level > 0 else -math.inf)
        return {name: fmean(levels[at.root]) + at.value for name, at in self._standings.items()}

    def distinguishes(self, cell_id: str, other: str) -> bool:
        """Whether the cells' comparison shows a difference, or else intervals (to a common root) do not overlap."""
        for pair in ((cell_id, other), (other, cell_id)):
            if pair in self._pairs:
                return self._differ(self._pairs[pair])
        ours, theirs = self._standings[cell_id], self._standings[other]
        if ours.root == theirs.root:
            return ours.low > theirs.high or theirs.low > ours.high
        (low, high), (least, most) = self._intervals[cell_id], self._intervals[other]
        return low > most or least > high

    def _differ(self, comparison: Comparison) -> bool:
        """Whether a comparison shows a difference in the same direction as the ranking, which may rest on more data."""
        bounds = _bounds(comparison)
        if bounds is None or comparison.verdict in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE):
            return False
        above = self.values[comparison.cell_id] - self.values[comparison.baseline_id]
        return (bounds[0] > 0 and above > 0) or (bounds[1] < 0 and above < 0)


def standing(name: str, against: Mapping[str, Comparison]) -> Standing:
    """The standing along the chain of baselines; the ends of the intervals add up, which is conservative."""
    at, passed = Standing(name), {name}
    while (step := against.get(at.root)) is not None and step.ratio is not None and step.baseline_id not in passed:
        low, high = _bounds(step) or (0.0, 0.0)
        value = at.value + math.log(step.ratio.value)
        at = Standing(step.baseline_id, value, at.low + low, at.high + high)
        passed.add(at.root)
    return at


def _bounds(comparison: Comparison) -> tuple[float, float] | None:
    """The ends of the interval of the logarithm of a ratio; None without an interval."""
    return comparison.ratio.log_interval if comparison.ratio else None


def _shared_axes(variants: tuple[Variant, ...]) -> tuple[str, ...]:
    """The options and flags that all servers have and whose values differ, by name."""
    settings = [variant.settings for variant in variants]
    shared = set.intersection(*map(set, settings)) - {ROUTE, PLACE} if settings else set()
    return tuple(sorted(name for name in shared if len({setting[name] for setting in settings}) > 1))
