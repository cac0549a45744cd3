"""One run judged twice: by the rules that its stored views were made with, and by today's. Pure."""

from typing import Literal

from redline.model import Finding, FindingKind, Frozen, Grade, Report

_Key = tuple[str, FindingKind, int | None]


class Rejudged(Frozen):
    """A finding that is not what it was. `before` is null for a new one, `after` for one that is gone."""

    cell_id: str
    kind: FindingKind
    position: int | None = None
    before: Grade | None
    after: Grade | None
    message: str

    @property
    def change(self) -> Literal["new", "gone", "graded otherwise"]:
        """What became of it."""
        if self.before is None:
            return "new"
        return "gone" if self.after is None else "graded otherwise"


class Turned(Frozen):
    """A cell whose numbers are no longer shown, or are again."""

    cell_id: str
    valid_before: bool
    valid_after: bool


def rejudged(before: Report, after: Report) -> tuple[Rejudged, ...]:
    """What differs between the findings of two reports of one run, cell by cell in the order of `after`.

    Findings are the same when cell, kind, trial and grade are; what they say may be worded otherwise. Of several of one
    kind on one trial the gravest counts.
    """
    old, new = _gravest(before), _gravest(after)
    order = {cell.cell_id: place for place, cell in enumerate(after.cells)}
    found = []
    for key in dict.fromkeys((*new, *old)):
        was, now = old.get(key), new.get(key)
        if was and now and was.grade is now.grade:
            continue
        shown = now or was
        if shown is not None:
            found.append(
                Rejudged(
                    cell_id=shown.cell_id,
                    kind=shown.kind,
                    position=shown.position,
                    before=was.grade if was else None,
                    after=now.grade if now else None,
                    message=shown.message,
                )
            )
    return tuple(sorted(found, key=lambda one: order.get(one.cell_id, len(order))))


def turned(before: Report, after: Report) -> tuple[Turned, ...]:
    """The cells that became invalid, or valid again."""
    was = {cell.cell_id: cell.valid for cell in before.cells}
    return tuple(
        Turned(cell_id=cell.cell_id, valid_before=was[cell.cell_id], valid_after=cell.valid)
        for cell in after.cells
        if cell.cell_id in was and was[cell.cell_id] != cell.valid
    )


def _gravest(report: Report) -> dict[_Key, Finding]:
    found: dict[_Key, Finding] = {}
    for cell in report.cells:
        for one in cell.findings:
            key = one.cell_id, one.kind, one.position
            if key not in found or found[key].grade.weight < one.grade.weight:
                found[key] = one
    return found
