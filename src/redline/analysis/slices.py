"""The metrics of a duet's slices, which its ratios rest on. Pure."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from redline.findings.served import processes
from redline.findings.starts import cpu_unknown, measured, traffic_of
from redline.model import DuetBlock, DuetRecording, DuetSlice, Metric
from redline.stats.duets import Slices


def slices_of(start: DuetRecording, target: int) -> Iterator[DuetSlice]:
    """Yield the measured slices of a server of a start."""
    for block in measured(traffic_of(start)):
        yield from (slice_ for slice_ in block.slices if slice_.target == target)


def slices_in(metric: Metric, start: DuetRecording, blocks: Sequence[DuetBlock]) -> Slices | None:
    """The slices of a start's blocks; None if a server has no value."""
    traffic = traffic_of(start)
    slices = [slice_ for block in blocks for slice_ in block.slices]
    whose = processes(start)
    known = [
        (
            slice_.target,
            math.log(value),
            before is not None and whose[before.target] == whose[slice_.target] and not start.places,
        )
        for before, slice_ in zip((None, *slices), slices, strict=False)
        if (value := OF_SLICE[metric](slice_))
    ]
    if {server for server, _, _ in known} != set(range(len(traffic.targets))):
        return None
    if metric is Metric.CPU_PER_REQUEST and any(cpu_unknown(traffic, at) for at in range(len(traffic.targets))):
        return None
    return Slices(*map(np.array, zip(*known, strict=True)))


def _cpu_per_request(of: DuetSlice) -> float | None:
    used = of.cpu_ns[of.target] if of.cpu_ns else None
    return used / of.completed if used and of.completed else None


def _throughput(of: DuetSlice) -> float | None:
    return of.measured / of.measured_ns if of.measured_ns else None


OF_SLICE = {Metric.CPU_PER_REQUEST: _cpu_per_request, Metric.THROUGHPUT: _throughput}
