"""The outline of a report: which sections it has, in which order, and on which media they appear."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from redline.document.blocks import Figures, Head, Medium, Page, Prose, Section, filled, line, on_medium

R = TypeVar("R")


@dataclass(frozen=True)
class Chapter(Generic[R]):
    """A chapter of a report: the function that makes its sections, and the media they appear on.

    Leading chapters come first on the page and in Markdown, and last on a terminal, where a reader's eyes are.
    """

    build: Callable[[R], Iterable[Section]]
    on: Medium = Medium.EVERYWHERE
    leads: bool = False


@dataclass(frozen=True)
class Outline(Generic[R]):
    """The layout of a kind of report; `headed` are the media on which text begins with the head."""

    head: Callable[[R], Head]
    chapters: tuple[Chapter[R], ...]
    figures: Callable[[R], Figures] = lambda _: Figures()
    headed: Medium = Medium.TEXT

    def text(self, report: R, medium: Medium) -> Iterator[Section]:
        """Return the report for a terminal, or in Markdown, where the head's facts come last: a phone shows little."""
        if medium not in self.headed:
            yield from self.sections(report, medium)
            return
        head, last = self.head(report), medium is Medium.MARKDOWN
        facts = Prose((line((" · ".join(head.facts), "dim")),) if head.facts else ())
        yield Section(
            head.title, tuple(filled(None if last else facts, Prose((*head.servers, *head.notices)))), level=1
        )
        yield from self.sections(report, medium)
        if last and head.facts:
            yield Section("", (facts,))

    def brief(self, report: R) -> Iterator[Section]:
        """Return what leads the report, for a terminal: the answer and what to doubt of it, below title and notices."""
        head = self.head(report)
        lines = head.notices if head.has_many_servers else (*head.servers, *head.notices)
        yield Section(head.title, tuple(filled(Prose(lines))), level=1)
        yield from self.sections(report, Medium.TERMINAL, brief=True)

    def page(self, report: R, figures: Figures | None = None) -> Page:
        """Return the report as a page, with its figures if they are made already."""
        return Page(self.head(report), tuple(self.sections(report, Medium.PAGE)), figures or self.figures(report))

    def sections(self, report: R, medium: Medium, *, brief: bool = False) -> Iterator[Section]:
        """Yield the sections that appear on a medium, in their order there; `brief`: those that lead."""
        shown = [chapter for chapter in self.chapters if medium in chapter.on and (chapter.leads or not brief)]
        leading, others = ([chapter for chapter in shown if chapter.leads is leads] for leads in (True, False))
        ordered = (*others, *reversed(leading)) if medium is Medium.TERMINAL else (*leading, *others)
        for chapter in ordered:
            for section in chapter.build(report):
                if blocks := tuple(on_medium(section.blocks, medium)):
                    yield replace(section, blocks=blocks)
