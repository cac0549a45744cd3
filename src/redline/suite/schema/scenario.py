"""The schema of a scenario, in a suite or in the catalogue's `scenarios.yaml`."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from redline.errors import UsageError, WrongValueError
from redline.model import Body, Expected, Request, Scenario, Timestamp
from redline.model.exchange import POINTER
from redline.model.template import malformed
from redline.quantities import clip
from redline.suite.schema.stream import StreamItem, stream_of
from redline.suite.schema.types import BY_FORM, LIST, MAPPING, PLAIN, Scalar, Schema, Size

NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
_KEYS = (*METHODS, "method")
BODIES = "bodies"
"""The key in a validation's context of the function that reads a body from a file."""
_LARGEST_BODY = 64 * 1024 * 1024
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token, RFC 9110 section 5.6.2
_FRAMING_HEADERS = {"content-length", "transfer-encoding"}
_CONNECTION_HEADERS = {"connection", "keep-alive", "proxy-connection", "te", "upgrade"}


def http2_forbids(name: str, value: object) -> bool:
    """Whether HTTP/2 forbids a header (RFC 9113, section 8.2.2)."""
    return name.lower() in _CONNECTION_HEADERS and (name.lower(), value) != ("te", "trailers")


def check_placeholders(value: str) -> str:
    """The text, if its placeholders can be filled in. Raises WrongValueError."""
    wrong = malformed(value)
    if wrong is not None:
        raise WrongValueError(
            f"`{clip(wrong)}` cannot be filled in",
            "write {seq}, {rand:1..100} or {pick:file.txt}, or double the braces",
        )
    return value


def _path(value: str) -> str:
    if not value.startswith("/"):
        meant = re.sub(r"^https?://[^/]*/?|^", "/", value, count=1, flags=re.IGNORECASE)
        raise WrongValueError(f"`{clip(value)}` is not a path", f"write `{clip(meant)}`")
    if not re.fullmatch(r"[!-~]+", value) or "#" in value:
        raise WrongValueError("a path has only visible ASCII characters, and no `#`", "percent-encode other characters")
    return check_placeholders(value)


def check_header_name(name: str) -> str:
    """Check the name of a request's header. Raises WrongValueError."""
    if not _HEADER_NAME.fullmatch(name):
        raise WrongValueError(
            f"`{clip(name)}` is not a header name", "use letters, digits and - (RFC 9110, section 5.6.2)"
        )
    if name.lower() in _FRAMING_HEADERS:
        raise WrongValueError(f"the engine sets `{name}`", "remove it")
    return name


def _headers(headers: dict[str, object]) -> dict[str, object]:
    """Check that a request asks at most to close the connection, which is its last then."""
    for name, value in headers.items():
        if name.lower() == "connection" and value != "close":
            raise WrongValueError(f"the engine sets `{name}`", "remove it, or write `close`", field=name)
    return headers


def check_header_text(text: str) -> str:
    """Check a header's value, which may have placeholders. Raises WrongValueError."""
    if not re.fullmatch(r"[\t -~]*", text) or text != text.strip():
        raise WrongValueError("a header's value is one line of ASCII", "remove control characters and outer spaces")
    return check_placeholders(text)


HeaderText = Annotated[str, AfterValidator(check_header_text)]
HeaderTexts = Annotated[list[HeaderText], Field(min_length=1)]


HeaderItem = Annotated[Annotated[HeaderText, PLAIN] | Annotated[HeaderTexts, LIST], BY_FORM]
Headers = Annotated[dict[Annotated[str, AfterValidator(check_header_name)], HeaderItem], AfterValidator(_headers)]
PathText = Annotated[str, AfterValidator(_path), WithJsonSchema({"type": "string", "pattern": '^/[!"$-~]*$'})]


def _method(text: str) -> str:
    if not re.fullmatch(r"[A-Z]+", text):
        raise WrongValueError(f"`{clip(text)}` is not a method", "write capital letters alone, such as `PURGE`")
    if text == "CONNECT":
        raise WrongValueError("CONNECT opens a tunnel, which the engine does not support", "use another, such as `GET`")
    return text


class BodySchema(Schema):
    """A body from a file, or a generated body: its size, its kind of content, and the seed."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["size"]}, {"required": ["file"]}]})

    size: Size | None = Field(
        default=None, description="bytes, or a number with B, kB, KiB, MB or MiB", examples=[256, "5MB"]
    )
    file: str | None = Field(
        default=None,
        min_length=1,
        description="a file of up to 64 MiB, relative to the file that names it",
        examples=["a.json"],
    )
    fill: Literal["bytes", "text"] = Field(default="bytes", description="any bytes, or lower-case letters and digits")
    seed: int = Field(default=1, ge=0, description="the same seed gives the same bytes")

    _content: bytes | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _possible(self, info: ValidationInfo) -> "BodySchema":
        if (self.size is None) == (self.file is None):
            problem = "neither a size nor a file" if self.size is None else "both a size and a file"
            raise WrongValueError(f"this body has {problem}", "write `{size: 256}` or `{file: item.json}`")
        if self.size is not None and self.size > _LARGEST_BODY:
            raise WrongValueError("a body has at most 64 MiB", "send less")
        if self.file is not None:
            if not info.context:
                raise WrongValueError("a file cannot be read from here", "write the body as a text", field="file")
            try:
                self._content = info.context[BODIES](self.file)
            except UsageError as error:
                raise WrongValueError(error.message, error.hint, field="file") from None
        return self

    def made(self) -> Body:
        """The value of the model."""
        if self._content is not None:
            return Body(raw=self._content)
        return Body(size=self.size, fill=self.fill, seed=self.seed)


BodyText = Annotated[str, AfterValidator(check_placeholders)]
BodyItem = Annotated[Annotated[BodyText, PLAIN] | Annotated[BodySchema, MAPPING], BY_FORM]


class ExpectedSchema(Schema):
    """The expected answer."""

    status: int = Field(default=200, ge=200, le=599, description="the final status code, 200 to 599")
    body: str | None = Field(default=None, description="the entire body as text", examples=["path0"])
    length: int | None = Field(default=None, ge=0, description="length of the body in bytes, if its text is not given")
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="the body's SHA-256 in 64 lower-case hex digits, if its text is not given",
        examples=["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    )
    json_values: dict[Annotated[str, Field(pattern=POINTER)], JsonValue] = Field(
        default={}, alias="json", description="values by JSON Pointer (RFC 6901)", examples=[{"/total": 3}]
    )
    under_load: Literal["status", "length", "hash"] | None = Field(
        default=None,
        description="the check of every response during the load; default: length, or hash with `sha256`",
    )

    @model_validator(mode="after")
    def _knows_what_it_checks(self) -> "ExpectedSchema":
        if self.body is not None and self.length is not None and self.length != len(self.body.encode()):
            actual = len(self.body.encode())
            raise WrongValueError(f"`body` has {actual} bytes but `length` says {self.length}", "remove `length`")
        if self.body is not None and self.sha256 is not None:
            raise WrongValueError("`body` and `sha256` say the same thing", "remove `sha256`")
        if self.under_load == "hash" and self.body is None and self.sha256 is None:
            raise WrongValueError("a hash under load needs the `body`", "write the whole body or its `sha256`")
        if self.under_load == "length" and self.body is None and self.length is None:
            raise WrongValueError(
                "a length under load needs `body` or `length`", "write `body` or `length`, or check the status"
            )
        return self

    def expected(self) -> Expected:
        """The value of the model."""
        under_load = self.under_load or ("hash" if self.sha256 else "length")
        return Expected.model_validate({**self.model_dump(), "under_load": under_load})


class TimestampSchema(Schema):
    """Where the answer contains the server's clock, for one-way times."""

    pointer: Annotated[str, Field(pattern=r"^(body|/.*)$")] = Field(
        description="a JSON Pointer, or `body` if the entire body is the time", examples=["/now"]
    )
    unit: Literal["s", "ms", "us", "ns"] = Field(description="s, ms, us or ns since 1970", examples=["ms"])

    def timestamp(self) -> Timestamp:
        """The value of the model."""
        return Timestamp(pointer=None if self.pointer == "body" else self.pointer, unit=self.unit)


class RequestSchema(Schema):
    """A request: exactly one of get, head, post, put, patch, delete and options, and the expected answer."""

    get: PathText | None = Field(default=None, description="the path to GET", examples=["/path0"])
    head: PathText | None = Field(default=None, description="the path for HEAD")
    post: PathText | None = Field(default=None, description="the path to POST to", examples=["/bytes0"])
    put: PathText | None = Field(default=None, description="the path to PUT")
    patch: PathText | None = Field(default=None, description="the path to PATCH")
    delete: PathText | None = Field(default=None, description="the path to DELETE")
    options: PathText | None = Field(default=None, description="the path for OPTIONS")
    method: Annotated[str, AfterValidator(_method)] | None = Field(
        default=None, description="any other method, for `path`", examples=["PURGE"]
    )
    path: PathText | None = Field(default=None, description="the path for `method`", examples=["/items"])
    headers: Headers = Field(
        default={},
        description="headers by name; values are texts, or lists of texts",
        examples=[{"Accept": "text/plain"}],
    )
    body: BodyItem | None = Field(
        default=None, description="the request's body: a text, or {size: 256}", examples=[{"size": 256}]
    )
    expect: ExpectedSchema = Field(
        default=ExpectedSchema(),
        description="the expected answer; default: status 200 and any body",
        examples=[{"status": 200, "body": "path0"}],
    )
    timestamp: TimestampSchema | None = Field(
        default=None,
        description="where the answer contains the server's clock",
        examples=[{"pointer": "/now", "unit": "ms"}],
    )
    stream: StreamItem | None = Field(
        default=None,
        description="the answer is a stream of events: `sse`, `ndjson` or `chunks`, or a mapping",
        examples=[{"events": "sse", "until": 20}],
    )

    @property
    def methods(self) -> list[str]:
        """The keys of the methods that are given."""
        return [key for key in _KEYS if getattr(self, key) is not None]

    @model_validator(mode="after")
    def _method_with_path(self) -> Self:
        if (self.method is None) != (self.path is None):
            missing = "path" if self.path is None else "method"
            hint = "write both: `method: PURGE` and `path: /items`"
            raise WrongValueError(f"`method` and `path` belong together, and `{missing}` is missing", hint)
        return self

    @model_validator(mode="after")
    def _stream_is_only_counted(self) -> Self:
        expected = {"body", "length", "sha256", "json_values"} & self.expect.model_fields_set
        if self.stream is not None and (expected or self.timestamp is not None):
            what = "a timestamp" if not expected else f"`{'json' if 'json_values' in expected else min(expected)}`"
            problem = f"a stream of events is only counted, and has no {what} to check"
            raise WrongValueError(problem, "expect its status alone", field="stream")
        if self.stream is not None and (self.head is not None or self.method == "HEAD"):
            raise WrongValueError("an answer to HEAD has no events", "write `get`", field="stream")
        return self

    def request(self, weight: int = 1, name: str = "") -> Request:
        """The value of the model."""
        (key,) = self.methods
        method, path = (key.upper(), getattr(self, key)) if key in METHODS else (self.method, self.path)
        return Request(
            weight=weight,
            name=name,
            method=method or "",
            path=path or "",
            headers={name: tuple(value) if isinstance(value, list) else value for name, value in self.headers.items()},
            body=Body(text=self.body) if isinstance(self.body, str) else self.body and self.body.made(),
            expect=self.expect.expected(),
            timestamp=self.timestamp and self.timestamp.timestamp(),
            stream=stream_of(self.stream),
        )


class OneRequestSchema(RequestSchema):
    """A request with its method."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in _KEYS]})

    @model_validator(mode="after")
    def _one_method(self) -> Self:
        if len(self.methods) != 1:
            problem = f"has {' and '.join(self.methods)}" if self.methods else "has no method"
            raise WrongValueError(
                f"this request {problem}", f"write exactly one of {', '.join(METHODS)}: `get: /path0`"
            )
        return self


class WeightedSchema(OneRequestSchema):
    """A request with its weight."""

    weight: int = Field(
        default=1, ge=1, le=1_000_000, description="how often it is drawn, relative to the other weights"
    )


class MixedSchema(WeightedSchema):
    """A request of a scenario that has several."""

    name: Annotated[str, Field(pattern=NAME)] | None = Field(
        default=None, description="its name in results and objectives; default: `GET /items`", examples=["items"]
    )


class ScenarioSchema(RequestSchema):
    """A scenario: one request, or `requests` that are drawn by weight."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in (*_KEYS, "requests")]})

    about: str = Field(default="", description="one line for the reports")
    requests: list[MixedSchema] = Field(
        default=[],
        description="several requests instead of a single request",
        examples=[[{"weight": 3, "get": "/path0"}, {"get": "/path1"}]],
    )
    requires: dict[str, Scalar] = Field(
        default={}, description="server options that it needs", examples=[{"routes": 128}]
    )
    against: str | None = Field(
        default=None,
        description="the scenario to compare it with, on the same server",
        examples=["SimpleGet"],
    )

    @model_validator(mode="after")
    def _something_to_ask(self) -> "ScenarioSchema":
        named = [*self.methods, *(["requests"] if self.requests else [])]
        if len(named) != 1:
            problem = f"has {' and '.join(named)}" if named else "has no method"
            hint = f"write exactly one of {', '.join(METHODS)}: `get: /path0`; or `requests`"
            raise WrongValueError(f"this scenario {problem}", hint)
        names = [request.name for request in self.requests if request.name]
        if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
            raise WrongValueError(f"the request `{twice}` is given twice", "rename one of the two", field="requests")
        if self.requests and (
            outside := sorted({"headers", "body", "expect", "timestamp", "stream"} & self.model_fields_set)
        ):
            raise WrongValueError(f"`{outside[0]}` cannot be combined with `requests`", "write it in every request")
        return self

    def all_requests(self) -> tuple[Request, ...]:
        """All requests as values of the model."""
        return tuple(request.request(request.weight, request.name or "") for request in self.requests) or (
            self.request(),
        )

    def scenario(self, name: str, picks: Mapping[str, tuple[str, ...]]) -> Scenario:
        """The value of the model, with the lines of the files that its requests pick from."""
        first, *others = self.all_requests()
        return Scenario(
            name=name,
            about=self.about,
            request=first,
            others=tuple(others),
            picks=dict(picks),
            requires=self.requires,
            against=self.against,
        )


class ScenariosSchema(Schema):
    """`catalogue/scenarios.yaml`: scenarios that any suite may name."""

    about: str = Field(default="", description="what these scenarios have in common")
    scenarios: dict[Annotated[str, Field(pattern=NAME)], ScenarioSchema] = Field(
        min_length=1, description="scenarios by name: a letter, then letters, digits, - and _"
    )
