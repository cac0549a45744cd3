"""The rate at which a percentile reaches its limit, from a model of queues fitted to the probes around it.

Near capacity, waiting times multiplied by (capacity - rate) have the same distribution at every rate (Kingman's heavy
traffic, 1962; exact for M/M/1). So 1 / (percentile - base) is a straight line in the rate that falls to 0 at the root,
the capacity; `base` is the part that does not depend on load. The line is fitted to p90 at most. The merged histograms
of all probes, scaled by their distance from the root, show how far out the wanted percentile lies. An overloaded
probe's answers per second are another point, at 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from redline.search.evidence import Capacity, Evidence, Floats
from redline.stats.distributions import t_tail

WELL_KNOWN = 0.9
"""The deepest percentile that the line is fitted to."""

SETTLED = 32.0
"""The least length of a probe that counts, in units of rate * c / gap^2; see `unsettled_per_s`.

The relaxation time of a queue is about 4 rate c / gap^2 (c is 1 for M/M/1, 1/2 for M/D/1), so this is 8 of those.
"""

BASE = 0.01
"""No request is faster than the first percentile of the calmest probe."""

CALM = 0.7
"""Below this share of the root, a probe shows the part of the response time that is not waiting."""

_DILUTED = 5.0
_SPREADS = (0.05, 20.0)
_BENT_P = 0.001
_ROUNDED = 1e-12
_TURNS = 4


@dataclass(frozen=True)
class ProbePoint:
    """A probe for the model: realised rate, length, distribution of response times in seconds, and its start."""

    rate_per_s: float
    seconds: float
    values_s: Floats
    shares: Floats
    start: int = 0

    @classmethod
    def of(cls, evidence: Evidence) -> "ProbePoint":
        """The point of a probe with at least one response."""
        values, counts = evidence.response.buckets()
        return cls(evidence.offered_per_s, evidence.seconds, values / 1e9, counts / counts.sum(), evidence.start)

    def quantile_s(self, q: float) -> float:
        """The `q`-quantile of its response times in seconds."""
        at = int(self._reached.searchsorted(q - _ROUNDED))
        return float(self.values_s[min(at, len(self.values_s) - 1)])

    def between(self, lowest_s: float, highest_s: float) -> "PartOfPoint":
        """The response times between two, both among them even if they are rounded."""
        start = int(self.values_s.searchsorted(lowest_s * (1 - _ROUNDED)))
        end = int(self.values_s.searchsorted(highest_s * (1 + _ROUNDED), "right"))
        below = float(self._reached[start - 1]) if start else 0.0
        return PartOfPoint(below, self.values_s[start:end], self.shares[start:end])

    @cached_property
    def _reached(self) -> Floats:
        return np.asarray(np.cumsum(self.shares))


@dataclass(frozen=True)
class PartOfPoint:
    """Some response times of a probe, their shares, and the share of those below them."""

    below: float
    values_s: Floats
    shares: Floats


@dataclass(frozen=True)
class Aim:
    """A percentile and its limit."""

    q: float
    below_s: float


@dataclass(frozen=True)
class Known:
    """Facts besides the probes near the limit: the calmest probe, and the capacity that an overload showed."""

    calmest: ProbePoint
    capacity: Capacity | None = None


@dataclass(frozen=True)
class QueueFit:
    """The fitted model: the rate at which the percentile reaches its limit, and the root, where queues do not settle.

    `spread` is c, half the sum of the squared coefficients of variation of arrivals and service. `chance_per_s`: the
    standard deviation of `limit_per_s` by chance alone. `typical_gap_per_s`: the distance of the points from the root;
    `used`: their indices. `bent`: the points do not lie on a line.
    """

    limit_per_s: float
    root_per_s: float
    spread: float
    chance_per_s: float
    typical_gap_per_s: float
    used: tuple[int, ...] = ()
    bent: bool = False

    @property
    def gap_per_s(self) -> float:
        """The distance from the limit to the root."""
        return self.root_per_s - self.limit_per_s

    def unsettled_per_s(self, seconds: float) -> float:
        """The distance from the root below which the queue of a probe of this length does not settle."""
        return float(np.sqrt(SETTLED * max(self.root_per_s, 0.0) * self.spread / seconds))


def fit(points: Sequence[ProbePoint], known: Known, aim: Aim) -> QueueFit | None:
    """Fit the model to these points; None if they are too few or rise, or if the limit does not exceed the base."""
    kept = tuple(range(len(points)))
    for _ in range(_TURNS):
        fitted = _fitted([points[i] for i in kept], known, aim)
        if fitted is None:
            return None
        settled = _settled(points, kept, fitted)
        if settled == kept:
            break
        kept = settled
    return replace(fitted, used=kept) if fitted else None


def _settled(points: Sequence[ProbePoint], kept: tuple[int, ...], fitted: QueueFit) -> tuple[int, ...]:
    """The points far enough from the root, or else the farthest two."""
    gaps = [(i, fitted.root_per_s - points[i].rate_per_s, points[i].seconds) for i in kept]
    far = [i for i, gap, seconds in gaps if gap >= 0.7 * fitted.unsettled_per_s(seconds)]
    return tuple(far) or tuple(sorted(sorted(kept, key=lambda i: points[i].rate_per_s)[:2]))


def _fitted(points: Sequence[ProbePoint], known: Known, aim: Aim) -> QueueFit | None:
    if len(points) + (known.capacity is not None) < 2:
        return None
    q = min(aim.q, WELL_KNOWN)
    least_s = known.calmest.quantile_s(BASE)
    line = _line(points, known, q, least_s)
    if line is None:
        return None
    base_s, stretch, gaps = least_s, 0.0, np.maximum(line.root_per_s - line.x[: len(points)], 0.02 * line.root_per_s)
    deep = np.array([point.quantile_s(aim.q) for point in points])
    for _ in range(_TURNS):
        # The closer to the root, and the smaller the part that is waiting, the more chance affects a probe's tail.
        signal = gaps / diluted(deep, base_s)
        stretch = stretch_of(points, base_s, gaps, signal, aim.q)
        base_s = _base_s(known.calmest, aim.q, stretch, line.root_per_s, least_s)
    if aim.below_s <= base_s:
        return None
    limit = line.root_per_s - stretch / (aim.below_s - base_s)
    tail = _tail_chance(points, aim.q, signal, line) * (line.root_per_s - limit)
    chance = line.chance_at(limit) + tail  # not their hypotenuse: a stretched tail also lifts the line
    bent = _bent(line.x, line.y, line.weights)
    return QueueFit(limit, line.root_per_s, line.spread, float(chance), float(gaps.mean()), bent=bent)


@dataclass(frozen=True)
class _FittedLine:
    """The weighted line; a point's weight is the inverse of its standard deviation, in requests per second."""

    x: Floats
    y: Floats
    weights: Floats
    root_per_s: float
    spread: float

    def chance_at(self, rate_per_s: float) -> float:
        """The standard deviation of the line at this rate, in requests per second."""
        share = self.weights**2
        middle = float(share @ self.x / share.sum())
        over = float(share @ (self.x - middle) ** 2)
        away = (rate_per_s - middle) ** 2 / over if np.ptp(self.x) > 0 else 0.0
        return float(np.sqrt(1 / share.sum() + away))


def _line(points: Sequence[ProbePoint], known: Known, q: float, least_s: float) -> _FittedLine | None:
    """Fit 1 / (percentile - base) iteratively: the base and the weights depend on the root, and the root on them."""
    capacity = known.capacity
    at = np.array([point.rate_per_s for point in points])
    seconds = np.array([point.seconds for point in points])
    quantiles = np.array([point.quantile_s(q) for point in points])
    x = np.append(at, capacity.per_s) if capacity else at
    weights, base_s, spread = np.ones(len(x)), least_s, 1.0
    root = capacity.per_s if capacity else 1.2 * float(at.max())
    for _ in range(2 * _TURNS):
        gaps = np.maximum(root - at, 0.02 * root)
        chance = np.sqrt(4 * spread * at / seconds) * diluted(quantiles, base_s)
        # The mean of an inverse is too large by the squared coefficient of variation of the value.
        inverse = 1 / np.maximum(quantiles - base_s, quantiles * 1e-3) / (1 + np.minimum(chance / gaps, 0.5) ** 2)
        y = np.append(inverse, 0.0) if capacity else inverse
        if capacity:
            weights = 1 / np.append(chance, capacity.sd_per_s)
        slope, height = _weighted_line(x, y, weights)
        if slope >= 0:
            return None
        root = -height / slope
        base_s = _base_s(known.calmest, q, -1 / slope, root, least_s)
        spread = float(np.clip(-1 / slope / np.log(1 / (1 - q)), *_SPREADS))
    return _FittedLine(x, y, 1 / np.append(chance, capacity.sd_per_s) if capacity else 1 / chance, root, spread)


def _base_s(calmest: ProbePoint, q: float, stretch: float, root_per_s: float, least_s: float) -> float:
    """The part of a percentile that does not depend on the rate.

    It is that of the calmest probe beyond what a queue explains, at least that probe's first percentile, which no
    request undercuts, and exactly that if the probe was not calm.
    """
    if calmest.rate_per_s > CALM * root_per_s:
        return least_s
    return max(least_s, calmest.quantile_s(q) - stretch / (root_per_s - calmest.rate_per_s))


def diluted(quantiles_s: Floats, base_s: float) -> Floats:
    """The ratio of the total time to its waiting part, by which the waiting part's relative error is larger."""
    return np.asarray(np.minimum(quantiles_s / np.maximum(quantiles_s - base_s, 1e-12), _DILUTED))


def _tail_chance(points: Sequence[ProbePoint], q: float, signal: Floats, line: _FittedLine) -> float:
    """The relative standard deviation of the stretch: fewer excursions reach a deeper percentile."""
    factor = max(0.3, (1.2 + 0.2 * np.log(1 / (1 - q))) ** 2 - 2)
    seconds = np.array([point.seconds for point in points])
    at = line.x[: len(points)]
    return float(np.sqrt(factor / (seconds * signal**2 / (2 * line.spread * at)).sum()))


def stretch_of(points: Sequence[ProbePoint], base_s: float, gaps: Floats, signal: Floats, q: float) -> float:
    """The quantile of all response times beyond the base, multiplied by their probes' distances from the root.

    Probes are weighted, since they do not determine it equally well. The quantile of all lies between those of the
    probes, so only the values there are sorted.
    """
    weights = [p.seconds * gap**2 for p, gap in zip(points, signal, strict=True)]
    lowest = min((p.quantile_s(q) - base_s) * gap for p, gap in zip(points, gaps, strict=True))
    highest = max((p.quantile_s(q + _ROUNDED) - base_s) * gap for p, gap in zip(points, gaps, strict=True))
    parts = [p.between(lowest / gap + base_s, highest / gap + base_s) for p, gap in zip(points, gaps, strict=True)]
    below = sum(weight * part.below for weight, part in zip(weights, parts, strict=True))
    values = np.concatenate([(part.values_s - base_s) * gap for part, gap in zip(parts, gaps, strict=True)])
    shares = np.concatenate([part.shares * weight for part, weight in zip(parts, weights, strict=True)])
    order = values.argsort(kind="stable")  # the parts are already sorted
    reached = below + shares[order].cumsum()
    return float(values[order[min(reached.searchsorted((q - _ROUNDED) * sum(weights)), len(order) - 1)]])


def _weighted_line(x: Floats, y: Floats, weights: Floats) -> tuple[float, float]:
    """The slope and intercept of the least-squares line; flat if all x are equal."""
    share = weights**2 / (weights**2).sum()
    middle_x, middle_y = float(share @ x), float(share @ y)
    if np.ptp(x) <= 0:
        return 0.0, middle_y
    over = float(share @ (x - middle_x) ** 2)
    slope = float(share @ ((x - middle_x) * y)) / over
    return slope, middle_y - slope * middle_x


def _bent(x: Floats, y: Floats, weights: Floats) -> bool:
    """Whether a parabola fits significantly better than a line, by the t test of its last coefficient."""
    if len(x) < 5 or np.ptp(x) <= 0:
        return False
    scaled = (x - x.mean()) / np.ptp(x)
    design = np.vander(scaled, 3) * weights[:, None]
    solved, residual, rank, _ = np.linalg.lstsq(design, y * weights)
    free = len(x) - 3
    if rank < 3 or not len(residual):
        return False
    scale = float(residual[0]) / free
    error = np.sqrt(scale * np.linalg.inv(design.T @ design)[0, 0])
    return bool(error > 0 and 2 * t_tail(abs(solved[0]) / error, free) < _BENT_P)


def scatter(points: Sequence[ProbePoint], known: Known, aim: Aim) -> float:
    """The jackknife standard error of the limit, leaving out one probe at a time; infinite if no estimate is left."""
    fits = [fit([*points[:i], *points[i + 1 :]], known, aim) for i in range(len(points))]
    limits = np.array([fitted.limit_per_s for fitted in fits if fitted])
    if len(limits) < len(fits):
        return float("inf")
    return jackknife_error(limits)


def jackknife_error(values: Floats) -> float:
    """The standard error of an estimate, from its values with one point left out at a time."""
    return float(np.sqrt((len(values) - 1) / len(values) * ((values - values.mean()) ** 2).sum()))
