"""The search for the most users: on closed queues whose truth is known, without sockets."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from redline.extras.selftest.truth import deterministic, exponential
from redline.model import Histogram
from redline.search import Converged, Doomed, Evidence, Proposal, Search, Settings
from redline.search.evidence import ProbeSlice, overloaded, stall_ns
from redline.suite import parse_objectives
from tests.fakes.crowds import Crowd, searched

GOOD = parse_objectives("p99 < 98ms, errors < 1%")
EACH_5MS = Crowd(deterministic(0.005))
"""With n users each answer takes n times 5 ms: 19 of them meet `GOOD`, and 20 miss it."""


def by_users(first: int = 64, probes: int = 12) -> Settings:
    return Settings(start_per_s=first, lowest_per_s=1, highest_per_s=1_000_000, probes=probes, by_users=True)


@pytest.mark.parametrize("first", [1, 2, 16, 64, 500])
def test_the_most_users_are_found_from_anywhere(first: int) -> None:
    search = Search({"good": GOOD}, by_users(first, probes=20))
    end = searched(search, EACH_5MS, seed=1)
    assert isinstance(end, Converged)
    (limit,) = end.limits
    assert (limit.low_per_s, limit.high_per_s) == (19, 20)
    assert (limit.decided, end.confirmed, limit.by_users) == (True, True, True)
    assert limit.confidence is None, "there is no model of users"


def cliff(most: int, users: float) -> Evidence:
    """A probe of a server that answers in 1 ms up to so many users, and in 1 s with more."""
    took_ns = 1_000_000 if users <= most else 1_000_000_000
    due = max(1, round(users * 1e9 / took_ns / 10))
    slice_ = ProbeSlice(0.1, due, due, 0, Histogram.of([took_ns] * min(due, 1000)))
    return Evidence(users, (slice_,) * 50, by_users=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200_000), st.integers(1, 20_000))
def test_an_answer_holds_the_truth_and_is_as_narrow_as_users_or_the_goal(most: int, first: int) -> None:
    search = Search({"": GOOD}, by_users(first, probes=60))
    while isinstance(step := search.next(), Proposal):
        assert step.rate_per_s == round(step.rate_per_s)
        assert 1 <= step.rate_per_s <= 1_000_000
        search.add(cliff(most, step.rate_per_s))
    assert isinstance(step, Converged), step
    (limit,) = step.limits
    assert limit.low_per_s is not None
    assert limit.high_per_s is not None
    assert limit.low_per_s <= most < limit.high_per_s
    assert limit.decided
    assert limit.high_per_s - limit.low_per_s <= max(1, 0.06 * limit.high_per_s)


def unclear(users: float) -> Evidence:
    """A probe that does not show whether one request in a hundred takes longer than 98 ms."""
    slice_ = ProbeSlice(0.1, 10, 10, 0, Histogram.of([1_000_000] * 9 + [97_900_000]))
    return Evidence(users, (slice_,) * 2, by_users=True)


@pytest.mark.parametrize("met", [True, False])
def test_numbers_that_stay_unclear_do_not_hide_those_that_were_not_tried(*, met: bool) -> None:
    """1 user is met or unclear as 2 are, and 4 are missed: 3 are tried, and nothing again and again."""
    search = Search({"": GOOD}, by_users(4, probes=40))
    tried = list[float]()
    while isinstance(step := search.next(), Proposal):
        tried.append(step.rate_per_s)
        is_unclear = step.rate_per_s == 2 or (step.rate_per_s == 1 and not met)
        search.add(unclear(step.rate_per_s) if is_unclear else cliff(1 if met else 0, step.rate_per_s))
    assert 3 in tried
    assert max(map(tried.count, tried)) <= 4, tried


@pytest.mark.parametrize("seed", range(5))
def test_the_answer_of_a_queue_by_chance_is_near_the_truth(seed: int) -> None:
    """One of n users waits for n services: with exponential ones, its time has a gamma law."""
    truth = next(users for users in range(1, 100) if stats.gamma.ppf(0.99, users + 1, scale=0.005) >= 0.098)
    search = Search({"good": GOOD}, by_users(probes=16))
    (limit,) = searched(search, Crowd(exponential(200), seconds=20.0), seed).limits
    assert limit.low_per_s is not None
    assert limit.high_per_s is not None
    assert limit.low_per_s <= truth + 1
    assert limit.high_per_s >= truth


def test_a_throughput_that_does_not_grow_with_users_is_no_miss() -> None:
    search = Search({"": parse_objectives("errors < 1%")}, replace(by_users(), highest_per_s=256))
    end = searched(search, EACH_5MS, seed=1)
    assert isinstance(end, Doomed)
    assert end.reason == "even 256 users, the highest number allowed, meet errors < 1%"
    assert not any(map(overloaded, search.evidence))


def test_long_conversations_are_no_stall_and_no_backlog() -> None:
    """All users begin one, and nobody ends it before the probe does."""
    slices = (ProbeSlice(0.1, 40, 0, 0, Histogram()), *(ProbeSlice(0.1, 0, 0, 0, Histogram()),) * 49)
    made = Evidence(40, slices, by_users=True)
    assert (stall_ns(made), overloaded(made)) == (0, False)


def test_what_one_user_misses_is_said_of_one() -> None:
    search = Search({"": parse_objectives("p99 < 4ms, errors < 1%")}, by_users())
    end = searched(search, EACH_5MS, seed=1)
    assert isinstance(end, Doomed)
    assert end.reason == "even 1 user does not meet p99 < 4ms, errors < 1%"


def test_users_between_whom_nothing_decides_are_named() -> None:
    """With 20 users 1% of the answers are too late, more or less."""

    def probe(users: float) -> Evidence:
        late = 0 if users < 20 else 1 if users == 20 else 50
        times = Histogram.of([1_000_000] * (100 - late) + [1_000_000_000] * late)
        return Evidence(users, (ProbeSlice(0.1, 100, 100, 0, times),) * 50, by_users=True)

    search = Search({"": GOOD}, by_users(16, probes=30))
    while isinstance(step := search.next(), Proposal):
        search.add(probe(step.rate_per_s))
    (limit,) = step.limits
    assert (limit.low_per_s, limit.high_per_s, limit.decided) == (19, 21, False)
    assert limit.reason == "with 20 users it is too near to tell"
    assert sum(made.rate_per_s == 20 for made in search.evidence) == 3
