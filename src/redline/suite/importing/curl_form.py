"""Build the body of curl's -F, multipart/form-data (RFC 7578), as curl 8 does. Pure.

The boundary is a hash of the parts, where curl draws it: the same command always makes the same request.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from redline.errors import UsageError
from redline.quantities import clip

TYPE = "multipart/form-data"
OPTIONS = {"form": "-F --form", "string": "--form-string"}
"""The options by the kind of their parts: `--form-string` takes its value as it is."""
_TYPES = {
    ".gif": "image/gif",
    ".htm": "text/html",
    ".html": "text/html",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".xml": "application/xml",
}
"""The types that curl knows by the ends of files' names."""
_OTHER_TYPE = "application/octet-stream"
_ESCAPED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
_DASHES, _DIGITS = 24, 22
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?=;|$)', re.DOTALL)
_PLAIN = re.compile(r"[^;]*")
_BY_HAND = (
    "save the whole body in a file, and give it as --data-binary @FILE,"
    " with -H 'Content-Type: multipart/form-data; boundary=…'"
)


@dataclass(frozen=True)
class _FormField:
    """A field: its disposition and type as headers, and its content."""

    head: str
    content: str


def build_form(parts: Sequence[tuple[str, str]], read: Callable[[str], bytes]) -> tuple[str, str]:
    """Return the body, and its content type with the boundary.

    `parts` are values with the kinds of `OPTIONS`; `read` reads the files that they name. Raises UsageError.
    """
    made = [_part(text, read, is_string=kind == "string") for kind, text in parts]
    drawn = hashlib.sha256(repr(made).encode(errors="surrogateescape")).hexdigest()[:_DIGITS]
    boundary = f"{'-' * _DASHES}{drawn}"
    body = "".join(f"--{boundary}\r\n{part.head}\r\n\r\n{part.content}\r\n" for part in made)
    return f"{body}--{boundary}--\r\n", f"{TYPE}; boundary={boundary}"


def _part(text: str, read: Callable[[str], bytes], *, is_string: bool) -> _FormField:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"curl -F {clip(text)!r} has no value", hint="write it like -F 'name=text' or -F 'name=@file'")
    if is_string:
        return _FormField(_head(name, None, None), value)
    sign = value[:1] if value[:1] in {"@", "<"} else ""
    if value.startswith("("):
        raise UsageError(f"curl -F {clip(text)!r}: nested parts have no counterpart here", hint=_BY_HAND)
    content, settings = _settings(value.removeprefix(sign), text)
    kind, file_name = settings.get("type"), settings.get("filename")
    if not sign:
        return _FormField(_head(name, file_name, kind or (_type_of(file_name) if file_name else None)), content)
    if "," in content:
        raise UsageError(f"curl -F {clip(text)!r}: several files have no counterpart here", hint=_BY_HAND)
    if content == "-":
        raise UsageError(f"curl -F {clip(text)!r}: this is the standard input", hint="save it in a file, and name that")
    if sign == "@":
        file_name = PurePath(content).name if file_name is None else file_name
        kind = kind or _type_of(file_name, _type_of(content, _OTHER_TYPE))
    elif kind is None and (kind := _type_of(content)) == "text/plain":
        kind = None  # the default of a part without a file name
    return _FormField(_head(name, file_name, kind), _text_in(content, read))


def _settings(value: str, text: str) -> tuple[str, dict[str, str]]:
    """Split `content;type=…;filename=…`, where quotes protect semicolons. Raises UsageError for other settings."""
    content, at = _word(value, 0)
    settings, last = dict[str, str](), ""
    while at < len(value):
        name, equals, _ = value[at + 1 :].lstrip().partition("=")
        begin = value.index("=", at) + 1 if equals else len(value)
        word, end = _word(value, begin) if equals else _word(value, at + 1)
        if equals and name in {"type", "filename"}:
            settings[name], last = word, name
        elif last == "type":  # a parameter of the type, such as charset
            settings[last] += f";{value[at + 1 : end]}"
        else:
            raise UsageError(
                f"curl -F {clip(text)!r}: `;{clip(name)}` has no counterpart here",
                hint="only `type` and `filename` are known; put a text with `;` in double quotes, or use --form-string",
            )
        at = end
    return content, settings


def _word(value: str, begin: int) -> tuple[str, int]:
    """The word that begins there, without its quotes, and where it ends: at a semicolon, or with the value."""
    if (quoted := _QUOTED.match(value, begin)) is not None:
        return re.sub(r'\\(["\\])', r"\1", quoted[1]), quoted.end()
    plain = _PLAIN.match(value, begin)
    assert plain is not None, "it matches the empty text too"
    return plain[0], plain.end()


def _head(name: str, file_name: str | None, kind: str | None) -> str:
    disposition = f'Content-Disposition: form-data; name="{name.translate(_ESCAPED)}"'
    if file_name is not None:
        disposition += f'; filename="{file_name.translate(_ESCAPED)}"'
    return f"{disposition}\r\nContent-Type: {kind}" if kind else disposition


def _type_of(file: str, otherwise: str | None = None) -> str | None:
    return _TYPES.get(PurePath(file).suffix.lower(), otherwise)


def _text_in(file: str, read: Callable[[str], bytes]) -> str:
    """The text of a file. Raises UsageError if it is not UTF-8."""
    content = read(file)
    try:
        if b"\0" not in content:
            return content.decode()
    except UnicodeDecodeError:
        pass
    raise UsageError(f"curl -F: {file} is not text, and a list of requests holds only text", hint=_BY_HAND)
