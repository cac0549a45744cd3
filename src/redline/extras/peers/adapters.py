"""Adapters of load generators: command lines, and the readers in `outputs`, which never fail on odd output."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from redline.extras.peers.outputs import h2load, k6, oha, vegeta, wrk
from redline.extras.peers.outputs.reading import PeerOutput


@dataclass(frozen=True)
class PeerLoad:
    """A peer's load on `url`.

    Without `rate_per_s` each connection sends its next request when the last is answered. `cpus` are the cores that
    the peer may use (empty: any), `scratch` is a folder for its files, and `extra` are arguments for this tool alone.
    """

    url: str
    connections: int
    seconds: float
    scratch: Path
    rate_per_s: float | None = None
    cpus: tuple[int, ...] = ()
    http2: bool = False
    extra: tuple[str, ...] = ()

    @property
    def whole_seconds(self) -> int:
        """The length, rounded up, for tools that take no fractions."""
        return max(1, math.ceil(self.seconds))


@dataclass(frozen=True)
class PeerAdapter:
    """How to call a tool, and how to read its output.

    `commands` gives the arguments of successive calls; the standard output of the last call is read.
    `settles_s` is how long it sends load before it counts, `loop` says whether it can hold a rate, and `note` warns
    readers of its figures. `tried_with` is the version whose output the reader was written for.
    """

    name: str
    tried_with: str
    commands: Callable[[PeerLoad], list[list[str]]]
    read: Callable[[str], PeerOutput]
    version_arguments: tuple[str, ...] = ("--version",)
    loop: Literal["open", "closed"] = "open"
    settles_s: float = 0.0
    note: str = ""


def _wrk(load: PeerLoad) -> list[list[str]]:
    return [["-t1", f"-c{load.connections}", f"-d{load.whole_seconds}s", "--latency", *load.extra, load.url]]


def _wrk2(load: PeerLoad) -> list[list[str]]:
    """Call wrk2 with a single thread at the rate. Raises ValueError without a rate."""
    if load.rate_per_s is None:
        raise ValueError("wrk2 needs a rate")
    return [[f"-R{max(1, round(load.rate_per_s))}", *_wrk(load)[0]]]


_H2LOAD_MOST_CLIENTS_AT_A_RATE = 64


def _h2load(load: PeerLoad) -> list[list[str]]:
    """Call h2load with a single thread; a rate is divided among its clients."""
    clients, rate = load.connections, []
    if load.rate_per_s is not None:
        clients = min(clients, _H2LOAD_MOST_CLIENTS_AT_A_RATE)
        rate = [f"--rps={load.rate_per_s / clients:g}"]
    protocol = [] if load.http2 else ["--h1"]
    return [["-t1", *protocol, f"-c{clients}", f"-D{load.whole_seconds}", *rate, *load.extra, load.url]]


def _oha(load: PeerLoad) -> list[list[str]]:
    rate = [] if load.rate_per_s is None else ["-q", f"{load.rate_per_s:g}", "--latency-correction"]
    length = ["-z", f"{load.seconds:g}s", "-c", str(load.connections)]
    return [[*length, *rate, "--no-tui", "--output-format", "json", *load.extra, load.url]]


def _vegeta(load: PeerLoad) -> list[list[str]]:
    """Call vegeta twice, with files of targets and of results. Rate 0 means as fast as answers arrive."""
    targets, results = load.scratch / "vegeta.targets", load.scratch / "vegeta.bin"
    targets.write_text(f"GET {load.url}\n")
    rate = [f"-rate={load.rate_per_s or 0:.0f}", f"-duration={load.seconds:g}s"]
    if load.rate_per_s is None:
        rate.append(f"-max-workers={load.connections}")
    connections = [f"-connections={load.connections}", f"-max-connections={load.connections}"]
    return [
        ["attack", *rate, *connections, *load.extra, f"-targets={targets}", f"-output={results}"],
        ["report", "-type=json", str(results)],
    ]


def _k6(load: PeerLoad) -> list[list[str]]:
    """Call k6 with a script that sends a single request and prints the summary as JSON."""
    options: dict[str, Any] = {"discardResponseBodies": True, "summaryTrendStats": list(k6.QUANTILES.values())}
    if load.rate_per_s is None:
        options |= {"vus": load.connections, "duration": f"{load.seconds:g}s"}
    else:
        scenario = {
            "executor": "constant-arrival-rate",
            "rate": max(1, round(load.rate_per_s)),
            "timeUnit": "1s",
            "duration": f"{load.seconds:g}s",
            "preAllocatedVUs": load.connections,
            "maxVUs": load.connections,
        }
        options["scenarios"] = {"known": scenario}
    script = load.scratch / "k6.js"
    script.write_text(
        "import http from 'k6/http';\n"
        f"export const options = {json.dumps(options)};\n"
        f"export default function () {{ http.get({json.dumps(load.url)}); }}\n"
        "export function handleSummary(data) { return { stdout: JSON.stringify(data) }; }\n"
    )
    return [["run", "--quiet", "--no-usage-report", *load.extra, str(script)]]


ADAPTERS = (
    # https://github.com/giltene/wrk2: it calibrates for ten seconds and does not count them.
    PeerAdapter("wrk2", "4.0.0 (44a94c1)", _wrk2, wrk.read, ("-v",), settles_s=10.0),
    # https://github.com/hatoo/oha: with its correction for late answers.
    PeerAdapter("oha", "1.16.0", _oha, oha.read),
    # https://github.com/tsenart/vegeta: it has no p99.9.
    PeerAdapter(
        "vegeta",
        "12.13.0",
        _vegeta,
        vegeta.read,
        ("-version",),
        note="times from the actual send",
    ),
    # https://k6.io
    PeerAdapter(
        "k6", "1.8.1", _k6, k6.read, ("version",), note="times from the actual send; drops what it has no user for"
    ),
    # h2load of https://nghttp2.org: its rate is per client, and held by a timer of 10 ms.
    PeerAdapter(
        "h2load",
        "nghttp2 1.52.0",
        _h2load,
        h2load.read,
        note="its rate comes in bursts, and a client that waits sends later",
    ),
    # https://github.com/wg/wrk: it has no p99.9. With -v it exits with 1 and prints its version in the first line.
    PeerAdapter(
        "wrk",
        "4.1.0",
        _wrk,
        wrk.read,
        ("-v",),
        loop="closed",
        note="cannot hold a rate: a closed load on as many connections",
    ),
)
