"""Metrics of a load that runs: read by the library of Prometheus, and by the protocol buffers of OpenTelemetry."""

import io
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from rich.console import Console

from redline.cli.command_line import TelemetryFlags
from redline.cli.session_view import SessionView
from redline.cli.telemetry import metered
from redline.errors import UsageError
from redline.extras.telemetry import otlp
from redline.extras.telemetry.meter import (
    BOUNDS_S,
    MOST_TRIALS,
    DurationBuckets,
    MeteredTrial,
    SummingMeter,
    attributes,
)
from redline.extras.telemetry.openmetrics import CONTENT_TYPE, exposition
from redline.model import Interval
from redline.ports import ServerUsage
from tests.fakes.behaviour import GOOD
from tests.fakes.compared import compared_run, with_a_further_duet
from tests.fakes.duets import simulated_duet
from tests.fakes.recordings import simulated_run
from tests.fakes.serving import serving
from tests.fakes.targets import unused_port

RUN = simulated_run({"rust.hyper": GOOD}, trials=1, ceiling=None)
CELL = next(iter(RUN.manifest.plan.cells.values()))
TRIAL = MeteredTrial.of(CELL, "trial-1")
QUIET = Console(quiet=True)


def intervals() -> tuple[Interval, ...]:
    (recording, *_) = (made for made in RUN.recordings if made.cell_id == CELL.id)
    assert recording.traffic is not None
    return recording.traffic.intervals


def loaded() -> SummingMeter:
    meter = SummingMeter()
    meter.begin(TRIAL)
    for interval in intervals():
        meter.interval(TRIAL, interval)
    return meter


def families(text: str) -> dict[str, Metric]:
    read: Iterator[Metric] = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return {family.name: family for family in read}


def labels(phase: str) -> dict[str, str]:
    return {
        "redline_cell": CELL.slug,
        "redline_trial": "trial-1",
        "redline_server": "rust.hyper",
        "redline_phase": phase,
    }


def test_the_reader_of_prometheus_finds_every_request() -> None:
    read = families(exposition(loaded()))
    assert set(read) == {
        "http_client_request_duration_seconds",
        "redline_response_duration_seconds",
        "redline_requests",
        "redline_engine_cpu_time_seconds",
        "redline_server_cpu_time_seconds",
        "redline_server_memory_usage_bytes",
    }
    for phase in ("warmup", "measure"):
        mine = [interval for interval in intervals() if interval.phase == phase]
        for name, kind in (("http_client_request", "service"), ("redline_response", "response")):
            samples = [
                sample
                for sample in read[f"{name}_duration_seconds"].samples
                if sample.labels.items() >= labels(phase).items()
            ]
            times = [getattr(interval, kind) for interval in mine]
            values = {sample.name.rpartition("_")[2]: sample.value for sample in samples if "le" not in sample.labels}
            assert values["count"] == sum(part.count for part in times)
            assert values["sum"] == pytest.approx(sum(part.mean_ns * part.count for part in times) / 1e9)
            buckets = {sample.labels["le"]: sample.value for sample in samples if "le" in sample.labels}
            assert buckets["+Inf"] == values["count"]
            for bound in BOUNDS_S:
                below = sum(int(counts[ns <= bound * 1e9].sum()) for ns, counts in (t.buckets() for t in times))
                assert buckets[str(bound)] == below
        requests = {
            sample.labels.get("error_type", ""): sample.value
            for sample in read["redline_requests"].samples
            if sample.name.endswith("_total") and sample.labels.items() >= labels(phase).items()
        }
        assert requests.pop("") == sum(interval.counts.outcomes.ok for interval in mine)
        assert sum(requests.values()) == sum(interval.counts.outcomes.errors for interval in mine)


def test_a_meter_without_a_load_is_sound() -> None:
    assert all(not family.samples for family in families(exposition(SummingMeter())).values())


def test_labels_are_escaped() -> None:
    meter, odd = SummingMeter(), MeteredTrial('a"b\\c\nd', "trial-1", "x")
    meter.interval(odd, intervals()[0])
    read = families(exposition(meter))["redline_requests"]
    assert {sample.labels["redline_cell"] for sample in read.samples} == {'a"b\\c\nd'}


def test_a_duet_counts_requests_at_once_and_times_when_it_has_ended() -> None:
    meter, duet = SummingMeter(), simulated_duet(0, failed=1)
    trials = tuple(MeteredTrial(name, "start-1", name) for name in ("A", "B", "control"))
    assert duet.traffic is not None
    meter.begin(*trials)
    for block in duet.traffic.blocks:
        meter.block(trials, block)
    sums = meter.sums()[trials[0], "measure"]
    mine = [part for block in duet.traffic.blocks for part in block.slices if part.target == 0]
    assert sums.requests == {"": sum(part.completed for part in mine), "_OTHER": len(mine)}
    assert sums.response.count == 0
    meter.ended(trials, (CELL, CELL), duet)
    assert meter.sums()[trials[0], "measure"].response.count == duet.traffic.targets[0].response.count


def test_the_cpu_time_of_servers_in_a_duet_is_that_of_its_slices() -> None:
    meter, duet = SummingMeter(), simulated_duet(0)
    trials = tuple(MeteredTrial(name, "start-1", name) for name in ("A", "B", "control"))
    assert duet.traffic is not None
    for block in duet.traffic.blocks:
        meter.block(trials, block)
    slices = [part for block in duet.traffic.blocks if block.phase == "measure" for part in block.slices]
    for target, trial in enumerate(trials):
        used = sum(part.cpu_ns[target] or 0 for part in slices if part.cpu_ns)
        assert (meter.sums()[trial, "measure"].server_cpu_ns or 0) == used


def test_the_servers_cpu_time_adds_up_and_its_memory_is_the_latest() -> None:
    meter, (first, *more) = SummingMeter(), (part for part in intervals() if part.phase == "measure")
    meter.usage(CELL, "measure", ServerUsage(1, 5, 5))  # of no trial that is known
    meter.interval(TRIAL, first)
    meter.usage(CELL, "measure", ServerUsage(10, 2_000_000_000, 100))
    meter.interval(TRIAL, more[0])
    meter.usage(CELL, "measure", ServerUsage(10, 3_000_000_000, 90))
    meter.interval(TRIAL, more[1])
    meter.usage(CELL, "measure", ServerUsage(99, 500_000_000, None))  # the next start of a search
    sums = meter.sums()[TRIAL, "measure"]
    assert (sums.server_cpu_ns, sums.server_rss_bytes) == (3_500_000_000, None)
    text = exposition(meter)
    assert "redline_server_cpu_time_seconds_total{" in text
    assert "redline_server_memory_usage_bytes{" not in text


def test_a_repeated_trial_begins_at_zero_and_old_trials_go() -> None:
    meter = loaded()
    before = meter.sums()[TRIAL, "measure"]
    meter.begin(TRIAL)
    assert meter.sums() == {}
    assert before.requests[""] > 0
    for number in range(MOST_TRIALS + 5):
        meter.interval(MeteredTrial("a", f"trial-{number}", "a"), intervals()[0])
    assert len({trial for trial, _ in meter.sums()}) == MOST_TRIALS
    assert (MeteredTrial("a", "trial-0", "a"), "warmup") not in meter.sums()


def test_searches_that_take_turns_keep_their_sums() -> None:
    meter, first = SummingMeter(), MeteredTrial("0", "search", "a")
    for number in range(MOST_TRIALS + 5):
        meter.interval(MeteredTrial(str(number), "search", "a"), intervals()[0])
        meter.interval(first, intervals()[0])
    assert meter.sums()[first, intervals()[0].phase].response.count == (MOST_TRIALS + 6) * intervals()[0].response.count


def test_two_duets_of_a_baseline_in_a_round_add_to_trials_of_their_own() -> None:
    run, meter = with_a_further_duet(compared_run(starts=1)), SummingMeter()
    plan, duets = run.manifest.plan, {duet.cell_ids[:-1]: duet for duet in run.duets}
    view = SessionView(QUIET, meter).trials(plan, 0)
    for planned in plan.duets:
        cells = tuple(plan.cells[cell_id] for cell_id in planned.cell_ids)
        view.duet_started(planned, cells)
        view.duet_ended(duets[planned.cell_ids], cells)
    trials = {trial.trial for trial, _ in meter.sums() if trial.server == "A"}
    assert trials == {"start-1", "start-1.control", "start-1-2", "start-1-2.control"}


def test_times_stand_in_the_bucket_whose_bound_they_do_not_exceed() -> None:
    times = DurationBuckets()
    for interval in intervals():
        times.add(interval.response)
    assert times.least_s <= times.sum_s / times.count <= times.most_s
    assert sum(times.counts) == sum(interval.response.count for interval in intervals())


def test_the_metrics_are_served_on_loopback_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.getfqdn", lambda _host: pytest.fail("the resolver is asked"))
    port = unused_port()
    with metered(TelemetryFlags(openmetrics=port), QUIET) as meter:
        assert meter is not None
        meter.interval(TRIAL, intervals()[-1])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert families(answer.read().decode())["redline_requests"].samples
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
        with (
            pytest.raises(UsageError, match=f"127.0.0.1:{port} cannot be listened on: Address already in use"),
            metered(TelemetryFlags(openmetrics=port), QUIET),
        ):
            pass
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_what_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(UsageError, match="no port"), metered(TelemetryFlags(openmetrics=port), QUIET):
        pass


def test_what_is_refused_waits_for_no_collector() -> None:
    console = Console(file=io.StringIO(), width=200)
    with (
        collector() as server,
        pytest.raises(UsageError, match="no port"),
        metered(TelemetryFlags(openmetrics=0, otlp=f"http://127.0.0.1:{server.server_port}"), console),
    ):
        pass
    assert server.pushed == []
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == ""


def test_nobody_asks() -> None:
    with metered(TelemetryFlags(), QUIET) as meter:
        assert meter is None


class Collector(HTTPServer):
    """Takes what is pushed to it."""

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Taking)
        self.pushed: list[tuple[str, ExportMetricsServiceRequest]] = []
        self.status, self.location = 200, ""


class _Taking(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.pushed.append((self.path, ExportMetricsServiceRequest.FromString(content)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)  # what a page of a sign-in answers, where a redirect has turned a POST into a GET
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def collector() -> Iterator[Collector]:
    with serving(Collector(0)) as server:
        yield server


def test_the_last_push_has_every_request() -> None:
    with collector() as server:
        with metered(TelemetryFlags(otlp=f"http://127.0.0.1:{server.server_port}"), QUIET) as meter:
            assert meter is not None
            for interval in intervals():
                meter.interval(TRIAL, interval)
        path, last = server.pushed[-1]
    assert path == "/v1/metrics"
    (resource,) = last.resource_metrics
    assert {pair.key: pair.value.string_value for pair in resource.resource.attributes}["service.name"] == "redline"
    metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    assert metrics["http.client.request.duration"].unit == "s"
    (measured,) = (
        point
        for point in metrics["redline.response.duration"].histogram.data_points
        if {pair.key: pair.value.string_value for pair in point.attributes} == attributes(TRIAL, "measure")
    )
    times = [interval.response for interval in intervals() if interval.phase == "measure"]
    assert measured.count == sum(measured.bucket_counts) == sum(part.count for part in times)
    assert list(measured.explicit_bounds) == list(BOUNDS_S)
    assert measured.max == max(part.max_ns for part in times) / 1e9
    right = sum(
        point.as_int
        for point in metrics["redline.requests"].sum.data_points
        if not any(pair.key == "error.type" for pair in point.attributes)
    )
    assert right == sum(interval.counts.outcomes.ok for interval in intervals())


@pytest.mark.parametrize("location", ["", "/sign-in", "https://other.test/v1/metrics"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 304])
def test_a_collector_that_redirects_has_taken_nothing(status: int, location: str) -> None:
    said: list[str] = []
    with collector() as server:
        server.status, server.location = status, location
        endpoint = f"http://127.0.0.1:{server.server_port}/v1/metrics"
        with otlp.pushed(SummingMeter(), endpoint, said.append):
            pass
    to = f" to {location}: give --otlp the URL that takes metrics" if location else ""
    assert said == [f"1 of 1 pushes of metrics to {endpoint} failed: status {status}{to}"]


def test_a_collector_that_refuses_is_quoted_by_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 0.5)
    said: list[str] = []
    with collector() as server:
        server.status = 401
        with otlp.pushed(SummingMeter(), f"http://127.0.0.1:{server.server_port}", said.append):
            pass
    assert said[0].endswith("failed: status 401")


def test_a_collector_that_is_not_there_ends_no_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "TIMEOUT_S", 0.5)
    said: list[str] = []
    port = unused_port()
    with otlp.pushed(SummingMeter(), f"http://127.0.0.1:{port}/own/path", said.append):
        pass
    assert said == [
        f"1 of 1 pushes of metrics to http://127.0.0.1:{port}/own/path failed: does a collector listen there?"
    ]


@pytest.mark.parametrize("url", ["127.0.0.1:4318", "ftp://127.0.0.1", "http://", "http://127.0.0.1:x"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="this is no URL"), metered(TelemetryFlags(otlp=url), QUIET):
        pass


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "redline.extras.telemetry.otlp")
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    flags = TelemetryFlags(otlp="http://127.0.0.1:4318")
    with pytest.raises(UsageError, match="not installed") as refused, metered(flags, QUIET):
        pass
    assert "opentelemetry-exporter-otlp-proto-http" in refused.value.hint
