"""Whether the servers of a duet are warm, and how far their ratio may yet move if they are not. Pure.

Warm servers get no faster any more, their ratio is flat, and those not loaded are idle, whatever they run on: much
compiles, fills caches or grows a heap while it runs.

The compilers of a virtual machine work on while its server is not loaded: those of three Vert.x servers on one core
took 10 to 35% of the slices of the others for 40 s, and .2% from then on. In that time, a ratio fell from 4.4 to 1.8.
Node compiles sooner and shows less of it: a request took 250 us of CPU time for a second, and 50 from then on. On the
way the ratio of two servers went from +16% over -24% to +20%, because the one with more work was compiled first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from redline.model import DuetBlock
from redline.stats.distributions import t_quantile
from redline.stats.duets import Floats

FEWEST_BLOCKS = 20
"""The shortest stretch that is called warm: 7 s of three servers on a JVM, whose slices are long, 2 s of others."""
SHARE = 1 / 4
"""Of the blocks so far, that have to be warm: compilers rest for some seconds at a time."""
IDLE = 0.03
"""In most blocks of such a stretch, servers that are not loaded use less of a core."""
FLAT = 0.03
"""The halves of such a stretch have ratios that differ by less, or by less than chance would have it."""
FASTER = 0.05
"""A request to any server takes less CPU time in the second half than in the first by less, or by less than chance."""
CHANCE = 1.0
"""In standard errors of the difference."""
AHEAD = 3.0
"""How far the ratio of servers that were warm may yet move, in what it moved from one half of a start to the other."""
FASTEST, SLOWEST = 0.5, 0.9
"""What an exponential course keeps from one stretch to the next: at least, also where it hardly moves, and at most."""
SURE = 4.0
"""In standard errors: what moves by more within a start is no chance; neighbouring blocks are somewhat alike."""
SURE_OF_STARTS = 0.995
"""Quantile of Student's t beyond which the starts have a movement in common."""
FEWEST_MEASURED, FEWEST_OF_COURSE = 4, 6
"""Blocks of which it is known how they move: of those measured, and of the warm-up and these."""
PHASES: tuple[Literal["warmup"], Literal["measure"]] = ("warmup", "measure")
TRIMMED = 0.1
"""Share of the blocks that is left out at each end of a mean, because steal makes outliers."""


class DuetWarmth:
    """Collects the blocks of a warm-up. The last server is the first one once more, as a control.

    `apart` says that these two are processes of their own: servers that run already are one, which is never idle.
    """

    def __init__(self, *, apart: bool = True) -> None:
        self._apart = apart
        self._costs: list[list[float]] = []
        self._idle: list[float] = []

    def is_warm(self, block: DuetBlock) -> bool:
        """Take in a block, and say whether the servers are warm after it."""
        costs = _costs(block)
        if costs is not None:
            self._costs.append([math.log(cost) for cost in costs])
            self._idle.append(_idle_share(block, apart=self._apart))
        return warm(np.array(self._costs), np.array(self._idle))


def are_warm(blocks: Sequence[DuetBlock], *, apart: bool = True) -> bool:
    """Whether the servers were warm at some time in these blocks of a warm-up; `apart` as in `DuetWarmth`."""
    warmth = DuetWarmth(apart=apart)
    return any(warmth.is_warm(block) for block in blocks)


def warm(costs: Floats, idle: Floats) -> bool:
    """Whether the last blocks are those of warm servers.

    `costs` has for each block the logarithm of what a request to each server costs, `idle` the share of a core that
    servers used while they were not loaded.
    """
    last = max(FEWEST_BLOCKS, math.ceil(len(idle) * SHARE))
    if len(idle) < last or np.quantile(idle[-last:], 0.75) > IDLE:
        return False
    stretch = costs[-last:]
    ratios = stretch[:, 1:] - stretch[:, :1]
    return all(abs(change) < max(FLAT, CHANCE * error) for change, error in map(_change, ratios.T)) and all(
        -change < max(FASTER, CHANCE * error) for change, error in map(_change, stretch.T)
    )


@dataclass(frozen=True)
class Course:
    """How the log ratio of two servers moved while a start was measured, with the standard error of that.

    `cold` is how far it may yet move where the servers were not warm when the measurement began, infinite where too
    little is known; it is None of servers that were warm.
    """

    moved: float
    error: float
    cold: float | None


def course(blocks: Sequence[DuetBlock], contrast: Floats, *, are_cold: bool) -> Course:
    """That of a start; `contrast` weights the logarithms of its servers."""
    before, measured = (_log_costs([block for block in blocks if block.phase == phase]) for phase in PHASES)
    moved, error = _change(measured @ contrast) if len(measured) >= FEWEST_MEASURED else (0.0, math.inf)
    if not are_cold:
        return Course(moved, error, None)
    costs = np.concatenate((before, measured)) if len(before) else measured
    if not len(measured) or len(costs) < FEWEST_OF_COURSE:
        return Course(moved, error, math.inf)
    # Equal servers differ only in how warm they are, and a server that gets slower is not getting warm.
    of_control = abs(_trimmed_mean(measured[:, -1] - measured[:, 0]))
    of_servers = [_to_come(server, len(measured), falls=True) for server in costs.T]
    return Course(moved, error, max(of_control, _to_come(costs @ contrast, len(measured)), *of_servers))


def _to_come(values: Floats, measured: int, *, falls: bool = False) -> float:
    """How far the mean of the last `measured` values may be from where their course ends, at most.

    The course is taken for exponential. Three stretches of one length say what it loses from one to the next, and what
    is left then is the sum of a geometric series, which is begun one stretch early to be safe. `falls` says that it
    can only fall.
    """
    length = min(len(values) // 3, measured)
    stretches = np.split(values[-3 * length :], 3)
    means = [_trimmed_mean(stretch) for stretch in stretches]
    error = _scatter(np.diff(values)) / math.sqrt(length)  # a difference of neighbours has their noise twice
    earlier, later = means[0] - means[1], means[1] - means[2]
    if falls and later <= 0:
        return 0.0
    kept = SLOWEST if abs(later) > SURE * error else FASTEST
    if earlier * later > 0 and abs(earlier) > SURE * error:
        kept = min(max(later / earlier, FASTEST), kept)
    return abs(_trimmed_mean(values[-measured:]) - means[2]) + abs(later) / (1 - kept)


def still_to_come(courses: Sequence[Course]) -> float:
    """How far the mean log ratio of these starts may be from that of warm servers, at most.

    Servers that were warm move by no more than chance; if their starts have more in common, it counts all the same.
    """
    cold = sum(each.cold for each in courses if each.cold is not None)
    warm = [each for each in courses if each.cold is None and math.isfinite(each.error)]
    if not warm:
        return cold / len(courses)
    moved = np.array([each.moved for each in warm])
    within = math.sqrt(sum(each.error**2 for each in warm)) / len(warm)
    between = float(moved.std(ddof=1)) / math.sqrt(len(warm)) if len(warm) > 1 else 0.0
    common = abs(float(moved.mean()))
    by_chance = max(SURE * within, t_quantile(SURE_OF_STARTS, len(warm) - 1) * between if between else 0.0)
    return (cold + (AHEAD * common * len(warm) if common > by_chance else 0.0)) / len(courses)


def _log_costs(blocks: Sequence[DuetBlock]) -> Floats:
    """What a request costs in each of these blocks that knows it of all servers, as logarithms; by block and server."""
    known = [costs for costs in map(_costs, blocks) if costs is not None]
    return np.log(np.array(known)) if known else np.empty((0, 0))


def _change(values: Floats) -> tuple[float, float]:
    """From the first half to the second, and its standard error."""
    halves = np.array_split(values, 2)
    error = math.sqrt(sum(_scatter(half) ** 2 / len(half) for half in halves))
    return _trimmed_mean(halves[1]) - _trimmed_mean(halves[0]), error


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


def _idle_share(block: DuetBlock, *, apart: bool) -> float:
    loaded_ns = sum(each.end_ns - each.start_ns for each in block.slices)
    control = max(each.target for each in block.slices)
    used = (
        time or 0
        for each in block.slices
        for server, time in enumerate(each.cpu_ns)
        if server != each.target and (apart or {server, each.target} != {0, control})
    )
    return sum(used) / loaded_ns if loaded_ns else 0.0
