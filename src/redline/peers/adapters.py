"""Adapters of load generators: command lines, and readers of their output. Readers never fail on odd output."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_UNITS_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


@dataclass(frozen=True)
class PeerLoad:
    """A peer's load on `url`.

    Without `rate_per_s` each connection sends its next request when the last one is answered. `cpus` are the cores that
    the peer may use (empty: any), `scratch` is a folder for its files, and `extra` are arguments of this tool alone.
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
class PeerOutput:
    """A peer's report; empty or None where its output says nothing.

    `latencies_ns` are by quantile (1 is the largest). `requests` counts the right answers, `rate_per_s` is the peer's
    own figure, `faults` names what went wrong, and `tls` is what was negotiated.
    """

    latencies_ns: dict[float, float] = field(default_factory=dict)
    requests: int | None = None
    rate_per_s: float | None = None
    faults: str = ""
    tls: str = ""


@dataclass(frozen=True)
class PeerAdapter:
    """How one tool is called, and how its output is read.

    `commands` gives the arguments of its calls, one after the other; the standard output of the last one is read.
    `settles_s` is how long it sends load before it counts, `loop` says whether it can hold a rate, and `note` is what a
    reader of its figures has to know. `tried_with` is the version whose output the reader was written for.
    """

    name: str
    tried_with: str
    commands: Callable[[PeerLoad], list[list[str]]]
    read: Callable[[str], PeerOutput]
    version_arguments: tuple[str, ...] = ("--version",)
    loop: Literal["open", "closed"] = "open"
    settles_s: float = 0.0
    note: str = ""


_WRK_QUANTILE = re.compile(r"^ *(\d{1,3}(?:\.\d+)?)% +(\S+) *$", re.MULTILINE)
_WRK_LARGEST = re.compile(r"^ *Latency +\S+ +\S+ +(\S+)", re.MULTILINE)
_WRK_REQUESTS = re.compile(r"(\d+) requests in")
_WRK_RATE = re.compile(r"Requests/sec:\s+(\d+(?:\.\d+)?)")
_WRK_FAULTS = re.compile(r"Socket errors: .*|Non-2xx.*")


def _wrk(load: PeerLoad) -> list[list[str]]:
    return [["-t1", f"-c{load.connections}", f"-d{load.whole_seconds}s", "--latency", *load.extra, load.url]]


def _wrk2(load: PeerLoad) -> list[list[str]]:
    """Call wrk2 with a single thread at the rate. Raises ValueError without a rate."""
    if load.rate_per_s is None:
        raise ValueError("wrk2 needs a rate")
    return [[f"-R{max(1, round(load.rate_per_s))}", *_wrk(load)[0]]]


def _read_wrk(output: str) -> PeerOutput:
    """Read wrk's distribution; the maximum is in the statistics of its threads."""
    latencies = {round(float(share) / 100, 9): time_ns(text) for share, text in _WRK_QUANTILE.findall(output)}
    largest = _WRK_LARGEST.search(output)
    if largest is not None and 1.0 not in latencies:
        latencies[1.0] = time_ns(largest[1])
    requests, rate, faults = (pattern.search(output) for pattern in (_WRK_REQUESTS, _WRK_RATE, _WRK_FAULTS))
    return PeerOutput(
        _reported(latencies),
        int(requests[1]) if requests else None,
        float(rate[1]) if rate else None,
        faults[0].strip() if faults else "",
    )


_H2LOAD_MOST_CLIENTS_AT_A_RATE = 64
_H2LOAD_TIMES = re.compile(r"^time for request: +(.+)$", re.MULTILINE)
_H2LOAD_HEADS = re.compile(r"^ +min +max +(.+)$", re.MULTILINE)
_H2LOAD_COLUMNS = {"max": 1.0, "median": 0.5, "p95": 0.95, "p99": 0.99}
_H2LOAD_REQUESTS = re.compile(
    r"requests: \d+ total, \d+ started, \d+ done, (\d+) succeeded, (\d+) failed, (\d+) errored"
)
_H2LOAD_RATE = re.compile(r"finished in .*?, (\d+(?:\.\d+)?) req/s")
_H2LOAD_TLS = re.compile(r"^(?:TLS Protocol|Cipher): (\S+)$", re.MULTILINE)


def _h2load(load: PeerLoad) -> list[list[str]]:
    """Call h2load with a single thread; a rate is divided among its clients."""
    clients, rate = load.connections, []
    if load.rate_per_s is not None:
        clients = min(clients, _H2LOAD_MOST_CLIENTS_AT_A_RATE)
        rate = [f"--rps={load.rate_per_s / clients:g}"]
    protocol = [] if load.http2 else ["--h1"]
    return [["-t1", *protocol, f"-c{clients}", f"-D{load.whole_seconds}", *rate, *load.extra, load.url]]


def _read_h2load(output: str) -> PeerOutput:
    """Read h2load's output: the largest time; later versions also print the median, p95 and p99."""
    heads, times = _H2LOAD_HEADS.search(output), _H2LOAD_TIMES.search(output)
    names = ["min", "max", *(heads[1].split() if heads else ())]
    pairs = zip(names, times[1].split() if times else (), strict=False)
    requests, rate = _H2LOAD_REQUESTS.search(output), _H2LOAD_RATE.search(output)
    right, failed, errored = map(int, requests.groups()) if requests else (None, 0, 0)
    return PeerOutput(
        _reported({_H2LOAD_COLUMNS[name]: time_ns(text) for name, text in pairs if name in _H2LOAD_COLUMNS}),
        right,
        float(rate[1]) if rate else None,
        f"{failed} failed, {errored} errored" if failed + errored else "",
        " ".join(_H2LOAD_TLS.findall(output)),
    )


def _oha(load: PeerLoad) -> list[list[str]]:
    rate = [] if load.rate_per_s is None else ["-q", f"{load.rate_per_s:g}", "--latency-correction"]
    length = ["-z", f"{load.seconds:g}s", "-c", str(load.connections)]
    return [[*length, *rate, "--no-tui", "--output-format", "json", *load.extra, load.url]]


def _read_oha(output: str) -> PeerOutput:
    """Read oha's times, which are in seconds. A request that its end cut off is no fault."""
    report = _object(output)
    percentiles, summary = _member(report, "latencyPercentiles"), _member(report, "summary")
    names = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9", 1.0: "slowest"}
    right = _number(_member(report, "statusCodeDistribution").get("200", 0))
    errors = _member(report, "errorDistribution").items()
    return PeerOutput(
        _latencies(percentiles | {"slowest": summary.get("slowest")}, names, 1e9),
        None if right is None or "statusCodeDistribution" not in report else int(right),
        _number(summary.get("requestsPerSec")),
        ", ".join(f"{n} {kind}" for kind, n in errors if "aborted due to deadline" not in kind),
    )


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


def _read_vegeta(output: str) -> PeerOutput:
    """Read vegeta's times, which are in nanoseconds."""
    report = _object(output)
    right = _number(_member(report, "status_codes").get("200"))
    names = {0.5: "50th", 0.9: "90th", 0.99: "99th", 1.0: "max"}
    return PeerOutput(
        _latencies(_member(report, "latencies"), names),
        None if right is None else int(right),
        _number(report.get("throughput")),
    )


_K6_QUANTILES = {0.5: "p(50)", 0.9: "p(90)", 0.99: "p(99)", 0.999: "p(99.9)", 1.0: "max"}


def _k6(load: PeerLoad) -> list[list[str]]:
    """Call k6 with a script that sends a single request and prints the summary as JSON."""
    options: dict[str, Any] = {"discardResponseBodies": True, "summaryTrendStats": list(_K6_QUANTILES.values())}
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


def _read_k6(output: str) -> PeerOutput:
    """Read k6's times, which are in milliseconds."""
    metrics = _member(_object(output), "metrics")
    times, requests, failed = (
        _member(_member(metrics, name), "values") for name in ("http_req_duration", "http_reqs", "http_req_failed")
    )
    count, share = _number(requests.get("count")), _number(failed.get("rate"))
    return PeerOutput(
        _latencies(times, _K6_QUANTILES, 1e6),
        None if count is None else round(count),
        _number(requests.get("rate")),
        f"{share:.2%} failed" if share else "",
    )


ADAPTERS = (
    # https://github.com/giltene/wrk2: it calibrates for ten seconds and does not count them.
    PeerAdapter("wrk2", "4.0.0 (44a94c1)", _wrk2, _read_wrk, ("-v",), settles_s=10.0),
    # https://github.com/hatoo/oha: with its correction for late answers.
    PeerAdapter("oha", "1.16.0", _oha, _read_oha),
    # https://github.com/tsenart/vegeta: its reader was tried with what its README documents; it has no p99.9.
    PeerAdapter(
        "vegeta",
        "the form that its README documents",
        _vegeta,
        _read_vegeta,
        ("-version",),
        note="times from the actual send",
    ),
    # https://k6.io
    PeerAdapter(
        "k6", "1.8.1", _k6, _read_k6, ("version",), note="times from the actual send; drops what it has no user for"
    ),
    # h2load of https://nghttp2.org: its rate is per client, and held by a timer of 10 ms.
    PeerAdapter(
        "h2load",
        "nghttp2 1.52.0",
        _h2load,
        _read_h2load,
        note="its rate comes in bursts, and a client that waits sends later",
    ),
    # https://github.com/wg/wrk: it has no p99.9. With -v it exits with 1 and prints its version in the first line.
    PeerAdapter(
        "wrk",
        "4.1.0",
        _wrk,
        _read_wrk,
        ("-v",),
        loop="closed",
        note="cannot hold a rate: a closed load on as many connections",
    ),
)


def time_ns(text: str) -> float | None:
    """`5.72ms` in nanoseconds; None when it is no time."""
    match = _TIME.fullmatch(text.strip())
    return None if match is None else float(match[1]) * _UNITS_NS[match[2]]


def _object(output: str) -> dict[str, Any]:
    """The JSON object from the first brace on; empty when there is none."""
    start = output.find("{")
    if start < 0:
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(output, start)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _member(holder: dict[str, Any], name: str) -> dict[str, Any]:
    """An object within it; empty when there is none."""
    member = holder.get(name)
    return member if isinstance(member, dict) else {}


def _number(value: object, scale: float = 1.0) -> float | None:
    """A number of JSON from 0 on, scaled; None when it is no such number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return value * scale


def _latencies(times: dict[str, Any], names: dict[float, str], scale: float = 1.0) -> dict[float, float]:
    """Times in nanoseconds by quantile, as far as they are reported."""
    return _reported({q: _number(times.get(name), scale) for q, name in names.items()})


def _reported(latencies_ns: dict[float, float | None]) -> dict[float, float]:
    return {q: ns for q, ns in latencies_ns.items() if ns is not None}
