"""Conversations as steps of a journey: the answer of a turn is sent by the next, as both sides count it."""

import json
import socket
import threading
from pathlib import Path

import pytest

from bench.rig import AskedOf, drive, running
from redline.model import (
    Body,
    Closed,
    Journey,
    JourneyStep,
    Load,
    Request,
    Scenario,
    Stream,
    StreamTraffic,
    TakenValue,
    WebSocket,
)
from redline.model.catalogue import HttpVersion
from redline.suite.urls import base_of
from tests.e2e.conftest import Redline
from tests.fakes import targets

pytestmark = pytest.mark.e2e

SECOND = 1_000_000_000
TEXT = "/choices/0/delta/content"
TURNS = """\
journey:
  steps:
    - {{name: ask, post: /chat, json: {{messages: []}}, stream: openai, take: {{answer: {{text: {text}}}}}}}
    - name: ask again
      post: /chat
      json: {{messages: [{{role: assistant, content: "{{take:answer}}"}}]}}
      stream: openai
"""
PARTS = ['he said "', "a\\b", '"\n', "\u00e9\U0001f642 {seq}"]


class Model:
    """Streams tokens in answer to chats; the first numbers the answer. Records its answers, and what it was sent."""

    def __init__(self) -> None:
        self.said = dict[str, None]()
        self.told = list[str]()
        self._lock = threading.Lock()

    def __call__(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while head := stream.readline():
            length = 0
            while (line := stream.readline()) not in {b"\r\n", b""}:
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            asked = json.loads(stream.read(length))
            assert head.startswith(b"POST /chat")
            with self._lock:
                if asked["messages"]:
                    self.told.append(asked["messages"][0]["content"])
                parts = [f"{len(self.said)}: ", *PARTS]
                self.said["".join(parts)] = None
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            for part in ["", *parts]:
                event = json.dumps({"choices": [{"delta": {"content": part}}]})
                connection.sendall(_chunk(f"data: {event}\n\n".encode()))
            connection.sendall(_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_the_next_turn_is_told_all_that_was_said(redline: Redline, tmp_path: Path) -> None:
    (tmp_path / "turns.yaml").write_text(TURNS.format(text=TEXT))
    model = Model()
    args = ["--requests", "turns.yaml", "-c", "3", "-d", "500ms", "--warmup", "0s", "--json"]
    with targets.target(model) as url:
        done = redline("load", base_of(url), *args).measured()
    names = [request["request"] for request in done.json["requests"]]
    assert names == ["ask", "ask again"]
    made = done.json["journeys"]
    assert made["completed"] > 0
    assert made["abandoned"] == {}
    # The check before the load sends one more, and each user may be in a second turn when the load ends.
    assert made["completed"] + 1 <= len(model.told) <= made["completed"] + 1 + 3
    assert set(model.told) <= model.said.keys()
    assert len(set(model.told)) == len(model.told)


def test_a_text_that_is_not_there_is_named_with_the_first_message(redline: Redline, tmp_path: Path) -> None:
    (tmp_path / "turns.yaml").write_text(TURNS.format(text="/choices/0/text"))
    with targets.target(Model()) as url:
        done = redline("load", base_of(url), "--requests", "turns.yaml", "-d", "500ms")
    done.refused(1, 'none of 5 messages had a text at "/choices/0/text" for `answer`; the first was {"choices"')


@pytest.mark.parametrize("http", ["1.1", "2"])
@pytest.mark.parametrize("until", [None, 11])
def test_both_sides_count_the_same_turns(oracle: Path, http: HttpVersion, until: int | None) -> None:
    """17 tokens of `a`, or 11 of them: the next turn asks for a path of as many."""
    stream = Stream(events="openai", until=until)
    ask = Request(method="POST", path="/chat", body=Body(text="{}"), stream=stream, name="ask")
    again = Request(path="/{take:answer}", stream=stream, name="again")
    take = (TakenValue(name="answer", from_text=TEXT),)
    journey = Journey(steps=(JourneyStep(take=take), JourneyStep()))
    scenario = Scenario(name="Turns", request=ask, others=(again,), journey=journey)
    load = Load(name="turns", shape=Closed(users=4), duration_ns=20 * SECOND, count=40)
    with running(oracle, "null", "--events", "20", "--tokens", "--event-gap", "500us", "--report") as server:
        traffic = drive(server, load, AskedOf(scenario, http), warmup_ns=0)
    assert server.seen is not None
    assert server.seen.targets == {"chat": 40, "a" * (until or 17): 40}
    assert traffic.counts.outcomes.ok == traffic.counts.due == 80
    assert traffic.streams is not None
    assert traffic.streams.counted == 80 * (until or 17)


def test_both_sides_count_the_same_turns_on_websockets(oracle: Path) -> None:
    """Its echo says what the next steps ask for, each on a WebSocket of its own: `a`, `/a` and `aa`, then `/aa`."""

    def talk(path: str, says: str) -> Request:
        body = Body(text=json.dumps({"say": says}), escape="json")
        stream = Stream(events="messages", until=1)
        return Request(path=path, body=body, websocket=WebSocket(message="text", answer="listen"), stream=stream)

    requests = (talk("/talk", "a"), talk("/{take:one}", "{take:one}{take:one}"), Request(path="/{take:two}"))
    takes = [JourneyStep(take=(TakenValue(name=name, from_text="/say"),)) for name in ("one", "two")]
    journey = Journey(steps=(*takes, JourneyStep()))
    scenario = Scenario(name="Turns", request=requests[0], others=requests[1:], journey=journey)
    load = Load(name="turns", shape=Closed(users=4), duration_ns=20 * SECOND, count=40)
    with running(oracle, "null", "--report") as server:
        traffic = drive(server, load, AskedOf(scenario), warmup_ns=0)
    assert server.seen is not None
    assert server.seen.targets == {"talk": 40, "a": 40, "aa": 40}
    assert traffic.counts.outcomes.ok == traffic.counts.due == 120
    assert traffic.journeys is not None
    assert traffic.journeys.completed == 40
    streams = [request.streams for request in traffic.requests]
    assert [part.counted if part else 0 for part in streams] == [40, 40, 0]
    known = StreamTraffic.merged(part for part in streams if part)
    assert known is not None
    assert known.first_event.count == 80
    assert sum(part.count for part in (traffic.all_upgrades,) if part) == 80


TALK = """\
journey:
  steps:
    - {name: ask, websocket: {path: /ask, send: {json: {say: hello}}, receive: {until: 1}}, take: {it: {text: /say}}}
    - {name: again, get: "/{take:it}"}
"""


def test_a_load_checks_and_reports_turns_on_websockets(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    (tmp_path / "talk.yaml").write_text(TALK)
    (tmp_path / "mute.yaml").write_text(TALK.replace("text: /say", "text: /other"))
    with running(oracle, "null") as server:
        url = f"http://127.0.0.1:{server.endpoint.port}"
        args = ["-c", "3", "-d", "500ms", "--warmup", "0s"]
        done = redline("load", url, "--requests", "talk.yaml", *args, "--json").measured()
        mute = redline("load", url, "--requests", "mute.yaml", *args)
    ask, again = done.json["requests"]
    assert (ask["request"], again["request"]) == ("ask", "again")
    assert ask["streams"]["begun"] == ask["streams"]["events_of_begun"] > 0
    assert done.json["journeys"]["completed"] > 0
    assert done.json["journeys"]["abandoned"] == {}
    mute.refused(1, 'step `ask`, WebSocket /ask: unexpected body: none of 1 messages had a text at "/other" for `it`')
