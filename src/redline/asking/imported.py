"""Read files of requests for the commands that load servers: a list as it is, other formats with a summary."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from redline.document.format import count
from redline.entry_points import extra, extra_if_installed
from redline.errors import UsageError
from redline.quantities import duration, integer
from redline.schema.document import Document, parse_document
from redline.suite import opened_requests
from redline.suite.imported import Imported, ImportNote, Wanted
from redline.suite.loading import MOST_BYTES
from redline.suite.request_source import read_json
from redline.suite.urls import base_of, is_url

_IMPORTING = "importing"
_OURS = re.compile(r"(?:\s|#[^\n]*\n)*+(?:-\s|\[)")
_DUE_TIME = rb"(?:\d++(?:\.\d++)?(?:e[+-]?\d++|[a-z\xc2\xb5\xce\xbc]*+))++"
_DUE_TIMES = re.compile(rb"(?:\s|#[^\n]*\n)*+(?:" + _DUE_TIME + rb"(?:\s|\Z)|\Z)", re.IGNORECASE)
_JOURNEY = re.compile(r"^\s*(?:\{\s*)?\"?journey\"?\s*:", re.MULTILINE)


def read_file(file: Path, form: str | None = None, wanted: Wanted | None = None) -> Document | Imported:
    """Read a list of requests, or import a file of another format. Raises UsageError with the place in the file."""
    importing = extra_if_installed(_IMPORTING) if form is None else extra(_IMPORTING, f"--format {form}")
    with opened_requests(file) as source:
        known = importing and (importing.detect(source) if form is None else importing.named(form))
        if known is not None:
            made: Imported = importing.read_requests(source, known, wanted or Wanted())
            return made
        text = source.text()
    if importing is None and not (_OURS.match(text) or _JOURNEY.search(text)):
        extra(_IMPORTING, str(file))  # which is absent, and says so
    if text.lstrip()[:1] == "[":
        _refuse_foreign_list(read_json(text), file)
    if len(text.encode()) > MOST_BYTES:
        raise UsageError(f"{file} is longer than 256 KiB", hint="write fewer requests, and bodies into files")
    document = parse_document(text, str(file))
    _refuse_foreign_list(document.value, file)
    return document


def _refuse_foreign_list(value: object, file: Path) -> None:
    """Raise UsageError for a list that is known as something else than requests."""
    importing = extra_if_installed(_IMPORTING)
    if importing and isinstance(value, list) and (foreign := importing.name_foreign_list(value, str(file))):
        raise UsageError(f"{file}: this is {foreign.what}, and no list of requests", hint=foreign.hint)


def read_recording(file: Path) -> Imported | None:
    """The requests of a log or a recording of a browser with their times; None for a file of due times.

    Raises UsageError with the place in the file.
    """
    with opened_requests(file) as source:
        importing = extra_if_installed(_IMPORTING)
        if importing is None:
            if not _DUE_TIMES.match(source.head):
                extra(_IMPORTING, str(file))  # which is absent, and says so
            return None
        known = importing.known_recording(source)
        made: Imported | None = known and importing.read_requests(source, known, Wanted(times=True))
        return made


TIMES_FILE = "times.txt"
"""The due times of an imported recording, in the directory of its run."""


class Recorded(NamedTuple):
    """The due times of an import, as a file of due times has them, and the last of them in nanoseconds."""

    times: str
    last_ns: int

    def suite(self, text: str) -> str:
        """The text of a suite with these times, for whoever copies it from a page."""
        return f"# {TIMES_FILE} has the due times; it is in the directory of this run\n{text}"

    @property
    def kept(self) -> dict[str, str]:
        """What is kept beside the suite."""
        return {TIMES_FILE: self.times}


def times_of(made: Imported) -> Recorded:
    """The due times of an import: seconds, and the numbers of the requests."""
    lines = (f"{arrival.at_ns / 1e9:.9f} {arrival.request + 1}\n" for arrival in made.arrivals)
    return Recorded("".join(lines), made.arrivals[-1].at_ns)


def times_summary(made: Imported) -> str:
    """Say how many requests were recorded, over which time."""
    said = f"{count(len(made.arrivals), 'request')} in {duration(made.arrivals[-1].at_ns)}"
    return f"{said}; the file has whole seconds, over which they are spread evenly" if made.spread else said


def as_document(made: Imported, file: Path) -> Document:
    """The requests imported from a file, without places in it."""
    return Document(str(file), list(made.requests), {}, {})


def summary(made: Imported, file: Path, targets: Iterable[str]) -> str:
    """Say in a line or two what a command sends of a file and what not. `targets`: the servers of the command."""
    said = f"{count(len(made.requests), 'request')} from {file}"
    left = sorted((entry for entry in made.left_out if entry.kind == "request"), key=lambda entry: -entry.count)
    if left:
        said += f"; left out: {integer(sum(entry.count for entry in left))} of {integer(made.total)}"
        said += f", such as {integer(left[0].count)} {left[0].why}"
    notes = [f"not sent: {_named_secrets(made.left_out)}"] if any(map(_is_secret, made.left_out)) else []
    notes += [f"made up ({integer(entry.count)}): {entry.why}" for entry in made.left_out if entry.kind == "made"]
    notes += [f"{made.host} is not contacted"] if made.host and is_elsewhere(made.host, targets) else []
    if left or notes:
        notes.append(f"{shlex.join(['redline', 'import', str(file)])} shows all of it")
    return "\n".join([said, *(["; ".join(notes)] if notes else [])])


def is_elsewhere(host: str, targets: Iterable[str]) -> bool:
    """Whether none of the servers is at a host, which may be written with a scheme."""
    return host.rpartition("/")[2] not in {base_of(target).rpartition("/")[2] for target in targets if is_url(target)}


def _is_secret(entry: ImportNote) -> bool:
    return entry.kind == "secret"


def _named_secrets(left_out: Iterable[ImportNote]) -> str:
    return ", ".join(f"{entry.why} ({integer(entry.count)})" for entry in left_out if _is_secret(entry))
