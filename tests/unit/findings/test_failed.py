"""Findings about failed requests name the first failure of each kind; a load without requests blames nobody."""

from dataclasses import replace
from typing import Any

import pytest

from redline.findings import judge, judge_probe
from redline.model import (
    Cell,
    Closed,
    Counts,
    Failure,
    FailureKind,
    Finding,
    FindingKind,
    Grade,
    Histogram,
    Load,
    Objective,
    Open,
    Outcomes,
    Recording,
)
from redline.model.failures import FirstFailure
from tests.fakes.behaviour import GOOD
from tests.fakes.loads import result_of
from tests.fakes.recordings import MEASURE_NS, SATURATE, STEADY, simulated_cell, simulated_recording

CLOSED = simulated_cell(load=SATURATE)
OPEN = simulated_cell(load=STEADY)
MALFORMED = FirstFailure(
    outcome="malformed", reason="a rule was broken (RFC 9112, 7.1)", at=3, begins=0, bytes_base64="NSANCg==", time_ns=9
)
TIMEOUT = FirstFailure(outcome="timeout", reason="no answer within 5 s", time_ns=7)
MALFORMED_TEXT = r'malformed: a rule was broken (RFC 9112, 7.1), at byte 3 of "5 \r\n"'


def with_traffic(recording: Recording, **changed: Any) -> Recording:
    assert recording.traffic is not None
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update=changed)})


def failing(*failures: FirstFailure, cell: Cell = CLOSED, **outcomes: int) -> Recording:
    return with_traffic(simulated_recording(cell, replace(GOOD, outcomes=outcomes)), failures=failures)


def found(kind: FindingKind, recording: Recording, cell: Cell = CLOSED) -> Finding:
    (finding,) = (each for each in judge(cell, recording) if each.kind == kind)
    return finding


def test_wrong_answers_name_the_first_one_with_its_bytes() -> None:
    finding = found("wrong-answers", failing(MALFORMED, TIMEOUT, malformed=3, timeout=400))
    assert finding.message.endswith(f"3 malformed. First {MALFORMED_TEXT}.")


def test_errors_name_the_first_of_each_kind() -> None:
    reset = FirstFailure(outcome="reset", reason="Connection reset by peer (os error 104)", time_ns=8)
    finding = found("errors", failing(MALFORMED, reset, TIMEOUT, malformed=3, reset=1, timeout=400))
    first = "First reset: Connection reset by peer (os error 104); timeout: no answer within 5 s."
    assert finding.message.endswith(f"1 reset, 400 timeout. {first}")


def test_a_reason_that_is_not_known_leaves_no_trace() -> None:
    assert found("errors", failing(timeout=400)).message.endswith(": 400 timeout.")


def test_a_trial_without_a_right_answer_says_why() -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, achieved=0.0))
    assert recording.traffic is not None
    counts = recording.traffic.counts
    wrong = counts.model_copy(update={"outcomes": Outcomes(malformed=counts.due)})
    finding = found("trial-failed", with_traffic(recording, failures=(MALFORMED,), counts=wrong))
    assert finding.grade is Grade.INVALID
    assert finding.message.endswith(f"requests were due. First {MALFORMED_TEXT}.")


@pytest.mark.parametrize(
    ("cell", "counts", "expected"),
    [
        (CLOSED, {"reconnects": 0.05}, {}),
        (CLOSED, {"reconnects": 0.2}, {"reconnecting": Grade.NOTE}),
        (CLOSED, {"reconnects": 1.0}, {"reconnecting": Grade.WARN}),
        (OPEN, {"reconnects": 35.0}, {"reconnecting": Grade.WARN}),
        (CLOSED, {"surplus": 0.001}, {"surplus-bytes": Grade.NOTE}),
        (OPEN, {"surplus": 1.0}, {"surplus-bytes": Grade.WARN}),
    ],
)
def test_connections_that_do_not_last_are_a_finding_of_loads_and_probes(
    cell: Cell, counts: dict[str, float], expected: dict[FindingKind, Grade]
) -> None:
    recording = simulated_recording(cell, GOOD)
    assert recording.traffic is not None
    due = recording.traffic.counts.due
    changed = recording.traffic.counts.model_copy(update={name: int(share * due) for name, share in counts.items()})
    recording = with_traffic(recording, counts=changed)
    assert {each.kind: each.grade for each in judge(cell, recording)} == expected
    kinds = {"reconnecting", "surplus-bytes"}
    assert {each.kind: each.grade for each in judge_probe(cell, recording) if each.kind in kinds} == expected


@pytest.mark.parametrize(
    ("shape", "outcomes"),
    [(Closed(users=64, requests_per_connection=1), {}), (Closed(users=64), {"closed": 19_000})],
)
def test_no_connection_is_missed_that_the_load_or_an_error_ended(shape: Closed, outcomes: dict[str, int]) -> None:
    cell = simulated_cell(load=Load(name="x", shape=shape, duration_ns=MEASURE_NS))
    recording = simulated_recording(cell, replace(GOOD, outcomes=outcomes))
    assert recording.traffic is not None
    counts = recording.traffic.counts.model_copy(update={"reconnects": recording.traffic.counts.due})
    kinds = {each.kind for each in judge(cell, with_traffic(recording, counts=counts))}
    assert "reconnecting" not in kinds


def test_an_engine_that_only_connects_is_not_told_to_take_more_cores() -> None:
    late = simulated_recording(OPEN, replace(GOOD, lateness_ns=150_000))
    assert "core" in found("send-lateness", late, OPEN).advice
    assert late.traffic is not None
    counts = late.traffic.counts.model_copy(update={"reconnects": late.traffic.counts.due})
    advice = found("send-lateness", with_traffic(late, counts=counts), OPEN).advice
    assert "core" not in advice
    assert "`reconnecting`" in advice


@pytest.mark.parametrize(("outcome", "advice"), [("reset", "`wrong-answers` first"), ("timeout", "Lower the rate")])
def test_a_rate_that_failed_is_not_told_to_be_lower(outcome: str, advice: str) -> None:
    recording = simulated_recording(OPEN, replace(GOOD, outcomes={outcome: 500}))
    assert recording.traffic is not None
    counts = recording.traffic.counts
    missed = with_traffic(recording, counts=counts.model_copy(update={"completed": counts.due - 500}))
    assert advice in found("rate-missed", missed, OPEN).advice


def idle(cell: Cell, *, waiting: int, failures: tuple[FirstFailure, ...] = ()) -> Recording:
    """A load in whose measurement nothing fell due; `waiting` requests of the warm-up had no answer by then."""
    recording = simulated_recording(cell, GOOD)
    assert recording.traffic is not None
    nothing = Histogram.of([])
    empty = {"response": nothing, "service": nothing, "lateness": nothing}
    before = Counts(due=waiting + 5, outcomes=Outcomes(ok=5))
    intervals = [
        each.model_copy(update={**empty, "counts": before if each.index == 0 else Counts()})
        for each in recording.traffic.intervals
    ]
    changed = {**empty, "counts": Counts(), "intervals": tuple(intervals), "failures": failures}
    return with_traffic(recording, **changed)


def shaped(shape: Open | Closed) -> Cell:
    return simulated_cell(load=Load(name="x", shape=shape, duration_ns=MEASURE_NS))


THINKING = shaped(Closed.model_validate({"users": 2, "think": {"mean_ns": 10_000_000_000}}))
RARE = shaped(Open(rate_per_s=0.1, connections=4))


@pytest.mark.parametrize(("cell", "waiting"), [(RARE, 0), (RARE, 4), (THINKING, 0), (THINKING, 1)])
def test_nothing_due_is_no_fault_of_the_servers(cell: Cell, waiting: int) -> None:
    recording = idle(cell, waiting=waiting)
    findings = judge(cell, recording)
    assert [(each.kind, each.grade) for each in findings] == [("nothing-due", Grade.INVALID)]
    assert findings[0].message.startswith("Nothing fell due in 1.00 s")
    assert "longer" in findings[0].advice
    objective = Objective(metric="p99", below=True, limit=1e9, text="p99 < 1s")
    (result,) = result_of(cell, recording, objective).objectives
    assert (result.known, result.met) == (False, False)


@pytest.mark.parametrize(("cell", "waiting"), [(CLOSED, 64), (THINKING, 2), (CLOSED, 1)])
def test_users_who_all_wait_for_the_server_are_its_fault(cell: Cell, waiting: int) -> None:
    (finding,) = judge(cell, idle(cell, waiting=waiting, failures=(TIMEOUT,)))
    assert finding.kind == "trial-failed"
    waited = f"{waiting} requests that were" if waiting > 1 else "what was"
    assert finding.message.endswith(f"for answers to {waited} due before. First timeout: no answer within 5 s.")


@pytest.mark.parametrize(("kind", "finding"), [("died", "server-died"), ("not_ready", "trial-failed")])
def test_a_failure_brings_its_own_advice(kind: FailureKind, finding: FindingKind) -> None:
    failure = Failure(stage="launch", kind=kind, message="s was not ready", hint="let s listen on {port}")
    recording = simulated_recording(CLOSED, GOOD).model_copy(update={"traffic": None, "failure": failure})
    assert found(finding, recording).advice == "Let s listen on {port}."
