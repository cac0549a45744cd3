"""The parsed output of a load generator, and readers of numbers in texts that may hold anything."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_UNITS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_LONGEST_NS = 1e18
"""Some thirty years: a longer time is no response time."""


@dataclass(frozen=True)
class PeerOutput:
    """The results of a peer; empty or None if its output does not report them.

    `latencies_ns` are by quantile (1 is the largest). `requests` counts the right answers, `rate_per_s` is the peer's
    own figure, `faults` names the errors, and `failed` counts them. `tls` is the negotiated version. `url` and `load`
    are what was requested, and how.
    """

    latencies_ns: dict[float, float] = field(default_factory=dict)
    requests: int | None = None
    rate_per_s: float | None = None
    faults: str = ""
    tls: str = ""
    failed: int | None = None
    url: str = ""
    load: str = ""
    started_unix_ns: int | None = None


def time_ns(text: str) -> float | None:
    """Read `5.72ms` as nanoseconds; None if it is no time."""
    match = _TIME.fullmatch(text.strip())
    return None if match is None else float(match[1]) * _UNITS_NS[match[2]]


def json_object(output: str) -> dict[str, Any]:
    """Return the JSON object from the first brace on; empty if there is none."""
    return next(iter(json_objects(output, at_most=1)), {})


def json_objects(output: str, at_most: int = 100) -> list[dict[str, Any]]:
    """Return the JSON objects that follow each other, from the first brace on."""
    values: list[dict[str, Any]] = []
    start = output.find("{")
    while start >= 0 and len(values) < at_most:
        try:
            value, end = json.JSONDecoder().raw_decode(output, start)
        except (ValueError, RecursionError):
            break
        values.append(value)
        start = output.find("{", end)
    return values


def member(holder: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a member that is an object; empty if there is none."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def number(value: object, scale: float = 1.0) -> float | None:
    """Read a JSON number from 0 on, scaled; None if it is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        scaled = value * scale
    except OverflowError:  # an integer of some hundred digits
        return None
    return scaled if math.isfinite(scaled) and scaled >= 0 else None


def whole(value: object) -> int | None:
    """Read a JSON count; None if it is no such number."""
    known = number(value)
    return None if known is None else round(known)


def rough(value: float) -> str:
    """Format two significant digits, without an exponent up to a billion: attained rates vary a little."""
    return f"{float(f'{value:.2g}'):.9g}"


def latencies(times: Mapping[str, Any], names: Mapping[float, str], scale: float = 1.0) -> dict[float, float]:
    """Return times in nanoseconds by quantile, as far as they are reported."""
    return reported({q: number(times.get(name), scale) for q, name in names.items()})


def reported(latencies_ns: Mapping[float, float | None]) -> dict[float, float]:
    """Keep the times that are known and plausible."""
    return {q: ns for q, ns in latencies_ns.items() if ns is not None and ns <= _LONGEST_NS and q <= 1}
