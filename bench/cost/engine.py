"""The engine as a client: one job on standard input, its events read when it has ended."""

import base64
import json
import math
import subprocess
from dataclasses import dataclass
from typing import Any

from bench.cost.pairs import Client, Ran
from bench.rig import PATH, engine_binary
from redline.driving.protocol import JOB_FORMAT, interval_ns
from redline.errors import DriveError
from redline.model import Histogram

BACKENDS = ("io_uring", "epoll")
WARMUP_NS = 200_000_000
_SECOND_NS = 1_000_000_000
_TIMEOUT_S = 5
_AROUND_S = 20


@dataclass(frozen=True)
class Exchange:
    """Where requests go and what they are; `tls` are the versions that may be agreed on, none for a plain connection.

    Nobody in this bench checks a certificate: not all peers can.
    """

    port: int
    http: str = "1.1"
    tls: tuple[str, ...] = ()
    body: bytes | None = None
    answer_length: int = len(PATH) - 1
    host: str = "127.0.0.1"

    def job(self) -> dict[str, Any]:
        """Target and requests as the job has them: every answer's status and length is checked."""
        tls = {"insecure": True, "versions": list(self.tls)} if self.tls else None
        request: dict[str, Any] = {
            "method": "GET" if self.body is None else "POST",
            "path": PATH,
            "headers": [],
            "expect": {"status": 200, "body_length": self.answer_length},
        }
        if self.body is not None:
            request["body_base64"] = base64.b64encode(self.body).decode()
        target = {"host": self.host, "port": self.port, "http": self.http, "tls": tls}
        return {"target": target, "requests": [request]}


@dataclass(frozen=True)
class Work:
    """A load on an exchange for some seconds, warm-up included, with the engine's cores and workers."""

    exchange: Exchange
    load: dict[str, Any]
    seconds: float
    cores: tuple[int, ...]
    workers: int = 1

    def job(self, backend: str) -> dict[str, Any]:
        """The job."""
        measure_ns = round(self.seconds * _SECOND_NS) - WARMUP_NS
        return {
            "format": JOB_FORMAT,
            **self.exchange.job(),
            "load": self.load,
            "warmup_ns": WARMUP_NS,
            "measure_ns": measure_ns,
            "drain_ns": _SECOND_NS,
            "timeout_ns": _TIMEOUT_S * _SECOND_NS,
            "interval_ns": interval_ns(measure_ns),
            "deadline_ns": round(self.seconds + _AROUND_S) * _SECOND_NS,
            "seed": 1,
            "workers": self.workers,
            "cpus": list(self.cores),
            "backend": backend,
        }


def closed(users: int, depth: int = 1) -> dict[str, Any]:
    """So many users, each with `depth` requests in flight."""
    return {"closed": {"users": users, "depth": depth}}


def uniform(rate_per_s: float, connections: int) -> dict[str, Any]:
    """An open load of even distances."""
    return {"open": {"rate_per_s": rate_per_s, "arrivals": "uniform", "connections": connections}}


def engine(work: Work, backend: str, name: str | None = None) -> Client:
    """The engine with that backend, doing that work."""
    return Client(name or f"redline ({backend})", lambda: run(work, backend))


def run(work: Work, backend: str) -> Ran:
    """One run. Raises DriveError when there is no result."""
    cores = ",".join(str(core) for core in work.cores)
    command = ["taskset", "--cpu-list", cores, str(engine_binary())]
    return read(events_of(command, work.job(backend), work.seconds + 2 * _AROUND_S), backend)


def events_of(command: list[str], job: dict[str, Any], at_most_s: float) -> list[dict[str, Any]]:
    """The engine's events. Raises DriveError for an `error` event or none that is a result."""
    try:
        done = subprocess.run(
            command, input=json.dumps(job), capture_output=True, text=True, timeout=at_most_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise DriveError(f"the engine had not ended after {at_most_s:.0f} s", hint="a fault of the engine") from error
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for event in events:
        if event["event"] == "error":
            raise DriveError(event["message"], hint=event.get("hint", ""))
    if not events or events[-1]["event"] != "result":
        raise DriveError(
            f"the engine ended with {done.returncode} and no result: {done.stderr[-300:]}", hint="a fault of the engine"
        )
    return events


def read(events: list[dict[str, Any]], backend: str) -> Ran:
    """What the events say. The requests are those of the warm-up too, as the CPU time is."""
    started = next(event for event in events if event["event"] == "started")
    intervals = [event for event in events if event["event"] == "interval"]
    result = events[-1]
    window_s = (result["measure_end_ns"] - result["measure_start_ns"]) / 1e9
    faults = {kind: n for kind, n in result["counts"]["outcomes"].items() if n and kind != "ok"}
    faults_text = [f"{n} {kind}" for kind, n in faults.items()]
    if result["ended"] != "complete":
        faults_text.append(f"ended by {result['ended']}")
    if started["engine"].get("backend") != backend:
        faults_text.append(f"used {started['engine'].get('backend')}")
    response = Histogram.decode(result["response"])
    p50, p99 = (response.quantile_ns(q) / 1000 if response.count else math.nan for q in (0.5, 0.99))
    return Ran(
        requests=sum(each["counts"]["completed"] for each in intervals),
        rate_per_s=result["counts"]["completed"] / window_s,
        faults=", ".join(faults_text),
        p50_us=p50,
        p99_us=p99,
        note=_agreed(started.get("tls")),
    )


def _agreed(tls: dict[str, Any] | None) -> str:
    """`TLS 1.3 TLS13_AES_128_GCM_SHA256 h2`, or nothing."""
    if not tls:
        return ""
    return " ".join(["TLS", *(str(tls[key]) for key in ("version", "cipher", "alpn") if tls.get(key))])
