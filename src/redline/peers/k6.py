"""k6 (https://k6.io)."""

import json
from typing import Any, Literal

from redline.peers.adapter import Asked, known, positive
from redline.peers.json_output import member, read_object

_NAMES = {0.5: "p(50)", 0.9: "p(90)", 0.99: "p(99)", 0.999: "p(99.9)", 1.0: "max"}


class K6:
    """Constant arrival rate; it prints its summary as JSON."""

    name = "k6"
    tried_with = "1.8.1"
    loop: Literal["open", "closed"] = "open"
    settles_s = 0.0
    note = "times from the actual send; drops what it has no user for"

    def version_command(self) -> list[str]:
        """Prints `k6 v1.8.1 (…)`."""
        return ["version"]

    def commands(self, asked: Asked) -> list[list[str]]:
        """A script of one request."""
        script = asked.scratch / "k6.js"
        script.write_text(one_request(asked.url, _options(asked)))
        return [["run", "--quiet", "--no-usage-report", str(script)]]

    def read(self, output: str) -> dict[float, float]:
        """Of `http_req_duration`, in milliseconds."""
        metrics = member(read_object(output), "metrics")
        values = member(member(metrics, "http_req_duration"), "values")
        return known({q: positive(values.get(name), 1e6) for q, name in _NAMES.items()})


def one_request(url: str, options: dict[str, Any]) -> str:
    """A script that asks for this address again and again, and prints the summary as JSON."""
    return (
        "import http from 'k6/http';\n"
        f"export const options = {json.dumps(options)};\n"
        f"export default function () {{ http.get({json.dumps(url)}); }}\n"
        "export function handleSummary(data) { return { stdout: JSON.stringify(data) }; }\n"
    )


def _options(asked: Asked) -> dict[str, Any]:
    scenario = {
        "executor": "constant-arrival-rate",
        "rate": max(1, round(asked.rate_per_s)),
        "timeUnit": "1s",
        "duration": f"{asked.seconds:g}s",
        "preAllocatedVUs": asked.connections,
        "maxVUs": asked.connections,
    }
    return {
        "discardResponseBodies": True,
        "scenarios": {"known": scenario},
        "summaryTrendStats": list(_NAMES.values()),
    }
