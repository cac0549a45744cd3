"""The JSON of oha, https://github.com/hatoo/oha."""

from collections.abc import Mapping
from typing import Any

from redline.extras.peers.outputs.reading import PeerOutput, json_object, latencies, member, number, whole

_NAMES = {
    0.5: "p50",
    0.75: "p75",
    0.9: "p90",
    0.95: "p95",
    0.99: "p99",
    0.999: "p99.9",
    0.9999: "p99.99",
    1.0: "slowest",
}
_FIRST_FAULT = 400
_NS = 1e9


def knows(report: Mapping[str, Any]) -> bool:
    """Whether it is a report of oha."""
    return "latencyPercentiles" in report and "statusCodeDistribution" in report


def read(output: str) -> PeerOutput:
    """Read oha's times, which are in seconds. A request that oha's end cut off is no fault."""
    report = json_object(output)
    percentiles, summary = member(report, "latencyPercentiles"), member(report, "summary")
    statuses = {status: whole(count) or 0 for status, count in member(report, "statusCodeDistribution").items()}
    errors = {
        kind: count
        for kind, count in member(report, "errorDistribution").items()
        if "aborted due to deadline" not in kind
    }
    known = "statusCodeDistribution" in report
    right = sum(count for status, count in statuses.items() if status.isdecimal() and int(status[:9]) < _FIRST_FAULT)
    wrong = sum(statuses.values()) - right
    return PeerOutput(
        latencies(percentiles | {"slowest": summary.get("slowest")}, _NAMES, _NS),
        right if known else None,
        number(summary.get("requestsPerSec")),
        ", ".join(f"{count} {kind}" for kind, count in errors.items()),
        failed=wrong + sum(whole(count) or 0 for count in errors.values()) if known else None,
    )
