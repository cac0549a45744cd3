"""WebSockets: how suites and URLs ask for them, what the engine is told, and what is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from redline.asking.load import load_suite as load_suite_of
from redline.errors import UsageError
from redline.model import Body, Request, Scenario, WebSocket
from redline.suite import Catalogue, load_suite
from tests.fakes import asks
from tests.unit.driving.test_job import job_of

SUITE = """\
servers: [{name: own, url: "http://127.0.0.1:8099"}]
scenarios: [{name: echo, websocket: {path: /chat, send: "message {seq}"}}]
loads: {users: {closed: {users: 2}, for: 2s}}
"""
ECHO = WebSocket(message="text", answer="echo")


def read(folder: Path, text: str) -> Scenario:
    (folder / "suite.yaml").write_text(text)
    return load_suite(folder / "suite.yaml", Catalogue()).scenarios[0]


@pytest.mark.parametrize(
    ("send", "body", "message"),
    [
        ('"message {seq}"', Body(text="message {seq}"), "text"),
        ("{json: {id: '{seq}', n: 1.10}}", Body(text='{"id":"{seq}","n":1.10}', escape="json"), "text"),
        ("{size: 256}", Body(size=256), "binary"),
        ("{size: 1kB, fill: text, seed: 3}", Body(size=1000, fill="text", seed=3), "text"),
        ("{file: frame.bin}", Body(raw=b"\x00\xff"), "binary"),
    ],
)
def test_a_message_is_a_text_json_bytes_or_a_file(tmp_path: Path, send: str, body: Body, message: str) -> None:
    (tmp_path / "frame.bin").write_bytes(b"\x00\xff")
    made = read(tmp_path, SUITE.replace('"message {seq}"', send)).request
    assert made.body == body
    assert made.websocket == ECHO.model_copy(update={"message": message})
    assert Request.model_validate_json(made.model_dump_json()) == made


def test_results_call_it_a_websocket_that_may_change_the_server(tmp_path: Path) -> None:
    scenario = read(tmp_path, SUITE)
    assert scenario.labels == scenario.writes == ("WebSocket /chat",)


def test_the_engine_is_told_how_to_open_it_and_what_to_send(tmp_path: Path) -> None:
    more = "path: /chat, headers: {Origin: http://a}, subprotocols: [v2, v1], answer: next"
    (sent,) = job_of(request=read(tmp_path, SUITE.replace("path: /chat", more)).request)["requests"]
    assert sent["websocket"] == {"subprotocols": ["v2", "v1"], "message": "text", "answer": "next"}
    assert (sent["method"], sent["path"], sent["headers"]) == ("GET", "/chat", [["Origin", "http://a"]])
    assert sent["body_text"] == "message {seq}"


@pytest.mark.parametrize(("url", "server"), [("ws://h:81/chat?a=1", "http://h:81"), ("WSS://h/chat?a=1", "https://h")])
def test_a_url_of_a_websocket_opens_it(url: str, server: str) -> None:
    suite, text = load_suite_of(asks.load(url=url, body="hello"))
    request = suite.scenarios[0].request
    assert (request.path, request.body, request.websocket) == ("/chat?a=1", Body(text="hello"), ECHO)
    assert f"url: {server}" in text
    assert "websocket: {path: /chat?a=1, send: hello}" in text


def test_messages_have_their_number_unless_one_is_given() -> None:
    suite, _ = load_suite_of(asks.load(url="ws://h/"))
    assert suite.scenarios[0].request.body == Body(text="message {seq}")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"method": "POST"}, r"^-X: ws://h/ is a WebSocket"),
        ({"http2": True}, r"^--http2: ws://h/ is a WebSocket"),
        ({"status": 204}, r"is a WebSocket, on which messages are sent"),
    ],
)
def test_flags_of_requests_are_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_suite_of(asks.load(url="ws://h/", **asked))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SUITE.replace('8099"', '8099", http: 2'), "servers: WebSocket /chat is opened over HTTP/1.1 alone"),
        (f"{SUITE}driver: loop\n", "driver: WebSocket /chat carries messages, which only redline-engine sends"),
        (SUITE.replace("/chat", "'/{seq}'"), "has placeholders, and a connection is opened once for many messages"),
        (SUITE.replace("path: /chat", "path: /chat, headers: {Upgrade: x}"), "the engine sets `Upgrade`"),
        (SUITE.replace("path: /chat", "path: /chat, subprotocols: ['a,b']"), "subprotocols"),
        (SUITE.replace('"message {seq}"', "{}"), "this message is empty"),
        (SUITE.replace('"message {seq}"', "{json: 1, size: 3}"), "this message has `json` and `size`"),
        (SUITE.replace('"message {seq}"', "{size: 17MiB}"), "a message has at most 16 MiB"),
        (SUITE.replace('"message {seq}"', '"{rand:9..1}"'), "cannot be filled in"),
        (SUITE.replace("name: echo,", "name: echo, get: /,"), "this scenario has get and websocket"),
        (SUITE.replace("name: echo,", "name: echo, timestamp: {pointer: body, unit: ms},"), "cannot be combined with"),
        (
            SUITE.replace('websocket: {path: /chat, send: "message {seq}"}', "requests: [{websocket: {path: /}}]"),
            "websocket",
        ),
    ],
)
def test_what_websockets_cannot_do_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(tmp_path, text)
