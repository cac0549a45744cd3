"""A collector of OpenTelemetry that keeps the spans that it is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.fakes.serving import serving


class SpanCollector(HTTPServer):
    """Answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.status = 200
        self.paths: list[str] = []
        self.taken: list[ExportTraceServiceRequest] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> list[Span]:
        """All that it was sent."""
        scopes = (scope for sent in self.taken for part in sent.resource_spans for scope in part.scope_spans)
        return [span for scope in scopes for span in scope.spans]


def read(attributes: list[KeyValue]) -> dict[str, str | int]:
    """Attributes by name."""
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in attributes}


@contextmanager
def collecting() -> Iterator[SpanCollector]:
    """Run it."""
    with serving(SpanCollector()) as server:
        yield server


class _Taking(BaseHTTPRequestHandler):
    server: SpanCollector

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        if self.server.status == 200:
            self.server.taken.append(ExportTraceServiceRequest.FromString(content))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass
