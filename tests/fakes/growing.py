"""Duets of simulated servers whose cost of a request grows with what each has served."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from redline.model import DuetBlock, DuetRecording, DuetSlice
from tests.fakes.duets import NS_PER_REQUEST, SLICE_NS, simulated_duet
from tests.fakes.plugins import FACTS


@dataclass(frozen=True)
class Growing:
    """A server whose request costs `base` times 20 µs, and `per_request` of that more for every request served."""

    base: float = 1.0
    per_request: float = 0.0

    def cost_ns(self, served: float) -> float:
        """The cost of a request after so many."""
        return NS_PER_REQUEST * (self.base + self.per_request * served)


def growing_duet(
    start: int,
    servers: Sequence[Growing],
    *,
    running: bool = True,
    balanced: bool = True,
    blocks: int = 60,
    warmup: int = 30,
    noise: float = 0.01,
    alike: float = 0.0,
    cpu: bool = True,
) -> DuetRecording:
    """A start of A, B and A again, which share a process if they were `running` already.

    `balanced`: the two copies of A then share its slices, as since the engine knows of it; otherwise A serves twice as
    much. Slices scatter by `noise`, and neighbours are `alike` (AR(1)).
    """
    rng = np.random.default_rng(start)
    processes = (0, 1, 0) if running else (0, 1, 2)
    of_process = (*servers, servers[0])
    served = [0.0, 0.0, 0.0]
    made, now_ns, last = list[DuetBlock](), 0, 0.0
    for index in range(warmup + blocks):
        slices = []
        for target in _order(rng, shared=running and balanced):
            process = processes[target]
            last = alike * last + rng.normal(0, noise * math.sqrt(1 - alike**2))
            cost_ns = of_process[process].cost_ns(served[process]) * math.exp(last)
            completed = max(1, int(SLICE_NS / cost_ns))
            served[process] += completed
            used = [0, 0, 0]
            for other in range(3):
                used[other] = int(completed * cost_ns) if processes[other] == process else 0
            slices.append(
                DuetSlice(
                    target=target,
                    start_ns=now_ns,
                    end_ns=now_ns + SLICE_NS,
                    measured_ns=SLICE_NS,
                    measured=completed,
                    completed=completed,
                    failed=0,
                    cpu_ns=tuple(used) if cpu else (),
                    engine_cpu_ns=1,
                )
            )
            now_ns += SLICE_NS
        phase: Literal["warmup", "measure"] = "warmup" if index < warmup else "measure"
        made.append(DuetBlock(index=index, phase=phase, slices=tuple(slices)))
    recording = simulated_duet(start)
    assert recording.traffic is not None
    facts = (None, None, None) if running else (FACTS, FACTS, FACTS)
    traffic = recording.traffic.model_copy(update={"blocks": tuple(made)})
    return recording.model_copy(update={"traffic": traffic, "servers": facts})


def _order(rng: np.random.Generator, *, shared: bool) -> list[int]:
    if not shared:
        order = rng.permutation(3).tolist()
        return [*order, *reversed(order)]
    order = rng.permutation(2).tolist()
    half = rng.integers(2)
    first = [2 if target == 0 and half == 0 else target for target in order]
    second = [2 if target == 0 and half == 1 else target for target in reversed(order)]
    return [*first, *second]
