"""Whether the servers of a duet are warm, and how far their ratio may yet move if they are not. Pure.

Warm servers get no faster, their ratio is flat, and those not loaded are idle. Compilers of a virtual machine work on
meanwhile: those of three Vert.x servers on one core took 10 to 35% of the slices of the others for 40 s, and a ratio
fell from 4.4 to 1.8. Between two Node servers it went from +16% over -24% to +20%.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from redline.lazily import dataclass
from redline.model import DuetBlock, DuetSlice
from redline.quantities import percent
from redline.stats.distributions import t_quantile
from redline.stats.duets import Floats

FEWEST_BLOCKS = 20
"""The shortest warm stretch: 7 s for three servers on a JVM, whose slices are long, 2 s for others."""
FEWEST_AFTER_MIX = 10
"""The same for a request of a mix that is already warm: its code is compiled, and its data are in memory."""
LOADED_NS = 2_400_000_000
"""Such a stretch need not load a server for longer: fewer blocks of conversations do, whose slices are long."""
SHARE = 1 / 4
"""Share of the blocks so far that have to be warm: compilers rest for some seconds at a time."""
IDLE = 0.03
"""In most blocks of such a stretch, servers that are not loaded use less of a core."""
FLAT = 0.03
"""The ratios of the halves of such a stretch differ by less, or by less than chance explains."""
FASTER = 0.05
"""A request to any server takes less CPU time in the second half than in the first by less, or by less than chance."""
CHANCE = 1.0
"""In standard errors of the difference."""
AHEAD = 3.0
"""How far the ratio of warm servers may yet move, as a multiple of its change between the halves of a start."""
FASTEST, SLOWEST = 0.5, 0.9
"""The least and largest fraction that an exponential course keeps from one stretch to the next."""
SURE = 4.0
"""In standard errors: what moves by more within a start is no chance; neighbouring blocks are somewhat alike."""
ROUNDING = 1e-6
"""A log ratio that moves by less has not moved: CPU times are whole nanoseconds."""
SURE_OF_STARTS = 0.995
"""Quantile of Student's t beyond which the starts have a movement in common."""
FEWEST_MEASURED, FEWEST_OF_COURSE = 4, 6
"""The fewest blocks that show a course: of the measured blocks, and of these with the warm-up."""
TRIMMED = 0.1
"""Share of the blocks that is left out at each end of a mean, because steal makes outliers."""


Cost = Callable[[DuetBlock], list[float] | None]
"""The cost of a request to every server in a block, in nanoseconds; None if any is not known."""


class DuetWarmth:
    """Collects the blocks of a warm-up. The last server is the first once more, as a control.

    `apart`: these two are separate processes; for running servers they are the same process, which is never idle.
    `saturates`: the servers set the rate, which shows their speed if their CPU time is not known. `after_mix`: they are
    already warm in a mix that contains these requests.
    """

    def __init__(self, *, apart: bool = True, saturates: bool = True, after_mix: bool = False) -> None:
        self._apart, self._saturates, self._after_mix = apart, saturates, after_mix
        self._blocks, self._loaded_ns = 0, 0.0
        self._by_cpu: list[tuple[list[float], float]] = []
        self._by_wall: list[tuple[list[float], float]] = []

    def is_warm(self, block: DuetBlock) -> bool:
        """Take in a block, and return whether the servers are now warm."""
        self._blocks += 1
        self._loaded_ns += _loaded_ns(block)
        idle = _idle_share(block, apart=self._apart)
        for cost, course in ((_cpu_costs, self._by_cpu), (_wall_costs, self._by_wall)):
            if (costs := cost(block)) is not None:
                course.append((costs, idle))
        known = self._by_wall if self._saturates else []
        if 2 * len(self._by_cpu) >= self._blocks:
            known = self._by_cpu
        if not known:
            return False
        fewest = _fewest(self._loaded_ns / self._blocks, after_mix=self._after_mix)
        return warm(np.log([costs for costs, _ in known]), np.array([share for _, share in known]), fewest)


def fewest_blocks(blocks: Sequence[DuetBlock], *, after_mix: bool = False) -> int:
    """The number of blocks in the shortest warm stretch of blocks like these."""
    return _fewest(sum(map(_loaded_ns, blocks)) / max(1, len(blocks)), after_mix=after_mix)


def _fewest(loaded_ns: float, *, after_mix: bool) -> int:
    usual = FEWEST_AFTER_MIX if after_mix else FEWEST_BLOCKS
    return min(usual, max(FEWEST_OF_COURSE, math.ceil(LOADED_NS / loaded_ns))) if loaded_ns else usual


def _loaded_ns(block: DuetBlock) -> float:
    """For how long a block loads a server, on average."""
    servers = 1 + max(slice_.target for slice_ in block.slices)
    return sum(slice_.end_ns - slice_.start_ns for slice_ in block.slices) / servers


def are_warm(
    blocks: Sequence[DuetBlock], *, apart: bool = True, saturates: bool = True, after_mix: bool = False
) -> bool:
    """Whether the servers were warm at some time in these blocks of a warm-up; the rest as in `DuetWarmth`."""
    warmth = DuetWarmth(apart=apart, saturates=saturates, after_mix=after_mix)
    return any(warmth.is_warm(block) for block in blocks)


def warm(costs: Floats, idle: Floats, fewest: int = FEWEST_BLOCKS) -> bool:
    """Whether the last blocks, `fewest` at least, are those of warm servers.

    `costs`: by block and server, the logarithm of what a request costs. `idle`: by block, the share of a core that
    servers used while they were not loaded.
    """
    last = max(fewest, math.ceil(len(idle) * SHARE))
    if len(idle) < last or np.quantile(idle[-last:], 0.75) > IDLE:
        return False
    stretch = costs[-last:]
    ratios = stretch[:, 1:] - stretch[:, :1]
    return all(abs(change) < max(FLAT, CHANCE * error) for change, error in map(_change, ratios.T)) and all(
        -change < max(FASTER, CHANCE * error) for change, error in map(_change, stretch.T)
    )


@dataclass(frozen=True)
class Course:
    """How the log ratio of two servers moved while a start was measured, with its standard error.

    `cold` is how far it may yet move if the servers were not warm when the measurement began: infinite where too little
    is known, None for warm servers.
    """

    moved: float
    error: float
    cold: float | None


def course(  # noqa: PLR0913 - of what, and by what
    blocks: Sequence[DuetBlock],
    counted: int,
    contrast: Floats,
    *,
    are_cold: bool,
    saturates: bool = True,
    of_conversations: bool = False,
) -> Course:
    """The course of a start; the last `counted` of its blocks give its ratio.

    `contrast` weights the logarithms of its servers. `saturates` as in `DuetWarmth`. `of_conversations`: by how long
    they take instead, if the servers decide it: the CPU time of a server that waits says little of its gaps.
    """
    cost = _lengths if of_conversations and saturates else cost_of(blocks, saturates=saturates)
    if cost is None:
        return Course(0.0, math.inf, None)
    before, measured = _log_costs(blocks[:-counted], cost), _log_costs(blocks[-counted:], cost)
    moved, error = _change(measured @ contrast) if len(measured) >= FEWEST_MEASURED else (0.0, math.inf)
    if not are_cold:
        return Course(moved, error, None)
    if not len(measured) or len(before) + len(measured) < FEWEST_OF_COURSE:
        return Course(moved, error, math.inf)
    costs = np.concatenate((before, measured)) if len(before) else measured
    # Equal servers differ only in how warm they are, and a server that gets slower is not getting warm.
    of_control = abs(_trimmed_mean(measured[:, -1] - measured[:, 0]))
    of_servers = [_to_come(server, len(measured), falls=True) for server in costs.T]
    return Course(moved, error, max(of_control, _to_come(costs @ contrast, len(measured)), *of_servers))


def _to_come(values: Floats, measured: int, *, falls: bool = False) -> float:
    """How far the mean of the last `measured` values may be from where their course ends, at most.

    The course is taken for exponential: three stretches say what it loses from one to the next. What is left is a
    geometric series, begun one stretch early to be safe. `falls`: it can only fall.
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
    cold = sum(start.cold for start in courses if start.cold is not None)
    warm = [start for start in courses if start.cold is None and math.isfinite(start.error)]
    if not warm:
        return cold / len(courses)
    moved = np.array([start.moved for start in warm])
    within = math.sqrt(sum(start.error**2 for start in warm)) / len(warm)
    between = float(moved.std(ddof=1)) / math.sqrt(len(warm)) if len(warm) > 1 else 0.0
    common = abs(float(moved.mean()))
    of_starts = t_quantile(SURE_OF_STARTS, len(warm) - 1) * between if between else 0.0
    by_chance = max(ROUNDING, SURE * within, of_starts)
    return (cold + (AHEAD * common * len(warm) if common > by_chance else 0.0)) / len(courses)


def reach(to_come: float) -> str:
    """How far a ratio may yet move, by its logarithm, in words."""
    if math.isfinite(to_come):
        return f"the ratio may yet move by {percent(math.expm1(to_come))}, which the interval allows for"
    return "how far the ratio may yet move is not known, so it has no interval"


def _log_costs(blocks: Sequence[DuetBlock], cost: Cost) -> Floats:
    """The log cost of a request by block and server, for the blocks in which all servers' costs are known."""
    known = [costs for costs in map(cost, blocks) if costs is not None]
    return np.log(np.array(known)) if known else np.empty((0, 0))


def _change(values: Floats) -> tuple[float, float]:
    """The change from the first half to the second, and its standard error."""
    halves = np.array_split(values, 2)
    error = math.sqrt(sum(_scatter(half) ** 2 / len(half) for half in halves))
    return _trimmed_mean(halves[1]) - _trimmed_mean(halves[0]), error


def _trimmed_mean(values: Floats) -> float:
    cut = int(len(values) * TRIMMED)
    return float(np.sort(values)[cut : len(values) - cut].mean())


def _scatter(values: Floats) -> float:
    """A standard deviation that a few outliers do not move."""
    return float(np.median(np.abs(values - np.median(values)))) * 1.4826


def cost_of(blocks: Sequence[DuetBlock], *, saturates: bool) -> Cost | None:
    """The cost of a request in a block: CPU time, or wall time if CPU time is mostly unknown.

    The same measure for all blocks, since the two do not compare. None if neither is known: a schedule sets the rate.
    """
    if 2 * sum(_cpu_costs(block) is not None for block in blocks) >= len(blocks):
        return _cpu_costs
    return _wall_costs if saturates else None


def _cpu_costs(block: DuetBlock) -> list[float] | None:
    """CPU time of a request to every server; None if any is not known, or 0."""

    def used(mine: list[DuetSlice]) -> int:
        times = [slice_.cpu_ns[slice_.target] if slice_.cpu_ns else None for slice_ in mine]
        return 0 if None in times else sum(filter(None, times))

    return _costs(block, used, lambda slice_: slice_.completed)


def _wall_costs(block: DuetBlock) -> list[float] | None:
    """Wall time of a request to every server; None if any server answered nothing."""
    return _costs(block, lambda mine: sum(slice_.measured_ns for slice_ in mine), lambda slice_: slice_.measured)


def _lengths(block: DuetBlock) -> list[float] | None:
    """How long conversations with every server took, in the shorter of its slices: what disturbs lengthens one.

    A slice lasts until its last answer, since a conversation may outlast it. None if any has no answer.
    """
    lengths: dict[int, float] = {}
    for slice_ in block.slices:
        if not slice_.completed:
            return None
        length = (slice_.end_ns - slice_.start_ns) / slice_.completed
        lengths[slice_.target] = min(length, lengths.get(slice_.target, length))
    return [length for _, length in sorted(lengths.items())]


def _costs(
    block: DuetBlock, spent: Callable[[list[DuetSlice]], int], answered: Callable[[DuetSlice], int]
) -> list[float] | None:
    costs = []
    for target in range(1 + max(slice_.target for slice_ in block.slices)):
        own = [slice_ for slice_ in block.slices if slice_.target == target]
        time_ns, answers = spent(own), sum(map(answered, own))
        if not time_ns or not answers:
            return None
        costs.append(time_ns / answers)
    return costs


def _idle_share(block: DuetBlock, *, apart: bool) -> float:
    loaded_ns = sum(slice_.end_ns - slice_.start_ns for slice_ in block.slices)
    control = max(slice_.target for slice_ in block.slices)
    used = (
        time or 0
        for slice_ in block.slices
        for server, time in enumerate(slice_.cpu_ns)
        if server != slice_.target and (apart or {server, slice_.target} != {0, control})
    )
    return sum(used) / loaded_ns if loaded_ns else 0.0
