"""Every kind of report goes through an outline, which decides what appears on which medium, and where."""

import pytest

from redline.document.blocks import Head, Medium, Prose, Section, on_medium
from redline.document.outline import Chapter, Outline
from redline.model.limits import AnyReport
from redline.render import RENDERERS, page, summary
from tests.fakes import limits, reports


def chapter(name: str, on: Medium = Medium.EVERYWHERE, *, leads: bool = False) -> Chapter[str]:
    return Chapter(lambda report: [Section(f"{name} of {report}", (Prose.of([name]),))], on, leads)


OUTLINE = Outline[str](
    lambda report: Head(report, ("a fact",)),
    (
        chapter("answer", leads=True),
        chapter("caveats", leads=True),
        chapter("results"),
        chapter("plots", Medium.PAGE),
        chapter("repeat", Medium.WRITTEN),
        Chapter(lambda _: [Section("empty", (Prose(()),))]),
    ),
)


@pytest.mark.parametrize(
    ("medium", "titles"),
    [
        (Medium.TERMINAL, "results caveats answer"),
        (Medium.MARKDOWN, "answer caveats results repeat"),
        (Medium.PAGE, "answer caveats results plots repeat"),
    ],
)
def test_what_leads_is_first_where_one_reads_from_the_top_and_last_on_a_terminal(medium: Medium, titles: str) -> None:
    sections = list(OUTLINE.sections("it", medium))
    assert [section.title for section in sections] == [f"{title} of it" for title in titles.split()]
    head, *_ = OUTLINE.text("it", Medium.MARKDOWN)
    assert (head.title, head.level) == ("it", 1)


@pytest.mark.parametrize("report", [reports.healthy(), limits.by_hand()], ids=["run", "search"])
def test_the_answer_is_first_on_the_page_and_last_on_the_terminal(report: AnyReport) -> None:
    first, *_ = page(report).sections
    assert first.title == "The answer, in words"
    assert list(summary(report))[-1].blocks == tuple(on_medium(first.blocks, Medium.TERMINAL))
    assert RENDERERS["md"](report).decode().partition("\n### ")[2].startswith(first.title)


def test_what_leads_is_all_of_a_brief_text() -> None:
    assert [section.title for section in OUTLINE.brief("x")] == ["x", "caveats of x", "answer of x"]
