"""The parts of a multipart form in a recording: fields, and files whose content it may lack. Pure."""

import re
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import NamedTuple

from redline.errors import UsageError
from redline.model.template import as_literal
from redline.schema.document import Plain
from redline.schema.multipart import MULTIPART
from redline.suite.request_source import member, text_at
from redline.suite.secret_names import has_token, is_secret_name

_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,200})"|([^;\s"]{1,200}))', re.IGNORECASE)
_DISPOSITION = re.compile(r"content-disposition:\s*form-data\s*;(.*)", re.IGNORECASE)
_TYPE = re.compile(r"content-type:\s*(\S.*?)\s*", re.IGNORECASE)
_SETTING = re.compile(r'(?:^|[;\s])(name|filename)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"%22": '"', "%0D": "\r", "%0A": "\n", '\\"': '"'}


class FormPartOfFile(NamedTuple):
    """A part of a form: its text, or the name of a file beside the recording that has its content."""

    name: str
    text: str | None = None
    file: str | None = None
    filename: str | None = None
    kind: str | None = None


@dataclass(frozen=True)
class LackedFileError(Exception):
    """A recording lacks the content of this file, and there is no such file beside it."""

    name: str


def parts_of(posted: object, read: Callable[[str], bytes]) -> tuple[FormPartOfFile, ...]:
    """The parts that `postData` of a HAR describes; none if it does not describe them.

    `read` reads a file beside the recording. Raises LackedFileError.
    """
    kind = text_at(posted, "mimeType")
    if kind.partition(";")[0].strip().lower() != MULTIPART:
        return ()
    found = _in_text(text_at(posted, "text"), kind) or _in_params(posted)
    return tuple(part if part.filename is None else _with_content(part, read) for part in found)


def _in_text(text: str, kind: str) -> list[FormPartOfFile]:
    """The parts of a body that was recorded as it was sent; none if it is no form."""
    boundary = _BOUNDARY.search(kind)
    if boundary is None:
        return []
    # Some recorders write line feeds alone; in a content they stay as they are.
    pieces = re.split(rf"(?:\A|\r?\n)--{re.escape(boundary[1] or boundary[2])}(?=\r?\n|--)", text)
    if len(pieces) < 3 or pieces[0].strip() or not pieces[-1].startswith("--"):
        return []
    parts = list[FormPartOfFile]()
    for piece in pieces[1:-1]:
        head, *contents = re.split(r"\r?\n\r?\n", piece, maxsplit=1)
        lines = head.splitlines()
        disposition = next(filter(None, map(_DISPOSITION.fullmatch, lines)), None)
        settings = dict(_SETTING.findall(disposition[1])) if disposition else {}
        if not contents or not settings.get("name"):
            return []
        written = next(filter(None, map(_TYPE.fullmatch, lines)), None)
        name, filename = (None if word is None else _plain(word) for word in map(settings.get, ("name", "filename")))
        parts.append(FormPartOfFile(name or "", contents[0], None, filename, written[1] if written else None))
    return parts


def _plain(text: str) -> str:
    for escape, character in _ESCAPES.items():
        text = text.replace(escape, character)
    return text


def _in_params(posted: object) -> list[FormPartOfFile]:
    """The parts that a recorder wrote as `params`."""
    written = member(posted, "params")
    parts = list[FormPartOfFile]()
    for entry in written if isinstance(written, list) else []:
        file, kind = text_at(entry, "fileName") or None, text_at(entry, "contentType") or None
        if name := text_at(entry, "name"):
            parts.append(FormPartOfFile(name, text_at(entry, "value"), None, file, kind))
    return parts


def _with_content(part: FormPartOfFile, read: Callable[[str], bytes]) -> FormPartOfFile:
    """The part of a file: with the file beside the recording, or else with its recorded text.

    Browsers record no content of a file, or its bytes as other characters: only ASCII is certain.
    """
    file = re.split(r"[\\/]", part.filename or "")[-1]
    try:
        read(file)
    except UsageError:
        if part.text and part.text.isascii() and "\0" not in part.text:
            return part
        raise LackedFileError(file or part.name) from None
    return FormPartOfFile(part.name, None, file, part.filename, part.kind)


def secret_in_parts(parts: tuple[FormPartOfFile, ...], keep: Container[str]) -> str | None:
    """The name of the first part that holds a secret; None if there is none."""
    secret = (part.name for part in parts if is_secret_name(part.name) or has_token(part.text or ""))
    return next((name for name in secret if name.lower() not in keep), None)


def written_parts(parts: tuple[FormPartOfFile, ...]) -> list[Plain]:
    """The parts as a list of requests has them."""
    return [written_part(part, as_literal(part.text or "")) for part in parts]


def written_part(part: FormPartOfFile, template: str) -> dict[str, Plain]:
    """A part with the template of its text, which does not matter where it is a file."""
    named = part.filename if part.filename != part.file else None
    settings = {
        "name": as_literal(part.name),
        **({"text": template} if part.file is None else {"file": part.file}),
        "type": part.kind,
        "filename": None if named is None else as_literal(named),
    }
    return {key: value for key, value in settings.items() if value is not None}
