"""Files in place of a suite or a server: the message says what a file is, and where it belongs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from redline.asking.suites import check_is_no_file, of_search, read_suite_file
from redline.errors import UsageError
from tests.fakes import asks

FILES = {
    "test.js": ("import http from 'k6/http';\nexport default () => http.get('http://x');\n", "a script of k6"),
    "locustfile.py": ("from locust import HttpUser\nclass U(HttpUser): pass\n", "a script of Locust"),
    "plan.jmx": ('<?xml version="1.0"?>\n<jmeterTestPlan version="1.2"/>\n', "a test plan of JMeter"),
    "post.lua": ('wrk.method = "POST"\n', "a script of wrk"),
    "Shop.scala": ("import io.gatling.core.Predef._\nclass S extends Simulation {}\n", "a simulation of Gatling"),
    "artillery.yml": ("config:\n  target: http://x\nscenarios: []\n", "a script of Artillery"),
    "openapi.yaml": ("openapi: 3.0.0\ninfo: {title: x, version: '1'}\npaths: {}\n", "an OpenAPI document"),
    "access.log": ('1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 2\n', "an access log"),
    "urls.txt": ("http://127.0.0.1/a\nhttp://127.0.0.1/b\n", "a list of URLs"),
    "package.json": ('{"scripts": {"start": "node server.js"}}\n', "a package of Node"),
    "traffic.har": ('{"log": {"entries": []}}\n', "a recording of a browser"),
    "Procfile": ("web: ./server --port $PORT\n", "a Procfile"),
    "compose.yaml": ("services:\n  web: {image: x}\n", "a compose file"),
}


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path(request.param)
    path.write_text(FILES[request.param][0], encoding="utf-8")
    return path


def said(call: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as raised:
        call()
    return str(raised.value)


def test_a_file_in_place_of_a_suite_is_named(file: Path) -> None:
    message = said(lambda: read_suite_file(file, asks.of_suite()))
    assert message.startswith(f"{file} is {FILES[file.name][1]}, not a suite")
    assert message == said(lambda: read_suite_file(file, of_search(asks.search())))


def test_a_file_in_place_of_a_server_is_named(file: Path) -> None:
    assert said(lambda: check_is_no_file(str(file))).startswith(f"{file} is {FILES[file.name][1]}, not a server")


def test_the_hint_says_where_the_file_belongs(file: Path) -> None:
    hint = said(lambda: check_is_no_file(str(file))).partition("hint: ")[2]
    belongs = {"access.log": "--replay", "urls.txt": "--requests urls.txt", "compose.yaml": "redline init compose.yaml"}
    assert belongs.get(file.name, "") in hint
    assert hint


def test_a_wrong_suite_is_a_suite(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text("servers: [rust.hyper]\nconfig: 1\nscenarios: []\n", encoding="utf-8")
    assert "unknown key `config`" in said(lambda: read_suite_file(file, asks.of_suite()))


@pytest.mark.parametrize("target", ["http://127.0.0.1/", "main", "./server --port {port}", "nothing.here"])
def test_servers_are_no_files(target: str) -> None:
    check_is_no_file(target)


def test_a_program_is_a_server_and_another_file_is_none(tmp_path: Path) -> None:
    program, text = tmp_path / "server", tmp_path / "notes.txt"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    text.write_text("nothing that is known\n", encoding="utf-8")
    program.chmod(0o755)
    check_is_no_file(str(program))
    assert "is a file, not a server" in said(lambda: check_is_no_file(str(text)))
