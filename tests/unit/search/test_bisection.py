"""The laws of a bisection: what it knows, where it goes next, and that it is as often right as it says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.search import bisection
from redline.search.bisection import (
    CONFIDENCE,
    FOUND,
    SEVERAL_CHANGES,
    UNDECIDED,
    BisectCosts,
    CommitGraph,
    MeasuredCommit,
    _information,
    answer,
    most_measurements,
    next_commit,
    posterior,
    rises,
    spans,
)
from tests.studies.bisections import calibration, drift, searched, two_changes, world

SCATTER = (-0.004, 0.001, 0.003)


def level(commit: int, value: float) -> MeasuredCommit:
    return MeasuredCommit(commit, tuple(value + each for each in SCATTER))


def step(commits: CommitGraph, culprit: int, size: float = 0.05) -> list[MeasuredCommit]:
    """Every commit, measured at the level that a change at one of them makes."""
    return [level(commit, size * commits.contains[commit, culprit]) for commit in range(commits.last + 1)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_probabilities_sum_to_one_whatever_was_measured(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 40))
    commits = CommitGraph.in_line(data.draw(st.lists(st.floats(0.01, 1), min_size=count, max_size=count)))
    logs = st.lists(st.floats(-3, 3), min_size=1, max_size=4)
    some = data.draw(st.lists(st.tuples(st.integers(0, count - 1), logs), max_size=8))
    measured = [MeasuredCommit(at, tuple(values)) for at, values in [(count - 1, [0.05]), *some]]
    known = posterior(commits, measured)
    assert float(known.commits.sum()) + known.none + known.several == pytest.approx(1)
    assert known.commits.min() >= 0
    assert 0 <= next_commit(commits, measured, set(), known) < count
    middle, low, high = known.size_at([known.best])
    assert low <= middle <= high


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.data())
def test_without_noise_it_halves(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(0, count - 1))
    commits = CommitGraph.in_line([1.0] * count)
    measured = [level(count - 1, 0.05)]
    while answer(commits, known := posterior(commits, measured), (), len(measured)) is None:
        at = next_commit(commits, measured, (), known)
        measured.append(level(at, 0.05 * (at >= culprit)))
    found = answer(commits, known, (), len(measured))
    assert found is not None
    assert (found.ending, found.commits) == (FOUND, (culprit,))
    assert len(measured) <= math.ceil(math.log2(count)) + 2


def test_the_first_commit_after_the_newest_is_in_the_middle() -> None:
    commits = CommitGraph.in_line([1.0] * 100)
    measured = [level(99, 0.05)]
    assert next_commit(commits, measured, (), posterior(commits, measured)) == pytest.approx(49, abs=1)


def test_the_information_of_a_measurement_is_that_of_its_two_densities() -> None:
    """The truth by sums over a fine grid: the entropy of the mixed density less that of a normal one."""
    at = np.linspace(-12, 16, 200_001)
    apart = 2.0
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        densities = [np.exp(-((at - centre) ** 2) / 2) / math.sqrt(2 * math.pi) for centre in (0.0, apart)]
        mixed = (1 - share) * densities[0] + share * densities[1]
        entropy = -float((mixed * np.log(mixed)).sum() * (at[1] - at[0]))
        truth = entropy - math.log(2 * math.pi * math.e) / 2
        assert _information(np.array([share]), apart)[0] == pytest.approx(truth, abs=2e-4), share
    assert _information(np.array([0.5]), 30.0)[0] == pytest.approx(math.log(2))


def test_a_commit_that_touches_no_code_begins_with_little_weight_and_is_found() -> None:
    commits = CommitGraph.in_line([1.0, 1.0, 0.05, 1.0])
    known = posterior(commits, [level(3, 0.05)])
    assert known.commits[2] == pytest.approx(known.commits[1] / 20)
    known = posterior(commits, step(commits, 2))
    assert known.best == 2
    assert known.commits[2] > CONFIDENCE


def test_a_commit_of_a_merged_branch_is_told_from_those_beside_it() -> None:
    """0, then 1 and 2 on a branch beside 3 and 4, which 5 merges."""
    commits = CommitGraph.of_parents([(), (0,), (1,), (0,), (3,), (2, 4)], [1.0] * 6)
    assert commits.contains[5].all()
    assert not commits.contains[4, 1:3].any()
    for culprit in range(6):
        assert posterior(commits, step(commits, culprit)).best == culprit


def test_what_may_bias_a_level_widens_it_however_many_starts_there_are() -> None:
    sure, biased = (MeasuredCommit(0, (0.05,) * 30, bias=bias) for bias in (0.0, 0.2))
    (_, low, high), (_, lowest, highest) = spans([sure])[0], spans([biased])[0]
    assert high - low < 0.01
    assert lowest == pytest.approx(0.05 - 0.2, abs=0.01)
    assert highest == pytest.approx(0.05 + 0.2, abs=0.01)
    again = MeasuredCommit(0, (0.30,) * 3, bias=0.01)
    assert spans([MeasuredCommit(0, (0.05,) * 30, bias=0.2), again]) == spans([again]), "cold servers do not count"


@pytest.mark.parametrize("size", [0.06, 0.062, 0.064, 0.066, 0.068, 0.07])
@pytest.mark.parametrize("bias", [0.05, 0.1, 0.3])
def test_one_change_is_found_where_the_newest_commit_is_known_worst(bias: float, size: float) -> None:
    commits = CommitGraph.in_line([1.0] * 20)
    starts = (-0.0004, 0.0001, 0.0003)
    newest = MeasuredCommit(19, tuple(0.08 + each for each in starts), bias=bias)
    others = [MeasuredCommit(at, tuple(size * (at >= 3) + each for each in starts)) for at in (2, 3, 5, 7, 9, 13, 17)]
    known = posterior(commits, [newest, *others])
    assert known.commits[3] > 0.99
    middle, low, high = known.size_at([3])
    assert middle == pytest.approx(size, abs=0.0005)
    assert 0.0005 < high - low < 0.003


def test_a_level_changes_from_the_last_measured_commit_that_is_contained() -> None:
    """0, then 1 and 2 on a branch beside 3, and the merge 4: 3 does not contain what 2 made worse."""
    commits = CommitGraph.of_parents([(), (0,), (1,), (0,), (2, 3)], [1.0] * 5)
    found = rises(commits, [level(at, 0.05 * (at in {2, 4})) for at in range(5)])
    assert [(rise.before, rise.after, rise.commits) for rise in found] == [
        *((None, 0, 1), (0, 1, 1), (1, 2, 1), (0, 3, 1), (3, 4, 3))
    ]
    assert [rise.span[1] > 0 for rise in found] == [False, False, True, False, True]
    assert not any(rise.span[2] < 0 for rise in found), "no commit is a gain"


def test_a_commit_without_the_oldest_is_never_measured_and_may_be_the_culprit() -> None:
    """A branch of 0 and 1 began before the oldest commit; 2 is on the main line, and 3 merges both."""
    commits = CommitGraph.of_parents([(), (0,), (), (1, 2)], [1.0] * 4, incomparable=(0, 1))
    measured = [level(3, 0.05)]
    assert next_commit(commits, measured, (), posterior(commits, measured)) == 2
    measured.append(level(2, 0.0))
    found = answer(commits, posterior(commits, measured), (), 2)
    assert found is not None
    assert (found.ending, found.commits) == (FOUND, (0, 1, 3))


def test_commits_that_do_not_build_are_not_told_apart() -> None:
    commits = CommitGraph.in_line([1.0] * 8)
    broken = {3, 4}
    measured = [one for one in step(commits, 4) if one.commit not in broken]
    found = answer(commits, posterior(commits, measured), broken, len(measured))
    assert found is not None
    assert (found.ending, found.commits) == (FOUND, (3, 4, 5))
    assert found.probability >= CONFIDENCE


def test_commits_near_those_that_do_not_build_are_left_for_later() -> None:
    commits = CommitGraph.in_line([1.0] * 101)
    measured = [level(100, 0.05)]
    known = posterior(commits, measured)
    first = next_commit(commits, measured, (), known)
    second = next_commit(commits, measured, {first}, known)
    third = next_commit(commits, measured, {first, second}, known)
    assert abs(second - first) > 1
    assert min(abs(third - first), abs(third - second)) > 1


def test_a_commit_that_is_built_is_measured_again_where_builds_are_dear() -> None:
    """At 99% for the one and 1% for the next, a further start tells more for its time than a build of an hour."""
    commits = CommitGraph.in_line([1.0] * 3)
    measured = [level(2, 0.02), MeasuredCommit(0, (0.010, 0.002, 0.013))]
    known = posterior(commits, measured)
    assert next_commit(commits, measured, (), known, BisectCosts(build=0.0)) == 1
    assert next_commit(commits, measured, (), known, BisectCosts(build=1000.0)) != 1


def test_two_changes_are_no_single_commit() -> None:
    commits = CommitGraph.in_line([1.0] * 20)
    levels = [0.05 * (at >= 6) + 0.03 * (at >= 13) for at in range(20)]
    measured = [level(at, levels[at]) for at in (19, 9, 4, 16)]
    known = posterior(commits, measured)
    assert answer(commits, known, (), 4) == bisection.BisectAnswer(SEVERAL_CHANGES, (), known.several)
    changes = [(rise.before, rise.after, rise.commits) for rise in rises(commits, measured) if rise.span[1] > 0]
    assert changes == [(4, 9, 5), (9, 16, 7)]


def test_a_gain_in_between_is_no_single_commit() -> None:
    commits = CommitGraph.in_line([1.0] * 20)
    measured = [level(at, value) for at, value in ((19, 0.03), (9, 0.08), (14, 0.08), (4, 0.0))]
    assert posterior(commits, measured).several > CONFIDENCE
    assert [rise.span[2] < 0 for rise in rises(commits, measured)] == [False, False, False, True]


def test_no_change_is_known_when_the_newest_is_measured_often() -> None:
    commits = CommitGraph.in_line([1.0] * 8)
    chances = [posterior(commits, [level(7, 0.0)] * times).none for times in (1, 10, 100)]
    assert chances == sorted(chances)
    assert chances[-1] > 2 * chances[0]


def test_the_same_bytes_are_surely_no_change() -> None:
    commits = CommitGraph.in_line([1.0] * 8)
    measured = [level(7, 0.02), MeasuredCommit(5, (0.0,), is_same=True)]
    known = posterior(commits, measured)
    assert float(known.commits[:6].sum()) < 0.001
    assert spans(measured)[5] == pytest.approx((0, 0, 0), abs=0.001)
    assert next_commit(commits, measured, (), known) != 5


def test_a_search_ends_after_the_most_measurements() -> None:
    commits = CommitGraph.in_line([1.0] * 8)
    known = posterior(commits, [level(7, 0.05)])
    assert answer(commits, known, (), most_measurements(8) - 1) is None
    ended = answer(commits, known, (), most_measurements(8))
    assert ended is not None
    assert ended.ending == UNDECIDED


def test_what_scatters_within_starts_widens_a_level() -> None:
    narrow, wide = spans([MeasuredCommit(0, (0.05,) * 3)])[0], spans([MeasuredCommit(0, (0.05,) * 3, within_se=0.1)])[0]
    assert wide[2] - wide[1] > 5 * (narrow[2] - narrow[1])


def test_the_stated_probability_is_right_and_costs_little_more_than_without_noise() -> None:
    """The study has the figures for 10,000 histories; these few are seeded."""
    outcomes = [searched(world(seed, 0.05, count=64)) for seed in range(60)]
    share, stated, right, cost = calibration(outcomes)
    assert share == 1
    assert stated >= CONFIDENCE
    assert right >= 0.95
    assert cost <= 1.5


def test_histories_with_several_changes_are_not_blamed_on_one() -> None:
    for levels in (two_changes, drift):
        outcomes = [searched(world(seed, 0.1, count=64, levels=levels)) for seed in range(15)]
        assert np.mean([one.found.ending == SEVERAL_CHANGES for one in outcomes]) >= 0.9
