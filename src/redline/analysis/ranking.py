"""The subjects of one scenario and load in order, with equal ranks where nothing distinguishes them. Pure."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from redline.analysis.judged import JudgedCell
from redline.model import CellReport, Comparison, Estimate, Place, Ranking, Suite, Variant, Verdict
from redline.model.plan import PLACE, ROUTE


def rankings(
    judged: Mapping[str, JudgedCell],
    cells: Iterable[CellReport],
    suite: Suite,
    comparisons: Iterable[Comparison] = (),
    of_other_pairs: Iterable[Comparison] = (),
) -> tuple[Ranking, ...]:
    """Every ranking of two or more cells, in the order of the run's cells. docs/concepts/statistics.md has the rule.

    `comparisons` are those of cells with their baselines, `of_other_pairs` all others that the report makes.
    """
    estimates = {cell.cell_id: cell.estimates for cell in cells}
    against, others = tuple(comparisons), tuple(of_other_pairs)
    axes = _shared_axes(suite.variants)
    groups: dict[tuple[str, str, str], list[JudgedCell]] = {}
    for one in judged.values():
        if one.cell.role == "subject":
            key = (one.cell.scenario.name, one.cell.load.name, _setting(one.cell.variant, axes))
            groups.setdefault(key, []).append(one)
    made = []
    for (scenario, load, setting), members in groups.items():
        first = members[0].cell.load
        if any(member.cell.load != first for member in members):
            continue  # rates that are shares of each group's own capacity: no server is faster for having less load
        metric = first.primary_metric
        found = {member.id: estimates[member.id].get(metric) for member in members if _counts(member)}
        ranked = places(
            {name: one for name, one in found.items() if one},
            [one for one in against if one.metric is metric],
            [one for one in others if one.metric is metric],
            higher_is_better=metric.higher_is_better,
        )
        if len(ranked) > 1:
            made.append(Ranking(scenario=scenario, load=load, setting=setting, metric=metric, places=ranked))
    return tuple(made)


def places(
    estimates: Mapping[str, Estimate],
    comparisons: Iterable[Comparison] = (),
    of_other_pairs: Iterable[Comparison] = (),
    *,
    higher_is_better: bool,
) -> tuple[Place, ...]:
    """Those with an interval, best first; equal values in the order of their names.

    A place has the rank of the one above it if nothing distinguishes it from any of that rank, else its own position
    from 1.
    """
    sign = -1 if higher_is_better else 1
    known = {name: one for name, one in estimates.items() if one.low is not None and one.high is not None}
    field = _Field(known, tuple(comparisons), tuple(of_other_pairs))
    ordered = sorted(known, key=lambda name: (sign * field.values[name], name))
    ranked: list[Place] = []
    for position, name in enumerate(ordered, start=1):
        alike = [place.cell_id for place in ranked if place.rank == ranked[-1].rank]
        shares = bool(alike) and not any(field.distinguishes(name, other) for other in alike)
        rank = ranked[-1].rank if shares else position
        found = field.against.get(name)
        ratio, in_duets = (found.ratio, found.duet is not None) if found else (None, False)
        ranked.append(Place(rank=rank, cell_id=name, estimate=known[name], ratio=ratio, in_duets=in_duets))
    return tuple(ranked)


@dataclass(frozen=True)
class _Standing:
    """The logarithm of what a cell is to the first of its baselines, `root`, with its interval."""

    root: str
    value: float = 0.0
    low: float = 0.0
    high: float = 0.0


class _Field:
    """The cells of a ranking: their levels by trials of each alone, and what compares them better than these do."""

    def __init__(
        self,
        levels: Mapping[str, Estimate],
        comparisons: Iterable[Comparison],
        of_other_pairs: Iterable[Comparison],
    ) -> None:
        self.levels = levels
        with_interval = [comparison for comparison in comparisons if _bounds(comparison)]
        self.against = {one.cell_id: one for one in with_interval if one.cell_id in levels}
        others = (one for one in of_other_pairs if _bounds(one))
        self._pairs = {(one.cell_id, one.baseline_id): one for one in (*others, *with_interval)}
        self._standings = {name: _standing(name, self.against) for name in levels}

    @cached_property
    def values(self) -> dict[str, float]:
        """The logarithm of each cell's value: of what is compared it differs by the ratios.

        Those that are compared with one another have one level, the mean of what their trials say of it.
        """
        levels: dict[str, list[float]] = {}
        for name, at in self._standings.items():
            level = self.levels[name].value
            levels.setdefault(at.root, []).append(math.log(level) - at.value if level > 0 else -math.inf)
        return {name: fmean(levels[at.root]) + at.value for name, at in self._standings.items()}

    def distinguishes(self, one: str, other: str) -> bool:
        """As the comparison of the two says; else if intervals do not overlap, of ratios if they have a common root."""
        for pair in ((one, other), (other, one)):
            if pair in self._pairs:
                return self._differ(self._pairs[pair])
        ours, theirs = self._standings[one], self._standings[other]
        if ours.root == theirs.root:
            return ours.low > theirs.high or theirs.low > ours.high
        return not _overlap(self.levels[one], self.levels[other])

    def _differ(self, found: Comparison) -> bool:
        """Whether it says so, and the ranking, which may rest on more than it, has the two in the same order."""
        bounds = _bounds(found)
        if bounds is None or found.verdict in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE):
            return False
        above = self.values[found.cell_id] - self.values[found.baseline_id]
        return (bounds[0] > 0 and above > 0) or (bounds[1] < 0 and above < 0)


def _standing(name: str, against: Mapping[str, Comparison]) -> _Standing:
    """Down the chain of baselines; the ends of the intervals add up, which is wide rather than narrow."""
    at, passed = _Standing(name), {name}
    while (found := against.get(at.root)) is not None and found.ratio is not None and found.baseline_id not in passed:
        low, high = _bounds(found) or (0.0, 0.0)
        value = at.value + math.log(found.ratio.value)
        at = _Standing(found.baseline_id, value, at.low + low, at.high + high)
        passed.add(at.root)
    return at


def _bounds(found: Comparison) -> tuple[float, float] | None:
    """The ends of the interval of the logarithm of a ratio; None without one."""
    ratio = found.ratio
    if ratio is None or ratio.low is None or ratio.high is None or ratio.low <= 0:
        return None
    return math.log(ratio.low), math.log(ratio.high)


def _overlap(one: Estimate, other: Estimate) -> bool:
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high


def _counts(one: JudgedCell) -> bool:
    """A perturbed trial is never compared, so it is not ranked either."""
    return one.valid and not one.perturbed


def _shared_axes(variants: tuple[Variant, ...]) -> tuple[str, ...]:
    """The options, and flags, that every server has and that do not have one value throughout, by name."""
    settings = [variant.settings for variant in variants]
    shared = set.intersection(*map(set, settings)) - {ROUTE, PLACE} if settings else set()
    return tuple(sorted(name for name in shared if len({setting[name] for setting in settings}) > 1))


def _setting(variant: Variant, axes: tuple[str, ...]) -> str:
    """`interceptor=off`; several by name, with commas."""
    return ", ".join(f"{name}={variant.settings[name]}" for name in axes)
