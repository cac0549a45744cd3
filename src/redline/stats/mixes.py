"""How the CPU time of a mix divides among its requests. docs/concepts/statistics.md explains the method.

A request's cost is known where a duet measured it by itself, in the same start of the servers as the mix. Costs by
themselves need not be those in the mix: caches are shared, and batches are others. So they are held against the cost of
the mix, and what is left of that comparison widens the shares.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from redline.model import Estimate
from redline.stats.duets import FEWEST_IN_BATCH, METHOD_STARTS, METHOD_WITHIN_STARTS, LogRatio, StartRatio, over_starts
from redline.stats.samples import BATCHES, CONFIDENCE, Floats

METHOD, METHOD_WITHIN = "t interval over fresh starts", "t interval with the standard error within starts"
OF_SHARES = ", of log odds, wider by how far the parts may be from the whole"


@dataclass(frozen=True)
class Costs:
    """CPU time in nanoseconds and complete answers of a server in the slices of a load, in their order.

    Both have positive sums.
    """

    used_ns: Floats
    answered: Floats

    @property
    def per_request(self) -> float:
        """Nanoseconds of CPU time per request, over all slices."""
        return float(self.used_ns.sum() / self.answered.sum())

    @property
    def of_batches(self) -> Floats | None:
        """The same for batches of slices in their order; None if they are too few, or a batch has no CPU time."""
        if len(self.used_ns) < BATCHES * FEWEST_IN_BATCH:
            return None
        used, answered = (
            np.array([batch.sum() for batch in np.array_split(values, BATCHES)])
            for values in (self.used_ns, self.answered)
        )
        return used / answered if used.all() and answered.all() else None


@dataclass(frozen=True)
class MixStart:
    """The costs of a server in a start: those of its requests by themselves, and that of the mix of them.

    `drawn` is how often the mix had each request, with a positive sum.
    """

    alone: tuple[Costs, ...]
    mix: Costs
    drawn: Floats

    def odds(self, at: int, weights: Floats) -> StartRatio:
        """The logarithm of the CPU time of a request over that of all others, in a mix with these weights."""

        def of(costs: Floats) -> float:
            parts = costs[:-1] * weights
            return math.log(parts[at] / (parts.sum() - parts[at]))

        return self._ratio(of)

    @property
    def parts_over_mix(self) -> StartRatio:
        """The logarithm of the CPU time of the requests by themselves over that of the mix."""
        weights = self.drawn / self.drawn.sum()
        return self._ratio(lambda costs: math.log(float(costs[:-1] @ weights) / costs[-1]))

    def _ratio(self, of: Callable[[Floats], float]) -> StartRatio:
        """A function of the costs of all requests and of the mix, with the standard error by batches."""
        loads = (*self.alone, self.mix)
        value = of(np.array([costs.per_request for costs in loads]))
        batches = [known for costs in loads if (known := costs.of_batches) is not None]
        if len(batches) < len(loads):
            return StartRatio(value, None)
        values = [of(costs) for costs in np.column_stack(batches)]
        return StartRatio(value, float(np.std(values, ddof=1)) / math.sqrt(BATCHES))


@dataclass(frozen=True)
class DividedMix:
    """The CPU time of a mix, divided among its requests, over starts; at least one.

    `parts_over_mix` is the sum of the parts over the whole; `odds` are those of each request against all others.
    """

    parts_over_mix: LogRatio
    odds: tuple[LogRatio, ...]

    @property
    def whole(self) -> Estimate:
        """The sum of the parts over the whole, as a ratio with its interval."""
        ratio = self.parts_over_mix.contrast.ratio
        ends = {"low": ratio.low, "high": ratio.high}
        return Estimate(value=ratio.value, **ends, unit=ratio.unit, n=ratio.n, method=_method(ratio))

    def share(self, at: int) -> Estimate | None:
        """The share of a request, at most 1; None without an interval.

        If the parts make up only nine tenths of the mix, the missing tenth may belong to any request: all of it to
        this one, or none. The interval allows for it at both ends of the interval of the sum.
        """
        odds, whole = self.odds[at].interval, self.parts_over_mix.interval
        if not all(map(math.isfinite, (*odds, *whole))):
            return None
        low, high = map(_share, odds)
        sums = (1.0, *map(math.exp, whole))
        ends = (
            max(0.0, min(low * total - max(0.0, total - 1) for total in sums)),
            min(1.0, max(high * total + max(0.0, 1 - total) for total in sums)),
        )
        ratio = self.odds[at].contrast.ratio  # for its method: odds are ratios
        return Estimate(
            value=_share(self.odds[at].value),
            low=ends[0],
            high=ends[1],
            confidence=CONFIDENCE,
            unit="share",
            n=ratio.n,
            method=_method(ratio) + OF_SHARES,
        )


def divided(starts: Sequence[MixStart], weights: Floats, hosts: Sequence[str] = ()) -> DividedMix:
    """Divide the CPU time of a mix of two requests or more with these weights, over all starts, at least one."""
    odds = (over_starts([start.odds(at, weights) for start in starts], hosts) for at in range(len(weights)))
    return DividedMix(over_starts([start.parts_over_mix for start in starts], hosts), tuple(odds))


def _method(ratio: Estimate) -> str:
    """The method of a ratio whose starts are sums over slices."""
    known = {METHOD_STARTS: METHOD, METHOD_WITHIN_STARTS: METHOD_WITHIN}
    return known.get(ratio.method, ratio.method)


def _share(log_odds: float) -> float:
    """The share that these odds are; they may be so large or small that their exponential is not finite."""
    return float(1 / (1 + np.exp(-np.clip(log_odds, -500, 500))))
