"""Answers in gzip, br and zstd: decoded and checked before the load, on servers that encode them."""

import contextlib
import gzip
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest

from redline.model.load_result import LoadResult
from tests.e2e.conftest import Redline, for_each
from tests.e2e.test_proxy import SHORT_SEARCH
from tests.e2e.test_way_in import SHORT
from tests.fakes import targets

pytestmark = pytest.mark.e2e

BODY = b'{"total": 3, "text": "' + b"abc" * 500 + b'"}'
LIST = "- {name: items, get: /, accept: [gzip, br, zstd], expect: {%s}}\n"
SUITE = """\
servers: [{name: a, url: "%s"}]
scenarios: [{name: items, get: /path0, accept: [gzip, br, zstd]}]
loads: {some: {closed: {users: 2}, for: 1s}}
warmup: 200ms
trials: 1
"""
NGINX = """\
daemon off; pid %(folder)s/pid; error_log stderr;
events {}
http {
  access_log off; gzip on; gzip_min_length 1; gzip_types text/plain; default_type text/plain;
  client_body_temp_path %(folder)s; proxy_temp_path %(folder)s; fastcgi_temp_path %(folder)s;
  uwsgi_temp_path %(folder)s; scgi_temp_path %(folder)s;
  server { listen 127.0.0.1:%(port)d http2; return 200 "%(body)s"; }
  server { listen 127.0.0.1:%(plain)d; return 200 "%(body)s"; }
}
"""


def answers(body: bytes, encoding: str) -> Callable[[socket.socket], None]:
    """A server that answers with this body, which it says is encoded so."""
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"

    def habit(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(head.encode() + body)

    return habit


def wait_for(port: int) -> None:
    """Wait until something listens at this port."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)


def test_nginx_encodes_and_the_check_decodes(redline: Redline, tmp_path: Path) -> None:
    port, plain = targets.unused_port(), targets.unused_port()
    body = "abc" * 500
    config = tmp_path / "nginx.conf"
    config.write_text(NGINX % {"folder": tmp_path, "port": port, "plain": plain, "body": body})
    command = ["nginx", "-p", str(tmp_path), "-e", "stderr", "-c", str(config)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            for listening in (port, plain):
                wait_for(listening)
            done = redline("load", f"http://127.0.0.1:{plain}/items", "--compressed", *SHORT, "--json")
            second = redline("load", f"http://127.0.0.1:{port}/items", "--compressed", "--http2", *SHORT)
        finally:
            server.terminate()
    result = LoadResult.model_validate(done.json)
    assert result.counts.outcomes.errors == 0
    assert result.encoded[0].startswith("GET /items: gzip, ")
    assert result.encoded[0].endswith(f" bytes, {len(body):,} decoded")
    assert "GET /items: gzip, " in second.out


def test_expectations_are_compared_with_the_decoded_body(redline: Redline) -> None:
    encoded = bytes(cramjam.brotli.compress(BODY))
    with targets.target(answers(encoded, "br")) as url:
        base = url.removesuffix("path0")
        for expect, says in {
            f"length: {len(BODY)}": "",
            "json: {/total: 3}, under_load: status": "",
            "json: {/total: 4}, under_load: status": "3 in place of 4 stands at /total",
            "body: other": "in place of 'other'",
            f"length: {len(encoded)}": f"{len(BODY)} bytes in place of {len(encoded)}",
        }.items():
            (redline.folder / "list.yaml").write_text(LIST % expect)
            done = redline("load", base, "--requests", "list.yaml", *SHORT)
            if says:
                done.refused(1, says)
            else:
                done.measured()


@pytest.mark.long
def test_the_same_body_in_two_encodings_is_the_same_answer(redline: Redline) -> None:
    zstd, other = bytes(cramjam.zstd.compress(BODY)), gzip.compress(BODY.replace(b"3", b"4"))
    with (
        targets.target(answers(gzip.compress(BODY), "gzip")) as a,
        targets.target(answers(zstd, "zstd")) as b,
        targets.target(answers(other, "gzip")) as c,
    ):
        same = redline("ab", a, b, "--compressed", "--same-answers", "--for", "3s", "--json", "-o", "kept")
        told = redline("report", "kept")
        (redline.folder / "suite.yaml").write_text(SUITE % a.removesuffix("path0"))
        run = redline("run", "suite.yaml", "--json")
        limit = redline("limit", a, "--compressed", *SHORT_SEARCH, "--json")
        redline("ab", a, c, "--compressed", "--same-answers", "--for", "3s").refused(
            1, "the bodies differ from byte 10 on"
        )
    assert same.json["comparisons"], same.err
    said = [cell["encoded"] for cell in same.json["cells"]]
    unseen = "GET /path0: JSON whose `errors` are not looked for under load"
    assert said[0] == [f"GET /path0: gzip, {len(gzip.compress(BODY))} bytes, {len(BODY):,} decoded", unseen]
    assert f"B: {said[1][0]}; {unseen}." in " ".join(told.out.split())
    assert run.json["cells"][0]["encoded"] == said[0], run.err
    assert limit.json["cells"][0]["encoded"] == said[0]
    assert said[1] == [f"GET /path0: zstd, {len(zstd)} bytes, {len(BODY):,} decoded", unseen]


@pytest.mark.parametrize(
    ("body", "encoding", "says"),
    [
        (gzip.compress(BODY, mtime=0)[:-4], "gzip", "its body is not gzip, as it says: it ends too early"),
        (BODY, "zstd", "its body is not zstd, as it says"),
        (b"x", "compress", "its body is encoded as compress, and the request accepts gzip, br, zstd"),
    ],
)
def test_a_wrong_encoding_is_a_wrong_answer(redline: Redline, body: bytes, encoding: str, says: str) -> None:
    with targets.target(answers(body, encoding)) as url:
        redline("load", url, "--compressed", *SHORT).refused(1, says)


NOT_COMPARED = (
    ("json", "json: {/total: 3}"),
    ("under_load", "body: a, under_load: hash"),
    ("sha256", f"sha256: {'a' * 64}"),
)
COMMANDS = (("load",), ("limit", "--objective", "p99 < 1s"), ("ab", "http://127.0.0.1:1/"))


@pytest.mark.parametrize(("command", "key", "expect"), for_each(COMMANDS, NOT_COMPARED))
def test_what_is_not_compared_under_load_is_refused(
    redline: Redline, command: tuple[str, ...], key: str, expect: str
) -> None:
    (redline.folder / "list.yaml").write_text(LIST % expect)
    done = redline(*command, "http://127.0.0.1:1/", "--requests", "list.yaml")
    done.refused(2, f"encoded answers are not decoded under load, so `{key}` is not compared")
