"""How a trial was loaded: each finding on both sides of its limits, on traffic that is written by hand."""

from typing import Any

import pytest

from redline.findings import load
from redline.findings.load import carried_over_share
from redline.findings.rules import Observation, Rule
from redline.model import (
    Cell,
    Closed,
    Counts,
    Failure,
    Grade,
    Histogram,
    Interval,
    Load,
    Open,
    Outcomes,
    StreamTraffic,
    Tls,
    Traffic,
)
from redline.model.exchange import Scenario
from redline.model.journey import Journey, JourneyStep
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.duets import ENGINE
from tests.fakes.recordings import SIMPLE_GET, simulated_cell, simulated_recording

MS, S = 1_000_000, 1_000_000_000


def cell_of(shape: Open | Closed, **changed: Any) -> Cell:
    return simulated_cell(load=Load(name="x", shape=shape, duration_ns=10 * S)).model_copy(update=changed)


OPEN = cell_of(Open(rate_per_s=100, connections=4))
CLOSED = cell_of(Closed(users=10))
PACED = cell_of(Closed(users=10, pace_per_s=10))
THINKING = cell_of(Closed.model_validate({"users": 10, "think": {"mean_ns": 100 * MS}}))
FAILURE = Failure(stage="load", kind="engine", message="m", hint="")


def interval(index: int, start_ns: int, end_ns: int, phase: str = "measure", **counts: Any) -> Interval:
    none = Histogram()
    return Interval.model_validate(
        {
            "phase": phase,
            "index": index,
            "start_ns": start_ns,
            "end_ns": end_ns,
            "counts": Counts(**counts),
            "response": none,
            "service": none,
            "lateness": none,
            "engine_cpu_ns": 1,
        }
    )


def even(due: int = 1000, at: int = 0) -> tuple[Interval, ...]:
    """Ten measured intervals of a second with a tenth each of the requests due, all answered, from 2 s on."""
    each = due // 10
    return tuple(
        interval(at + i, (2 + i) * S, (3 + i) * S, due=each, completed=each, outcomes=Outcomes(ok=each))
        for i in range(10)
    )


def traffic(*intervals: Interval, times_ms: float = 100.0, late_ms: float = 0.0, **changed: Any) -> Traffic:
    made = intervals or even()
    times = Histogram.of([times_ms * MS] * 1000)
    facts: dict[str, Any] = {
        "engine": ENGINE,
        "connections": 10,
        "connect_ns": 1,
        "epoch_unix_ns": 0,
        "measure_start_ns": 2 * S,
        "measure_end_ns": 12 * S,
        "ended": "complete",
        "counts": Counts(due=1000, completed=1000, outcomes=Outcomes(ok=1000)),
        "response": times,
        "service": times,
        "lateness": Histogram.of([late_ms * MS] * 1000),
        "engine_cpu_ns": 1,
        "intervals": made,
    }
    return Traffic.model_validate({**facts, **changed})


def counts(**changed: Any) -> Counts:
    return Counts(**{"due": 1000, "completed": 1000, "outcomes": Outcomes(ok=1000), **changed})


def observed(rule: Rule, *arguments: object) -> Observation | None:
    assert rule.function is not None
    found = rule.function(*arguments)
    assert found is None or isinstance(found, Observation)
    return found


def graded(rule: Rule, *arguments: object) -> Grade | None:
    found = observed(rule, *arguments)
    return (found.rule or rule).grade(found.value) if found is not None else None


def message(rule: Rule, *arguments: object) -> str:
    found = observed(rule, *arguments)
    assert found is not None
    return found.message


def test_a_profiler_makes_a_trial_perturbed() -> None:
    recording = simulated_recording(CLOSED, GOOD)
    assert graded(load.perturbed, Trial(recording)) is None
    assert graded(load.perturbed, Trial(recording.model_copy(update={"perturbed": True}))) is Grade.WARN


@pytest.mark.parametrize(
    ("ended", "seconds", "grade"),
    [
        ("complete", 1, None),
        ("failing", 1, None),
        ("interrupted", 10, None),
        ("interrupted", 9, Grade.WARN),
        ("interrupted", 5, Grade.WARN),
        ("interrupted", 4, Grade.INVALID),
        ("interrupted", 12, None),
        ("deadline", 10, Grade.INVALID),
    ],
)
def test_what_is_missing_of_a_measurement_is_its_grade(ended: str, seconds: int, grade: Grade | None) -> None:
    cut = traffic(ended=ended, measure_end_ns=(2 + seconds) * S)
    assert graded(load.cut_short, OPEN, Trial(simulated_recording(OPEN, GOOD)), cut) is grade


def test_a_measurement_that_was_cut_says_why() -> None:
    trial = Trial(simulated_recording(OPEN, GOOD))
    failed = trial.recording.model_copy(update={"failure": FAILURE})
    rest = ": 9.00 s of the planned 10.0 s were measured."
    for ended, of, why in (
        ("interrupted", trial, "The measurement was interrupted"),
        ("deadline", trial, "The engine ran into its deadline"),
        ("deadline", Trial(failed), "The load was cut off"),
        ("interrupted", Trial(failed), "The measurement was interrupted"),
    ):
        assert message(load.cut_short, OPEN, of, traffic(ended=ended, measure_end_ns=11 * S)) == why + rest
    aborted = traffic(ended="aborted", aborted_by="p99 > 1s", measure_end_ns=11 * S)
    assert message(load.cut_short, OPEN, trial, aborted) == f"The load was aborted by p99 > 1s; {rest[2:]}"
    assert graded(load.cut_short, OPEN, trial, aborted) is Grade.INVALID


@pytest.mark.parametrize(
    ("completed", "grade"), [(1000, None), (991, None), (989, Grade.WARN), (951, Grade.WARN), (949, Grade.INVALID)]
)
def test_a_hundredth_of_the_due_requests_missed_is_reported(completed: int, grade: Grade | None) -> None:
    missed = traffic(counts=counts(completed=completed))
    assert graded(load.rate_missed, OPEN, missed) is grade
    assert observed(load.rate_missed, CLOSED, missed) is None
    assert graded(load.rate_missed, cell_of(Closed(users=4, pace_per_s=25)), missed) is grade


def test_a_missed_rate_is_given_with_what_was_due() -> None:
    assert message(load.rate_missed, OPEN, traffic(counts=counts(completed=900))) == (
        "90 right answers/s of 100 requests/s due: 10% of the rate was missed."
    )
    assert "0% of the rate" in message(load.rate_missed, OPEN, traffic().model_copy(update={"counts": counts(due=990)}))


@pytest.mark.parametrize(
    ("outcomes", "to_errors"),
    [
        ({"reset": 50}, False),
        ({"reset": 51}, True),
        ({"timeout": 100}, False),
        ({"in_flight": 100}, False),
        ({"unsent": 100}, False),
        ({"reset": 51, "timeout": 9, "in_flight": 9, "unsent": 9}, True),
        ({"unexpected_status": 51}, True),
    ],
)
def test_what_failed_is_no_rate_to_lower(outcomes: dict[str, int], *, to_errors: bool) -> None:
    changed = counts(completed=900, outcomes=Outcomes(ok=900, **outcomes))
    missed = traffic().model_copy(update={"counts": changed})
    found = observed(load.rate_missed, OPEN, missed)
    assert found is not None
    assert (found.advice is not None) is to_errors
    assert found.advice is None or "`errors`" in found.advice


def carrying(before: int, left: int) -> Traffic:
    """1000 requests due: so many answers were to earlier ones, and so many were pending at the end."""
    ok = 1000 - before
    window = interval(0, 2 * S, 12 * S, due=1000, completed=1000, outcomes=Outcomes(ok=ok, reset=1000 - ok - left))
    return traffic(window)


@pytest.mark.parametrize(
    ("before", "left", "grade"),
    [(36, 0, Grade.WARN), (30, 0, None), (97, 0, Grade.INVALID), (80, 0, Grade.WARN), (100, 60, None), (0, 0, None)],
)
def test_a_backlog_is_what_is_carried_in_beyond_chance(before: int, left: int, grade: Grade | None) -> None:
    seen = carrying(before, left)
    assert (seen.carried_in, seen.carried_out) == (before, left)
    assert graded(load.backlog, OPEN, seen) is grade
    assert graded(load.backlog, PACED, seen) is grade
    assert observed(load.backlog, CLOSED, seen) is None


def test_a_rate_is_missed_beyond_what_is_in_flight_by_chance() -> None:
    """A slow server: of 80 requests due, 20 were pending at the end, and 14 from before were answered."""
    window = interval(0, 2 * S, 12 * S, due=80, completed=74, outcomes=Outcomes(ok=60))
    healthy = traffic(window).model_copy(update={"counts": Counts(due=80, completed=74, outcomes=Outcomes(ok=80))})
    assert (healthy.carried_in, healthy.carried_out) == (14, 20)
    assert graded(load.rate_missed, OPEN, healthy) is None
    assert "7.5% of the rate was missed" in message(load.rate_missed, OPEN, healthy)
    overloaded = traffic(
        interval(0, 2 * S, 12 * S, due=1000, completed=800, outcomes=Outcomes(ok=800)),
        counts=counts(completed=800),
    )
    found = observed(load.rate_missed, OPEN, overloaded)
    assert found is not None
    assert found.value == pytest.approx((200 - 4 * 200**0.5) / 1000)


def test_a_backlog_is_the_difference_less_four_standard_deviations() -> None:
    found = observed(load.backlog, OPEN, carrying(200, 25))
    assert found is not None
    assert found.value == pytest.approx((200 - 25 - 4 * 15) / 1000)


@pytest.mark.parametrize(
    ("late_ms", "grade"), [(19, None), (21, Grade.NOTE), (32, Grade.NOTE), (34, Grade.WARN), (51, Grade.INVALID)]
)
def test_lateness_is_a_share_of_response_times_with_due_times(late_ms: float, grade: Grade | None) -> None:
    late = traffic(late_ms=late_ms)
    for cell in (OPEN, PACED, THINKING):
        assert graded(load.send_lateness, cell, late) is grade
    assert observed(load.send_lateness, CLOSED, late) is None
    assert message(load.send_lateness, OPEN, late).startswith("At p50 the engine took up requests ")


@pytest.mark.parametrize(
    ("waited", "grade"), [(0, None), (10, None), (11, Grade.NOTE), (100, Grade.NOTE), (101, Grade.WARN)]
)
def test_requests_that_wait_for_a_connection_queue_in_the_client(waited: int, grade: Grade | None) -> None:
    seen = traffic(counts=counts(waited=waited))
    assert graded(load.client_queueing, OPEN, seen) is grade
    assert observed(load.client_queueing, CLOSED, seen) is None
    if waited == 101:
        assert message(load.client_queueing, OPEN, seen).startswith(
            "101 of 1,000 requests (10%) found none of 4 connections free"
        )


@pytest.mark.parametrize(
    ("waited", "reconnects", "times_ms", "closes"),
    [
        (200, 100, 1.0, True),
        (200, 99, 1.0, False),
        (0, 100, 1.0, False),
        (200, 200, 19.0, True),
        (200, 200, 21.0, False),
    ],
)
def test_connections_closed_while_idle_have_a_finding_of_their_own(
    waited: int, reconnects: int, times_ms: float, *, closes: bool
) -> None:
    """At 100 requests/s, two of four connections are in use where an answer takes 20 ms."""
    seen = traffic(times_ms=times_ms, counts=counts(waited=waited, reconnects=reconnects))
    assert (observed(load.idle_closed, OPEN, seen) is not None) is closes
    assert (observed(load.client_queueing, OPEN, seen) is None) is closes
    assert observed(load.idle_closed, CLOSED, seen) is None
    deep = cell_of(Open(rate_per_s=100, connections=4, depth=2))
    if waited and reconnects >= 100:
        assert observed(load.idle_closed, deep, seen) is not None, "twice as many requests find room"


@pytest.mark.parametrize(("waited", "grade"), [(10, None), (11, Grade.NOTE), (100, Grade.NOTE), (101, Grade.WARN)])
def test_idle_connections_that_were_closed_are_graded_by_requests(waited: int, grade: Grade | None) -> None:
    seen = traffic(times_ms=1.0, counts=counts(waited=waited, reconnects=waited))
    assert graded(load.idle_closed, OPEN, seen) is grade
    assert message(load.idle_closed, OPEN, seen) == (
        f"The server closed connections while they were idle: {waited} of 1,000 requests ({waited / 10:.2g}%) found "
        f"none open, and {waited} were opened again."
    )


@pytest.mark.parametrize(("tls", "grade"), [(None, None), (Tls(), None), (Tls(insecure=True), Grade.NOTE)])
def test_a_certificate_that_was_not_checked_is_a_note(tls: Tls | None, grade: Grade | None) -> None:
    cell = OPEN.model_copy(update={"variant": OPEN.variant.model_copy(update={"tls": tls})})
    assert graded(load.tls_insecure, cell) is grade


def with_late(number: int, at: int) -> Traffic:
    """So many answers to earlier requests in the measured interval that begins `at` seconds after the measurement."""
    intervals = list(even())
    each = intervals[at].counts
    changed = each.model_copy(update={"completed": each.completed + number})
    intervals[at] = intervals[at].model_copy(update={"counts": changed})
    return traffic(*intervals)


@pytest.mark.parametrize(
    ("number", "at", "grade"),
    [(0, 5, None), (1, 5, None), (2, 5, Grade.NOTE), (1, 6, Grade.NOTE), (2, 6, Grade.WARN), (9, 0, None)],
)
def test_users_held_by_earlier_requests_are_a_share_of_all_their_time(
    number: int, at: int, grade: Grade | None
) -> None:
    """Ten users in ten seconds: one who waits for five of them waited for a twentieth."""
    seen = with_late(number, at)
    assert carried_over_share(CLOSED, seen) == pytest.approx(number * at / 100)
    assert graded(load.carried_over, CLOSED, seen) is grade
    for cell in (OPEN, PACED):
        assert carried_over_share(cell, seen) == 0
        assert observed(load.carried_over, cell, seen) is None
    deep = cell_of(Closed(users=10, depth=2))
    assert carried_over_share(deep, seen) == pytest.approx(number * at / 200)


def test_requests_from_before_are_counted_with_the_last_of_them() -> None:
    assert message(load.carried_over, CLOSED, with_late(3, 4)) == (
        "3 requests that were due before the measurement were answered in it, the last ones after more than 4.00 s: "
        "they took 12% of the users' time or more."
    )
    warm = interval(99, 0, 2 * S, "warmup", due=5, completed=5, outcomes=Outcomes(ok=1))
    assert observed(load.carried_over, CLOSED, traffic(warm, *even())) is None
    instant = with_late(3, 4).model_copy(update={"measure_end_ns": 2 * S})
    assert observed(load.carried_over, CLOSED, instant) is None


@pytest.mark.parametrize(
    ("times_ms", "grade"),
    [
        (100, None),
        (94.5, None),
        (93, Grade.WARN),
        (88, Grade.INVALID),
        (105, None),
        (107, Grade.WARN),
        (113, "invalid"),
    ],
)
def test_users_must_be_the_rate_times_the_time(times_ms: float, grade: Grade | None) -> None:
    """100/s of 100 ms are ten users; an end of the window explains a hundredth, as long as the longest answer."""
    seen = traffic(times_ms=times_ms)
    assert graded(load.littles_law, CLOSED, seen) == grade
    assert observed(load.littles_law, OPEN, seen) is None
    assert observed(load.littles_law, PACED, seen) is None
    assert observed(load.littles_law, CLOSED, seen.model_copy(update={"ended": "interrupted"})) is None


def test_the_law_is_said_with_its_numbers() -> None:
    assert message(load.littles_law, CLOSED, traffic(times_ms=50)) == (
        "100 requests/s x 50.0 ms mean response time make 5.00 users busy, but the load has 10."
    )
    deep = cell_of(Closed(users=5, depth=4))
    assert message(load.littles_law, deep, traffic(times_ms=50)).endswith(
        "make 5.00 requests in flight, but the load has 20."
    )
    thinking = cell_of(Closed.model_validate({"users": 10, "think": {"mean_ns": 20 * MS}}))
    assert message(load.littles_law, thinking, traffic(times_ms=50)) == (
        "100 requests/s x (50.0 ms mean response time + 20.0 ms think time) make 7.00 users busy, but the load has 10."
    )


@pytest.mark.parametrize(("think_ms", "grade"), [(50, None), (20, Grade.INVALID), (40, Grade.WARN)])
def test_thinking_is_time_of_a_user(think_ms: int, grade: Grade | None) -> None:
    cell = cell_of(Closed.model_validate({"users": 10, "think": {"mean_ns": think_ms * MS}}))
    assert graded(load.littles_law, cell, traffic(times_ms=50)) is grade


def test_the_law_is_not_asked_of_journeys() -> None:
    steps = Journey(steps=(JourneyStep(), JourneyStep()))
    shop = Scenario(name="shop", request=SIMPLE_GET.request, others=(SIMPLE_GET.request,), journey=steps)
    journey = CLOSED.model_copy(update={"scenario": shop})
    assert observed(load.littles_law, journey, traffic(times_ms=50)) is None
    assert observed(load.littles_law, CLOSED, traffic(times_ms=50)) is not None
    instant = traffic(times_ms=50).model_copy(update={"measure_end_ns": 2 * S + 1})
    assert graded(load.littles_law, CLOSED, instant) is None, "the ends of the window explain all of it"


def test_users_who_waited_all_the_time_break_no_law() -> None:
    """Five of ten users had no answer when the window began, nor at its end, so the others make half of the rate."""
    held = interval(0, 0, 2 * S, "warmup", due=105, outcomes=Outcomes(ok=100))
    seen = traffic(held, *even(at=1), times_ms=50)
    assert graded(load.littles_law, CLOSED, seen) is None
    two = interval(0, 0, 2 * S, "warmup", due=102, outcomes=Outcomes(ok=100))
    assert graded(load.littles_law, CLOSED, traffic(two, *even(at=1), times_ms=50)) is Grade.INVALID
    found = observed(load.littles_law, CLOSED, traffic(two, *even(at=1), times_ms=50))
    assert found is not None
    longest_s = Histogram.of([50 * MS]).max_ns / 1e9
    assert found.value == pytest.approx((10 - 2 - 5) / 10 - longest_s / 10, rel=0.01)


def test_a_window_that_begins_without_requests_is_explained_by_it() -> None:
    """Nothing falls due in the first four of ten seconds, and half in the next."""
    rates = [0, 0, 0, 0, 60, *[200] * 5]
    intervals = [
        interval(i, (2 + i) * S, (3 + i) * S, due=due, completed=due, outcomes=Outcomes(ok=due))
        for i, due in enumerate(rates)
    ]
    found = observed(load.littles_law, CLOSED, traffic(*intervals, times_ms=50))
    assert found is not None
    longest_s = Histogram.of([50 * MS]).max_ns / 1e9
    missing_s = 4 + 0.4
    assert found.value == pytest.approx(0.5 - (missing_s + longest_s) / 10, abs=0.001)


@pytest.mark.parametrize(
    ("blurred", "grade"), [(0, None), (10, Grade.NOTE), (50, Grade.NOTE), (51, Grade.WARN), (101, Grade.INVALID)]
)
def test_messages_that_were_read_together_late_are_graded(blurred: int, grade: Grade | None) -> None:
    late = Histogram.of([30 * MS] * 100)
    streams = StreamTraffic(begun=100, counted=10_000, first_event=late, gaps=late, read_lateness=late, blurred=blurred)
    apart = Histogram.of([1000.0 * 2**at for at in range(20)] * 500)
    streams = streams.model_copy(update={"gaps": Histogram.of([30 * MS] * 10_000), "jitter": apart})
    assert graded(load.late_reads, traffic(streams=streams)) is grade
    if grade is None:
        return
    assert f"{blurred} of 10,000 messages" in message(load.late_reads, traffic(streams=streams))
    assert "waited up to 30.0 ms" in message(load.late_reads, traffic(streams=streams))
    assert "not known: jitter p99." in message(load.late_reads, traffic(streams=streams))
    assert observed(load.late_reads, traffic()) is None


@pytest.mark.parametrize(("blurred", "grade"), [(10, None), (11, Grade.NOTE)])
def test_few_late_reads_are_no_note_where_they_hide_nothing(blurred: int, grade: Grade | None) -> None:
    late = Histogram.of([30 * MS] * 10_000)
    streams = StreamTraffic(begun=100, counted=10_000, first_event=late, gaps=late, read_lateness=late, blurred=blurred)
    assert graded(load.late_reads, traffic(streams=streams)) is grade
