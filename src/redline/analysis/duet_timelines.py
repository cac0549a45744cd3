"""Duets over time: what every block cost, which blocks count, and how the ratio read after each start. Pure."""

import math
from collections.abc import Iterator, Sequence

from redline.analysis.duet import Duet, Duets
from redline.findings.starts import traffic_of
from redline.model import DuetBlock, DuetRecording, DuetSlice, Estimate, Metric
from redline.model.timeline import BlockStep, DuetTimeline, StartTimeline

MOST_BLOCKS = 4_000
"""About the most steps of all duets of a run: as many as a page can carry."""
MOST_OF_DUET = 400
_FEWEST_OF_START = 4
_MOST_READINGS = 24
"""The most starts after which the ratio is estimated: each time all starts so far are judged again."""
_READINGS_OF_RUN = 240
_COLD = "its servers were not warm, and those of enough other starts were"


def duet_timelines(duets: Duets) -> tuple[DuetTimeline, ...]:
    """The timelines of all pairs of a server and its baseline, in the order of the run."""
    most = min(MOST_OF_DUET, MOST_BLOCKS // max(len(duets), 1))
    readings = max(1, min(_MOST_READINGS, _READINGS_OF_RUN // max(len(duets), 1)))
    return tuple(_timeline(*ids, duet, most, readings) for ids, duet in duets.items())


def _timeline(cell_id: str, baseline_id: str, duet: Duet, most: int, readings: int) -> DuetTimeline:
    per_start = max(_FEWEST_OF_START, most // len(duet.starts))
    baseline, server = duet.names
    read_after = _evenly(len(duet.starts), readings) if duet.failing is None else frozenset()
    starts = [
        StartTimeline(
            number=start.round + 1,
            left_out="" if counting else _COLD,
            paused_blocks=traffic_of(start).paused_blocks,
            blocks=tuple(_steps(start, counting, duet.target, per_start)),
            so_far=_so_far(duet.after(number)) if number in read_after else {},
        )
        for number, (start, counting) in enumerate(duet.counted_blocks, 1)
    ]
    names = baseline, server, f"{baseline} (control)"
    return DuetTimeline(
        cell_id=cell_id, baseline_id=baseline_id, servers=names, starts=tuple(starts), failed=tuple(duet.failed)
    )


def _evenly(starts: int, most: int) -> frozenset[int]:
    """Numbers of starts, evenly apart, with the last."""
    apart = math.ceil(starts / most)
    return frozenset(range(starts, 0, -apart))


def _so_far(duet: Duet) -> dict[Metric, Estimate]:
    ratios = {metric: duet.ratio(metric) for metric in duet.metrics if not duet.too_few(metric)}
    return {metric: ratio.contrast.ratio for metric, ratio in ratios.items() if ratio is not None}


def _steps(start: DuetRecording, counting: frozenset[int], target: int, most: int) -> Iterator[BlockStep]:
    """The blocks, of which neighbours that count alike are merged until there are at most about so many."""
    traffic = traffic_of(start)
    if not traffic.blocks:
        return
    first_ns = min(part.start_ns for part in traffic.blocks[0].slices)
    together = math.ceil(len(traffic.blocks) / most)
    blocks: list[DuetBlock] = []
    for block, following in zip(traffic.blocks, (*traffic.blocks[1:], None), strict=True):
        blocks.append(block)
        if len(blocks) >= together or following is None or _kind(block, counting) != _kind(following, counting):
            yield _step(blocks, counting, (0, target, len(traffic.targets) - 1), first_ns)
            blocks = []


def _kind(block: DuetBlock, counting: frozenset[int]) -> tuple[str, bool]:
    return block.phase, block.index in counting


def _step(blocks: Sequence[DuetBlock], counting: frozenset[int], targets: Sequence[int], first_ns: int) -> BlockStep:
    slices = [part for block in blocks for part in block.slices]
    of_servers = [[part for part in slices if part.target == target] for target in targets]
    return BlockStep(
        at_s=(min(part.start_ns for part in slices) - first_ns) / 1e9,
        end_s=(max(part.end_ns for part in slices) - first_ns) / 1e9,
        blocks=len(blocks),
        warms=blocks[0].phase == "warmup",
        counts=blocks[0].index in counting,
        costs=tuple(map(_cost_ns, of_servers)),
        rates=tuple(map(_rate_per_s, of_servers)),
    )


def _cost_ns(slices: Sequence[DuetSlice]) -> float | None:
    """CPU time per right answer; None if that of any slice is unknown."""
    used = [part.cpu_ns[part.target] if part.cpu_ns else None for part in slices]
    known, completed = [ns for ns in used if ns is not None], sum(part.completed for part in slices)
    return sum(known) / completed if len(known) == len(used) and any(known) and completed else None


def _rate_per_s(slices: Sequence[DuetSlice]) -> float | None:
    lasted_ns = sum(part.measured_ns for part in slices)
    return sum(part.measured for part in slices) / lasted_ns * 1e9 if lasted_ns else None
