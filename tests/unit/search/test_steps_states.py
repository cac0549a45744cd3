"""The verdict of probes on a rate: passed, failed or not clear; and which probe is hopeless before its end."""

from dataclasses import replace

import numpy as np
import pytest

from redline.extras.selftest.truth import exponential
from redline.model import Histogram
from redline.search import Evidence, ProbeSlice, growth, hopeless
from redline.search.evidence import overloaded
from redline.search.steps import TriedRate, bounds, state_of
from redline.suite import parse_objectives
from tests.fakes.cliffs import MS, probe
from tests.fakes.queues import Queue, evidence

GOOD = parse_objectives("p99 < 20ms, errors < 0.1%")


def test_probes_of_one_rate_that_contradict_each_other_decide_nothing() -> None:
    passes, fails = probe(1000), probe(1000, response_ms=100)
    assert state_of((passes,), GOOD[0]) == "met"
    assert state_of((fails,), GOOD[0]) == "missed"
    assert state_of((passes, fails), GOOD[0]) == "not known"
    assert state_of((probe(1000, answered=0.8), passes), GOOD[0]) == "not known"
    assert state_of((fails, fails), GOOD[0]) == "missed"


def drained(evidence: Evidence, *, answered: int = 0, errors: int = 0, response_ms: float = 5000) -> Evidence:
    """The same probe, and what ended only after its load had."""
    late = Histogram.of(np.full(answered + errors, response_ms * MS))
    return replace(evidence, slices=(*evidence.slices, ProbeSlice(0.0, 0, answered, errors, late)))


def test_a_timeout_that_ends_after_the_load_is_an_error() -> None:
    open_still = probe(1000, answered=0.985)
    assert state_of((drained(open_still, errors=75),), GOOD[1]) == "missed"
    assert state_of((drained(open_still, answered=75),), GOOD[1]) == "met"


def test_bounds_that_a_later_probe_contradicts_expand_again() -> None:
    steps = [
        TriedRate(100, "met", 1),
        TriedRate(200, "missed", 1),
        TriedRate(300, "met", 1),
        TriedRate(400, "missed", 1),
    ]
    assert bounds(steps[:2]) == (100, 200)
    assert bounds([*steps[:2], TriedRate(220, "met", 1), *steps[3:]]) == (100, 400)


def test_a_miss_far_below_what_passed_is_a_stall_until_it_repeats() -> None:
    others = [TriedRate(100, "met", 1), TriedRate(300, "met", 1), TriedRate(400, "missed", 1)]
    assert bounds([*others, TriedRate(69, "missed", 1)]) == (300, 400)
    assert bounds([*others, TriedRate(69, "missed", 2)]) == (None, 400)
    assert bounds([*others, TriedRate(200, "missed", 2)]) == (100, 400)


def test_a_queue_that_only_grows_has_failed_however_fast_it_still_answers() -> None:
    assert state_of((probe(1000, answered=0.9),), GOOD[0]) == "missed"


def test_without_a_slow_request_a_short_probe_of_a_lively_queue_is_no_proof() -> None:
    rng = np.random.default_rng(3)
    queue = Queue(exponential(2000.0))
    states = [state_of((queue.probe(1770, rng),), GOOD[0]) for _ in range(40)]
    assert states.count("not known") >= 30


def test_a_probe_in_which_nothing_fell_due_says_nothing() -> None:
    empty = Evidence(1, (ProbeSlice(0.1, 0, 0, 0, Histogram()),) * 10)
    assert state_of((empty,), GOOD[0]) == "not known"
    assert state_of((Evidence(1, ()), probe(1)), GOOD[0]) == state_of((probe(1),), GOOD[0])


def test_what_is_far_from_the_limit_has_passed() -> None:
    rng = np.random.default_rng(6)
    states = [state_of((Queue(exponential(2000.0)).probe(1000, rng),), GOOD[0]) for _ in range(20)]
    assert states.count("met") >= 18


@pytest.mark.parametrize("load", [0.5, 0.9, 1.0])
def test_a_queue_that_keeps_up_is_not_called_hopeless(load: float) -> None:
    rng = np.random.default_rng(4)
    queue = Queue(exponential(2000.0))
    assert not any(queue.probe(load * 2000, rng).hopeless for _ in range(60))


def test_an_overloaded_one_is_within_two_seconds() -> None:
    rng = np.random.default_rng(5)
    probes = [Queue(exponential(2000.0)).probe(3000, rng) for _ in range(20)]
    assert all(each.hopeless and each.seconds <= 2 for each in probes)


def test_a_pause_is_not_growth() -> None:
    calm = ProbeSlice(0.1, 100, 100, 0, Histogram.of([MS] * 100))
    stopped, caught_up = ProbeSlice(0.1, 100, 0, 0, Histogram()), ProbeSlice(0.1, 100, 150, 0, Histogram.of([MS] * 150))
    slices = [*[calm] * 10, stopped, stopped, *[caught_up] * 4]
    assert not any(hopeless(slices[:length]) for length in range(len(slices)))
    assert growth(slices).per_s == pytest.approx(0)


def slow(seconds: float, rate: float, *, length_s: float = 5.0) -> Evidence:
    """A server that answers everything correctly, after up to that many seconds, under any load."""
    rng = np.random.default_rng(8)
    due = np.sort(rng.random(round(rate * length_s))) * length_s
    return evidence(rate, due, seconds * rng.uniform(0.5, 1, len(due)), length_s, 0.1)


@pytest.mark.parametrize("seconds", [0.5, 1.5, 3.0, 6.0])
@pytest.mark.parametrize("rate", [20, 200, 2000])
def test_a_slow_server_that_keeps_up_is_not_hopeless(seconds: float, rate: float) -> None:
    found = slow(seconds, rate)
    assert not found.hopeless
    assert not overloaded(found)


def test_its_slowness_is_no_reason_to_doubt_it() -> None:
    assert state_of((slow(1.5, 2000),), parse_objectives("p99 < 3s")[0]) == "met"


def test_what_is_answered_after_the_load_is_achieved() -> None:
    assert state_of((slow(1.5, 2000),), parse_objectives("achieved > 99%")[0]) == "met"


def test_while_nothing_has_ended_patience_decides() -> None:
    silent = [ProbeSlice(0.1, 100, 0, 0, Histogram())] * 30
    assert not hopeless(silent)
    assert not hopeless(silent, patience_s=3.5)
    assert hopeless(silent, patience_s=2.5)


@pytest.mark.parametrize("load", [1.2, 2, 10, 50])
def test_far_past_its_capacity_a_server_is_hopeless_soon(load: float) -> None:
    rng = np.random.default_rng(9)
    probes = [Queue(exponential(2000.0), warmup_s=warmup).probe(load * 2000, rng) for warmup in (0.0, 0.2, 1.0)]
    assert all(each.hopeless and each.seconds <= 2.5 for each in probes)
