"""Metrics of a load that runs, written to a receiver that decodes them as Prometheus does."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import cramjam
import pytest
from rich.console import Console

from redline.cli.command_line import TelemetryFlags
from redline.cli.telemetry import metered
from redline.errors import UsageError
from redline.extras.telemetry import pushing, remote_write
from redline.extras.telemetry.meter import MeteredTrial, SummingMeter
from redline.extras.telemetry.remote_write import HEADERS, WRITE_REQUEST, is_stale, values_of
from redline.ports import ServerUsage
from tests.fakes.serving import serving
from tests.fakes.targets import unused_port
from tests.unit.extras.telemetry.test_meter import CELL, QUIET, TRIAL, intervals, loaded

Series = dict[tuple[tuple[str, str], ...], tuple[float, int]]


class Receiver(HTTPServer):
    """Takes writes, or refuses them with a status and a text."""

    def __init__(self, status: int = 204, text: bytes = b"") -> None:
        super().__init__(("127.0.0.1", 0), _Taker)
        self.status, self.text = status, text
        self.written: list[Series] = []
        self.heads: list[dict[str, str]] = []
        self.paths: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Taker(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        request = WRITE_REQUEST.FromString(bytes(cramjam.snappy.decompress_raw(content)))
        self.server.paths.append(self.path)
        self.server.heads.append({name.lower(): value for name, value in self.headers.items()})
        self.server.written.append(
            {
                tuple((label.name, label.value) for label in series.labels): (sample.value, sample.timestamp)
                for series in request.timeseries
                for sample in series.samples
            }
        )
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.text)))
        self.send_header("Location", "/signed-in")
        self.end_headers()
        self.wfile.write(self.server.text)

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def receiver(status: int = 204, text: bytes = b"") -> Iterator[Receiver]:
    with serving(Receiver(status, text)) as server:
        yield server


def test_every_series_is_written_and_ends_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HEADERS, "Authorization=Bearer%20abc, X-Scope-OrgID=7")
    with receiver() as server:
        with metered(TelemetryFlags(remote_write=server.url), QUIET) as meter:
            assert meter is not None
            for interval in intervals():
                meter.interval(TRIAL, interval)
                meter.usage(CELL, interval.phase, ServerUsage(1, 5, 4096))
        *_, last, ends = server.written
    assert set(server.paths) == {"/api/v1/write"}
    head = server.heads[-1]
    assert (head["content-encoding"], head["content-type"]) == ("snappy", "application/x-protobuf")
    assert head["x-prometheus-remote-write-version"] == "0.1.0"
    assert (head["authorization"], head["x-scope-orgid"]) == ("Bearer abc", "7")
    assert all([*labels] == sorted(labels) for labels in last)
    assert len({at_ms for _, at_ms in last.values()}) == 1
    named = {dict(labels)["__name__"] for labels in last}
    assert named >= {"redline_requests_total", "http_client_request_duration_seconds_bucket"}
    assert named >= {"redline_server_cpu_time_seconds_total", "redline_server_memory_usage_bytes"}
    assert not any(name.endswith("_created") for name in named)
    right = sum(
        value
        for labels, (value, _) in last.items()
        if dict(labels)["__name__"] == "redline_requests_total" and "error_type" not in dict(labels)
    )
    assert right == sum(interval.counts.outcomes.ok for interval in intervals())
    assert {dict(labels)["redline_trial"] for labels in last} == {"trial-1"}
    assert ends.keys() == last.keys()
    assert all(is_stale(value) for value, _ in ends.values())
    assert min(at_ms for _, at_ms in ends.values()) > max(at_ms for _, at_ms in last.values())


def test_a_series_that_is_gone_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushing, "EVERY_S", 0.01)
    with receiver() as server, metered(TelemetryFlags(remote_write=server.url), QUIET) as meter:
        assert isinstance(meter, SummingMeter)
        meter.interval(TRIAL, intervals()[0])
        old = values_of(meter).keys()
        while not server.written:
            threading.Event().wait(0.01)
        meter.begin(TRIAL)
        meter.interval(MeteredTrial("a", "trial-2", "a"), intervals()[0])
        while not any(is_stale(value) for written in server.written for value, _ in written.values()):
            threading.Event().wait(0.01)
    ended = next(written for written in server.written if any(is_stale(value) for value, _ in written.values()))
    assert {labels for labels, (value, _) in ended.items() if is_stale(value)} == set(old)


def said_of(url: str) -> str:
    output = io.StringIO()
    console = Console(file=output, quiet=True, width=300)
    with metered(TelemetryFlags(remote_write=url), console) as meter:
        assert meter is not None
        meter.interval(TRIAL, intervals()[0])
    return output.getvalue()


def test_what_a_receiver_refuses_is_said_once_at_the_end() -> None:
    with receiver(400, b"out of order sample\n") as server:
        said = said_of(f"{server.url}/push")
    assert said == f"1 of 1 pushes of metrics to {server.url}/push failed: status 400, out of order sample\n"
    assert len(server.written) == 1


def test_a_redirect_is_no_write_and_gets_no_headers() -> None:
    with receiver(302) as server:
        said = said_of(server.url)
    assert "1 of 1 pushes" in said
    assert "status 302" in said
    assert server.paths == ["/api/v1/write"]


def test_a_receiver_that_is_not_there_ends_no_load() -> None:
    port = unused_port()
    assert "1 of 1 pushes" in (said := said_of(f"http://127.0.0.1:{port}"))
    assert "Connection refused" in said


def test_a_meter_without_a_load_writes_nothing() -> None:
    with receiver() as server, metered(TelemetryFlags(remote_write=server.url), QUIET):
        pass
    assert server.written == []


@pytest.mark.parametrize("url", ["127.0.0.1:9090", "ftp://127.0.0.1", "http://", "http://me:secret@127.0.0.1"])
def test_a_wrong_url_is_refused_and_no_password_is_shown(url: str) -> None:
    with pytest.raises(UsageError) as refused, metered(TelemetryFlags(remote_write=url), QUIET):
        pass
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("headers", ["Bearer", "=x", "A B=x", "A=x%0d%0aB: y", "A=Bearer…"])
def test_wrong_headers_are_refused(monkeypatch: pytest.MonkeyPatch, headers: str) -> None:
    monkeypatch.setenv(HEADERS, headers)
    with pytest.raises(UsageError, match=HEADERS), remote_write.written(SummingMeter(), "http://127.0.0.1", print):
        pass


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "redline.extras.telemetry.remote_write")
    monkeypatch.setitem(__import__("sys").modules, "cramjam", None)
    flags = TelemetryFlags(remote_write="http://127.0.0.1:9090")
    with pytest.raises(UsageError, match="not installed") as refused, metered(flags, QUIET):
        pass
    assert "--extra remote-write" in refused.value.hint


def test_the_format_is_that_of_the_specification() -> None:
    """The bytes of a write with a label and a sample, by hand: fields 1 and 2 of each message."""
    series = (("__name__", "a"),)
    content = remote_write.message({series: 1.5}, 5)
    assert content == bytes.fromhex("0a1c0a0d0a085f5f6e616d655f5f120161120b09000000000000f83f1005")
    assert values_of(loaded())
