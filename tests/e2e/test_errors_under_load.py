"""An API that answers 200 with `errors` in its JSON only under load: every command says how often, and what first."""

import gzip
import itertools
import json
import socket
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import redline as api
from redline.suite.urls import base_of
from tests.e2e.conftest import CHECKOUT, Done, Redline
from tests.fakes import targets

pytestmark = pytest.mark.e2e

QUICK = ("-d", "300ms", "--warmup", "0s", "-c", "2")
ERRORS = b'{"data": null, "errors": [{"message": "too busy"}]}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n"


def turning(right: bytes, after: int, more: bytes = b"", wrong: bytes = ERRORS) -> targets.Habit:
    """A habit: so many answers are `right`, and then every second is `wrong`."""
    asked = itertools.count()

    def answer(connection: socket.socket) -> None:
        while connection.recv(65536):
            number = next(asked)
            body = wrong if number >= after and number % 2 else right
            connection.sendall(HEAD % (more, len(body)) + body)

    return answer


def told(done: Done) -> str:
    """What a command printed, on one line."""
    return " ".join((done.out + done.err).split())


def of_kind(done: Done) -> list[str]:
    return [found["message"] for found in done.json["findings"] if found["kind"] == "errors-in-answers"]


@pytest.mark.parametrize("right", [b'{"data": {"a": 1}}', b'{"data": 1, "errors": []}', b'[{"id": 1}]'])
def test_errors_that_come_under_load_are_counted(right: bytes, redline: Redline) -> None:
    with targets.target(turning(right, 8)) as url:
        done = redline("load", url, *QUICK, "--json")
    (message,) = of_kind(done)
    counts = done.json["counts"]
    assert 0 < counts["with_errors"] < counts["outcomes"]["ok"]
    shown = f"{counts['with_errors']:,} of {counts['outcomes']['ok']:,} right answers carry `errors` in their JSON"
    assert shown in message
    assert message.endswith('first: [{"message": "too busy"}].')
    assert counts["outcomes"]["ok"] == counts["due"]  # they are right until the user says otherwise


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (b'{"errors": ["always"]}', ERRORS),  # it had them before the load
        (b'{"data": 1}', b'{"data": {"errors": [1]}}'),  # not at the top
        (b'{"data": 1}', b'{"data": 1, "errors": null}'),
        (b'{"data": 1}', b'{"errors": '),  # no JSON
        (b"plain text", ERRORS),  # no JSON before the load
    ],
)
def test_what_is_no_news_is_not_told(right: bytes, wrong: bytes, redline: Redline) -> None:
    with targets.target(turning(right, 8, wrong=wrong)) as url:
        done = redline("load", url, *QUICK, "--json")
    assert of_kind(done) == []
    assert "with_errors" not in done.json["counts"]


@pytest.mark.parametrize(
    ("right", "more"),
    [(gzip.compress(b'{"data": 1}', mtime=0), b"Content-Encoding: gzip\r\n"), (json.dumps("x" * 70_000).encode(), b"")],
)
def test_what_is_not_looked_into_is_said(right: bytes, more: bytes, redline: Redline) -> None:
    with targets.target(turning(right, 1 << 60, more)) as url:
        done = redline("load", url, *QUICK)
    assert "GET /path0: JSON whose `errors` are not looked for under load" in told(done)


@pytest.mark.long
def test_every_command_tells_it(redline: Redline, tmp_path: Path) -> None:
    requests = tmp_path / "requests.yaml"
    requests.write_text("- {name: list, get: /list}\n- {name: item, get: /item}\n")
    commands: tuple[tuple[str | Path, ...], ...] = (
        ("load", "--requests", requests, *QUICK),
        ("ab", "--for", "3s"),
        ("limit", "--objective", "p99 < 1s", "-d", "1s", "--probes", "2", "-c", "2"),
    )
    said = list[str]()
    for command, *flags in commands:
        with targets.target(turning(b'{"data": 1}', 40)) as url:
            servers = [base_of(url)] * (2 if command == "ab" else 1)
            said.append(told(redline(command, *servers, *flags)))
    with targets.target(turning(b'{"data": 1}', 40)) as url:
        result = api.load(url, duration="300ms", warmup="0s", users=2)
    for text in said:
        assert "right answers carry `errors` in their JSON, and none did before it" in text, text
    assert "first, of list: [" in said[0] or "first, of item: [" in said[0]
    assert "errors-in-answers" in {found.kind for found in result.findings}


def test_stated_errors_are_wrong_answers(redline: Redline, tmp_path: Path) -> None:
    requests = tmp_path / "requests.yaml"
    requests.write_text("- {name: item, get: /, expect: {json: {/errors: {absent: true}}}}\n")
    with targets.target(turning(b'{"data": 1}', 8)) as url:
        done = redline("load", base_of(url), "--requests", requests, *QUICK, "--json")
    assert done.json["counts"]["outcomes"]["unexpected_body"] > 0
    assert of_kind(done) == []


def test_the_documented_way_to_state_soft_failures(redline: Redline, tmp_path: Path) -> None:
    """The list in the reference counts each kind of failure in a 200 as wrong, and takes what is right."""
    page = (CHECKOUT / "docs/reference/suite.md").read_text()
    block = page.partition('<a id="soft-failures">')[2].partition("```yaml\n")[2].partition("```")[0]
    (api_of,) = YAML(typ="safe", pure=True).load(block)["scenarios"]
    listed = [{"name": name} | asked for name, asked in zip("abc", api_of["requests"], strict=True)]
    (tmp_path / "requests.yaml").write_text(json.dumps(listed))
    answers = {
        b"/list": (b'{"items": []}', b'{"error": "busy"}'),
        b"/orders": (b'{"success": true}', b'{"success": false}'),
        b"/state": (b'{"status": "ok"}', b'{"status": "error"}'),
    }
    asked = itertools.count()

    def answer(connection: socket.socket) -> None:
        while request := connection.recv(65536):
            body = answers[request.split()[1]][next(asked) >= 30]
            connection.sendall(HEAD % (b"", len(body)) + body)

    with targets.target(answer) as url:
        done = redline("load", base_of(url), "--requests", "requests.yaml", "-d", "300ms", "-c", "1", "--json")
    wrong = {made["request"]: made["outcomes"]["unexpected_body"] for made in done.json["requests"]}
    assert set(wrong) == {"a", "b", "c"}
    assert all(wrong.values()), wrong
