"""How a measured value becomes a finding."""

from redline.findings.rules import RULES
from redline.model import Cell, Finding, FindingKind, Grade, Recording


def doubt(
    kind: FindingKind, value: float, message: str, about: Cell | Recording, at_most: Grade = Grade.INVALID
) -> tuple[Finding, ...]:
    """The finding that the rule of this kind makes of the value, graded no higher than `at_most`; empty for none."""
    rule = RULES[kind]
    grade = rule.grade(value)
    if grade is None:
        return ()
    return (
        Finding(
            kind=kind,
            grade=min(grade, at_most, key=lambda one: one.weight),
            message=message,
            advice=rule.advice,
            cell_id=about.cell_id if isinstance(about, Recording) else about.id,
            position=about.position if isinstance(about, Recording) else None,
        ),
    )
