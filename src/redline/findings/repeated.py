"""Repeated findings, reported once with their number."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redline.findings.table import RULES
from redline.model import Finding, Grade

MOST_NAMED = 3
"""The most names that a line lists before it counts the others."""


@dataclass(frozen=True)
class Gathered:
    """All findings of a kind and grade, in their order."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The first finding, whose message and advice represent all."""
        return self.findings[0]

    @property
    def cell_ids(self) -> tuple[str, ...]:
        """The distinct cells of the findings."""
        return tuple(dict.fromkeys(finding.cell_id for finding in self.findings))

    @property
    def where(self) -> str:
        """`trial 7`, `12 trials (3, 7, 9 and 9 more)`, `31 trials of 4 cells`, or `4 cells`; empty for one cell."""
        positions = sorted(finding.position for finding in self.findings if finding.position is not None)
        cells = len(self.cell_ids)
        if not positions:
            return f"{cells} cells" if cells > 1 else ""
        if len(positions) == 1:
            return f"trial {positions[0]}"
        return f"{len(positions)} trials {f'of {cells} cells' if cells > 1 else f'({named(map(str, positions))})'}"

    @property
    def text(self) -> str:
        """`cpu-steal in 12 trials (3, 7, 9 and 9 more): The host took away …`."""
        return f"{self.first.kind}{self.where and f' in {self.where}'}: {self.first.message}"


def gathered(findings: Iterable[Finding]) -> tuple[Gathered, ...]:
    """Group findings by kind and grade, the gravest first and reassuring kinds last."""
    kinds: dict[tuple[str, Grade], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.kind, finding.grade), []).append(finding)
    alike = (Gathered(tuple(same)) for same in kinds.values())
    return tuple(sorted(alike, key=lambda group: (-group.first.grade.weight, RULES[group.first.kind].reassures)))


def merged_by_text(said: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Merge equal texts about subjects, in their order: `rust.hyper, rust.axum and 10 more: no usable trials`."""
    subjects: dict[str, dict[str, None]] = {}
    for subject, text in said:
        subjects.setdefault(text, {})[subject] = None
    return tuple(f"{named(alike)}: {text}" for text, alike in subjects.items())


def named(names: Iterable[str]) -> str:
    """`a, b, c and 9 more`."""
    known: Sequence[str] = tuple(names)
    more = len(known) - MOST_NAMED
    return f"{', '.join(known[:MOST_NAMED])} and {more} more" if more > 1 else ", ".join(known)
