"""Read files that a suite or a scenario names: arrivals to replay, entries to pick from, authorities to trust. Pure.

Errors give the line of a mistake and never quote it: the user may have named a wrong file that holds a secret.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from os.path import abspath
from typing import NoReturn, TypeVar

from redline.errors import Location, UsageError, WrongValueError
from redline.model import Request
from redline.model.template import picked, with_picks
from redline.quantities import LONGEST_DURATION_NS, parse_duration
from redline.suite.schema.document import Document, Path, Plain
from redline.suite.validate.checking import Sheet

T = TypeVar("T")
MOST_TIMES = 200_000
MOST_ENTRIES = 100_000
_LINES_HINT = "write one time per line, in seconds or with a unit: 0.25, 250ms"
_IN_A_PATH = re.compile(r"[!\"$-~]+")
_IN_A_HEADER = re.compile(r"[\t -~]+")


def _unreadable(name: str) -> NoReturn:
    raise UsageError(f"{name} cannot be read from here", hint="name a suite by its file")


@dataclass(frozen=True)
class Files:
    """Readers of files by name, relative to the file that names them: as texts, and as bodies. Raise UsageError.

    `place` is the absolute path of a file.
    """

    text: Callable[[str], str] = _unreadable
    body: Callable[[str], bytes] = _unreadable
    place: Callable[[str], str] = abspath

    def times(self, name: str) -> tuple[int, ...]:
        """The due times of a file, by `read_times`."""
        return read_times(self.text(name), name)

    def entries(self, name: str) -> tuple[str, ...]:
        """The entries of a file, by `read_entries`."""
        return read_entries(self.text(name), name)


NO_FILES = Files()
"""The files of a suite that has no folder: reading them raises UsageError."""


def read_times(text: str, file: str) -> tuple[int, ...]:
    """Parse due times into nanoseconds, one per line: seconds, or a duration with its unit; `#` begins a comment.

    Raises UsageError with the line of the first invalid time, or of the first time before its predecessor.
    """
    times: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        place = Location(file, number, 1)
        at_ns = _time(written, place)
        if times and at_ns < times[-1]:
            raise UsageError("this time is before the previous time", hint="sort the file", place=place)
        times.append(at_ns)
    if not times:
        raise UsageError(f"{file} has no times", hint=_LINES_HINT)
    if len(times) > MOST_TIMES:
        raise UsageError(f"{file} has {len(times)} times; at most {MOST_TIMES}", hint="replay a part of it")
    return tuple(times)


def _time(written: str, place: Location) -> int:
    try:
        at_ns = parse_duration(written) if written[-1].isalpha() else Decimal(written) * 1_000_000_000
        in_range = 0 <= at_ns <= LONGEST_DURATION_NS
    except (ArithmeticError, WrongValueError):
        raise UsageError("this is not a time of at most a day", hint=_LINES_HINT, place=place) from None
    if not in_range:
        raise UsageError("this time is not between 0 and a day", hint=_LINES_HINT, place=place)
    return round(at_ns)


def read_entries(text: str, file: str) -> tuple[str, ...]:
    """Parse entries, one per line; empty lines are left out. Raises UsageError for no entry, or too many."""
    entries = tuple(line for line in text.splitlines() if line)
    if not entries:
        raise UsageError(f"{file} has nothing to pick from", hint="write one entry per line")
    if len(entries) > MOST_ENTRIES:
        raise UsageError(f"{file} has {len(entries)} entries; at most {MOST_ENTRIES}", hint="take a sample of it")
    return entries


def noted(sheet: Sheet, path: Path, read: Callable[[], T]) -> T | None:
    """The result of reading the file named at `path`; None after noting, once, the problem of that file."""
    try:
        return read()
    except UsageError as error:
        known = [problem.message for problem in sheet.problems]
        for problem in error.problems:
            place = f"{problem.place}: " if problem.place else ""
            if (message := f"{place}{problem.message}") not in known:
                sheet.wrong(path, message, problem.hint)
        return None


def picks_of(sheet: Sheet, path: Path, requests: Iterable[Request], files: Files) -> dict[str, tuple[str, ...]] | None:
    """The entries of every file that a scenario's requests pick from; None after noting a problem."""
    picks: dict[str, tuple[str, ...]] = {}
    known_before = len(sheet.problems)
    for request in requests:
        for text in request.texts:
            for name in picked(text):
                entries = picks.get(name) or noted(sheet, path, partial(files.entries, name))
                if entries is None:
                    return None
                picks[name] = entries
        if (wrong := wrong_entry(request, picks)) is not None:
            sheet.wrong(path, wrong.message, wrong.hint)
    return picks if len(sheet.problems) == known_before else None


def wrong_entry(request: Request, picks: Mapping[str, tuple[str, ...]]) -> WrongValueError | None:
    """An error for the first entry that cannot be sent where the request picks it; None if there is none."""
    for allowed, where, text in _uses(request):
        for name in picked(text):
            entries = enumerate(picks[name], start=1)
            wrong = next((at for at, entry in entries if allowed and not allowed.fullmatch(entry)), None)
            if wrong is not None:
                message = f"entry {wrong} of {name} cannot be part of {where}"
                return WrongValueError(message, "take it out, or encode it; empty lines do not count as entries")
    return None


def _uses(request: Request) -> list[tuple["re.Pattern[str] | None", str, str]]:
    """Every text that may have placeholders: the pattern of allowed values, the place in words, and the text."""
    path, *others = request.texts
    *headers, body = others
    return [(_IN_A_PATH, "a path", path), *((_IN_A_HEADER, "a header", text) for text in headers), (None, "", body)]


def with_files(document: Document, rename: Callable[[str], str]) -> Document:
    """Rename the files of bodies and picks in a list of requests."""

    def renamed(value: Plain) -> Plain:
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if isinstance(value, dict):
            return {key: item if key == "expect" else renamed(item) for key, item in value.items()}
        return with_picks(value, rename) if isinstance(value, str) else value

    requests = renamed(document.value)
    for request in requests if isinstance(requests, list) else ():
        body = request.get("body") if isinstance(request, dict) else None
        if isinstance(body, dict) and isinstance(file := body.get("file"), str):
            body["file"] = rename(file)
    return replace(document, value=requests)
