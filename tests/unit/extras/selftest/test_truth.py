"""The closed forms against each other and against simulation. Tolerances: a fair draw fails with probability 1e-6."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.extras.selftest.truth import (
    Law,
    ManyServers,
    OneServer,
    PeriodicStop,
    Service,
    bimodal,
    deterministic,
    expected,
    exponential,
    log_normal,
    one_server,
    several_servers,
)

QS = (0.5, 0.9, 0.99, 0.999)
Z = 4.9
SERVICES: tuple[Service, ...] = (
    exponential(1000),
    deterministic(0.001),
    bimodal(0.0005, 0.005, 0.1),
    log_normal(0.001, 0.8),
)


@given(rate=st.floats(1, 1e5), rho=st.floats(0.01, 0.95), q=st.floats(0.01, 0.9999))
def test_one_exponential_server_is_exponential(rate: float, rho: float, q: float) -> None:
    law = ManyServers(rate * rho, exponential(rate))
    assert law.quantile_s(q) == pytest.approx(-math.log(1 - q) / (rate * (1 - rho)), rel=1e-6)
    assert law.erlang_c() == pytest.approx(rho)


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("rho", [0.2, 0.5, 0.8])
def test_the_transform_knows_the_exponential_queue(q: float, rho: float) -> None:
    closed = ManyServers(1000 * rho, exponential(1000)).quantile_s(q)
    assert OneServer(1000 * rho, exponential(1000)).quantile_s(q) == pytest.approx(closed, rel=2e-3, abs=2e-6)


def test_a_deterministic_queue_waits_half_as_long() -> None:
    """Pollaczek and Khinchine's mean: rho S / (2 (1 - rho)), half of the exponential mean."""
    law = OneServer(800, deterministic(0.001))
    # The mean is the integral of the quantiles.
    mean = float(np.mean([law.quantile_s(q) for q in (np.arange(4000) + 0.5) / 4000]))
    assert mean == pytest.approx(0.001 + 0.8 * 0.001 / (2 * 0.2), rel=0.01)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_drawn_as_it_is_reported(service: Service) -> None:
    draws = service.draw(np.random.default_rng(3), (200_000,))
    for t in (0.0004, 0.0007, 0.0012, 0.003, 0.006):
        share = float(service.share_within(np.asarray([t]))[0])
        slack = Z * math.sqrt(share * (1 - share) / len(draws)) + 1e-9
        assert abs(float((draws <= t).mean()) - share) <= slack
    assert draws.mean() == pytest.approx(service.mean_s, rel=Z * float(draws.std()) / service.mean_s / 440 + 1e-9)


@pytest.mark.parametrize("service", SERVICES)
def test_a_queue_of_any_service_is_as_simulated(service: Service) -> None:
    rate = 0.6 / service.mean_s
    law = OneServer(rate, service)
    runs = one_server(rate, service, 64, 20_000, np.random.default_rng(4))
    for q in (0.5, 0.9, 0.99):
        t = law.quantile_s(q) + 2 * service.mean_s / 1000
        within = (runs <= t).mean(axis=1)
        assert float(within.mean()) >= q - Z * float(within.std()) / 8
        below = (runs < t - 4 * service.mean_s / 1000).mean(axis=1)
        assert float(below.mean()) <= q + Z * float(below.std()) / 8


@pytest.mark.parametrize("servers", [2, 4])
def test_several_servers_are_as_simulated(servers: int) -> None:
    law = ManyServers(800 * servers, exponential(1000), servers)
    runs = several_servers(law, 64, 10_000, np.random.default_rng(5))
    for q in QS:
        within = (runs <= law.quantile_s(q)).mean(axis=1)
        assert abs(float(within.mean()) - q) <= Z * float(within.std()) / 8


def test_equal_rates_of_waiting_and_service_are_no_division_by_zero() -> None:
    law = ManyServers(1000, exponential(1000), 2)
    near = ManyServers(1000.001, exponential(1000), 2)
    assert law.quantile_s(0.99) == pytest.approx(near.quantile_s(0.99), rel=1e-4)


@given(every=st.floats(0.01, 100), share=st.floats(0.001, 0.999), q=st.floats(0, 1))
def test_what_a_stop_holds(every: float, share: float, q: float) -> None:
    law = PeriodicStop(every, every * share)
    waits = law.quantile_s(q)
    assert 0 <= waits <= every * share
    if waits > 0:
        assert (every * share - waits) / every == pytest.approx(1 - q, abs=1e-9)


def test_a_stop_of_a_second_in_twenty() -> None:
    law = PeriodicStop(20, 1)
    assert law.quantile_s(0.95) == pytest.approx(0, abs=1e-12)
    assert law.quantile_s(0.99) == pytest.approx(0.8)


LAWS: tuple[Law, ...] = (
    ManyServers(500, exponential(1000)),
    ManyServers(3200, exponential(1000), 4),
    OneServer(800, deterministic(0.001)),
    log_normal(0.003, 0.8),
)


@pytest.mark.parametrize("law", LAWS)
def test_chance_leaves_the_truth_within_its_range(law: Law) -> None:
    """The median of simulated runs with another seed lies near the truth, and the range is wider for fewer requests."""
    few, many = expected(law, 1000, (*QS, 1.0)), expected(law, 16_000, (*QS, 1.0))
    for small, large in zip(few[:3], many[:3], strict=True):
        assert small.low_s < large.low_s <= large.truth_s <= large.high_s < small.high_s
    other = expected(law, 16_000, (1.0,), seed=9)[0]
    assert many[-1].low_s < other.truth_s < many[-1].high_s


def test_nothing_is_left_to_chance_where_nothing_is_drawn() -> None:
    (always,) = expected(deterministic(0.005), 100, (0.5,))
    assert always.low_s == pytest.approx(0.005)
    assert always.high_s == pytest.approx(0.005)
    (held,) = expected(PeriodicStop(1.0, 0.1), 10_000, (0.99,))
    assert (held.low_s, held.truth_s, held.high_s) == pytest.approx((0.0896, 0.09, 0.0904))


def test_a_percentile_on_the_edge_of_two_modes_may_be_either() -> None:
    (edge,) = expected(bimodal(0.001, 0.01, 0.05), 1000, (0.95,))
    assert edge.low_s <= 0.001
    assert edge.high_s >= 0.01
