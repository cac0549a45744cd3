"""Recognize the tool that wrote a file, and read its results, for `redline history` and `redline report`."""

import gzip
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeAlias

from redline.errors import NotStoredError, StoreError
from redline.extras.peers.outputs import h2load, hey, k6, oha, redline, vegeta, wrk
from redline.extras.peers.outputs.reading import PeerOutput, json_objects
from redline.files import open_regular
from redline.model import Percentile
from redline.model.history import OtherResult

Document: TypeAlias = Mapping[str, Any]

_MOST_CHARACTERS = 64 << 20
"""The longest file that is read whole, and the longest line; samples of k6 may be longer."""

_CLOSED = (
    "how long requests wait while the server stalls: if each connection waits for its answer, times begin"
    " when a request is sent"
)
_FROM_THE_SEND = "how late a request was sent: its time begins at the send"
_NO_URL = "the URL and the load: files of one folder are taken for the same"
_ANY_STATUS = "the rate of right answers: its rate counts answers of any status"
_READ = (
    "history and report read the text of wrk, wrk2, hey and h2load, and the JSON of oha (--output-format json),"
    " vegeta (report -type=json), k6 (--summary-export, --out json) and Redline (results.json, load --json)"
)


@dataclass(frozen=True)
class _Text:
    """A text for people. `runs` counts how many results it holds."""

    tool: str
    knows: Callable[[str], bool]
    read: Callable[[str], PeerOutput]
    runs: Callable[[str], int]
    unsaid: tuple[str, ...]


@dataclass(frozen=True)
class _Json:
    """A JSON object. `unsaid` is what the output does not report, like all that its tool writes in this form."""

    tool: str
    knows: Callable[[Document], bool]
    read: Callable[[str], PeerOutput]
    unsaid: tuple[str, ...]


_TEXTS = (
    _Text("wrk2", wrk.knows_wrk2, wrk.read, wrk.runs, ("the requested rate", _ANY_STATUS)),
    _Text("wrk", wrk.knows, wrk.read, wrk.runs, (_CLOSED, _ANY_STATUS)),
    _Text("hey", hey.knows, hey.read, hey.runs, (_NO_URL, _CLOSED)),
    _Text(
        "h2load",
        h2load.knows,
        h2load.read,
        h2load.runs,
        ("the URL: files of one folder are taken for the same", _CLOSED, _ANY_STATUS),
    ),
)
_JSON = (
    _Json(
        "oha",
        oha.knows,
        oha.read,
        (_NO_URL, _CLOSED, "whether times were corrected (--latency-correction)", _ANY_STATUS),
    ),
    _Json(
        "vegeta",
        vegeta.knows,
        vegeta.read,
        ("the URL: files of one folder are taken for the same", _FROM_THE_SEND),
    ),
    _Json(
        "k6",
        k6.knows,
        k6.read,
        (_NO_URL, _FROM_THE_SEND, "the rate and the times of right answers: failed requests count too"),
    ),
)
_SAMPLES = ("the load", _FROM_THE_SEND, "the rate and the times of right answers: failed requests count too")
_OWN = ("the trials or starts of its cells: only a run's folder has them, and changes are judged there",)


def read_results(file: Path) -> tuple[OtherResult, ...]:
    """Read the results in a tool's file. Raises StoreError, or NotStoredError if it is no such file.

    There is at least one result, with a time or a rate.
    """
    try:
        with open_regular(file) as opened, _as_text(opened) as lines:
            results = tuple(_results(file, lines))
    except OSError as error:
        hint = "see whether it is there, and who may read it"
        raise StoreError(f"{file} cannot be read: {error.strerror or error}", hint=hint) from None
    if not any(result.rate_per_s is not None or result.response for result in results):
        raise NotStoredError(
            f"{file} has no rate and no times",
            hint="it is cut short, or all its requests failed, or it has ratios alone; measure again",
        )
    return results


@contextmanager
def _as_text(opened: BinaryIO) -> Iterator[TextIO]:
    """Open a file as text, decompressed if it begins like gzip."""
    packed = opened.read(2) == b"\x1f\x8b"
    opened.seek(0)
    with TextIOWrapper(gzip.GzipFile(fileobj=opened) if packed else opened, encoding="utf-8", errors="replace") as text:
        yield text


def _results(file: Path, lines: TextIO) -> Iterator[OtherResult]:
    try:
        first = next((text for text in iter(lambda: lines.readline(_MOST_CHARACTERS), "") if text.strip()), "")
        if k6.knows_sample(_parsed(first)):
            yield _result(file, "k6", k6.read_samples(itertools.chain((first,), lines)), _SAMPLES)
            return
        text = first + lines.read(_MOST_CHARACTERS)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise NotStoredError(f"{file} is damaged: {error}", hint="copy it again") from None
    except ValueError as error:  # says the line, counted from the first that is not empty
        raise NotStoredError(f"{file}: {error}", hint="it is cut short or mixed with other output") from None
    if not text:
        raise NotStoredError(f"{file} is empty", hint=_READ)
    if len(text) >= _MOST_CHARACTERS:
        raise NotStoredError(f"{file} has more than 64 MiB", hint=_READ)
    yield from _known(file, text)


def _known(file: Path, text: str) -> Iterator[OtherResult]:
    """Yield the results of a text, read by the first tool that recognizes it."""
    for form in _TEXTS:
        if form.knows(text):
            _check_single(file, form.tool, form.runs(text))
            yield _result(file, form.tool, form.read(text), form.unsaid)
            return
    documents = json_objects(text)
    for kind in _JSON:
        if runs := sum(map(kind.knows, documents)):
            _check_single(file, kind.tool, runs)
            yield _result(file, kind.tool, kind.read(text), kind.unsaid)
            return
    for document in documents:
        if redline.knows(document):
            yield from (_result(file, "redline", output, _OWN) for output in redline.read(document))
            return
    raise NotStoredError(f"{file} holds no result that Redline knows", hint=_READ)


def _check_single(file: Path, tool: str, runs: int) -> None:
    if runs > 1:
        raise NotStoredError(f"{file} holds {runs} results of {tool}", hint="write every result to a file of its own")


def _parsed(text: str) -> Document:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _result(file: Path, tool: str, output: PeerOutput, unsaid: Iterable[str]) -> OtherResult:
    return OtherResult(
        file=str(file),
        tool=tool,
        url=output.url,
        load=output.load,
        started_unix_ns=output.started_unix_ns,
        rate_per_s=output.rate_per_s,
        requests=output.requests,
        failed=output.failed,
        response=tuple(Percentile(q=q, ns=round(ns)) for q, ns in sorted(output.latencies_ns.items())),
        unsaid=tuple(unsaid),
    )
