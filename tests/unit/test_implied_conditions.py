"""Conditions that follow from each other: what passed the stricter one passed the looser one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.search.interval import Bounds, implies, propagate_bounds
from redline.suite import parse_objectives

MODELLED = Bounds(None, None, modelled=True, fit=None, steps=())


def of(low: float | None, high: float | None) -> Bounds:
    return replace(MODELLED, low_per_s=low, high_per_s=high)


@pytest.mark.parametrize(
    ("one", "other", "follows"),
    [
        ("p99 < 20ms", "p99 < 200ms", True),
        ("p99 < 20ms", "p99 < 20ms", True),
        ("p99 < 20ms", "p90 < 20ms", True),
        ("p90 < 20ms", "p99 < 20ms", False),
        ("p99 < 200ms", "p99 < 20ms", False),
        ("p99 < 200ms", "p90 < 20ms", False),
        ("p99 < 20ms", "errors < 1%", False),
        ("errors < 0.1%", "errors < 1%", False),  # by single rates, where it is so already
    ],
)
def test_which_condition_follows_from_which(one: str, other: str, follows: bool) -> None:
    assert implies(*parse_objectives(one), *parse_objectives(other)) is follows


def handed(good: Bounds, acceptable: Bounds) -> tuple[Bounds, Bounds]:
    strict, loose = (parse_objectives(text)[0] for text in ("p99 < 20ms", "p99 < 200ms"))
    found = propagate_bounds([(strict, good), (loose, acceptable)])
    return found["p99 < 20ms"], found["p99 < 200ms"]


def test_the_lower_end_of_the_stricter_and_the_upper_of_the_looser_are_propagated() -> None:
    good, acceptable = handed(of(100, 220), of(90, 200))
    assert (good.low_per_s, good.high_per_s) == (100, 200)
    assert (acceptable.low_per_s, acceptable.high_per_s) == (100, 200)


def test_bounds_that_contradict_each_other_stay_as_they_are() -> None:
    assert handed(of(210, 220), of(90, 200)) == (of(210, 220), of(90, 200))


def test_what_single_rates_tell_is_neither_propagated_nor_changed() -> None:
    single = replace(of(100, 220), modelled=False)
    assert handed(single, of(90, 200)) == (single, of(90, 200))
    assert handed(of(100, 220), replace(of(90, 200), modelled=False))[1].low_per_s == 90


ENDS = st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)).map(sorted)


@given(ENDS, ENDS, st.floats(1, 1e6), st.floats(1, 1e6))
def test_no_truth_that_both_hold_is_lost(
    good: list[float], acceptable: list[float], strict: float, loose: float
) -> None:
    strict, loose = sorted((strict, loose))
    told = handed(of(*good), of(*acceptable))
    for before, after, truth in ((good, told[0], strict), (acceptable, told[1], loose)):
        assert after.low_per_s is not None
        assert after.high_per_s is not None
        assert before[0] <= after.low_per_s <= after.high_per_s <= before[1]
        both_held = good[0] <= strict <= good[1] and acceptable[0] <= loose <= acceptable[1]
        assert not both_held or after.low_per_s <= truth <= after.high_per_s
