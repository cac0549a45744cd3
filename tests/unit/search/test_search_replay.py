"""The search for the highest speed of a recording: on queues whose truth is counted, without sockets."""

import numpy as np
import pytest

from redline.search import Converged, Doomed, Evidence, Exhausted, Proposal, Search, Settings
from redline.search.evidence import Floats, overloaded
from redline.suite import parse_objectives
from tests.fakes.queues import evidence

GOOD = parse_objectives("p99 < 50ms, errors < 1%")
SERVED_PER_S = 2000.0
RUSH = np.concatenate([np.arange(0, 20, 0.02), np.arange(20, 24, 0.004), np.arange(24, 60, 0.02)])
"""A minute at 50/s with four seconds at 250/s in it, 3800 requests."""
EVEN = np.arange(0, 60, 0.02)


def responses_of(due: Floats, rng: np.random.Generator) -> Floats:
    services = rng.exponential(1 / SERVED_PER_S, len(due))
    done = np.cumsum(services)
    return np.asarray(done + np.maximum.accumulate(due - (done - services)) - due)


def probe(times: Floats, rate_per_s: float, rng: np.random.Generator, base_s: float = 0.0) -> Evidence:
    """A probe that sends the recording so fast that its mean is this rate."""
    recorded_per_s = len(times) / 60
    speed = rate_per_s / recorded_per_s
    due = times / speed
    seconds = 60 / speed
    made = evidence(rate_per_s, due, responses_of(due, rng) + base_s, seconds, seconds / 50, whole=True)
    return Evidence(rate_per_s, made.slices, speed=speed)


def searched(times: Floats, seed: int, probes: int = 12) -> tuple[Search, Converged | Exhausted | Doomed]:
    rng, recorded_per_s = np.random.default_rng([seed, 3]), len(times) / 60
    settings = Settings(
        start_per_s=700, lowest_per_s=140, highest_per_s=3500, probes=probes, recorded_per_s=recorded_per_s
    )
    search = Search({"good": GOOD}, settings)
    while isinstance(step := search.next(), Proposal):
        search.add(probe(times, step.rate_per_s, rng))
    return search, step


def share_met(times: Floats, rate_per_s: float) -> float:
    """How often the whole recording meets the objective at this mean rate."""
    probes = [probe(times, rate_per_s, np.random.default_rng([seed, 5])) for seed in range(20)]
    met = [made.response.quantile_ns(0.99) < 50e6 for made in probes]
    return float(np.mean(met))


@pytest.mark.parametrize("times", [EVEN, RUSH], ids=["even", "with a rush"])
def test_the_bracket_holds_the_speed_at_which_the_recording_stops_meeting_it(times: Floats) -> None:
    for seed in range(6):
        _, end = searched(times, seed)
        (limit,) = end.limits
        assert limit.confidence is None, "a recording has no model"
        if limit.low_per_s is not None:
            assert share_met(times, limit.low_per_s) > 0.5
        if limit.high_per_s is not None:
            assert share_met(times, limit.high_per_s) < 0.5
        assert limit.low_per_s is not None
        assert limit.high_per_s is not None


def test_a_rush_lowers_the_speed() -> None:
    highs = [searched(times, 1)[1].limits[0].high_per_s or 0 for times in (EVEN, RUSH)]
    assert highs[1] < 0.7 * highs[0]


def test_a_backlog_that_drains_is_no_overload() -> None:
    """At three times the mean the rush cannot be served, but all before and after it is."""
    made = probe(RUSH, 900, np.random.default_rng(1))
    assert made.response.max_ns > 50e6
    assert not overloaded(made)
    assert overloaded(probe(EVEN, 3000, np.random.default_rng(1)))


def test_more_requests_under_way_in_a_rising_recording_are_no_overload() -> None:
    """Answers take 300 ms at any rate, which rises from 0: ever more of them are under way."""
    rising = 60 * np.sqrt(np.arange(3000) / 3000)
    made = probe(rising, 900, np.random.default_rng(1), base_s=0.3)
    assert not overloaded(made)


def test_speeds_are_named_with_what_would_let_others_be_tried() -> None:
    settings = Settings(
        start_per_s=200,
        lowest_per_s=100,
        highest_per_s=400,
        recorded_per_s=50,
        higher="take a longer one",
        lower="slow",
    )
    search = Search({"good": GOOD}, settings)
    while isinstance(step := search.next(), Proposal):
        search.add(probe(EVEN, step.rate_per_s, np.random.default_rng(2)))
    assert isinstance(step, Doomed)
    assert step.reason == "even 8x (400/s), the highest speed allowed, meets p99 < 50ms, errors < 1%; take a longer one"
    search = Search({"good": GOOD}, settings)
    while isinstance(step := search.next(), Proposal):
        search.add(probe(EVEN, step.rate_per_s, np.random.default_rng(2), base_s=1.0))
    assert isinstance(step, Doomed)
    assert step.reason == "even 2x (100/s) does not meet p99 < 50ms, errors < 1%; slow"


def test_a_client_at_its_limit_is_said_as_for_rates() -> None:
    def limited(rate_per_s: float) -> Evidence:
        made = probe(EVEN, min(rate_per_s, 900), np.random.default_rng(2))
        return made if rate_per_s < 1000 else Evidence(rate_per_s, made.slices, client="no core", speed=rate_per_s / 50)

    search = Search({"good": GOOD}, Settings(start_per_s=400, recorded_per_s=50))
    while isinstance(step := search.next(), Proposal):
        search.add(limited(step.rate_per_s))
    assert isinstance(step, Doomed)
    assert step.reason == "the client is the limit, not the server, at 32x (1,600/s): no core"
