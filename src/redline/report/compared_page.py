"""The page of two runs that are compared: changes with intervals and verdicts, and what may explain them."""

from collections.abc import Iterator
from dataclasses import replace

from redline.document import format as fmt
from redline.document.blocks import Column, Figures, Head, Item, Items, Line, Page, Prose, Section, Table, line
from redline.findings import Gathered, gathered, named
from redline.model import Grade
from redline.model.compared import CompareResult
from redline.report.comparison import BY_RATIOS, pair_sections

_COLUMNS = (Column("metric"), Column("change", "right"), Column("95% interval", "right"), Column("verdict"))


def compared_page(result: CompareResult, notices: tuple[Line, ...] = ()) -> Page:
    """The page of a comparison."""
    grave = [line(("! These environments differ gravely: ", Grade.WARN), "; ".join(result.environment_grave))]
    head = Head(
        f"{result.other} against {result.base}",
        facts=(
            BY_RATIOS if result.by_ratios else "each a run of its own: trials are not paired",
            "intervals hold the true value with 95% confidence",
        ),
        notices=(
            *(grave if result.environment_grave else ()),
            *notices,
            *(line((f"! {text}", Grade.WARN)) for text in result.notices),
        ),
        footer="Two runs differ by all that changed between them, the machine included. What is compared in a single "
        "run, or better in a duet, differs by the servers alone.",
    )
    return Page(head, tuple(_sections(result)), Figures())


def _sections(result: CompareResult) -> Iterator[Section]:
    _, *cells = pair_sections(result.comparisons, base=result.base, other=result.other)
    for number, cell in enumerate(cells):
        blocks = tuple(replace(block, columns=_COLUMNS) if isinstance(block, Table) else block for block in cell.blocks)
        yield replace(cell, blocks=blocks, anchor=f"cell-{number}")
    if result.environment_differs:
        texts = Prose.of(result.environment_differs, listed=True)
        yield Section("What differs in the environment", (texts,), anchor="environment")
    if result.unmatched:
        yield Section("Not compared", (Prose.of(result.unmatched, listed=True),), anchor="unmatched")
    items = tuple(
        _item(group, run)
        for run, findings in result.findings_by_run
        for group in gathered(findings)
        if group.first.grade is not Grade.NOTE
    )
    none = Prose.of([] if items else ["Neither run has a finding above a note about these cells."], "dim")
    yield Section("Findings", (Items(items),) if items else (none,), anchor="findings", count=len(items))


def _item(group: Gathered, run: str) -> Item:
    grade, cells = group.first.grade, named(map(fmt.slug_of, group.cell_ids))
    trials = sum(finding.position is not None for finding in group.findings)
    head = line((f"{fmt.GRADE_MARKS[grade]} {grade}", grade), " ", (group.first.kind, "strong"))
    where = f"in {f'{run}: ' if run else ''}{cells}" + (f", {fmt.count(trials, 'trial')}" if trials else "")
    return Item(head, (line(group.first.message), line(f"→ {group.first.advice}"), line((where, "dim"))))
