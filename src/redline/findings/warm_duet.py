"""Whether the servers of a duet are warm, while they warm up: their ratio is flat, and those not loaded are idle. Pure.

The compilers of a virtual machine work on while its server is not loaded: those of three Vert.x servers on one core
took 10 to 35% of the slices of the others for 40 s, and .2% from then on. In that time, a ratio fell from 4.4 to 1.8.
"""

import math
from collections.abc import Sequence

import numpy as np

from redline.model import DuetBlock
from redline.stats.duets import Floats

FEWEST_BLOCKS = 30
"""Of a stretch that is called warm: some 10 s of three servers."""
SHARE = 1 / 4
"""Of the blocks so far, that have to be warm: compilers rest for some seconds at a time."""
IDLE = 0.03
"""In most blocks of such a stretch, servers that are not loaded use less of a core."""
FLAT = 0.03
"""The halves of such a stretch have ratios that differ by less, or by less than chance would have it."""
CHANCE = 1.0
"""In standard errors of the difference."""
TRIMMED = 0.1
"""Share of the blocks that is left out at each end of a mean, because steal makes outliers."""


class DuetWarmth:
    """Collects the blocks of a warm-up. `servers` counts the control."""

    def __init__(self) -> None:
        self._ratios: list[list[float]] = []
        self._idle: list[float] = []

    def is_warm(self, block: DuetBlock) -> bool:
        """Take in a block, and say whether the servers are warm after it."""
        costs = _costs(block)
        if costs is not None:
            self._ratios.append([math.log(cost / costs[0]) for cost in costs[1:]])
            self._idle.append(_idle_share(block))
        return warm(np.array(self._ratios), np.array(self._idle))


def are_warm(blocks: Sequence[DuetBlock]) -> bool:
    """Whether the servers were warm at some time in these blocks of a warm-up."""
    warmth = DuetWarmth()
    return any(warmth.is_warm(block) for block in blocks)


def warm(ratios: Floats, idle: Floats) -> bool:
    """Whether the last blocks are those of warm servers.

    `ratios` has for each block the log ratio of each server and the first one, `idle` the share of a core that servers
    used while they were not loaded.
    """
    last = max(FEWEST_BLOCKS, math.ceil(len(idle) * SHARE))
    if len(idle) < last or np.quantile(idle[-last:], 0.75) > IDLE:
        return False
    return all(_flat(ratios[-last:, server]) for server in range(ratios.shape[1]))


def _flat(values: Floats) -> bool:
    halves = np.array_split(values, 2)
    difference = abs(_trimmed_mean(halves[0]) - _trimmed_mean(halves[1]))
    error = math.sqrt(sum(_scatter(half) ** 2 / len(half) for half in halves))
    return difference < max(FLAT, CHANCE * error)


def _trimmed_mean(values: Floats) -> float:
    cut = int(len(values) * TRIMMED)
    return float(np.sort(values)[cut : len(values) - cut].mean())


def _scatter(values: Floats) -> float:
    """A standard deviation that a few outliers do not move."""
    return float(np.median(np.abs(values - np.median(values)))) * 1.4826


def _costs(block: DuetBlock) -> list[float] | None:
    """CPU time of a request to each server, or wall time where that is not known; None where one answered nothing."""
    count = 1 + max(each.target for each in block.slices)
    found = []
    for target in range(count):
        mine = [each for each in block.slices if each.target == target]
        used = [each.cpu_ns[target] if each.cpu_ns else None for each in mine]
        spent = sum(filter(None, used)) if None not in used else sum(each.measured_ns for each in mine)
        answered = sum(each.completed for each in mine)
        if not spent or not answered:
            return None
        found.append(spent / answered)
    return found


def _idle_share(block: DuetBlock) -> float:
    loaded_ns = sum(each.end_ns - each.start_ns for each in block.slices)
    used = (time or 0 for each in block.slices for server, time in enumerate(each.cpu_ns) if server != each.target)
    return sum(used) / loaded_ns if loaded_ns else 0.0
