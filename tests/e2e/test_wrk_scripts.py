"""`load --like` with a script of wrk: the server sees what wrk would send it."""

import csv
import json
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from redline.analysis.load_facts import response_deviation
from redline.cli.exits import COULD_NOT_RUN
from redline.model.load_result import Deviation
from tests.e2e.conftest import Redline
from tests.e2e.recorded import FOLDER, loaded
from tests.fakes.serving import serving

pytestmark = pytest.mark.e2e

PIPELINE = """
init = function(args)
   wrk.headers["J-Tenant-Id"] = "1"
   local r = {}
   for i = 1, tonumber(args[2]) do r[i] = wrk.format(nil, args[1]) end
   req = table.concat(r)
end
request = function() return req end
"""
POST = "wrk.method = 'POST'\nwrk.body = 'a={seq}'\nwrk.headers['Content-Type'] = 'text/x'\n"
SEVERAL = "request = function() return wrk.format(nil, '/a') .. wrk.format('PUT', '/b', nil, 'row') end"
COUNTER = "n = 0\nrequest = function()\n   n = n + 1\n   return wrk.format(nil, '/' .. n)\nend\n"
Seen = Counter[str]


@contextmanager
def recording() -> Iterator[tuple[str, Seen]]:
    """A server that writes down what it receives."""
    seen: Seen = Counter()

    class Recorder(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        """An answer is a single packet, which waits for no acknowledgement."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:  # a load ends without a farewell
                self.close_connection = True

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen[json.dumps([self.command, self.path, body, headers], sort_keys=True)] += 1
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        do_POST = do_PUT = do_GET  # noqa: N815 - their names are given

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Recorder)) as server:
        yield f"http://127.0.0.1:{server.server_port}", seen


@pytest.mark.parametrize(
    ("script", "arguments", "requests"),
    [
        (PIPELINE, "-- /v1/pets 4", [["GET", "/v1/pets", "", {"j-tenant-id": "1", "a": "b"}]]),
        (POST, "", [["POST", "/p", "a={seq}", {"content-type": "text/x", "content-length": "7", "a": "b"}]]),
        (SEVERAL, "", [["GET", "/a", "", {"a": "b"}], ["PUT", "/b", "row", {"content-length": "3", "a": "b"}]]),
    ],
)
def test_the_server_sees_the_requests_of_the_script(
    redline: Redline, script: str, arguments: str, requests: list[list[object]]
) -> None:
    (redline.folder / "script.lua").write_text(script)
    command = f"wrk -t1 -c2 -d1s -H 'A: b' {{url}}/p -s script.lua --latency {arguments}"
    with recording() as (url, seen):
        done = redline("load", "--like", command.format(url=url), "--count", "20", "--json")
        assert sum(seen.values()) == 20 + len(requests), done.err
        host = url.removeprefix("http://")
        expected = {json.dumps([*it[:3], {**it[3], "host": host}], sort_keys=True) for it in requests}  # type: ignore[dict-item]
        assert {*seen} == expected
        if shutil.which("wrk"):
            seen.clear()
            subprocess.run(
                shlex.split(command.format(url=url)), cwd=redline.folder, check=True, capture_output=True, timeout=60
            )
            assert {*seen} == expected


def test_latency_of_wrk_asks_for_its_columns(redline: Redline) -> None:
    with recording() as (url, _):
        shown = redline("load", "--like", f"wrk -c2 -d1s --latency {url}", "--count", "20").measured()
        plain = redline("load", "--like", f"wrk -c2 -d1s {url}", "--count", "20").out
        for _ in range(3):  # a busy machine may hide times
            done, traffic = loaded(redline, url, "-c", "2", "--count", "20")
            if "deviations" in done.json:
                break
    assert "± stdev" in shown.out or shown.code == COULD_NOT_RUN
    assert "± stdev" not in plain
    measured = response_deviation(traffic.response)
    assert measured.values == 20
    assert 0 < measured.mean <= measured.max
    if "deviations" in done.json:
        known = done.json["deviations"]["response"]
        assert Deviation.model_validate(known) == measured
        *_, kept = sorted(redline.folder.glob(f"{FOLDER}-*"))
        sheet = redline("report", kept, "-f", "csv").out
        rows = {row["metric"]: row["value"] for row in csv.DictReader(sheet.splitlines())}
        assert {name: float(rows[f"response-{name}"]) for name in ("mean", "stdev", "max")} == {
            name: known[name] for name in ("mean", "stdev", "max")
        }
        assert "± stdev" in (kept / "report.html").read_text()


def test_a_script_whose_requests_change_is_refused_at_its_line(redline: Redline) -> None:
    (redline.folder / "counter.lua").write_text(COUNTER)
    done = redline("load", "--like", "wrk -c2 -s counter.lua http://127.0.0.1:9/")
    done.refused(2, "counter.lua:3", "n changes from request to request", "--requests FILE")
    redline("load", "--like", "wrk -s none.lua http://127.0.0.1:9/").refused(2, "-s none.lua: No such file")
