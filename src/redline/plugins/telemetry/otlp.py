"""The sums of a meter, pushed to a collector by OTLP over HTTP.

Importing this needs the extra `otlp`: the SDK of OpenTelemetry and its exporter.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from redline.errors import UsageError
from redline.plugins.telemetry.meter import (
    BOUNDS_S,
    ENGINE_CPU,
    REQUESTS,
    RESPONSE,
    SERVICE,
    DurationBuckets,
    Meter,
    MetricName,
    attributes,
)

EVERY_S = 5.0
"""The time between two pushes."""
_TIMEOUT_S = 5.0
_SIGNAL = "/v1/metrics"
"""Where a collector takes metrics (OTLP specification 1.5, "OTLP/HTTP Request")."""


@contextmanager
def pushed(meter: Meter, url: str, say: Callable[[str], object]) -> Iterator[None]:
    """Push the meter to this URL every few seconds, and once more at the end.

    A push that fails ends no load: in the end `say` gets a line about it. Raises UsageError for a URL that is none.
    """
    endpoint = _endpoint(url)
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(logging.NullHandler())  # it would print to stderr in the midst of the progress
    logger.propagate = False
    pushes = _Pushes(meter, OTLPMetricExporter(endpoint=endpoint, timeout=_TIMEOUT_S))
    thread = threading.Thread(target=pushes.run, name="otlp", daemon=True)
    thread.start()
    try:
        yield
    finally:
        pushes.over.set()
        thread.join(3 * _TIMEOUT_S)
        if pushes.failed or thread.is_alive():
            failed = pushes.failed or 1
            say(f"{failed} of {pushes.made} pushes of metrics to {endpoint} failed: does a collector listen there?")


class _Pushes:
    """Pushes until they are `over`, and counts them."""

    def __init__(self, meter: Meter, exporter: OTLPMetricExporter) -> None:
        self._meter, self._exporter = meter, exporter
        self.over = threading.Event()
        self.made = self.failed = 0

    def run(self) -> None:
        while not self.over.wait(EVERY_S):
            self._push()
        self._push()

    def _push(self) -> None:
        self.made += 1
        try:
            done = self._exporter.export(metrics_data(self._meter))
        except Exception:  # noqa: BLE001 - whatever a collector does, the load goes on
            done = MetricExportResult.FAILURE
        self.failed += done is not MetricExportResult.SUCCESS


def metrics_data(meter: Meter) -> MetricsData:
    """Everything that the meter has, as the SDK's exporters take it."""
    service, response, requests, cpu = [], [], list[NumberDataPoint](), []
    own, now_ns = version("redline"), time.time_ns()
    for (trial, phase), sums in meter.sums().items():
        about, began_ns = attributes(trial, phase), sums.began_unix_ns
        if sums.response.count:
            response.append(_times(about, began_ns, now_ns, sums.response))
        if sums.service.count:
            service.append(_times(about, began_ns, now_ns, sums.service))
        cpu.append(NumberDataPoint(about, began_ns, now_ns, sums.engine_cpu_ns / 1e9))
        requests += [
            NumberDataPoint(about | ({"error.type": kind} if kind else {}), began_ns, now_ns, number)
            for kind, number in sums.requests.items()
            if number or not kind
        ]
    metrics = [
        _metric(SERVICE, Histogram(service, AggregationTemporality.CUMULATIVE)),
        _metric(RESPONSE, Histogram(response, AggregationTemporality.CUMULATIVE)),
        _metric(REQUESTS, _counter(requests)),
        _metric(ENGINE_CPU, _counter(cpu)),
    ]
    resource = Resource({"service.name": "redline", "service.version": own})
    scope = ScopeMetrics(InstrumentationScope("redline", own), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _endpoint(url: str) -> str:
    """Where metrics go: a collector's URL without a path is its root. Raises UsageError."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        hint = "give the URL of a collector, such as http://127.0.0.1:4318"
        raise UsageError(f"--otlp {url}: this is no URL", hint=hint)
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{_SIGNAL}"


def _metric(named: MetricName, data: Histogram | Sum) -> Metric:
    return Metric(named.name, named.about, named.unit, data)


def _counter(points: Sequence[NumberDataPoint]) -> Sum:
    return Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)


def _times(about: dict[str, str], began_ns: int, now_ns: int, times: DurationBuckets) -> HistogramDataPoint:
    return HistogramDataPoint(
        attributes=about,
        start_time_unix_nano=began_ns,
        time_unix_nano=now_ns,
        count=times.count,
        sum=times.sum_s,
        bucket_counts=times.counts,
        explicit_bounds=BOUNDS_S,
        min=times.least_s,
        max=times.most_s,
    )
