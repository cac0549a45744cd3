"""The requests of a load as spans, sent to a collector by OTLP over HTTP: what a server traced hangs below them.

Attributes are those of OpenTelemetry's conventions for HTTP clients
(https://opentelemetry.io/docs/specs/semconv/http/http-spans/). Importing this needs the extra `otlp`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from redline.cli.telemetry import MeteredTrial
from redline.errors import UsageError
from redline.extras.telemetry.meter import TracedTraffic, attributes
from redline.extras.telemetry.otlp import TIMEOUT_S, CollectorSession
from redline.extras.telemetry.pushing import pushed_to
from redline.model import Cell, Suite
from redline.model.kept import KeptRequest
from redline.model.template import has_placeholders
from redline.version import VERSION

FLAG = "--otlp-traces"
_SIGNAL = "/v1/traces"
_RESOURCE = Resource({"service.name": "redline", "service.version": VERSION})
_SCOPE = InstrumentationScope("redline", VERSION)


class TraceSender:
    """Sends the requests that were kept of each trial, when it has ended."""

    def __init__(self, url: str) -> None:
        self.endpoint = pushed_to(FLAG, url, _SIGNAL, "http://127.0.0.1:4318")
        self._session = CollectorSession(FLAG, "traces")
        self._exporter = OTLPSpanExporter(endpoint=self.endpoint, timeout=TIMEOUT_S, session=self._session)
        self._sent, self._why = 0, ""

    def check(self, suite: Suite) -> None:
        """Raise UsageError for requests that begin no trace."""
        if not any(scenario.is_traced for scenario in suite.scenarios):
            hint = "have each request begin one: -H 'traceparent: {traceparent}', or as `headers` of a suite"
            raise UsageError(f"{FLAG}: no request has a trace context", hint=hint)

    def send(self, trial: MeteredTrial, cell: Cell, traffic: TracedTraffic) -> None:
        """Send the spans of a trial. What the collector refuses ends no load."""
        made = [*spans(trial, cell, traffic)]
        if not made:
            return
        self._session.refused = ""
        try:
            done = self._exporter.export(made)
        except Exception as error:  # noqa: BLE001 - whatever the other end does, the load goes on
            self._why = str(error) or type(error).__name__
            return
        failed = "" if done is SpanExportResult.SUCCESS else "does a collector listen there?"
        self._why = self._session.refused or failed or self._why
        self._sent += 0 if self._session.refused or failed else len(made)

    def summary(self) -> str:
        """What became of all of them."""
        nothing = "no request of a trial had a trace" if not self._sent and not self._why else ""
        sent = f"{self._sent} spans were sent to {self.endpoint}" if self._sent else ""
        failed = f"spans could not be sent to {self.endpoint}: {self._why}" if self._why else ""
        return "; ".join(filter(None, (sent, failed, nothing and f"{FLAG}: {nothing}, so nothing was sent")))


@contextmanager
def traced(url: str, say: Callable[[str], object]) -> Iterator[TraceSender]:
    """Send the traces of trials to this URL; in the end `say` gets what became of them. Raises UsageError."""
    sender = TraceSender(url)
    try:
        yield sender
    finally:
        say(sender.summary())


def spans(trial: MeteredTrial, cell: Cell, traffic: TracedTraffic) -> Iterator[ReadableSpan]:
    """The spans of the slowest requests of a trial, and of those that are sampled, as far as they were written."""
    about = attributes(trial, "measure") | _server(traffic)
    kept = [] if traffic.kept is None else [*traffic.kept.slowest, *traffic.kept.sampled]
    for request in {request.trace_id: request for request in kept if request.traceparent}.values():
        yield _span(request, cell, traffic.epoch_unix_ns, about)


def _span(kept: KeptRequest, cell: Cell, epoch_unix_ns: int, about: dict[str, str | int]) -> ReadableSpan:
    """From when a request was due to its end, with when it was written and its first byte came as events."""
    asked, failed = cell.scenario.requests[kept.request or 0], kept.outcome != "ok"
    answer: dict[str, str | int] = {} if kept.status is None else {"http.response.status_code": kept.status}
    error = str(kept.status) if kept.outcome == "unexpected_status" else kept.outcome
    times = {"request written": kept.written_ns, "first byte": kept.first_ns}
    flags = TraceFlags(TraceFlags.SAMPLED if kept.is_sampled else TraceFlags.DEFAULT)
    return ReadableSpan(
        asked.line,
        SpanContext(int(kept.trace_id, 16), int(kept.parent_id, 16), is_remote=False, trace_flags=flags),
        kind=SpanKind.CLIENT,
        resource=_RESOURCE,
        instrumentation_scope=_SCOPE,
        attributes={
            **about,
            "http.request.method": asked.method,
            "network.protocol.version": cell.variant.http,
            **_url(asked.path, cell, about),
            **answer,
            **({"error.type": error} if failed else {}),
        },
        events=[Event(name, timestamp=epoch_unix_ns + at_ns) for name, at_ns in times.items() if at_ns is not None],
        status=Status(StatusCode.ERROR) if failed else Status(StatusCode.UNSET),
        start_time=epoch_unix_ns + kept.due_ns,
        end_time=epoch_unix_ns + kept.end_ns,
    )


def _server(traffic: TracedTraffic) -> dict[str, str | int]:
    """Where the connections went, if that is one address and port."""
    host, _, port = (traffic.addresses[0] if len(traffic.addresses) == 1 else "").rpartition(":")
    return {"server.address": host.strip("[]"), "server.port": int(port)} if host and port.isdigit() else {}


def _url(path: str, cell: Cell, about: dict[str, str | int]) -> dict[str, str]:
    """The URL, or of one that varies what it is made from."""
    if has_placeholders(path) or "server.address" not in about:
        return {"url.template": path}
    host, scheme = str(about["server.address"]), "http" if cell.variant.tls is None else "https"
    return {"url.full": f"{scheme}://{f'[{host}]' if ':' in host else host}:{about['server.port']}{path}"}
