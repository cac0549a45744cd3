"""The outline of a report: which sections it has, in which order, and on which media each appears."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from redline.report.document import Line, Medium, Prose, Section, filled, line, on_medium

R = TypeVar("R")


@dataclass(frozen=True)
class Chapter(Generic[R]):
    """A chapter of a report: what makes its sections, and where these appear.

    Chapters that lead come first on the page and in Markdown, and last on a terminal, where a reader's eyes are.
    """

    build: Callable[[R], Iterable[Section]]
    on: Medium = Medium.EVERYWHERE
    leads: bool = False


@dataclass(frozen=True)
class Head:
    """What stands above all sections: the title, facts about how the report came about, and notices."""

    title: str
    facts: tuple[str, ...]
    notices: tuple[Line, ...] = ()

    @property
    def section(self) -> Section:
        """The head as text has it."""
        facts = (line((" · ".join(self.facts), "dim")),) if self.facts else ()
        return Section(self.title, tuple(filled(Prose((*facts, *self.notices)))), level=1)


def outlined(chapters: Iterable[Chapter[R]], report: R, medium: Medium) -> Iterator[Section]:
    """The sections of a report that appear on a medium, in the order in which they stand there."""
    shown = [each for each in chapters if medium in each.on]
    leading, others = ([each for each in shown if each.leads is leads] for leads in (True, False))
    ordered = (*others, *reversed(leading)) if medium is Medium.TERMINAL else (*leading, *others)
    for chapter in ordered:
        for section in chapter.build(report):
            if blocks := tuple(on_medium(section.blocks, medium)):
                yield replace(section, blocks=blocks)
