"""Fresh starts of a server at both ends of its answer: which are needed, and the effect of their differences."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.search import Converged, Evidence, Limit, Proposal, Search, Settings
from redline.search.ends import Checks, End, EndCheck
from redline.suite import parse_objectives
from tests.fakes.cliffs import cliff
from tests.studies.starts import found

P99 = parse_objectives("p99 < 5ms")


def test_each_end_gets_its_checks_lowest_first_and_turn_by_turn() -> None:
    checks = Checks(precision=0.03, starts=2)
    low, high = End("good", "low", 1000.0), End("good", "high", 1050.0)
    made: list[tuple[str, int]] = []
    while (check := checks.next([high, low], len(made))) is not None:
        made.append((check.end.side, check.start))
        checks.made.append(check)
    assert made == [("low", 1), ("high", 1), ("low", 2), ("high", 2)]


def test_an_end_that_has_moved_is_checked_again_where_nothing_is_started() -> None:
    checks = Checks(precision=0.03)
    checks.made.append(EndCheck(End("good", "low", 1000.0), 5))
    near, far = End("good", "low", 1020.0), End("good", "low", 900.0)
    assert checks.next([near], 6) is None
    assert checks.next([far], 6) == EndCheck(far, 6)


def test_an_end_that_has_moved_waits_for_the_next_start() -> None:
    checks = Checks(precision=0.03, starts=2)
    low, high, moved = End("good", "low", 1000.0), End("good", "high", 1050.0), End("good", "low", 900.0)
    checks.made.append(EndCheck(low, 5, start=1))
    assert checks.next([moved, high], 6) == EndCheck(high, 6, start=1)
    checks.made.append(EndCheck(high, 6, start=1))
    assert checks.next([moved, high], 7) == EndCheck(moved, 7, start=2)


def steps_of(search: Search, at_per_s: float = 1700.0) -> tuple[list[tuple[int, float]], Converged]:
    """Every proposal's turn and rate, on a server that fails from a rate on."""
    server, seen = cliff(at_per_s), []
    while isinstance(step := search.next(), Proposal):
        seen.append((step.fresh_start, step.rate_per_s))
        search.add(server(step.rate_per_s))
    assert isinstance(step, Converged)
    return seen, step


def test_fresh_starts_come_last_beside_the_probes_and_confirm() -> None:
    search = Search({"good": P99}, Settings(start_per_s=1000, trials=3, looks=False))
    seen, end = steps_of(search)
    (limit,) = end.limits
    turns = [turn for turn, _ in seen]
    assert turns[-6:] == [1, 1, 2, 2, 3, 3]
    assert not any(turns[:-6])
    assert [rate for _, rate in seen[-2:]] == [limit.low_per_s, limit.high_per_s]
    assert end.confirmed
    assert len(seen) <= search.settings.most_probes(1) == 18


def test_without_trials_no_fresh_start_is_asked_for() -> None:
    seen, end = steps_of(Search({"good": P99}, Settings(start_per_s=1000)))
    assert not any(turn for turn, _ in seen)
    assert not any(limit.starts_differ for limit in end.limits)


def test_a_start_that_speaks_against_the_answer_leaves_it_unconfirmed() -> None:
    search = Search({"good": P99}, Settings(start_per_s=1000, trials=2))
    good, worse = cliff(1700.0), cliff(1500.0)
    while isinstance(step := search.next(), Proposal):
        search.add((worse if step.fresh_start == 2 else good)(step.rate_per_s))
    assert isinstance(step, Converged)
    assert not step.confirmed


@pytest.mark.long
@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(300, 3000), min_size=5, max_size=5), st.integers(2, 4))
def test_never_more_starts_than_were_planned(capacities: list[float], trials: int) -> None:
    sets = {"good": P99, "acceptable": parse_objectives("p99 < 50ms")}
    search, turns = Search(sets, Settings(start_per_s=1000, trials=trials)), [0]
    while isinstance(step := search.next(), Proposal):
        if step.fresh_start:
            turns.append(step.fresh_start)
        search.add(cliff(capacities[turns[-1]])(step.rate_per_s))
    assert turns == sorted(turns)
    assert turns[-1] <= trials
    assert len(search.evidence) <= search.settings.most_probes(len(sets))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_starts_that_differ_make_the_answer_wider(seed: int) -> None:
    alike, unlike = found(seed, 0.0), found(seed, 0.08)
    assert width(unlike) > width(alike)
    assert unlike.starts_differ


def width(limit: Limit) -> float:
    assert limit.low_per_s is not None
    assert limit.high_per_s is not None
    return (limit.high_per_s - limit.low_per_s) / (limit.high_per_s + limit.low_per_s)


def test_evidence_is_of_the_first_start_unless_stated() -> None:
    assert Evidence(1.0, ()).start == 0
