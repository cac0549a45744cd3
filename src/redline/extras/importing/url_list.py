"""Lists of URLs or paths, one per line, as oha and siege read them. Pure."""

import re

from redline.extras.importing.gathering import Gathering, ImportedRequest
from redline.suite.request_source import RequestSource, without_comments

_LINE = re.compile(r"(https?://\S+|/\S*)(?:\s+POST(?:\s+(.*))?)?", re.IGNORECASE)
_FORM = "application/x-www-form-urlencoded"


def is_url_line(line: str) -> bool:
    """Whether a line is a URL or a path, alone or with a body as siege writes it."""
    return _LINE.fullmatch(line.strip()) is not None


def read_urls(source: RequestSource, into: Gathering) -> None:
    """Read URLs and paths; `URL POST TEXT` and `URL POST <FILE` have a body, of a form. Raises UsageError at a line."""
    for number, written in without_comments(source.lines()):
        line = written.strip()
        if not line:
            continue
        match = _LINE.fullmatch(line)
        if "$(" in line or re.match(r"\w+\s*=", line):
            raise source.wrong("this is a variable of siege", "write its value into the URLs, and leave it out", number)
        if match is None:
            hint = "write one URL per line, such as http://127.0.0.1:8080/items, or a path, such as /items"
            raise source.wrong("this is not a URL", hint, number)
        asked = _request_of(line, match[2], number, source)
        if match[1].startswith("/"):
            into.add(asked._replace(target=match[1]))
        else:
            into.add_url(asked, match[1])


def _request_of(line: str, body: str | None, number: int, source: RequestSource) -> ImportedRequest:
    """A request without its target; `body` is the text behind POST."""
    if not re.search(r"\sPOST(?:\s|$)", line, re.IGNORECASE):
        return ImportedRequest("GET", "")
    asked = ImportedRequest("POST", "", headers=(("Content-Type", _FORM),))
    if body is None or not body.startswith("<"):
        return asked._replace(body=body)
    name = body.removeprefix("<").strip()
    source.check_body(name, number)
    return asked._replace(body_file=name)
