"""Flags read into values: overrides of a suite, durations, lists."""

import shlex
import sys

from redline.errors import UsageError
from redline.suite import Overrides, WrongValueError, parse_duration
from redline.suite.schema.suite import HIGHEST_SEED
from redline.suite.schema.types import LONGEST_TIMEOUT_NS

MOST_WORKERS = 1024  # of the engine, as docs/reference/engine-protocol.md says

DETECTED = "auto"
"""In place of a time: the warm-up ends when the server is steady."""


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
        seed=None if seed is None else read_seed(seed),
        quick=quick,
        warmup_ns=None if warmup in (None, DETECTED) else duration_ns("--warmup", warmup, least_ns=0),
        warmup_detect=warmup == DETECTED,
    )


def command_line() -> str:
    """The command as it was given, fit for a shell."""
    return shlex.join(["redline", *sys.argv[1:]])


def at_least_one(flag: str, number: int, most: int | None = None) -> int:
    """The number. Raises UsageError for one below 1, or above the most that is allowed."""
    if number < 1 or (most is not None and number > most):
        upto = "" if most is None else f" to {most}"
        raise UsageError(f"{flag} {number} is not possible", hint=f"give {flag} a whole number from 1{upto}")
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


def read_seed(number: int) -> int:
    """The seed. Raises UsageError for one that JSON would not keep."""
    if not 0 <= number <= HIGHEST_SEED:
        raise UsageError(
            f"--seed {number} is not possible", hint=f"give --seed a whole number from 0 to {HIGHEST_SEED}"
        )
    return number


def read_timeout(text: str) -> int:
    """When a request is given up, in nanoseconds. Raises UsageError."""
    found_ns = duration_ns("--timeout", text)
    if found_ns > LONGEST_TIMEOUT_NS:
        raise UsageError(f"--timeout {text} is too long", hint="give at most 1h")
    return found_ns


def read_workers(threads: int, connections: int) -> int:
    """Workers of the engine, each with a connection of its own at least. Raises UsageError."""
    most = min(connections, MOST_WORKERS)
    if at_least_one("-t", threads) > most:
        message = f"-t {threads} is more than the {connections} connections, and each worker needs one"
        if most < connections:
            message = f"-t {threads} is more than {most} workers"
        raise UsageError(message, hint=f"give -t {most} or fewer")
    return threads


def _option(written: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in written.partition("="))
    if not (name and equals and value):
        raise UsageError(f"-w {written} is not an option with its value", hint="write it like -w interceptor=off")
    return name, value


def split(values: list[str] | None) -> tuple[str, ...]:
    """The parts between commas of a flag that may be given several times; empty ones do not count."""
    return tuple(part.strip() for value in values or [] for part in value.split(",") if part.strip())
