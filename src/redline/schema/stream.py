"""The schema of a conversation: an answer that is a stream of messages."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from redline.errors import WrongValueError
from redline.model import Stream
from redline.model.streams import Counting, EventKind, Good, MessageAmount
from redline.quantities import clip, did_you_mean, parse_duration
from redline.schema.types import BY_FORM, LIST, MAPPING, PLAIN, Schema, StreamTime

Kind = Literal["sse", "ndjson", "chunks", "openai", "anthropic"]
_NOT_IN_RUST = re.compile(r"\\[^1-9]|(\(\?(?:<?[=!]|>)|\\[1-9])")  # look-around, atomic groups, back-references
_WRONG_IN_BOTH = (
    *("missing )", "unbalanced parenthesis", "unterminated character set", "nothing to repeat", "bad character range"),
    *("bad escape (end of pattern)", "min repeat greater than max repeat"),
)
"""How Python begins what it says of patterns that are wrong in Rust too."""
_POINTER = re.compile(r"(/([^~/]|~[01])*)*")
_GOOD = {
    "first-message": "first_message_ns",
    "gap": "gap_ns",
    "per-message": "per_message_ns",
    "response": "response_ns",
}
_GOOD_HINT = "write it like `first-message < 500ms, gap < 60ms, per-message < 30ms, response < 20s`"


def _pointer(text: str) -> str:
    if not _POINTER.fullmatch(text):
        raise WrongValueError(f"`{clip(text)}` is no JSON Pointer", "write it like `/choices/0/delta/content`")
    return text


def _rust_regex(pattern: str) -> str:
    """Check that a regular expression is one, and has nothing that the engine's, whose time is bounded, leave out."""
    if missing := next((match[1] for match in _NOT_IN_RUST.finditer(pattern) if match[1]), None):
        hint = 'write what stands around the value, and a group around it: `name="t" value="([^"]+)"`'
        raise WrongValueError(f"`{missing}` is not in the regular expressions of the engine", hint)
    try:
        re.compile(pattern)
    except re.error as error:  # Rust's may have more than Python's, but not these
        if error.msg.startswith(_WRONG_IN_BOTH):
            hint = "write a backslash before characters that are meant literally"
            raise WrongValueError(f"`{clip(pattern)}` is no regular expression: {error.msg}", hint) from None
    return pattern


Pointer = Annotated[str, AfterValidator(_pointer)]
RustRegex = Annotated[str, AfterValidator(_rust_regex)]
Pointers = Annotated[Annotated[Pointer, PLAIN] | Annotated[list[Pointer], LIST], BY_FORM]


class MessageSchema(Schema):
    """Which events are messages that count; one of the keys."""

    json_at: Pointers | None = Field(
        default=None,
        alias="json",
        description="those with a value at one of these JSON Pointers that is not null or empty",
        examples=["/choices/0/delta/content"],
    )
    event: Annotated[Annotated[str, PLAIN] | Annotated[list[str], LIST], BY_FORM] | None = Field(
        default=None, description="server-sent events of one of these types", examples=["token"]
    )
    regex: RustRegex | None = Field(default=None, description="those in which it is found", examples=['"token":'])

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        _check_one(self, ("json", "event", "regex"))
        return self


class AmountSchema(Schema):
    """How much messages hold; one of the keys."""

    each: Pointers | None = Field(
        default=None, alias="json", description="the number there in each message", examples=["/tokens"]
    )
    total: Pointers | None = Field(
        default=None,
        description="the largest number there in any message: how much the conversation held so far",
        examples=["/usage/completion_tokens"],
    )

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        _check_one(self, ("json", "total"))
        return self


def _check_one(written: Schema, keys: Sequence[str]) -> None:
    """Check that exactly one of the keys is written. Raises WrongValueError."""
    values = [getattr(written, name) for name in written.model_fields_set]
    if len(values) != 1 or not values[0]:
        raise WrongValueError(f"exactly one of {', '.join(f'`{key}`' for key in keys)} is needed", "write one of them")


def read_good(text: str) -> Good:
    """Read `first-message < 500ms, gap < 60ms`. Raises WrongValueError."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, sign, limit = part.partition("<")
        key = _GOOD.get(name.strip())
        if not sign or key is None:
            hint = did_you_mean(name.strip(), tuple(_GOOD)) or _GOOD_HINT
            raise WrongValueError(f"`{clip(part.strip())}` says of no conversation that it is good", hint)
        if key in found:
            raise WrongValueError(f"`{name.strip()}` has more than one limit", "keep the stricter one")
        found[key] = parse_duration(limit.strip())
        if not found[key]:
            raise WrongValueError(f"`{clip(part.strip())}` can never be met", _GOOD_HINT)
    return Good(**found)


def _good(text: str) -> str:
    read_good(text)
    return text


class StallSchema(Schema):
    """A time without an event that is too long, and whether it ends the request."""

    after: StreamTime = Field(description="a longer time without an event is a stall", examples=["2s"])
    fails: bool = Field(default=False, description="whether a stall ends the request as a timeout")


StallItem = Annotated[Annotated[StreamTime, PLAIN] | Annotated[StallSchema, MAPPING], BY_FORM]


class FollowedSchema(Schema):
    """Which messages of a conversation count, and how long it is followed."""

    message: Annotated[MessageSchema, MAPPING] | None = Field(
        default=None, description="which events are messages that count; the others are counted apart"
    )
    amount: Annotated[Annotated[Literal["bytes"], PLAIN] | Annotated[AmountSchema, MAPPING], BY_FORM] | None = Field(
        default=None, description="how much messages hold: `bytes`, or a number in them; default: one each"
    )
    good: Annotated[str, AfterValidator(_good)] | None = Field(
        default=None,
        description="what makes a conversation good: the objective `goodput > 95%` is about the share of these",
        examples=["first-message < 500ms, gap < 60ms"],
    )
    until: int | None = Field(
        default=None, ge=1, description="the request is complete after so many events", examples=[20]
    )
    lasts: StreamTime | None = Field(
        default=None, alias="for", description="the request is complete so long after the head", examples=["10s"]
    )
    stall: StallItem | None = Field(
        default=None,
        description="a longer time without an event is counted; {after: 2s, fails: true}: and ends the request",
        examples=["2s"],
    )
    every: StreamTime | None = Field(
        default=None,
        description="the schedule of the server, which sends a message each time: how far off they are is its jitter",
        examples=["100ms"],
    )

    def stream(self, events: EventKind) -> Stream:
        """The value of the model."""
        stall = self.stall
        after, fails = (stall.after, stall.fails) if isinstance(stall, StallSchema) else (stall, False)
        return Stream(
            events=events,
            message=self.message and _counting(self.message),
            amount=None if self.amount is None else _amount(self.amount),
            good=None if self.good is None else read_good(self.good),
            until=self.until,
            for_ns=self.lasts,
            stall_ns=after,
            stall_fails=fails,
            every_ns=self.every,
        )


class StreamSchema(FollowedSchema):
    """What the events of an answer are, and how long they are followed: to the end of the answer by default."""

    events: Kind = Field(
        description="sse: server-sent events with data; ndjson: lines; chunks: of HTTP/1.1, or DATA frames of HTTP/2; "
        "openai, anthropic: the streams of these interfaces, whose messages and tokens are known",
        examples=["sse"],
    )


StreamItem = Annotated[Annotated[Kind, PLAIN] | Annotated[StreamSchema, MAPPING], BY_FORM]


def stream_of(written: Kind | StreamSchema | None) -> Stream | None:
    """The value of the model."""
    if not isinstance(written, StreamSchema):
        return written and Stream(events=written)
    return written.stream(written.events)


def _counting(written: MessageSchema) -> Counting:
    return Counting(pointers=_listed(written.json_at), types=_listed(written.event), regex=written.regex)


def _amount(written: Literal["bytes"] | AmountSchema) -> MessageAmount:
    if not isinstance(written, AmountSchema):
        return MessageAmount(is_bytes=True)
    return MessageAmount(each=_listed(written.each), total=_listed(written.total))


def _listed(written: str | list[str] | None) -> tuple[str, ...]:
    return () if written is None else (written,) if isinstance(written, str) else tuple(written)


_KEYS = "until|for|every|stall|stall-fails|message|amount|good|timestamp"
_WORDS = re.compile(rf"(?P<events>sse|ndjson|chunks|openai|anthropic|messages)(?P<rest>(\s+({_KEYS})\s+\S+)*)\s*")


def _word(key: str, value: str) -> object:
    """What a suite has for a key and its word."""
    if key == "stall-fails":
        return {"after": value, "fails": True}
    if key == "message":
        return {"json" if value.startswith("/") else "event": value}
    if key == "amount" and value != "bytes":
        return {"json": value}
    if key == "timestamp":
        pointer, _, unit = value.rpartition(":")
        return {"pointer": pointer, "unit": unit}
    return value


def read_stream(text: str) -> dict[str, object]:
    """Read `sse until 20 for 10s stall 2s` as what a suite has under `stream`. Raises WrongValueError.

    `stall-fails 2s` in place of `stall 2s` is a stall that ends the request. `message /content` has a JSON Pointer, or
    the type of an event, `amount /tokens` a pointer or `bytes`, `good gap<60ms,response<20s` no spaces. `timestamp
    /at:ms` is that of the request or the WebSocket: a pointer or `body`, and the unit. `messages` are those of a
    WebSocket to which a user listens.
    """
    match = _WORDS.fullmatch(text.strip())
    if not match:
        hint = (
            "write `sse`, `ndjson`, `chunks`, `openai`, `anthropic` or, of a WebSocket, `messages`, and then "
            "`until 20`, `for 10s`, `every 100ms`, `stall 2s`, `stall-fails 2s`, `message /content`, `amount /tokens`, "
            "`good gap<60ms` or `timestamp /at:ms`"
        )
        raise WrongValueError(f"`{clip(text)}` is not a stream of events", hint)
    words = match["rest"].split()
    read: dict[str, object] = {"events": match["events"]}
    for key, value in zip(words[::2], words[1::2], strict=True):
        name = "stall" if key == "stall-fails" else key
        if name in read:
            raise WrongValueError(f"`{name}` is given twice", "leave out one of them")
        read[name] = _word(key, value)
    if "until" in read:
        if not re.fullmatch(r"[0-9]{1,15}", str(read["until"])):
            raise WrongValueError(f"`{clip(str(read['until']))}` is not a number of events", "write it like `until 20`")
        read["until"] = int(str(read["until"]))
    return read
