"""Vegeta targets: its text format, and JSON lines. Pure."""

import base64
import re

from redline.extras.importing.gathering import Gathering, ImportedRequest
from redline.suite.request_source import Broken, RequestSource, member, read_json, text_at, without_comments

_TARGET = re.compile(r"([A-Z]+)\s+(\S+)")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
_HINT = "write targets as Vegeta does: `GET http://127.0.0.1:8080/items`, then its headers, then @body.json"
_KEYS = frozenset({"method", "url", "header", "body"})


def is_target(line: str) -> bool:
    """Whether a line begins a target of Vegeta's text format."""
    match = _TARGET.fullmatch(line.strip())
    return match is not None and match[2].lower().startswith(("http://", "https://"))


def is_json_target(line: str) -> bool:
    """Whether this is a target of Vegeta's JSON format."""
    entry = read_json(line) if line.startswith("{") else None
    return isinstance(entry, dict) and {"method", "url"} <= set(entry) <= _KEYS


def read_targets(source: RequestSource, into: Gathering) -> None:
    """Read targets: a line with method and URL, headers, and `@FILE` for a body. Raises UsageError at a line."""
    asked, url = None, ""
    for number, written in without_comments(source.lines()):
        line = written.strip()
        if not line:
            continue
        if is_target(line):
            if asked is not None:
                into.add_url(asked, url)
            method, url = line.split(maxsplit=1)
            asked = ImportedRequest(method, "")
        elif asked is None:
            raise source.wrong("this is not a target", _HINT, number)
        elif line.startswith("@"):
            if asked.body_file is not None:
                raise source.wrong("this target has a second body", "leave out a body", number)
            source.check_body(line[1:], number)
            asked = asked._replace(body_file=line[1:])
        elif (header := _HEADER.fullmatch(line)) is not None:
            asked = asked._replace(headers=(*asked.headers, (header[1], header[2])))
        else:
            raise source.wrong("this is neither a target, a header nor a body", _HINT, number)
    if asked is not None:
        into.add_url(asked, url)


def read_json_targets(source: RequestSource, into: Gathering) -> None:
    """Read targets of JSON, whose bodies are base64. Raises UsageError at a line."""
    for number, line in source.lines():
        if not line.strip():
            continue
        entry = read_json(line)
        if isinstance(entry, Broken):
            raise source.wrong(f"this is not JSON: {entry.why}", "write one target per line", number, entry.column)
        method, url = text_at(entry, "method"), text_at(entry, "url")
        if not method or not url:
            missing = "url" if method else "method"
            raise source.wrong(f"`{missing}` is missing", "each target has a method and a URL", number, field=missing)
        headers = member(entry, "header") or {}
        if not isinstance(headers, dict) or not all(isinstance(texts, list) for texts in headers.values()):
            raise source.wrong("`header` must map to lists", 'write it like {"A": ["b"]}', number, field="header")
        pairs = tuple((name, text) for name, texts in headers.items() for text in texts if isinstance(text, str))
        body = _decoded(text_at(entry, "body"), number, source)
        if body is None:
            into.leave_out("whose body is not text", f"{method} {url.partition('?')[0]}")
            continue
        into.add_url(ImportedRequest(method, "", headers=pairs, body=body or None), url)


def _decoded(text: str, number: int, source: RequestSource) -> str | None:
    """The text of a body in base64; None if it is not text."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except UnicodeDecodeError:
        return None
    except ValueError:
        hint = "encode it as `vegeta attack -format=json` expects"
        raise source.wrong("`body` is not base64", hint, number, field="body") from None
