"""Flags about requests mean the same to load, limit and ab, and what contradicts itself is refused alike."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redline.asking.comparison import comparison_document
from redline.asking.load import load_document
from redline.asking.search import search_document
from redline.asking.written import plain
from redline.cli.command_line import app
from redline.errors import UsageError
from tests.fakes import asks

URL = "https://127.0.0.1:1/items"
COMMANDS = {
    "load": ["load", URL],
    "limit": ["limit", URL, "--objective", "p99 < 1s"],
    "ab": ["ab", URL, URL.replace(":1/", ":2/")],
}


def ends(_range: str) -> tuple[str, str]:
    raise AssertionError("no revision is named")


def documents(**given: Any) -> list[dict[str, Any]]:
    """The documents of load, limit and ab with the same flags."""
    return [
        plain(load_document(asks.load(url=URL, **given), str)),
        plain(search_document(asks.search(targets=[URL], **given), ends, str)),
        plain(comparison_document(asks.comparison(a=URL, b=URL, **given), ends, str)),
    ]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, {"get": "/items"}),
        ({"method": "put", "body": "{}"}, {"put": "/items", "body": "{}"}),
        ({"method": "PROPFIND"}, {"method": "PROPFIND", "path": "/items"}),
        ({"body": "@item.json"}, {"post": "/items", "body": {"file": "item.json"}}),
        ({"headers": ["Accept: a", "accept:b"]}, {"get": "/items", "headers": {"Accept": ["a", "b"]}}),
        ({"status": 404}, {"get": "/items", "expect": {"status": 404}}),
    ],
)
def test_the_request_is_the_same_in_every_command(given: dict[str, Any], asked: dict[str, Any]) -> None:
    assert [document["scenarios"] for document in documents(**given)] == [[{"name": "requests", **asked}]] * 3


@pytest.mark.parametrize(
    ("given", "reached"),
    [
        ({"http2": True}, {"http": 2}),
        ({"insecure": True}, {"tls": {"insecure": True}}),
        ({"cacert": Path("ca.pem")}, {"tls": {"ca": "ca.pem"}}),
    ],
)
def test_servers_are_reached_the_same_way_by_every_command(given: dict[str, Any], reached: dict[str, Any]) -> None:
    for document in documents(**given):
        for server in document["servers"]:
            assert {key: server[key] for key in ("http", "tls") if key in server} == reached


def test_a_timeout_is_the_same_in_every_command() -> None:
    assert [document["timeout"] for document in documents(timeout="2s")] == ["2s"] * 3


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("-m items", "-m items: there is a single request, without a name"),
        ("-m a,b -X POST", "-m a,b: there is a single request, without a name"),
        ("--cacert ca.pem --insecure", "--cacert checks a certificate and --insecure takes any"),
        ("--requests list.yaml -X POST", "-X: --requests says what is requested"),
        ("-X CONNECT", "-X CONNECT: CONNECT opens a tunnel"),
        ("-H Accept", "-H 'Accept' is not a header"),
    ],
)
def test_contradictions_are_refused_by_every_command(command: str, given: str, says: str) -> None:
    error = CliRunner().invoke(app, [*COMMANDS[command], *given.split()]).exception
    assert isinstance(error, UsageError)
    assert str(error).startswith(says)
    assert error.hint


@pytest.mark.parametrize("given", ["-o AB", "--resume AB", "--json", "--format md", "--fail-on slower", "--wait-quiet"])
def test_writing_a_suite_takes_no_flag_about_measuring(given: str, tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    error = CliRunner().invoke(app, [*COMMANDS["ab"], "--write-suite", str(file), *given.split()]).exception
    assert isinstance(error, UsageError)
    assert str(error).startswith("--write-suite measures nothing, and takes no -")
    assert not file.exists()


@pytest.mark.parametrize(
    "line", ["ab ./a ./b --json --format md", "report DIR --json -f html", "history DIR --json -f md"]
)
def test_two_formats_are_refused(line: str) -> None:
    error = CliRunner().invoke(app, line.split()).exception
    assert isinstance(error, UsageError)
    assert str(error).startswith("--json and --format ")


def test_words_of_curl_for_headers_and_the_method() -> None:
    given = {"user_agent": "x/1", "cookie": ["a=1", "b=${B}"], "referer": "http://r/", "head": True}
    for document in documents(**given):
        (asked,) = document["scenarios"]
        assert asked["head"] == "/items"
        assert asked["headers"] == {"User-Agent": "x/1", "Cookie": "a=1; b=${B}", "Referer": "http://r/"}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"user_agent": "x", "headers": ["user-agent: y"]}, "-A and -H 'User-Agent: …' are the same header"),
        ({"cookie": ["jar.txt"]}, "a file of cookies is not read"),
        ({"head": True, "body": "x"}, "--head is the method HEAD"),
        ({"head": True, "method": "PUT"}, "--head is the method HEAD"),
    ],
)
def test_words_of_curl_that_contradict_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        documents(**given)
