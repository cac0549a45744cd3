"""Probes that differ by more than chance: a server whose speed is drawn anew for each, with a known typical limit."""

from dataclasses import dataclass

import numpy as np
import pytest

from redline.extras.selftest.truth import exponential
from redline.search import Evidence
from redline.search.queue_model import Aim
from redline.search.scattered import _clearly_slower, _typical, scale_of, scattered
from redline.stats.samples import Floats
from tests.fakes.queues import Queue

AIM = Aim(0.9, 0.02)


def probes(spread: float, rates: list[float], seed: int = 1) -> list[Evidence]:
    """Probes of a queue with a mean capacity of 2,000/s, which is drawn anew for each."""
    rng = np.random.default_rng(seed)
    capacities = 2000 * np.exp(rng.normal(0, spread, len(rates)))
    return [Queue(exponential(float(own))).probe(rate, rng) for own, rate in zip(capacities, rates, strict=True)]


RATES = [300.0, *np.linspace(1400, 2300, 14).tolist()]


def test_a_drawn_speed_is_seen_with_its_spread() -> None:
    found = [scattered(probes(0.15, RATES, seed), AIM, 0.975) for seed in range(6)]
    known = [one for one in found if one is not None]
    assert len(known) >= 5
    assert np.median([one.root_per_s for one in known]) == pytest.approx(2000, rel=0.1)
    assert np.median([one.spread for one in known]) == pytest.approx(0.15, rel=0.5)
    # ln(10) / 20 ms = 115 per second below the root.
    assert np.median([one.root_per_s - one.limit_per_s for one in known]) == pytest.approx(115, rel=0.25)
    assert sum(abs(one.limit_per_s - 1885) < one.half_per_s for one in known) >= 4


def test_a_queue_of_one_speed_does_not_scatter() -> None:
    assert [scattered(probes(0.0, RATES, seed), AIM, 0.975) for seed in range(3)] == [None] * 3


@dataclass
class Pausing(Queue):
    """A queue whose worker stands still for 100 ms, once in 5 seconds on average."""

    def requests(self, rate_per_s: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
        whole = self.warmup_s + self.seconds
        due, pauses = (np.sort(rng.random(rng.poisson(each * whole))) * whole for each in (rate_per_s, 0.2))
        at = np.append(due, pauses)
        order = np.argsort(at)
        takes = np.append(self.service.draw(rng, due.shape), np.full(len(pauses), 0.1))[order]
        done = np.cumsum(takes)
        own = order < len(due)
        return due, (done + np.maximum.accumulate(at[order] - (done - takes)) - at[order])[own]


def test_pauses_are_in_parts_of_probes_and_a_drawn_speed_is_in_all_of_a_probe() -> None:
    aim, rng = Aim(0.9, 0.02), np.random.default_rng(2)
    rates = [300.0, *np.linspace(1000, 1750, 10).tolist(), 2600.0, 2600.0]
    paused = [[Pausing(exponential(2000.0)).probe(rate, rng) for rate in rates] for _ in range(10)]
    seen = [one for one in (scattered(made, aim, 0.975) for made in paused) if one]
    assert len(seen) >= 6
    assert sum(one.uneven for one in seen) >= len(seen) - 1
    drawn = [one for one in (scattered(probes(0.15, RATES, seed), aim, 0.975) for seed in range(6)) if one]
    assert [one.uneven for one in drawn] == [False] * len(drawn)


def test_too_few_probes_or_none_that_is_overloaded_show_nothing() -> None:
    made = probes(0.15, RATES)
    kept_up = [probe for probe in made if not probe.hopeless]
    assert scattered(kept_up, AIM, 0.975) is None
    assert scattered([*kept_up[:2], *[probe for probe in made if probe.hopeless][:3]], AIM, 0.975) is None


def test_the_scale_makes_roots_independent_of_the_rates() -> None:
    at, inverse = np.array([1.0, 2.0, 3.0]), np.array([5.0, 3.0, 2.0])
    scale = scale_of(at, at, inverse)
    assert scale == pytest.approx(2 / 3)
    assert np.polyfit(at, at + scale * inverse, 1)[0] == pytest.approx(0)
    assert scale_of(at, at, np.ones(3)) == 0


def test_the_typical_root_is_the_geometric_mean() -> None:
    assert _typical(np.array([1.0, 100.0])) == pytest.approx(10)


def contradicting(slow: int, *, by: float = 0.06, chance: float = 1.0) -> bool:
    """Whether probes contradict each other of which some kept up at 1,000/s, and `slow` were overloaded below that."""
    shown = np.array([1000.0] * 4 + [1000.0 * (1 - by)] * slow)
    at = np.array([1000.0] * (4 + slow))
    over = np.array([True] * (4 + slow))
    return _clearly_slower(at, shown, np.zeros(4 + slow), np.full(4 + slow, chance), over) >= 2


def test_two_probes_that_are_clearly_slower_contradict_the_others() -> None:
    assert contradicting(2)
    assert not contradicting(1)


def test_clearly_is_a_twentieth_and_three_standard_errors() -> None:
    assert contradicting(2, by=0.055)
    assert not contradicting(2, by=0.045)
    assert contradicting(2, by=0.1, chance=100 / (3 * 2**0.5) * 0.99)
    assert not contradicting(2, by=0.1, chance=100 / (3 * 2**0.5) * 1.01)
