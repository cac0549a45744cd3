"""Turn the values of other load generators' options into flags of `redline load`. Pure.

There is a function for each tool. Its flags may hold `says`: texts about what the tool does not report.
"""

import re
from collections.abc import Mapping
from typing import Any

from redline.errors import UsageError, WrongValueError
from redline.quantities import clip, parse_duration

_UNTIL_COUNTED = "10m"
"""The longest time for a load that ends after a number of requests."""
_NEVER = "10m"
"""The timeout for a tool that has none."""
_CALIBRATION_S = 10
"""The time in which wrk2 calibrates its interval before it begins to record."""
_AB_COUNT = 50_000
"""The number of requests after which `ab -t` ends without a later `-n`."""


def _wrong(message: str, hint: str) -> UsageError:
    return UsageError(f"--like: {message}", hint=hint)


def _duration(text: str | None, default: str | None = None) -> str | None:
    """A duration; a plain number means seconds, as in most of these tools."""
    return default if text is None else f"{text}s" if re.fullmatch(r"[\d.]+", text) else text


def _length_ns(option: str, text: str) -> int:
    """A duration in nanoseconds. Raises UsageError."""
    try:
        return parse_duration(text)
    except WrongValueError as error:
        raise _wrong(f"{option} {clip(text)}: {error.message}", error.hint) from None


def _limit(text: str | None) -> str | None:
    """A rate; 0 means no limit."""
    return None if text is not None and re.fullmatch(r"0+(?:\.0*)?", text) else text


def _timeout(text: str | None, default: str | None = None) -> str | None:
    """A duration; 0 means no limit."""
    return _NEVER if text is not None and re.fullmatch(r"0+m?s?", text) else _duration(text, default)


def _number(text: str | None, default: int) -> int:
    """A whole number, with a suffix such as `k` if the tool takes suffixes. Raises UsageError."""
    if text is None:
        return default
    match = re.fullmatch(r"([0-9]+)([kKmMgG]?)", text)
    if match is None:
        raise _wrong(f"{text} is not a whole number", "write the command as you would run it")
    return int(match[1]) * {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[match[2].lower()]


def _headers(values: Mapping[str, Any], defaults: Mapping[str, str] | None = None, **more: str) -> list[str]:
    """Return request headers: from `-H`, from other options, and those that the tool adds."""
    given = [*(values.get("headers") or [])]
    given += [f"{name.replace('_', '-')}: {value}" for name, key in more.items() if (value := values.get(key))]
    named = {line.partition(":")[0].strip().lower() for line in given}
    return given + [f"{name}: {value}" for name, value in (defaults or {}).items() if name.lower() not in named]


def _body(tool: str, values: Mapping[str, Any]) -> str | None:
    """Return the body, as a text or `@file`. Raises UsageError for a text that begins with `@`."""
    text, file = values.get("body"), values.get("body_file")
    if file is not None:
        return f"@{file}"
    if text is not None and text.startswith("@"):
        raise _wrong(f"{tool} -d sends `{text}` as it is", f"for the file's content, write -D {text[1:]}")
    return text


def _until(values: Mapping[str, Any], default: int | None) -> dict[str, object]:
    """Return the length of the load: a time, or the number of due requests that ends it."""
    lasts = _duration(values.get("lasts"))
    if lasts is not None:
        return {"duration": lasts}
    count = values.get("count")
    if count is None and default is None:
        return {}
    return {"count": _number(count, default or 0), "duration": _UNTIL_COUNTED}


def _at_least(tool: str, flags: dict[str, object]) -> dict[str, object]:
    """Raise UsageError for fewer requests than connections, as the tool does."""
    count, connections = flags.get("count"), flags["connections"]
    if isinstance(count, int) and isinstance(connections, int) and count < connections:
        raise _wrong(f"{tool} -n {count} -c {connections}: fewer requests than connections", f"{tool} refuses it too")
    return flags


def wrk_flags(values: Mapping[str, Any]) -> dict[str, object]:
    """Each thread opens as many connections as the others. Raises UsageError for fewer connections than threads."""
    connections, threads = _number(values.get("connections"), 10), _number(values.get("threads"), 2)
    if not 1 <= threads <= max(connections, 1):
        raise _wrong(f"wrk -t{threads} -c{connections}: each thread needs a connection", "wrk refuses it too")
    opened = connections // threads * threads
    less = f"that it opens {opened} connections in place of {connections}: as many for every one of {threads} threads"
    return {
        "connections": opened,
        "threads": threads,
        "duration": _duration(values.get("lasts"), "10s"),
        "timeout": _timeout(values.get("timeout"), "2s"),
        "headers": _headers(values),
        "insecure": True,
        "warmup": "0s",
        "says": (less,) if opened < connections else (),
        "script": values.get("script"),
    }


def wrk2_flags(values: Mapping[str, Any]) -> dict[str, object]:
    """Like wrk at a rate, recorded once its interval is calibrated. Raises UsageError without a rate."""
    if values.get("rate") is None:
        raise _wrong("wrk2 needs a rate", "add it, such as -R2000")
    flags = wrk_flags(values)
    recorded_s = _length_ns("wrk2 -d", str(flags["duration"])) / 1e9 - _CALIBRATION_S
    calibrated = {"warmup": f"{_CALIBRATION_S}s", "duration": f"{recorded_s:.12g}s"} if recorded_s > 0 else {}
    return flags | calibrated | {"rate": str(_number(values["rate"], 0)), "arrivals": "uniform"}


def hey_flags(values: Mapping[str, Any]) -> dict[str, object]:
    """Each worker sends as many requests as the others. Raises UsageError for fewer requests than workers."""
    flags = _at_least("hey", {"connections": _number(values.get("connections"), 50), **_until(values, 200)})
    count, workers = flags.get("count"), flags["connections"]
    says: tuple[str, ...] = ()
    if isinstance(count, int) and isinstance(workers, int) and count % max(workers, 1):
        flags["count"] = count // workers * workers
        says = (f"that it sends {flags['count']} requests in place of {count}: the same number for each worker",)
    compressed = {} if values.get("uncompressed") else {"Accept-Encoding": "gzip"}
    return flags | {
        "pace": _limit(values.get("pace")),
        "method": values.get("method") or "GET",
        "headers": _headers(
            values,
            {"Content-Type": "text/html"} | compressed,
            Accept="accept",
            Content_Type="content_type",
            Host="host",
            User_Agent="agent",
        ),
        "user": values.get("user"),
        "body": _body("hey", values),
        "timeout": _timeout(values.get("timeout"), "20s"),
        "http2": values.get("http2"),
        "insecure": True,
        "requests_per_connection": 1 if values.get("closes") else None,
        "warmup": "0s",
        "says": says,
    }


def oha_flags(values: Mapping[str, Any]) -> dict[str, object]:
    """A number of requests or a time, at a rate if there is one. Raises UsageError for both, and for HTTP/3."""
    rate, version = _limit(values.get("rate")), values.get("version")
    http2 = values.get("http2") or version in {"2", "2.0"}
    if version not in {None, "1.1", "2", "2.0"}:
        raise _wrong(f"oha --http-version {version} has no counterpart", "the engine speaks HTTP/1.1 and HTTP/2")
    if "count" in values and "lasts" in values:
        raise _wrong("oha takes -n or -z, and not both", "leave out either")
    compressed = {} if values.get("uncompressed") else {"Accept-Encoding": "gzip, compress, deflate, br"}
    return {
        "connections": _number(values.get("connections"), 50),
        **_until(values, 200),
        "rate": rate,
        "arrivals": "uniform" if rate else None,
        "method": values.get("method") or "GET",
        "headers": _headers(
            values, {"Accept": "*/*"} | compressed, Accept="accept", Content_Type="content_type", Host="host"
        ),
        "user": values.get("user"),
        "body": _body("oha", values),
        "timeout": _timeout(values.get("timeout"), _NEVER),
        "http2": http2 or None,
        "depth": _number(values.get("depth"), 1) if http2 else 1,
        "insecure": values.get("insecure"),
        "cacert": values.get("cacert"),
        "requests_per_connection": 1 if values.get("closes") else None,
        "warmup": "0s",
    }


def h2load_flags(values: Mapping[str, Any]) -> dict[str, object]:
    """HTTP/2, unless HTTP/1.1 is named first. Raises UsageError for fewer requests than clients."""
    flags = _at_least("h2load", {"connections": _number(values.get("connections"), 1), **_until(values, 1)})
    spoken = [*str(values.get("spoken") or "").split(","), str(values.get("clear") or "")]
    http1 = bool(values.get("http1")) or "http/1.1" in spoken[0:1] or spoken[-1] == "http/1.1"
    lines = _headers(values)
    methods = [line.rpartition(":")[2].strip() for line in lines if line.startswith(":method:")]
    return flags | {
        "depth": _number(values.get("depth"), 1),
        "threads": _number(values.get("threads"), 1),
        "pace": values.get("pace"),
        "method": methods[-1] if methods else None,
        "headers": [line for line in lines if not line.startswith(":method:")],
        "body": _body("h2load", values),
        "timeout": _timeout(values.get("timeout"), _NEVER),
        "http2": not http1,
        "insecure": True,
        "warmup": _duration(values.get("warmup"), "0s") if "lasts" in values else "0s",
    }


def vegeta_flags(values: Mapping[str, Any]) -> dict[str, object]:
    """A rate on as many connections as it takes, at most 10,000. Raises UsageError for no rate."""
    at_once = [_number(values[key], 0) for key in ("most_connections", "workers") if values.get(key)]
    lasts = values.get("lasts")
    forever = lasts is None or re.fullmatch(r"0(ns|us|µs|ms|s|m|h)?", lasts)
    endless = f"without -duration it goes on until Ctrl-C; here, it ends after {_UNTIL_COUNTED}"
    return {
        "method": "GET",
        "rate": _vegeta_rate(values.get("rate") or "50/1s"),
        "arrivals": "uniform",
        "duration": _UNTIL_COUNTED if forever else lasts,
        "connections": min([10000, *(number for number in at_once if number)]),
        "connections_at_start": 1,
        "headers": _headers(values, {"Accept-Encoding": "gzip"}),
        "body": _body("vegeta", values),
        "timeout": _timeout(values.get("timeout"), "30s"),
        "http2": True if values.get("http2_clear") else values.get("http2"),
        "insecure": values.get("insecure"),
        "cacert": values.get("cacert"),
        "requests_per_connection": 1 if values.get("keeps") is False else None,
        "warmup": "0s",
        "says": (endless,) if forever else (),
    }


def _vegeta_rate(text: str) -> str:
    """Read `100`, `100/s`, `300/1m` or `5/100ms` as requests per second. Raises UsageError."""
    match = re.fullmatch(r"([0-9]+)(?:/([0-9]*)(ms|s|m|h))?", text)
    if match is None or int(match[1]) == 0 or (match[2] and int(match[2]) == 0):
        hint = "write it as -rate=100/s; -rate=0 sends as fast as it can: use redline load -c N"
        raise _wrong(f"vegeta -rate={text} is not a rate", hint)
    seconds = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, None: 1}[match[3]] * int(match[2] or 1)
    return f"{int(match[1]) / seconds:.12g}"


def ab_flags(values: Mapping[str, Any]) -> dict[str, object]:
    """A connection for each request, unless they are kept. Raises UsageError for fewer requests than connections."""
    until = _until(values, 1)
    if "lasts" in values:
        order = [name for name in values if name in {"lasts", "count"}]
        until["count"] = _number(values["count"], 0) if order[-1] == "count" else _AB_COUNT
    file = values.get("put_file") or values.get("body_file")
    typed = {} if file is None else {"Content-Type": "text/plain"}
    method = "HEAD" if values.get("head") else values.get("method")
    return _at_least("ab", {"connections": _number(values.get("connections"), 1), **until}) | {
        "method": method or ("PUT" if values.get("put_file") else None),
        "headers": _headers(values, {"Accept": "*/*"} | typed, Content_Type="content_type", Cookie="cookie"),
        "user": values.get("user"),
        "body": _body("ab", {"body_file": file}),
        "timeout": _timeout(values.get("timeout"), "30s"),
        "requests_per_connection": None if values.get("keeps") else 1,
        "insecure": True,
        "warmup": "0s",
    }


def k6_flags(values: Mapping[str, Any]) -> dict[str, object]:
    """Users, constant or in stages. Raises UsageError for wrong numbers."""
    texts = [text for written in values.get("stages") or () for text in written.split(",")]
    stages = [f"{to}:{over}" for over, _, to in (text.partition(":") for text in texts)]
    staged = {"duration": f"{sum(_length_ns('k6 -s', text.partition(':')[0]) for text in texts)}ns"} if texts else {}
    if (lasts := values.get("lasts")) is not None and re.fullmatch(r"[\d.]+", lasts):
        raise _wrong(f"k6 -d {lasts} has no unit", f"k6 refuses it too: write -d {lasts}s")
    ended = (
        {} if (count := values.get("count")) is None else {"count": _number(count, 1)}
    )  # -d is then the longest time
    return {
        "connections": _number(values.get("connections"), 1),
        **(staged or _until(values, 1) | ended),
        "stages": stages or None,
        "insecure": values.get("insecure"),
        "requests_per_connection": 1 if values.get("closes") else None,
        "timeout": "60s",
        "warmup": "0s",
    }
