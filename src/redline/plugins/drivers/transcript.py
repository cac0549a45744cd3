"""The engine's event lines become Traffic. See docs/reference/engine-protocol.md.

Engine and lab are built together, so an event that is not exactly of the format is an error, never a guess.
"""

import json
from typing import Any

from pydantic import ValidationError

from redline.errors import DriveError
from redline.model import Interval, Traffic

EVENTS_FORMAT = "redline.engine/1"


class Transcript:
    """Collects the engine's events, line by line, into Traffic."""

    def __init__(self) -> None:
        self._started: dict[str, Any] = {}
        self._result: dict[str, Any] = {}
        self._intervals: list[Interval] = []

    def read(self, line: str) -> Interval | None:
        """Take in one line; gives the interval when it was one. Raises DriveError for an error event or nonsense."""
        try:
            event = json.loads(line)
            match event.pop("event"):
                case "started":
                    self._started = _of_our_format(event)
                case "interval":
                    self._intervals.append(Interval.model_validate(event))
                    return self._intervals[-1]
                case "result":
                    self._result = event
                case "error":
                    raise DriveError(event["message"], hint=event["hint"])
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise _nonsense(line, error) from None
        return None

    def traffic(self) -> Traffic | None:
        """All of it, or None when the engine wrote no result."""
        if not self._started or not self._result:
            return None
        try:
            return Traffic.model_validate({**self._started, **self._result, "intervals": tuple(self._intervals)})
        except ValidationError as error:
            raise _nonsense(str(self._result), error) from None


def _of_our_format(event: dict[str, Any]) -> dict[str, Any]:
    found = event.pop("format")
    if found != EVENTS_FORMAT:
        raise ValueError(f"its format is {found}, ours {EVENTS_FORMAT}")
    return event


def _nonsense(line: str, error: Exception) -> DriveError:
    why = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        why = ": ".join(part for part in (".".join(map(str, first["loc"])), first["msg"]) if part)
    return DriveError(
        f"the engine wrote what cannot be: {why}; in {line[:200]!r}",
        hint="engine and lab may be of different versions: run `make build`",
    )
