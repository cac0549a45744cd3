"""How the cost of a request grows with what its server has served: a rank test over starts, and a line. Pure.

Kendall's test within each start, its statistics summed over all (Hirsch, Slack and Smith, *Techniques of trend analysis
for monthly water quality data*, 1982): a server that begins anew grows again, and a machine that drifts does not. The
line of the costs is that of Theil and Sen.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from redline.lazily import dataclass
from redline.stats.distributions import kendall_p, pairs_of
from redline.stats.samples import Floats
from redline.stats.series import median, slope

STRETCHES = 10
"""The most stretches of a start."""
FEWEST_STRETCHES = 4
SHORTEST_NS = 200_000_000
"""The shortest stretch: blocks within it are alike on a machine that is shared, which would look like a trend."""
LEAST_GROWTH = 0.02
"""Share by which the cost rises over what is measured: less is not said, and changes no ratio."""
LEAST_COST = 0.1
"""Share of the usual cost below which the line is not extended: to what was served before the measurement."""


@dataclass(frozen=True)
class ServedCosts:
    """What a server had served, and what a request cost then, at points of a start in order. Costs are positive."""

    served: Floats
    costs: Floats

    def in_stretches(self, lasts_ns: float) -> "ServedCosts":
        """The means of stretches of it, `lasts_ns` being the time of all of it."""
        n, parts = len(self.costs), max(FEWEST_STRETCHES, min(STRETCHES, int(lasts_ns / SHORTEST_NS)))
        if n <= parts:
            return self
        served, costs = (
            np.array([part.mean() for part in np.array_split(values, parts)]) for values in (self.served, self.costs)
        )
        return ServedCosts(served, costs)


@dataclass(frozen=True)
class CostGrowth:
    """The line of a request's cost: `first` before anything was served, and `per_request` more for all that was.

    `share` is the rise over what was measured of a start, of the cost at its beginning; `requests` were served then.
    `usual` is the median cost.
    """

    first: float
    per_request: float
    share: float
    requests: int
    usual: float

    def at(self, served: Floats) -> Floats:
        """The cost of a request when so many were served."""
        return np.maximum(self.first + self.per_request * served, LEAST_COST * self.usual)


def growth(starts: Sequence[ServedCosts], chance: float) -> CostGrowth | None:
    """The growth of a server's cost over its starts; None if it may be chance, or is less than `LEAST_GROWTH`.

    `chance` is that of taking noise for a rise or a fall. Points of a start that are alike are put together before.
    """
    parts = [start for start in starts if len(start.costs) >= FEWEST_STRETCHES]
    if not parts or not _rises(parts, chance):
        return None
    per_request = median(np.array([slope(part.served.tolist(), part.costs) for part in parts]))
    first = median(np.concatenate([part.costs - per_request * part.served for part in parts]))
    served = np.mean([(part.served[0], part.served[-1]) for part in parts], axis=0)
    usual = median(np.concatenate([part.costs for part in parts]))
    began = max(first + per_request * served[0], LEAST_COST * usual)
    share = per_request * float(served[1] - served[0]) / began
    if share < LEAST_GROWTH:
        return None
    return CostGrowth(first, per_request, share, round(float(served[1] - served[0])), usual)


def _rises(parts: Sequence[ServedCosts], chance: float) -> bool:
    """Whether costs rise in these starts by more than chance."""
    if len(parts) == 1:
        return kendall_p(parts[0].costs) < chance and slope(range(len(parts[0].costs)), parts[0].costs) > 0
    rising = variance = 0.0
    for part in parts:
        n = len(part.costs)
        rows, columns = pairs_of(n)
        rising += float(np.sign(part.costs[columns] - part.costs[rows]).sum())
        variance += n * (n - 1) * (2 * n + 5) / 18
    return (rising - 1) / math.sqrt(variance) > NormalDist().inv_cdf(1 - chance / 2)
