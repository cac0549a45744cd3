"""HAR 1.2: requests recorded by a browser's developer tools. Pure."""

from urllib.parse import quote_plus

from redline.quantities import clip
from redline.suite.importing.form_parts import LackedFileError, parts_of
from redline.suite.importing.gathering import Asked, Gathering, Sent
from redline.suite.importing.source import RequestSource, member, text_at
from redline.suite.importing.times import time_of

_FORM = "application/x-www-form-urlencoded"


def is_har(value: object) -> bool:
    """Whether a JSON document is a recording."""
    return isinstance(member(value, "log", "entries"), list)


def entries_of(source: RequestSource) -> list[object]:
    """The entries of a recording. Raises UsageError."""
    value = source.json()
    if not is_har(value):
        raise source.wrong("`log.entries` is missing", "export the recording again, as HAR", field="log.entries")
    entries: list[object] = value["log"]["entries"]
    return entries


def read_har(source: RequestSource, into: Gathering) -> None:
    """Read the requests of a recording. Raises UsageError."""
    for at, entry in enumerate(entries_of(source)):
        request = member(entry, "request")
        url, method = text_at(request, "url"), text_at(request, "method")
        if not url or not method:
            missing = "method" if url else "url"
            field = f"log.entries[{at}].request.{missing}"
            raise source.wrong(f"`{missing}` is missing", "export the recording again, as HAR", field=field)
        example = f"{method} {url.partition('?')[0]}"
        # Browsers record the status 0 for a request that was blocked or cancelled.
        status = member(entry, "response", "status")
        if text_at(entry, "_fromCache") or member(entry, "response", "_fromCache"):
            into.leave_out("answered by the browser's cache", example)
            continue
        try:
            parts = parts_of(member(request, "postData"), source.body)
        except LackedFileError as lacked:
            why = "that upload a file which is not recorded: save it beside the recording"
            into.leave_out(why, f"{clip(lacked.name)} of {example}")
            continue
        body, is_text = (None, True) if parts else body_of(request)
        if not is_text:
            into.leave_out("whose body is not text", example)
            continue
        known = status if isinstance(status, int) and not isinstance(status, bool) else None
        at_ns = time_of(text_at(entry, "startedDateTime")) if into.wanted.times else None
        times = () if at_ns is None else (Sent(at_ns, len(into.times)),)
        asked = Asked(method, "", headers=headers_of(request), body=body, status=known, parts=parts)
        into.add_url(asked, url, times)


def headers_of(request: object) -> tuple[tuple[str, str], ...]:
    """The headers of a recorded request or answer that have names."""
    written = member(request, "headers")
    if isinstance(written, dict):  # as some recorders write them
        written = [{"name": name, "value": value} for name, value in written.items()]
    entries = written if isinstance(written, list) else []
    pairs = [(text_at(entry, "name"), text_at(entry, "value")) for entry in entries]
    return tuple((name, value) for name, value in pairs if name)


def body_of(request: object) -> tuple[str | None, bool]:
    """The body, if any, and whether it is text. Browsers do not record the content of an upload."""
    posted = member(request, "postData")
    if not isinstance(posted, dict) or not posted:
        return None, True
    kind, text = text_at(posted, "mimeType"), text_at(posted, "text")
    parameters = member(posted, "params")
    if text_at(posted, "encoding") == "base64" or kind.startswith("multipart/"):
        return None, False
    if not text and isinstance(parameters, list) and kind.startswith(_FORM):
        pairs = [(text_at(entry, "name"), text_at(entry, "value")) for entry in parameters]
        text = "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs)
    return text or None, "\ufffd" not in text
