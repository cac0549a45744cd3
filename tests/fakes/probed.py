"""A driver for probes that reports given intervals, and the parts of probes."""

from dataclasses import dataclass, field
from pathlib import Path

from redline.limits.probe_loads import slice_of
from redline.limits.search_state import SearchState
from redline.model import (
    AttachedServer,
    Cell,
    Counts,
    Histogram,
    Interval,
    Load,
    Open,
    Outcomes,
    Request,
    Scenario,
    Traffic,
    Variant,
)
from redline.model.search import ProbeRecording
from redline.ports import Drive, Endpoint, Placement
from redline.running.probing import Prober
from redline.running.record import Tools
from redline.search import Evidence
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.plugins import FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.recordings import simulated_recording
from tests.fakes.searched import plan_of

S = 1_000_000_000
ENDPOINT = Endpoint("127.0.0.1", 1)


def cell() -> Cell:
    return Cell(
        variant=Variant(entry=AttachedServer(host=ENDPOINT.host, port=ENDPOINT.port)),
        scenario=Scenario(name="limit", request=Request(path="/")),
        load=Load(name="probe", shape=Open(rate_per_s=1, connections=8), duration_ns=5 * S),
        warmup_ns=S,
        timeout_ns=5 * S,
    )


def interval(index: int, *, due: int, done: int, phase: str = "measure", errors: int = 0) -> Interval:
    times = Histogram.of([1e6] * due)
    return Interval.model_validate(
        {
            "phase": phase,
            "index": index,
            "start_ns": index * S // 10,
            "end_ns": (index + 1) * S // 10,
            "counts": Counts(due=due, completed=done, outcomes=Outcomes(ok=done, timeout=errors)),
            "response": times,
            "service": times,
            "lateness": Histogram(),
            "engine_cpu_ns": S // 100,
        }
    )


@dataclass
class ScriptedDriver(WithoutDuets):
    """A driver that reports these intervals, and ends in the way it is given."""

    intervals: list[Interval]
    ended: str
    pid: int
    drives: list[Drive] = field(default_factory=list)
    counts: Counts | None = None

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return None

    def drive(self, drive: Drive) -> Traffic:
        self.drives.append(drive)
        drive.on_start(self.pid)
        for each in self.intervals:
            drive.on_interval(each)
        traffic = simulated_recording(drive.cell, seed=drive.seed).traffic
        assert traffic is not None
        changes = {"ended": self.ended, "intervals": tuple(self.intervals), "counts": self.counts or traffic.counts}
        return traffic.model_copy(update=changes)


def prober(driver: ScriptedDriver) -> Prober:
    server = FakeServer(endpoint=ENDPOINT)
    tools = Tools(FakeLauncher([], server), driver, lambda _server: (), Placement())
    return Prober(cell(), tools, server, Path("unused"), seed=7, log_is_kept=True, workers=1)


def shown(*made: ProbeRecording) -> Evidence:
    """The evidence of the last of these probes for p99 < 20 ms."""
    state = SearchState(plan_of(cell()), cell())
    evidence = [state.add(each) for each in made][-1]
    assert evidence is not None
    return evidence


def evidence_of(traffic: Traffic) -> Evidence:
    """A probe of 1,000/s with this traffic, which nobody says that the client limited."""
    slices = tuple(slice_of(each) for each in traffic.intervals if each.phase != "warmup")
    return Evidence(1000, slices)


def traffic(behaviour: Behaviour = GOOD, **counts: int) -> Traffic:
    shape = Open(rate_per_s=1000, connections=8)
    loaded = cell().model_copy(update={"load": cell().load.model_copy(update={"shape": shape})})
    found = simulated_recording(loaded, behaviour).traffic
    assert found is not None
    return found.model_copy(update={"counts": found.counts.model_copy(update=counts)})
