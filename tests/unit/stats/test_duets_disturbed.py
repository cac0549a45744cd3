"""Beside other work a percentile may be of disturbed requests or of others: its interval allows for both."""

import math

import numpy as np
import pytest

from redline.analysis.duet import Duet
from redline.model import OTHER_LOAD, DuetRecording, Histogram, Metric, Subject
from redline.stats.duets import shares_around
from tests.fakes.duets import simulated_duet
from tests.studies import neighbours
from tests.unit.findings.test_duet_machine import QUIET, line

BUSY: dict[tuple[Subject, str], float] = {("machine", "busy_ns"): 2.0e9, ("machine", "cpu_pressure_ns"): 0.5e9}
"""Other work takes a core, and tasks wait."""
LAB: dict[tuple[Subject, str], float] = {("machine", f"{OTHER_LOAD}redline ab (pid 7)"): 0.5e9}


def times(number: int, factor: float, slow: float) -> Histogram:
    """Times of a server: a share of them is twice as long."""
    rng = np.random.default_rng(number)
    usual = 1e6 * factor * np.exp(rng.normal(0, 0.02, 4_000))
    usual[: int(slow * len(usual))] *= 2
    return Histogram.of(usual)


def start(
    number: int, around: dict[tuple[Subject, str], float], factor: float, slow: tuple[float, float]
) -> DuetRecording:
    made = simulated_duet(number)
    assert made.traffic is not None
    window = made.traffic.window_unix_ns
    assert window is not None
    of = [times(3 * number, 1.0, slow[0]), times(3 * number + 1, factor, slow[1]), times(3 * number + 2, 1.0, slow[0])]
    targets = [
        target.model_copy(update={"response": one}) for target, one in zip(made.traffic.targets, of, strict=True)
    ]
    own = QUIET | around
    series = tuple(line(name, subject, per_s, window) for (subject, name), per_s in own.items())
    engine = made.traffic.engine.model_copy(update={"cpus": (1,)})
    traffic = made.traffic.model_copy(update={"targets": tuple(targets), "engine": engine})
    return made.model_copy(update={"series": series, "traffic": traffic})


def interval(
    around: dict[tuple[Subject, str], float],
    metric: Metric,
    factor: float = 1.0,
    slow: tuple[float, float] = (0.26, 0.26),
) -> tuple[float, float]:
    duet = Duet(tuple(start(number, around, factor, slow) for number in range(6)))
    ratio = duet.ratio(metric)
    assert ratio is not None
    return ratio.interval


@pytest.mark.parametrize("around", [BUSY, LAB, BUSY | LAB])
def test_a_percentile_between_both_is_not_said_to_differ(around: dict[tuple[Subject, str], float]) -> None:
    """One server has 26% of slow requests, the other 24%: their p75 differ by half, and the servers do not."""
    low, high = interval(around, Metric.P75, slow=(0.26, 0.24))
    assert low < 0 < high
    assert high - low > math.log(2)
    low, high = interval({}, Metric.P75, slow=(0.26, 0.24))
    assert high < -0.5, "on a machine of its own it is the server's"


@pytest.mark.parametrize("metric", [Metric.P50, Metric.P90])
def test_a_percentile_of_one_kind_is_known_all_the_same(metric: Metric) -> None:
    low, high = interval(BUSY, metric, factor=1.1)
    assert 0 < low < math.log(1.1) < high
    assert high - low < 0.1


def test_a_difference_beyond_both_is_found() -> None:
    low, _ = interval(BUSY | LAB, Metric.P75, factor=4.0)
    assert low > 0


@pytest.mark.parametrize("metric", [Metric.CPU_PER_REQUEST, Metric.THROUGHPUT])
def test_what_is_fitted_to_neighbouring_slices_needs_no_allowance(metric: Metric) -> None:
    assert interval(BUSY | LAB, metric) == interval({}, metric)


@pytest.mark.parametrize("around", [{}, {("machine", "busy_ns"): 1.1e9}])
def test_a_quiet_machine_widens_nothing(around: dict[tuple[Subject, str], float]) -> None:
    duet = Duet(tuple(start(number, around, 1.0, (0.26, 0.26)) for number in range(6)))
    for metric in (Metric.P50, Metric.P75, Metric.P99):
        ratio = duet.ratio(metric)
        assert ratio is not None
        assert ratio.bias == 0
    assert "disturbed" not in {finding.kind for finding in duet.findings}


def test_a_disturbed_duet_says_so() -> None:
    duet = Duet(tuple(start(number, BUSY, 1.0, (0.26, 0.26)) for number in range(6)))
    (said,) = (finding for finding in duet.findings if finding.kind == "disturbed")
    assert "percentile" in said.message


def test_the_shares_around_a_quantile_come_closer_with_more_slices() -> None:
    assert shares_around(0.5, 150) == pytest.approx((0.402, 0.598), abs=0.001)
    low, high = shares_around(0.99, 10)
    assert (round(low, 3), high) == (0.914, 1.0)
    few, many = (shares_around(0.75, slices) for slices in (40, 4_000))
    assert few[0] < many[0] < 0.75 < many[1] < few[1]


def test_an_order_of_its_own_keeps_another_duet_out_of_the_ratio() -> None:
    """With the same order the slices of both servers meet, and what the other's servers differ by is in our ratio."""
    plan, rng = neighbours.Plan(1, 12), np.random.default_rng(3)
    left = (0.9, 0.3, 0.9)

    def off(*, same: bool) -> float:
        other = neighbours.OtherDuet(left, same_order=same)
        ratios = [neighbours.one_start(plan, other, rng).ratios["throughput"] for _ in range(8)]
        return abs(float(np.mean([ratio.value for ratio in ratios if ratio is not None])))

    assert off(same=True) > 4 * off(same=False)
