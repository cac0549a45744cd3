"""Plans of runs that go on: further rounds of all, a longer budget, or further starts of a part. Pure."""

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from redline.model import Plan, PlannedDuet, PlannedTrial
from redline.suite.planning import expected_starts_ns, rounds_of

Group = tuple[str, ...]
"""The cell of a trial, or the cells of a duet, the baseline's first."""
Unit = tuple[Group, ...]
"""What a comparison needs in a round: a duet, or a trial of either server."""


def with_rounds(plan: Plan, trials: int) -> Plan:
    """The plan with further rounds, until there are `trials` of each cell and duet."""
    had = Counter(map(_group, plan.steps))
    first, most = _next_round(plan), max((trials - number for number in had.values()), default=0)
    rounds = {first + more: [group for group in _groups(plan) if had[group] + more < trials] for more in range(most)}
    added = rounds_of(plan.suite, plan.cells, rounds, first_position=plan.next_position)
    return plan.extended(plan.suite.lasting(max(trials, plan.suite.trials)), *added)


def with_budget(plan: Plan, budget_ns: int) -> Plan:
    """The plan with a longer budget, and further rounds of the same starts."""
    auto = plan.suite.auto
    assert auto is not None, "a plan with a budget"
    assert auto.budget_ns is not None, "a plan with a budget"
    trials = max(plan.suite.trials, -(-plan.suite.trials * budget_ns // auto.budget_ns))
    longer = plan.extended(plan.suite.lasting(plan.suite.trials, budget_ns), (), ())
    return with_rounds(longer, trials)


def with_further_starts(plan: Plan, done: AbstractSet[int], groups: Sequence[Group], more_ns: int) -> Plan:
    """The plan of what is `done`, by position, and a round of these trials and duets alone.

    A budget grows by `more_ns`, the time that they may take.
    """
    suite, only = plan.suite, plan.only(done)
    if suite.auto is not None and suite.auto.budget_ns is not None:
        suite = suite.lasting(suite.trials, suite.auto.budget_ns + more_ns)
    rounds = {_next_round(only): groups}
    return only.extended(suite, *rounds_of(suite, plan.cells, rounds, first_position=plan.next_position))


def affordable(plan: Plan, units: Sequence[Unit], within_ns: float) -> tuple[Group, ...]:
    """The trials and duets of the first of these units whose starts take at most this long together."""
    chosen = list[Group]()
    for unit in units:
        more = [group for group in unit if group not in chosen]
        if expected_starts_ns(plan, [*chosen, *more]) <= within_ns:
            chosen += more
    return tuple(chosen)


def _groups(plan: Plan) -> list[Group]:
    """What a whole round of the plan has."""
    return [_group(step) for step in plan.steps if step.round == 0]


def _group(step: PlannedTrial | PlannedDuet) -> Group:
    return (step.cell_id,) if isinstance(step, PlannedTrial) else step.cell_ids


def _next_round(plan: Plan) -> int:
    return 1 + max((step.round for step in plan.steps), default=-1)
