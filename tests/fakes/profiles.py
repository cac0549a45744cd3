"""Profiles of servers with known shares of time: stacks, drawn slice by slice."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from redline.analysis import build_report
from redline.model import (
    Cell,
    Interval,
    ProfileFacts,
    ProfileFile,
    ProfileKind,
    ProfileReport,
    Recording,
    Report,
    Run,
    Slice,
    Stack,
    Stacks,
)
from redline.profiles.profiles import profile_reports
from redline.stats.stacks import normal
from redline.suite import load_libraries
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import simulated_recording, simulated_run

SLICES = 50
EDGE_NS = 20_000_000
"""How long a profiler takes to begin, and to end."""

Mix = Mapping[str, float]
"""Relative sampling frequency by stack as text, whose first frame is a thread."""

_THREAD = "[io-compute-{n} tid=1{n}];java/lang/Thread.run_[j]"
_FIBER = f"{_THREAD};cats/effect/unsafe/WorkerThread.run_[j];cats/effect/IOFiber.runLoop_[j]"
_EMBER = f"{_FIBER};org/http4s/ember/server/internal/ServerHelpers$.runApp_[j]"
_SOCKET = f"{_FIBER};fs2/io/net/Socket$.write_[j];sun/nio/ch/SocketDispatcher.write0_[j];__libc_write;do_syscall_64_[k]"

VANILLA: Mix = {
    f"{_FIBER}": 0.18,
    f"{_EMBER}": 0.12,
    f"{_EMBER};org/http4s/ember/core/Parser$Request.parse_[j];java/lang/String.<init>_[i]": 0.22,
    f"{_EMBER};study/Server$$Lambda$14/0x0000000800c03000.apply_[j]": 0.05,
    f"{_SOCKET};tcp_sendmsg_[k];_copy_from_iter_[k]": 0.2,
    f"{_SOCKET};tcp_sendmsg_[k];__tcp_push_pending_frames_[k]": 0.1,
    f"{_SOCKET};schedule_[k]": 0.04,
    "[C2 CompilerThread0 tid=7];start_thread;Compile::Compile;PhaseIdealLoop::build": 0.04,
    "[GC Thread#{n} tid=2{n}];start_thread;G1ParEvacuateFollowersClosure::do_void": 0.05,
}
_TAPIR = f"{_EMBER};sttp/tapir/server/interpreter/ServerInterpreter.apply_[j]"
TAPIR: Mix = {
    **VANILLA,
    f"{_TAPIR};scala/collection/immutable/List.map_[j]": 0.12,
    f"{_TAPIR};sttp/tapir/server/interpreter/DecodeBasicInputs$.apply_[j]": 0.08,
    f"{_TAPIR};sttp/tapir/EndpointInput$Path.matches_[j]": 0.04,
}
"""The profile of vanilla, and 24% of that in addition: 20 points in the interpreter and 4 in the rest of Tapir."""


def stack_of(text: str) -> Stack:
    """A stack with normal frames, from its text form without a weight."""
    (stack,) = normal(Stacks.from_text(f"{text.replace('{n}', '1')} 1")).weights if text else (Stack(()),)
    return stack


def stacks_of(
    mix: Mix, window_unix_ns: tuple[int, int], *, samples: int = 20_000, slices: int = SLICES, seed: int = 1
) -> Stacks:
    """This many samples of the mix, spread evenly over slices of the window; without slices in one piece."""
    rng = np.random.default_rng(seed)
    names = list(mix)
    chances = np.array([mix[name] for name in names])
    start, end = window_unix_ns
    edges = np.linspace(start, end, slices + 1).astype(np.int64)
    times = [Slice(int(low), int(high)) for low, high in pairwise(edges)]
    weights = Counter[Stack]()
    for each in times or (None,):
        drawn = rng.multinomial(samples // max(1, slices), chances / chances.sum())
        for name, count in zip(names, drawn, strict=True):
            thread = str(int(rng.integers(1, 5)))
            (stack,) = Stacks.from_text(f"{name.replace('{n}', thread)} 1").weights
            weights[stack._replace(slice=each)] += int(count)
    return Stacks(+weights, tuple(times))


def profiled(
    recording: Recording, *, kind: ProfileKind = "cpu", samples: int = 20_000, stacks: bool = True
) -> Recording:
    """The recording as that of a trial with a profiler, whose stacks are in a file named by its position."""
    name = f"profiles/{recording.position:04d}.{kind}"
    files = (ProfileFile(name=f"{name}.stacks.gz", form="stacks"),) if stacks else ()
    facts = ProfileFacts(
        kind=kind,
        subject="server",
        profiler="async-profiler 4.6",
        event="ctimer",
        interval=1_000_000,
        samples=samples,
        files=(*files, ProfileFile(name=f"{name}.jfr", form="jfr")),
    )
    return recording.model_copy(update={"profile": facts, "perturbed": True})


def profiled_start(
    cell: Cell, behaviour: Behaviour = GOOD, *, position: int = 100, seed: int = 1, cost: float = 1.0
) -> Recording:
    """A trial of the cell with a profiler, which multiplies the server's time by `slower`."""
    longer = cell.under_profiler
    one = profiled(simulated_recording(longer, behaviour, position=position, seed=seed))
    assert one.traffic is not None
    assert one.profile is not None
    start, end = one.traffic.window_unix_ns
    started = Slice(start + longer.unprofiled_ns, start + longer.unprofiled_ns + EDGE_NS)
    stopped = Slice(end - longer.unprofiled_ns - EDGE_NS, end - longer.unprofiled_ns)

    def slowed(each: Interval) -> Interval:
        middle = one.traffic.epoch_unix_ns + (each.start_ns + each.end_ns) / 2 if one.traffic else 0.0
        if each.phase != "measure" or not started.start <= middle < stopped.end:
            return each
        completed = round(each.counts.completed / cost)
        return each.model_copy(update={"counts": each.counts.model_copy(update={"completed": completed})})

    traffic = one.traffic.model_copy(update={"intervals": tuple(map(slowed, one.traffic.intervals))})
    facts = one.profile.model_copy(update={"started": started, "stopped": stopped})
    return one.model_copy(update={"cell_id": cell.id, "traffic": traffic, "profile": facts})


def _with_samples(run: Run, behaviours: Mapping[str, Behaviour], mixes: Mapping[str, Mix]) -> tuple[ProfileReport, ...]:
    """What a profile of the CPU time of each cell says."""
    found: dict[str, Stacks] = {}
    recordings = []
    for position, cell in enumerate(run.manifest.plan.cells.values(), 100):
        slug = cell.variant.slug
        if slug not in mixes:
            continue
        one = profiled_start(cell, behaviours[slug], position=position, seed=position, cost=1.03)
        assert one.profile is not None
        assert one.profile.sampled is not None
        found[f"profiles/{position:04d}.cpu.stacks.gz"] = stacks_of(mixes[slug], one.profile.sampled, seed=position)
        recordings.append(one)
    report = build_report(run)
    libraries = load_libraries(Path("/nonexistent"))
    return profile_reports(recordings, found.__getitem__, libraries, report.cells, report.comparisons)


@cache
def report_with_profiles() -> Report:
    """Two servers, the second doing the work of the first and more, profiled under two loads."""
    behaviours = {"http4s.vanilla": GOOD, "http4s.tapir": replace(GOOD, rate_per_s=GOOD.rate_per_s / 1.24)}
    run = simulated_run(behaviours, ceiling=None, baseline="http4s.vanilla", trial_effect=0.002)
    mixes = {"http4s.vanilla": VANILLA, "http4s.tapir": TAPIR}
    return build_report(run).model_copy(update={"profiles": _with_samples(run, behaviours, mixes)})


@cache
def report_with_deep_stacks() -> Report:
    """A server whose program begins 30 frames below its thread."""
    way_in = ";".join(f"framework/Layer{number}.call_[j]" for number in range(29))
    deep = {
        stack.replace("lang/Thread.run_[j]", f"lang/Thread.run_[j];{way_in}"): share for stack, share in VANILLA.items()
    }
    behaviours = {"http4s.vanilla": GOOD}
    run = simulated_run(behaviours, ceiling=None, baseline=None, trials=2)
    profiles = _with_samples(run, behaviours, {"http4s.vanilla": deep})
    return build_report(run).model_copy(update={"profiles": profiles})
