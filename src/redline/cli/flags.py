"""Flags read into values: overrides of a suite, durations, lists."""

from redline.errors import UsageError
from redline.suite import Overrides, WrongValueError, parse_duration

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
