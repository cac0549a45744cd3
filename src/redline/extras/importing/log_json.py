"""The request of a JSON object, by the usual keys of servers, proxies, load balancers and frameworks. Pure."""

import re
from collections.abc import Iterable
from typing import Any

from redline.extras.importing.log_line import Logged, LogLine, raw
from redline.extras.importing.log_words import host_of
from redline.suite.request_source import Broken, member, read_json

Paths = tuple[tuple[str, ...], ...]


def paths(*written: str) -> Paths:
    """Keys of objects; `a/b` is the key `b` in the object `a`."""
    return tuple(tuple(path.split("/")) for path in written)


_REQUEST_KEYS = paths("request", "requestLine", "request_line")
_METHOD_KEYS = paths(
    "request_method", "method", "RequestMethod", ":method", "http_method", "req_method", "verb", "httpMethod",
    "requestMethod", "request/method", "req/method", "httpRequest/requestMethod", "http/request/method", "http/method",
    "properties/httpMethod", "meta/req/method",
)  # fmt: skip
_TARGET_KEYS = paths(
    "request_uri", "x-envoy-original-path", "path", ":path", "uri", "RequestPath", "url", "request_path", "requestUrl",
    "request/uri", "request/url", "req/url", "httpRequest/requestUrl", "url/original", "http/url", "http/target",
    "properties/requestUri", "url/path", "meta/req/url",
)  # fmt: skip
_QUERY_KEYS = paths("args", "query_string", "query", "url/query", "properties/requestQuery")
_STATUS_KEYS = paths(
    "status", "response_code", "DownstreamStatus", "status_code", "response_status", "statusCode", "res/statusCode",
    "response/status", "response/status_code", "httpRequest/status", "http/response/status_code", "http/status_code",
    "properties/httpStatus", "meta/res/statusCode",
)  # fmt: skip
_HOST_KEYS = paths(
    "http_host", "host", "authority", ":authority", "RequestHost", "request/host", "req/headers/host", "req/host",
    "url/domain", "properties/host", "server_name",
)  # fmt: skip
_START_KEYS = paths("start_time", "StartUTC", "StartLocal")
_END_KEYS = paths(
    "msec", "time_iso8601", "ts", "@timestamp", "timestamp", "time", "time_local", "requestTime", "timeStamp",
    "datetime", "date",
)  # fmt: skip
_SECONDS_KEYS = paths("request_time")
_SECONDS_KEYS_OF_CADDY = paths("request_time", "duration")
"""Others write a `duration` in milliseconds."""
_USER_KEYS = paths("remote_user", "user_id", "ClientUsername")
_BEFORE = re.compile(r"(?:^|[\s|:])(?=\{)")
_NO_VALUE = re.compile(r'(?<!\\)":[ \t]*+(?:-[ \t]*+)?(?=[,}])')
_BACKSLASH = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_OF_NGINX = "\ue000"
r"""Stands for the backslash of `\x22` in JSON that nginx wrote without `escape=json`."""


def json_in(line: str) -> tuple[str, dict[str, Any]] | None:
    """The words before the object of a line, and the object; None if there is none."""
    start = _BEFORE.search(line)
    entry = None if start is None else _object(line[start.end() :])
    return None if start is None or entry is None else (line[: start.end()], entry)


def _object(text: str) -> dict[str, Any] | None:
    r"""The object of a line. nginx without `escape=json` writes `\x22` in it, and nothing for a missing number."""
    entry = read_json(text)
    if isinstance(entry, Broken):
        marked = _BACKSLASH.sub(lambda match: match[0] if len(match[1]) == 1 else f"{_OF_NGINX}{match[1]}", text)
        entry = read_json(_NO_VALUE.sub('":null', marked))
    return entry if isinstance(entry, dict) else None


def in_entry(entry: dict[str, Any]) -> LogLine | None:
    """What an object says of a request; None if it has none."""
    request = _request_of(entry)
    if not request:
        return None
    if _OF_NGINX in request:
        request = raw(request.replace("\\", "\\\\").replace(_OF_NGINX, "\\"))
    signed_in = first_of(entry, _USER_KEYS) not in {"", "-"}
    logged = Logged(request, first_of(entry, _STATUS_KEYS), host_of(first_of(entry, _HOST_KEYS)), signed_in)
    if began := first_of(entry, _START_KEYS):
        return LogLine(logged, began)
    of_caddy = isinstance(entry.get("request"), dict)  # which has the request in an object of its own
    seconds = first_of(entry, _SECONDS_KEYS_OF_CADDY if of_caddy else _SECONDS_KEYS)
    return LogLine(logged, first_of(entry, _END_KEYS), seconds)


def _request_of(entry: dict[str, Any]) -> str:
    """The request line, or the method and the target; empty if the entry has none."""
    request = first_of(entry, _REQUEST_KEYS)
    method, target, query = (first_of(entry, keys) for keys in (_METHOD_KEYS, _TARGET_KEYS, _QUERY_KEYS))
    if " " in request or not method or not target:  # else it is an identifier
        return request
    method = method.upper() if method.islower() else method
    query = query.removeprefix("?")
    target = target.replace(" ", "%20")  # of a path that the server decoded
    return f"{method} {target}" if "?" in target or query in {"", "-"} else f"{method} {target}?{query}"


def first_of(entry: object, keys: Iterable[tuple[str, ...]]) -> str:
    """The value of the first of these keys that has a text or a number."""
    for key in keys:
        value = member(entry, *key)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and str(value):
            return str(value)
    return ""
