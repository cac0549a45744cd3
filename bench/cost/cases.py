"""What is compared: each case starts its server, runs engine and peers in rounds, and gives rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.cost import pace
from bench.cost.engine import BACKENDS, Exchange, Work, closed, engine
from bench.cost.pairs import Client, Samples, in_rounds, progress
from bench.cost.peers import client, pipelining, uploading
from bench.cost.place import Place
from bench.cost.scaling import scaling
from bench.cost.servers import nghttpd, nginx
from bench.cost.table import Outcome, Row, order, row
from bench.rig import PATH, running
from redline.extras.peers import PeerLoad

CONNECTIONS = 64
DEPTH = 16
HTTP2_CONNECTIONS = 8
UPLOAD_BYTES = 5_000_000
UPLOAD_CONNECTIONS = 8


@dataclass(frozen=True)
class Against:
    """A peer by the name in the table, and its client; None when it is not installed."""

    name: str
    client: Client | None
    goal: float | None = None


def compare(case: str, place: Place, subjects: Sequence[Client], peers: Sequence[Against]) -> tuple[list[Row], Samples]:
    """Rows of each subject against each peer, and the runs. A peer that is missing is named as missing."""
    there = [each.client for each in peers if each.client is not None]
    samples = in_rounds(order(subjects, there), place.pairs, progress)
    samples.failed |= {each.name: "not installed" for each in peers if each.client is None}
    return [row(case, ours.name, each.name, each.goal, samples) for each in peers for ours in subjects], samples


def _engines(place: Place, exchange: Exchange, load: dict[str, Any]) -> list[Client]:
    work = Work(exchange, load, place.seconds, (place.client_core,))
    return [engine(work, backend) for backend in BACKENDS]


def _load(place: Place, url: str, connections: int, *extra: str, http2: bool = False) -> PeerLoad:
    cpus = (place.client_core,)
    return PeerLoad(url, connections, place.seconds, place.scratch, cpus=cpus, http2=http2, extra=extra)


def plain(place: Place) -> Outcome:
    """GET on 64 connections, answered at once."""
    with running(place.oracle, "null", cpu=place.server_core) as oracle:
        load = _load(place, oracle.url, CONNECTIONS)
        others = [
            Against("h2load --h1", client("h2load --h1", load, "h2load")),
            *(Against(name, client(name, load)) for name in ("oha", "k6")),
        ]
        wrk = Against("wrk", client("wrk", load), 0.70)
        subjects = _engines(place, Exchange(oracle.endpoint.port), closed(CONNECTIONS))
        return Outcome(compare("plain", place, subjects, [wrk, *others])[0])


def pipelined(place: Place) -> Outcome:
    """The same with 16 requests in flight on each connection. wrk writes 16, waits for all, and times that."""
    with running(place.oracle, "null", cpu=place.server_core) as oracle:
        script = pipelining(DEPTH, PATH, place.scratch)
        wrk = client("wrk", _load(place, oracle.url, CONNECTIONS, *script))
        subjects = _engines(place, Exchange(oracle.endpoint.port), closed(CONNECTIONS, DEPTH))
        return Outcome(compare("16-deep", place, subjects, [Against("wrk", wrk, 0.60)])[0])


def tls(place: Place) -> Outcome:
    """GET over TLS on 64 connections; nginx takes one version and one cipher on each port."""
    found = Outcome()
    with nginx(place.scratch, place.server_core) as ports:
        for name, port, version in (("TLS 1.3", ports.tls13, "1.3"), ("TLS 1.2", ports.tls12, "1.2")):
            wrk = client("wrk", _load(place, f"https://127.0.0.1:{port}{PATH}", CONNECTIONS))
            subjects = _engines(place, Exchange(port, tls=(version,)), closed(CONNECTIONS))
            rows, samples = compare(name, place, subjects, [Against("wrk", wrk, 0.85)])
            found.rows += rows
            found.below.append(f"{name}: {_agreed(samples)}. wrk does not say; the server takes nothing else.")
    return found


def http2(place: Place) -> Outcome:
    """16 streams on each of 8 connections, against nghttpd with prior knowledge and over TLS 1.3, and against nginx."""
    found = Outcome()
    with nghttpd(place.scratch, place.server_core) as port:
        found.rows += _on_streams(place, "HTTP/2, 16 streams", port)[0]
    with nghttpd(place.scratch, place.server_core, tls=True) as port:
        rows, samples = _on_streams(place, "HTTP/2 over TLS 1.3, nghttpd", port, "1.3")
        found.rows += rows
        found.below.append(f"HTTP/2 over TLS, nghttpd: {_agreed(samples)}.")
    with nginx(place.scratch, place.server_core) as ports:
        rows, samples = _on_streams(place, "HTTP/2 over TLS 1.3", ports.http2, "1.3")
        found.rows += rows
        found.below.append(f"HTTP/2 over TLS: {_agreed(samples)}.")
    return found


def _on_streams(place: Place, case: str, port: int, *tls: str) -> tuple[list[Row], Samples]:
    """The engine against h2load on that port, over these versions of TLS or none."""
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{PATH}"
    h2load = client("h2load", _load(place, url, HTTP2_CONNECTIONS, f"-m{DEPTH}", http2=True))
    subjects = _engines(place, Exchange(port, http="2", tls=tls), closed(HTTP2_CONNECTIONS, DEPTH))
    return compare(case, place, subjects, [Against("h2load", h2load, 0.80)])


def upload(place: Place) -> Outcome:
    """POST of 5 MB on 8 connections to the oracle, which counts what comes."""
    with running(place.oracle, "null", cpu=place.server_core) as oracle:
        script = uploading(UPLOAD_BYTES, place.scratch)
        wrk = client("wrk", _load(place, oracle.url, UPLOAD_CONNECTIONS, *script))
        answer = len(f"{PATH[1:]} {UPLOAD_BYTES}")
        exchange = Exchange(oracle.endpoint.port, body=b"x" * UPLOAD_BYTES, answer_length=answer)
        subjects = _engines(place, exchange, closed(UPLOAD_CONNECTIONS))
        rows, samples = compare("5 MB uploads", place, subjects, [Against("wrk", wrk, 1.0)])
    per_cpu_second = [
        f"{name} {UPLOAD_BYTES / samples.mean(name, lambda sample: sample.cpu_us_per_request):,.0f} MB"
        for name, runs in samples.of.items()
        if runs
    ]
    return Outcome(rows, [f"Uploaded per CPU second: {', '.join(per_cpu_second)}."])


def workers(place: Place) -> Outcome:
    """Two workers against one, of the same backend; each on a core of its own where there are three."""
    found = Outcome()
    with running(place.oracle, "null", cpu=place.server_core) as oracle:
        exchange, load = Exchange(oracle.endpoint.port), closed(CONNECTIONS)
        for backend in BACKENDS:
            one = Work(exchange, load, place.seconds, (place.client_core,))
            two = Work(exchange, load, place.seconds, place.cores[1:3], workers=2)
            first = engine(one, backend, f"1 worker ({backend})")
            second = engine(two, backend, f"2 workers ({backend})")
            found.rows += compare("two workers", place, [second], [Against(first.name, first, 1.1)])[0]
    if len(place.cores) < 3:
        found.below.append(
            "Two workers against one: both share the client's core here, because there are fewer than three cores."
            " So the ratio has the switches between them in it, and does not answer the question."
        )
    return found


def _agreed(samples: Samples) -> str:
    """`redline (epoll) agreed on TLS 1.3 …`, for those who say so."""
    notes = {name: sample.ran.note for name, runs in samples.of.items() for sample in runs if sample.ran.note}
    return "; ".join(f"{name} agreed on {note}" for name, note in notes.items()) or "nobody said what was agreed on"


CASES: dict[str, Callable[[Place], Outcome]] = {
    "plain": plain,
    "pipelined": pipelined,
    "tls": tls,
    "http2": http2,
    "open": pace.steady,
    "upload": upload,
    "workers": workers,
    "scaling": scaling,
}
