"""How hard `redline load` presses: its flags are the words of a suite's load, and are held to the same rules."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from redline.cli.command_line import Arrivals
from redline.errors import UsageError
from redline.model import Load
from redline.suite import WrongValueError, read_data, read_times
from redline.suite.schema.load import WrittenLoad

_FLAGS = {
    "users": "-c",
    "connections": "-c",
    "for": "-d",
    "rate": "-R",
    "depth": "--depth",
    "think": "--think",
    "pace": "--pace",
    "stages": "--stage",
    "requests_per_connection": "--requests-per-connection",
    "count": "--count",
    "arrivals": "--replay",
}
_KEY = re.compile(rf"`({'|'.join((*_FLAGS, 'ramp'))})(?:: ([^`]*))?`")
_HINT = "`redline load --help` shows each flag"


@dataclass(frozen=True)
class Pressure:
    """The flags as they were given; closed without a rate and a file to replay."""

    connections: int
    duration_ns: int
    rate: str | None = None
    arrivals: Arrivals | None = None
    replay: Path | None = None
    depth: int = 1
    think: str | None = None
    pace: str | None = None
    stages: tuple[str, ...] = ()
    requests_per_connection: int | None = None
    count: int | None = None


def read_load(asked: Pressure) -> Load:
    """The load of the flags. Raises UsageError, naming the flag."""
    is_open = asked.rate is not None or asked.replay is not None
    _check_arrivals(asked)
    shape: dict[str, Any] = {
        "depth": asked.depth,
        "requests_per_connection": asked.requests_per_connection,
        "stages": [_stage(text, whole=not is_open) for text in asked.stages],
        "think": _think(asked.think),
        "pace": asked.pace,
    }
    if is_open:
        shape |= {"rate": asked.rate, "connections": asked.connections, "arrivals": _arrivals(asked)}
    else:
        shape["users"] = asked.connections
    told = {key: value for key, value in shape.items() if value is not None}
    whole = {"open" if is_open else "closed": told, "for": f"{asked.duration_ns}ns", "count": asked.count}
    try:
        written = WrittenLoad.model_validate(whole)
    except ValidationError as error:
        raise _told(error, asked) from None
    replayed_ns = () if asked.replay is None else read_times(read_data(asked.replay), str(asked.replay))
    return written.load("load", replayed_ns)


def _stage(text: str, *, whole: bool) -> dict[str, Any]:
    to, colon, over = text.rpartition(":")
    if not colon or not to or (whole and not to.isdecimal()):
        what = "users" if whole else "requests per second"
        raise UsageError(f"--stage {text} is not a stage", hint=f"write {what} and how long: --stage 1000:10s")
    return {"to": int(to) if whole else to, "over": over}


def _think(text: str | None) -> object:
    kind, colon, mean = (text or "").partition(":")
    return {"exponential": mean} if colon and kind == "exp" else text


def _arrivals(asked: Pressure) -> object:
    return {"replay": str(asked.replay)} if asked.replay else (asked.arrivals or Arrivals.POISSON).value


def _check_arrivals(asked: Pressure) -> None:
    told = f"--arrivals {asked.arrivals}"
    if asked.arrivals is not None and asked.replay is not None:
        raise UsageError(f"{told}: --replay says when requests fall due", hint="leave out --arrivals or --replay")
    if asked.arrivals is not None and asked.rate is None:
        message = f"{told}: users of a closed load ask when they are answered"
        raise UsageError(message, hint="add a rate, such as -R 5000, or leave out --arrivals")


def _told(error: ValidationError, asked: Pressure) -> UsageError:
    """The first problem, at its flag."""
    first = error.errors()[0]
    steps = [str(step) for step in first["loc"]]
    flag = next((_FLAGS[step] for step in steps if step in _FLAGS), None)
    given: dict[str, object] = {
        "-c": asked.connections,
        "-R": asked.rate,
        "--depth": asked.depth,
        "--count": asked.count,
    }
    given |= {"--think": asked.think, "--pace": asked.pace, "--replay": asked.replay}
    given |= {"--requests-per-connection": asked.requests_per_connection}
    named = flag if given.get(flag or "") is None else f"{flag} {given[flag or '']}"
    cause = first.get("ctx", {}).get("error")
    if first["type"] == "extra_forbidden":
        opens = "--replay" if asked.rate is None else "-R"
        return UsageError(f"{named}: only users of a closed load have that", hint=f"leave out {opens} or {flag}")
    if isinstance(cause, WrongValueError):
        message = _in_flags(cause.message)
        return UsageError(f"{named}: {message}" if named else message, hint=_in_flags(cause.hint))
    return UsageError(f"{named or 'the load'}: {first['msg']}", hint=_HINT)


def _in_flags(text: str) -> str:
    """What was said of a suite's keys, said of the flags: `ramp` is --stage, `users: 64` is -c 64."""

    def flag(key: re.Match[str]) -> str:
        value = f" {key[2]}" if key[2] else ""
        return _FLAGS.get(key[1], "--stage") + value

    return _KEY.sub(flag, text)
