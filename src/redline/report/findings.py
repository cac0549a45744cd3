"""Findings: warnings and worse with their advice, once for all cells, and notes."""

from collections.abc import Iterator

from redline.document import format as fmt
from redline.document.blocks import Fold, Item, Items, Medium, Section, filled, line
from redline.model import Grade, Report
from redline.report.views import FindingGroup, finding_groups


def findings_section(report: Report) -> Iterator[Section]:
    """Yield the findings, if there are any. The page folds notes, and text counts them."""
    groups, anchors = finding_groups(report), set[str]()
    items = [(group, _item(group, len(report.cells), anchors)) for group in groups]
    grave = Items(tuple(item for group, item in items if group.grade is not Grade.NOTE), folded=True)
    notes = [(group, item) for group, item in items if group.grade is Grade.NOTE]
    kinds = ", ".join(dict.fromkeys(f"{note.kind} ({fmt.count(len(note.slugs), 'cell')})" for note, _ in notes))
    counted = fmt.count(len(notes), "note")
    where = " The page and --json have them in full."
    fold = Fold(
        line((counted, "strong")),
        (Items(tuple(item for _, item in notes), folded=True),),
        open=False,
        instead=line((f"i {counted}", Grade.NOTE), f": {kinds}.", (where, "dim")),
        on=Medium.PAGE,
    )
    if items:
        yield Section("Findings", tuple(filled(grave, fold if notes else None)), anchor="findings", count=len(items))


def _item(group: FindingGroup, cells: int, anchors: set[str]) -> Item:
    anchor = f"finding-{group.grade}-{group.kind}"
    (message, _), *more = group.messages.items()
    made = Item(
        line((f"{fmt.GRADE_MARKS[group.grade]} {group.grade}", group.grade), " ", (group.kind, "strong")),
        (line(message), line(f"→ {group.advice}"), line((f"in {group.where(cells)}", "dim"))),
        tuple(line(other, (f" {', '.join(slugs)}", "dim")) for other, slugs in more),
        "" if anchor in anchors else anchor,
        fmt.count(len(group.slugs), "cell"),
        group.log_tail,
    )
    anchors.add(anchor)
    return made
