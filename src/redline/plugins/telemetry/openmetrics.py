"""The sums of a meter as text of OpenMetrics 1.0, on a port of the loopback address.

Source: https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md, whose reader in the library
`prometheus_client` the tests ask.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn

from redline.errors import UsageError
from redline.plugins.telemetry.meter import (
    BOUNDS_S,
    ENGINE_CPU,
    REQUESTS,
    RESPONSE,
    SERVICE,
    DurationBuckets,
    Meter,
    MeteredSums,
    MetricName,
    attributes,
)

ADDRESS = "127.0.0.1"
PATH = "/metrics"
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_IDLE_S = 5.0
_UNITS = {"s": "seconds"}
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})

Labels = Mapping[str, str]
"""What tells the series of a metric apart, by the names of attributes."""


def exposition(meter: Meter) -> str:
    """Everything that the meter has, as a text."""
    every = [(attributes(trial, phase), sums) for (trial, phase), sums in meter.sums().items()]
    lines = [
        *_histogram(SERVICE, ((labels, sums, sums.service) for labels, sums in every)),
        *_histogram(RESPONSE, ((labels, sums, sums.response) for labels, sums in every)),
        *_counter(REQUESTS, _requests(every)),
        *_counter(ENGINE_CPU, ((labels, sums.engine_cpu_ns / 1e9, sums) for labels, sums in every)),
        "# EOF",
    ]
    return "\n".join(lines) + "\n"


@contextmanager
def served(meter: Meter, port: int) -> Iterator[str]:
    """Serve the meter on this port of the loopback address; yield the URL. Raises UsageError where it is in use."""
    try:
        server = _MetricsServer(port, meter)
    except OSError as error:
        raise UsageError(
            f"--openmetrics {port}: {ADDRESS}:{port} cannot be listened on: {error.strerror}",
            hint="give another port, or end what listens there: ss -ltnp",
        ) from None
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="openmetrics", daemon=True)
        thread.start()
        try:
            yield f"http://{ADDRESS}:{port}{PATH}"
        finally:
            server.shutdown()


class _MetricsServer(ThreadingMixIn, TCPServer):
    """Not an HTTPServer, which asks the resolver for the name of its address."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False  # a connection that is kept open must not hold up the end of the command

    def __init__(self, port: int, meter: Meter) -> None:
        super().__init__((ADDRESS, port), _MetricsHandler)
        self.meter = meter

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a reader that went away is no error of ours."""


class _MetricsHandler(BaseHTTPRequestHandler):
    server: _MetricsServer
    timeout = _IDLE_S

    def do_GET(self) -> None:
        """Answer with the metrics, or that there is nothing else."""
        if self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, explain=f"the metrics are at {PATH}")
            return
        content = exposition(self.server.meter).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing: stderr has the progress."""


def _requests(every: Iterable[tuple[dict[str, str], MeteredSums]]) -> Iterator[tuple[Labels, float, MeteredSums]]:
    for labels, sums in every:
        for kind, number in sums.requests.items():
            if number or not kind:
                yield {**labels, **({"error.type": kind} if kind else {})}, number, sums


def _head(metric: MetricName, kind: str) -> tuple[str, list[str]]:
    name = metric.name.replace(".", "_")
    unit = _UNITS.get(metric.unit, "")
    name = f"{name}_{unit}" if unit else name
    units = [f"# UNIT {name} {unit}"] if unit else []
    return name, [f"# TYPE {name} {kind}", *units, f"# HELP {name} {metric.about.translate(_ESCAPES)}"]


def _histogram(metric: MetricName, series: Iterable[tuple[Labels, MeteredSums, DurationBuckets]]) -> Iterator[str]:
    name, head = _head(metric, "histogram")
    yield from head
    for labels, sums, times in series:
        below = 0
        for bound, number in zip((*map(str, BOUNDS_S), "+Inf"), times.counts, strict=True):
            below += number
            yield f"{name}_bucket{_labels({**labels, 'le': bound})} {below}"
        yield f"{name}_count{_labels(labels)} {times.count}"
        yield f"{name}_sum{_labels(labels)} {times.sum_s!r}"
        yield f"{name}_created{_labels(labels)} {sums.began_unix_ns / 1e9:.3f}"


def _counter(metric: MetricName, series: Iterable[tuple[Labels, float, MeteredSums]]) -> Iterator[str]:
    name, head = _head(metric, "counter")
    yield from head
    for labels, value, sums in series:
        yield f"{name}_total{_labels(labels)} {value!r}"
        yield f"{name}_created{_labels(labels)} {sums.began_unix_ns / 1e9:.3f}"


def _labels(labels: Labels) -> str:
    pairs = (f'{name.replace(".", "_")}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}"
