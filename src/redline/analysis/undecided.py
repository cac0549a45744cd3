"""Which comparisons of a run further starts are for, and how long these take. Pure.

Whoever looks after every round and stops at p < 0.05 finds differences that are not there. So a comparison is *sure*,
and gets no further starts, only at p <= 0.001: the boundary of Haybittle and Peto for early looks, which leaves the
last look its 5% (docs/decisions/0055-what-is-undecided-first.md).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from redline.model import Comparison, Plan, PlannedTrial, Report, Verdict
from redline.suite import expected_starts_ns
from redline.suite.extending import Group, Unit

SURE_P = 0.001


@dataclass(frozen=True)
class Undecided:
    """The comparisons of a run's primary metrics by what is known of them, and what a further start of each takes.

    `names` are those of the cells that are undecided. `units` are what is not sure needs: of undecided comparisons
    first, then those with the fewest starts.
    """

    sure: int
    decided: int
    names: tuple[str, ...]
    impossible: int
    units: tuple[Unit, ...]
    round_ns: int

    @property
    def groups(self) -> tuple[Group, ...]:
        """The trials and duets of a whole round of what is not sure."""
        return tuple(dict.fromkeys(group for unit in self.units for group in unit))


def what_is_undecided(plan: Plan, report: Report, pace: float = 1.0) -> Undecided:
    """What is known so far of the comparisons of a run. Starts take `pace` times as long as its plan expects."""
    primary = [comparison for comparison in report.comparisons if comparison.primary]
    possible = [comparison for comparison in primary if not comparison.refused]
    undecided = [comparison for comparison in possible if not _is_decided(comparison)]
    decided = [comparison for comparison in possible if _is_decided(comparison) and not _is_sure(comparison)]
    units = _units(plan, undecided, decided)
    round_ = dict.fromkeys(group for unit in units for group in unit)
    return Undecided(
        sure=len(possible) - len(undecided) - len(decided),
        decided=len(decided),
        names=tuple(dict.fromkeys(plan.cells[comparison.cell_id].slug for comparison in undecided)),
        impossible=len(primary) - len(possible),
        units=units,
        round_ns=round(pace * expected_starts_ns(plan, [*round_])),
    )


def _is_decided(comparison: Comparison) -> bool:
    return comparison.verdict not in (None, Verdict.INCONCLUSIVE)


def _is_sure(comparison: Comparison) -> bool:
    p = comparison.p_equivalent if comparison.verdict is Verdict.EQUIVALENT else comparison.p
    return p is not None and p <= SURE_P


def _units(plan: Plan, undecided: Sequence[Comparison], decided: Sequence[Comparison]) -> tuple[Unit, ...]:
    starts = Counter((step.cell_id,) if isinstance(step, PlannedTrial) else step.cell_ids for step in plan.steps)
    duets = dict.fromkeys(duet.cell_ids for duet in plan.duets)
    found = dict[Unit, bool]()
    for comparison in (*undecided, *decided):
        pair = {comparison.cell_id, comparison.baseline_id}
        shared = [cell_ids for cell_ids in duets if pair <= set(cell_ids)]
        alone = ((comparison.baseline_id,), (comparison.cell_id,))
        if shared or all(group in starts for group in alone):
            found.setdefault(tuple(shared) or alone, comparison in undecided)
    return tuple(sorted(found, key=lambda unit: (not found[unit], starts[unit[-1]])))
