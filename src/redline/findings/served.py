"""What each server of a duet had served by every slice, and the duet as if all had served as much. Pure.

A server that was already running is its own control: two targets are then one process, which serves the requests of
both. It serves on from start to start, while others begin anew.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from redline.findings.rules import TREND_P
from redline.lazily import dataclass
from redline.model import DuetBlock, DuetRecording, DuetSlice
from redline.stats.growth import CostGrowth, ServedCosts, growth

Counts = list[list[float]]
"""How many requests a slice's server had served by its middle, by block and slice."""


def processes(start: DuetRecording) -> tuple[int, ...]:
    """The first target of the process of each target; servers that Redline started are apart."""
    targets = len(start.traffic.targets) if start.traffic is not None else len(start.cell_ids)
    seen: dict[object, int] = {}
    found = []
    for target in range(targets):
        is_copy = target == targets - 1 and not start.control_is_apart
        running = start.servers[target : target + 1] == (None,)
        owner = start.owners[target].processes if running and target < len(start.owners) else ()
        first = 0 if is_copy else seen.get(owner, target) if owner else target
        seen.setdefault(owner, first)
        found.append(first)
    return tuple(found)


def served(starts: Sequence[DuetRecording]) -> list[Counts]:
    """What had been served by start, block and slice, since the first start for servers that were already running."""
    before: dict[int, float] = {}
    made = []
    for start in starts:
        whose = processes(start)
        lasting = {whose[at] for at, server in enumerate(start.servers) if server is None}
        now = {process: before.get(process, 0.0) if process in lasting else 0.0 for process in whose}
        blocks = start.traffic.blocks if start.traffic is not None else ()
        counts = []
        for block in blocks:
            of_block = []
            for slice_ in block.slices:
                requests, process = slice_.completed + slice_.failed, whose[slice_.target]
                of_block.append(now[process] + requests / 2)
                now[process] += requests
            counts.append(of_block)
        made.append(counts)
        before = now
    return made


@dataclass(frozen=True)
class Growths:
    """How the costs of a request to the servers at some places grow: of CPU time, and of wall time; None if not."""

    cpu: CostGrowth | None
    wall: CostGrowth | None

    @property
    def any(self) -> CostGrowth | None:
        """The growth of CPU time, or else that of wall time."""
        return self.cpu or self.wall


def growths(starts: Sequence[DuetRecording], counts: Sequence[Counts], places: Sequence[int]) -> Growths:
    """The growth of a server that is at these places of all starts."""
    parts: tuple[list[ServedCosts], list[ServedCosts]] = ([], [])
    for start, of_start in zip(starts, counts, strict=True):
        whose = processes(start)
        for process in {whose[place] for place in places}:
            mine = [place for place in places if whose[place] == process]
            for into, cpu in zip(parts, (True, False), strict=True):
                into.append(_points(start, of_start, mine, cpu=cpu))
    return Growths(*(growth(of_metric, TREND_P) for of_metric in parts))


def _points(start: DuetRecording, counts: Counts, places: Sequence[int], *, cpu: bool) -> ServedCosts:
    """The costs of a request at these places in the measured blocks that know it, in stretches."""
    points, times = [], list[int]()
    for block, of_block in _measured(start, counts):
        own = [(slice_, at) for slice_, at in zip(block.slices, of_block, strict=True) if slice_.target in places]
        spent = [_cpu_ns(slice_) if cpu else slice_.measured_ns for slice_, _ in own]
        answers = sum(slice_.completed if cpu else slice_.measured for slice_, _ in own)
        time_ns = 0 if None in spent else sum(filter(None, spent))
        if time_ns and answers:
            points.append((float(np.mean([at for _, at in own])), time_ns / answers))
            times += (block.slices[0].start_ns, block.slices[-1].end_ns)
    served = ServedCosts(*np.array(points, dtype=np.float64).reshape(-1, 2).T)
    return served.in_stretches(max(times, default=0) - min(times, default=0))


def _measured(start: DuetRecording, counts: Counts) -> Iterator[tuple[DuetBlock, list[float]]]:
    blocks = start.traffic.blocks if start.traffic is not None else ()
    pairs = zip(blocks, counts, strict=True)
    yield from ((block, of_block) for block, of_block in pairs if block.phase == "measure")


def _cpu_ns(slice_: DuetSlice) -> int | None:
    return slice_.cpu_ns[slice_.target] if slice_.cpu_ns else None


def in_all(start: DuetRecording, counts: Counts) -> dict[int, float]:
    """What the process of each target had served in the middle of its last measured slice; 0 for none."""
    whose = processes(start)
    last = dict.fromkeys(whose, 0.0)
    for block, of_block in _measured(start, counts):
        last |= {whose[slice_.target]: at for slice_, at in zip(block.slices, of_block, strict=True)}
    return {target: last[process] for target, process in enumerate(whose)}


def at_equal_counts(start: DuetRecording, counts: Counts, of: Mapping[int, Growths]) -> DuetRecording:
    """The start as if its servers had served as much in every slice: the mean of what they did, while measured.

    `of` has the growth by target. Every slice has as much less or more CPU and wall time as its server's line says.
    """
    if start.traffic is None or not any(known.any for known in of.values()):
        return start
    whose = processes(start)
    by_process: dict[int, list[float]] = {}
    for block, of_block in _measured(start, counts):
        for slice_, at in zip(block.slices, of_block, strict=True):
            if slice_.target in of:
                by_process.setdefault(whose[slice_.target], []).append(at)
    if not by_process:
        return start
    common = float(np.mean([np.mean(own) for own in by_process.values()]))
    blocks = [
        block.with_slices(
            _moved(slice_, at, common, of[slice_.target]) if slice_.target in of else slice_
            for slice_, at in zip(block.slices, of_block, strict=True)
        )
        for block, of_block in zip(start.traffic.blocks, counts, strict=True)
    ]
    return start.with_blocks(blocks)


def _moved(slice_: DuetSlice, at: float, common: float, of: Growths) -> DuetSlice:
    """The slice with the times that it would have taken after `common` requests."""
    cpu, wall = (1.0 if line is None else _factor(line, at, common) for line in (of.cpu, of.wall))
    return slice_.taking(cpu, wall)


def _factor(of: CostGrowth, at: float, common: float) -> float:
    there, here = of.at(np.array([common, at]))
    return float(there / here)
