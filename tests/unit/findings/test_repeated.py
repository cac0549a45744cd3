"""Findings that repeat are printed once with their number."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from redline.findings import gathered, merged_by_text, named
from redline.findings.table import RULES
from redline.model import Finding, FindingKind, Grade


def finding(
    position: int | None = None,
    *,
    kind: FindingKind = "cpu-steal",
    grade: Grade = Grade.WARN,
    cell: str = "a",
) -> Finding:
    return Finding(kind=kind, grade=grade, message=f"m{position}.", advice="Do.", cell_id=cell, position=position)


def texts(findings: Sequence[Finding]) -> list[str]:
    return [one.text for one in gathered(findings)]


def test_one_line_says_how_often_and_where() -> None:
    assert texts([finding(3)]) == ["cpu-steal in trial 3: m3."]
    assert texts([finding(9, grade=Grade.NOTE), finding(3), finding(4)]) == [
        "cpu-steal in 2 trials (3, 4): m3.",
        "cpu-steal in trial 9: m9.",
    ]
    assert texts([finding(n) for n in range(12)]) == ["cpu-steal in 12 trials (0, 1, 2 and 9 more): m0."]
    several = [finding(n, cell=f"cell {n % 4}") for n in range(31)]
    assert texts(several) == ["cpu-steal in 31 trials of 4 cells: m0."]
    assert texts([finding(cell="a"), finding(cell="b")]) == ["cpu-steal in 2 cells: mNone."]
    assert texts([finding()]) == ["cpu-steal: mNone."]


def test_ninety_six_trials_with_the_same_two_doubts_are_two_lines() -> None:
    kinds = ("cpu-steal", "noisy-neighbour")
    assert len(texts([finding(n, kind=kind) for n in range(96) for kind in kinds])) == 2


@given(st.lists(st.builds(finding, st.integers(0, 9), kind=st.sampled_from(list(RULES)), grade=st.sampled_from(Grade))))
def test_nothing_is_lost_and_the_gravest_come_first(findings: list[Finding]) -> None:
    made = gathered(findings)
    assert sorted(map(repr, (each for one in made for each in one.findings))) == sorted(map(repr, findings))
    weights = [one.first.grade.weight for one in made]
    assert weights == sorted(weights, reverse=True)
    for one in made:
        assert {each.kind for each in one.findings} == {one.first.kind}
        assert {each.grade for each in one.findings} == {one.first.grade}
    for grade in Grade:
        good = [RULES[one.first.kind].reassures for one in made if one.first.grade is grade]
        assert good == sorted(good)


def test_a_text_about_many_subjects_is_said_once() -> None:
    assert merged_by_text([("a", "x"), ("b", "y"), ("c", "x")]) == ("a, c: x", "b: y")
    assert merged_by_text((f"s{n}", "x") for n in range(100)) == ("s0, s1, s2 and 97 more: x",)


def test_one_more_name_is_not_worth_counting() -> None:
    assert named("abc") == "a, b, c"
    assert named("abcd") == "a, b, c, d"
    assert named("abcde") == "a, b, c and 2 more"
