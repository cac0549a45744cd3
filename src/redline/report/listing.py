"""The page that lists the runs of folders, with the answer of each in a sentence, and the links of their own pages."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from redline.document import format as fmt
from redline.document.blocks import (
    Block,
    Code,
    Figures,
    Fold,
    Head,
    Items,
    Line,
    Page,
    PageBlock,
    Prose,
    Section,
    Span,
    Watch,
    line,
)
from redline.model import Grade
from redline.model.limits import AnyReport, LimitReport
from redline.report.answer import limit_answer, run_answer
from redline.report.findings import findings_section
from redline.report.limit import search_findings
from redline.report.parts import INTERRUPTED
from redline.report.run import UNFINISHED

_EXAMPLES = (
    ("Is B slower than A?", "redline ab './old --port {port}' './new --port {port}' -o "),
    ("How fast is what listens there?", "redline load http://127.0.0.1:8080/ -o "),
    ("How much does it sustain?", "redline limit http://127.0.0.1:8080/ --objective 'p99 < 200ms' -o "),
)
_NOUNS = {Grade.NOTE: "note", Grade.WARN: "warning"}
_FOOTER = (
    "Answers and findings are those that were stored with each run, until its page judges it by today's rules. Two "
    "runs can be compared; those that have duets alone, by their ratios to the same baseline."
)
_FIGURES = Figures(("listing.js",), styles=("listing.css",))
_GOING: Line = line(
    ("i Being measured: ", Grade.NOTE), "this shows what is stored so far, and what is added as soon as it is there."
)
_ALL: Line = (Span("all runs", link="../../"),)


@dataclass(frozen=True)
class Answered:
    """A report in a row of a table: its first sentence, how many more there are, its findings by grade, its state."""

    answer: Line
    more: int
    grades: tuple[tuple[Grade, str], ...]
    state: str = ""


@dataclass(frozen=True)
class ListedRun:
    """A row: a directory of any kind, whose page is at `run/KEY/`. `going`: it is being measured."""

    key: str
    name: str
    about: str
    kind: str
    begun: str
    answer: Line = ()
    more: int = 0
    grades: tuple[tuple[Grade, str], ...] = ()
    state: str = ""
    going: bool = False
    compared: bool = False
    """Whether it has levels, which another run can be compared with."""


@dataclass(frozen=True)
class Listing(PageBlock):
    """The rows of a listing, which can be filtered, and two of which can be compared."""

    runs: tuple[ListedRun, ...]


def outcome(report: AnyReport) -> Answered:
    """What a row shows of a report; its findings are counted as the report's page lists them."""
    if isinstance(report, LimitReport):
        answers, findings, state = limit_answer(report), search_findings(report), ""
    else:
        answers, findings = run_answer(report), findings_section(report)
        state = "aborted:" if report.run.aborted_by else "" if report.run.complete else "not complete:"
    lines = _lines_shown([text for section in answers for text in _lines(section)])
    grades = Counter(grade for section in findings for grade in _grades(section))
    return Answered(
        answer=_without_links(lines[0]) if lines else line(("no answer: see its page", "dim")),
        more=max(0, len(lines) - 1),
        grades=tuple((grade, _counted(grade, grades[grade])) for grade in reversed(Grade) if grades[grade]),
        state=state,
    )


def listing_page(runs: Sequence[ListedRun], folders: Sequence[str], watch: Watch, *, followed: bool) -> Page:
    """All runs, newest first. With `followed` there are enough of them for a history."""
    where = ", ".join(folders)
    facts = (f"{fmt.count(len(runs), 'run')} in {where}",) if runs else ()
    going = sum(run.going for run in runs)
    trail = (Span("history", link="history/"),) if followed else ()
    head = Head(
        "Runs",
        facts=(*facts, *((f"{going} being measured",) if going else ())),
        trail=trail,
        footer=_FOOTER if runs else "",
    )
    blocks = (Listing(tuple(runs)),) if runs else tuple(_no_runs(where, folders[0]))
    section = Section("Newest first" if runs else "No run yet", blocks, anchor="runs", count=len(runs))
    return Page(head, (section,), _FIGURES if runs else Figures(), watch)


def linked(page: Page, name: str, watch: Watch, *, going: bool) -> Page:
    """The page of a run with a link to the listing. While its run is `going`, it is not interrupted."""
    head = replace(page.head, trail=(*_ALL, *line(f" · {name}")))
    if going:
        finished = tuple(notice for notice in head.notices if all(span.text != UNFINISHED for span in notice))
        facts = tuple(fact.removesuffix(INTERRUPTED) for fact in head.facts)
        head = replace(head, facts=facts, notices=(*finished, _GOING))
    return replace(page, head=head, watch=watch)


def said_page(title: str, message: str, hint: str, trail: Line = _ALL) -> Page:
    """A page in place of one that cannot be made: why, and what to do about it."""
    blocks = (Prose((line((message, "strong")), line(f"→ {hint}"))),)
    return Page(Head(title, trail=trail), (Section("Why", blocks, anchor="why"),), Figures())


def _no_runs(where: str, folder: str) -> Iterator[Block]:
    yield Prose.of([f"{where} holds no run, comparison, search or load. What is made there shows here by itself:"])
    for question, command in _EXAMPLES:
        yield Fold(line(question), (Code(f"{command}{shlex.quote(str(PurePath(folder) / 'first'))}", question),))


def _lines_shown(lines: list[Line]) -> list[Line]:
    """The sentences; one that announces the next, such as `These differ:`, is a sentence with it."""
    if len(lines) > 1 and lines[0][-1].text.endswith(":"):
        return [(*lines[0], Span(" "), *lines[1]), *lines[2:]]
    return lines


def _lines(section: Section) -> Iterator[Line]:
    for block in section.blocks:
        if isinstance(block, Prose):
            yield from block.lines


def _grades(section: Section) -> Iterator[Grade]:
    for block in section.blocks:
        for items in block.blocks if isinstance(block, Fold) else (block,):
            if isinstance(items, Items):
                yield from (span.look for item in items.items for span in item.head if isinstance(span.look, Grade))


def _counted(grade: Grade, number: int) -> str:
    return f"{number:,} invalid" if grade is Grade.INVALID else fmt.count(number, _NOUNS[grade])


def _without_links(text: Line) -> Line:
    """The links of a page's sentences lead to its own anchors."""
    return tuple(replace(span, link="") for span in text)
