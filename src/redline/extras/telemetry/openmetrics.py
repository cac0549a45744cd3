"""The sums of a meter as text of OpenMetrics 1.0, on a port of the loopback address.

Source: https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md, whose reader in the library
`prometheus_client` the tests ask.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler

from redline.errors import UsageError
from redline.extras.telemetry.families import CREATED, Family, Labels, families
from redline.extras.telemetry.meter import SummingMeter
from redline.viewing.loopback import ADDRESS, LoopbackServer

PATH = "/metrics"
CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_IDLE_S = 5.0
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def exposition(meter: SummingMeter) -> str:
    """Everything that the meter has, as a text."""
    lines = [line for family in families(meter) for line in _lines(family)]
    return "\n".join([*lines, "# EOF"]) + "\n"


@contextmanager
def served(meter: SummingMeter, port: int) -> Iterator[str]:
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


class _MetricsServer(LoopbackServer):
    def __init__(self, port: int, meter: SummingMeter) -> None:
        super().__init__(port, _MetricsHandler)
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


def _lines(family: Family) -> Iterator[str]:
    yield f"# TYPE {family.name} {family.kind}"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {family.about.translate(_ESCAPES)}"
    for sample in family.samples:
        value = f"{sample.value:.3f}" if sample.suffix == CREATED else repr(sample.value)
        yield f"{family.name}{sample.suffix}{_labels(sample.labels)} {value}"


def _labels(labels: Labels) -> str:
    pairs = (f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}"
