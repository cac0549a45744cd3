"""The forms of access logs' lines: text of several servers and load balancers, JSON, and `key=value`. Pure."""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redline.extras.importing.log_json import first_of, in_entry, json_in, paths
from redline.extras.importing.log_line import Logged, LogLine, raw
from redline.extras.importing.log_words import host_of, read_before, without_colours

_TIME = r"(\d{1,2}/\w{3}/\d{4}[: ]\d\d:\d\d:\d\d[^\]]*+)"
_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_COMMON = re.compile(rf"\[(?<!\S\[){_TIME}\] {_QUOTED} (\d{{3}})(?= |$)")
_ENVOY = re.compile(rf"\[(\d{{4}}-\d\d-\d\dT[^\]]*+)\] {_QUOTED} (\d{{1,3}}) ")
_ENVOY_HOST = re.compile(r'"[^"]*" "[^"]*" "(?:[0-9A-Fa-f-]{36}|-)" "([^"\s]+)" "[^"]*"')
"""The user agent before the id may be a word like a host."""
_HAPROXY = re.compile(
    rf"\[{_TIME}\] \S+ [^\s/]+/\S+ [-+\d]+(?:/[-+\d]+){{3,5}} (-?\d{{1,3}}) [+\d]+ .*? {_QUOTED}(?= |$)"
)
_HAPROXY_AFTER = re.compile(r' \d+ "[^"]*" "[^"]*" \d+ \d{3} "')
"""What HAProxy writes after the status with `option httplog clf`."""
_HAPROXY_ESCAPED = re.compile(r"#([0-9A-F]{2})")
HAPROXY_CONNECTION = rf"\[{_TIME}\] \S+ [^\s/]+/\S+ [-+\d]+(?:/[-+\d]+){{2}} [+\d]+ \S\S "
"""The pattern of a line of HAProxy about a connection, without a request."""
_AWS_TIME = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z)"
_BALANCER = re.compile(
    rf"(?:https?|h2|grpcs|wss?) {_AWS_TIME} \S+ \S+ \S+ \S+ \S+ \S+ (\S+) \S+ \S+ \S+ {_QUOTED} {_QUOTED}"
    rf'(?: \S+ \S+ \S+ "[^"]*" "[^"]*" "[^"]*" \S+ {_AWS_TIME} "([^"]*)")?'
)
_CLASSIC_BALANCER = re.compile(
    rf"{_AWS_TIME} \S+ [\d.]+:\d+ \S+ -?[\d.]+ -?[\d.]+ -?[\d.]+ (\S+) \S+ \d+ \d+ {_QUOTED} "
)
_OWN_ANSWERS = frozenset({"redirect", "fixed-response"})
_ASKED = re.compile(r'"([A-Z]+ \S+(?: (?:HTTP/)?\d(?:\.\d)?)?)"[ ,]+"?(\d{3})(?=[ ",]|$)')
_METHOD = "(?:GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE)"
_PLAIN = re.compile(rf"(?:^|\s)({_METHOD} /\S*) (\d{{3}})(?=[ ,]|$)")
_STATUS_FIRST = re.compile(rf"(?:^|\s)\[?(?P<status>\d{{3}})(?:\]:)? (?P<request>{_METHOD} /\S*)(?= |$)")
_SQUID = re.compile(r"(?<![\d.])(\d{9,10}\.\d{3}) +(\d+) \S+ [A-Z_]+/(\d{3}) \d+ ([A-Z]+ \S+) \S+ [A-Z_]+/\S+ ")
_ANY_TIME = re.compile(
    rf"{_TIME}(?=\])|\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?"
    r"|\w{3} \w{3} {1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}"
)
_FIELD = re.compile(r'(?:^|\s)([A-Za-z_.@]+)=("(?:[^"\\]|\\.)*"|\S*)')
_WRAPPED_KEYS = ("log", "message", "MESSAGE", "textPayload", "jsonPayload", "msg", "line")
"""Where collectors have the line that a server wrote."""
_WRAPPED_TIMES = paths("time", "@timestamp", "timestamp", "__REALTIME_TIMESTAMP", "date")
_LONGEST_MS = 9
_LOAD_BALANCERS_OWN = "that the load balancer answered itself"


def in_common(line: str) -> LogLine | None:
    """A line of the common or the combined format, with any words before and after it."""
    match = _COMMON.search(line)
    if match is None:
        return None
    before = read_before(line[: match.start()])
    request = match[2]
    if "#" in request and _HAPROXY_AFTER.match(line, match.end()):
        request = _of_haproxy(request)
    return LogLine(Logged(raw(request), match[3], host_of(before.host), before.signed_in), match[1])


def in_envoy(line: str) -> LogLine | None:
    """A line of Envoy's default format, or of Istio's."""
    match = _ENVOY.search(line)
    if match is None:
        return None
    host = _ENVOY_HOST.search(line, match.end())
    return LogLine(Logged(raw(match[2]), match[3], "" if host is None else host_of(host[1])), match[1])


def in_haproxy(line: str) -> LogLine | None:
    """A line of HAProxy's formats for HTTP and HTTPS."""
    match = _HAPROXY.search(line)
    return match and LogLine(Logged(raw(_of_haproxy(match[3])), _status(match[2])), match[1])


def _of_haproxy(request: str) -> str:
    """A request with the escapes of other servers, where HAProxy writes `#22`."""
    return _HAPROXY_ESCAPED.sub(r"\\x\1", request.replace("\\", "\\\\"))


def in_balancer(line: str) -> LogLine | None:
    """A line of a load balancer of AWS: of an application, or classic. Its requests are whole URLs."""
    if (match := _BALANCER.search(line)) is not None:
        ended, status, request, _, began, actions = match.groups()
        own = "" if _OWN_ANSWERS.isdisjoint((actions or "").split(",")) else _LOAD_BALANCERS_OWN
        return LogLine(Logged(raw(request), _status(status), left_out=own), began or ended)
    match = _CLASSIC_BALANCER.search(line)
    return match and LogLine(Logged(raw(match[3]), _status(match[2])), match[1])


def _status(text: str) -> str:
    """A status as written; 0 if there was no answer."""
    return text if text.isdecimal() else "0"


def in_any(line: str) -> LogLine | None:
    """A line with a request and its status, as servers of applications write it; with any time before them."""
    if (match := _ASKED.search(line) or _PLAIN.search(line)) is not None:
        request, status = match.groups()
    elif (match := _STATUS_FIRST.search(line)) is not None:
        status, request = match.groups()
    else:
        return None
    times = list(_ANY_TIME.finditer(line, 0, match.start()))
    return LogLine(Logged(raw(request), status), times[-1][0] if times else "")


def in_squid(line: str) -> LogLine | None:
    """A line of Squid's own format: the time of the end, how long it took in milliseconds, and the request."""
    match = _SQUID.search(line)
    return match and LogLine(Logged(raw(match[4]), _status(match[3])), match[1], f"{int(match[2]) / 1000}")


def in_fields(line: str) -> LogLine | None:
    """A line of `key=value`, such as that of Heroku's router."""
    if "method=" not in line or "status=" not in line:
        return None
    fields = {name: raw(value.strip('"')) for name, value in _FIELD.findall(line)}
    times = _ANY_TIME.match(without_colours(line))
    return in_entry({"timestamp": times[0] if times else "", **fields})


def in_json(line: str) -> LogLine | None:
    """A line of JSON, which may have words before it. What a collector wrapped is read as the server wrote it."""
    if (known := json_in(line)) is None:
        return None
    before, entry = known
    seen = in_entry(entry) or _unwrapped(entry)
    if seen is None or seen.time:
        return seen
    times = _ANY_TIME.search(before)
    return seen._replace(time=times[0] if times else "")


def _unwrapped(entry: dict[str, Any]) -> LogLine | None:
    """The line that a collector has in an object, with the collector's time if it has none."""
    for key in _WRAPPED_KEYS:
        inner = entry.get(key)
        if isinstance(inner, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in inner):
            inner = bytes(inner).decode(errors="backslashreplace")  # as journald writes colours
        if isinstance(inner, dict):
            seen = in_entry(inner)
        else:
            seen = read_line(inner)[0] if isinstance(inner, str) and inner else None
        if seen is not None:
            return seen if seen.time else seen._replace(time=first_of(entry, _WRAPPED_TIMES))
    return None


def in_w3c(fields: Sequence[str], line: str) -> LogLine | None:
    """A line of the W3C format (IIS, CloudFront), whose fields a line `#Fields:` names."""
    values = line.split("\t") if "\t" in line else line.split()
    entry = dict(zip(fields, values, strict=True)) if len(values) == len(fields) else {}
    method, target = entry.get("cs-method", ""), entry.get("cs-uri-stem") or entry.get("cs-uri", "")
    if not method or not target:
        return None
    if (query := entry.get("cs-uri-query", "-")) not in {"", "-"}:
        target += f"?{query}"
    host = next((entry[name] for name in ("x-host-header", "cs(Host)", "cs-host") if name in entry), "")
    user = entry.get("cs-username", "-")
    took = entry.get("time-taken", "")
    if took.isdecimal() and len(took) < _LONGEST_MS:  # milliseconds, as IIS writes them; CloudFront writes 0.123
        took = f"{int(took) / 1000}"
    logged = Logged(f"{method} {target}", _status(entry.get("sc-status", "-")), host_of(host), user != "-")
    return LogLine(logged, f"{entry.get('date', '')} {entry.get('time', '')}", took)


class Form(NamedTuple):
    """A form of lines: its name for `--format`, and its reader."""

    name: str
    read: Callable[[str], LogLine | None]


FORMS = (
    Form("log", in_common),
    Form("envoy", in_envoy),
    Form("json-log", in_json),
    Form("elb", in_balancer),
    Form("haproxy", in_haproxy),
    Form("log", in_squid),
    Form("log", in_any),
    Form("log", in_fields),
)


def read_line(line: str, first: Form = FORMS[0]) -> tuple[LogLine | None, Form]:
    """What a line says, in any form, of which `first` is tried first; and the form that it has."""
    line = without_colours(line).rstrip()
    for form in (first, *FORMS):
        if (seen := form.read(line)) is not None:
            return seen, form
    return None, first
