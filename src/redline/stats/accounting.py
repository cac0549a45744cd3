"""Divide a difference of CPU time per request among the functions that were sampled on both sides. Pure.

docs/decisions/0048-why.md explains the method.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from redline.stats.distributions import t_quantile, t_tail
from redline.stats.families import holm_adjust
from redline.stats.samples import CONFIDENCE, Floats

ALPHA = 0.05
EXPECTED_SHARE = 0.8
"""The share of the error probability that those functions have which are expected to differ."""
FEWEST_STARTS = 3
"""With two starts an interval over starts is wider than any difference."""
LEAST = 0.001
"""Functions with a smaller share of the CPU time of both sides together are not tested."""


@dataclass(frozen=True)
class SampledServer:
    """A server of a sampled start: its CPU time per request, and its samples by function (or library)."""

    cpu_ns: float
    samples: Mapping[str, int]

    @cached_property
    def ns_per_sample(self) -> float:
        """The CPU time of a request that a sample stands for."""
        return self.cpu_ns / sum(self.samples.values())


@dataclass(frozen=True)
class SampledStart:
    """The servers of a start: copies of the baseline, and the server that is compared with them."""

    before: tuple[SampledServer, ...]
    after: SampledServer

    @property
    def names(self) -> frozenset[str]:
        """Everything that was sampled."""
        return frozenset(name for server in (*self.before, self.after) for name in server.samples)


@dataclass(frozen=True)
class MeanDifference:
    """A difference in nanoseconds per request: its mean over starts, and the standard error."""

    value: float
    error: float
    freedom: int

    @property
    def half_width(self) -> float:
        """Half the width of the 95% interval."""
        return t_quantile((1 + CONFIDENCE) / 2, self.freedom) * self.error

    @property
    def p(self) -> float:
        """The two-sided p-value of no difference."""
        if not self.error:
            return float(self.value == 0)
        return 2 * t_tail(abs(self.value) / self.error, self.freedom)


@dataclass(frozen=True)
class PartCost:
    """A function (or library): its cost per request on both sides, and the difference."""

    name: str
    before_ns: float
    after_ns: float
    difference: MeanDifference
    p_adjusted: float
    expected: bool


@dataclass(frozen=True)
class Accounting:
    """The parts that surely differ, the largest difference first; all others together; and the sum of both."""

    parts: tuple[PartCost, ...]
    others: MeanDifference
    whole: MeanDifference
    tested: int
    expected: int


def account(starts: Sequence[SampledStart], expected: AbstractSet[str] = frozenset()) -> Accounting:
    """Divide the difference among functions, of at least FEWEST_STARTS starts. The parts and others are the whole.

    The `expected` ones are a family of their own, with most of the error probability, however little they cost.
    """
    names = sorted({name for start in starts for name in start.names})
    before = {name: np.array([_mean(start.before, _cost_of(name)) for start in starts]) for name in names}
    after = {name: np.array([_cost_of(name)(start.after) for start in starts]) for name in names}
    whole = np.array([start.after.cpu_ns - _mean(start.before, lambda server: server.cpu_ns) for start in starts])
    in_all = sum(float(costs.sum()) for side in (before, after) for costs in side.values())
    tested = [name for name in names if name in expected or float((before[name] + after[name]).sum()) >= LEAST * in_all]
    differences = [_difference(after[name] - before[name], _chance(starts, [name])) for name in tested]
    adjusted = _adjusted([difference.p for difference in differences], [name in expected for name in tested])
    parts = [
        PartCost(name, float(before[name].mean()), float(after[name].mean()), difference, p, name in expected)
        for name, difference, p in zip(tested, differences, adjusted, strict=True)
        if p < ALPHA
    ]
    parts.sort(key=lambda part: (-abs(part.difference.value), part.name))
    named = {part.name for part in parts}
    in_parts = sum((after[name] - before[name] for name in named), np.zeros(len(starts)))
    left = [name for name in names if name not in named]
    return Accounting(
        tuple(parts),
        _difference(whole - in_parts, _chance(starts, left)),
        _difference(whole, 0.0),
        len(tested),
        len(expected & set(tested)),
    )


def _adjusted(ps: Sequence[float], expected: Sequence[bool]) -> list[float]:
    """Adjusted p-values: Holm's in either family, each over its share of the error probability."""
    if not any(expected) or all(expected):
        return list(holm_adjust(ps))
    adjusted = [1.0] * len(ps)
    for family, share in ((True, EXPECTED_SHARE), (False, 1 - EXPECTED_SHARE)):
        places = [place for place, is_expected in enumerate(expected) if is_expected is family]
        for place, p in zip(places, holm_adjust([ps[place] for place in places]), strict=True):
            adjusted[place] = min(1.0, p / share)
    return adjusted


def _cost_of(name: str) -> Callable[[SampledServer], float]:
    return lambda server: server.ns_per_sample * server.samples.get(name, 0)


def _mean(servers: Sequence[SampledServer], of: Callable[[SampledServer], float]) -> float:
    return sum(map(of, servers)) / len(servers)


def paired_difference(values: Floats) -> MeanDifference:
    """The mean of differences, one of each start, with their own scatter."""
    return _difference(values, 0.0)


def _difference(values: Floats, chance: float) -> MeanDifference:
    """The mean over starts. Its variance is that over starts, or that of counting samples, whichever is larger."""
    count = len(values)
    over_starts = float(values.var(ddof=1)) / count
    return MeanDifference(float(values.mean()), math.sqrt(max(over_starts, chance)), count - 1)


def difference_of_counts(
    values: Floats, starts: Sequence[SampledStart], count: Callable[[SampledServer], int]
) -> MeanDifference:
    """The mean of differences, one of each start, that rest on so many samples of each server."""
    return _difference(values, _chance_of(starts, count))


def _chance(starts: Sequence[SampledStart], names: Iterable[str]) -> float:
    known = set(names)
    return _chance_of(starts, lambda server: sum(n for name, n in server.samples.items() if name in known))


def _chance_of(starts: Sequence[SampledStart], count: Callable[[SampledServer], int]) -> float:
    """The variance of the mean over starts if the numbers of samples were counts of rare events."""

    def of(server: SampledServer) -> float:
        return server.ns_per_sample**2 * count(server)

    return sum(of(start.after) + _mean(start.before, of) / len(start.before) for start in starts) / len(starts) ** 2
