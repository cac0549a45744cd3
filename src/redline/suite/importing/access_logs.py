"""Access logs: the common and combined formats of Apache and nginx, Envoy's text format, and JSON lines. Pure.

A log has neither headers nor bodies, so only requests that need none are imported: GET, HEAD and OPTIONS.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from redline.quantities import clip
from redline.suite.importing.gathering import Asked, Gathering, Sent
from redline.suite.importing.secrets import without_secrets
from redline.suite.importing.source import RequestSource, member, read_json, text_at
from redline.suite.importing.times import MOST_TIMES, NS_PER_S, is_whole, time_of

MOST_DIFFERENT = 100_000
"""The most different requests that are counted. This bounds the memory, however long the log is."""
_COMMON = re.compile(
    r'(?:\[\S*\] )?([^\["]*(?:"")?) \[(\d{1,2}/\w{3}/\d{4}:[^\]]*+)\] "([^"\\]*+(?:\\.[^"\\]*+)*+)" (\d{3})(?: |$)'
)
_ENVOY = re.compile(r'\[(\d{4}-\d\d-\d\dT[^\]]*)\] "((?:[^"\\]|\\.)*)" (\d{1,3}) ')
_ENVOY_HOST = re.compile(r'"[^"]*" "[^"]*" "(?:[0-9A-Fa-f-]{36}|-)" "([^"\s]+)" "[^"]*"')
"""The user agent before the id may be a word like a host."""
_VHOST = re.compile(r"[A-Za-z0-9_.-]+(?::\d+)?")
_REQUEST = re.compile(r"([A-Z]+) (\S+)(?: HTTP/\d(?:\.\d)?)?")
_ESCAPED = re.compile(r"\\x([0-9A-Fa-f]{2})")
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})
_REQUEST_KEYS = ("request", "requestLine", "request_line")
_METHOD_KEYS = ("request_method", "method", "RequestMethod", ":method", "http_method", "req_method", "verb")
_TARGET_KEYS = ("request_uri", "x-envoy-original-path", "path", ":path", "uri", "RequestPath", "url", "request_path")
_QUERY_KEYS = ("args", "query_string", "query")
_STATUS_KEYS = ("status", "response_code", "DownstreamStatus", "status_code", "response_status")
_HOST_KEYS = ("host", "http_host", "authority", ":authority", "RequestHost", "server_name")
_START_KEYS = ("start_time", "StartUTC", "StartLocal")
_END_KEYS = ("msec", "time_iso8601", "ts", "@timestamp", "timestamp", "time", "time_local")
_SECONDS_KEYS: tuple[str, ...] = ("request_time",)
_SECONDS_KEYS_OF_CADDY: tuple[str, ...] = ("request_time", "duration")
"""Others write a `duration` in milliseconds."""
_NOBODY = frozenset({"-", '""'})
_DOCKER_KEYS = frozenset({"log", "stream"})
_USER_KEYS = ("remote_user", "user_id", "ClientUsername")


class Logged(NamedTuple):
    """The request of a log line: an HTTP request line, or a method and a target separated by a space."""

    request: str
    status: str
    host: str = ""
    signed_in: bool = False


class LogLine(NamedTuple):
    """A line of a log: its request, its time as written, and the seconds that the request took before that time."""

    logged: Logged
    time: str
    took: str = ""

    @property
    def began_ns(self) -> int | None:
        """When the request began, in nanoseconds since 1970; None if the line does not say it.

        Of whole seconds, whole seconds are subtracted: the rest would only seem to be a time.
        """
        at_ns = time_of(self.time)
        took = re.fullmatch(r"\d{1,5}(\.\d+)?", self.took)
        if at_ns is None or took is None:
            return at_ns
        took_s = float(took[0])
        return at_ns - (int(took_s) * NS_PER_S if is_whole(self.time) else round(took_s * NS_PER_S))


def is_common(line: str) -> bool:
    """Whether this is a line of the common or the combined format."""
    return _COMMON.match(line) is not None


def is_envoy(line: str) -> bool:
    """Whether this is a line of Envoy's default format, or of Istio's."""
    return _ENVOY.match(line) is not None


def is_json_log(line: str) -> bool:
    """Whether this is a line of JSON that has a request."""
    return line.startswith("{") and _in_json(line) is not None


def read_common(source: RequestSource, into: Gathering) -> None:
    """Read a log of the common or combined format. An extra first word is the host, as in Apache's `vhost_combined`."""
    _read(source.lines(), _in_common, into)


def read_envoy(source: RequestSource, into: Gathering) -> None:
    """Read a log of Envoy's default format."""
    _read(source.lines(), _in_envoy, into)


def read_json_log(source: RequestSource, into: Gathering) -> None:
    """Read a log with a JSON object per line, by the usual keys of nginx, Envoy, Traefik and Caddy."""
    _read(source.lines(), _in_json, into)


def _in_common(line: str) -> LogLine | None:
    match = _COMMON.match(line)
    if match is None:
        return None
    before, time, request, status = match.groups()
    words = before.split()
    if len(words) < 3:
        return None
    # Collectors put more words before a line, such as the time and the name of a container.
    host = words[0] if len(words) == 4 and words[1] != "-" and _VHOST.fullmatch(words[0]) else ""
    return LogLine(Logged(request, status, host, words[-1] not in _NOBODY), time)


def _in_envoy(line: str) -> LogLine | None:
    match = _ENVOY.match(line)
    if match is None:
        return None
    host = _ENVOY_HOST.search(line, match.end())
    return LogLine(Logged(match[2], match[3], "" if host is None else host[1]), match[1])


def _in_json(line: str) -> LogLine | None:
    entry, seconds_keys = read_json(line), _SECONDS_KEYS
    if isinstance(entry, dict) and entry.keys() >= _DOCKER_KEYS:  # a line of a container, as Docker keeps it
        inner = text_at(entry, "log").rstrip()
        return _in_common(inner) or _in_envoy(inner) or (None if '"stream"' in inner else _in_json(inner))
    if isinstance(member(entry, "request"), dict):  # Caddy has the request in an object of its own
        entry, seconds_keys = {**entry, **entry["request"], "request": None}, _SECONDS_KEYS_OF_CADDY
    request = _first(entry, _REQUEST_KEYS)
    if not request:
        method, target, query = (_first(entry, keys) for keys in (_METHOD_KEYS, _TARGET_KEYS, _QUERY_KEYS))
        if not method or not target:
            return None
        request = f"{method} {target}" if "?" in target or not query.strip("?-") else f"{method} {target}?{query}"
    signed_in = _first(entry, _USER_KEYS) not in {"", "-"}
    logged = Logged(request, _first(entry, _STATUS_KEYS), _first(entry, _HOST_KEYS), signed_in)
    if began := _first(entry, _START_KEYS):
        return LogLine(logged, began)
    return LogLine(logged, _first(entry, _END_KEYS), _first(entry, seconds_keys))


def _first(entry: object, keys: Iterable[str]) -> str:
    """The value of the first of these keys that has a text or a number."""
    for key in keys:
        value = member(entry, key)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value):
            return str(value)
    return ""


def _read(lines: Iterator[tuple[int, str]], read: Callable[[str], LogLine | None], into: Gathering) -> None:
    """Count the requests of a log. Every different request is parsed once."""
    counts: Counter[Logged] = Counter()
    times = defaultdict[Logged, list[Sent]](list)
    timed = 0
    for number, line in lines:
        seen = read(line)
        if seen is None:
            if line.strip():
                into.leave_out("lines of another form", f"line {number}")
            continue
        if timed == MOST_TIMES:
            into.leave_out(f"after the first {MOST_TIMES:,} times", f"line {number}")
            continue
        logged = seen.logged
        if "?" in logged.request:  # a token that no two requests share would make all of them different
            logged = _without_secrets(logged, into)
        if logged in counts or len(counts) < MOST_DIFFERENT:
            counts[logged] += 1
            if into.wanted.times and (began_ns := seen.began_ns) is not None:
                times[logged].append(Sent(began_ns, number))
                timed += 1
        else:
            into.leave_out(f"after the first {MOST_DIFFERENT:,} different requests", f"line {number}")
    for logged, count in counts.items():
        _add(logged, count, times[logged], into)


def _without_secrets(logged: Logged, into: Gathering) -> Logged:
    request, names = without_secrets(logged.request, into.wanted.keep)
    for name in names:
        into.leave_out(f"the parameter `{clip(name)}`", request.partition("?")[0], kind="secret")
    return logged._replace(request=request) if names else logged


def _add(logged: Logged, count: int, times: list[Sent], into: Gathering) -> None:
    match = _REQUEST.fullmatch(logged.request)
    if match is None:
        into.leave_out("that are not HTTP requests", logged.request[:60], count)
        return
    method, target = match[1], _ESCAPED.sub(r"%\1", match[2]).replace('\\"', "%22").replace("\\\\", "%5C")
    if method not in _WITHOUT_BODY:
        into.leave_out(f"{method}: a log has no bodies", target.partition("?")[0], count)
        return
    if logged.signed_in:
        into.leave_out("the header Authorization", f"{method} {target.partition('?')[0]}", count, kind="secret")
    if logged.status == "206":
        into.leave_out("for a part of a file: a log has no header Range", f"{method} {target.partition('?')[0]}", count)
        return
    host = logged.host
    if not target.startswith("/"):  # a request to a proxy, or `*`
        host, target = _of_a_proxy(target)
    if not target:
        into.leave_out("that are not for a path", logged.request, count)
        return
    status = int(logged.status) if logged.status.isascii() and logged.status.isdecimal() else None
    into.add(Asked(method, target, host.lower(), status=status), count, times)


def _of_a_proxy(target: str) -> tuple[str, str]:
    """The host and path of a whole URL; two empty texts for anything else."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return "", ""
    if not parts.netloc or "@" in parts.netloc:
        return "", ""
    return parts.netloc, f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
