"""The flags that choose from a suite and override it; `run` and `check` share them."""

from pathlib import Path
from typing import Annotated

import typer

from redline.errors import UsageError
from redline.suite import Overrides, WrongValueError, parse_duration

SuiteFile = Annotated[Path, typer.Argument(metavar="SUITE", help="A suite: a YAML file.", show_default=False)]
Servers = Annotated[
    list[str] | None, typer.Option("-s", "--server", metavar="GLOB,…", help="Only these servers, such as 'rust.*'.")
]
Scenarios = Annotated[
    list[str] | None, typer.Option("-m", "--scenario", metavar="NAME,…", help="Only these scenarios.")
]
Users = Annotated[int | None, typer.Option("-u", "--users", metavar="N", help="Users of every closed load.")]
Duration = Annotated[
    str | None, typer.Option("-d", "--duration", metavar="TIME", help="Length of every load, such as 25s.")
]
Warmup = Annotated[
    str | None,
    typer.Option("--warmup", metavar="TIME|auto", help="Load before each measurement: 30s, or until steady."),
]
Trials = Annotated[int | None, typer.Option("--trials", metavar="N", help="Trials of every cell.")]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the order and of the arrivals.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "-w", "--with", metavar="NAME=VALUE,…", help="Only servers whose option has that value, or that lack it."
    ),
]
Quick = Annotated[bool, typer.Option("--quick", metavar="", help="Every cell, but shorter: `quick` of the suite.")]
DETECTED = "auto"
"""In place of a time: the warm-up ends when the server is steady."""

AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON of a published schema to stdout.")]


def read_overrides(
    servers: list[str] | None,
    scenarios: list[str] | None,
    users: int | None,
    duration: str | None,
    trials: int | None,
    seed: int | None,
    options: list[str] | None = None,
    quick: bool = False,
    warmup: str | None = None,
) -> Overrides:
    """The flags as overrides. Raises UsageError for a number that cannot be."""
    for flag, number in (("-u", users), ("--trials", trials)):
        if number is not None:
            at_least_one(flag, number)
    return Overrides(
        servers=split(servers),
        options=tuple(map(_option, split(options))),
        scenarios=split(scenarios),
        users=users,
        duration_ns=None if duration is None else duration_ns("-d", duration),
        trials=trials,
        seed=seed,
        quick=quick,
        warmup_ns=None if warmup in (None, DETECTED) else duration_ns("--warmup", warmup, least_ns=0),
        warmup_detect=warmup == DETECTED,
    )


def at_least_one(flag: str, number: int) -> int:
    """The number. Raises UsageError for one below 1."""
    if number < 1:
        raise UsageError(f"{flag} {number} is not possible", hint=f"give {flag} a whole number from 1")
    return number


def duration_ns(flag: str, text: str, *, least_ns: int = 1) -> int:
    """A flag's duration, such as 25s or 250ms. Raises UsageError."""
    try:
        found_ns = parse_duration(text)
    except WrongValueError as error:
        raise UsageError(f"{flag}: {error.message}", hint=error.hint) from None
    if found_ns < least_ns:
        raise UsageError(f"{flag} {text} is too short", hint="write it like 25s, 250ms or 1m30s")
    return found_ns


def _option(written: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in written.partition("="))
    if not (name and equals and value):
        raise UsageError(f"-w {written} is not an option with its value", hint="write it like -w interceptor=off")
    return name, value


def split(values: list[str] | None) -> tuple[str, ...]:
    """The parts between commas of a flag that may be given several times; empty ones do not count."""
    return tuple(part.strip() for value in values or [] for part in value.split(",") if part.strip())
