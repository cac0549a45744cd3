"""WebSockets: how suites and URLs ask for them, what the engine is told, and what is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from redline.asking.comparison import comparison_document
from redline.asking.load import load_suite as load_suite_of
from redline.asking.origins import FromRepository
from redline.asking.searching import read_suites_search
from redline.asking.written import plain
from redline.errors import UsageError
from redline.model import AttachedServer, Body, Request, Scenario, Stream, Timestamp, WebSocket
from redline.suite import Catalogue, load_suite
from redline.suite.project import read_project
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
    more = (
        "path: /chat, headers: {Origin: http://a}, subprotocols: [v2, v1], compression: true, answer: next, greeting: 2"
    )
    (sent,) = job_of(request=read(tmp_path, SUITE.replace("path: /chat", more)).request)["requests"]
    opens = {"subprotocols": ["v2", "v1"], "compression": True, "message": "text", "answer": "next", "greeting": 2}
    assert sent["websocket"] == opens
    assert (sent["method"], sent["path"], sent["headers"]) == ("GET", "/chat", [["Origin", "http://a"]])
    assert sent["body_text"] == "message {seq}"


def test_the_engine_is_told_to_listen(tmp_path: Path) -> None:
    """`send` is a message that asks for the pushes, if there is one."""
    receive = "receive: {until: 600, for: 90s, message: {json: /at}, timestamp: {pointer: /at, unit: ms}}"
    request = read(tmp_path, SUITE.replace('send: "message {seq}"', receive)).request
    (listens,) = job_of(request=request)["requests"]
    assert listens["websocket"] == {"answer": "listen"}
    assert listens["timestamp"] == {"pointer": "/at", "unit": "ms"}
    followed = listens["stream"]
    assert (followed["events"], followed["until"], followed["for_ns"]) == ("messages", 600, 90_000_000_000)
    assert followed["message"] == {"json": ["/at"]}
    assert not {"body_base64", "body_text"} & listens.keys()
    (asks_first,) = job_of(request=read(tmp_path, SUITE.replace("send:", f"{receive}, send:")).request)["requests"]
    assert asks_first["websocket"] == {"answer": "listen", "message": "text"}
    assert asks_first["body_text"] == "message {seq}"
    assert Request.model_validate_json(request.model_dump_json()) == request


@pytest.mark.parametrize(("url", "server"), [("ws://h:81/chat?a=1", "http://h:81"), ("WSS://h/chat?a=1", "https://h")])
def test_a_url_of_a_websocket_opens_it(url: str, server: str) -> None:
    suite, text = load_suite_of(asks.load(url=url, body="hello"))
    request = suite.scenarios[0].request
    assert (request.path, request.body, request.websocket) == ("/chat?a=1", Body(text="hello"), ECHO)
    assert f"url: {server}" in text
    assert "websocket: {path: /chat?a=1, send: hello}" in text


@pytest.mark.parametrize(("url", "port"), [("ws://127.0.0.1:8099", 8099), ("wss://127.0.0.1", 443)])
def test_a_server_of_a_suite_may_be_a_websocket(tmp_path: Path, url: str, port: int) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE.replace("http://127.0.0.1:8099", url))
    (variant,) = load_suite(tmp_path / "suite.yaml", Catalogue()).variants
    assert isinstance(variant.entry, AttachedServer)
    assert (variant.entry.port, variant.tls is not None) == (port, url.startswith("wss"))


def test_a_websocket_of_a_suite_has_no_requests(tmp_path: Path) -> None:
    text = SUITE.replace("http://", "ws://").replace("scenarios: [", "scenarios: [{name: root, get: /}, ")
    says = r"suite.yaml:1:28: servers\[0\].url: ws://.*:8099 is a WebSocket, and scenario `root` loads requests"
    with pytest.raises(UsageError, match=says) as wrong:
        read(tmp_path, text)
    assert wrong.value.hint.startswith("write http://127.0.0.1:8099, or load `websocket: {path: /, ")


def test_a_websocket_of_a_project_is_refused_in_its_words(tmp_path: Path) -> None:
    text = "servers: [{name: own, url: 'ws://127.0.0.1:8099'}]\nrequests: [{name: root, get: /}]\n"
    project = read_project(text, "redline.yaml")
    with pytest.raises(UsageError, match=r"redline.yaml:1:28: servers\[0\].url: ws://.* is a WebSocket") as wrong:
        load_suite_of(asks.load(url=None), project)
    assert wrong.value.hint == "write http:// or https://; `redline load` takes such a URL"


def test_a_websocket_beside_a_suite_is_loaded_as_the_suite_says(tmp_path: Path) -> None:
    suite, rest = tmp_path / "suite.yaml", FromRepository(tmp_path)
    open_load = SUITE.replace("{closed: {users: 2}, for: 2s}", "{open: {rate: 100}, for: 4s}")
    flags = asks.search(targets=[str(suite), "ws://127.0.0.1:8098"], objective=["p99 < 20ms"])
    suite.write_text(open_load)
    assert len(read_suites_search(flags, rest).request.suite.variants) == 2
    suite.write_text(open_load.replace('websocket: {path: /chat, send: "message {seq}"}', "get: /"))
    with pytest.raises(UsageError, match=r"ws://127.0.0.1:8098 is a WebSocket, and .*suite.yaml loads requests"):
        read_suites_search(flags, rest)


def test_websockets_are_compared_with_each_other() -> None:
    def document(b: str) -> Any:
        return plain(comparison_document(asks.comparison(a="ws://h:1/chat", b=b), lambda _: ("", ""), str))

    (scenario,) = document("ws://h:2/chat")["scenarios"]
    assert scenario["websocket"] == {"path": "/chat", "send": "message {seq}"}
    with pytest.raises(UsageError, match="ws://h:1/chat is a WebSocket, and http://h:2/chat is not"):
        document("http://h:2/chat")


def test_events_of_a_websocket_are_what_a_user_listens_to() -> None:
    suite, text = load_suite_of(asks.load(url="ws://h/ticks", events="messages until 600 for 90s timestamp body:ms"))
    request = suite.scenarios[0].request
    assert (request.websocket, request.body) == (WebSocket(answer="listen"), None)
    assert request.timestamp == Timestamp(unit="ms")
    assert request.stream == Stream(events="messages", until=600, for_ns=90_000_000_000)
    assert "receive: {until: 600, for: 90s, timestamp: {pointer: body, unit: ms}}" in text
    suite, _ = load_suite_of(asks.load(url="http://h/ticks", events="sse timestamp /at:s"))
    assert suite.scenarios[0].request.timestamp == Timestamp(pointer="/at", unit="s")
    with pytest.raises(UsageError, match=r"ws://h/ is a WebSocket"):
        load_suite_of(asks.load(url="ws://h/", events="sse until 2"))
    with pytest.raises(UsageError, match="messages are those of a WebSocket"):
        load_suite_of(asks.load(url="http://h/", events="messages until 2"))


def test_messages_have_their_number_unless_one_is_given() -> None:
    suite, _ = load_suite_of(asks.load(url="ws://h/"))
    assert suite.scenarios[0].request.body == Body(text="message {seq}")


def test_websockets_are_opened_over_http2_where_that_is_asked_for(tmp_path: Path) -> None:
    suite, text = load_suite_of(asks.load(url="wss://h/chat", http2=True))
    assert [variant.http for variant in suite.variants] == ["2"]
    assert "http: 2" in text
    (tmp_path / "suite.yaml").write_text(SUITE.replace('8099"', '8099", http: 2'))
    assert [variant.http for variant in load_suite(tmp_path / "suite.yaml", Catalogue()).variants] == ["2"]


@pytest.mark.parametrize("varies", ["{path: '/chat/{seq}'", "{headers: {A: ['b', '{seq}']}, path: /chat"])
def test_what_opens_a_websocket_over_http2_does_not_vary(tmp_path: Path, varies: str) -> None:
    listens = SUITE.replace('send: "message {seq}"', "receive: {until: 2}").replace("{path: /chat", varies)
    assert varies in listens
    read(tmp_path, listens)
    with pytest.raises(UsageError, match=r"has placeholders, so it is opened over HTTP/1\.1 alone"):
        read(tmp_path, listens.replace('8099"', '8099", http: 2'))


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_users_who_listen_have_a_connection_each(tmp_path: Path, http: str) -> None:
    listens = SUITE.replace('8099"', f'8099", http: {http}').replace('send: "message {seq}"', "receive: {until: 2}")
    with pytest.raises(UsageError, match="would wait for its end") as wrong:
        read(tmp_path, listens.replace("users: 2}", "users: 2, depth: 2}"))
    assert wrong.value.hint == "remove `depth`"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"method": "POST"}, r"^-X: ws://h/ is a WebSocket"),
        ({"status": 204}, r"is a WebSocket, on which messages are sent"),
    ],
)
def test_flags_of_requests_are_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_suite_of(asks.load(url="ws://h/", **asked))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{SUITE}driver: loop\n", "driver: WebSocket /chat carries messages, which only redline-engine sends"),
        (SUITE.replace("path: /chat", "path: /chat, greeting: -1"), "greeting"),
        (SUITE.replace("/chat", "'/{seq}'"), "has placeholders, and a connection is opened once for many messages"),
        (SUITE.replace("path: /chat", "path: /chat, headers: {Upgrade: x}"), "the engine sets `Upgrade`"),
        (SUITE.replace("path: /chat", "path: /chat, subprotocols: ['a,b']"), "subprotocols"),
        (SUITE.replace('"message {seq}"', "{}"), "this message is empty"),
        (SUITE.replace('"message {seq}"', "{json: 1, size: 3}"), "this message has `json` and `size`"),
        (SUITE.replace('"message {seq}"', "{size: 17MiB}"), "a message has at most 16 MiB"),
        (SUITE.replace('"message {seq}"', '"{rand:9..1}"'), "cannot be filled in"),
        (SUITE.replace("name: echo,", "name: echo, get: /,"), "this scenario has get and websocket"),
        (SUITE.replace("name: echo,", "name: echo, timestamp: {pointer: body, unit: ms},"), "cannot be combined with"),
        (SUITE.replace(', send: "message {seq}"', ""), "nothing is sent, and nothing received"),
        (SUITE.replace('send: "message {seq}"', "receive: {stall: 2s}"), "nothing says how long a user listens"),
        (SUITE.replace("send:", "receive: {until: 2}, answer: next, send:"), "`answer` is what answers a message"),
        (SUITE.replace("send:", "receive: {until: 2, events: sse}, send:"), "events"),
        (
            SUITE.replace('websocket: {path: /chat, send: "message {seq}"}', "requests: [{websocket: {path: /}}]"),
            "websocket",
        ),
    ],
)
def test_what_websockets_cannot_do_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(tmp_path, text)
