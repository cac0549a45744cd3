"""A rule: what its text says, which grade a value has, and what an observation may change of it."""

import pytest

from redline.findings.rules import Judge, Observation, Rule, judges
from redline.findings.table import RULES
from redline.model import Grade

TEXT = """The share of it.

    It matters since it does.

    Advice: Do less
    of it.
    """
RULE = Rule("cpu-steal", note=0.1, warn=0.2, invalid=0.5, text=TEXT)


@pytest.mark.parametrize(
    ("value", "grade"),
    [
        (0.1, None),
        (0.11, Grade.NOTE),
        (0.2, Grade.NOTE),
        (0.21, Grade.WARN),
        (0.5, Grade.WARN),
        (0.51, Grade.INVALID),
    ],
)
def test_a_value_above_a_limit_has_its_grade(value: float, grade: Grade | None) -> None:
    assert RULE.grade(value) is grade
    assert [found.grade for found in RULE.findings(Observation(value, "m"), "cell")] == ([grade] if grade else [])


def test_a_limit_of_0_is_a_limit_and_none_is_not() -> None:
    assert Rule("cpu-steal", note=0.0).grade(0.001) is Grade.NOTE
    assert Rule("cpu-steal", note=0.0).grade(0.0) is None
    assert Rule("cpu-steal", warn=0.5).grade(0.4) is None


def test_its_text_is_what_it_is_why_it_matters_and_what_to_do() -> None:
    assert RULE.paragraphs == ("The share of it.", "It matters since it does.", "Do less of it.")
    assert RULE.advice == RULE.advice_without_service_times == "Do less of it."
    other = Rule("cpu-steal", note=0.1, text=TEXT, without_service_times="Do nothing.")
    assert (other.advice, other.advice_without_service_times) == ("Do less of it.", "Do nothing.")


def test_an_observation_may_lower_the_grade_and_change_the_advice() -> None:
    (found,) = RULE.findings(Observation(0.9, "much", at_most=Grade.WARN, advice="Wait."), "cell", 3)
    assert (found.grade, found.message, found.advice) == (Grade.WARN, "much", "Wait.")
    assert (found.kind, found.cell_id, found.position) == ("cpu-steal", "cell", 3)
    (found,) = RULE.findings(Observation(0.15, "some", at_most=Grade.WARN), "cell")
    assert (found.grade, found.advice, found.position) == (Grade.NOTE, "Do less of it.", None)


def test_a_judge_gets_what_its_parameters_name() -> None:
    def seen(first: float, second: float) -> Observation:
        return Observation(first - second, "apart")

    judge = Judge(seen, "requests", "", RULE)
    (found,) = judge.findings({"second": 0.5, "first": 0.8, "third": 9.0}, "cell", 1)
    assert found.grade is Grade.WARN
    assert [*Judge(lambda: None, None, "", RULE).findings({}, "cell", 1)] == []
    several = judges("duet")(lambda: [Observation(0.3, "a", rule=RULE), Observation(0.05, "b", rule=RULE)])
    assert [found.message for found in several.findings({}, "cell", None)] == ["a"]


@pytest.mark.parametrize(
    ("trait", "kinds"),
    [
        (
            "scatters",
            (
                "autocorrelation bimodal builds-differ control cpu-pressure cpu-sampled cpu-steal cut-short disturbed "
                "engine-paused few-starts host-mode idle-work kept-services late-reads latency-changed "
                "noisy-neighbour pairs-differ rate-changed resolution run-drift slows-as-it-serves stalled "
                "too-few-samples too-few-trials unsteady"
            ),
        ),
        ("passes", "cpu-pressure cpu-steal engine-paused noisy-neighbour other-load"),
        ("reassures", "pauses-in-tail server-limited"),
        ("ends", "cut-short nothing-due recording-unread server-died trial-failed"),
    ],
)
def test_what_findings_do_to_a_result(trait: str, kinds: str) -> None:
    """What widens intervals, what other trials average out, what is good news, and what ended a trial."""
    assert {kind for kind, rule in RULES.items() if getattr(rule, trait)} == set(kinds.split())


@pytest.mark.parametrize(
    ("kind", "limits"),
    [
        ("too-few-trials", (0, 2, 4)),
        ("too-few-samples", (0, 90, None)),
        ("few-starts", (0, 3, None)),
        ("servers-alike", (0, 1, None)),
        ("upstream-protocol", (0, 1, None)),
        ("unstable-percentile", (2, None, None)),
    ],
)
def test_limits_that_the_page_says_in_words(kind: str, limits: tuple[float | None, ...]) -> None:
    """Trials or starts missing to five, requests missing to 100; what holds without a sign, and with one."""
    rule = RULES[kind]
    assert (rule.note, rule.warn, rule.invalid) == limits
