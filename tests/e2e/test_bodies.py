"""Bodies of requests in parts, as real servers receive them: HTTP/1.1 and HTTP/2, loads, comparisons and journeys."""

import contextlib
import hashlib
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.model.load_result import LoadResult
from tests.e2e.compared import compared
from tests.e2e.conftest import Done, Redline
from tests.e2e.recorded import loaded
from tests.e2e.test_documented_commands import CHUNKED, SHORT_LIMIT
from tests.fakes import targets

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")]

COUNTED = ["--count", "60", "-d", "30s", "--warmup", "0s", "-c", "2"]
SERVER = Path(__file__).parents[1] / "fakes" / "servers" / "bodies.js"
JPEG = b"\xff\xd8\0cat"
FORM = """\
- name: upload
  post: /form
  multipart: [{name: note, text: hello}, {name: photo, file: cat.jpg}]
  expect:
    json: {/note: hello, /photo/filename: cat.jpg, /photo/type: image/jpeg, /photo/sha256: %s}
"""
NGINX = """\
daemon off; pid %(folder)s/pid; error_log stderr;
events {}
http {
  access_log off; client_body_temp_path %(folder)s; proxy_temp_path %(folder)s; fastcgi_temp_path %(folder)s;
  uwsgi_temp_path %(folder)s; scgi_temp_path %(folder)s;
  server {
    listen 127.0.0.1:%(port)d;
    location / {
      proxy_pass http://127.0.0.1:%(behind)d; proxy_http_version 1.1; proxy_request_buffering off;
    }
  }
}
"""
IN_CHUNKS = """\
- name: fixed
  post: /told
  body: {size: 20kB}
  chunked: 8KiB
  expect: {json: {/bytes: 20000, /length: null, /coding: %s}}
- name: varying
  post: "/told?{seq}"
  json: {text: "{rand:100000..999999}"}
  chunked: true
  expect: {json: {/bytes: 17, /length: null, /coding: %s}}
"""
WAITING = """\
- name: fixed
  post: /told
  body: {size: 20kB}
  expect_continue: 20s
  expect: {json: {/bytes: 20000, /expect: 100-continue}}
- name: varying
  post: "/told?{seq}"
  json: {text: "{rand:100000..999999}"}
  chunked: 8
  expect_continue: 20s
  expect: {json: {/bytes: 17, /expect: 100-continue}}
"""
IN_VAIN = """\
- name: silent
  post: /silent
  body: hello
  expect_continue: 100ms
  expect: {json: {/bytes: 5, /expect: 100-continue}}
"""
REFUSED = """\
- name: refused
  post: /refused
  body: {size: 20kB}
  expect_continue: 20s
  expect: {status: 413}
"""
JOURNEY = """\
journey:
  steps:
    - {name: look, get: /told, take: {sha: {json: /sha256}}}
    - name: send
      post: /form
      multipart: [{name: note, text: "{take:sha}"}, {name: n, text: "{seq}"}]
      chunked: 16
%s      expect: {json: {/note: %s}}
"""


def wait_for(port: int) -> None:
    """Wait until something listens there."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)


@pytest.fixture(scope="module")
def node() -> Iterator[tuple[int, int]]:
    """A server on Node: its ports for HTTP/1.1 and HTTP/2."""
    plain, second = targets.unused_port(), targets.unused_port()
    with subprocess.Popen(["node", str(SERVER), str(plain), str(second)]) as server:
        try:
            wait_for(plain)
            wait_for(second)
            yield plain, second
        finally:
            server.terminate()


def all_are_right(done: Done, requests: int = 60) -> None:
    """Every request that was due was answered right. A busy machine may make the measurement invalid."""
    outcomes = LoadResult.model_validate(done.measured().json).counts.outcomes
    assert (outcomes.ok, outcomes.errors) == (requests, 0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_form_in_parts_is_what_the_server_reads(redline: Redline, node: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(JPEG)
    (tmp_path / "list.yaml").write_text(FORM % sha256(JPEG))
    for port, more in zip(node, ([], ["--http2"]), strict=True):
        url = f"http://127.0.0.1:{port}/"
        all_are_right(redline("load", url, "--requests", "list.yaml", *COUNTED, *more, "--json"))
    found = redline("limit", url, "--requests", "list.yaml", *more, "--objective", "p99 < 1s", *SHORT_LIMIT)
    assert found.code in {0, 1, 3}, found.err


def test_a_body_in_chunks_has_no_length(redline: Redline, node: tuple[int, int], tmp_path: Path) -> None:
    for port, coding, more in zip(node, ("chunked", "null"), ([], ["--http2"]), strict=True):
        (tmp_path / "list.yaml").write_text(IN_CHUNKS % (coding, coding))
        url = f"http://127.0.0.1:{port}/"
        asked = [url, "--requests", "list.yaml", "-m", "mix", *more]
        all_are_right(redline("load", *asked, *COUNTED, "--json"))
        all_are_right(redline("load", *asked, "-R", "200", *COUNTED, "--json"))
    all_are_right(redline("load", *asked, "--depth", "4", *COUNTED, "--json"))
    both = compared(redline, *asked[:1], *asked, "--load", "closed:2")
    assert both.code in {0, 3}, both.err


def test_a_body_waits_for_the_answer_100(redline: Redline, node: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text(WAITING)
    asked = [f"http://127.0.0.1:{node[0]}/", "--requests", "list.yaml", "-m", "mix"]
    for more in ([], ["-R", "200"], ["--backend", "epoll"], ["--no-keepalive"]):
        done, traffic = loaded(redline, *asked, *COUNTED, *more)
        all_are_right(done)
        assert traffic.response.max_ns < 10e9, "no body has waited for its time"
    both = compared(redline, *asked[:1], *asked, "--load", "closed:2")
    assert both.code in {0, 3}, both.err


def test_a_body_is_sent_after_its_time_without_the_answer_100(
    redline: Redline, node: tuple[int, int], tmp_path: Path
) -> None:
    (tmp_path / "list.yaml").write_text(IN_VAIN)
    done, traffic = loaded(redline, f"http://127.0.0.1:{node[0]}/", "--requests", "list.yaml", *COUNTED)
    all_are_right(done)
    assert traffic.response.quantile_ns(0) >= 100e6


def test_a_refused_body_is_not_sent(redline: Redline, node: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text(REFUSED)
    url = f"http://127.0.0.1:{node[0]}/"
    all_are_right(redline("load", url, "--requests", "list.yaml", *COUNTED, "--json"))
    (tmp_path / "told.yaml").write_text("- {name: told, post: /told, body: a, expect: {json: {/refused: 0}}}\n")
    all_are_right(redline("load", url, "--requests", "told.yaml", *COUNTED, "--json"))


@pytest.mark.long
def test_a_long_poll_is_waited_for(redline: Redline, node: tuple[int, int]) -> None:
    for port, more in zip(node, ([], ["--http2"]), strict=True):
        asked = [
            f"http://127.0.0.1:{port}/slow",
            "--count",
            "4",
            "-d",
            "300ms",
            "--warmup",
            "0s",
            "-c",
            "4",
            *more,
        ]
        done, traffic = loaded(redline, *asked, "--timeout", "20s")
        all_are_right(done, 4)
        assert traffic.response.quantile_ns(0) >= 700e6
    short = redline("load", *asked, "--timeout", "300ms")
    assert short.code == 1
    assert "no answer within 300 ms" in short.out


def test_a_proxy_passes_chunks_on(redline: Redline, node: tuple[int, int], tmp_path: Path) -> None:
    behind, port = node[0], targets.unused_port()
    config = tmp_path / "nginx.conf"
    config.write_text(NGINX % {"folder": tmp_path, "port": port, "behind": behind})
    # nginx tells the length of a short body, which it has whole when it passes the head on.
    short = IN_CHUNKS.replace("{/bytes: 17, /length: null, /coding: %s}", "{/bytes: 17}")
    (tmp_path / "list.yaml").write_text(
        short % "chunked" + WAITING.replace(", /expect: 100-continue", "").replace("name: ", "name: waiting-")
    )
    with subprocess.Popen(["nginx", "-p", str(tmp_path), "-e", "stderr", "-c", str(config)]) as server:
        try:
            wait_for(port)
            asked = [f"http://127.0.0.1:{port}/", "--requests", "list.yaml", "-m", "mix"]
            all_are_right(redline("load", *asked, *COUNTED, "--json"))
        finally:
            server.terminate()


def test_the_command_of_the_guide_sends_chunks(redline: Redline, node: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "import.json").write_text("{}")
    (command,) = CHUNKED
    args = shlex.split(command.replace("http://127.0.0.1:8080", f"http://127.0.0.1:{node[0]}"))
    all_are_right(redline(*args, *COUNTED, "--json"))


def test_steps_of_a_journey_send_what_they_took_in_parts(
    redline: Redline, node: tuple[int, int], tmp_path: Path
) -> None:
    for port, more in zip(node, ([], ["--http2"]), strict=True):
        waits = "" if more else "      expect_continue: 20s\n"
        (tmp_path / "journey.yaml").write_text(JOURNEY % (waits, sha256(b"")))
        url = f"http://127.0.0.1:{port}/"
        all_are_right(redline("load", url, "--requests", "journey.yaml", *COUNTED, *more, "--json"), 120)
