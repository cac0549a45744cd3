"""The rate at which a percentile reaches its limit, from probes around it: a model of queues, fitted to all of them.

Near its capacity a server's response times are a *scale family*: waiting times times (capacity - rate) have the same
distribution at every rate (Kingman's heavy traffic, 1962; for M/M/1 exactly so, at any rate). So

    1 / (percentile - base)  is a straight line in the rate, and falls to 0 at the root, the capacity,

where `base` is the part of a response time that no load changes. The line is fitted to a percentile that a few seconds
can tell (p90 at most). How far out the wanted percentile lies is taken from all probes together: their histograms, each
scaled by its distance from the root, are merged (merge histograms, never percentiles). What an overloaded probe
answered per second is one more point on the line, at 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from redline.search.evidence import Capacity, Evidence, Floats

WELL_KNOWN = 0.9
"""The deepest percentile that the line is fitted to."""

SETTLED = 32.0
"""A probe counts when its queue forgets itself so many times over, in units of rate * c / gap^2; see `unsettled_per_s`.

The relaxation time of a queue is about 4 rate c / gap^2 (c is 1 for M/M/1, 1/2 for M/D/1), so that is 8 of those.
"""

_BENT_P = 0.001
_TURNS = 4


@dataclass(frozen=True)
class Point:
    """A probe as the model sees it: realised rate, length, and the distribution of its response times in seconds."""

    rate_per_s: float
    seconds: float
    values_s: Floats
    shares: Floats

    @classmethod
    def of(cls, evidence: Evidence) -> "Point":
        """Of a probe that holds at least one response."""
        values, counts = evidence.response.buckets()
        return cls(evidence.offered_per_s, evidence.seconds, values / 1e9, counts / counts.sum())

    def quantile_s(self, q: float) -> float:
        """What a share `q` of its response times does not exceed."""
        at = int(np.searchsorted(np.cumsum(self.shares), q - 1e-12))
        return float(self.values_s[min(at, len(self.values_s) - 1)])

    def mean_s(self) -> float:
        """The mean response time."""
        return float(self.values_s @ self.shares)


@dataclass(frozen=True)
class Aim:
    """A percentile and the time that it has to stay below."""

    q: float
    below_s: float


@dataclass(frozen=True)
class Fit:
    """The model's answer: the edge (where the percentile reaches its limit), the root, and where queues do not settle.

    `spread` is c, half the sum of the squared coefficients of variation of arrivals and service: it says how much the
    queue varies. `used` are the indices of the points that counted. `bent`: the points do not lie on a line.
    """

    edge_per_s: float
    root_per_s: float
    spread: float
    used: tuple[int, ...]
    bent: bool = False

    @property
    def gap_per_s(self) -> float:
        """From the edge to the root."""
        return self.root_per_s - self.edge_per_s

    def unsettled_per_s(self, seconds: float) -> float:
        """How near to the root a probe of that length says nothing any more: its queue has not settled."""
        return float(np.sqrt(SETTLED * max(self.root_per_s, 0.0) * self.spread / seconds))


def fit(points: Sequence[Point], base_s: float, capacity: Capacity | None, aim: Aim) -> Fit | None:
    """The model through these points; None where there are too few, or they rise, or the limit is no more than base."""
    if aim.below_s <= base_s:
        return None
    kept = list(range(len(points)))
    for _ in range(_TURNS):
        found = _line([points[i] for i in kept], base_s, capacity, aim)
        if found is None:
            return None
        settled = _settled(points, kept, found)
        if settled == kept:
            break
        kept = settled
    return replace(found, used=tuple(kept))


def _settled(points: Sequence[Point], kept: Sequence[int], found: Fit) -> list[int]:
    """Those far enough from the root; where none is, the farthest two."""
    far = [
        i for i in kept if found.root_per_s - points[i].rate_per_s >= 0.7 * found.unsettled_per_s(points[i].seconds)
    ]
    return far or sorted(sorted(kept, key=lambda i: points[i].rate_per_s)[:2])


def _line(points: Sequence[Point], base_s: float, capacity: Capacity | None, aim: Aim) -> Fit | None:
    at = np.array([point.rate_per_s for point in points])
    seconds = np.array([point.seconds for point in points])
    q = min(aim.q, WELL_KNOWN)
    inverse = 1 / np.array([max(point.quantile_s(q) - base_s, 1e-9) for point in points])
    means = np.array([max(point.mean_s() - base_s, 1e-9) for point in points])
    if len(points) + (capacity is not None) < 2:
        return None
    spread, slope, weights = 1.0, 1.0, np.ones(len(at) + (capacity is not None))
    root = capacity.per_s if capacity else np.inf
    for _ in range(_TURNS):
        if capacity:
            chance = np.sqrt(4 * spread * at / seconds)
            weights = 1 / np.append(chance, capacity.sd_per_s)
        x, y = (np.append(at, capacity.per_s), np.append(inverse, 0.0)) if capacity else (at, inverse)
        slope, height = _weighted_line(x, y, weights)
        if slope >= 0:
            return None
        root = -height / slope
        gaps = np.maximum(root - at, 0.02 * root)
        spread = float(np.clip(np.median(means * gaps), 0.02, 20.0))
    bent = _bent(x, y, weights)
    stretch = _stretch(points, base_s, gaps, aim.q)
    return Fit(root - stretch / (aim.below_s - base_s), root, spread, (), bent)


def _stretch(points: Sequence[Point], base_s: float, gaps: Floats, q: float) -> float:
    """The quantile of all response times past the base, each times its probe's distance from the root.

    Weights are the inverse of a probe's chance: the nearer to the root, the longer neighbours resemble each other.
    """
    values = np.concatenate([(p.values_s - base_s) * gap for p, gap in zip(points, gaps, strict=True)])
    weights = np.concatenate([p.shares * p.seconds * gap**2 for p, gap in zip(points, gaps, strict=True)])
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][min(np.searchsorted(reached, q * reached[-1]), len(order) - 1)])


def _weighted_line(x: Floats, y: Floats, weights: Floats) -> tuple[float, float]:
    """Slope and height of the least-squares line; flat where all x are one."""
    share = weights**2 / (weights**2).sum()
    middle_x, middle_y = float(share @ x), float(share @ y)
    over = float(share @ (x - middle_x) ** 2)
    if over <= 0:
        return 0.0, middle_y
    slope = float(share @ ((x - middle_x) * (y - middle_y))) / over
    return slope, middle_y - slope * middle_x


def _bent(x: Floats, y: Floats, weights: Floats) -> bool:
    """Whether a parabola fits better than chance would let it, by the t test of its last coefficient."""
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
    return bool(error > 0 and 2 * stats.t.sf(abs(solved[0]) / error, free) < _BENT_P)


def standard_error(points: Sequence[Point], base_s: float, capacity: Capacity | None, aim: Aim, whole: Fit) -> float:
    """Of the edge, by leaving out one probe at a time (the jackknife); infinite where the rest give no answer."""
    edges = [whole.edge_per_s]
    for i in range(len(points)):
        rest = [*points[:i], *points[i + 1 :]]
        found = fit(rest, base_s, capacity, aim)
        if found is None:
            return float("inf")
        edges.append(found.edge_per_s)
    left = np.array(edges[1:])
    return float(np.sqrt((len(left) - 1) / len(left) * ((left - left.mean()) ** 2).sum()))


def least_error(seconds: float, q: float, found: Fit) -> float:
    """The standard error that chance alone gives the edge, over so many seconds of probes; agreement may be luck.

    A random walk of drift d and variance v per second, watched for t seconds, tells d to sqrt(v / t). A queue is such a
    walk, with v = 2 c rate, and shows it the less the deeper the percentile. The factor is from the study.
    """
    factor = 1.2 + 0.15 * np.log(1 / (1 - q))
    return float(factor * np.sqrt(2 * found.spread * max(found.edge_per_s, 0.0) / seconds))
