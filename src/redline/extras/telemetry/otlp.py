"""The sums of a meter, pushed to a collector by OTLP over HTTP.

Importing this needs the extra `otlp`: the SDK of OpenTelemetry and its exporter.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
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

from redline.extras.telemetry.meter import (
    BOUNDS_S,
    ENGINE_CPU,
    REQUESTS,
    RESPONSE,
    SERVER_CPU,
    SERVER_MEMORY,
    SERVICE,
    DurationBuckets,
    MetricName,
    SummingMeter,
    attributes,
)
from redline.extras.telemetry.pushing import pushed_to, pushing
from redline.version import VERSION

TIMEOUT_S = 5.0
_SUCCESS = 2
_SIGNAL = "/v1/metrics"
"""Where a collector takes metrics (OTLP specification 1.5, "OTLP/HTTP Request")."""


@contextmanager
def pushed(meter: SummingMeter, url: str, say: Callable[[str], object]) -> Iterator[None]:
    """Push the meter to this URL every few seconds, and once more at the end.

    A push that fails ends no load: in the end `say` gets a line about it. Raises UsageError for a URL that is none.
    """
    endpoint = pushed_to("--otlp", url, _SIGNAL, "http://127.0.0.1:4318")
    logger = logging.getLogger("opentelemetry")
    logger.addHandler(logging.NullHandler())  # it would print to stderr in the midst of the progress
    logger.propagate = False
    session = CollectorSession("--otlp", "metrics")
    exporter = OTLPMetricExporter(endpoint=endpoint, timeout=TIMEOUT_S, session=session)

    def push() -> str:
        session.refused = ""
        done = exporter.export(metrics_data(meter))
        failed = "" if done is MetricExportResult.SUCCESS else "does a collector listen there?"
        return session.refused or failed

    with pushing(push, f"metrics to {endpoint}", 3 * TIMEOUT_S, say):
        yield


class CollectorSession(requests.Session):
    """Follows no redirect, and keeps what an answer says that is no success.

    The exporters take any status below 400 for one: all would be lost where a redirect turns a POST into a GET, or
    names no other place. `flag` is what names the URL, which takes `what`.
    """

    def __init__(self, flag: str, what: str) -> None:
        super().__init__()
        self._flag, self._what = flag, what
        self.refused = ""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """The answer to one request."""
        answer = super().send(request, **{**options, "allow_redirects": False})
        to = answer.headers.get("location")
        redirect = f" to {to}: give {self._flag} the URL that takes {self._what}" if to else ""
        taken = (answer.status_code or 0) // 100 == _SUCCESS
        self.refused = "" if taken else f"status {answer.status_code}{redirect}"
        return answer


def metrics_data(meter: SummingMeter) -> MetricsData:
    """Everything that the meter has, as the SDK's exporters take it."""
    service, response, requests, cpu = [], [], list[NumberDataPoint](), []
    server_cpu, server_memory = list[NumberDataPoint](), list[NumberDataPoint]()
    own, now_ns = VERSION, time.time_ns()
    for (trial, phase), sums in meter.sums().items():
        about, began_ns = attributes(trial, phase), sums.began_unix_ns
        if sums.response.count:
            response.append(_times(about, began_ns, now_ns, sums.response))
        if sums.service.count:
            service.append(_times(about, began_ns, now_ns, sums.service))
        cpu.append(NumberDataPoint(about, began_ns, now_ns, sums.engine_cpu_ns / 1e9))
        if sums.server_cpu_ns is not None:
            server_cpu.append(NumberDataPoint(about, began_ns, now_ns, sums.server_cpu_ns / 1e9))
        if sums.server_rss_bytes is not None:
            server_memory.append(NumberDataPoint(about, began_ns, now_ns, sums.server_rss_bytes))
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
        _metric(SERVER_CPU, _counter(server_cpu)),
        _metric(SERVER_MEMORY, Gauge(server_memory)),
    ]
    resource = Resource({"service.name": "redline", "service.version": own})
    scope = ScopeMetrics(InstrumentationScope("redline", own), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(named: MetricName, data: Histogram | Sum | Gauge) -> Metric:
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
