"""Numbers that no measurement gives, since they are whatever the disk has: what judging them raises, in words."""

from pydantic import ValidationError

IMPOSSIBLE = (ArithmeticError, AssertionError, LookupError, ValueError)
"""What judging raises then."""


def holds_what_cannot_be(error: Exception) -> str:
    """Why something stored is not used, by what judging it raised: `holds what cannot be: start: …`."""
    said = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        said = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
    return f"holds what cannot be: {said}"
