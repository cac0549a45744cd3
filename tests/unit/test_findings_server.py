"""Findings about the server, the client's queue and the schedule: each by its cause, none on a clean trial."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.findings import judge, judge_cell
from redline.findings.answers import from_end_to_end
from redline.findings.arrivals import Slice, due_by, poisson_fault
from redline.model import (
    Cell,
    Closed,
    Expected,
    FindingKind,
    Grade,
    Histogram,
    Load,
    LoadStage,
    Open,
    Option,
    Recording,
    Request,
    Scenario,
)
from tests.fakes.recordings import (
    GOOD,
    MEASURE_NS,
    SATURATE,
    SIMPLE_GET,
    Behaviour,
    simulated_cell,
    simulated_recording,
)

Raised = dict[FindingKind, Grade]

CLOSED = simulated_cell(load=SATURATE)
STATUS_ONLY = simulated_cell(scenario=Scenario(name="Status", request=Request(path="/")))


def opened(**told: object) -> Cell:
    shape = Open.model_validate({"rate_per_s": 5000, "connections": 64, **told})
    return simulated_cell(load=Load(name="open", shape=shape, duration_ns=MEASURE_NS))


def users(count: int, **told: object) -> Cell:
    shape = Closed.model_validate({"users": count, **told})
    return simulated_cell(load=Load(name="closed", shape=shape, duration_ns=MEASURE_NS))


def with_option(name: str, value: str) -> Cell:
    entry = CLOSED.variant.entry.model_copy(update={"options": {name: Option(values=("off", value), default="off")}})
    return CLOSED.model_copy(
        update={"variant": CLOSED.variant.model_copy(update={"entry": entry, "options": {name: value}})}
    )


POISSON = opened(arrivals="poisson")
UNIFORM = opened(arrivals="uniform")
REPLAYED = opened(arrivals="replayed", rate_per_s=None, replayed_ns=tuple(range(0, MEASURE_NS, 250_000)))
RAMPED = opened(arrivals="poisson", stages=[{"to": 20_000, "over_ns": MEASURE_NS // 2}])
STEPPED = opened(arrivals="uniform", stages=[{"to": 3_000, "over_ns": 0}, {"to": 9_000, "over_ns": MEASURE_NS}])


def raised(cell: Cell, behaviour: Behaviour = GOOD, seed: int = 1) -> Raised:
    return {finding.kind: finding.grade for finding in judge(cell, simulated_recording(cell, behaviour, seed=seed))}


@pytest.mark.parametrize("cell", [POISSON, UNIFORM, RAMPED, STEPPED], ids=["poisson", "uniform", "ramped", "stepped"])
@pytest.mark.parametrize("seed", range(10))
def test_a_schedule_that_is_kept_raises_nothing(cell: Cell, seed: int) -> None:
    assert raised(cell, GOOD, seed) == {}


@pytest.mark.parametrize("cell", [POISSON, UNIFORM, RAMPED, STEPPED], ids=["poisson", "uniform", "ramped", "stepped"])
@pytest.mark.parametrize("change", [{"offered": 0.9}, {"offered": 1.1}, {"clumps": 0.5}], ids=str)
def test_a_schedule_that_is_not_kept_is_a_fault_of_the_engine(cell: Cell, change: dict[str, float]) -> None:
    assert raised(cell, replace(GOOD, **change))[FindingKind.ARRIVALS] is Grade.INVALID  # type: ignore[arg-type]


def test_poisson_arrivals_that_are_too_even_are_no_poisson_arrivals() -> None:
    (found,) = judge(POISSON, simulated_recording(POISSON, replace(GOOD, even=True)))
    assert found.kind is FindingKind.ARRIVALS
    assert "too evenly" in found.message


def test_a_load_whose_window_is_not_known_to_its_schedule_is_not_judged_by_it() -> None:
    counted = UNIFORM.model_copy(update={"load": UNIFORM.load.model_copy(update={"count": 4000})})
    assert FindingKind.ARRIVALS not in raised(counted, replace(GOOD, offered=0.8))
    cut = replace(GOOD, ended="interrupted", measured=0.7, offered=0.8)
    assert FindingKind.ARRIVALS not in raised(UNIFORM, cut)


def test_what_a_stall_moves_over_the_end_of_an_interval_is_no_fault_of_the_schedule() -> None:
    recording = simulated_recording(UNIFORM)
    assert recording.traffic is not None
    intervals, stall_ns = list(recording.traffic.intervals), 60_000_000
    at = next(i for i, one in enumerate(intervals) if one.phase == "measure") + 3
    moved = 5000 * stall_ns // 10**9
    for index, more in ((at, -moved), (at + 1, moved)):
        counts = intervals[index].counts
        intervals[index] = intervals[index].model_copy(
            update={"counts": counts.model_copy(update={"due": counts.due + more})}
        )
    blamed = recording.model_copy(
        update={"traffic": recording.traffic.model_copy(update={"intervals": tuple(intervals)})}
    )
    assert FindingKind.ARRIVALS in {finding.kind for finding in judge(UNIFORM, blamed)}
    late = Histogram.of(np.linspace(1_000, stall_ns, 400))
    intervals[at + 1] = intervals[at + 1].model_copy(update={"lateness": late})
    excused = recording.model_copy(
        update={"traffic": recording.traffic.model_copy(update={"intervals": tuple(intervals)})}
    )
    assert FindingKind.ARRIVALS not in {finding.kind for finding in judge(UNIFORM, excused)}


def test_a_stall_of_several_intervals_is_no_fault_of_the_schedule() -> None:
    """What fell due while the engine stood still is taken up, and counted, in the interval in which it goes on."""
    recording = simulated_recording(UNIFORM)
    assert recording.traffic is not None
    intervals = list(recording.traffic.intervals)
    at = next(i for i, one in enumerate(intervals) if one.phase == "measure") + 2
    stall, goes_on = intervals[at : at + 3], intervals[at + 3]
    for index, one in enumerate(stall, at):
        counts = one.counts.model_copy(update={"due": 0})
        intervals[index] = one.model_copy(update={"counts": counts, "lateness": Histogram()})
    due = goes_on.counts.due + sum(one.counts.due for one in stall)
    late = Histogram.of(np.linspace(1_000, goes_on.start_ns - stall[0].start_ns, due))
    counts = goes_on.counts.model_copy(update={"due": due})
    intervals[at + 3] = goes_on.model_copy(update={"counts": counts, "lateness": late})
    traffic = recording.traffic.model_copy(update={"intervals": tuple(intervals)})
    found = judge(UNIFORM, recording.model_copy(update={"traffic": traffic}))
    assert FindingKind.ARRIVALS not in {finding.kind for finding in found}


def test_good_poisson_arrivals_are_seldom_blamed() -> None:
    """At most a few in 10,000, here of 400; the study behind the figure had 24,000, of which one was blamed."""
    rng = np.random.default_rng(2)
    faults = 0
    for _ in range(400):
        counts = rng.poisson(50, 10)
        faults += bool(poisson_fault(int(counts.sum()), 500, [Slice(int(count), 50.0, 0.0) for count in counts]))
    assert faults <= 1


@given(st.lists(st.tuples(st.floats(0, 1e5), st.integers(0, 10**9)), max_size=4), st.integers(0, 10**9))
def test_what_is_due_by_a_time_never_falls_and_is_the_area_under_the_rate(
    stages: list[tuple[float, int]], ns: int
) -> None:
    shape = Open(rate_per_s=100, connections=1, stages=tuple(LoadStage(to=to, over_ns=over) for to, over in stages))
    assert 0 <= due_by(shape, ns) <= due_by(shape, ns + 1_000)
    most = max([100.0, *(to for to, _ in stages)])
    assert due_by(shape, ns) <= most * ns / 1e9 * (1 + 1e-9)


def test_what_is_due_of_replayed_times_and_of_a_ramp() -> None:
    shape = REPLAYED.load.shape
    assert isinstance(shape, Open)
    assert [due_by(shape, ns) for ns in (0, 1, 250_000, 250_001)] == [0, 1, 1, 2]
    ramp = Open(rate_per_s=0, connections=1, stages=(LoadStage(to=100, over_ns=10**9),))
    assert due_by(ramp, 10**9) == pytest.approx(50)
    assert due_by(ramp, 2 * 10**9) == pytest.approx(150)


@pytest.mark.parametrize(
    ("lateness_ns", "grade"), [(3_000, None), (500_000, None), (1_200_000, Grade.NOTE), (12_000_000, Grade.WARN)]
)
def test_lateness_that_differs_sends_in_bunches(lateness_ns: float, grade: Grade | None) -> None:
    assert raised(UNIFORM, replace(GOOD, lateness_ns=lateness_ns)).get(FindingKind.BUNCHED_SENDS) is grade


@pytest.mark.parametrize(("waited", "grade"), [(0.005, None), (0.03, Grade.NOTE), (0.3, Grade.WARN)])
def test_requests_that_wait_for_a_connection_are_a_queue_in_the_client(waited: float, grade: Grade | None) -> None:
    assert raised(UNIFORM, replace(GOOD, waited=waited)) == ({FindingKind.CLIENT_QUEUEING: grade} if grade else {})
    assert raised(users(64, pace_per_s=100), replace(GOOD, waited=waited)) == {}


IDLE = replace(GOOD, server_busy=0.3, engine_busy=0.2)


@pytest.mark.parametrize(
    ("cell", "behaviour", "grade"),
    [
        (CLOSED, IDLE, Grade.WARN),
        (CLOSED, replace(GOOD, server_busy=0.6, engine_busy=0.3), Grade.NOTE),
        (CLOSED, replace(GOOD, server_busy=0.8, engine_busy=0.3), None),
        (CLOSED, replace(GOOD, server_busy=0.3, engine_busy=0.8), None),
        (CLOSED, replace(IDLE, server_run_delay=0.6), None),
        (CLOSED, replace(IDLE, steal=0.6), None),
        (CLOSED, replace(IDLE, others_busy=0.6), None),
        (CLOSED, replace(IDLE, pinned=False), None),
        (CLOSED, replace(IDLE, outcomes={"timeout": 400}), None),
        (users(8), IDLE, None),
        (users(4, depth=8), IDLE, Grade.WARN),
        (users(64, think={"mean_ns": 1_000}), IDLE, None),
        (UNIFORM, IDLE, None),
    ],
)
def test_users_who_wait_for_a_server_that_waits(cell: Cell, behaviour: Behaviour, grade: Grade | None) -> None:
    assert raised(cell, behaviour).get(FindingKind.LOCK_LIMITED) is grade


@pytest.mark.parametrize(("busy", "grade"), [(0.4, Grade.WARN), (0.6, Grade.NOTE), (0.9, None)])
def test_where_single_cores_are_known_theirs_counts(busy: float, grade: Grade | None) -> None:
    recording = simulated_recording(CLOSED, replace(IDLE, others_busy=0.6))
    ran = recording.find("cpu_ns", "server")
    assert ran is not None
    series = tuple(
        ran.model_copy(
            update={"name": "cores_busy_ns", "subject": side, "values": tuple(one / 0.3 * share for one in ran.values)}
        )
        for side, share in (("server", busy), ("engine", 0.25))
    )
    known = recording.model_copy(update={"series": (*recording.series, *series)})
    found = {one.kind: one.grade for one in judge(CLOSED, known)}
    assert found.get(FindingKind.LOCK_LIMITED) is grade


@pytest.mark.parametrize(
    ("cell", "behaviour", "said"),
    [
        (CLOSED, GOOD, True),
        (CLOSED, replace(GOOD, server_busy=0.9), False),
        (CLOSED, replace(GOOD, engine_busy=0.97), False),
        (CLOSED, replace(GOOD, pinned=False), False),
        (UNIFORM, GOOD, False),
        (simulated_cell("oracle.null", ceiling=True), GOOD, False),
    ],
)
def test_a_server_that_fills_its_cores_is_told_once_a_cell(cell: Cell, behaviour: Behaviour, said: bool) -> None:
    trials = [simulated_recording(cell, behaviour, position=i, seed=i) for i in range(5)]
    found = [one for one in judge_cell(cell, trials, planned=5) if one.kind is FindingKind.SERVER_LIMITED]
    assert [(one.grade, one.position) for one in found] == ([(Grade.NOTE, None)] if said else [])


@pytest.mark.parametrize(
    ("cell", "log_bytes", "grade"),
    [
        (CLOSED, 9_000, None),
        (CLOSED, 20_000, None),
        (CLOSED, 100_000, Grade.NOTE),
        (CLOSED, 3_000_000, Grade.WARN),
        (with_option("interceptor", "server-log"), 3_000_000, Grade.NOTE),
        (with_option("access_log", "on"), 3_000_000, Grade.NOTE),
        (with_option("catalog", "big"), 3_000_000, Grade.WARN),
    ],
)
def test_a_server_that_writes_with_the_requests(cell: Cell, log_bytes: int, grade: Grade | None) -> None:
    found = raised(cell, replace(GOOD, log_bytes=log_bytes))
    assert found == ({FindingKind.DEBUG_LOGGING: grade} if grade else {})


def test_an_older_recording_does_not_tell_of_logs_and_processes() -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, log_bytes=3_000_000, replaced=1))
    old = recording.model_copy(
        update={"log_bytes": None, "series": tuple(one for one in recording.series if "processes" not in one.name)}
    )
    assert judge(CLOSED, old) == ()
    assert "log_bytes" not in old.model_dump(mode="json")
    assert Recording.model_validate_json(recording.model_dump_json()) == recording


def test_processes_that_are_replaced_are_told() -> None:
    (found,) = judge(CLOSED, simulated_recording(CLOSED, replace(GOOD, replaced=2)))
    assert (found.kind, found.grade) == (FindingKind.SERVER_RESTARTED, Grade.WARN)
    assert "2 of the server's processes ended during the load and others took their place" in found.message


def test_helpers_that_live_for_a_request_are_no_restart() -> None:
    assert judge(CLOSED, simulated_recording(CLOSED, replace(GOOD, helpers=500))) == ()


def test_a_recording_that_only_counts_processes_is_judged_by_their_numbers() -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, helpers=3))
    old = tuple(one for one in recording.series if one.name != "processes_replaced")
    (found,) = judge(CLOSED, recording.model_copy(update={"series": old}))
    assert (found.kind, found.message[:2]) == (FindingKind.SERVER_RESTARTED, "3 ")


@pytest.mark.parametrize(
    ("shrinks", "grade"), [(0.0, None), (0.005, None), (0.03, Grade.NOTE), (0.5, Grade.WARN), (-0.5, Grade.WARN)]
)
def test_answers_that_change_their_length_are_told(shrinks: float, grade: Grade | None) -> None:
    found = raised(STATUS_ONLY, replace(GOOD, shrinks=shrinks))
    assert found == ({FindingKind.SHRINKING_ANSWERS: grade} if grade else {})


@pytest.mark.parametrize("at", range(3, 7))
@pytest.mark.parametrize("mixed", [0.0, 0.3, 0.7])
def test_a_change_in_the_middle_of_an_interval_is_seen(at: int, mixed: float) -> None:
    sizes = [1100.0] * at + [1100 - 900 * mixed] + [200.0] * (9 - at)
    assert from_end_to_end(sizes) == pytest.approx(200 / 1100 - 1)


def test_lengths_that_vary_by_chance_are_left_alone() -> None:
    rng = np.random.default_rng(5)
    alarms = sum(from_end_to_end(list(rng.lognormal(5, 0.1, 10))) != 0 for _ in range(2_000))
    assert alarms <= 9  # 0.001 of them are two


def test_where_the_length_is_compared_or_answers_were_wrong_it_has_another_name() -> None:
    assert raised(CLOSED, replace(GOOD, shrinks=0.5)) == {}
    by_status = SIMPLE_GET.request.model_copy(update={"expect": Expected(body="path0", under_load="status")})
    loose = simulated_cell(scenario=SIMPLE_GET.model_copy(update={"request": by_status}))
    assert raised(loose, replace(GOOD, shrinks=0.5)) == {FindingKind.SHRINKING_ANSWERS: Grade.WARN}
    shed = raised(STATUS_ONLY, replace(GOOD, shrinks=0.5, outcomes={"unexpected_status": 10}))
    assert shed == {FindingKind.WRONG_ANSWERS: Grade.WARN}


def test_answers_that_are_shorter_in_some_trials_are_told_of_the_cell() -> None:
    trials = [simulated_recording(STATUS_ONLY, position=i, seed=i) for i in range(6)]
    assert FindingKind.SHRINKING_ANSWERS not in {one.kind for one in judge_cell(STATUS_ONLY, trials, planned=6)}
    for index in (1, 4):
        traffic = trials[index].traffic
        assert traffic is not None
        counts = traffic.counts.model_copy(update={"bytes_received": traffic.counts.bytes_received // 2})
        trials[index] = trials[index].model_copy(update={"traffic": traffic.model_copy(update={"counts": counts})})
    found = [one for one in judge_cell(STATUS_ONLY, trials, planned=6) if one.kind is FindingKind.SHRINKING_ANSWERS]
    assert [(one.grade, one.position) for one in found] == [(Grade.WARN, None)]
    assert "in 4 trials" in found[0].message
