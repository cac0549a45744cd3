"""A reason to doubt a recording."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from redline.model.base import Frozen


class Grade(StrEnum):
    """The severity of a finding. One that is `invalid` hides the numbers that it touches, or leaves their bounds."""

    NOTE = "note"
    WARN = "warn"
    INVALID = "invalid"

    @property
    def weight(self) -> int:
        """0 for a note, 1 for a warning, 2 for invalid."""
        return list(Grade).index(self)


FindingKind = Annotated[str, Field(pattern=r"^[a-z]+(-[a-z]+)*$")]
"""The name of a rule in the table of `redline.findings`, which is the only list of them."""


class Finding(Frozen):
    """A reason to doubt a cell, or one of its trials if `position` is given."""

    kind: FindingKind
    grade: Grade
    message: str
    advice: str
    cell_id: str
    position: int | None = None

    def about(self, cell_id: str, position: int | None) -> "Finding":
        """The same finding about another cell, and one of its trials or probes if `position` is given."""
        return self.model_copy(update={"cell_id": cell_id, "position": position})

    def advising(self, advice: str) -> "Finding":
        """The same finding with other advice."""
        return self.model_copy(update={"advice": advice})

    def said(self, grade: Grade, message: str) -> "Finding":
        """The same finding with another grade and message, for example for several trials at once."""
        return self.model_copy(update={"grade": grade, "message": message})
