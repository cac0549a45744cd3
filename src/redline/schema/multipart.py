"""Encode bodies of multipart/form-data (RFC 7578), as curl 8 does. Pure.

The boundary is a hash of the parts, where curl draws it: the same parts always make the same body.
"""

import hashlib
from collections.abc import Sequence
from pathlib import PurePath

from redline.lazily import dataclass

MULTIPART = "multipart/form-data"
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
OTHER_TYPE = "application/octet-stream"
"""The type of other files."""
_ESCAPED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
_DASHES, _DIGITS = 24, 22


@dataclass(frozen=True)
class FormPart:
    """A part of a form: its disposition and type as header lines, and its content, a text or bytes."""

    head: str
    content: str | bytes


def form_part(name: str, content: str | bytes, file_name: str | None = None, kind: str | None = None) -> FormPart:
    """A part with this name, and with a file name and a type if they are given."""
    disposition = f'Content-Disposition: form-data; name="{name.translate(_ESCAPED)}"'
    if file_name is not None:
        disposition += f'; filename="{file_name.translate(_ESCAPED)}"'
    return FormPart(f"{disposition}\r\nContent-Type: {kind}" if kind else disposition, content)


def type_by_name(file: str) -> str | None:
    """The type that the end of a file's name says; None if it says none."""
    return _TYPES.get(PurePath(file).suffix.lower())


def boundary_of(parts: Sequence[FormPart]) -> str:
    """The boundary of these parts."""
    drawn = hashlib.sha256()
    for piece in (piece for part in parts for piece in (part.head, part.content)):
        data = piece.encode(errors="surrogateescape") if isinstance(piece, str) else piece
        drawn.update(len(data).to_bytes(8) + data)
    return f"{'-' * _DASHES}{drawn.hexdigest()[:_DIGITS]}"


def content_type(boundary: str) -> str:
    """The value of Content-Type for parts with this boundary."""
    return f"{MULTIPART}; boundary={boundary}"


def joined_texts(parts: Sequence[FormPart], boundary: str) -> str:
    """The body of parts whose contents are all texts."""
    texts = [part.content for part in parts if isinstance(part.content, str)]
    heads = [f"--{boundary}\r\n{part.head}\r\n\r\n" for part in parts]
    body = "".join(f"{head}{text}\r\n" for head, text in zip(heads, texts, strict=True))
    return f"{body}--{boundary}--\r\n"


def joined_bytes(parts: Sequence[FormPart], boundary: str) -> bytes:
    """The body of parts with any contents."""
    contents = [part.content.encode() if isinstance(part.content, str) else part.content for part in parts]
    heads = [f"--{boundary}\r\n{part.head}\r\n\r\n".encode() for part in parts]
    body = b"".join(head + content + b"\r\n" for head, content in zip(heads, contents, strict=True))
    return body + f"--{boundary}--\r\n".encode()


def text_in(content: bytes) -> str | None:
    """The text of a file; None if it is not UTF-8, or has a NUL."""
    try:
        return None if b"\0" in content else content.decode()
    except UnicodeDecodeError:
        return None
