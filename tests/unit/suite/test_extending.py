"""Further starts of a part of a run: their rounds, positions and time."""

from collections import Counter

from redline.model import AutoTrials, Plan
from redline.suite import affordable, expected_starts_ns, with_further_starts, with_rounds
from tests.fakes.compared import Cost, compared_run
from tests.fakes.recordings import simulated_run

SECOND = 10**9
RUN = simulated_run(trials=3)
PLAN = RUN.manifest.plan
CELLS = [(cell_id,) for cell_id in PLAN.cells]


def everything(plan: Plan) -> frozenset[int]:
    return frozenset(step.position for step in plan.steps)


def test_a_further_round_has_what_is_asked_for_alone() -> None:
    longer = with_further_starts(PLAN, everything(PLAN), CELLS[:2], SECOND)
    added = [trial for trial in longer.trials if trial not in PLAN.trials]
    assert longer.trials[: len(PLAN.trials)] == PLAN.trials
    assert sorted((trial.cell_id,) for trial in added) == sorted(CELLS[:2])
    assert {trial.round for trial in added} == {3}
    assert [trial.position for trial in added] == [len(PLAN.trials), len(PLAN.trials) + 1]


def test_what_was_planned_and_not_made_is_left_out() -> None:
    """A comparison within a budget plans more rounds than its time has."""
    plan = compared_run({"a": Cost(), "b": Cost()}, starts=5).manifest.plan
    done = frozenset(duet.position for duet in plan.duets if duet.round < 2)
    groups = [plan.duets[0].cell_ids]
    longer = with_further_starts(plan, done, groups, 30 * SECOND)
    assert [duet.round for duet in longer.duets] == [0, 0, 1, 1, 2]
    assert longer.duets[-1].position == plan.next_position, "no recording has it"
    assert longer.suite.auto == AutoTrials(at_least=3, budget_ns=90 * SECOND)
    assert with_further_starts(longer, everything(longer), groups, 0).suite.auto == longer.suite.auto


def test_whole_rounds_fill_up_what_was_left_out() -> None:
    longer = with_further_starts(PLAN, everything(PLAN), CELLS[:1], SECOND)
    filled = with_rounds(longer, 5)
    assert set(Counter(trial.cell_id for trial in filled.trials).values()) == {5}
    assert len({trial.position for trial in filled.trials}) == len(filled.trials)


def test_what_fits_into_the_time_is_chosen_in_order() -> None:
    each_ns = [expected_starts_ns(PLAN, [group]) for group in CELLS]
    single = [(group,) for group in CELLS]
    assert affordable(PLAN, single, each_ns[0]) == (CELLS[0],)
    assert affordable(PLAN, single, each_ns[0] - 1) == ()
    assert affordable(PLAN, single, sum(each_ns)) == tuple(CELLS)


def test_a_pair_of_trials_is_made_as_a_whole_and_its_baseline_once() -> None:
    baseline, first, second = CELLS[:3]
    pairs = [(baseline, first), (baseline, second)]
    both_ns = expected_starts_ns(PLAN, [baseline, first])
    assert affordable(PLAN, pairs, both_ns - 1) == ()
    assert affordable(PLAN, pairs, both_ns) == (baseline, first)
    assert affordable(PLAN, pairs, both_ns + expected_starts_ns(PLAN, [second])) == (baseline, first, second)


def test_duets_of_the_same_servers_share_a_start() -> None:
    plan = compared_run({"a": Cost(), "b": Cost()}, starts=3).manifest.plan
    first, second = plan.duets[0].cell_ids, plan.duets[1].cell_ids
    apart = expected_starts_ns(plan, [first]) + expected_starts_ns(plan, [second])
    assert expected_starts_ns(plan, [first, second]) < apart
