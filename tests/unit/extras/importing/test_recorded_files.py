"""Files that real servers, recorders and frameworks wrote: what is read and left out is there, and is sent as recorded.

`tests/recorded/README.md` says how the files were made.
"""

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from redline.errors import UsageError
from redline.extras.importing import detect, read_requests
from redline.suite.imported import Imported, Wanted
from redline.suite.project import read_project
from tests.unit.driving.test_job import USERS, job_of
from tests.unit.extras.importing.test_importing import left, source

RECORDED = Path(__file__).parents[3] / "recorded"
SCRIPT = {
    "a": ("GET", "/items?page=2"),
    "b": ("GET", "/caf%C3%A9/a%20b?u=1+2&empty=&flag"),
    "c": ("GET", "/items?q=%22%5C%7B%7D"),
    "d": ("GET", '/items?x="y"&z={a}|b'),
    "e": ("GET", "/items?raw=%C3%A9"),
    "f": ("HEAD", "/items"),
    "g": ("OPTIONS", "/items"),
    "j": ("GET", "/items?page=3"),
    # What servers made of it before they wrote it:
    "A": ("GET", "/items"),
    "Q": ("GET", "/items?"),
    "C": ("GET", '/items?q="\\{}'),
    "E": ("GET", "/items?raw=%C3%83%C2%A9"),
}
"""The requests that each server got, in the order of their letters, `a` twice. The bytes of `e` were sent as they are,
and `j` had a parameter `token` too, which is a secret."""
LOGS = {
    "aiohttp.log": "aabcdfgj",
    "apache-common.log": "aacdefgj",
    "apache-json.json": "aacdefgj",
    "apache-usec.log": "aacdefgj",
    "apache-vhost.log": "aacdefgj",
    "caddy-console.log": "aacdefgj",
    "caddy.json": "aacdefgj",
    "daphne.log": "aabcdfgj",
    "django.log": "aabcdEfgj",
    "granian.log": "AAAAfgA",
    "gunicorn.log": "aabcdfgj",
    "haproxy-clf-rfc5424.log": "aacdfgj",
    "haproxy-http.log": "aacdfgj",
    "haproxy-rfc3164.log": "aacdfgj",
    "hypercorn.log": "AAAAfgA",
    "lighttpd.log": "aacdefgj",
    "nginx-combined.log": "aabcdefj",
    "nginx-default-escape.json": "aabcdefj",
    "nginx-escape-json.json": "aabcdefj",
    "nginx-forwarded-list.log": "aabcdefj",
    "nginx-forwarded.log": "aabcdefj",
    "nginx-ingress.log": "aabcdefj",
    "nginx-iso.log": "aabcdefj",
    "nginx-logfmt.log": "aabcdefj",
    "nginx-parts.json": "aabcdefj",
    "nginx-syslog.log": "aabcdefj",
    "nginx-vhost.log": "aabcdefj",
    "node-combined.log": "aabcdfgj",
    "node-pino.log": "aabcdfgj",
    "php.log": "aacdfgj",
    "python-http-server.log": "aacdEfj",
    "squid-combined.log": "QQQQQfgQ",
    "squid.log": "QQQQQfgQ",
    "tomcat.json": "aacdfgj",
    "tomcat.log": "aacdfgj",
    "varnishncsa.log": "aacdefgj",
    "webrick.log": "aacdfgj",
    "werkzeug.log": "aabCdEfgj",
    "winston.log": "aabcdfgj",
}
WITHOUT_TIMES = {
    "koa.log": "aabcdfgj",
    "node-dev.log": "aabcdfgj",
    "node-tiny.log": "aabcdfgj",
    "tornado.log": "aabcdEfgj",
    "uvicorn.log": "aabcdfgj",
}
HOSTS = {"apache-vhost.log": "shop.test", "lighttpd.log": "shop.test", "tomcat.json": "", "nginx-forwarded.log": ""}


def read(content: bytes, *, times: bool = False) -> Imported:
    file = source(content, RECORDED / "har")
    form = detect(file)
    assert form is not None
    return read_requests(file, form, Wanted(times=times))


def sent_of(made: Imported) -> list[tuple[str, str, bytes]]:
    """What the engine gets for each request of a list: the method, the target and the body."""
    text = json.dumps({"start": "./x {port}", "requests": made.requests}, ensure_ascii=False)
    scenarios = read_project(text, "redline.yaml").scenarios
    first, *others = scenarios[-1].requests  # of the mix, if there are several
    sent = job_of(USERS, first, *others)["requests"]
    return [(request["method"], _literal(request["path"]), _body(request)) for request in sent]


def _literal(path: str) -> str:
    return path.replace("{{", "{").replace("}}", "}")


def _body(request: dict[str, Any]) -> bytes:
    return base64.b64decode(request.get("body_base64", "")) or request.get("body_text", "").encode()


def letters_of(made: Imported) -> list[str]:
    """The letters of the requests of a list, in its order."""
    known = {exchange: letter for letter, exchange in SCRIPT.items()}
    return [known[method, target] for method, target, _ in sent_of(made)]


def lines_in(content: bytes) -> int:
    return sum(1 for line in content.splitlines() if line.strip())


@pytest.mark.parametrize(("name", "letters"), [*LOGS.items(), *WITHOUT_TIMES.items()])
def test_what_a_log_has_is_sent_or_left_out_by_name(name: str, letters: str) -> None:
    content = (RECORDED / "access" / name).read_bytes()
    made = read(content)
    assert made.total == lines_in(content)
    assert Counter(dict(zip(letters_of(made), made.counts, strict=True))) == Counter(letters)
    assert sum(left(made).values()) == lines_in(content) - len(letters)
    assert left(made)["POST: a log has no bodies"] == 1
    assert left(made, "secret") == ({"the parameter `token`": 1} if "j" in letters else {})
    assert made.host == HOSTS.get(name, made.host)


@pytest.mark.parametrize(("name", "letters"), LOGS.items())
def test_a_replay_sends_what_a_log_has_in_its_order(name: str, letters: str) -> None:
    content = (RECORDED / "access" / name).read_bytes()
    made = read(content, times=True)
    names = letters_of(made)
    assert [names[arrival.request] for arrival in made.arrivals] == [*letters]
    assert made.total == lines_in(content), "what is left out of a replay is counted too"
    assert made.arrivals[-1].at_ns < 10_000_000_000


@pytest.mark.parametrize("name", sorted(WITHOUT_TIMES))
def test_a_log_without_times_is_no_recording(name: str) -> None:
    with pytest.raises(UsageError, match="does not say when its requests were sent"):
        read((RECORDED / "access" / name).read_bytes(), times=True)


def test_each_recorded_log_is_in_a_table() -> None:
    known = {*LOGS, *WITHOUT_TIMES, "fastify.log", "haproxy-tcp.log"}
    assert known == {file.name for file in (RECORDED / "access").iterdir()}


def test_a_log_whose_lines_lack_the_status_is_read() -> None:
    """Fastify writes a line when a request comes, and another without the request when it is answered."""
    content = (RECORDED / "access" / "fastify.log").read_bytes()
    made = read(content)
    assert (made.total, left(made)) == (21, {"lines of another form": 11, "POST: a log has no bodies": 1})
    assert all("expect" not in request for request in made.requests)


def test_a_log_of_connections_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="a log of HAProxy without requests") as refused:
        read((RECORDED / "access" / "haproxy-tcp.log").read_bytes())
    assert "option httplog" in refused.value.hint


@pytest.mark.parametrize("name", ["chromium-embed", "chromium-http2", "chromium-omit", "mitmproxy"])
def test_what_a_recording_has_is_sent_or_left_out_by_name(name: str) -> None:
    content = (RECORDED / "har" / f"{name}.har").read_bytes()
    lines = (RECORDED / "har" / f"{name}.received.jsonl").read_text().splitlines()
    received = {(method, target): body.encode("latin-1") for method, target, body, _ in map(json.loads, lines)}
    entries = json.loads(content)["log"]["entries"]
    for times in (False, True):
        made = read(content, times=times)
        assert made.total == len(entries)
        for method, target, body in sent_of(made):
            assert without_boundary(body) == without_boundary(received[method, target]), f"{method} {target}"
        assert left(made)["answered with status 404"] >= 1
    assert len(made.arrivals) == sum(made.counts)


def without_boundary(body: bytes) -> bytes:
    """A body, whose boundary, if it is a form of parts, is that of whoever sends it."""
    boundary = body.split(b"\r\n", 1)[0]
    return body.replace(boundary, b"--") if boundary.startswith(b"--") else body


METHODS = ("get", "head", "options", "post", "put", "patch", "delete", "trace")


@pytest.mark.parametrize("name", ["drf-spectacular", "fastapi", "fastify", "flask-smorest", "litestar"])
def test_each_operation_of_a_description_is_sent_or_left_out_by_name(name: str) -> None:
    content = (RECORDED / "openapi" / f"{name}.json").read_bytes()
    paths = json.loads(content)["paths"]
    operations = [(method.upper(), path) for path, item in paths.items() for method in item if method in METHODS]
    made = read(content)
    assert made.total == len(operations)
    assert made.counts == [1] * len(made.counts)
    for method, target, _ in sent_of(made):
        assert any(method == known and _is_of(target, path) for known, path in operations), target


def _is_of(target: str, path: str) -> bool:
    wanted, asked = path.split("/"), target.partition("?")[0].split("/")
    pairs = zip(wanted, asked, strict=False)
    return len(wanted) == len(asked) and all("{" in part or part == given for part, given in pairs)
