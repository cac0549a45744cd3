"""HAR 1.2: requests recorded by a browser's developer tools, a proxy or a test. Pure.

One reader for lists, replays and journeys: an entry is a request that was answered, or left out for a reason.
"""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from redline.extras.importing.form_parts import FormPartOfFile
from redline.extras.importing.gathering import Gathering, ImportedRequest, Sent
from redline.extras.importing.har_body import IncompleteBodyError, answer_of, body_of, headers_of
from redline.extras.importing.times import time_of
from redline.suite.request_source import RequestSource, member, text_at


class HarEntry(NamedTuple):
    """A recorded request with its answer.

    `base` is its scheme and host. `at_ns` is None without a time that can be read, `status` without a recorded answer.
    `lacks_answer`: the recorder left out the content of the answer.
    """

    method: str
    url: str
    base: str
    example: str
    headers: tuple[tuple[str, str], ...]
    body: str | None
    parts: tuple[FormPartOfFile, ...]
    body_type: str
    status: int | None
    at_ns: int | None
    took_ms: float
    resource: str
    answer_headers: tuple[tuple[str, str], ...]
    answer: str
    answer_type: str
    lacks_answer: bool


class HarLeftOut(NamedTuple):
    """An entry that is not sent: `why` completes `requests …`."""

    why: str
    example: str


def is_har(value: object) -> bool:
    """Whether a JSON document is a recording."""
    return isinstance(member(value, "log", "entries"), list)


def read_entries(source: RequestSource) -> Iterator[HarEntry | HarLeftOut]:
    """The entries of a recording, in its order: as many as it has. Raises UsageError."""
    value = source.json()
    if not is_har(value):
        raise source.wrong("`log.entries` is missing", "export the recording again, as HAR", field="log.entries")
    return (_read(entry, source) for entry in value["log"]["entries"])


def read_har(source: RequestSource, into: Gathering) -> None:
    """Read the requests of a recording. Raises UsageError."""
    for read in read_entries(source):
        if isinstance(read, HarLeftOut):
            into.leave_out(read.why, read.example)
            continue
        times = () if read.at_ns is None or not into.wanted.times else (Sent(read.at_ns, len(into.times)),)
        asked = ImportedRequest(
            read.method, "", headers=read.headers, body=read.body, status=read.status, parts=read.parts
        )
        into.add_url(asked, read.url, times)


def _read(entry: object, source: RequestSource) -> HarEntry | HarLeftOut:
    request, response = member(entry, "request"), member(entry, "response")
    url, method = text_at(request, "url"), text_at(request, "method").strip()
    bare = url.partition("?")[0]
    example = f"{method} {bare}".strip()
    if why := _unsent(entry, url, method):
        return HarLeftOut(why, bare.partition(",")[0] if why.startswith("that are not of") else example)
    try:
        body, parts = body_of(request, source.body)
    except IncompleteBodyError as incomplete:
        return HarLeftOut(incomplete.why, f"{incomplete.what} of {example}" if incomplete.what else example)
    answer, lacks_answer = answer_of(response)
    took_ms, status = member(entry, "time"), member(response, "status")
    return HarEntry(
        method,
        url,
        base_of(url),
        example,
        headers_of(request),
        body,
        parts,
        text_at(request, "postData", "mimeType").partition(";")[0].strip().lower(),
        status if isinstance(status, int) else None,
        time_of(text_at(entry, "startedDateTime")),
        took_ms if isinstance(took_ms, int | float) else 0,
        text_at(entry, "_resourceType").lower(),
        headers_of(response),
        answer,
        text_at(response, "content", "mimeType"),
        lacks_answer and isinstance(response, dict),
    )


def _unsent(entry: object, url: str, method: str) -> str:
    """Why an entry has no request that can be sent, or none that a server answered; empty if it has one."""
    status, base = member(entry, "response", "status"), base_of(url)
    known = status if isinstance(status, int) else 0
    is_alone = isinstance(entry, dict) and "response" not in entry  # as recorders of requests alone write it
    is_cached = text_at(entry, "_fromCache") or member(entry, "response", "_fromCache")
    scheme = url.partition(":")[0].lower()
    for holds, why in (
        (not url, "without a URL"),
        (not method, "without a method"),
        (scheme in {"ws", "wss"} or known == 101, "of a WebSocket"),
        (scheme not in {"http", "https"}, "that are not of http:// or https://"),
        (not base, "whose URL cannot be read"),
        (is_cached, "answered by the browser's cache"),
        # Browsers record the status 0 for a request that was blocked or cancelled, and others no answer.
        (known < 200 and not is_alone, "without an answer"),
        (known >= 400, f"answered with status {known}"),
    ):
        if holds:
            return why
    return ""


def base_of(url: str) -> str:
    """The scheme and the host of a URL; empty for a URL that cannot be read, or is not of http:// or https://."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2].lower()
    return f"{parts.scheme}://{host}" if parts.scheme in {"http", "https"} and host else ""
