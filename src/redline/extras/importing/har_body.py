"""The bodies of requests and answers in a HAR, and what the recorder left out of them. Pure."""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote_plus

from redline.extras.importing.form_parts import FormPartOfFile, LackedFileError, parts_of
from redline.quantities import clip
from redline.schema.multipart import MULTIPART
from redline.suite.request_source import member, text_at

_FORM = "application/x-www-form-urlencoded"
_NOT_RECORDED = "whose body was not recorded"
_NOT_TEXT = "whose body is not text"
_NO_FILE = "that upload a file which is not recorded: save it beside the recording"
_HEAD = re.compile(r"(?:[A-Za-z-]+:[^\r\n]*\r?\n)+\r?\n")
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"})


@dataclass(frozen=True)
class IncompleteBodyError(Exception):
    """A body that cannot be sent as it was: `why` completes `requests …`, and `what` names the part that lacks."""

    why: str
    what: str = ""


def headers_of(request: object) -> tuple[tuple[str, str], ...]:
    """The headers of a recorded request or answer that have names."""
    written = member(request, "headers")
    if isinstance(written, dict):  # as some recorders write them
        written = [{"name": name, "value": value} for name, value in written.items()]
    entries = written if isinstance(written, list) else []
    pairs = [(text_at(entry, "name"), text_at(entry, "value")) for entry in entries]
    return tuple((name, value) for name, value in pairs if name)


def body_of(request: object, read: Callable[[str], bytes]) -> tuple[str | None, tuple[FormPartOfFile, ...]]:
    """The text of a request's body, or the parts of its form; `read` reads a file beside the recording.

    Raises IncompleteBodyError for a body that is not recorded, or not as it was sent.
    """
    posted = member(request, "postData")
    sizes = _Sizes.of(request)
    text, kind = _decoded(posted), text_at(posted, "mimeType") or sizes.content_type
    text = _without_head(text, sizes)
    if kind.partition(";")[0].strip().lower() == MULTIPART:
        return None, _parts({"params": member(posted, "params"), "mimeType": kind, "text": text}, text, sizes, read)
    if text:
        sizes.check(text)
        if kind.startswith("multipart/") or "\ufffd" in text:
            raise IncompleteBodyError(_NOT_TEXT)
        return text, ()
    parameters = member(posted, "params")
    if isinstance(parameters, list) and parameters and kind.startswith(_FORM):
        pairs = [(text_at(entry, "name"), text_at(entry, "value")) for entry in parameters]
        return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs), ()
    if sizes.had_body(posted, text_at(request, "method").upper(), kind):
        raise IncompleteBodyError(_NOT_RECORDED)
    return None, ()


def answer_of(response: object) -> tuple[str, bool]:
    """The text of an answer, and whether the recording lacks it."""
    content = member(response, "content")
    try:
        text = _decoded(content)
    except IncompleteBodyError:  # pictures, fonts
        return "", False
    size = member(content, "size")
    is_known_empty = size == 0 or (size is None and isinstance(content, dict) and "text" in content)
    return text, not text and not is_known_empty


def _decoded(content: object) -> str:
    """The text of a body, which may be written in base64. Raises IncompleteBodyError for other bytes."""
    text = text_at(content, "text")
    if text_at(content, "encoding").lower() != "base64" or not text:
        return text
    try:
        return base64.b64decode(re.sub(r"\s", "", text), validate=True).decode()
    except (binascii.Error, ValueError):
        raise IncompleteBodyError(_NOT_TEXT) from None


def _parts(posted: object, text: str, sizes: "_Sizes", read: Callable[[str], bytes]) -> tuple[FormPartOfFile, ...]:
    try:
        parts = parts_of(posted, read)
    except LackedFileError as lacked:
        raise IncompleteBodyError(_NO_FILE, clip(lacked.name)) from None
    if text and not any(part.file for part in parts):
        sizes.check(text)
    if not parts:
        raise IncompleteBodyError(_NOT_RECORDED)
    return parts


def _without_head(text: str, sizes: "_Sizes") -> str:
    """The body behind the head that Firefox has recorded with it."""
    head = _HEAD.match(text)
    return text[head.end() :] if head and sizes.length == len(_bytes(text[head.end() :])) else text


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


@dataclass(frozen=True)
class _Sizes:
    """What a recorded request says of its body: `length` as Content-Length, `recorded` as `bodySize`."""

    length: int | None
    recorded: int
    is_chunked: bool
    content_type: str

    @classmethod
    def of(cls, request: object) -> "_Sizes":
        headers = {name.lower(): value.strip() for name, value in headers_of(request)}
        length, size = headers.get("content-length", ""), member(request, "bodySize")
        return cls(
            int(length) if re.fullmatch(r"[0-9]{1,15}", length) else None,
            size if isinstance(size, int) else -1,
            "transfer-encoding" in headers,
            headers.get("content-type", ""),
        )

    def check(self, text: str) -> None:
        """Check that a text is all of the body. Raises IncompleteBodyError."""
        count = len(_bytes(text))
        if (self.length is not None and count != self.length) or count < self.recorded:
            raise IncompleteBodyError("whose body was recorded only in part, or otherwise than it was sent")

    def had_body(self, posted: object, method: str, kind: str) -> bool:
        """Whether a request without a recorded body had one."""
        if self.length is not None:
            return self.length > 0
        if self.recorded >= 0:
            return self.recorded > 0
        return self.is_chunked or (bool(kind) and bool(posted or self.content_type) and method not in _WITHOUT_BODY)
