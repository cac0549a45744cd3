"""What flags ask for, as values."""

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast

from redline.asking.asks import ComparisonAsk, LoadAsk, RequestAsk, SearchAsk, SuiteAsk, split, whole
from redline.asking.opening import opened
from redline.cli.command_line import AbFlags, BisectFlags, LimitFlags, LoadFlags, RequestFlags, SuiteFlags
from redline.cli.declaring import Flags
from redline.cli.show import Terminal
from redline.errors import UsageError

FIELDS = {"target_is_mine": "mine", "server": "url", "budget": "lasts"}
"""The parts that are not called as the fields of the flags."""
A = TypeVar("A", RequestAsk, LoadAsk, ComparisonAsk, SearchAsk, SuiteAsk)
T = TypeVar("T", LoadAsk, ComparisonAsk, SearchAsk)
_PATHS = ("cacert", "cert", "key", "unix_socket")
_BODY_HINT = "save it in a file, and give --body @FILE"


def load_ask(flags: LoadFlags) -> LoadAsk:
    """Return the load that flags ask for, and say what its files hold. Raises UsageError."""
    read = {"duration": _typed(flags, "duration"), "rate": flags.rate and whole(flags.rate)}
    return _print_notes(opened(_ask(LoadAsk, flags, **read)), flags)


def comparison_ask(flags: AbFlags) -> ComparisonAsk:
    """Return the comparison that flags ask for, and say what its files hold. Raises UsageError."""
    names = None if flags.names is None else tuple(flags.names.split(","))
    return _print_notes(opened(_ask(ComparisonAsk, flags, names=names, **_shape(flags))), flags)


def bisect_ask(flags: BisectFlags, oldest: str, newest: str) -> ComparisonAsk:
    """Return the comparison of the oldest commit with the newest that flags ask for. Raises UsageError."""
    return _print_notes(opened(_ask(ComparisonAsk, flags, a=oldest, b=newest, **_shape(flags))), flags)


def search_ask(flags: LimitFlags) -> SearchAsk:
    """Return the search that flags ask for, and say what its files hold. Raises UsageError."""
    names: dict[str, Any] = {name: split(getattr(flags, name)) for name in ("servers", "loads")}
    start = flags.start and whole(flags.start)
    return _print_notes(opened(_ask(SearchAsk, flags, options=_options(flags.options), start=start, **names)), flags)


def suite_ask(flags: SuiteFlags) -> SuiteAsk:
    """Return what flags ask of a suite. Raises UsageError."""
    names = {name: split(getattr(flags, name)) for name in ("servers", "scenarios", "loads", "profile")}
    return _ask(SuiteAsk, flags, options=_options(flags.options), **names)


def request_ask(flags: RequestFlags) -> RequestAsk:
    """Return the request that flags ask for. Raises UsageError."""
    return _ask(RequestAsk, flags)


def _ask(kind: type[A], flags: Flags, **read: Any) -> A:
    """The fields of flags as they are, and others that were read. Raises UsageError."""
    if isinstance(flags, RequestFlags):
        read |= {"headers": tuple(map(_header, flags.headers)), "body": _body(flags.body)}
        read["scenarios"] = split(flags.scenarios)
        read |= {name: Path(path) for name in _PATHS if (path := getattr(flags, name)) is not None}
    known, named = vars(flags), {field.name: FIELDS.get(field.name, field.name) for field in fields(kind)}
    same = {name: known[of_flags] for name, of_flags in named.items() if of_flags in known}
    asked = {name: tuple(value) if isinstance(value, list) else value for name, value in (same | read).items()}
    made: A = kind(**cast("Any", asked))
    return made


def _print_notes(made: tuple[T, list[str]], flags: RequestFlags) -> T:
    ask, said = made
    for text in () if flags.quiet else said:
        Terminal(stderr=True).print(text, highlight=False, soft_wrap=True)
    return ask


def _shape(flags: AbFlags | BisectFlags) -> dict[str, Any]:
    users, rate = (None, None) if (load := _typed(flags, "load")) is None else _load(load)
    return {"users": users, "rate": rate}


def _typed(flags: Flags, field: str) -> str | None:
    """A value that was given, though it may be the default."""
    value = str(getattr(flags, field))
    return value if field in flags.typed or value != flags.declared()[field].default else None


def _header(line: str) -> tuple[str, str]:
    name, colon, value = (part.strip(" \t") for part in line.partition(":"))
    if not colon or not name:
        raise UsageError(f"-H {line!r} is not a header", hint="write it like -H 'Accept: text/plain'")
    return name, value


def _body(text: str | None) -> str | Path | None:
    if text is not None and text.startswith("@"):
        return Path(text[1:])
    if any("\ud800" <= char <= "\udfff" for char in text or ""):  # Python keeps other bytes of a command line like that
        raise UsageError("--body: it is not UTF-8", hint=_BODY_HINT)
    return text


def _load(text: str) -> tuple[int | None, str | int | None]:
    """The users or the rate of a load."""
    kind, _, number = text.partition(":")
    if kind == "closed" and isinstance(users := whole(number), int):
        return users, None
    if kind != "open" or not number:
        raise UsageError(f"--load {text} is not a load", hint="write closed:64 (users) or open:2000/s (a rate)")
    return None, whole(number)


def _options(written: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple(map(_option, split(written)))


def _option(written: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in written.partition("="))
    if not (name and equals and value):
        raise UsageError(f"-w {written} is not an option with its value", hint="write it like -w interceptor=off")
    return name, value
