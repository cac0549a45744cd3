"""What a rule of doubt is."""

from dataclasses import dataclass

from redline.model import FindingKind, Grade


@dataclass(frozen=True)
class Rule:
    """One kind of doubt. The grade is the highest whose limit the measured value is above; None is never reached."""

    kind: FindingKind
    measures: str
    note: float | None
    warn: float | None
    invalid: float | None
    reason: str
    advice: str

    def grade(self, value: float) -> Grade | None:
        """The grade that this value deserves, or None when there is nothing to doubt."""
        for grade, limit in ((Grade.INVALID, self.invalid), (Grade.WARN, self.warn), (Grade.NOTE, self.note)):
            if limit is not None and value > limit:
                return grade
        return None
