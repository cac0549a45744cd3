"""Read the forms of curl's -F, and build their body. Pure."""

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

from redline.errors import UsageError
from redline.quantities import clip
from redline.schema.multipart import (
    OTHER_TYPE,
    FormPart,
    boundary_of,
    content_type,
    form_part,
    joined_texts,
    text_in,
    type_by_name,
)

OPTIONS = {"form": "-F --form", "string": "--form-string"}
"""The options by the kind of their parts: `--form-string` takes its value as it is."""
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?=;|$)', re.DOTALL)
_PLAIN = re.compile(r"[^;]*")
_BY_HAND = (
    "save the whole body in a file, and give it as --data-binary @FILE,"
    " with -H 'Content-Type: multipart/form-data; boundary=…'"
)


def build_form(parts: Sequence[tuple[str, str]], read: Callable[[str], bytes]) -> tuple[str, str]:
    """Return the body, and its content type with the boundary.

    `parts` are values with the kinds of `OPTIONS`; `read` reads the files that they name. Raises UsageError.
    """
    made = [_part(text, read, is_string=kind == "string") for kind, text in parts]
    boundary = boundary_of(made)
    return joined_texts(made, boundary), content_type(boundary)


def _part(text: str, read: Callable[[str], bytes], *, is_string: bool) -> FormPart:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"curl -F {clip(text)!r} has no value", hint="write it like -F 'name=text' or -F 'name=@file'")
    if is_string:
        return form_part(name, value)
    sign = value[:1] if value[:1] in {"@", "<"} else ""
    if value.startswith("("):
        raise UsageError(f"curl -F {clip(text)!r}: nested parts have no counterpart here", hint=_BY_HAND)
    content, settings = _settings(value.removeprefix(sign), text)
    kind, file_name = settings.get("type"), settings.get("filename")
    if not sign:
        return form_part(name, content, file_name, kind or (type_by_name(file_name) if file_name else None))
    if "," in content:
        raise UsageError(f"curl -F {clip(text)!r}: several files have no counterpart here", hint=_BY_HAND)
    if content == "-":
        raise UsageError(f"curl -F {clip(text)!r}: this is the standard input", hint="save it in a file, and name that")
    if sign == "@":
        file_name = PurePath(content).name if file_name is None else file_name
        kind = kind or type_by_name(file_name) or type_by_name(content) or OTHER_TYPE
    elif kind is None and (kind := type_by_name(content)) == "text/plain":
        kind = None  # the default of a part without a file name
    return form_part(name, _text_in(content, read), file_name, kind)


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


def _text_in(file: str, read: Callable[[str], bytes]) -> str:
    """The text of a file. Raises UsageError if it is not UTF-8."""
    if (text := text_in(read(file))) is not None:
        return text
    hint = "write the request into a list of requests, with multipart: [{name: photo, file: photo.png}]"
    raise UsageError(f"curl -F: {file} is not text, and what a command becomes holds only text", hint=hint)
