"""Texts of a request: its method, path and headers, with placeholders."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from redline.errors import WrongValueError
from redline.model.template import malformed
from redline.quantities import clip
from redline.schema.types import BY_FORM, LIST, PLAIN

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token, RFC 9110 section 5.6.2
_FRAMING_HEADERS = {"content-length", "transfer-encoding"}
_CONNECTION_HEADERS = {"connection", "keep-alive", "proxy-connection", "te", "upgrade"}


def http2_forbids(name: str, value: object) -> bool:
    """Whether HTTP/2 forbids a header (RFC 9113, section 8.2.2)."""
    return name.lower() in _CONNECTION_HEADERS and (name.lower(), value) != ("te", "trailers")


def check_placeholders(value: str) -> str:
    """The text, if its placeholders can be filled in. Raises WrongValueError."""
    wrong = malformed(value)
    if wrong is not None:
        raise WrongValueError(
            f"`{clip(wrong)}` cannot be filled in",
            "write {seq}, {rand:1..100}, {pick:file.txt} or {traceparent:1%}, in a journey also {take:NAME} or "
            "{row:COLUMN}, or double the braces",
        )
    return value


def _path(value: str) -> str:
    if not value.startswith(("/", "{take:")):
        meant = re.sub(r"^https?://[^/]*/?|^", "/", value, count=1, flags=re.IGNORECASE)
        raise WrongValueError(f"`{clip(value)}` is not a path", f"write `{clip(meant)}`")
    if not re.fullmatch(r"[!-~]+", value) or "#" in value:
        raise WrongValueError("a path has only visible ASCII characters, and no `#`", "percent-encode other characters")
    return check_placeholders(value)


def check_header_name(name: str) -> str:
    """Check the name of a request's header. Raises WrongValueError."""
    if not _HEADER_NAME.fullmatch(name):
        raise WrongValueError(
            f"`{clip(name)}` is not a header name", "use letters, digits and - (RFC 9110, section 5.6.2)"
        )
    if name.lower() in _FRAMING_HEADERS:
        in_chunks = name.lower() == "transfer-encoding"
        hint = "remove it; `chunked: true` beside a body sends that in chunks" if in_chunks else "remove it"
        raise WrongValueError(f"the engine sets `{name}`", hint)
    if name.lower() == "expect":
        hint = "remove it; `expect_continue: 1s` beside a body asks by `Expect: 100-continue`, and waits for the answer"
        raise WrongValueError(f"a body is sent at once, and does not wait for what `{name}` asks for", hint)
    return name


def _headers(headers: dict[str, object]) -> dict[str, object]:
    """Check that a request asks at most to close the connection, which is its last then."""
    for name, value in headers.items():
        if name.lower() == "connection" and value != "close":
            raise WrongValueError(f"the engine sets `{name}`", "remove it, or write `close`", field=name)
    return headers


def check_header_text(text: str) -> str:
    """Check a header's value, which may have placeholders. Raises WrongValueError."""
    if not re.fullmatch(r"[\t -~]*", text) or text != text.strip():
        raise WrongValueError("a header's value is one line of ASCII", "remove control characters and outer spaces")
    return check_placeholders(text)


def _token(name: str) -> str:
    """Check the name of a header of an answer, or of a cookie, which are tokens. Raises WrongValueError."""
    if not _HEADER_NAME.fullmatch(name):
        raise WrongValueError(
            f"`{clip(name)}` is not such a name", "use letters, digits and - (RFC 9110, section 5.6.2)"
        )
    return name


def _method(text: str) -> str:
    if not re.fullmatch(r"[A-Z]+", text):
        raise WrongValueError(f"`{clip(text)}` is not a method", "write capital letters alone, such as `PURGE`")
    if text == "CONNECT":
        raise WrongValueError("CONNECT opens a tunnel, which the engine does not support", "use another, such as `GET`")
    return text


HeaderText = Annotated[str, AfterValidator(check_header_text)]
HeaderTexts = Annotated[list[HeaderText], Field(min_length=1)]


HeaderItem = Annotated[Annotated[HeaderText, PLAIN] | Annotated[HeaderTexts, LIST], BY_FORM]
Headers = Annotated[dict[Annotated[str, AfterValidator(check_header_name)], HeaderItem], AfterValidator(_headers)]
PathText = Annotated[
    str, AfterValidator(_path), WithJsonSchema({"type": "string", "pattern": '^(/|[{]take:)[!"$-~]*$'})
]
MethodText = Annotated[str, AfterValidator(_method)]
TokenText = Annotated[str, AfterValidator(_token)]
