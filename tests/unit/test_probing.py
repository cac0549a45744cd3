"""A proposal becomes a load and its traffic evidence; a hopeless probe is ended, and Ctrl-C is not taken for that."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from redline.cli.limit_view import answers, probe_line
from redline.cli.load_target import running_server
from redline.model import (
    Cell,
    Counts,
    Finding,
    FindingKind,
    Grade,
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
from redline.ports import Drive, Endpoint
from redline.probing import Prober, evidence_of, slice_of
from redline.report.limits import probe as published
from redline.search import Converged, Evidence, Proposal, Search, Slice
from redline.search.client import busy_connections, busy_workers, disturbed, late_engine
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import simulated_recording

S = 1_000_000_000
ENDPOINT = Endpoint("127.0.0.1", 1)


def cell() -> Cell:
    return Cell(
        variant=Variant(entry=running_server(ENDPOINT, None)),
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
class Told:
    """A driver that tells these intervals, and ends as it is told to."""

    intervals: list[Interval]
    ended: str
    pid: int
    drives: list[Drive] = field(default_factory=list)
    counts: Counts | None = None

    def refuses(self, cell: Cell) -> str | None:
        return None

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return None

    def drive(self, drive: Drive) -> Traffic:
        self.drives.append(drive)
        drive.on_start(self.pid)
        for each in self.intervals:
            drive.on_interval(each)
        traffic = simulated_recording(drive.cell, seed=drive.seed).traffic
        assert traffic is not None
        told = {"ended": self.ended, "intervals": tuple(self.intervals), "counts": self.counts or traffic.counts}
        return traffic.model_copy(update=told)


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when it hears of an interrupt."""
    with subprocess.Popen(["sleep", "30"]) as process:
        yield process
        process.kill()


def prober(told: Told) -> Prober:
    return Prober(told, cell(), ENDPOINT, workers=1, seed=7, log=Path("unused"))


def test_a_proposal_is_an_open_load_at_its_rate_in_fine_slices(engine: subprocess.Popen[bytes]) -> None:
    told = Told([interval(n, due=100, done=100) for n in range(50)], "complete", engine.pid)
    evidence = prober(told).probe(Proposal(1000, "to begin with"), 3)
    shape = told.drives[0].cell.load.shape
    assert isinstance(shape, Open)
    assert (shape.rate_per_s, told.drives[0].interval_ns, told.drives[0].seed) == (1000, S // 10, 10)
    assert evidence.seconds == pytest.approx(5)
    assert (evidence.due, evidence.hopeless) == (5000, False)
    assert engine.poll() is None


def test_a_hopeless_probe_is_ended_and_is_evidence(engine: subprocess.Popen[bytes]) -> None:
    told = Told([interval(n, due=100, done=50) for n in range(20)], "interrupted", engine.pid)
    assert prober(told).probe(Proposal(1000, ""), 0).hopeless
    assert engine.wait(10) != 0


@pytest.mark.parametrize(
    ("outcomes", "answered", "waits"),
    [
        (Outcomes(ok=500), 500, []),
        (Outcomes(ok=500, in_flight=200, unsent=900), 500, [0.4]),
        (Outcomes(ok=500, timeout=100, in_flight=100), 500, [0.4]),
        (Outcomes(ok=500, unsent=900), 500, [0.016]),
        (Outcomes(in_flight=8), 0, [5.0]),
        (Outcomes(ok=10, in_flight=1000), 10, [5.0]),
    ],
)
def test_the_backlog_of_a_probe_is_none_of_the_next_ones(outcomes: Outcomes, answered: int, waits: list[float]) -> None:
    """Answered 500 in a second, 200 that were sent take 0.4 s more; never is it longer than the timeout."""
    told = Told([interval(n, due=100, done=100) for n in range(10)], "complete", 1)
    made, waited = prober(told), list[float]()
    made.pause = waited.append
    one = Load(name="probe", shape=Open(rate_per_s=1, connections=8), duration_ns=S)
    made.cell = made.cell.model_copy(update={"load": one})
    told.counts = Counts(due=2000, completed=answered, outcomes=outcomes)
    made.probe(Proposal(1000, ""), 0)
    assert waited == []
    made.probe(Proposal(500, ""), 1)
    assert waited == pytest.approx(waits)
    made.move_to(ENDPOINT, Path("unused"), 1)
    made.probe(Proposal(500, ""), 2)
    assert waited == pytest.approx(waits), "another start has no backlog"
    made.warm(100, 3)
    assert waited == pytest.approx(2 * waits), "before any load"


def test_one_that_is_wanted_whole_is_not(engine: subprocess.Popen[bytes]) -> None:
    told = Told([interval(n, due=100, done=50) for n in range(20)], "complete", engine.pid)
    prober(told).probe(Proposal(1000, "", whole=True), 0)
    assert engine.poll() is None


def test_an_interrupt_from_outside_is_not_evidence(engine: subprocess.Popen[bytes]) -> None:
    told = Told([interval(n, due=100, done=100) for n in range(20)], "interrupted", engine.pid)
    with pytest.raises(KeyboardInterrupt):
        prober(told).probe(Proposal(1000, ""), 0)


def test_slices_of_the_measurement_and_of_the_drain() -> None:
    assert slice_of(interval(0, due=9, done=7, errors=1)) == Slice(0.1, 9, 7, 1, interval(0, due=9, done=7).response)
    assert slice_of(interval(0, due=0, done=3, phase="drain")).seconds == 0


def test_what_we_cut_ourselves_is_no_error() -> None:
    left = interval(0, due=9, done=4, phase="drain")
    outcomes = Outcomes(ok=4, in_flight=3, unsent=1, reset=1)
    left = left.model_copy(update={"counts": left.counts.model_copy(update={"outcomes": outcomes})})
    assert (slice_of(left, cut=True).errors, slice_of(left).errors) == (1, 5)


def traffic(behaviour: Behaviour = GOOD, **counts: int) -> Traffic:
    shape = Open(rate_per_s=1000, connections=8)
    loaded = cell().model_copy(update={"load": cell().load.model_copy(update={"shape": shape})})
    found = simulated_recording(loaded, behaviour).traffic
    assert found is not None
    return found.model_copy(update={"counts": found.counts.model_copy(update=counts)})


def stolen(grade: Grade) -> Finding:
    told = {"message": "The host took 20% of it.", "advice": "Take another one.", "cell_id": "cell"}
    return Finding(kind=FindingKind.CPU_STEAL, grade=grade, **told)


def test_a_probe_that_missed_while_the_host_took_the_cores_tells_nothing() -> None:
    limits = parse_objectives("p99 < 20ms, errors < 0.1%")
    met, missed = (evidence_of(1000, traffic(replace(GOOD, response_ns=ns)), cut=False) for ns in (1e6, 30e6))
    told = disturbed(missed, [stolen(Grade.WARN)], limits)
    assert told.client == "the host took 20% of it"
    assert not disturbed(replace(missed, hopeless=True), [stolen(Grade.WARN)], limits).hopeless
    assert disturbed(missed, [stolen(Grade.NOTE)], limits) is missed, "too little to matter"
    assert disturbed(met, [stolen(Grade.WARN)], limits) is met, "met in spite of it"
    assert disturbed(told, [stolen(Grade.WARN)], limits).client == told.client


def test_what_the_host_may_have_done_may_pass() -> None:
    limits = parse_objectives("p99 < 20ms")
    missed = evidence_of(1000, traffic(replace(GOOD, response_ns=30e6)), cut=False)
    late = replace(missed, client="the engine was late")
    assert disturbed(missed, [stolen(Grade.WARN)], limits).passing
    few = disturbed(late, [stolen(Grade.NOTE)], limits)
    assert (few.passing, few.client) == (True, "the engine was late"), "a few stalls are enough to be late"
    much = disturbed(late, [stolen(Grade.WARN)], limits)
    assert (much.passing, much.client) == (True, "the host took 20% of it")
    assert not disturbed(late, [], limits).passing, "the engine's own fault stays"


BUSY = replace(GOOD, response_ns=6e6)
"""At 1,000/s, six of eight connections are in use on average."""


def test_an_engine_that_is_always_busy_is_the_limit() -> None:
    busy = traffic().model_copy(update={"engine_cpu_ns": round(traffic().seconds * 0.99 * S)})
    assert busy_workers(busy, 1) == "the engine was busy 99% of the time: give -t more"
    assert not busy_workers(busy, 2)


def test_busy_connections_are_the_limit_where_the_server_is_as_fast_as_ever() -> None:
    waited = traffic(BUSY, waited=traffic().counts.due // 10)
    calm_ns = waited.service.quantile_ns(0.5)
    assert busy_connections(waited, 8, calm_ns) == "all 8 connections were busy: give -c more"
    assert not busy_connections(waited, 8, calm_ns // 2), "an overloaded server"
    assert not busy_connections(waited, 8, None), "nobody knows how fast it is when it is calm"
    assert not busy_connections(traffic(BUSY, waited=1), 8, calm_ns), "too few"


def test_connections_that_were_short_for_a_moment_only_are_not_the_limit() -> None:
    """The server paused once: a tenth found no connection, and on average half of them had nothing to do."""
    paused = traffic(BUSY, waited=traffic().counts.due // 10)
    under_way = paused.counts.completed / paused.seconds * paused.service.mean_ns / 1e9
    calm_ns = paused.service.quantile_ns(0.5)
    assert busy_connections(paused, 8, calm_ns, room=int(1.9 * under_way))
    assert not busy_connections(paused, 8, calm_ns, room=int(2.1 * under_way) + 1)


@pytest.mark.parametrize(
    ("answered", "room", "says"),
    [(100, 8, ""), (0, 8, ""), (7000, 8, "all 8 connections were busy: give -c more"), (7000, 80, "")],
)
def test_where_only_what_was_due_before_was_sent_the_rate_of_answers_tells(answered: int, room: int, says: str) -> None:
    """8 connections that are always busy and answer 100 in a second take 80 ms for each, and 7,000 take 1.1 ms."""
    waited = traffic(waited=traffic().counts.due)
    counts = waited.counts.model_copy(update={"completed": round(answered * waited.seconds)})
    waited = waited.model_copy(update={"service": Histogram(), "counts": counts})
    assert busy_connections(waited, 8, 1e6, room) == says


def test_what_the_engine_could_not_connect_is_no_fault_of_the_server() -> None:
    told = Told([interval(n, due=100, done=100) for n in range(50)], "complete", 1)
    told.counts = Counts(due=5000, completed=4000, outcomes=Outcomes(ok=4000, connect=1000), exhausted=1000)
    evidence = prober(told).probe(Proposal(1000, ""), 0)
    assert evidence.client.startswith("no port, descriptor or memory was left on the engine's side for 1,000 requests")
    told.counts = Counts(due=5000, completed=4000, outcomes=Outcomes(ok=4000, connect=1000), exhausted=5)
    assert not prober(told).probe(Proposal(1000, ""), 0).client, "hardly any"


@dataclass
class Full(Told):
    """A driver whose connections are all busy from the second probe on, or from the first."""

    calm: int = 1
    resets: int = 0

    def drive(self, drive: Drive) -> Traffic:
        found = super().drive(drive)
        waits = {"waited": 0 if len(self.drives) <= self.calm else 99}
        counts = found.counts.model_copy(
            update={"due": 100, "outcomes": Outcomes(ok=100 - self.resets, reset=self.resets), **waits}
        )
        service = Histogram.of([150e6] * 100)  # 40/s: six under way
        return found.model_copy(update={"counts": counts, "service": service})


def test_how_fast_a_calm_server_is_comes_from_probes_without_a_wait() -> None:
    slices = [interval(n, due=4, done=4) for n in range(50)]
    proposal, busy = Proposal(40, ""), "all 8 connections were busy: give -c more"
    probing = prober(Full(slices, "complete", 1))
    assert [probing.probe(proposal, n).client for n in range(2)] == ["", busy]
    assert not prober(Full(slices, "complete", 1, calm=0)).probe(proposal, 0).client, "it has seen no calm probe"
    failing = prober(Full(slices, "complete", 1, resets=10))
    assert [failing.probe(proposal, n).client for n in range(2)] == ["", ""], "a refusal is fast"


def test_a_late_engine_is_the_limit_where_the_server_alone_met_it() -> None:
    limits = parse_objectives("p99 < 20ms, errors < 1%")
    late = replace(GOOD, lateness_ns=5e6)
    slow = Histogram.of([30e6] * 100)
    missed = traffic(late).model_copy(update={"response": slow, "service": Histogram.of([1e6] * 100)})
    assert "pin it" in late_engine(missed, limits, cut=False)
    assert not late_engine(missed.model_copy(update={"service": slow}), limits, cut=False), "the server's own fault"
    met = missed.model_copy(update={"response": Histogram.of([1e6] * 100)})
    assert not late_engine(met, limits, cut=False), "met in spite of it"
    assert late_engine(met, limits, cut=True)
    on_time = missed.model_copy(update={"lateness": Histogram.of([1e5] * 100)})
    assert not late_engine(on_time, limits, cut=False)


def test_a_probe_in_which_the_client_was_the_limit_says_so_and_is_not_hopeless(
    engine: subprocess.Popen[bytes],
) -> None:
    class Busy(Told):
        def drive(self, drive: Drive) -> Traffic:
            found = super().drive(drive)
            return found.model_copy(update={"engine_cpu_ns": round(found.seconds * S)})

    told = Busy([interval(n, due=100, done=50) for n in range(20)], "interrupted", engine.pid)
    evidence = prober(told).probe(Proposal(1000, ""), 0)
    assert (evidence.client, evidence.hopeless) == ("the engine was busy 100% of the time: give -t more", False)
    assert "not the server: the engine was busy" in probe_line(evidence, "", 1)


def test_an_interrupt_just_after_our_own_cut_is_heard(engine: subprocess.Popen[bytes]) -> None:
    class Interrupted(Told):
        def drive(self, drive: Drive) -> Traffic:
            found = super().drive(drive)
            with suppress(KeyboardInterrupt):  # as the driver does, which then tells the engine
                signal.raise_signal(signal.SIGINT)
            return found

    told = Interrupted([interval(n, due=100, done=50) for n in range(20)], "interrupted", engine.pid)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        prober(told).probe(Proposal(1000, ""), 0)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_result_has_every_probe_and_answer() -> None:
    search = Search({"good": parse_objectives("p99 < 20ms")})
    evidence = Evidence(1000, tuple(slice_of(interval(n, due=100, done=100)) for n in range(50)))
    search.saw(evidence)
    (told,) = answers(search, Converged(search.limits(), confirmed=False))
    assert (told.passed_per_s, told.failed_per_s) == (1000, None)
    assert published(evidence, "to begin with", "search").answered_per_s == pytest.approx(1000)
    assert "1.00 k/s" in probe_line(evidence, "to begin with", 1)
    assert "hopeless" in probe_line(replace(evidence, hopeless=True), "", 2)
