"""The subjects of one scenario and load in order, with equal ranks where intervals overlap. Pure."""

from collections.abc import Iterable, Mapping

from redline.analysis.judged import JudgedCell
from redline.model import CellReport, Estimate, Place, Ranking, Suite, Variant
from redline.model.plan import PLACE, ROUTE


def rankings(judged: Mapping[str, JudgedCell], cells: Iterable[CellReport], suite: Suite) -> tuple[Ranking, ...]:
    """Every ranking of two or more cells, in the order of the run's cells. docs/concepts/statistics.md has the rule."""
    estimates = {cell.cell_id: cell.estimates for cell in cells}
    axes = _shared_axes(suite.variants)
    groups: dict[tuple[str, str, str], list[JudgedCell]] = {}
    for one in judged.values():
        if one.cell.role == "subject":
            key = (one.cell.scenario.name, one.cell.load.name, _setting(one.cell.variant, axes))
            groups.setdefault(key, []).append(one)
    made = []
    for (scenario, load, setting), members in groups.items():
        first = members[0].cell.load
        if any(one.cell.load != first for one in members):
            continue  # rates that are shares of each group's own capacity: no server is faster for having less load
        metric = first.primary_metric
        found = {one.id: estimates[one.id].get(metric) for one in members if _counts(one)}
        ranked = places({name: one for name, one in found.items() if one}, higher_is_better=metric.higher_is_better)
        if len(ranked) > 1:
            made.append(Ranking(scenario=scenario, load=load, setting=setting, metric=metric, places=ranked))
    return tuple(made)


def places(estimates: Mapping[str, Estimate], *, higher_is_better: bool) -> tuple[Place, ...]:
    """Those with an interval, best first; equal values in the order of their names.

    A place has the rank of the first of its rank as long as their intervals overlap, else its own position from 1.
    """
    sign = -1 if higher_is_better else 1
    ordered = sorted(
        ((name, one) for name, one in estimates.items() if one.low is not None and one.high is not None),
        key=lambda item: (sign * item[1].value, item[0]),
    )
    ranked: list[Place] = []
    for position, (name, one) in enumerate(ordered, start=1):
        leader = next((place for place in ranked if place.rank == ranked[-1].rank), None)
        same = leader is not None and _overlap(leader.estimate, one)
        ranked.append(Place(rank=leader.rank if leader and same else position, cell_id=name, estimate=one))
    return tuple(ranked)


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
    return tuple(sorted(name for name in shared if len({each[name] for each in settings}) > 1))


def _setting(variant: Variant, axes: tuple[str, ...]) -> str:
    """`interceptor=off`; several by name, with commas."""
    return ", ".join(f"{name}={variant.settings[name]}" for name in axes)
