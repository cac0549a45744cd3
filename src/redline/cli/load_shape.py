"""How hard `redline load` loads: its flags are values of a suite's load, and the same schema checks them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from redline.cli.command_line import Arrivals
from redline.errors import UsageError
from redline.model import Load
from redline.suite import read_data, read_times
from redline.suite.schema.load import (
    ClosedSchema,
    LoadSchema,
    OpenSchema,
    RateStageSchema,
    ReplaySchema,
    ThinkSchema,
    UserStageSchema,
)
from redline.suite.validate.checking import first_mistake

S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True)
class LoadFlags:
    """The flags as they were given. The load is open with a rate or a file to replay, else closed."""

    connections: int = 64
    duration: str = "10s"
    rate: str | None = None
    arrivals: Arrivals | None = None
    replay: Path | None = None
    depth: int = 1
    think: str | None = None
    pace: str | None = None
    stages: tuple[str, ...] = ()
    requests_per_connection: int | None = None
    count: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests are due by a schedule, and not by the answers before them."""
        return self.rate is not None or self.replay is not None

    @property
    def given(self) -> dict[str, str]:
        """By the key of a suite that has its value: the flag, with the value that it was given."""
        connections = f"-c {self.connections}"
        return {
            "users": connections,
            "connections": connections,
            "for": f"-d {self.duration}",
            "rate": f"-R {self.rate}",
            "arrivals": f"--replay {self.replay}",
            "depth": f"--depth {self.depth}",
            "think": f"--think {self.think}",
            "pace": f"--pace {self.pace}",
            "stages": f"--stage {' --stage '.join(self.stages)}",
            "requests_per_connection": f"--requests-per-connection {self.requests_per_connection}",
            "count": f"--count {self.count}",
        }


def read_load(flags: LoadFlags) -> Load:
    """The load of the flags. Raises UsageError, which names the flag."""
    _check_combination(flags)
    shape = {"open": _open(flags)} if flags.is_open else {"closed": _closed(flags)}
    schema = _read(LoadSchema, flags.given, **shape, **{"for": flags.duration}, count=flags.count)
    replayed_ns = () if flags.replay is None else read_times(read_data(flags.replay), str(flags.replay))
    return schema.load("load", replayed_ns)


def _closed(flags: LoadFlags) -> ClosedSchema:
    return _read(
        ClosedSchema,
        flags.given,
        users=flags.connections,
        depth=flags.depth,
        think=_think(flags),
        pace=flags.pace,
        requests_per_connection=flags.requests_per_connection,
        stages=[_stage(UserStageSchema, text) for text in flags.stages],
    )


def _open(flags: LoadFlags) -> OpenSchema:
    replayed = None if flags.replay is None else ReplaySchema(replay=str(flags.replay))
    return _read(
        OpenSchema,
        flags.given,
        rate=flags.rate,
        connections=flags.connections,
        arrivals=replayed or (flags.arrivals or Arrivals.POISSON).value,
        depth=flags.depth,
        requests_per_connection=flags.requests_per_connection,
        stages=[_stage(RateStageSchema, text) for text in flags.stages],
    )


def _think(flags: LoadFlags) -> ThinkSchema | str | None:
    kind, colon, mean = (flags.think or "").partition(":")
    return (
        _read(ThinkSchema, {"exponential": f"--think {flags.think}"}, exponential=mean)
        if (colon and kind == "exp")
        else flags.think
    )


def _stage(kind: type[S], text: str) -> S:
    to, colon, over = text.rpartition(":")
    in_users = kind is UserStageSchema
    if not colon or not to or (in_users and not to.isdecimal()):
        what = "users" if in_users else "requests per second"
        raise UsageError(f"--stage {text} is not a stage", hint=f"write {what} and how long: --stage 1000:10s")
    flag = f"--stage {text}"
    return _read(kind, {"to": flag, "over": flag}, to=int(to) if in_users else to, over=over)


def _read(kind: type[S], given: Mapping[str, str], **values: Any) -> S:
    """The values as a schema. Raises UsageError, which names the flag that is wrong."""
    try:
        return kind(**values)
    except ValidationError as error:
        mistake = first_mistake(error, kind)
        flag = next(given[str(step)] for step in reversed(mistake.path) if str(step) in given)
        hint = mistake.hint or "`redline load --help` shows each flag"
        raise UsageError(f"{flag}: {mistake.message}", hint=hint) from None


def _check_combination(flags: LoadFlags) -> None:
    """Raises UsageError for a flag of closed loads with an open one, and the other way round."""
    if flags.arrivals is not None and flags.replay is not None:
        raise UsageError(
            f"--arrivals {flags.arrivals}: --replay says when requests are due", hint="leave out --arrivals or --replay"
        )
    if flags.arrivals is not None and flags.rate is None:
        message = f"--arrivals {flags.arrivals}: in a closed load, requests follow the answers"
        raise UsageError(message, hint="add a rate, such as -R 5000, or leave out --arrivals")
    for flag, value in (("--think", flags.think), ("--pace", flags.pace)):
        if value is not None and flags.is_open:
            opens = "--replay" if flags.rate is None else "-R"
            raise UsageError(
                f"{flag} {value}: only users of a closed load have that", hint=f"leave out {opens} or {flag}"
            )
