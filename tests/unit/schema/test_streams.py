"""Streams of events in suites: what is read, and what is refused by name."""

from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.model import Stream
from redline.schema.stream import read_stream
from redline.suite import Catalogue, load_suite

SUITE = """\
servers: [{name: own, url: "http://127.0.0.1:8099"}]
scenarios: [{name: chat, requests: [{get: /}, {get: /events, stream: {events: sse, until: 20, stall: 2s}}]}]
loads: {users: {closed: {users: 2}, for: 2s}}
"""
DEEP = SUITE.replace("users: 2}", "users: 2, depth: 4}")


def read(folder: Path, text: str) -> Stream | None:
    (folder / "suite.yaml").write_text(text)
    return load_suite(folder / "suite.yaml", Catalogue()).scenarios[0].requests[1].stream


def test_a_stream_of_a_suite_is_that_of_the_flag(tmp_path: Path) -> None:
    assert read(tmp_path, SUITE) == Stream(events="sse", until=20, stall_ns=2_000_000_000)
    assert read_stream("sse until 20 stall 2s") == {"events": "sse", "until": 20, "stall": "2s"}


def test_a_stream_may_have_a_schedule(tmp_path: Path) -> None:
    read_it = read(tmp_path, SUITE.replace("stall: 2s", "every: 100ms"))
    assert read_it is not None
    assert read_it.for_engine()["every_ns"] == 100_000_000
    assert read_stream("messages until 5 every 100ms") == {"events": "messages", "until": 5, "every": "100ms"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (DEEP, r"users.closed.depth: GET /events is a conversation, .* pipelined behind it would wait"),
        (DEEP.replace("closed: {users: 2", "open: {rate: 9"), "users.open.depth: GET /events is a conv"),
        (f"{SUITE}driver: loop\n", r"driver: GET /events is a conversation, whose messages only redline-engine"),
        (SUITE.replace("get: /events", "head: /events"), "an answer to HEAD has no events"),
        (SUITE.replace("until: 20", "until: 0"), "until"),
        (
            SUITE.replace("until: 20", "until: 20, message: {regex: '(open'}"),
            r"`\(open` is no regular expression: miss",
        ),
        (
            SUITE.replace("until: 20", "until: 20, message: {regex: '(?=x)'}"),
            "is not in the regular expressions of the",
        ),
        (SUITE.replace("until: 20", "until: 20, message: {regex: null}"), "exactly one of `json`, `event`, `regex`"),
        (SUITE.replace("until: 20", "until: 20, message: {event: ''}"), "exactly one of `json`, `event`, `regex`"),
        (SUITE.replace("until: 20", "until: 20, message: {json: []}"), "exactly one of `json`, `event`, `regex`"),
    ],
)
def test_what_streams_cannot_do_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        read(tmp_path, text)


def test_http2_carries_requests_beside_a_stream(tmp_path: Path) -> None:
    assert read(tmp_path, DEEP.replace('8099"', '8099", http: 2')) is not None
