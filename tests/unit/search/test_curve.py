"""The latency-throughput curve and its knee, on queues whose knee is known."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.extras.selftest.truth import exponential
from redline.limits.answers import probe
from redline.model import Histogram
from redline.model.limits import CurvePoint, Knee, LimitProbe
from redline.search.curve import FEWEST_POINTS, curve, knee, quantile_known, rates_for_curve
from tests.fakes.queues import Queue

MU = 2000.0
SHARES = (0.1, 0.3, 0.45, 0.6, 0.75, 0.85, 0.93, 1.2)


def probes_of(queue: Queue, shares: Sequence[float] = SHARES, seed: int = 1) -> list[LimitProbe]:
    rng = np.random.default_rng(seed)
    return [probe(queue.probe(share * queue.capacity_per_s, rng), {}) for share in shares]


def point(rate_per_s: float, mean_ns: float, **changes: object) -> CurvePoint:
    fields = {
        "rate_per_s": rate_per_s,
        "answered_per_s": rate_per_s,
        "seconds": 5.0,
        "probes": 1,
        "errors": 0,
        "mean_ns": mean_ns,
        "p50_ns": None,
        "p90_ns": None,
        "p99_ns": None,
        "p999_ns": None,
        "overloaded": False,
    }
    return CurvePoint.model_validate(fields | changes)


def mm1(*rates: float) -> list[CurvePoint]:
    return [point(rate, 1e9 / (MU - rate)) for rate in rates]


def found(points: Sequence[CurvePoint]) -> Knee:
    result = knee(points)
    assert isinstance(result, Knee), result
    return result


def test_of_mm1_it_is_at_half_of_the_capacity_wherever_the_points_are() -> None:
    at = found(mm1(200, 700, 1500, 1900))
    assert at.rate_per_s == pytest.approx(MU / 2, rel=0.01)
    assert at.mean_ns == pytest.approx(2e9 / MU, rel=0.01)
    # 4 x (1 - x) is 0.95 at 1/2 -+ 0.112.
    assert [at.low_per_s, at.high_per_s] == pytest.approx([776, 1224], rel=0.01)
    assert at.share is None


@pytest.mark.parametrize("seed", range(5))
def test_simulated_probes_show_it_too(seed: int) -> None:
    at = found(curve(probes_of(Queue(exponential(MU)), seed=seed)))
    assert at.low_per_s < MU / 2 < at.high_per_s
    assert at.share == pytest.approx(0.5, abs=0.12)


def test_what_no_load_changes_moves_it_up() -> None:
    """The highest of x / (base + 1 / (mu - x)), by looking."""
    rates = np.linspace(1, MU - 1, 100_000)
    truth = rates[np.argmax(rates / (0.005 + 1 / (MU - rates)))]
    at = found([point(rate, 1e9 * (0.005 + 1 / (MU - rate))) for rate in np.linspace(100, 1950, 60)])
    assert at.rate_per_s == pytest.approx(truth, rel=0.02)


def test_a_server_that_is_as_fast_until_its_capacity_has_it_there() -> None:
    flat = [point(rate, 1e6) for rate in (500, 1000, 1900)]
    assert found([*flat, point(2400, 1e9, answered_per_s=2000, overloaded=True)]).rate_per_s == pytest.approx(1900)
    assert knee(flat) == "up to 1,900/s, the highest rate that was tried, the curve has not reached its knee"


def test_a_curve_that_begins_past_its_knee_says_so() -> None:
    result = knee(mm1(1200, 1500, 1900))
    assert result == "at 1,200/s, the lowest rate that was tried, the curve is past its knee already"


def test_too_few_points_are_no_curve() -> None:
    assert "kept up at 2 of the rates" in str(knee(mm1(500, 1500)))
    assert "kept up at 0 of the rates" in str(knee([]))


def test_refusals_are_no_speed() -> None:
    refused = point(3000, 1e4, errors=14_000, answered_per_s=200)
    assert found([*mm1(200, 700, 1500, 1900), refused]).rate_per_s == pytest.approx(MU / 2, rel=0.01)


@pytest.mark.parametrize(("errors", "kept_up"), [(999, 3), (1000, 2)])
def test_a_point_shows_a_speed_as_long_as_one_answer_was_right(errors: int, kept_up: int) -> None:
    points = [*mm1(100, 150), point(200, 1e6, errors=errors)]  # 1,000 answers in 5 s
    assert str(knee(points)).startswith(f"the server kept up at {kept_up} of the rates") is (kept_up < FEWEST_POINTS)


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1e3, 1e10)), min_size=3, max_size=20, unique_by=lambda p: p[0]))
def test_it_is_within_what_was_tried(pairs: list[tuple[float, float]]) -> None:
    result = knee([point(*pair) for pair in pairs])
    rates = [rate for rate, _ in pairs]
    if isinstance(result, Knee):
        assert min(rates) <= result.low_per_s <= result.rate_per_s <= result.high_per_s <= max(rates)


def test_probes_of_one_rate_are_one_point_with_all_their_counts() -> None:
    probes = probes_of(Queue(exponential(MU)), (0.5, 0.5, 0.3))
    low, high = curve(probes)
    assert (low.probes, high.probes) == (1, 2)
    assert high.seconds == pytest.approx(10)
    both = Histogram.merged((probes[0].response, probes[1].response))
    percentiles = {0.5: high.p50_ns, 0.75: high.p75_ns, 0.9: high.p90_ns, 0.95: high.p95_ns, 0.99: high.p99_ns}
    assert percentiles == {q: both.quantile_ns(q) for q in percentiles}
    assert high.p999_ns == quantile_known(both, 0.999)
    assert (high.mean_ns, high.max_ns) == (both.mean_ns, both.max_ns)
    assert high.errors == sum(probe.errors for probe in probes[:2])
    assert low.rate_per_s < high.rate_per_s


def test_a_rate_that_was_borne_once_and_once_not_is_two_points() -> None:
    (one,) = probes_of(Queue(exponential(MU)), (0.9,))
    points = curve([one, one.model_copy(update={"overloaded": True})])
    assert [each.overloaded for each in points] == [False, True]


def test_what_the_client_limited_is_not_in_it() -> None:
    (one,) = probes_of(Queue(exponential(MU)), (0.5,))
    assert curve([one.model_copy(update={"client": "all 1 connections were busy"})]) == ()


def test_a_percentile_that_few_lie_beyond_is_not_shown() -> None:
    assert quantile_known(Histogram.of(range(1, 1001)), 0.99) is not None
    assert quantile_known(Histogram.of(range(1, 1000)), 0.99) is None


def test_rates_that_the_curve_lacks() -> None:
    assert rates_for_curve(mm1(1500, 1700, 1900), 20) == (475, 950)
    assert rates_for_curve(mm1(1500, 1700, 1900), 600) == (950,)
    assert rates_for_curve(mm1(500, 1000, 1500, 2000 - 1), 20) == ()
    assert rates_for_curve([], 20) == ()


def test_points_that_rise_weigh_by_their_length_over_their_rate() -> None:
    """Two speeds that rise are one, 1 / mean weighted by seconds / rate."""
    fast = [point(400, 1e9 / 1000, seconds=8.0), point(800, 1e9 / 1400, seconds=4.0), point(1200, 1e9 / 300)]
    # Weights of 8 / 400 and 4 / 800: (0.02 * 1000 + 0.005 * 1400) / 0.025 = 1080 up to 800/s.
    at = found([*fast, point(1500, 1e9 / 100)])
    assert at.rate_per_s == pytest.approx(800, rel=0.02)
    assert at.mean_ns == pytest.approx(1e9 / 1080, rel=0.02)


def test_an_overloaded_point_ends_the_curve_at_no_speed() -> None:
    points = [
        point(400, 1e6),
        point(800, 1e6),
        point(1200, 1e6),
        point(2500, 5e9, answered_per_s=2000.0, overloaded=True),
    ]
    at = found(points)
    # From 1,200 to 2,000 the speed falls from 1,000 to 0: rate * speed is largest where it begins to fall.
    assert at.rate_per_s == pytest.approx(1200, rel=0.02)
    assert at.share == pytest.approx(0.6, rel=0.02)
