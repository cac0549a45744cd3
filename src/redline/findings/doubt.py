"""How a measured value becomes a finding."""

from redline.findings.rules import RULES
from redline.model import Cell, Finding, FindingKind, Grade, Recording


def doubt(
    kind: FindingKind,
    value: float,
    message: str,
    about: Cell | Recording,
    *,
    at_most: Grade = Grade.INVALID,
    advice: str = "",
) -> tuple[Finding, ...]:
    """The finding that the rule of this kind makes of the value, graded no higher than `at_most`; empty for none.

    The advice is the rule's, where there is no better.
    """
    rule = RULES[kind]
    grade = rule.grade(value)
    if grade is None:
        return ()
    return (
        Finding(
            kind=kind,
            grade=min(grade, at_most, key=lambda one: one.weight),
            message=message,
            advice=advice or rule.advice,
            cell_id=about.cell_id if isinstance(about, Recording) else about.id,
            position=about.position if isinstance(about, Recording) else None,
        ),
    )


def percent(share: float) -> str:
    """A share as people read it: `0.04%`, `2.5%`, `31%`; never `0%` for what is not zero."""
    value = share * 100
    if value >= 10 or value == 0:
        return f"{value:.0f}%"
    if 0 < value < 0.001:
        return "<0.001%"
    return f"{value:.2g}%"


def duration(ns: float) -> str:
    """A duration with three digits: `812 ns`, `45.2 us`, `1.2 ms`, `3 s`."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
