"""Which messages of a conversation count, as suites and flags say it."""

import pytest
from pydantic import ValidationError

from redline.errors import WrongValueError
from redline.model import Stream
from redline.model.streams import SHAPES, Counting, Good, MessageAmount
from redline.schema.stream import StreamSchema, read_good, read_stream, stream_of


def made(**written: object) -> Stream | None:
    return stream_of(StreamSchema.model_validate({"events": "sse", **written}))


@pytest.mark.parametrize(
    ("written", "rules"),
    [
        ({"message": {"json": "/a/0"}}, {"message": {"json": ["/a/0"]}}),
        ({"message": {"json": ["/a", "/b"]}}, {"message": {"json": ["/a", "/b"]}}),
        ({"message": {"event": "token"}}, {"message": {"event": ["token"]}}),
        ({"message": {"regex": "x+"}}, {"message": {"regex": "x+"}}),
        ({"amount": "bytes"}, {"amount": {"bytes": True}}),
        ({"amount": {"json": "/n"}}, {"amount": {"each": ["/n"]}}),
        ({"amount": {"total": "/n"}}, {"amount": {"total": ["/n"]}}),
        (
            {"good": "first-message < 500ms, gap<60ms,response < 2s"},
            {
                "good": {
                    "first_message_ns": 500_000_000,
                    "gap_ns": 60_000_000,
                    "response_ns": 2_000_000_000,
                }
            },
        ),
        ({"events": "anthropic"}, {"last": {"data": [], "event": ["message_stop"]}}),
    ],
)
def test_the_engine_gets_what_was_written(written: dict[str, object], rules: dict[str, object]) -> None:
    stream = made(**written)
    assert stream
    told = stream.for_engine()
    assert told["events"] == "sse"
    assert {key: told[key] for key in rules} == rules
    assert Stream.model_validate_json(stream.model_dump_json()) == stream


def test_a_shape_knows_its_messages_unless_others_are_named() -> None:
    known = made(events="openai")
    assert known
    assert known.for_engine()["message"] == SHAPES["openai"].counting.for_engine()
    assert known.unit == "tokens"
    own = made(events="openai", message={"json": "/x"}, amount="bytes")
    assert own
    assert (own.for_engine()["message"], own.unit) == ({"json": ["/x"]}, "bytes")
    assert own.for_engine()["last"] == SHAPES["openai"].last


def test_a_flag_says_the_same() -> None:
    text = "openai message /x amount /n good first-message<500ms,gap<60ms until 9"
    stream = stream_of(StreamSchema.model_validate(read_stream(text)))
    assert stream == Stream(
        events="openai",
        message=Counting(pointers=("/x",)),
        amount=MessageAmount(each=("/n",)),
        good=Good(first_message_ns=500_000_000, gap_ns=60_000_000),
        until=9,
    )
    assert read_stream("sse message token amount bytes") == {
        "events": "sse",
        "message": {"event": "token"},
        "amount": "bytes",
    }


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({"message": {"json": "x"}}, "`x` is no JSON Pointer"),
        ({"message": {"json": "/a~2"}}, "is no JSON Pointer"),
        ({"message": {}}, "exactly one of `json`, `event`, `regex` is needed"),
        ({"message": {"json": "/a", "event": "b"}}, "exactly one of"),
        ({"amount": {"json": "/a", "total": "/b"}}, "exactly one of `json`, `total`"),
        ({"amount": "tokens"}, "amount"),
        ({"good": "p99 < 1s"}, "says of no conversation that it is good"),
        ({"good": "gap < 0ms"}, "can never be met"),
        ({"good": "gap < 1s, gap < 2s"}, "`gap` has more than one limit"),
        ({"good": "gap > 1s"}, "says of no conversation"),
    ],
)
def test_what_says_nothing_is_refused(written: dict[str, object], says: str) -> None:
    with pytest.raises((ValidationError, WrongValueError), match=says):
        made(**written)


def test_a_near_miss_is_named() -> None:
    with pytest.raises(WrongValueError) as wrong:
        read_good("first-mesage < 1s")
    assert "first-message" in str(wrong.value.hint)
