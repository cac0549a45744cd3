"""The JSON of `vegeta report -type=json`, https://github.com/tsenart/vegeta."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from redline.extras.peers.outputs.reading import PeerOutput, json_object, latencies, member, number, rough, whole

_NAMES = {0.5: "50th", 0.9: "90th", 0.95: "95th", 0.99: "99th", 1.0: "max"}
_NS = 1e9


def knows(report: Mapping[str, Any]) -> bool:
    """Whether it is a report of vegeta."""
    return "latencies" in report and "status_codes" in report and "earliest" in report


def read(output: str) -> PeerOutput:
    """Read vegeta's times, which are in nanoseconds. The load is the attained load, not the requested load."""
    report = json_object(output)
    requests, success = number(report.get("requests")), number(report.get("success"))
    rate, lasts = number(report.get("rate")), number(report.get("duration"), 1 / _NS)
    return PeerOutput(
        latencies(member(report, "latencies"), _NAMES),
        _right(member(report, "status_codes")),
        number(report.get("throughput")),
        failed=round(requests * (1 - min(success, 1))) if requests is not None and success is not None else None,
        load="" if rate is None or lasts is None else f"about {rough(rate)}/s for {rough(lasts)} s",
        started_unix_ns=instant_ns(report.get("earliest")),
    )


def _right(statuses: Mapping[str, Any]) -> int | None:
    """How many answers were right; None if none is counted."""
    known = [whole(count) for status, count in statuses.items() if status.isdecimal() and 200 <= int(status[:9]) < 400]
    return sum(count or 0 for count in known) if statuses else None


def instant_ns(text: object) -> int | None:
    """Read `2015-09-19T14:45:50.645818631+02:00` as Unix time, to a microsecond; None if it is no instant."""
    try:
        instant = datetime.fromisoformat(str(text))
        return int(instant.astimezone(UTC).timestamp() * 1e6) * 1000 if instant.tzinfo and instant.year > 1970 else None
    except (ValueError, OverflowError):
        return None
