"""A proposal becomes a load and its traffic evidence; a hopeless probe is ended, which Ctrl-C is not taken for."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from redline.cli.search_view import probe_line
from redline.limits.answers import answer
from redline.limits.answers import probe as published
from redline.limits.doubts import Seen
from redline.limits.probe_loads import slice_of
from redline.model import (
    Closed,
    Counts,
    Load,
    Open,
    Outcomes,
    Traffic,
)
from redline.ports import Drive
from redline.search import Evidence, ProbeSlice, Proposal, Search
from redline.search.overload import OverloadPlan
from redline.suite import parse_objectives
from tests.fakes.probed import S, ScriptedDriver, interval, prober, shown


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when it is interrupted."""
    with subprocess.Popen(["sleep", "30"]) as process:
        yield process
        process.kill()


def test_a_proposal_is_an_open_load_at_its_rate_in_fine_slices(engine: subprocess.Popen[bytes]) -> None:
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(50)], "complete", engine.pid)
    made = prober(driver)
    made.loads = 3
    evidence = shown(made.probe(Proposal(1000, "to begin with"), "search"))
    shape = driver.drives[0].cell.load.shape
    assert isinstance(shape, Open)
    assert (shape.rate_per_s, driver.drives[0].interval_ns, driver.drives[0].seed) == (1000, S // 10, 10)
    assert evidence.seconds == pytest.approx(5)
    assert (evidence.due, evidence.hopeless) == (5000, False)
    assert engine.poll() is None


def test_a_hopeless_probe_is_ended_and_is_evidence(engine: subprocess.Popen[bytes]) -> None:
    driver = ScriptedDriver([interval(n, due=100, done=50) for n in range(20)], "interrupted", engine.pid)
    made = prober(driver).probe(Proposal(1000, ""), "search")
    assert made.cut
    assert shown(made).hopeless
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
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(10)], "complete", 1)
    made, waited = prober(driver), list[float]()
    made.pause = waited.append
    one = Load(name="probe", shape=Open(rate_per_s=1, connections=8), duration_ns=S)
    made.cell = made.cell.model_copy(update={"load": one})
    driver.counts = Counts(due=2000, completed=answered, outcomes=outcomes)
    made.probe(Proposal(1000, ""), "search")
    assert waited == []
    made.probe(Proposal(500, ""), "search")
    assert waited == pytest.approx(waits)
    list(made.warm(lambda: 100))
    assert waited == pytest.approx(2 * waits), "before any load"


def test_one_that_is_wanted_whole_is_not(engine: subprocess.Popen[bytes]) -> None:
    driver = ScriptedDriver([interval(n, due=100, done=50) for n in range(20)], "complete", engine.pid)
    prober(driver).probe(Proposal(1000, "", whole=True), "search")
    assert engine.poll() is None


def test_an_interrupt_from_outside_is_not_evidence(engine: subprocess.Popen[bytes]) -> None:
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(20)], "interrupted", engine.pid)
    with pytest.raises(KeyboardInterrupt):
        prober(driver).probe(Proposal(1000, ""), "search")


def test_slices_of_the_measurement_and_of_the_drain() -> None:
    assert slice_of(interval(0, due=9, done=7, errors=1)) == ProbeSlice(
        0.1, 9, 7, 1, interval(0, due=9, done=7).response
    )
    assert slice_of(interval(0, due=0, done=3, phase="drain")).seconds == 0


def test_what_we_cut_ourselves_is_no_error() -> None:
    left = interval(0, due=9, done=4, phase="drain")
    outcomes = Outcomes(ok=4, in_flight=3, unsent=1, reset=1)
    left = left.model_copy(update={"counts": left.counts.model_copy(update={"outcomes": outcomes})})
    assert (slice_of(left, cut=True).errors, slice_of(left).errors) == (1, 5)


def test_a_probe_in_which_the_client_was_the_limit_says_so_and_is_not_hopeless(
    engine: subprocess.Popen[bytes],
) -> None:
    class Busy(ScriptedDriver):
        def drive(self, drive: Drive) -> Traffic:
            found = super().drive(drive)
            return found.model_copy(update={"engine_cpu_ns": round(found.seconds * S)})

    driver = Busy([interval(n, due=100, done=50) for n in range(20)], "interrupted", engine.pid)
    evidence = shown(prober(driver).probe(Proposal(1000, ""), "search"))
    assert (evidence.client, evidence.hopeless) == ("the engine was busy 100% of the time: give -t more", False)
    assert "not the server: the engine was busy" in probe_line(evidence, "", 1)


def test_an_interrupt_just_after_our_own_cut_is_heard(engine: subprocess.Popen[bytes]) -> None:
    class Interrupted(ScriptedDriver):
        def drive(self, drive: Drive) -> Traffic:
            found = super().drive(drive)
            with suppress(KeyboardInterrupt):  # as the driver does, which then notifies the engine
                signal.raise_signal(signal.SIGINT)
            return found

    driver = Interrupted([interval(n, due=100, done=50) for n in range(20)], "interrupted", engine.pid)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        prober(driver).probe(Proposal(1000, ""), "search")
    assert signal.getsignal(signal.SIGINT) is before


def test_the_result_has_every_probe_and_answer() -> None:
    search = Search({"good": parse_objectives("p99 < 20ms")})
    evidence = Evidence(1000, tuple(slice_of(interval(n, due=100, done=100)) for n in range(50)))
    search.add(evidence)
    (result,) = (answer(limit, search, Seen(())) for limit in search.limits())
    assert (result.passed_per_s, result.failed_per_s) == (1000, None)
    assert published(evidence, search.sets, "to begin with").answered_per_s == pytest.approx(1000)
    assert "1.00 k/s" in probe_line(evidence, "to begin with", 1)
    assert "hopeless" in probe_line(replace(evidence, hopeless=True), "", 2)


@pytest.mark.parametrize(("length_ns", "interval_ns"), [(S // 2, 20_000_000), (S, 20_000_000), (5 * S, 100_000_000)])
def test_a_probe_has_fifty_intervals_of_20_ms_at_least(length_ns: int, interval_ns: int) -> None:
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(10)], "complete", 1)
    made = prober(driver)
    made.cell = made.cell.under(made.cell.load.lasting(length_ns))
    made.probe(Proposal(1000, ""), "search")
    assert driver.drives[0].interval_ns == interval_ns


@pytest.mark.parametrize(("intervals", "cut"), [(50, False), (52, True)])
def test_a_server_may_give_no_answer_for_as_long_as_the_timeout(
    engine: subprocess.Popen[bytes], intervals: int, *, cut: bool
) -> None:
    """The timeout is 5 s, an interval takes a tenth of a second."""
    ended = "interrupted" if cut else "complete"
    driver = ScriptedDriver([interval(n, due=100, done=0) for n in range(intervals)], ended, engine.pid)
    assert prober(driver).probe(Proposal(1000, ""), "search").cut is cut


def test_the_warm_up_is_by_users_and_then_at_seven_tenths_of_the_first_rate() -> None:
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(10)], "complete", 1)
    made = prober(driver)
    users, calm = made.warm(lambda: 1000.0)
    first, second = (drive.cell for drive in driver.drives)
    assert (users.phase, calm.phase) == ("warmup", "approach")
    assert (first.load.shape, first.load.duration_ns, first.warmup_ns) == (Closed(users=8), S, 0)
    assert isinstance(second.load.shape, Open)
    assert (second.load.shape.rate_per_s, second.load.duration_ns, second.warmup_ns) == (700, S, 0)
    assert [drive.interval_ns for drive in driver.drives] == [None, None]
    assert [drive.seed for drive in driver.drives] == [7, 8]
    assert [users.retries_left, calm.retries_left, users.cut] == [0, 0, False]


def test_a_warm_up_that_is_detected_measures_half_a_second_more() -> None:
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(10)], "complete", 1)
    made = prober(driver)
    made.cell = made.cell.model_copy(update={"warmup_detect": True})
    list(made.warm(lambda: 1000.0))
    first, second = driver.drives
    assert (first.cell.load.duration_ns, first.cell.warmup_ns, first.interval_ns) == (S // 2, S, S // 2)
    assert first.is_warm is not None
    assert second.is_warm is None


def test_the_overload_test_is_a_load_of_stages_in_slices() -> None:
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(10)], "complete", 1)
    plan = OverloadPlan(100, 900, 500, before_s=1.5, overload_s=2.0, after_s=3.0, slice_s=0.25)
    made = prober(driver).overload(plan)
    (drive,) = driver.drives
    assert (made.phase, made.cut, made.retries_left) == ("overload", False, 0)
    assert drive.cell.load.duration_ns == 6.5 * S
    assert drive.interval_ns == S // 4
    assert isinstance(drive.cell.load.shape, Open)
    assert drive.cell.load.shape.most_per_s == 900


def test_a_load_that_is_not_wanted_any_more_is_not_begun() -> None:
    driver = ScriptedDriver([interval(0, due=1, done=1)], "complete", 1)
    made = prober(driver)
    made.is_over = lambda: True
    with pytest.raises(KeyboardInterrupt):
        made.probe(Proposal(1000, ""), "search")
    assert driver.drives == []


def test_arrivals_are_those_of_the_loads_so_far() -> None:
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(10)], "complete", 1)
    made = prober(driver)
    recordings = [made.probe(Proposal(1000, ""), "search").recording for _ in range(2)]
    assert [(one.position, one.seed) for one in recordings] == [(0, 7), (1, 8)]
    assert made.loads == 2


@pytest.mark.parametrize("kept", [True, False])
def test_logs_of_probes_can_be_read_unless_it_is_said_otherwise(*, kept: bool) -> None:
    driver = ScriptedDriver([interval(0, due=1, done=1)], "complete", 1)
    made = prober(driver)
    if not kept:
        made.log_is_kept = False
    made.probe(Proposal(1000, ""), "search")
    assert driver.drives[0].log_is_kept is kept
    assert driver.drives[0].keep_interrupted
