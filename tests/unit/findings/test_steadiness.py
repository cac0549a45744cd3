"""Findings about warm-up and lengths of answers: limits from both sides, on numbers that are written by hand."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from redline.findings import steadiness
from redline.findings.rules import Observation, Rule
from redline.findings.steadiness import _changed, from_end_to_end
from redline.model import Expected, Grade, Open, Outcomes, Request, Scenario
from redline.model.journey import Journey, JourneyStep
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, simulated_cell, simulated_recording
from tests.fakes.series import counting
from tests.unit.findings.test_load import counts, even, traffic

S = 1_000_000_000
PLAIN = simulated_cell(scenario=Scenario(name="plain", request=Request(path="/")))


def observed(rule: Rule, *arguments: object) -> Observation | None:
    assert rule.function is not None
    found = rule.function(*arguments)
    assert found is None or isinstance(found, Observation)
    return found


@pytest.mark.parametrize(
    ("used", "waited", "grade"), [(0.04, 0.05, None), (0.06, 0.05, Grade.NOTE), (0.3, 0.21, Grade.WARN)]
)
def test_compilers_at_work_are_graded_by_cores(used: float, waited: float, grade: Grade | None) -> None:
    recording = counting(
        simulated_recording(PLAIN, GOOD), "server", compiler_cpu_ns=used * S, compiler_wait_ns=waited * S
    )
    assert recording.traffic is not None
    found = observed(steadiness.still_compiling, Trial(recording), recording.traffic)
    assert found is not None
    assert found.value == pytest.approx(used + waited, rel=0.01)
    assert steadiness.still_compiling.grade(found.value) is grade
    assert observed(steadiness.still_compiling, Trial(simulated_recording(PLAIN, GOOD)), recording.traffic) is None


@pytest.mark.parametrize(("seconds", "grade"), [(4.9, Grade.NOTE), (5.0, None), (0.0, Grade.NOTE)])
def test_a_runtime_that_compiles_needs_five_seconds(seconds: float, grade: Grade | None) -> None:
    recording = simulated_recording(PLAIN, GOOD)
    assert recording.server is not None
    jvm = recording.model_copy(update={"server": recording.server.model_copy(update={"runtimes": ("jvm",)})})
    cell = PLAIN.model_copy(update={"warmup_ns": round(seconds * S)})
    found = observed(steadiness.not_warmed_up, cell, Trial(jvm))
    assert found is not None
    assert steadiness.not_warmed_up.grade(found.value) is grade
    assert found.message.startswith("The server runs on jvm, which compiles while it runs")
    detects = cell.model_copy(update={"warmup_detect": True})
    assert observed(steadiness.not_warmed_up, detects, Trial(jvm)) is None
    watched = counting(jvm, "server", compiler_cpu_ns=0.0)
    assert observed(steadiness.not_warmed_up, cell, Trial(watched)) is None
    assert observed(steadiness.not_warmed_up, cell, Trial(recording)) is None


def sized(*sizes: float, answers: int = 100) -> Any:
    """Ten measured intervals whose answers have these lengths."""
    parts = zip(even(answers * 10), sizes, strict=True)
    intervals = tuple(
        one.model_copy(update={"counts": one.counts.model_copy(update={"bytes_received": round(answers * size)})})
        for one, size in parts
    )
    return traffic().model_copy(update={"intervals": intervals})


def shrinking(*sizes: float, **changed: Any) -> float:
    found = observed(steadiness.shrinking_answers, PLAIN, sized(*sizes, **changed))
    return 0.0 if found is None else found.value


@pytest.mark.parametrize(
    ("factor", "grade"), [(1.0, None), (0.991, None), (0.98, Grade.NOTE), (0.94, Grade.WARN), (1.06, Grade.WARN)]
)
def test_a_change_of_lengths_is_graded_by_its_size(factor: float, grade: Grade | None) -> None:
    sizes = [*[1000.0] * 5, *[1000.0 * factor] * 5]
    assert steadiness.shrinking_answers.grade(shrinking(*sizes)) is grade


@pytest.mark.parametrize(("answers", "judged"), [(19, False), (20, True)])
def test_intervals_with_few_answers_say_nothing_of_lengths(answers: int, *, judged: bool) -> None:
    assert (shrinking(*[1000.0] * 5, *[500.0] * 5, answers=answers) > 0) is judged


def test_lengths_of_none_are_not_compared() -> None:
    assert shrinking(*[1000.0] * 9, 0.0) == 0


def test_a_message_says_how_lengths_changed() -> None:
    found = _changed([1000.0] * 4 + [500.0] * 6, "trials")
    assert found is not None
    assert found.message == "Right answers had 1,000 bytes in 4 trials and 500 in 6, headers included."
    assert found.value == pytest.approx(1.0)
    grew = _changed([1000.0 * 1.02**at for at in range(10)], "intervals")
    assert grew is not None
    assert grew.message.startswith("From the first to the last of 10 intervals right answers grew by ")
    shrank = _changed([1000.0 * 0.98**at for at in range(10)], "intervals")
    assert shrank is not None
    assert "right answers shrank by 1" in shrank.message


@pytest.mark.parametrize("n", [5, 6, 9])
def test_a_change_from_end_to_end_needs_two_values_at_each_end(n: int) -> None:
    sizes = [1000.0] * (n // 2) + [500.0] * (n - n // 2)
    assert from_end_to_end(sizes) == (pytest.approx(-0.5) if n >= 6 else 0.0)


def test_a_change_from_end_to_end_is_beyond_chance() -> None:
    """Ends of three values each: the difference of their logs over its error is t with 4 degrees of freedom."""
    for apart, seen in ((0.0065, False), (0.0075, True)):
        ends = [math.exp(value) for value in (-0.001, 0.0, 0.001)]
        sizes = [*ends, 1.0, 1.0, 1.0, *(end * math.exp(apart) for end in ends)]
        assert (from_end_to_end(sizes) != 0) is seen
        if seen:
            assert from_end_to_end(sizes) == pytest.approx(math.expm1(apart))


@pytest.mark.parametrize(
    ("expect", "checked"),
    [
        (Expected(), False),
        (Expected(body="x"), True),
        (Expected(body="x", under_load="status"), False),
        (Expected(body="x", under_load="hash"), True),
    ],
)
def test_lengths_that_are_checked_have_a_finding_of_their_own(expect: Expected, *, checked: bool) -> None:
    request = Request(path="/", expect=expect)
    cell = simulated_cell(scenario=Scenario(name="one", request=request))
    halves = sized(*[1000.0] * 5, *[500.0] * 5)
    assert (observed(steadiness.shrinking_answers, cell, halves) is None) is checked
    mix = simulated_cell(scenario=Scenario(name="mix", request=request, others=(Request(path="/b"),)))
    assert observed(steadiness.shrinking_answers, mix, halves) is not None, "not all of them are checked"


@pytest.mark.parametrize("kind", ["unexpected_status", "unexpected_body", "malformed", "timeout"])
def test_wrong_answers_have_lengths_of_their_own(kind: str) -> None:
    halves = sized(*[1000.0] * 5, *[500.0] * 5)
    wrong = halves.model_copy(update={"counts": counts(outcomes=Outcomes(**{"ok": 999, kind: 1}))})
    assert (observed(steadiness.shrinking_answers, PLAIN, wrong) is None) is (kind != "timeout")


def test_requests_that_take_turns_have_lengths_of_their_own() -> None:
    halves = sized(*[1000.0] * 5, *[500.0] * 5)
    two = Scenario(name="two", request=Request(path="/a"), others=(Request(path="/b"),))
    steps = two.model_copy(update={"journey": Journey(steps=(JourneyStep(), JourneyStep()))})
    assert observed(steadiness.shrinking_answers, simulated_cell(scenario=steps), halves) is None
    replayed = STEADY.model_copy(update={"shape": Open.model_construct(arrivals="replayed", connections=4)})
    assert observed(steadiness.shrinking_answers, simulated_cell(scenario=two, load=replayed), halves) is None
    assert observed(steadiness.shrinking_answers, simulated_cell(scenario=two, load=STEADY), halves) is not None
    one = PLAIN.model_copy(update={"load": replayed})
    assert observed(steadiness.shrinking_answers, one, halves) is not None


def test_a_server_that_was_never_steady_is_said_to_be_by_how_long_it_had() -> None:
    cell = PLAIN.model_copy(update={"warmup_detect": True, "warmup_ns": S})
    trial = Trial(simulated_recording(cell, replace(GOOD, measured=0.5)))
    assert trial.traffic is not None
    found = steadiness.warmed.function(cell, trial, trial.traffic)
    assert isinstance(found, Observation)
    assert (found.value, found.rule) == (1.0, steadiness.NEVER_STEADY)
    assert found.message == "Too few intervals were seen to decide whether it was ever steady."
    patient = cell.model_copy(update={"warmup_ns": 9 * S})
    early = steadiness.warmed.function(patient, trial, trial.traffic)
    assert isinstance(early, Observation)
    assert early.value == 0.0, "its warm-up ended by itself"
    fixed = cell.model_copy(update={"warmup_detect": False})
    assert steadiness.warmed.function(fixed, trial, trial.traffic) is None
    cut = trial.traffic.model_copy(update={"ended": "interrupted"})
    assert steadiness.warmed.function(cell, trial, cut) is None


@pytest.mark.parametrize(("answers", "judged"), [(19, False), (20, True)])
def test_trials_with_few_answers_say_nothing_of_lengths(
    monkeypatch: pytest.MonkeyPatch, answers: int, *, judged: bool
) -> None:
    """Two trials of 1,000 bytes an answer, and two of 500."""
    monkeypatch.setattr(steadiness, "_lengths_are_checked", lambda _cell: False)
    monkeypatch.setattr(steadiness, "_wrong", lambda _traffic: False)
    monkeypatch.setattr(steadiness, "_changed", lambda sizes, _of: sizes)
    counts = [SimpleNamespace(completed=answers, bytes_received=answers * size) for size in (1000, 500)]
    used: Any = [SimpleNamespace(traffic=SimpleNamespace(counts=one)) for one in counts]
    function: Any = steadiness.shrinking_between.function
    assert function(PLAIN, [*used, SimpleNamespace(traffic=None)]) == ([1000, 500] if judged else [])
