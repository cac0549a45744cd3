"""Requests and their expected answers: Scenario, Request, Expected."""

import hashlib
import random
from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from redline.model.base import Frozen, omitted_if_default
from redline.model.journey import Journey
from redline.model.sign_in import SignIn
from redline.model.streams import Stream
from redline.model.template import is_traced, picked, sent
from redline.model.websocket import WebSocket

POINTER = r"^(/([^~]|~[01])*)?$"
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


FinalStatus = Annotated[int, Field(ge=200, le=599)]


class Body(Frozen):
    """A request body: `text`, `raw` bytes (base64 in JSON), or `size` bytes made from `seed`.

    `escape` says how the values of a text's placeholders are written: within strings of JSON, or as in a form.
    `chunked`: it is sent without its length, as a single chunk, or in chunks of so many bytes.
    """

    text: str | None = None
    escape: Literal["json", "form"] | None = omitted_if_default(None)
    raw: bytes | None = None
    size: int | None = Field(default=None, ge=0, le=64 * 1024 * 1024)
    fill: Literal["bytes", "text"] = "bytes"
    seed: int = 1
    chunked: bool | Annotated[int, Field(strict=True, ge=1)] = omitted_if_default(default=False)

    @model_validator(mode="after")
    def _one_source(self) -> "Body":
        if sum(source is not None for source in (self.text, self.raw, self.size)) != 1:
            raise ValueError("give one of `text`, `raw` and `size`")
        return self

    def in_chunks(self, *, of: bool | int) -> "Body":
        """The same body, sent in chunks of so many bytes; `True`: in a single chunk."""
        return self.model_copy(update={"chunked": of})

    def content(self) -> bytes:
        """The bytes to send, with placeholders as they are written; the same seed gives the same bytes."""
        if self.text is not None:
            return sent(self.text).encode()
        if self.raw is not None:
            return self.raw
        rng = random.Random(self.seed)  # noqa: S311 - reproducible filler, not a secret
        size = self.size or 0
        if self.fill == "bytes":
            return rng.randbytes(size)
        letters = b"abcdefghijklmnopqrstuvwxyz0123456789"
        return bytes(letters[byte % len(letters)] for byte in rng.randbytes(size))


class Expected(Frozen):
    """The expected answer. `json_values` are the values at JSON Pointers (RFC 6901) of its body.

    `empty`: nothing stands there, null, or an empty text, list or object. `no_errors`: a body of JSON has no `errors`
    at its top that are not empty, as the answer to a GraphQL request. Everything is compared before the load. During
    the load, `under_load` selects the checks: the status; or also what stands in JSON, and the body's length or its
    SHA-256.
    """

    status: FinalStatus | Annotated[tuple[FinalStatus, ...], Field(min_length=2)] = 200
    body: str | None = None
    length: int | None = Field(default=None, ge=0)
    sha256: str | None = omitted_if_default(None, "of a body whose text is not given", pattern=r"^[0-9a-f]{64}$")
    json_values: dict[str, JsonValue] = omitted_if_default({})
    json_stands: dict[str, Literal["present", "absent", "empty"]] = omitted_if_default(
        {}, "what stands at JSON Pointers"
    )
    no_errors: bool = omitted_if_default(default=False)
    under_load: Literal["status", "length", "hash"] = "length"

    @property
    def looks_into_json(self) -> bool:
        """Whether values in the body are compared."""
        return bool(self.json_values or self.json_stands)

    @property
    def statuses(self) -> tuple[int, ...]:
        """The right statuses."""
        return self.status if isinstance(self.status, tuple) else (self.status,)

    @property
    def body_length(self) -> int | None:
        """Bytes of the expected body, or None if any length is right."""
        return len(self.body.encode()) if self.body is not None else self.length

    @property
    def body_sha256(self) -> str | None:
        """Hex SHA-256 of the expected body, or None if its bytes are not known."""
        return hashlib.sha256(self.body.encode()).hexdigest() if self.body is not None else self.sha256


class Timestamp(Frozen):
    """The place of the server's clock, as the time since 1970, in an answer: a JSON Pointer, or the entire body."""

    pointer: str | None = Field(default=None, pattern=POINTER)
    unit: Literal["s", "ms", "us", "ns"]

    @property
    def resolution_ns(self) -> int:
        """The resolution of its unit."""
        return _UNIT_NS[self.unit]


class Request(Frozen):
    """An HTTP request and its expected answer.

    Path, header values and a text body may hold placeholders (see `template`). A header is sent once for each value.
    """

    weight: int = omitted_if_default(1, "among the requests of the scenario", ge=1)
    name: str = omitted_if_default("", "in results, where the scenario has several requests")
    method: str = Field(default="GET", pattern=r"^[A-Z]+$")
    path: str = Field(default="/", pattern=r"^(/|\{take:)[!-~]*$")
    headers: dict[str, str | tuple[str, ...]] = {}
    auth: SignIn | None = omitted_if_default(None, "how it signs in, unless a header says it")
    body: Body | None = None
    expect: Expected = Expected()
    timestamp: Timestamp | None = omitted_if_default(None)
    stream: Stream | None = omitted_if_default(None, "of an answer that is a stream of events")
    websocket: WebSocket | None = omitted_if_default(None, "on which its body is sent, as a message")
    expect_continue_ns: int | None = omitted_if_default(None, "how long the body waits for an answer 100", ge=1)

    @property
    def checked_entirely(self) -> "Request":
        """The same request, with a check of the answer's whole body."""
        expect = self.expect.model_copy(update={"under_load": "hash"})
        return self.model_copy(update={"expect": expect})

    @property
    def checked_for_status(self) -> "Request":
        """The same request, with a check of the answer's status alone."""
        expect = self.expect.model_copy(update={"under_load": "status"})
        return self.model_copy(update={"expect": expect, "timestamp": None})

    @property
    def header_lines(self) -> tuple[tuple[str, str], ...]:
        """Names and values of all header lines."""
        return tuple(
            (name, value)
            for name, values in self.headers.items()
            for value in ((values,) if isinstance(values, str) else values)
        )

    @property
    def line(self) -> str:
        """What is asked, and where: `GET /items`, `WebSocket /chat`."""
        return f"{self.method if self.websocket is None else 'WebSocket'} {self.path}"

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that may contain placeholders."""
        body = self.body.text if self.body and self.body.text is not None else ""
        return (self.path, *(value for _, value in self.header_lines), body)

    @property
    def is_traced(self) -> bool:
        """Whether it sends a trace context."""
        return any(map(is_traced, self.texts))


class Scenario(Frozen):
    """A named scenario: a request, several that are drawn by weight, or those of the steps of a `journey`.

    `picks` are the lines of the files in `{pick:name}`, `requires` the server options that it needs.
    """

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    about: str = ""
    request: Request
    others: tuple[Request, ...] = omitted_if_default((), "all requests but the first")
    picks: dict[str, tuple[str, ...]] = omitted_if_default({})
    journey: Journey | None = omitted_if_default(None)
    requires: dict[str, str | int | bool] = {}
    against: str | None = omitted_if_default(None, "the scenario to compare it with, on the same server")

    @model_validator(mode="after")
    def _picks_are_known(self) -> "Scenario":
        named = {name for request in self.requests for text in request.texts for name in picked(text)}
        for name in sorted(named):
            if not self.picks.get(name):
                raise ValueError(f"there is nothing to pick from {name}")
        if self.journey is not None and len(self.requests) != len(self.journey.once) + len(self.journey.steps):
            raise ValueError("a journey has a request for each of its steps")
        return self

    @property
    def requests(self) -> tuple[Request, ...]:
        """All requests."""
        return (self.request, *self.others)

    @property
    def is_traced(self) -> bool:
        """Whether a request sends a trace context."""
        return any(request.is_traced for request in self.requests)

    @property
    def writes(self) -> tuple[str, ...]:
        """The labels of the requests that may change a server: all but those with a safe method (RFC 9110, 9.2.1)."""
        labelled = zip(self.labels, self.requests, strict=True)
        return tuple(
            dict.fromkeys(
                label for label, request in labelled if request.method not in _SAFE_METHODS or request.websocket
            )
        )

    @property
    def unmeasured(self) -> int:
        """How many of the requests, the first ones, are sent before the measurement: those of `once` of a journey.

        Those that a user sends again are measured.
        """
        return 0 if self.journey is None else len(self.journey.once)

    @property
    def takes_rows_once(self) -> bool:
        """Whether it is a journey that takes no row twice, so that another load would need others."""
        return self.journey is not None and self.journey.rows is not None and self.journey.rows.use == "unique"

    @property
    def several_labels(self) -> tuple[str, ...]:
        """The labels of several requests; empty for a single request, whose measurements are the scenario's."""
        return self.labels if self.others else ()

    def asked(self) -> dict[str, JsonValue]:
        """What is asked, as JSON: all but the names of its requests, and the scenario that it is compared with."""
        return self.model_dump(
            mode="json", exclude={"against": True, "request": {"name"}, "others": {"__all__": {"name"}}}
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """What results call each request: its name, else `GET /items`; with a number where that is not unique."""
        plain = [request.name or request.line for request in self.requests]
        earlier = [plain[: at + 1].count(label) for at, label in enumerate(plain)]
        return tuple(label if nth == 1 else f"{label} #{nth}" for label, nth in zip(plain, earlier, strict=True))

    def ends_connections(self, http: str) -> bool:
        """Whether a request ends before its stream, and with it its connection: by HTTP/1.1, and of a WebSocket."""
        return any(
            request.stream is not None and request.stream.is_bounded and (http == "1.1" or request.websocket)
            for request in self.requests
        )

    def closes_connections(self, http: str) -> bool:
        """Whether a request asks the server to close its connection, which HTTP/1.1 alone has."""
        lines = (line for request in self.requests if request.websocket is None for line in request.header_lines)
        return http == "1.1" and any((name.lower(), value) == ("connection", "close") for name, value in lines)

    @property
    def longest_stream_ns(self) -> int:
        """The longest time that a stream is followed: by the clock, or for messages on a schedule; 0 if not known."""
        return max((request.stream.followed_ns for request in self.requests if request.stream), default=0)

    @property
    def has_open_streams(self) -> bool:
        """Whether a stream ends by itself or after so many messages, however long that takes."""
        return any(request.stream is not None and request.stream.for_ns is None for request in self.requests)

    @property
    def counts_messages(self) -> bool:
        """Whether a stream ends after so many messages alone, however long they take."""
        streams = (request.stream for request in self.requests if request.stream is not None)
        return any(stream.until is not None and stream.for_ns is None for stream in streams)

    @property
    def statuses(self) -> frozenset[int]:
        """The expected statuses of all requests."""
        return frozenset(status for request in self.requests for status in request.expect.statuses)

    @property
    def clock_resolution_ns(self) -> int | None:
        """The coarsest resolution of the timestamps in answers; None without timestamps."""
        resolutions = [request.timestamp.resolution_ns for request in self.requests if request.timestamp]
        return max(resolutions, default=None)
