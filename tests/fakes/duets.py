"""Duets of simulated servers that need known multiples of CPU time."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from redline.model import DuetBlock, DuetRecording, DuetSlice, DuetTraffic, Histogram, TargetTraffic
from redline.model.traffic import Counts, Engine

ENGINE = Engine(name="redline-engine", version="0", backend="epoll", workers=1)
SLICE_NS = 50_000_000
NS_PER_REQUEST = 20_000
MEASURED = 20
"""Blocks."""
Cold = Callable[[int, int], float]


def _warm(_block: int, _server: int) -> float:
    return 0.0


def simulated_duet(
    start: int,
    costs: Sequence[float] = (1.0, 1.0),
    *,
    cell_ids: Sequence[str] = ("A", "B"),
    position: int | None = None,
    noise: float = 0.003,
    idle: float = 0.0,
    failed: int = 0,
    busy: float = 1.0,
    warmup: int = 0,
    cold: Cold = _warm,
) -> DuetRecording:
    """A start of servers whose requests cost these multiples of CPU time, the first being the baseline.

    Starts differ by .3%, slices by `noise`. `idle` is the share of a core that a server uses in the others' slices,
    `busy` its own use. After `warmup` blocks 20 are measured. `cold` is the additional cost of a server in a
    block, as a logarithm.
    """
    make = _traffic if cold is _warm else _traffic.__wrapped__
    return DuetRecording(
        cell_ids=(*cell_ids, cell_ids[0]),
        round=start,
        position=start if position is None else position,
        seed=start,
        started_unix_ns=start * 10**10,
        took_ns=5 * 10**9,
        traffic=make(start, tuple(costs), noise, idle, failed, busy, warmup, cold),
    )


@lru_cache(maxsize=256)
def _traffic(
    start: int, costs: tuple[float, ...], noise: float, idle: float, failed: int, busy: float, warmup: int, cold: Cold
) -> DuetTraffic:
    """What was seen of a start; many tests simulate the same."""
    rng = np.random.default_rng(start)
    of_start = [costs[0], *(cost * math.exp(rng.normal(0, 0.003)) for cost in (*costs[1:], costs[0]))]
    targets, blocks, now_ns = range(len(of_start)), [], 0
    for index in range(warmup + MEASURED):
        slices = []
        for target in (*targets, *reversed(targets)):
            cost_ns = NS_PER_REQUEST * of_start[target] * math.exp(rng.normal(0, noise) + cold(index, target))
            completed = int(SLICE_NS * busy / cost_ns)
            cpu_ns = [int(idle * SLICE_NS) for _ in targets]
            cpu_ns[target] = int(completed * cost_ns)
            slices.append(
                DuetSlice(
                    target=target,
                    start_ns=now_ns,
                    end_ns=now_ns + SLICE_NS,
                    measured_ns=SLICE_NS,
                    measured=completed,
                    completed=completed,
                    failed=failed,
                    cpu_ns=tuple(cpu_ns),
                    engine_cpu_ns=1,
                )
            )
            now_ns += SLICE_NS
        phase: Literal["warmup", "measure"] = "warmup" if index < warmup else "measure"
        blocks.append(DuetBlock(index=index, phase=phase, slices=tuple(slices)))
    times = Histogram.of([1_000_000 * factor for factor in of_start[:1]])
    of_target = TargetTraffic(counts=Counts(), response=times, service=times, lateness=times, engine_cpu_ns=1)
    return DuetTraffic(
        engine=ENGINE,
        connections=len(targets),
        connect_ns=1,
        epoch_unix_ns=start * 10**10 + 10**9,
        ended="complete",
        blocks=tuple(blocks),
        targets=(of_target,) * len(targets),
    )
