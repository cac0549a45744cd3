"""What a search for a commit says: its answer in sentences, and its numbers."""

from redline.history.bisection_sections import answer, chances, change
from tests.fakes.bisections import begun, name


def culprit_text(ratio: tuple[float, float, float]) -> str:
    told = begun(2).answered("found", (name(2),), 0.97, ratio)
    return answer(told)[0].partition(";")[0].removeprefix("000000000 commit 2 made CPU per request ")


def test_texts_of_changes_and_chances() -> None:
    assert change((0.032, 0.026, 0.039)) == "+3.2% [+2.6, +3.9]"
    assert change((-0.032, -0.039, 0.001)) == "\N{MINUS SIGN}3.2% [\N{MINUS SIGN}3.9, +0.1]"
    assert change((0.0006, 0.0003, 0.0019)) == "+0.1% [+0.03, +0.19]", "it is no end of 0"
    assert [chances(each) for each in (0.001, 0.5, 0.991, 0.9999)] == ["<1%", "50%", "99%", ">99%"]


def test_a_change_has_its_interval_in_its_own_direction() -> None:
    assert culprit_text((0.032, 0.026, 0.039)) == "3.2% higher [2.6, 3.9]"
    assert culprit_text((-0.5, -0.7, -0.1)) == "50.0% lower [10.0, 70.0]"
    assert culprit_text((-0.03, -0.059, 0.001)) == "3.0% lower [\N{MINUS SIGN}0.1, 5.9]"
    assert culprit_text((0.03, -0.001, 0.059)) == "3.0% higher [\N{MINUS SIGN}0.1, 5.9]"
    assert culprit_text((0.006, 0.0003, 0.012)) == "0.6% higher [0.03, 1.20]"
