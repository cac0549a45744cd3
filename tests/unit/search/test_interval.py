"""The bounds of conditions, by arithmetic that a reader can redo: hulls, ends, caps, and intervals of the model."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest

from redline.search import interval
from redline.search.evidence import Evidence
from redline.search.interval import (
    Bounds,
    _around,
    _held_to,
    _interval,
    _is_usable,
    _saturated,
    best_capacity,
    between_starts,
    bracket_of,
    capped,
    ends_of,
    first_to_fail,
    fits,
    half_width,
    high_of,
    low_of,
    plausible,
    texts,
    width,
)
from redline.search.queue_model import Aim, Known, ProbePoint, QueueFit
from redline.search.steps import TriedRate
from redline.suite import parse_objectives
from tests.fakes.cliffs import probe

FIT = QueueFit(900.0, 1000.0, 1.0, 10.0, 100.0)
NONE = Bounds(None, None, modelled=False, fit=None, steps=())
AIM = Aim(0.9, 0.02)


def bounds(low: float | None, high: float | None, *, modelled: bool = True, fit: QueueFit | None = None) -> Bounds:
    return Bounds(low, high, modelled=modelled, fit=fit, steps=())


def point(rate: float, start: int = 0) -> ProbePoint:
    return ProbePoint(rate, 320.0, np.array([0.001]), np.ones(1), start)


def test_ends_that_are_not_known_are_0_and_infinite() -> None:
    assert (low_of(NONE), high_of(NONE)) == (0, inf)
    assert (low_of(bounds(5, 7)), high_of(bounds(5, 7))) == (5, 7)
    assert half_width(90, 110) == 0.1
    assert half_width(None, 110) == half_width(90, None) == inf


def test_a_bracket_is_the_lowest_of_all_conditions() -> None:
    known = {"a": bounds(100, 200), "b": bounds(80, 300)}
    assert bracket_of(known) == (80, 200)
    assert ends_of(known) == [("low", 80), ("high", 200)]
    assert width(known) == pytest.approx(120 / 280)
    for open_ in (bounds(None, 200), bounds(100, None)):
        assert ends_of({"a": open_}) == []
        assert width({"a": open_}) == inf


def test_a_model_that_contradicts_the_bounds_does_not_count() -> None:
    beyond = replace(FIT, limit_per_s=901.0)
    assert fits({"a": bounds(1, 900, fit=FIT), "b": bounds(1, 950, fit=beyond)}) == [FIT]


def test_a_limit_within_the_interval_or_a_seventh_below_it_is_plausible() -> None:
    assert plausible(FIT, 900 / 0.86, 2000)
    assert not plausible(FIT, 900 / 0.84, 2000)
    assert plausible(FIT, None, 900)
    assert not plausible(FIT, None, 899)
    assert plausible(FIT, 800, None)


def test_what_fails_first_is_the_lowest_known_or_else_modelled() -> None:
    low, high = bounds(1, 500, modelled=False), bounds(1, 900, modelled=False, fit=FIT)
    lower = bounds(1, None, modelled=False, fit=replace(FIT, limit_per_s=450.0))
    assert first_to_fail({"a": low, "b": lower}) is lower, "its model says so"
    assert first_to_fail({"a": high, "b": low}) is low, "the model contradicts what is known"
    modelled = bounds(1, 600, fit=FIT)
    assert first_to_fail({"a": modelled, "b": lower}) is modelled
    assert texts(parse_objectives("p99 < 20ms, errors < 1%")) == "p99 < 20ms, errors < 1%"


def test_single_rates_that_contradict_an_interval_widen_it() -> None:
    tried = [TriedRate(90, "missed", 2), TriedRate(100, "not known", 1), TriedRate(140, "met", 1)]
    assert _held_to(tried, 100, 120) == (90, 140)
    assert _held_to([], 100, 120) == (100, 120)
    assert _held_to([TriedRate(110, "missed", 2), TriedRate(110, "met", 1)], 100, 120) == (100, 120)


def test_a_probe_is_usable_for_the_model_unless_it_was_overloaded_void_or_aborted() -> None:
    good = probe(1000)
    assert _is_usable(good)
    assert not _is_usable(replace(good, client="late"))
    assert not _is_usable(replace(good, aborted="errors"))
    assert not _is_usable(replace(good, hopeless=True))
    assert not _is_usable(replace(good, slices=good.slices[:0]))
    assert not _is_usable(probe(1000, answered=0.0))


def test_a_server_is_saturated_where_it_refuses_a_fifth() -> None:
    assert _saturated(probe(1000, errors=0.21))
    assert not _saturated(probe(1000, errors=0.2)), "four fifths are answered"
    assert _saturated(replace(probe(1000), hopeless=True))


def full(rate: float, answered: float) -> Evidence:
    return replace(probe(rate, answered=answered / rate), hopeless=True)


def test_the_capacity_is_that_of_the_least_overloaded_probes() -> None:
    alone = best_capacity([full(1250, 1000)])
    assert alone is not None
    assert alone.per_s == pytest.approx(1000, rel=0.01)
    assert alone.tolerance_per_s == pytest.approx(1000 * (0.005 + 0.02 * 0.25), rel=0.05)
    far = full(5000, 1500)  # of ten times the tolerance
    both = best_capacity([full(1250, 1000), far])
    assert both is not None
    assert both.per_s == alone.per_s
    two = best_capacity([full(1250, 1000), full(1250, 1040)])
    assert two is not None
    assert two.per_s == pytest.approx(1020, rel=0.01)
    assert two.chance_per_s == pytest.approx(alone.chance_per_s / sqrt(2), rel=0.05)
    assert best_capacity([probe(500)]) is None
    assert best_capacity([replace(full(1250, 1000), client="late")]) is None


def test_a_server_that_answered_more_before_was_slowed_by_overload() -> None:
    found = best_capacity([full(1250, 1000)])
    assert found is not None
    assert best_capacity([full(1250, 1000), probe(1000 + 3 * found.sd_per_s)]) is None
    assert best_capacity([full(1250, 1000), probe(1000 + 1 * found.sd_per_s)]) is not None


def test_no_limit_exceeds_what_was_answered_at_most() -> None:
    errors = parse_objectives("errors < 50%")
    found = best_capacity([full(1250, 1000)])
    assert found is not None
    most = (1000 + 2 * found.sd_per_s) / 0.5
    least = (1000 - 2 * found.sd_per_s) / 0.5
    seen = [full(1250, 1000)]
    assert capped(1500, 3000, errors, seen) == pytest.approx((1500, most), rel=1e-3)
    assert capped(2900, 3000, errors, seen) == pytest.approx((least, most), rel=1e-3)
    low, high = capped(None, 3000, errors, seen)
    assert low is None
    assert high == pytest.approx(most, rel=1e-3)
    assert capped(1500, 1800, errors, seen) == (1500, 1800)
    assert capped(1500, None, errors, seen) == (1500, None)
    assert capped(1500, 3000, parse_objectives("p99 < 20ms"), seen) == (1500, 3000)
    assert capped(1500, 3000, errors, [replace(seen[0], client="late")]) == (1500, 3000)
    assert capped(1500, 3000, errors, [replace(seen[0], speed=1.0)]) == (1500, 3000)
    assert capped(1500, 3000, errors, [*seen, probe(1100)]) == (1500, 3000), "it kept up with more"


def test_probes_around_the_limit_are_those_within_its_reach() -> None:
    # The gap is 100 and 15% of the limit 135: 1.8 times 100 below 900.
    points = [point(rate) for rate in (100, 719, 721, 800, 850, 880, 890)]
    assert [one.rate_per_s for one in _around(points, FIT)] == [721, 800, 850, 880, 890]
    wide = replace(FIT, root_per_s=1200.0)
    assert _around([point(656), point(658), *points[3:], point(895)], wide)[0].rate_per_s == 658
    few = [point(rate) for rate in (10, 20, 30, 40, 50, 880)]
    assert [one.rate_per_s for one in _around(few, FIT)] == [20, 30, 40, 50, 880]


def test_an_interval_pools_scatter_with_the_chance_of_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    points, known = [point(800)] * 5, Known(point(100))

    def ends(scatter: float) -> tuple[float, float, bool]:
        monkeypatch.setattr(interval, "scatter", lambda *_: scatter)
        return _interval(points, known, AIM, FIT, 0.95)

    # t of 4 + 6 degrees of freedom is 2.2281; the lower side is longer by half of half / gap.
    low, high, differ = ends(0.0)
    assert high == pytest.approx(900 + 2.2281 * 10, rel=1e-4)
    assert not differ
    assert low == pytest.approx(900 - 22.281 * (1 + 0.22281 / 2), rel=1e-4)
    both = sqrt((4 * 12**2 + 6 * 10**2) / 10)
    assert ends(12.0)[1] == pytest.approx(900 + 2.2281 * both, rel=1e-4)
    # chi-square of 4 at 95% is 9.488: scatter of 15.41 is more than chance, and counts alone, with t = 2.7764.
    assert ends(15.4)[1] == pytest.approx(900 + 2.2281 * sqrt((4 * 15.4**2 + 600) / 10), rel=1e-4)
    assert ends(15.5)[1] == pytest.approx(900 + 2.7764 * 15.5, rel=1e-4)
    assert ends(90.0)[0] == pytest.approx(900 - 2.7764 * 90 * 1.5, rel=1e-4), "skewed by half at most"


def test_starts_that_differ_are_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    points, known = [point(800, start) for start in (0, 0, 1, 1, 2, 2)], Known(point(100))

    def between(*without: float) -> tuple[float, float] | None:
        left = list(without)
        monkeypatch.setattr(interval, "fit", lambda *_: replace(FIT, limit_per_s=left.pop(0)))
        return between_starts(points, known, AIM, FIT, 0.975)

    # Each start has a third: its value is 3 * 900 - 2 * rest, so 900 - 2 * (rest - 900).
    found = between(850.0, 900.0, 950.0)
    assert found is not None
    assert found[0] == pytest.approx(900)
    assert found[1] == pytest.approx(4.3027 * 100 / sqrt(3), rel=1e-4)
    # chi-square of 2 at 95% is 5.991: an error of 17.3 is as much as a chance of 10 allows.
    assert between(885.1, 900.0, 914.9) is None
    assert between(884.9, 900.0, 915.1) is not None
    assert between_starts(points[:4], known, AIM, FIT, 0.975) is None, "two starts are too few"
