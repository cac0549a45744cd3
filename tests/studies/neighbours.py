"""How often intervals of a duet hold the truth beside a neighbour that takes a core in bursts.

    python -m tests.studies.neighbours [SEEDS]

The servers of a duet share their core with a neighbour that computes in bursts of periods from 20 ms to 5 s, or that is
another duet, whose slices are as long, and whose servers need different shares of the core. While it computes, the
server that is loaded gets what it leaves. Response times are those of users without think time: by Little's law they
are long where the throughput is low. Starts differ by .6%, and slices by the noise of a core without a neighbour.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from redline.stats.duets import Ints, LogRatio, Slices, StartRatio, over_starts, shares_around
from redline.stats.samples import Floats

CONTRAST = np.array([-0.5, 1.0, -0.5])
SLICE_S, GUARD_S, BETWEEN_S = 0.010, 0.002, 0.0006
STEP_S = 0.0005
RATE_PER_S, USERS = 25_000.0, 64
START_SD, SPEED_SD, KEPT, SLICE_SD, REQUEST_SD = 0.004, 0.01, 0.9, 0.02, 0.25
QUANTILES = {"p50": 0.50, "p75": 0.75, "p90": 0.90, "p99": 0.99}
METRICS = ("throughput", "cpu", *QUANTILES)
_POINTS = np.array([0.0, 0.2, 0.4, 0.6, 0.8, -0.2, -0.4, -0.6, -0.8, 1.3, -1.3, 1.9, -1.9, 2.6, -2.6]) * REQUEST_SD
_WEIGHTS = np.exp(-0.5 * (_POINTS / REQUEST_SD) ** 2)

Share = Callable[[Floats, int], Floats]
"""What a neighbour leaves of the core at moments, in seconds, of a slice with this number."""


@dataclass(frozen=True)
class Bursts:
    """It computes for a `duty` of every `period_s`, with a phase by chance, and leaves `left` of the core then.

    `random`: bursts and pauses are exponential in place of regular.
    """

    period_s: float
    duty: float
    left: float = 0.5
    random: bool = False

    def shares(self, rng: Generator, lasts_s: float) -> Share:
        """What it leaves during a start."""
        if not self.random:
            begins_s = rng.uniform(0, self.period_s)
            return lambda at, _: np.where((at + begins_s) % self.period_s < self.duty * self.period_s, self.left, 1.0)
        count = int(3 * lasts_s / self.period_s) + 20
        lengths = rng.exponential(1.0, 2 * count) * np.tile((self.duty, 1 - self.duty), count) * self.period_s
        ends = np.cumsum(lengths) - rng.uniform(0, lengths[:2].sum())
        return lambda at, _: np.where(np.searchsorted(ends, at) % 2 == 0, self.left, 1.0)


@dataclass(frozen=True)
class OtherDuet:
    """Another duet, whose servers leave so much of the core; its slices begin with ours, in the `same_order`."""

    left: tuple[float, ...] = (0.5, 0.4, 0.5)
    same_order: bool = False


@dataclass(frozen=True)
class Plan:
    """A duet: `starts` of so many `blocks`, whose second server takes `truth` more time, as a logarithm."""

    starts: int
    blocks: int
    truth: float = 0.0


def _orders(rng: Generator, blocks: int) -> Ints:
    orders = [rng.permutation(3) for _ in range(blocks)]
    return np.concatenate([(*order, *order[::-1]) for order in orders])


@dataclass(frozen=True)
class Start:
    """The ratios of a start by metric, and the response times of its baseline: logarithms, and how many they are."""

    ratios: dict[str, StartRatio | None]
    times: Floats
    counts: Floats


def one_start(plan: Plan, neighbour: Bursts | OtherDuet | None, rng: Generator, *, fits: bool = True) -> Start:
    """A start; with `fits`, also of metrics that are fitted to slices, which takes long."""
    order = _orders(rng, plan.blocks)
    costs = np.exp(np.array([0, plan.truth, 0]) + rng.normal(0, START_SD, 3))
    share = _shares(neighbour, order, rng)
    speeds = _speeds(len(order), rng)
    throughput, cpu = np.empty(len(order)), np.empty(len(order))
    times: list[list[Floats]] = [[], [], []]
    weights: list[list[Floats]] = [[], [], []]
    now_s = 0.0
    for at, server in enumerate(order):
        moments = now_s + GUARD_S + np.arange(0, SLICE_S - GUARD_S, STEP_S)
        rate = RATE_PER_S / costs[server] / speeds[at]
        left = share(moments, at)
        throughput[at] = rate * float(left.mean())
        cpu[at] = costs[server] * speeds[at] * (1 + 0.02 * (1 - float(left.mean())))
        waits = USERS / (rate * left)
        times[server].append(np.log(waits))
        weights[server].append(left)
        now_s += SLICE_S + float(waits[-1]) + BETWEEN_S * (1 + 0.2 * rng.standard_normal())
    again = np.concatenate(([False], order[1:] == order[:-1]))
    made: dict[str, StartRatio | None] = {}
    for name, values in {"throughput": throughput, "cpu": cpu}.items() if fits else ():
        made[name] = Slices(order, np.log(values), again).ratio(CONTRAST)
    spread = [_spread(np.concatenate(times[it]), np.concatenate(weights[it])) for it in range(3)]
    for name, q in QUANTILES.items():
        made[name] = StartRatio(float(CONTRAST @ [quantile(*of_server, q) for of_server in spread]), None)
    return Start(made, *(np.concatenate((ours, again)) for ours, again in zip(spread[0], spread[2], strict=True)))


def _speeds(count: int, rng: Generator) -> Floats:
    steps = SPEED_SD * rng.standard_t(3, count)
    speed = np.empty(count)
    speed[0] = rng.normal(0, 0.02)
    for at in range(1, count):
        speed[at] = KEPT * speed[at - 1] + steps[at]
    return np.exp(speed + rng.normal(0, SLICE_SD, count))


def _shares(neighbour: Bursts | OtherDuet | None, order: Ints, rng: Generator) -> Share:
    if neighbour is None:
        return lambda at, _: np.ones(len(at))
    if isinstance(neighbour, Bursts):
        return neighbour.shares(rng, len(order) * (SLICE_S + 0.01))
    theirs = order if neighbour.same_order else _orders(rng, len(order) // 6)
    return lambda at, number: np.full(len(at), neighbour.left[theirs[number]])


def _spread(logs: Floats, weights: Floats) -> tuple[Floats, Floats]:
    return (logs[:, np.newaxis] + _POINTS).ravel(), (weights[:, np.newaxis] * _WEIGHTS).ravel()


def quantile(values: Floats, counts: Floats, q: float) -> float:
    """The value that a share of the counted values is at most."""
    ranks = np.argsort(values)
    share = np.cumsum(counts[ranks]) / counts.sum()
    at = min(int(np.searchsorted(share, q)), len(values) - 1)
    return float(values[ranks[at]])


NEIGHBOURS: dict[str, Bursts | OtherDuet | None] = {
    "none": None,
    "20 ms, 30%": Bursts(0.02, 0.3),
    "60 ms, 50%": Bursts(0.06, 0.5),
    "79 ms, 30%, as a block": Bursts(0.079, 0.3),
    "200 ms, 30%": Bursts(0.2, 0.3),
    "1 s, 10%": Bursts(1.0, 0.1),
    "1 s, 25%": Bursts(1.0, 0.25),
    "1 s, 60%": Bursts(1.0, 0.6),
    "5 s, 30%": Bursts(5.0, 0.3),
    "random 60 ms, 30%": Bursts(0.06, 0.3, random=True),
    "random 300 ms, 50%": Bursts(0.3, 0.5, random=True),
    "random 2 s, 30%": Bursts(2.0, 0.3, random=True),
    "another duet": OtherDuet(),
    "another duet, same order": OtherDuet(same_order=True),
    "equal duet, same order": OtherDuet((0.5, 0.5, 0.5), same_order=True),
}


def study(seeds: int, plan: Plan, *, fits: bool = True) -> None:
    """Print how many intervals hold the truth, and their half widths, by neighbour and metric.

    Of percentiles, before and after they allow for what a neighbour leaves.
    """
    for name, neighbour in NEIGHBOURS.items():
        held: dict[str, list[bool]] = {}
        widths: dict[str, list[float]] = {}
        for seed in range(seeds):
            rng = np.random.default_rng([seed, 7])
            starts = [one_start(plan, neighbour, rng, fits=fits) for _ in range(plan.starts)]
            for metric in METRICS if fits else QUANTILES:
                ratio = over_starts([made for start in starts if (made := start.ratios[metric]) is not None])
                truth = -plan.truth if metric == "throughput" else plan.truth
                known_as = {metric: ratio}
                if metric in QUANTILES:
                    known_as[f"{metric}'"] = _allowing(ratio, QUANTILES[metric], starts, plan)
                for label, known in known_as.items():
                    low, high = known.interval
                    held.setdefault(label, []).append(low <= truth <= high)
                    widths.setdefault(label, []).append((high - low) / 2)
        shown = "  ".join(f"{it} {np.mean(held[it]):4.0%} ±{np.median(widths[it]):6.2%}" for it in held)
        print(f"{name:26} {shown}", flush=True)


def _allowing(ratio: LogRatio, q: float, starts: list[Start], plan: Plan) -> LogRatio:
    times, counts = (np.concatenate(of) for of in zip(*((it.times, it.counts) for it in starts), strict=True))
    low, high = shares_around(q, 2 * plan.blocks * plan.starts)
    at = quantile(times, counts, q)
    return replace(ratio, bias=max(quantile(times, counts, high) - at, at - quantile(times, counts, low)))


def main(seeds: int) -> None:
    """Print a table for each plan and each truth."""
    for plan in (Plan(5, 30), Plan(1, 150), Plan(12, 30)):
        for truth in (0.0, 0.03, 0.10):
            print(f"{plan.starts} starts of {plan.blocks} blocks, truth {truth:.0%}")
            study(seeds, replace(plan, truth=truth))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
