"""Trace contexts that a server gets, the slowest requests of a load, and their spans at a collector."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from redline import load
from tests.e2e.conftest import Redline
from tests.e2e.test_encodings import wait_for
from tests.e2e.test_journeys import SHORT
from tests.fakes.certificates import Certificate
from tests.fakes.collectors import collecting, read
from tests.fakes.serving import serving
from tests.fakes.targets import unused_port

pytestmark = pytest.mark.e2e

NGINX = """\
daemon off; pid %(folder)s/pid; error_log stderr;
events {}
http {
  log_format seen "$server_protocol $uri $http_traceparent"; access_log %(folder)s/seen.log seen;
  client_body_temp_path %(folder)s; proxy_temp_path %(folder)s; fastcgi_temp_path %(folder)s;
  uwsgi_temp_path %(folder)s; scgi_temp_path %(folder)s; keepalive_requests 100000;
  server { listen 127.0.0.1:%(plain)d; return 200 "ok"; }
  server { listen 127.0.0.1:%(clear)d http2; return 200 "ok"; }
  server {
    listen 127.0.0.1:%(port)d ssl http2; return 200 "ok";
    ssl_certificate %(certificate)s; ssl_certificate_key %(key)s;
  }
}
"""
JOURNEY = """\
journey:
  once: [{name: once, get: /once, headers: {traceparent: "{traceparent}"}}]
  steps:
    - {name: first, get: /first, headers: {traceparent: "{traceparent}"}}
    - {name: second, think: 1ms, get: /second, headers: {traceparent: "{traceparent:0%}"}}
"""
CONTEXT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]")
COUNT = 400


class Traced(ThreadingHTTPServer):
    """A server that notes the header `traceparent` of every request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.contexts: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    @property
    def ids(self) -> list[str]:
        """The trace ids of the contexts."""
        return [context.split("-")[1] for context in self.contexts]


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Traced

    def do_GET(self) -> None:
        self.server.contexts.append(self.headers["traceparent"])
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def header(text: str) -> tuple[str, str]:
    return "-H", f"traceparent: {text}"


def test_each_request_begins_a_trace_and_a_collector_gets_its_span(redline: Redline) -> None:
    with serving(Traced()) as server, collecting() as collector:
        asked = (*header("{traceparent:50%}"), "--count", str(COUNT), "-c", "4", "--json")
        done = redline("load", server.url, *asked, "--otlp-traces", collector.url).measured()
        contexts = [context for context in server.contexts if CONTEXT.fullmatch(context)]
    assert len(contexts) == len(server.contexts) == COUNT + 1, "one of them checks the answer"
    assert len(set(server.ids)) == COUNT + 1
    assert 150 < sum(context.endswith("01") for context in contexts) < 250
    sampled = {context.split("-")[1] for context in contexts if context.endswith("01")}
    spans = {span.trace_id.hex(): span for span in collector.spans}
    assert {(span.trace_id.hex(), span.span_id.hex()) for span in collector.spans} <= {
        tuple(context.split("-")[1:3]) for context in contexts
    }, "the spans of the server hang below ours"
    slowest = [request["trace_id"] for request in done.json.get("slowest", [])]
    assert len(spans.keys() - {*slowest}) <= 100
    assert len(spans.keys() & sampled) >= 100
    assert {*slowest} <= spans.keys()
    assert f"{len(spans)} spans were sent to {collector.url}/v1/traces" in done.err


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator["Nginx"]:
    if shutil.which("nginx") is None:
        pytest.skip("there is no nginx")
    server = Nginx(tmp_path)
    command = ["nginx", "-p", str(tmp_path), "-e", "stderr", "-c", str(server.config)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as running:
        try:
            for url in server.urls.values():
                wait_for(int(url.rstrip("/").rpartition(":")[2]))
            yield server
        finally:
            running.terminate()


class Nginx:
    """A server of three protocols, which logs how each request came, and its header `traceparent`."""

    def __init__(self, folder: Path) -> None:
        ports = [unused_port() for _ in range(3)]
        self.urls = {
            name: f"{scheme}://127.0.0.1:{port}/"
            for name, scheme, port in zip(("1.1", "h2c", "h2"), ("http", "http", "https"), ports, strict=True)
        }
        certificate, key = Certificate(folder).files
        values = dict(zip(("plain", "clear", "port"), ports, strict=True))
        self.config, self._log = folder / "nginx.conf", folder / "seen.log"
        self.config.write_text(NGINX % {"folder": folder, "certificate": certificate, "key": key, **values})

    def seen(self) -> list[tuple[str, str, str]]:
        """The protocol, the path and the trace context of each request so far, once each; then they are forgotten."""
        rows = [row.split(" ") for row in self._log.read_text().splitlines()]
        self._log.write_text("")
        return [(protocol, path, context) for protocol, path, context in rows]


def begun(contexts: list[str], sampled: range) -> None:
    """Check that all are valid and differ, and how many are sampled."""
    assert all(map(CONTEXT.fullmatch, contexts))
    for part in (1, 2):
        assert len({context.split("-")[part] for context in contexts}) == len(contexts)
    assert sum(context.endswith("01") for context in contexts) in sampled


@pytest.mark.parametrize(
    ("name", "protocol", "how"),
    [("1.1", "HTTP/1.1", ()), ("h2c", "HTTP/2.0", ("--http2",)), ("h2", "HTTP/2.0", ("--http2", "--insecure"))],
)
def test_each_protocol_carries_them_in_the_check_and_in_the_load(
    redline: Redline, nginx: Nginx, name: str, protocol: str, how: tuple[str, ...]
) -> None:
    asked = (*header("{traceparent:25%}"), "-H", "x-number: {seq}", "--count", str(COUNT), "-c", "4", *how, "--json")
    done = redline("load", nginx.urls[name], *asked).measured()
    seen = nginx.seen()
    assert {version for version, _, _ in seen} == {protocol}
    assert len(seen) == COUNT + 1
    begun([context for _, _, context in seen], range(60, 145))
    slowest = {request["trace_id"] for request in done.json["slowest"]}
    assert len(slowest) == 10
    assert slowest <= {context.split("-")[1] for _, _, context in seen}


def test_each_step_of_a_journey_begins_a_trace(redline: Redline, nginx: Nginx) -> None:
    (redline.folder / "journey.yaml").write_text(JOURNEY)
    redline("load", nginx.urls["h2"], "--requests", "journey.yaml", "--insecure", "--http2", *SHORT).measured()
    seen = nginx.seen()
    traced = {path: [context for _, at, context in seen if at == path] for path in ("/once", "/first", "/second")}
    begun([context for contexts in traced.values() for context in contexts], range(len(seen)))
    assert all(context.endswith("01") for context in traced["/first"])
    assert not any(context.endswith("01") for context in traced["/second"])
    assert len(traced["/once"]) == 1 + 4, "of the check, and of each user"
    assert len(traced["/second"]) > 10


def test_the_functions_of_python_carry_them(nginx: Nginx) -> None:
    headers = {"traceparent": "{traceparent:50%}"}
    load(nginx.urls["h2c"], users=2, count=100, headers=headers, http2=True)
    begun([context for _, _, context in nginx.seen()], range(30, 72))


def test_two_loads_of_one_seed_have_no_trace_in_common(redline: Redline) -> None:
    with serving(Traced()) as server:
        for _ in range(2):
            redline("load", server.url, *header("{traceparent}"), "--count", "50", "-c", "1").measured()
    assert len(set(server.ids)) == len(server.ids) == 2 * 51
    assert all(context.endswith("-01") for context in server.contexts)


def test_a_run_lists_the_slowest_requests_and_sends_spans_of_each_trial(redline: Redline) -> None:
    with serving(Traced()) as server, collecting() as collector:
        suite = f"""trials: 2
warmup: 0s
servers: [{{url: "{server.url.removesuffix("/")}"}}]
scenarios: [{{name: Traced, get: /, headers: {{traceparent: "{{traceparent:10%}}"}}}}]
loads: {{few: {{closed: {{users: 2}}, for: 10s, count: 200}}}}
"""
        (redline.folder / "suite.yaml").write_text(suite)
        asked = ("run", "suite.yaml", "-o", "made", "--otlp-traces", collector.url)
        done = redline(*asked)
        assert done.code in (0, 1), done.err
        known = set(server.ids)
    assert collector.spans
    assert {span.trace_id.hex() for span in collector.spans} <= known
    trials = {pair.value.string_value for span in collector.spans for pair in span.attributes if "trial" in pair.key}
    assert trials == {"trial-1", "trial-2"}
    page = (redline.folder / "made" / "report.html").read_text()
    assert "Slowest requests" in page


def test_a_comparison_lists_those_of_each_server_and_sends_spans_of_its_starts(redline: Redline) -> None:
    with serving(Traced()) as first, serving(Traced()) as second, collecting() as collector:
        asked = (*header("{traceparent:10%}"), "--for", "6s", "--load", "closed:2", "-o", "made", "-v")
        done = redline("ab", first.url, second.url, *asked, "--otlp-traces", collector.url)
        assert done.code == 0, done.err
    known = [{*server.ids} for server in (first, second)]
    assert not known[0] & known[1]
    cells = json.loads((redline.folder / "made" / "results.json").read_bytes())["cells"]
    slowest = [{request["trace_id"] for request in cell["slowest"]} for cell in cells]
    assert [len(ids) for ids in slowest] == [10, 10]
    assert all(ids <= all_ids for ids, all_ids in zip(slowest, known, strict=True))
    spans = {span.trace_id.hex(): read(span.attributes) for span in collector.spans}
    for cell, ids, all_ids in zip(cells, slowest, known, strict=True):
        own = {id_ for id_, attributes in spans.items() if attributes["redline.server"] == cell["server"]}
        assert ids <= own <= all_ids
    assert "Slowest requests" in done.out
    page = (redline.folder / "made" / "report.html").read_text()
    assert all(id_ in page for ids in slowest for id_ in ids)


@pytest.mark.long
def test_the_probes_of_a_search_send_spans(redline: Redline) -> None:
    with serving(Traced()) as server, collecting() as collector:
        asked = (*header("{traceparent}"), "--objective", "p99 < 1s", "--start", "100", "--probes", "2", "-d", "1s")
        done = redline("limit", server.url, *asked, "--otlp-traces", collector.url)
        assert done.code in (0, 1), done.err
        answered = {span.trace_id.hex() for span in collector.spans if not span.status.code}
        assert answered <= {*server.ids}
    assert answered


def test_what_cannot_be_traced_is_refused(redline: Redline) -> None:
    to = ("--otlp-traces", "http://127.0.0.1:4318")
    redline("load", "http://127.0.0.1:1/", *to).refused(2, "no request has a trace context", "{traceparent}")
    redline("load", "http://127.0.0.1:1/", *header("{traceparent:101%}")).refused(2, "`{traceparent:101%}` cannot be")
    redline("ab", "./a {port}", "./b {port}", *to).refused(2, "no request has a trace context")
    redline("bisect", "HEAD~1", "HEAD", *to).refused(2, "otlp-traces")
