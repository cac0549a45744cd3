"""What the answers before the load say about those under load."""

import pytest

from redline.driving.errors_in_json import ErrorsWatch
from redline.model import Request
from redline.model.streams import Stream
from tests.fakes.checks import checked

OPENAI = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: [DONE]\n\n'
ANTHROPIC = b'event: message_start\ndata: {"type":"message_start"}\n\n'


def unread(body: bytes, kind: str, request: Request | None = None) -> tuple[str, ...]:
    watch = ErrorsWatch()
    watch.look(0, request or Request(), checked(body, kind=kind), "GET /feed")
    return watch.unread


@pytest.mark.parametrize(
    ("body", "kind", "events"),
    [
        (b"data: 1\n\n", "text/event-stream", "sse"),
        (OPENAI, "text/event-stream; charset=utf-8", "openai"),
        (ANTHROPIC, "Text/Event-Stream", "anthropic"),
        (b'{"choices": 1}\n', "application/x-ndjson", "ndjson"),
    ],
)
def test_messages_that_are_taken_as_one_answer_are_named_with_what_times_them(
    body: bytes, kind: str, events: str
) -> None:
    (said,) = unread(body, kind)
    assert said.startswith("GET /feed: messages (")
    assert f"`events: {events}`" in said


def test_nothing_is_said_of_messages_that_are_timed_or_of_other_answers() -> None:
    assert unread(OPENAI, "text/event-stream", Request(stream=Stream(events="openai"))) == ()
    assert unread(b"data: 1", "text/plain") == ()


def test_long_json_is_named_and_short_json_without_errors_is_known() -> None:
    (said,) = unread(b'{"a": "' + b"x" * (64 << 10) + b'"}', "application/json")
    assert "`errors` are not looked for" in said
    watch = ErrorsWatch()
    for at, body in enumerate((b'{"a": 1}', b'{"errors": [1]}', b'{"errors": []}', b"no")):
        watch.look(at, Request(), checked(body, kind="application/json"), "GET /a")
    watch.look(0, Request(), checked(b'{"errors": [1]}'), "GET /a")
    assert watch.without_errors == {2}
