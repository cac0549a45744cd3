"""Compare two judgements of a run: by the rules of its stored views, and by today's. Pure."""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeVar

from redline.model import Finding, FindingKind, Frozen, Grade, Report
from redline.model.limits import CellLimit, LimitAnswer, LimitReport

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Rejudged(Frozen):
    """A finding that changed. `before` is null for a new finding, `after` for a finding that is gone."""

    cell_id: str
    kind: FindingKind
    position: int | None = None
    before: Grade | None
    after: Grade | None
    message: str

    @property
    def change(self) -> Literal["new", "gone", "graded otherwise"]:
        """The kind of change."""
        if self.before is None:
            return "new"
        return "gone" if self.after is None else "graded otherwise"


class ValidityChange(Frozen):
    """A cell whose numbers are no longer shown, or are again."""

    cell_id: str
    valid_before: bool
    valid_after: bool


def rejudged(before: Report, after: Report) -> tuple[Rejudged, ...]:
    """The differences between the findings of two reports of a run, cell by cell in the order of `after`.

    Findings are the same if cell, kind, trial and grade are, whatever their wording. Of several findings of a kind on a
    trial, the gravest counts.
    """
    order = {cell.cell_id: place for place, cell in enumerate(after.cells)}
    changes = []
    for (cell_id, kind, position), was, now in _differing(_gravest(before), _gravest(after)):
        if (was and was.grade) != (now and now.grade):
            changes.append(
                Rejudged(
                    cell_id=cell_id,
                    kind=kind,
                    position=position,
                    before=was.grade if was else None,
                    after=now.grade if now else None,
                    message=now.message if now else was.message if was else "",
                )
            )
    return tuple(sorted(changes, key=lambda change: order.get(change.cell_id, len(order))))


def validity_changes(before: Report, after: Report) -> tuple[ValidityChange, ...]:
    """The cells that became invalid, or valid again."""
    old, new = ({cell.cell_id: cell.valid for cell in report.cells} for report in (before, after))
    return tuple(
        ValidityChange(cell_id=cell_id, valid_before=was, valid_after=now)
        for cell_id, was, now in _differing(old, new)
        if was is not None and now is not None
    )


def _gravest(report: Report) -> dict[tuple[str, FindingKind, int | None], Finding]:
    gravest: dict[tuple[str, FindingKind, int | None], Finding] = {}
    for cell in report.cells:
        for finding in cell.findings:
            key = finding.cell_id, finding.kind, finding.position
            if key not in gravest or gravest[key].grade.weight < finding.grade.weight:
                gravest[key] = finding
    return gravest


class RejudgedAnswer(Frozen):
    """An answer of a search that changed; null where there is none."""

    slug: str
    name: str
    before: LimitAnswer | None
    after: LimitAnswer | None


class RejudgedEnding(Frozen):
    """The search on a cell whose ending changed; null where the cell is absent."""

    slug: str
    before: str | None
    after: str | None


def rejudged_answers(before: LimitReport, after: LimitReport) -> tuple[RejudgedAnswer, ...]:
    """The answers that differ between two reports of a search, in the order of `after`."""
    old, new = (
        {(cell.slug, limit.name): limit for cell in report.cells for limit in cell.limits} for report in (before, after)
    )
    return tuple(
        RejudgedAnswer(slug=slug, name=name, before=was, after=now) for (slug, name), was, now in _differing(old, new)
    )


def rejudged_endings(before: LimitReport, after: LimitReport) -> tuple[RejudgedEnding, ...]:
    """The cells whose endings differ between two reports of a search, in the order of `after`."""
    old, new = ({cell.slug: _ending(cell) for cell in report.cells} for report in (before, after))
    return tuple(RejudgedEnding(slug=slug, before=was, after=now) for slug, was, now in _differing(old, new))


def _differing(
    old: Mapping[_Key, _Value], new: Mapping[_Key, _Value]
) -> Iterator[tuple[_Key, _Value | None, _Value | None]]:
    """The keys whose values differ, with both values, in the order of `new`."""
    for key in dict.fromkeys((*new, *old)):
        was, now = old.get(key), new.get(key)
        if was != now:
            yield key, was, now


def _ending(cell: CellLimit) -> str:
    confirmed = ", confirmed" if cell.confirmed else ""
    return f"{cell.ended}{confirmed}{f': {cell.reason}' if cell.reason else ''}"
