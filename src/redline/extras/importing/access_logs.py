"""Access logs: the requests of their lines, counted, with their times. Pure.

A log has neither headers nor bodies, so only requests that need none are imported: GET, HEAD and OPTIONS.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from redline.extras.importing.gathering import Gathering, ImportedRequest, Sent
from redline.extras.importing.hosts import one_name_each
from redline.extras.importing.log_forms import FORMS, in_w3c, read_line
from redline.extras.importing.log_line import Logged, LogLine
from redline.quantities import clip
from redline.suite.request_source import RequestSource
from redline.suite.secret_names import without_secrets
from redline.suite.validate.referenced_files import MOST_TIMES

MOST_DIFFERENT = 100_000
"""The most different requests that are counted. This bounds the memory, however long the log is."""
FIELDS_OF_W3C = "#Fields:"
_DIRECTIVE = re.compile(r"#[A-Z][A-Za-z-]+:")
"""What the W3C format says of a log; not a line of it."""
_REQUEST = re.compile(r"([A-Z]+) (\S+)(?: (?:HTTP/)?\d(?:\.\d)?)?")
_URL = re.compile(r"[a-z]+://([^/?#]*)(.*)", re.IGNORECASE)
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
_NO_TIME = "without a time from 2000 to 2199 that can be read"


def form_of(line: str) -> str | None:
    """The name of the form of a log's line; None for any other line."""
    seen, form = read_line(line)
    return None if seen is None else form.name


def is_json_log(line: str) -> bool:
    """Whether this is a line of JSON that has a request."""
    return form_of(line) == "json-log"


def read_log(source: RequestSource, into: Gathering) -> None:
    """Read a log, whose lines may be of several forms. Raises UsageError if no line has a time and times are wanted."""
    counts: Counter[Logged] = Counter()
    times = defaultdict[Logged, list[Sent]](list)
    timed = untimed = 0
    for number, logged, began_ns in _logged(source.lines(), into):
        place = f"line {number}"
        if into.wanted.times and began_ns is None:
            into.leave_out(_NO_TIME, place)
            untimed += 1
        elif timed == MOST_TIMES:
            into.leave_out(f"after the first {MOST_TIMES:,} times", place)
        elif logged not in counts and len(counts) == MOST_DIFFERENT:
            into.leave_out(f"after the first {MOST_DIFFERENT:,} different requests", place)
        else:
            counts[logged] += 1
            if into.wanted.times and began_ns is not None:
                times[logged].append(Sent(began_ns, number))
                timed += 1
    if untimed and not timed:
        raise source.timeless()
    asked = {logged: known for logged, count in counts.items() if (known := _request_of(logged, count, into))}
    hosts = Counter[str]()
    for logged, known in asked.items():
        hosts[known.host] += counts[logged]
    names = one_name_each(hosts)
    for logged, known in asked.items():
        into.add(known._replace(host=names[known.host]), counts[logged], times[logged])


def _logged(lines: Iterable[tuple[int, str]], into: Gathering) -> Iterator[tuple[int, Logged, int | None]]:
    """The requests of the lines, without secrets, and when they began, if wanted. Every other line is left out."""
    for number, seen in _read(lines):
        if seen is None:
            into.leave_out("lines of another form", f"line {number}")
            continue
        logged = seen.logged
        if "?" in logged.request:  # a token that no two requests share would make all of them different
            logged = _without_secrets(logged, into)
        yield number, logged, seen.began_ns if into.wanted.times else None


def _read(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, LogLine | None]]:
    """The lines that are not empty. Lines of one form stand together, so the last form is tried first."""
    form, fields = FORMS[0], list[str]()
    for number, line in lines:
        if line.startswith("#") and _DIRECTIVE.match(line):
            fields = line.removeprefix(FIELDS_OF_W3C).split() if line.startswith(FIELDS_OF_W3C) else fields
        elif not line or line.isspace():
            continue
        elif fields:
            yield number, in_w3c(fields, line)
        else:
            seen, form = read_line(line, form)
            yield number, seen


def _without_secrets(logged: Logged, into: Gathering) -> Logged:
    request, names = without_secrets(logged.request, into.wanted.keep)
    for name in names:
        into.leave_out(f"the parameter `{clip(name)}`", request.partition("?")[0], kind="secret")
    return logged._replace(request=request) if names else logged


def _request_of(logged: Logged, count: int, into: Gathering) -> ImportedRequest | None:
    """The request of lines that are alike; None after leaving them out."""
    match = _REQUEST.fullmatch(logged.request)
    if match is None:
        into.leave_out("that are not HTTP requests", logged.request[:60], count)
        return None
    method, target = match[1], match[2]
    example = f"{method} {target.partition('?')[0]}"
    if method not in _WITHOUT_BODY:
        into.leave_out(f"{method}: a log has no bodies", target.partition("?")[0], count)
        return None
    if logged.left_out:
        into.leave_out(logged.left_out, example, count)
        return None
    if logged.signed_in:
        into.leave_out("the header Authorization", example, count, kind="secret")
    if logged.status == "206":
        into.leave_out("for a part of a file: a log has no header Range", example, count)
        return None
    host = logged.host
    if not target.startswith("/"):  # a request to a proxy, or `*`
        host, target = _of_a_proxy(target)
    if not target or "#" in target:
        into.leave_out("that are not for a path", logged.request, count)
        return None
    status = int(logged.status) if logged.status.isascii() and logged.status.isdecimal() else None
    return ImportedRequest(method, target, host.lower(), status=status)


def _of_a_proxy(target: str) -> tuple[str, str]:
    """The host and path of a whole URL; two empty texts for anything else."""
    match = _URL.fullmatch(target)
    if match is None or not match[1] or "@" in match[1]:
        return "", ""
    return match[1], match[2] if match[2].startswith("/") else f"/{match[2]}"
