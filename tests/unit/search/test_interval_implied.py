"""Implications between conditions: what passed the stricter condition passed the looser condition."""

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
        ("max < 20ms", "p99 < 20ms", True),
        ("p99.9 < 20ms", "max < 20ms", False),
        ("errors < 0.1%", "errors < 1%", True),
        ("errors < 1%", "errors < 0.1%", False),
        ("achieved > 99%", "achieved > 95%", True),
        ("achieved > 95%", "achieved > 99%", False),
    ],
)
def test_which_condition_follows_from_which(one: str, other: str, follows: bool) -> None:
    assert implies(*parse_objectives(one), *parse_objectives(other)) is follows


def implied(good: Bounds, acceptable: Bounds) -> tuple[Bounds, Bounds]:
    strict, loose = (parse_objectives(text)[0] for text in ("p99 < 20ms", "p99 < 200ms"))
    found = propagate_bounds([(strict, good), (loose, acceptable)])
    return found["p99 < 20ms"], found["p99 < 200ms"]


def test_the_lower_end_of_the_stricter_and_the_upper_of_the_looser_are_propagated() -> None:
    good, acceptable = implied(of(100, 220), of(90, 200))
    assert (good.low_per_s, good.high_per_s) == (100, 200)
    assert (acceptable.low_per_s, acceptable.high_per_s) == (100, 200)


def test_bounds_that_contradict_each_other_become_their_hull() -> None:
    good, acceptable = implied(of(4000, 4400), of(300, 345))
    for each in (good, acceptable):
        assert (each.low_per_s, each.high_per_s) == (300, 4400)
        assert each.crossing is not None
        assert (each.crossing.strict, each.crossing.loose) == ("p99 < 20ms", "p99 < 200ms")
        assert 345 < each.crossing.rate_per_s < 4000


def test_the_hull_of_an_open_side_is_open() -> None:
    good, acceptable = implied(of(4000, None), of(None, 345))
    for each in (good, acceptable):
        assert (each.low_per_s, each.high_per_s) == (None, None)


def test_a_condition_between_two_that_contradict_each_other_contradicts_neither() -> None:
    texts = ("p99 < 20ms", "p99 < 50ms", "p99 < 200ms")
    strict, middle, loose = (parse_objectives(text)[0] for text in texts)
    found = propagate_bounds([(strict, of(4000, 4400)), (middle, of(2000, 2100)), (loose, of(300, 345))])
    ends = [(found[text].low_per_s, found[text].high_per_s) for text in texts]
    assert ends == [(300, 4400)] * 3


@pytest.mark.parametrize("single", ["strict", "loose"])
def test_bounds_are_propagated_whatever_method_made_them(single: str) -> None:
    strict, loose = (replace(of(*ends), modelled=name != single) for name, ends in BY_NAME.items())
    good, acceptable = implied(strict, loose)
    assert (good.low_per_s, good.high_per_s) == (100, 200)
    assert (acceptable.low_per_s, acceptable.high_per_s) == (100, 200)
    assert not good.modelled, "an end comes from single rates"
    assert not acceptable.modelled


BY_NAME = {"strict": (100, 220), "loose": (90, 200)}

ENDS = st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)).map(sorted)


@given(ENDS, ENDS, st.floats(1, 1e6), st.floats(1, 1e6))
def test_no_truth_that_both_hold_is_lost(
    good: list[float], acceptable: list[float], strict: float, loose: float
) -> None:
    strict, loose = sorted((strict, loose))
    after = implied(of(*good), of(*acceptable))
    for before, bounds, truth in ((good, after[0], strict), (acceptable, after[1], loose)):
        assert bounds.low_per_s is not None
        assert bounds.high_per_s is not None
        assert bounds.crossing or before[0] <= bounds.low_per_s <= bounds.high_per_s <= before[1]
        both_held = good[0] <= strict <= good[1] and acceptable[0] <= loose <= acceptable[1]
        assert not both_held or bounds.low_per_s <= truth <= bounds.high_per_s
