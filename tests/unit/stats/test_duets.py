"""The ratio of a start from its slices, and over starts: sums that a reader can do."""

import math

import numpy as np
import pytest

from redline.stats.distributions import t_quantile
from redline.stats.duets import (
    METHOD_STARTS,
    METHOD_WITHIN_STARTS,
    Floats,
    LogRatio,
    Slices,
    StartRatio,
    over_starts,
    shares_around,
)
from redline.stats.estimate import METHOD_BUILDS, METHOD_HOSTS, Spread

CONTRAST = np.array([-0.5, 1.0, -0.5])
ORDER = (0, 1, 2, 2, 1, 0, 1, 0, 2, 2, 0, 1)


def slices(effects: tuple[float, ...], count: int = 120, *, again: float = 0.0, drift: float = 0.0) -> Slices:
    """Slices of servers with these logarithms, in a fixed order; a slice after one of its server costs `again` more."""
    servers = np.array([ORDER[at % len(ORDER)] for at in range(count)])
    repeats = np.concatenate(([False], servers[1:] == servers[:-1]))
    logs = np.array(effects)[servers] + again * repeats + drift * np.arange(count)
    return Slices(servers, logs, repeats)


def ratio(of: Slices, contrast: Floats = CONTRAST) -> StartRatio:
    found = of.ratio(contrast)
    assert found is not None
    return found


def test_effects_that_slices_show_exactly_are_found_exactly() -> None:
    found = ratio(slices((5.0, 5.3, 5.1)))
    assert found.value == pytest.approx(0.3 - 0.05)
    assert found.standard_error == pytest.approx(0.0, abs=1e-9)
    first = ratio(slices((5.0, 5.3, 5.1)), np.array([-1.0, 1.0, 0.0]))
    assert first.value == pytest.approx(0.3)


def test_what_a_server_gains_by_being_loaded_twice_is_no_part_of_its_ratio() -> None:
    assert ratio(slices((5.0, 5.3, 5.0), again=-0.2)).value == pytest.approx(0.3)


def test_a_slow_drift_of_the_machine_is_in_no_ratio() -> None:
    assert ratio(slices((5.0, 5.3, 5.0), drift=0.0005)).value == pytest.approx(0.3, abs=0.001)


def test_a_few_slices_that_steal_disturbed_move_no_ratio() -> None:
    of = slices((5.0, 5.3, 5.0))
    logs = of.logs + np.random.default_rng(1).normal(0, 0.001, len(of.logs))
    logs[[7, 31, 64]] += 2.0
    assert ratio(Slices(of.servers, logs, of.again)).value == pytest.approx(0.3, abs=0.002)


def test_the_standard_error_is_that_of_ten_batches() -> None:
    """Every second batch of twelve slices has a server that is slower by a tenth."""
    of = slices((5.0, 5.3, 5.0))
    slower = (np.arange(120) // 12 % 2 == 1) & (of.servers == 1)
    found = ratio(Slices(of.servers, of.logs + 0.1 * slower, of.again))
    values = [0.3 + 0.1 * (at % 2) for at in range(10)]
    assert found.standard_error == pytest.approx(np.std(values, ddof=1) / math.sqrt(10), rel=1e-3)


def test_batches_need_two_slices_of_each_server() -> None:
    assert ratio(slices((5.0, 5.3, 5.0), count=59)).standard_error is None
    few = ratio(slices((5.0, 5.3, 5.0), count=24))
    assert few.value == pytest.approx(0.3)
    assert few.standard_error is None


def test_slices_that_do_not_tell_servers_apart_have_no_ratio() -> None:
    servers, again = np.array([0, 1, 1]), np.array([False, False, True])
    assert Slices(servers, np.array([1.0, 2.0, 2.0]), again).ratio(np.array([-1.0, 1.0])) is not None
    both = Slices(np.array([0, 1]), np.array([1.0, 2.0]), np.array([False, True]))
    assert both.ratio(np.array([-1.0, 1.0])) is None, "another server and a second slice came together"


def test_a_first_slice_has_no_predecessor() -> None:
    servers = np.array([0, 1, 0, 1])
    first = Slices(servers, np.array([1.0, 2.0, 1.0, 2.0]), np.array([True, False, False, False]))
    assert ratio(first, np.array([-1.0, 1.0])).value == pytest.approx(1.0)


def test_over_starts_values_are_averaged_and_their_errors_pooled() -> None:
    found = over_starts([StartRatio(0.1, 0.03), StartRatio(0.3, 0.04), StartRatio(0.2, None)])
    assert (found.value, found.starts) == pytest.approx((0.2, 3))
    assert found.starts_sd == pytest.approx(0.1)
    assert found.batch_se == pytest.approx(math.sqrt((0.03**2 + 0.04**2) / 2))
    one = over_starts([StartRatio(0.1, None)])
    assert one == LogRatio(0.1, 1, None, None)
    assert over_starts([StartRatio(0.1, 0.02)]).starts_sd is None
    assert over_starts([StartRatio(0.1, None), StartRatio(0.3, None)]).starts_sd == pytest.approx(0.1 * math.sqrt(2))


def test_builds_that_differ_widen_the_interval() -> None:
    """Starts of one build agree, so a third layout may lie anywhere around both."""
    starts = [StartRatio(value, None) for value in (0.010, 0.011, 0.012, 0.030, 0.031, 0.032)]
    alone, built = over_starts(starts), over_starts(starts, builds=["0", "0", "0", "1", "1", "1"])
    assert METHOD_BUILDS in built.spreads
    assert built.value == alone.value
    assert built.interval[1] - built.interval[0] > 5 * (alone.interval[1] - alone.interval[0])
    assert over_starts(starts, builds=["0", "1", "2", "0", "1", "2"]).interval == alone.interval, "they do not differ"


def test_hosts_that_differ_are_a_spread_of_their_own() -> None:
    starts = [StartRatio(value, None) for value in (0.1, 0.1, 0.3, 0.3)]
    assert METHOD_HOSTS not in over_starts(starts).spreads
    assert METHOD_HOSTS in over_starts(starts, ["a", "a", "b", "b"]).spreads


def test_a_ratio_has_a_spread_over_starts_and_one_within_them() -> None:
    spreads = LogRatio(0.1, 4, 0.2, 0.3).spreads
    assert (spreads[METHOD_STARTS].variance, spreads[METHOD_STARTS].freedom) == pytest.approx((0.01, 3))
    within = spreads[METHOD_WITHIN_STARTS]
    assert (within.variance, within.freedom) == pytest.approx((0.0225, 36))
    assert LogRatio(0.1, 4, None, None).spreads == {}


def test_an_interval_is_students_over_starts_or_that_within_them_if_wider() -> None:
    low, high = LogRatio(0.1, 4, 0.2, 0.01).interval
    reach = t_quantile(0.975, 3) * 0.1
    assert (low, high) == pytest.approx((0.1 - reach, 0.1 + reach))
    low, high = LogRatio(0.1, 4, 0.0001, 0.2).interval
    assert high - low == pytest.approx(2 * t_quantile(0.975, 36) * 0.1)
    assert LogRatio(0.1, 1, None, None).interval == (-math.inf, math.inf)
    wide = LogRatio(0.1, 4, 0.2, 0.01, bias=0.5).interval
    assert wide[1] - wide[0] == pytest.approx(2 * (reach + 0.5))


def test_what_starts_differ_by_is_beyond_their_batches() -> None:
    assert LogRatio(0.1, 4, 0.5, 0.3).between_sd == pytest.approx(0.4)
    assert LogRatio(0.1, 4, 0.2, 0.3).between_sd == 0
    assert LogRatio(0.1, 4, None, 0.3).between_sd is None
    assert LogRatio(0.1, 4, 0.2, None).between_sd is None


def test_starts_in_the_same_slot_of_a_histogram_tell_no_more_than_its_width() -> None:
    alike = over_starts([StartRatio(0.1, None)] * 4, resolution=0.012)
    reach = t_quantile(0.975, 3) * 0.012 / math.sqrt(12)
    assert alike.interval == pytest.approx((0.1 - reach, 0.1 + reach))
    two = alike.over(over_starts([StartRatio(0.0, None)] * 4, resolution=0.005)).ratio
    assert two.high is not None
    assert math.log(two.high) - 0.1 == pytest.approx(t_quantile(0.975, 3) * 0.013 / math.sqrt(12))


def test_two_ratios_to_the_same_baseline_differ_with_both_spreads() -> None:
    ours, theirs = LogRatio(0.3, 4, 0.2, 0.01, bias=0.01), LogRatio(0.1, 9, 0.3, 0.01, bias=0.02)
    found = ours.over(theirs)
    assert found.ratio.value == pytest.approx(math.exp(0.2))
    assert found.ratio.n == 4
    alone = ours.over(LogRatio(0.1, 1, None, 0.01))
    assert (alone.ratio.low, alone.ratio.high) == (None, None), "the scatter within starts would be too little"
    unbiased = LogRatio(0.3, 4, 0.2, 0.01).over(LogRatio(0.1, 9, 0.3, 0.01))
    assert found.ratio.high is not None
    assert unbiased.ratio.high is not None
    assert math.log(found.ratio.high / unbiased.ratio.high) == pytest.approx(0.03)


def test_builds_that_differ_in_one_of_two_runs_are_in_their_ratio() -> None:
    ours = LogRatio(0.3, 9, 0.01, 0.01, builds=Spread(0.04, 2))
    theirs = LogRatio(0.1, 9, 0.01, 0.01)
    for one, other in ((ours, theirs), (theirs, ours)):
        found = one.over(other).ratio
        assert found.low is not None
        assert found.high is not None
        assert found.low < 1 < found.high, "of 0.2 the builds alone may be the cause"


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_disturbed_slices_are_the_sample_of_a_quantile(q: float) -> None:
    low, high = shares_around(q, 600)
    half = 1.96 * math.sqrt(1.5 * q * (1 - q) / 600)
    assert (low, high) == pytest.approx((q - half, min(q + half, 1.0)))
    assert shares_around(q, 1) == pytest.approx((max(q - 1.96 * math.sqrt(1.5 * q * (1 - q)), 0.0), 1.0))
