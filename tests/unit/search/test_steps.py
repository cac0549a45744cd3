"""Which rates meet objectives: what a probe counts for, sets of objectives, reasons, bounds, sizes of errors."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from redline.model import Histogram, Objective
from redline.search import Evidence, ProbeSlice
from redline.search.evidence import RequestSeen
from redline.search.steps import (
    TriedRate,
    bounds,
    contradicted,
    counts_for,
    due_of,
    errors_of,
    joint,
    reason,
    shows,
    state_of,
    steps,
    too_many_errors,
    without_stalls,
)

MS = 1_000_000


def objective(metric: str, limit: float, *, below: bool = True, request: str | None = None) -> Objective:
    facts = {"metric": metric, "below": below, "limit": limit, "text": f"{metric} at {limit}", "request": request}
    return Objective.model_validate(facts)


P99 = objective("p99", 20 * MS)
ERRORS = objective("errors", 0.01)
ACHIEVED = objective("achieved", 0.99, below=False)


def probe(
    *, due: int = 1000, wrong: int = 0, slow: int = 0, ms: float = 1.0, slices: int = 10, left: int = 0, **changed: Any
) -> Evidence:
    """Ten seconds at 1,000/s; of each second's requests so many fail, take 50 ms, or are not answered yet."""
    made = tuple(
        ProbeSlice(1.0, due, due - wrong - left, wrong, Histogram.of([ms * MS] * (due - slow) + [50 * MS] * slow))
        for _ in range(slices)
    )
    return Evidence(1000.0, changed.pop("slices_", made), **changed)


def state(asked: Objective, *probes: Evidence) -> str:
    return state_of(probes, asked)


@pytest.mark.parametrize(
    ("states", "of_all"),
    [
        (["met"], "met"),
        (["met", "met"], "met"),
        (["met", "not known"], "not known"),
        (["missed", "not known", "met"], "missed"),
        ([], "met"),
    ],
)
def test_a_set_is_missed_if_any_is_and_met_if_all_are(states: list[Any], of_all: str) -> None:
    assert joint(states) == of_all


def test_rates_are_tried_in_order_and_with_how_many_probes() -> None:
    probes = [replace(probe(), rate_per_s=rate) for rate in (2000.0, 1000.0, 1001.0)]
    tried = steps(probes, P99, ERRORS)
    assert tried == (TriedRate(1000.0, "met", 2), TriedRate(2000.0, "met", 1))
    assert steps([*probes, replace(probe(ms=50), rate_per_s=3000.0)], P99)[-1] == TriedRate(3000.0, "missed", 1)
    assert steps([probe(client="it was full")], P99) == ()


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, True),
        ({"client": "full"}, False),
        ({"client": "late", "lengthens": True}, True),
        ({"client": "late", "lengthens": True, "slow": 500}, False),
        ({"client": "late", "slow": 500, "missed": frozenset({P99.text})}, True),
        ({"client": "late", "missed": frozenset({"another"})}, False),
    ],
)
def test_a_client_that_only_lengthens_times_leaves_what_is_met(changed: dict[str, Any], *, shown: bool) -> None:
    seen = probe(**changed)
    assert shows(seen, P99) is shown
    assert reason(seen, P99) == (
        seen.client if not shown else f"in spite of this: {seen.client}" if seen.lengthens else ""
    )


def test_all_objectives_have_to_be_met_beside_a_client() -> None:
    late = probe(client="late", lengthens=True, wrong=100)
    assert shows(late, P99)
    assert not shows(late, P99, ERRORS)


@pytest.mark.parametrize(("most_ms", "limit_ms", "found"), [(50, 51, "met"), (50, 49, "missed")])
def test_a_single_request_misses_a_limit_on_the_longest(most_ms: float, limit_ms: float, found: str) -> None:
    assert state(objective("max", limit_ms * MS), probe(slow=1)) == found
    exact = float(Histogram.of([most_ms * MS]).max_ns)
    assert state(objective("max", exact), probe(slow=1)) == "missed", "below is not at"


def test_an_aborted_probe_misses_that_nothing_is_aborted() -> None:
    aborted = objective("aborted", 0.5)
    assert state(aborted, probe()) == "met"
    cut = probe(aborted="p99 > 1s")
    assert state(aborted, cut) == "missed"
    assert reason(cut, aborted) == "p99 > 1s"
    assert state(aborted, probe(), cut) == "not known", "they contradict each other"


def test_half_of_few_requests_is_enough_to_miss_what_allows_one_in_fifty() -> None:
    few = Evidence(10.0, (ProbeSlice(1.0, 10, 5, 5, Histogram.of([1 * MS] * 10)),))
    assert state(ERRORS, few) == "missed"
    fewer = Evidence(10.0, (ProbeSlice(1.0, 10, 6, 4, Histogram.of([1 * MS] * 10)),))
    assert state(ERRORS, fewer) == "not known"
    assert state(objective("errors", 0.02), few) == "not known"


@pytest.mark.parametrize(("due", "found"), [(299, "not known"), (300, "met")])
def test_requests_without_an_error_are_as_many_as_show_that_few_fail(due: int, found: str) -> None:
    seen = Evidence(100.0, (ProbeSlice(1.0, due, due, 0, Histogram.of([1 * MS] * due)),))
    assert state(ERRORS, seen) == found
    assert reason(seen, ERRORS) == ("" if found == "met" else "too few requests to be sure: probe for longer, with -d")
    assert state(ERRORS, *[seen] * 2) == "met"
    assert state(objective("errors", 0.001), seen) == "not known"


def test_requests_at_higher_rates_without_an_error_show_that_few_fail_at_lower_ones() -> None:
    def at(rate_per_s: float, errors: int = 0) -> Evidence:
        times = Histogram.of([1 * MS] * 200)
        return Evidence(rate_per_s, (ProbeSlice(1.0, 200, 200 - errors, errors, times),))

    def states(*evidence: Evidence) -> list[str]:
        return [step.state for step in steps(evidence, ERRORS)]

    assert states(at(10), at(20), at(30)) == ["met", "met", "not known"]
    assert states(at(10), at(20), at(30, errors=1)) == ["met", "not known", "not known"]
    assert states(at(10), at(20, errors=1), at(30), at(40)) == ["not known", "not known", "met", "not known"]


@pytest.mark.parametrize(("due", "found"), [(1, "not known"), (29, "not known"), (30, "met")])
def test_a_few_quick_requests_are_not_surely_far_below_a_limit(due: int, found: str) -> None:
    seen = Evidence(100.0, (ProbeSlice(1.0, due, due, 0, Histogram.of([1 * MS] * due)),))
    assert state(objective("p99", 200 * MS), seen) == found


def test_what_no_request_was_due_for_is_not_known() -> None:
    nothing = Evidence(10.0, (ProbeSlice(1.0, 0, 0, 0, Histogram()),))
    assert not counts_for(nothing, P99)
    assert state(P99, nothing) == "not known"
    assert reason(nothing, P99) == "nothing fell due"
    assert state(P99, nothing, probe()) == "met"
    assert not too_many_errors(nothing, ERRORS)


SEEN = RequestSeen(100, 90, 10, Histogram.of([50 * MS] * 100))


def test_a_request_is_counted_by_itself() -> None:
    mixed = probe(requests={"a": SEEN, "b": RequestSeen(0, 0, 0, Histogram())})
    a, b, c = (objective("errors", 0.01, request=name) for name in "abc")
    assert [counts_for(mixed, each) for each in (a, b, c)] == [True, False, False]
    assert (due_of(mixed, a), errors_of(mixed, a)) == (100, 10)
    assert (due_of(mixed, ERRORS), errors_of(mixed, ERRORS)) == (10_000, 0)
    assert reason(mixed, b) == "no such request fell due"
    assert reason(mixed, c) == "it was not counted by request"
    assert state(objective("max", 49 * MS, request="a"), mixed) == "missed"
    assert reason(mixed, objective("max", 49 * MS, request="a")) == f"by max at {49 * MS}"
    assert state(objective("max", 49 * MS), mixed) == "met"


def test_errors_of_a_request_are_as_sure_as_a_binomial_share() -> None:
    """One percent of 10,000 requests is certain to 0.1%; the 99.5% quantile of t with 7 degrees is 3.5."""

    def with_errors(number: int) -> str:
        seen = RequestSeen(10_000, 10_000 - number, number, Histogram.of([1 * MS] * 10_000))
        return state(objective("errors", 0.01, request="a"), probe(requests={"a": seen}))

    assert [with_errors(number) for number in (0, 64, 66, 134, 136)] == [
        "met",
        "met",
        "not known",
        "not known",
        "missed",
    ]


def test_errors_are_as_sure_as_stretches_of_a_probe_differ() -> None:
    def alternating(each: int, swing: int) -> Evidence:
        made = tuple(
            ProbeSlice(1.0, 1000, 1000 - wrong, wrong, Histogram.of([1 * MS] * 1000))
            for wrong in (each + (swing if at % 2 else -swing) for at in range(8))
        )
        return Evidence(1000.0, made)

    assert state(ERRORS, alternating(20, 0)) == "missed"
    assert state(ERRORS, alternating(20, 18)) == "not known"
    assert state(ERRORS, alternating(3, 0)) == "met"
    assert state(ERRORS, alternating(7, 0)) == "not known", "of 8,000 requests a hundredth is known to 0.4%"
    assert too_many_errors(alternating(20, 0), ERRORS)
    assert not too_many_errors(alternating(7, 0), ERRORS)
    assert not too_many_errors(alternating(0, 0), ERRORS)


@pytest.mark.parametrize(
    ("unanswered", "found"), [(0, "met"), (5, "met"), (9, "not known"), (12, "not known"), (15, "missed")]
)
def test_a_share_that_is_not_achieved_is_sure_by_the_square_root_of_its_number(unanswered: int, found: str) -> None:
    """A hundred of 10,000 requests may be missing, by chance 10: 2.58 times that on either side is not known."""
    seen = probe(wrong=unanswered)
    assert state(ACHIEVED, seen) == found


def test_answers_to_the_warm_ups_requests_are_not_achieved() -> None:
    first, *rest = probe().slices
    caught_up = replace(first, answered=1300)
    short = [replace(one, answered=970) for one in rest]
    assert state(ACHIEVED, Evidence(1000.0, (first, *[replace(one, answered=998) for one in rest]))) == "met"
    assert state(ACHIEVED, Evidence(1000.0, (caught_up, *short))) != "met", "300 of them were due before"


def test_times_far_below_a_limit_are_met_however_few() -> None:
    quick = probe(due=10, ms=1.0)
    assert state(P99, quick) == "met"
    near = probe(due=10, ms=15.0)
    assert state(P99, near) == "not known"
    assert reason(near, P99) == "too few requests to be sure: probe for longer, with -d"
    slow_one = probe(due=10, slow=1)
    assert state(P99, slow_one) != "met"


def test_a_backlog_that_grew_at_the_end_is_not_met() -> None:
    """Ever fewer answers: by more than three errors, yet less than two percent are left."""
    slices = tuple(ProbeSlice(1.0, 10_000, 9_850, 0, Histogram.of([1 * MS] * 10_000)) for _ in range(20))
    growing = Evidence(10_000.0, slices)
    assert state(P99, growing) == "not known"
    assert reason(growing, P99) == "its backlog grew at the end"
    assert state(P99, replace(growing, speed=2.0)) == "met", "the rate of a recording changes"


def test_an_overloaded_probe_misses_everything_and_says_why() -> None:
    full = probe(left=100, slices=20)
    assert state(P99, full) == "missed"
    assert reason(full, P99) == "its backlog only grew"
    assert reason(probe(hopeless=True, slices_=probe().slices), P99) == "its backlog only grew"
    assert state(ERRORS, full, full) == "missed"
    still = tuple(ProbeSlice(1.0, 1000, 0, 0, Histogram()) for _ in range(12))
    silent = Evidence(1000.0, (*probe(slices=3).slices, *still), hopeless=True)
    assert reason(silent, P99) == "it answered nothing for 12.0 s"


def test_what_is_near_a_share_is_too_near_to_tell() -> None:
    assert reason(probe(wrong=10), ERRORS) == "too near to tell"
    assert reason(probe(), P99) == ""
    assert reason(probe(slow=500), P99) == ""


TRIED = [
    TriedRate(100, "met", 1),
    TriedRate(300, "met", 1),
    TriedRate(400, "missed", 1),
    TriedRate(500, "not known", 1),
]


def test_bounds_are_the_highest_pass_and_the_lowest_failure() -> None:
    assert bounds(TRIED) == (300, 400)
    assert bounds(TRIED[:2]) == (300, None)
    assert bounds(TRIED[2:]) == (None, 400)
    assert bounds([]) == (None, None)
    assert bounds([TriedRate(100, "met", 1), TriedRate(100, "missed", 1)]) == (None, None)


def test_a_miss_far_below_a_pass_counts_when_it_repeats() -> None:
    limit = 0.7 * 300
    assert limit == pytest.approx(210, abs=1), "see FAR_BELOW"
    for rate, probes, kept in ((69, 1, False), (69, 2, True), (299, 1, True), (350, 1, True)):
        stalled = TriedRate(rate, "missed", probes)
        assert (stalled in without_stalls([*TRIED[:2], stalled])) is kept, (rate, probes)
    assert without_stalls([TriedRate(1, "missed", 1)]) == (TriedRate(1, "missed", 1),)
    assert TriedRate(1, "not known", 1) in without_stalls([*TRIED, TriedRate(1, "not known", 1)])


def test_rates_that_contradict_each_other_are_failures_first() -> None:
    below, above = TriedRate(200, "missed", 1), TriedRate(450, "met", 1)
    assert contradicted(TRIED) == []
    assert contradicted([*TRIED, below]) == [below, TRIED[1]]
    assert contradicted([*TRIED, above]) == [TRIED[2], above]
    assert contradicted([TriedRate(100, "met", 1), TriedRate(100, "missed", 1)]) == []


def test_slow_requests_in_clusters_are_less_sure() -> None:
    """The same share of slow requests: alike in all stretches it is a miss, in one of them it may be chance."""
    alike = [20] * 8
    clustered = [160] + [0] * 7
    found = []
    for slow in (alike, clustered):
        made = tuple(
            ProbeSlice(1.0, 1000, 1000, 0, Histogram.of([1 * MS] * (1000 - one) + [50 * MS] * one)) for one in slow
        )
        found.append(state(P99, Evidence(1000.0, made)))
    assert found == ["missed", "not known"]
    late = ProbeSlice(0.0, 0, 0, 0, Histogram.of([50 * MS] * 160))
    quiet = tuple(ProbeSlice(1.0, 1000, 980, 0, Histogram.of([1 * MS] * 980)) for _ in range(8))
    assert state(P99, Evidence(1000.0, (*quiet, late))) == "not known", "known only at the end, they are one cluster"
    assert np.isclose(probe().seconds, 10.0)
