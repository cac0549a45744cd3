"""The frames of two servers' stacks as one tree, and which of them surely need more or less CPU time. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from redline.model import FrameChange
from redline.stats.accounting import ALPHA, LEAST, MeanDifference, SampledServer, SampledStart, difference_of_counts
from redline.stats.families import holm_adjust

_Path = tuple[str, ...]


def frame_changes(starts: Sequence[SampledStart]) -> tuple[FrameChange, ...]:
    """The frames with what they called, in preorder, the heaviest first. All frames of `LEAST` or more are a family.

    The samples of a server are by stack: frames with `;` between them, the outermost first.
    """
    totals = {id(server): _totals(server.samples) for start in starts for server in (*start.before, start.after)}
    before, after = ([_costs(totals, servers) for servers in side] for side in _sides(starts))
    paths = dict.fromkeys(path for costs in (*before, *after) for path in costs)
    sums = {path: sum(costs.get(path, 0.0) for costs in (*before, *after)) for path in paths}
    kept = [path for path in paths if sums[path] >= LEAST * sums[()]]
    differences = {}
    for path in kept:
        values = np.array([new.get(path, 0.0) - old.get(path, 0.0) for old, new in zip(before, after, strict=True)])
        differences[path] = difference_of_counts(values, starts, _count_of(totals, path))
    adjusted = dict(zip(kept, holm_adjust([differences[path].p for path in kept]), strict=True))
    means = {
        path: [sum(costs.get(path, 0.0) for costs in side) / len(starts) for side in (before, after)] for path in kept
    }
    return tuple(
        FrameChange(
            depth=len(path),
            name=path[-1] if path else "",
            before_ns=means[path][0],
            after_ns=means[path][1],
            half_width_ns=differences[path].half_width,
            changed=_changed(differences[path], adjusted[path]),
        )
        for path in _preorder(kept, sums)
    )


def _sides(starts: Sequence[SampledStart]) -> tuple[list[tuple[SampledServer, ...]], list[tuple[SampledServer, ...]]]:
    return [start.before for start in starts], [(start.after,) for start in starts]


def _totals(samples: Mapping[str, int]) -> Counter[_Path]:
    """The samples of each frame with what it called, by its path; the empty path is all."""
    totals = Counter[_Path]()
    for stack, count in samples.items():
        frames = tuple(stack.split(";"))
        for depth in range(len(frames) + 1):
            totals[frames[:depth]] += count
    return totals


def _count_of(totals: Mapping[int, Counter[_Path]], path: _Path) -> Callable[[SampledServer], int]:
    return lambda server: totals[id(server)][path]


def _costs(totals: Mapping[int, Counter[_Path]], servers: Sequence[SampledServer]) -> dict[_Path, float]:
    """The mean cost of servers per request, by path."""
    costs = dict[_Path, float]()
    for server in servers:
        for path, count in totals[id(server)].items():
            costs[path] = costs.get(path, 0.0) + server.ns_per_sample * count / len(servers)
    return costs


def _changed(difference: MeanDifference, p: float) -> Literal["grew", "shrank", "not sure"]:
    if p >= ALPHA:
        return "not sure"
    return "grew" if difference.value > 0 else "shrank"


def _preorder(paths: Sequence[_Path], weights: Mapping[_Path, float]) -> Iterator[_Path]:
    """Yield the paths of a tree; no frame outweighs its caller, so callers of what is kept are kept."""
    below = dict[_Path, list[_Path]]()
    for path in paths:
        if path:
            below.setdefault(path[:-1], []).append(path)
    waiting: list[_Path] = [()] if paths else []
    while waiting:
        path = waiting.pop()
        yield path
        waiting += sorted(below.get(path, ()), key=lambda each: (weights[each], each))
