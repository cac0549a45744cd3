"""Which rules judge which trials, and whether a server or its client made a load invalid."""

from dataclasses import replace
from typing import Any

import pytest

from redline.findings.rules import Judge
from redline.findings.table import JUDGES, RULES
from redline.findings.trial import (
    judge,
    judge_cell,
    judge_probe,
    judge_server,
    judge_starts,
    of_engine,
    servers_doing,
    usable,
)
from redline.model import Counts, Failure, Finding, FindingKind, Grade, Outcomes, Recording
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.plugins import FACTS
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording

CLOSED, OPEN = simulated_cell(load=SATURATE), simulated_cell(load=STEADY)
RECORDING = simulated_recording(CLOSED, GOOD)
ENGINE_FAILED = Failure(stage="load", kind="engine", message="it broke", hint="")


def with_traffic(recording: Recording, **changed: Any) -> Recording:
    assert recording.traffic is not None
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update=changed)})


def finding(kind: FindingKind, grade: Grade = Grade.INVALID) -> Finding:
    return Finding(kind=kind, grade=grade, message="m", advice="a", cell_id="c", position=None)


def asked(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What judges of a trial were asked about it."""
    seen: set[str] = set()

    def findings(judge: Judge, *_: object) -> tuple[Finding, ...]:
        seen.add(str(judge.when))
        return ()

    with monkeypatch.context() as patched:
        patched.setattr(Judge, "findings", findings)
        assert judge(CLOSED, recording) == ()
    return seen


def test_judges_are_asked_about_what_a_trial_has(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = {"trial", "traffic", "requests", "answers"}
    assert RECORDING.runtime is None
    assert asked(RECORDING, monkeypatch) == everything
    assert asked(RECORDING.model_copy(update={"traffic": None}), monkeypatch) == {"trial"}
    assert asked(with_traffic(RECORDING, ended="failing"), monkeypatch) == {"trial", "traffic"}
    assert asked(with_traffic(RECORDING, counts=Counts()), monkeypatch) == {"trial", "traffic"}
    unanswered = Counts(due=1, outcomes=Outcomes(timeout=1))
    assert asked(with_traffic(RECORDING, counts=unanswered), monkeypatch) == everything - {"answers"}
    one = Counts(due=1, completed=1, outcomes=Outcomes(ok=1))
    assert asked(with_traffic(RECORDING, counts=one), monkeypatch) == everything
    assert RECORDING.traffic is not None
    instant = with_traffic(RECORDING, measure_end_ns=RECORDING.traffic.measure_start_ns)
    assert asked(instant, monkeypatch) == {"trial", "traffic"}


def test_findings_stand_in_the_order_of_the_table() -> None:
    recording = simulated_recording(OPEN, replace(GOOD, outcomes={"unexpected_status": 40, "timeout": 40}))
    kinds = [found.kind for found in judge(OPEN, with_traffic(recording, ended="interrupted"))]
    assert kinds[:2] == ["errors", "wrong-answers"]
    assert kinds == sorted(kinds, key=[*RULES].index)
    assert all(found.position == recording.position for found in judge(OPEN, recording))


def test_a_probe_is_judged_by_the_rules_of_probes() -> None:
    late = simulated_recording(OPEN, replace(GOOD, lateness_ns=400_000, outcomes={"timeout": 40}))
    in_trial = {found.kind: found for found in judge(OPEN, late)}
    in_probe = {found.kind: found for found in judge_probe(OPEN, late)}
    assert "errors" in in_trial
    assert "errors" not in in_probe
    assert in_probe["send-lateness"].grade is in_trial["send-lateness"].grade
    assert "service time" in in_trial["send-lateness"].advice
    assert "service time" not in in_probe["send-lateness"].advice
    assert judge_probe(OPEN, late.model_copy(update={"traffic": None})) == ()
    assert judge_probe(OPEN, with_traffic(late, counts=Counts())) == ()
    assert late.traffic is not None
    assert judge_probe(OPEN, with_traffic(late, measure_end_ns=late.traffic.measure_start_ns)) == ()
    other = with_traffic(late, counts=late.traffic.counts.model_copy(update={"reconnects": late.traffic.counts.due}))
    assert "`reconnecting`" in next(each.advice for each in judge_probe(OPEN, other) if each.kind == "send-lateness")


def test_a_searchs_server_is_judged_by_its_first_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    first = {judge.rule for judge in JUDGES if judge.probes == "first"}
    assert RULES["not-warmed-up"] in first
    seen = list[object]()

    def findings(judge: Judge, *_: object) -> tuple[Finding, ...]:
        seen.append(judge.rule)
        return ()

    monkeypatch.setattr(Judge, "findings", findings)
    judge_server(OPEN, RECORDING)
    assert set(seen) == first


def test_services_kept_through_the_starts_of_a_search_are_said() -> None:
    kept = FACTS.model_copy(update={"kept": ("db",)})
    (found,) = judge_starts(CLOSED, [FACTS, kept])
    assert (found.kind, found.cell_id, found.position) == ("kept-services", CLOSED.id, None)
    assert judge_starts(CLOSED, [FACTS, FACTS]) == ()


def test_a_cells_trials_are_judged_in_the_order_of_the_run() -> None:
    def speed(position: int, of: float) -> Recording:
        assert RECORDING.traffic is not None
        counts = RECORDING.traffic.counts
        update = {"completed": round(counts.completed * of), "due": round(counts.due * of)}
        made = with_traffic(RECORDING, counts=counts.model_copy(update=update))
        return made.model_copy(update={"position": position})

    drifting = [Trial(speed(at, 1 + at / 50)) for at in (5, 2, 7, 0, 3, 6, 1, 4)]
    found = {each.kind: each for each in judge_cell(CLOSED, drifting, planned=8)}
    assert found["run-drift"].message.startswith("From the first to the last of 8 trials the rate rose by 14%")
    assert found["run-drift"].cell_id == CLOSED.id
    assert "near-ceiling" not in found


def test_a_trial_without_traffic_is_not_used() -> None:
    assert usable(RECORDING, [finding("errors", Grade.WARN)])
    assert not usable(RECORDING, [finding("tls-insecure", Grade.NOTE), finding("errors")])
    assert not usable(RECORDING.model_copy(update={"traffic": None}), [])


def test_what_the_client_did_is_not_the_servers() -> None:
    assert servers_doing([finding("errors"), finding("wrong-answers", Grade.WARN)]) == ("errors",)
    assert servers_doing([finding("rate-missed"), finding("errors")]) == ("rate-missed", "errors")
    assert servers_doing([finding("rate-missed"), finding("send-lateness")]) == ()
    assert servers_doing([finding("littles-law"), finding("rate-missed")]) == ("rate-missed",), "no one is to blame"
    assert servers_doing([finding("trial-failed"), finding("errors")], ENGINE_FAILED) == ("errors",)
    assert servers_doing([finding("trial-failed")]) == ("trial-failed",)


def test_a_failure_of_the_engine_says_nothing_of_the_server() -> None:
    assert of_engine(ENGINE_FAILED)
    assert not of_engine(None)
    assert not of_engine(Failure(stage="launch", kind="start", message="it ended", hint=""))
