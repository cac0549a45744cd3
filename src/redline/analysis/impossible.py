"""Numbers that no measurement gives, since they are whatever the disk has: what judging them raises, in words."""

import traceback
from pathlib import Path

from pydantic import ValidationError

IMPOSSIBLE = (ArithmeticError, AssertionError, LookupError, ValueError)
"""What judging raises then."""
_PACKAGE = f"{Path(__file__).parent.parent}/"


def holds_what_cannot_be(error: Exception) -> str:
    """Why something stored is not used, by what judging it raised: `holds what cannot be: start: …`.

    What a model refuses is named by its field. Any other error may be a fault of the rules too, so it is named with its
    kind and place.
    """
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"holds what cannot be: {': '.join(filter(None, ('.'.join(map(str, first['loc'])), first['msg'])))}"
    return f"holds what cannot be, or is misjudged: {type(error).__name__}: {error}{_place(error)}"


def _place(error: Exception) -> str:
    """` (findings/stalls.py, line 82)`: the last line of Redline's own that the error came through."""
    own = [
        f" ({frame.filename[len(_PACKAGE) :]}, line {frame.lineno})"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(_PACKAGE)
    ]
    return own[-1] if own else ""
