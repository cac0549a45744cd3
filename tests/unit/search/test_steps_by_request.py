"""Objectives of single requests of a mix in a search: what a probe shows of them, and which fails first."""

from dataclasses import replace

import numpy as np
import pytest

from redline.model import Histogram, Objective
from redline.model.limits import LimitAnswer
from redline.report.answer import _first_to_fail
from redline.schema.objectives import Selectable, parse_objectives
from redline.search import Evidence, ProbeSlice, Search
from redline.search.evidence import RequestSeen
from redline.search.interval import bounds_of, implies
from redline.search.steps import reason, state_of

MIX = Selectable(requests={"mix": ("items", "checkout")})
ERRORS, QUICK, SLOW = parse_objectives("errors < 1%, items: p99 < 20ms, checkout: p99 < 20ms", MIX)


def times(mean_ms: float, count: int, seed: int) -> list[float]:
    return [*np.random.default_rng(seed).exponential(mean_ms * 1e6, count)]


def probe(rate_per_s: float, checkout_ms: float, wrong: int = 0, checkouts: int = 100) -> Evidence:
    """Ten slices of 1,000 requests, a tenth of which are checkouts, of which so many fail in the whole probe."""
    slices, of_checkout, of_items = [], list[float](), list[float]()
    for at in range(10):
        quick, slow = times(1, 1000 - checkouts, at), times(checkout_ms, checkouts, 100 + at)
        of_items += quick
        of_checkout += slow
        failed = wrong // 10
        slices.append(ProbeSlice(1.0, 1000, 1000 - failed, failed, Histogram.of([*quick, *slow])))
    items, slow_ones = len(of_items), len(of_checkout)
    seen = {
        "items": RequestSeen(items, items, 0, Histogram.of(of_items)),
        "checkout": RequestSeen(slow_ones, slow_ones - wrong, wrong, Histogram.of(of_checkout)),
    }
    return Evidence(rate_per_s, tuple(slices), requests=seen)


def state(evidence: Evidence, objective: Objective) -> str:
    return state_of((evidence,), objective)


def test_each_request_is_judged_by_its_own_times() -> None:
    """With a mean of 40 ms, 61% of checkouts take 20 ms, which is 6% of all requests; with 1 ms none does."""
    both = probe(1000, 40)
    assert (state(both, QUICK), state(both, SLOW)) == ("met", "missed")
    assert reason(both, SLOW) == "by checkout: p99 < 20ms"
    assert state(probe(1000, 1), SLOW) == "met"
    assert state(probe(1000, 4.35), SLOW) == "not known"  # its p99 is 20 ms
    far = replace_limit(SLOW, 1e9)
    assert [state(probe(1000, 40, checkouts=each), far) for each in (2, 3)] == ["not known", "met"], "20 are too few"


def replace_limit(objective: Objective, limit_ns: float) -> Objective:
    return objective.model_copy(update={"limit": limit_ns})


@pytest.mark.parametrize(("wrong", "expected"), [(0, "met"), (200, "missed"), (10, "not known")])
def test_errors_of_a_request_are_a_share_of_its_own_number(wrong: int, expected: str) -> None:
    (errors,) = parse_objectives("checkout: errors < 1%", MIX)
    assert state(probe(1000, 1, wrong), errors) == expected
    (others,) = parse_objectives("items: errors < 1%", MIX)
    assert state(probe(1000, 1, wrong), others) == "met"


def test_what_was_not_counted_by_request_is_not_known() -> None:
    unknown = replace(probe(1000, 1), requests={})
    assert state(unknown, SLOW) == "not known"
    assert reason(unknown, SLOW) == "it was not counted by request"
    assert state(unknown, ERRORS) == "met"


def test_the_request_that_fails_first_is_named() -> None:
    search = Search({"good": (QUICK, SLOW, ERRORS)})
    for rate_per_s, checkout_ms in ((1000, 1), (2000, 1), (4000, 40)):
        search.add(probe(rate_per_s, checkout_ms))
    (limit,) = search.limits()
    assert (limit.low_per_s, limit.high_per_s) == (2000, 4000)
    assert (limit.binding, limit.binds_alone) == (SLOW.text, True)
    assert not bounds_of(search.evidence, SLOW, 0.95).modelled
    answer = LimitAnswer(
        name="good",
        passed_per_s=2000,
        failed_per_s=4000,
        confidence=None,
        decided=True,
        method="single rates",
        binding=limit.binding,
        binds_alone=limit.binds_alone,
        conditions=(QUICK.text, SLOW.text, ERRORS.text),
        met_somewhere=True,
        missed_somewhere=True,
    )
    assert _first_to_fail(answer) == "; of its conditions, checkout: p99 < 20ms fails first"
    assert _first_to_fail(answer.model_copy(update={"binds_alone": False})) == ""


def test_conditions_of_different_requests_imply_nothing_of_each_other() -> None:
    (strict,) = parse_objectives("items: p99 < 10ms", MIX)
    assert implies(strict, QUICK)
    assert not implies(strict, SLOW)
    assert not implies(strict, parse_objectives("p99 < 20ms")[0])
