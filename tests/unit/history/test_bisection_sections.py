"""What a search for a commit says: its answer in sentences, and its numbers."""

from redline.document.blocks import Prose
from redline.history.bisection_sections import answer, chances, change, sections
from redline.model.bisection import Bisection, ChangedRange
from tests.fakes.bisections import begun, name


def culprit_text(ratio: tuple[float, float, float]) -> str:
    told = begun(2).answered("found", (name(2),), 0.97, ratio)
    return answer(told)[0].partition(";")[0].removeprefix("000000000 commit 2 made CPU per request ")


def test_texts_of_changes_and_chances() -> None:
    assert change((0.032, 0.026, 0.039)) == "+3.2% [+2.6, +3.9]"
    assert change((-0.032, -0.039, 0.001)) == "\N{MINUS SIGN}3.2% [\N{MINUS SIGN}3.9, +0.1]"
    assert change((0.0006, 0.0003, 0.0019)) == "+0.06% [+0.03, +0.19]", "it is no end of 0"
    assert [chances(each) for each in (0.001, 0.5, 0.991, 0.9999)] == ["<1%", "50%", "99%", ">99%"]


def test_a_change_has_its_interval_in_its_own_direction() -> None:
    assert culprit_text((0.032, 0.026, 0.039)) == "3.2% higher [2.6, 3.9]"
    assert culprit_text((-0.5, -0.7, -0.1)) == "50.0% lower [10.0, 70.0]"
    assert culprit_text((-0.03, -0.059, 0.001)) == "3.0% lower [\N{MINUS SIGN}0.1, 5.9]"
    assert culprit_text((0.03, -0.001, 0.059)) == "3.0% higher [\N{MINUS SIGN}0.1, 5.9]"
    assert culprit_text((0.006, 0.0003, 0.012)) == "0.60% higher [0.03, 1.20]"


def undecided(several: float, none: float = 0.001) -> Bisection:
    """A search that ended with two commits alike, and other answers with these probabilities."""
    told = begun(3).known_by({}, [0.0, *[(1 - several - none) / 2] * 2], several, none)
    told = told.answered("undecided", (name(2), name(3)), 1 - several - none, None)
    until = ChangedRange(after=name(1), until=name(3), commits=2, change=(0.05, 0.04, 0.06))
    return told.written((until,), "")


def test_an_answer_that_is_likelier_than_each_commit_is_said() -> None:
    first, where = answer(undecided(0.946))
    assert first.startswith("no commit is sure enough; several changes: 95%; no change: <1%; the most likely, by 5%: ")
    assert where.startswith("2 commits up to 000000000 commit 3: +5.0% [+4.0, +6.0]; redline bisect 000000000")
    table, _ = sections(undecided(0.946))
    assert table.blocks[1] == Prose.of(["1 other commit, <1% in all", "several changes: 95%; no change: <1%"], "dim")
    assert answer(undecided(0.946).stopped())[0].startswith(
        "not finished; so far several changes: 95%; no change: <1%;"
    )
    assert answer(undecided(0.1, none=0.6))[0].startswith(
        "no commit is sure enough; several changes: 10%; no change: 60%"
    )


def test_an_answer_that_is_less_likely_than_a_commit_is_not_said() -> None:
    assert not any("several changes" in text for text in answer(undecided(0.3)))
    assert answer(undecided(0.3).stopped())[0].startswith("not finished; so far the most likely, by 35%: ")
