"""The real engine against servers with answers in closed form. `truth` derives every tolerance."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from scipy.stats import poisson

from bench.rig import OwnLateness, drive, running
from redline.extras.selftest.truth import ManyServers, PeriodicStop, exponential
from redline.model import Closed, Load, Open, Traffic
from tests.e2e.truth import (
    ALPHA,
    PRECISION,
    Noise,
    binomial_slack,
    inflation,
    noise,
    share_above,
    share_surely_above,
)

pytestmark = [pytest.mark.e2e, pytest.mark.truth]

MS = 1_000_000
SECOND = 1000 * MS
QUANTILES = (0.5, 0.9, 0.99)


def open_load(rate: float, seconds: float, connections: int, arrivals: str = "uniform") -> Load:
    shape = Open(rate_per_s=rate, arrivals="poisson" if arrivals == "poisson" else "uniform", connections=connections)
    return Load(name="open", shape=shape, duration_ns=round(seconds * SECOND))


def closed_load(users: int, seconds: float) -> Load:
    return Load(name="closed", shape=Closed(users=users), duration_ns=round(seconds * SECOND))


@dataclass(frozen=True)
class Observed:
    """A run against a discipline, with the oracle's report of its own lateness."""

    traffic: Traffic
    own: OwnLateness

    def noise(self, null: Traffic, at_most_ns: float) -> Noise:
        """The noise of the machine; skips if that is too much for a judgement."""
        found = noise(self.traffic, null, self.own, at_most_ns)
        if found is None:
            late_us = self.traffic.lateness.quantile_ns(0.99) / 1000
            own_us = self.own.late_p99_ns / 1000
            way_us = null.response.quantile_ns(0.99) / 1000
            pytest.skip(
                f"this machine is too noisy now: against {at_most_ns / MS:.1f} ms to be seen, the engine's lateness is"
                f" {late_us:.0f} us, the oracle's {own_us:.0f} us and the way {way_us:.0f} us (p99)"
            )
        return found


def observe(binary: Path, load: Load, *arguments: str) -> Observed:
    with running(binary, *arguments) as oracle:
        traffic = drive(oracle, load)
    assert oracle.lateness is not None
    conserved(traffic)
    return Observed(traffic, oracle.lateness)


def conserved(traffic: Traffic) -> None:
    """Every request that fell due has exactly one outcome, is in the response histogram, and was answered correctly."""
    counts = traffic.counts
    assert traffic.ended == "complete"
    assert counts.outcomes.total == counts.due == traffic.response.count
    assert counts.sent == counts.outcomes.ok == counts.due
    assert traffic.service.count == traffic.lateness.count == counts.due
    parts = [interval for interval in traffic.intervals if interval.phase != "warmup"]
    assert sum(interval.response.count for interval in parts) == counts.due
    assert sum(interval.counts.due for interval in parts) == counts.due


@pytest.fixture(scope="module")
def null(oracle: Path) -> Traffic:
    """The round trip of the machine."""
    with running(oracle, "null") as server:
        traffic = drive(server, open_load(1000, 3, 64))
    conserved(traffic)
    return traffic


@pytest.fixture(scope="module")
def per_request_ns(oracle: Path) -> float:
    """The cost of a request in engine and oracle together when a burst of requests keeps both busy."""
    with running(oracle, "null") as server:
        traffic = drive(server, closed_load(64, 1))
    conserved(traffic)
    return SECOND / traffic.rate_per_s


DELAY = 20 * MS


@pytest.fixture(scope="module")
def fixed(oracle: Path) -> Observed:
    return observe(oracle, open_load(1000, 4, 256), "fixed", "--delay", "20ms")


def test_an_open_uniform_load_offers_exactly_its_requests(fixed: Observed) -> None:
    assert fixed.traffic.counts.due == 4000


def test_nothing_is_faster_than_a_fixed_delay(fixed: Observed) -> None:
    for histogram in (fixed.traffic.response, fixed.traffic.service):
        assert share_above(histogram, DELAY) == 1.0


@pytest.mark.upper_bound
def test_a_fixed_delay_is_seen_as_it_is(fixed: Observed, null: Traffic) -> None:
    noise = fixed.noise(null, DELAY / 2)
    share = share_surely_above(fixed.traffic.response, DELAY + noise.allowance_ns)
    assert share <= noise.share + binomial_slack(noise.share, fixed.traffic.response.count)


def test_closed_users_ask_as_often_as_their_answers_allow(oracle: Path) -> None:
    users, seconds = 16, 2
    traffic = observe(oracle, closed_load(users, seconds), "fixed", "--delay", "20ms").traffic
    assert share_above(traffic.response, DELAY) == 1.0
    # A user waits at least D for every answer, so in the window a user can get one answer more than fits in it.
    assert traffic.counts.completed <= users * (seconds * SECOND / DELAY + 1)
    # Little's law without a model: every user waits all the time, so the response times of a user add up to the
    # window, except for the request that was in flight at its start and the request at its end.
    waited_ns = traffic.response.mean_ns * traffic.response.count
    asked_ns = users * (traffic.measure_end_ns - traffic.measure_start_ns)
    assert abs(waited_ns - asked_ns) <= users * traffic.response.max_ns + PRECISION * waited_ns


ARRIVALS, SERVICES = 500.0, 1000.0
QUEUE = ManyServers(ARRIVALS, exponential(SERVICES))


@pytest.fixture(scope="module")
def queue(oracle: Path) -> Observed:
    """M/M/1 at half its capacity."""
    load = open_load(ARRIVALS, 20, 256, "poisson")
    return observe(oracle, load, "exponential", "--rate", f"{SERVICES:.0f}", "--seed", "11")


def queue_quantile_ns(q: float) -> float:
    return QUEUE.quantile_s(q) * SECOND


def test_poisson_arrivals_are_as_many_as_they_should_be(queue: Observed) -> None:
    mean = ARRIVALS * 20
    assert poisson.ppf(ALPHA / 2, mean) <= queue.traffic.counts.due <= poisson.isf(ALPHA / 2, mean)


@pytest.mark.parametrize("q", QUANTILES)
def test_a_queue_is_never_seen_faster_than_it_is(queue: Observed, q: float) -> None:
    histogram = queue.traffic.response
    slack = binomial_slack(1 - q, histogram.count, inflation(QUEUE, q))
    assert share_above(histogram, queue_quantile_ns(q)) >= 1 - q - slack


@pytest.mark.upper_bound
@pytest.mark.parametrize("q", QUANTILES)
def test_a_queue_is_seen_as_slow_as_it_is(queue: Observed, null: Traffic, q: float) -> None:
    histogram = queue.traffic.response
    noise = queue.noise(null, queue_quantile_ns(0.9) / 2)
    # One late arrival delays those that queue behind it: at half capacity a request has 2 before it in its busy period
    # on average ((E[N^2] / E[N] - 1) / 2 for N served in a busy period), so it meets 3 arrivals, its own among them.
    beyond = 1 - q + 3 * noise.arriving + noise.leaving
    slack = binomial_slack(beyond, histogram.count, inflation(QUEUE, q))
    assert share_surely_above(histogram, queue_quantile_ns(q) + noise.allowance_ns) <= beyond + slack


RATE, EVERY, STALL, PERIODS = 1000.0, 500 * MS, 100 * MS, 8
HELD = RATE * STALL / SECOND


@pytest.fixture(scope="module")
def stalls(oracle: Path) -> Observed:
    """A stall of 100 ms every 500 ms, eight times, under arrivals that do not wait for it."""
    load = open_load(RATE, PERIODS * EVERY / SECOND, 256)
    return observe(oracle, load, "stall", "--every", "500ms", "--for", "100ms")


# The window is a whole number of periods, cut at one point: at most PERIODS + 1 pieces of stalls, and each counts the
# requests due in it to within one.
GRID = (PERIODS + 1) / (RATE * PERIODS * EVERY / SECOND)
HELD_BEYOND = (0.85, 0.9, 0.95, 0.99)
"""Quantiles at which a request is held: the stall is the last fifth."""


def held_ns(q: float) -> float:
    return PeriodicStop(EVERY / SECOND, STALL / SECOND).quantile_s(q) * SECOND


@pytest.mark.parametrize("q", HELD_BEYOND)
def test_what_a_stall_holds_is_not_omitted(stalls: Observed, q: float) -> None:
    assert share_above(stalls.traffic.response, held_ns(q)) >= 1 - q - GRID


def test_the_longest_wait_is_a_whole_stall(stalls: Observed) -> None:
    assert stalls.traffic.response.max_ns >= STALL - SECOND / RATE


@pytest.mark.upper_bound
@pytest.mark.parametrize("q", HELD_BEYOND)
def test_a_stall_is_seen_no_longer_than_it_is(stalls: Observed, null: Traffic, per_request_ns: float, q: float) -> None:
    # All requests that a stall held are answered together, and the last of them waits for the rest.
    noise = stalls.noise(null, STALL / 2 - HELD * per_request_ns)
    allowance_ns = noise.allowance_ns + HELD * per_request_ns
    # A request due up to the allowance before a stall may arrive in it.
    expected = 1 - q + allowance_ns / EVERY + noise.share
    share = share_surely_above(stalls.traffic.response, held_ns(q) + allowance_ns)
    assert share <= expected + GRID + binomial_slack(noise.share, stalls.traffic.response.count)
