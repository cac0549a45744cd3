"""The schema of an answer that is a stream of events."""

import re
from typing import Annotated, Literal

from pydantic import Field

from redline.errors import WrongValueError
from redline.model import Stream
from redline.quantities import clip
from redline.schema.types import BY_FORM, MAPPING, PLAIN, Schema, StreamTime

Kind = Literal["sse", "ndjson", "chunks"]


class StallSchema(Schema):
    """A time without an event that is too long, and whether it ends the request."""

    after: StreamTime = Field(description="a longer time without an event is a stall", examples=["2s"])
    fails: bool = Field(default=False, description="whether a stall ends the request as a timeout")


StallItem = Annotated[Annotated[StreamTime, PLAIN] | Annotated[StallSchema, MAPPING], BY_FORM]


class StreamSchema(Schema):
    """What the events of an answer are, and how long they are followed: to the end of the answer by default."""

    events: Kind = Field(
        description="sse: server-sent events with data; ndjson: lines; chunks: of HTTP/1.1, or DATA frames of HTTP/2",
        examples=["sse"],
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


StreamItem = Annotated[Annotated[Kind, PLAIN] | Annotated[StreamSchema, MAPPING], BY_FORM]


def stream_of(written: Kind | StreamSchema | None) -> Stream | None:
    """The value of the model."""
    if not isinstance(written, StreamSchema):
        return written and Stream(events=written)
    stall = written.stall
    after, fails = (stall.after, stall.fails) if isinstance(stall, StallSchema) else (stall, False)
    return Stream(events=written.events, until=written.until, for_ns=written.lasts, stall_ns=after, stall_fails=fails)


_WORDS = re.compile(r"(?P<events>sse|ndjson|chunks)(?P<rest>(\s+(until|for|stall|stall-fails)\s+\S+)*)\s*")


def read_stream(text: str) -> dict[str, object]:
    """Read `sse until 20 for 10s stall 2s` as what a suite has under `stream`. Raises WrongValueError.

    `stall-fails 2s` in place of `stall 2s` is a stall that ends the request.
    """
    match = _WORDS.fullmatch(text.strip())
    if not match:
        hint = "write `sse`, `ndjson` or `chunks`, and then `until 20`, `for 10s`, `stall 2s` or `stall-fails 2s`"
        raise WrongValueError(f"`{clip(text)}` is not a stream of events", hint)
    words = match["rest"].split()
    read: dict[str, object] = {"events": match["events"]}
    for key, value in zip(words[::2], words[1::2], strict=True):
        name = "stall" if key == "stall-fails" else key
        if name in read:
            raise WrongValueError(f"`{name}` is given twice", "leave out one of them")
        read[name] = {"after": value, "fails": True} if key == "stall-fails" else value
    if "until" in read:
        if not re.fullmatch(r"[0-9]{1,15}", str(read["until"])):
            raise WrongValueError(f"`{clip(str(read['until']))}` is not a number of events", "write it like `until 20`")
        read["until"] = int(str(read["until"]))
    return read
