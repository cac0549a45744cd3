"""Read files that a suite or a scenario names: arrivals to replay, entries to pick from, authorities to trust. Pure.

Errors give the line of a mistake and never quote it: the user may have named a wrong file that holds a secret.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from os.path import abspath
from typing import NoReturn, TypeVar

from redline.errors import Location, UsageError, WrongValueError
from redline.lazily import dataclass
from redline.model import Request
from redline.model.load import Replay
from redline.model.template import picked, with_picks
from redline.quantities import LONGEST_DURATION_NS, parse_duration
from redline.schema.document import Document, Path, Plain
from redline.suite.request_source import lines_of
from redline.suite.validate.checking import Sheet

T = TypeVar("T")
_SERVER_FILES = ("ca", "cert", "key", "replay")
MOST_TIMES = 200_000
"""The most times of a recording."""
MOST_ENTRIES = 100_000
_LINES_HINT = "write one time per line, in seconds or with a unit: 0.25, 250ms; an access log: see `redline import`"
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

    def replay(self, name: str) -> Replay:
        """The recorded arrivals of a file, by `read_replay`."""
        return read_replay(self.text(name), name)

    def entries(self, name: str) -> tuple[str, ...]:
        """The entries of a file, by `read_entries`."""
        return read_entries(self.text(name), name)


NO_FILES = Files()
"""The files of a suite that has no folder: reading them raises UsageError."""


def read_replay(text: str, file: str) -> Replay:
    """Parse due times, one per line: seconds, or a duration with its unit; `#` begins a comment.

    After every time, or after none, stands the number of a request in the list of requests, from 1. Raises UsageError
    with the line of the first invalid time or number, or of the first time before its predecessor.
    """
    times, requests = list[int](), list[int]()
    for number, line in enumerate(lines_of(text), start=1):
        written, *more = line.partition("#")[0].split() or [""]
        if not written:
            continue
        place = Location(file, number, 1)
        at_ns = _time(written, place)
        if times and at_ns < times[-1]:
            raise UsageError("this time is before the previous time", hint="sort the file", place=place)
        if len(more) > 1 or (times and bool(more) != bool(requests)):
            raise UsageError("this line has other columns than the first", hint=_LINES_HINT, place=place)
        times.append(at_ns)
        requests += [_request_number(text, place) for text in more]
    if not times:
        raise UsageError(f"{file} has no times", hint=_LINES_HINT)
    if len(times) > MOST_TIMES:
        raise UsageError(f"{file} has {len(times)} times; at most {MOST_TIMES}", hint="replay a part of it")
    return Replay(tuple(times), tuple(requests))


def _request_number(written: str, place: Location) -> int:
    """A number from 1, as an index from 0."""
    if not (written.isascii() and written.isdecimal() and 0 < int(written) <= MOST_TIMES):
        hint = "write the number of a request after its time, from 1 on: 0.25 3"
        raise UsageError("this is not the number of a request", hint=hint, place=place)
    return int(written) - 1


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
    entries = tuple(line for line in lines_of(text) if line)
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
    """Rename the files of bodies and picks in a list of requests, a journey or a project, and of the journey's rows."""

    def renamed(value: Plain) -> Plain:
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if isinstance(value, dict):
            return {key: item if key == "expect" else renamed(item) for key, item in value.items()}
        return with_picks(value, rename) if isinstance(value, str) else value

    value = renamed(document.value)
    lists = [value, *_lists_of_mapping(value, rename)]
    for request in (request for requests in lists if isinstance(requests, list) for request in requests):
        for body in _bodies_of(request):
            if isinstance(body, dict) and isinstance(file := body.get("file"), str):
                body["file"] = rename(file)
    return replace(document, value=value)


def _lists_of_mapping(value: Plain, rename: Callable[[str], str]) -> list[Plain]:
    """The lists of requests of a project or a journey, whose rows are renamed."""
    if not isinstance(value, dict):
        return []
    journey = value.get("journey")
    if not isinstance(journey, dict):
        return [value.get("requests"), [value.get("check")]]
    rows = journey.get("rows")
    if isinstance(rows, str):
        journey["rows"] = rename(rows)
    elif isinstance(rows, dict) and isinstance(file := rows.get("file"), str):
        rows["file"] = rename(file)
    return [journey.get("once"), journey.get("steps")]


def with_server_files(document: Document, rename: Callable[[str], str]) -> Document:
    """Rename the files of TLS of a project's servers, and of due times of its loads."""

    def renamed(value: Plain, key: str = "") -> Plain:
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if isinstance(value, dict):
            return {name: renamed(item, name) for name, item in value.items()}
        return rename(value) if isinstance(value, str) and key in _SERVER_FILES else value

    if not isinstance(document.value, dict):
        return document
    parts = {key: renamed(value) for key, value in document.value.items() if key in ("servers", "tls", "loads")}
    return replace(document, value={**document.value, **parts})


def _bodies_of(request: Plain) -> list[Plain]:
    """The body of a request and the parts of its form, which may name files."""
    if not isinstance(request, dict):
        return []
    form = request.get("multipart")
    return [request.get("body"), *(form if isinstance(form, list) else [])]
