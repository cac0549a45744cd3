"""How often growth with the requests is said of heaps that do not leak, and of those that do: figures for the docs.

`python -m tests.studies.accumulation` prints them, for loads of 10 s and of 35 s.
"""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from redline.findings.accumulation import LEAST_BYTES, MEMORY_GROWS
from redline.findings.rules import TREND_P
from redline.stats.accumulation import accumulation
from redline.stats.samples import Floats

MIB = 1 << 20
RATE_PER_S = 2000.0
SAMPLED_EVERY_S = 0.3

Heap = Callable[[Generator, Floats, float], Floats]
"""The size by time, given times from 0 to the length of a load, relative to the size at its beginning."""


def _noisy(shape: Callable[[Generator, Floats, float], Floats], low: float = 0.0005, high: float = 0.02) -> Heap:
    """The same with noise that only adds, of a share of the size between these."""

    def heap(rng: Generator, at: Floats, length_s: float) -> Floats:
        noise: Floats = np.abs(rng.normal(0, rng.uniform(low, high), len(at)))
        return shape(rng, at, length_s) + noise

    return heap


def _between(rng: Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _filling(low: float, high: float) -> Callable[[Generator, Floats, float], Floats]:
    """Fills up exponentially, with a time constant of these shares of the load."""

    def shape(rng: Generator, at: Floats, length_s: float) -> Floats:
        constant_s = length_s * _between(rng, low, high)
        return 1 + rng.uniform(0.1, 3) * (1 - np.exp(-at / constant_s))

    return shape


def _sawtooth(low: float, high: float) -> Callable[[Generator, Floats, float], Floats]:
    """Grows and is collected, with a period of these shares of the load."""

    def shape(rng: Generator, at: Floats, length_s: float) -> Floats:
        teeth: Floats = (at / (length_s * _between(rng, low, high)) + rng.random()) % 1
        return 1 + rng.uniform(0.05, 1) * teeth

    return shape


def _steps(rng: Generator, at: Floats, length_s: float) -> Floats:
    """Up to some six arenas or pages of a cache, more of them at the beginning."""
    when = length_s * rng.uniform(0, 1, rng.poisson(rng.uniform(0, 6))) ** 1.5
    sizes = rng.uniform(0.005, 0.1, len(when))
    risen: Floats = ((at[:, None] > when) * sizes).sum(axis=1)
    return 1 + risen


def _walk(rng: Generator, at: Floats, _length_s: float) -> Floats:
    return 1 + np.cumsum(rng.normal(0, rng.uniform(0.0005, 0.005), len(at)))


def _leak(share: float) -> Callable[[Generator, Floats, float], Floats]:
    return lambda _rng, at, length_s: 1 + share * at / length_s


HEAPS: dict[str, Heap] = {
    "steady": _noisy(lambda _rng, at, _length_s: np.ones(len(at))),
    "fills up, up to half of the load": _noisy(_filling(0.05, 0.5)),
    "fills up, half to all of the load": _noisy(_filling(0.5, 1.0)),
    "sawtooth": _noisy(_sawtooth(0.02, 1.0), 0.0005, 0.002),
    "steps": _noisy(_steps, 0.0005, 0.005),
    "random walk": _walk,
}
BLIND: dict[str, Heap] = {
    "fills up, one to three loads": _noisy(_filling(1.0, 3.0)),
    "sawtooth, one to three loads": _noisy(_sawtooth(1.0, 3.0), 0.0005, 0.002),
}
"""Heaps that a load is too short to tell from a leak."""
LEAKS: dict[str, Heap] = {
    f"{share:.0%}, {name}": _noisy(_leak(share), noise, noise)
    for name, noise in (("quiet", 0.001), ("noisy", 0.01))
    for share in (0.05, 0.1, 0.3)
}


def said(heap: Heap, times: int, length_s: float = 10.0, seed: int = 1) -> int:
    """How many of so many such heaps are said to grow, in loads of this length."""
    rng, number = np.random.default_rng(seed), 0
    at = np.arange(SAMPLED_EVERY_S / 2, length_s, SAMPLED_EVERY_S)
    for _ in range(times):
        size = rng.uniform(10, 500) * MIB * heap(rng, at, length_s)
        seen = accumulation(at * RATE_PER_S, size, TREND_P)
        is_large = seen is not None and seen.last - seen.first >= LEAST_BYTES
        number += is_large and seen is not None and MEMORY_GROWS.grade(seen.share) is not None
    return number


if __name__ == "__main__":
    for name, heap in (HEAPS | BLIND | LEAKS).items():
        print(f"{name:40}", *(f"{said(heap, 1000, length_s):5}" for length_s in (10.0, 35.0)))
