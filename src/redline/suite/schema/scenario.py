"""The schema of a scenario, in a suite or in the catalogue's `scenarios.yaml`."""

import re
from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from redline.errors import UsageError, WrongValueError
from redline.model import Body, Expected, Journey, Request, Scenario, Timestamp
from redline.model.exchange import POINTER
from redline.model.journey import RowUse
from redline.model.template import malformed
from redline.quantities import clip
from redline.suite.schema.bodies import CONTENT_TYPES, FormField, form_template, json_template, texts_of
from redline.suite.schema.load import MOST_CONNECTIONS, ThinkItem
from redline.suite.schema.stream import StreamItem, stream_of
from redline.suite.schema.types import BY_FORM, LIST, MAPPING, PLAIN, Scalar, Schema, Size, as_list, one_or_several

NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
STEP_NAME = r"^[A-Za-z][A-Za-z0-9_-]*( [A-Za-z0-9_-]+)*$"
"""Names of steps may have several words."""
VALUE_NAME = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
_SOURCES = ("json", "header", "cookie", "regex")
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
_KEYS = (*METHODS, "method")
BODIES = "bodies"
"""The key in a validation's context of the function that reads a body from a file."""
_LARGEST_BODY = 64 * 1024 * 1024
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token, RFC 9110 section 5.6.2
_NOT_IN_RUST = re.compile(r"\\[^1-9]|(\(\?(?:<?[=!]|>)|\\[1-9])")  # look-around, atomic groups, back-references
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
            "write {seq}, {rand:1..100} or {pick:file.txt}, in a journey also {take:NAME} or {row:COLUMN}, or double "
            "the braces",
        )
    return value


def _path(value: str) -> str:
    if not value.startswith(("/", "{take:")):
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


def _token(name: str) -> str:
    """Check the name of a header of an answer, or of a cookie, which are tokens. Raises WrongValueError."""
    if not _HEADER_NAME.fullmatch(name):
        raise WrongValueError(
            f"`{clip(name)}` is not such a name", "use letters, digits and - (RFC 9110, section 5.6.2)"
        )
    return name


def _rust_regex(pattern: str) -> str:
    """Check that a regular expression has nothing that the engine's, whose time is bounded, leave out."""
    if missing := next((match[1] for match in _NOT_IN_RUST.finditer(pattern) if match[1]), None):
        hint = 'write what stands around the value, and a group around it: `name="t" value="([^"]+)"`'
        raise WrongValueError(f"`{missing}` is not in the regular expressions of the engine", hint)
    return pattern


HeaderText = Annotated[str, AfterValidator(check_header_text)]
HeaderTexts = Annotated[list[HeaderText], Field(min_length=1)]


HeaderItem = Annotated[Annotated[HeaderText, PLAIN] | Annotated[HeaderTexts, LIST], BY_FORM]
Headers = Annotated[dict[Annotated[str, AfterValidator(check_header_name)], HeaderItem], AfterValidator(_headers)]
PathText = Annotated[
    str, AfterValidator(_path), WithJsonSchema({"type": "string", "pattern": '^(/|[{]take:)[!"$-~]*$'})
]


Encodings = Annotated[
    list[Literal["gzip", "br", "zstd", "deflate"]],
    BeforeValidator(as_list),
    one_or_several({"enum": ["gzip", "br", "zstd", "deflate"]}),
]


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


_BODY_KEYS = {"body": "body", "json": "json_body", "form": "form"}
FinalStatus = Annotated[int, Field(ge=200, le=599)]
StatusItem = Annotated[
    Annotated[FinalStatus, PLAIN] | Annotated[list[FinalStatus], Field(min_length=1), LIST],
    BY_FORM,
    one_or_several({"type": "integer", "minimum": 200, "maximum": 599}, minItems=1),
]


def statuses_of(written: int | list[int]) -> tuple[int, ...]:
    """The status codes, without repetitions."""
    return tuple(dict.fromkeys(written if isinstance(written, list) else [written]))


class ExpectedSchema(Schema):
    """The expected answer."""

    status: StatusItem = Field(
        default=200, description="the final status code, 200 to 599, or a list of codes that are right"
    )
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

    def expected(self, *, by_status: bool = False) -> Expected:
        """The value of the model; `by_status`: the engine compares nothing else under load."""
        under_load = "status" if by_status else self.under_load or ("hash" if self.sha256 else "length")
        statuses = statuses_of(self.status)
        status = statuses if len(statuses) > 1 else statuses[0]
        return Expected.model_validate({**self.model_dump(), "status": status, "under_load": under_load})


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
    accept: Encodings = Field(
        default=[],
        description="encodings of the answer that are accepted, and decoded when it is checked before the load",
        examples=[["gzip", "br", "zstd"]],
    )
    body: BodyItem | None = Field(
        default=None, description="the request's body: a text, or {size: 256}", examples=[{"size": 256}]
    )
    json_body: JsonValue | None = Field(
        default=None,
        alias="json",
        description="the body as JSON; sets Content-Type, and escapes the values of placeholders in its texts",
        examples=[{"name": "pen"}],
    )
    form: dict[str, FormField] | None = Field(
        default=None,
        description="the fields of a form; sets Content-Type, and encodes them and the values of placeholders",
        examples=[{"q": "pen"}],
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
        bodies = [key for key, field in _BODY_KEYS.items() if getattr(self, field) is not None]
        if len(bodies) > 1:
            message = f"this request has {' and '.join(f'`{key}`' for key in bodies)}"
            raise WrongValueError(message, "write its body in one way", field=bodies[1])
        of_form = chain.from_iterable((name, *values) for name, values in (self.form or {}).items())
        for field, texts in (("json", texts_of(self.json_body)), ("form", of_form)):
            for text in texts:
                try:
                    check_placeholders(text)
                except WrongValueError as error:
                    raise WrongValueError(error.message, error.hint, field=field) from None
        return self

    @model_validator(mode="after")
    def _decoded_before_the_load(self) -> Self:
        """Under load the engine compares bodies as they come, and does not decode them."""
        if not self.accept:
            return self
        if any(name.lower() == "accept-encoding" for name in self.headers):
            raise WrongValueError("`accept` is the header `Accept-Encoding`", "leave out the header", field="accept")
        if self.stream is not None:
            hint = "leave out `accept` or `stream`"
            raise WrongValueError("events are counted as they come, and not decoded", hint, field="accept")
        if self.timestamp is not None:
            message = "the time in an encoded answer cannot be read under load"
            raise WrongValueError(message, "leave out `accept` or `timestamp`", field="accept")
        if self.expect.under_load in ("length", "hash") or self.expect.sha256 or self.expect.json_values:
            key = "json" if self.expect.json_values else "sha256" if self.expect.sha256 else "under_load"
            if self.expect.under_load == "status":
                return self
            hint = "write `under_load: status` under `expect`: the rest is compared before the load, decoded"
            raise WrongValueError(f"encoded answers are not decoded under load, so `{key}` is not compared", hint)
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
            headers=self._all_headers(),
            body=self._any_body(),
            expect=self.expect.expected(by_status=bool(self.accept)),
            timestamp=self.timestamp and self.timestamp.timestamp(),
            stream=stream_of(self.stream),
        )

    def _all_headers(self) -> dict[str, str | tuple[str, ...]]:
        """The headers, with accepted encodings, and the kind of a body of JSON or of a form unless they name it."""
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in self.headers.items()}
        if self.accept:
            given["Accept-Encoding"] = ", ".join(self.accept)
        kind = next((kind for field, kind in CONTENT_TYPES.items() if getattr(self, field) is not None), "")
        has_kind = any(name.lower() == "content-type" for name in given)
        return {**given, "Content-Type": kind} if kind and not has_kind else given

    def _any_body(self) -> Body | None:
        if self.json_body is not None:
            return Body(text=json_template(self.json_body), escape="json")
        if self.form is not None:
            return Body(text=form_template(self.form), escape="form")
        if isinstance(self.body, str):
            return Body(text=self.body)
        return None if self.body is None else self.body.made()


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


class TakenSchema(Schema):
    """Where a value of an answer stands: exactly one of json, header, cookie and regex."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in _SOURCES]})

    json_pointer: Annotated[str, Field(pattern=POINTER)] | None = Field(
        default=None, alias="json", description="a JSON Pointer (RFC 6901) into the body", examples=["/token"]
    )
    header: Annotated[str, AfterValidator(_token)] | None = Field(
        default=None, description="the name of a header", examples=["Location"]
    )
    cookie: Annotated[str, AfterValidator(_token)] | None = Field(
        default=None, description="the name of a cookie that the answer sets", examples=["sid"]
    )
    regex: Annotated[str, AfterValidator(_rust_regex)] | None = Field(
        default=None,
        min_length=1,
        description="a regular expression for the body: the value is its first group, or all that matches",
        examples=['name="csrf" value="([^"]+)"'],
    )

    @model_validator(mode="after")
    def _one_source(self) -> "TakenSchema":
        if len(self.sources) != 1:
            problem = f"has {' and '.join(self.sources)}" if self.sources else "has no source"
            raise WrongValueError(f"this value {problem}", f"write exactly one of {', '.join(_SOURCES)}")
        return self

    @property
    def sources(self) -> dict[str, str]:
        """The source, by its key."""
        fields = zip(_SOURCES, (self.json_pointer, self.header, self.cookie, self.regex), strict=True)
        return {key: source for key, source in fields if source is not None}


class StepSchema(OneRequestSchema):
    """A step of a journey: a request, the pause before it, its condition, and the values that it takes."""

    name: Annotated[str, Field(pattern=STEP_NAME)] | None = Field(
        default=None, description="its name in results and objectives; default: `GET /items`", examples=["log in"]
    )
    think: ThinkItem | None = Field(
        default=None,
        description="how long after the answer before it is sent: a time, or {exponential: MEAN}",
        examples=["500ms"],
    )
    when: Annotated[dict[str, StatusItem], Field(min_length=1, max_length=1)] | None = Field(
        default=None,
        description="an earlier step and its statuses: it is sent only then, and left out otherwise",
        examples=[{"item": 200}],
    )
    take: dict[Annotated[str, Field(pattern=VALUE_NAME)], TakenSchema] = Field(
        default={},
        description="values of the answer by name, for {take:NAME} in later steps",
        examples=[{"token": {"json": "/token"}}],
    )

    @model_validator(mode="after")
    def _not_encoded(self) -> Self:
        if self.accept:
            message = "the answers of steps are read as they come, and not decoded"
            raise WrongValueError(
                message, "leave out `accept`, or load that request outside of a journey", field="accept"
            )
        return self

    @model_validator(mode="after")
    def _no_stream(self) -> Self:
        if self.stream is not None:
            hint = "leave `stream` out, or load the stream by itself"
            raise WrongValueError("a step of a journey cannot be a stream of events", hint, field="stream")
        return self


class RowsSchema(Schema):
    """Rows of a CSV file, and how users take them."""

    file: str = Field(
        min_length=1,
        description="a CSV file, relative to the file that names it; its first line names the columns",
        examples=["users.csv"],
    )
    use: RowUse = Field(
        default="turn",
        description="`turn`: the next row for each journey, from the first again after the last; `unique`: no row "
        "twice in a load; `user`: a row for each user",
    )


RowsItem = Annotated[Annotated[str, Field(min_length=1), PLAIN] | Annotated[RowsSchema, MAPPING], BY_FORM]


class JourneySchema(Schema):
    """Steps that every user takes in order, again and again."""

    rows: RowsItem | None = Field(
        default=None,
        description="a CSV file, or {file: users.csv, use: user}, for {row:COLUMN} in the steps",
        examples=["users.csv"],
    )
    cookies: bool = Field(default=True, description="whether each user sends back the cookies that answers set")
    once: list[StepSchema] = Field(
        default=[],
        description="steps that each user takes once, before the measurement, such as a login",
        examples=[[{"post": "/login", "json": {"user": "{row:name}"}, "take": {"token": {"json": "/token"}}}]],
    )
    again_at: StatusItem | None = Field(
        default=None,
        description="a status, or a list: after it a user takes `once` again, and then the step",
        examples=[401],
    )
    steps: list[StepSchema] = Field(
        min_length=1, description="the steps in order", examples=[[{"name": "items", "get": "/items"}]]
    )
    users: int | None = Field(
        default=None,
        ge=1,
        le=MOST_CONNECTIONS,
        description="how many users take the journeys of an open load, with `once`; default: its connections",
        examples=[100],
    )


class ScenarioSchema(RequestSchema):
    """A scenario: one request, `requests` that are drawn by weight, or a `journey` of steps."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [key]} for key in (*_KEYS, "requests", "journey")]}
    )

    about: str = Field(default="", description="one line for the reports")
    requests: list[MixedSchema] = Field(
        default=[],
        description="several requests instead of a single request",
        examples=[[{"weight": 3, "get": "/path0"}, {"get": "/path1"}]],
    )
    journey: JourneySchema | None = Field(
        default=None,
        description="steps in order instead of a single request",
        examples=[{"steps": [{"get": "/items"}, {"get": "/orders"}]}],
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
        several = next((key for key in ("requests", "journey") if getattr(self, key)), None)
        named = [*self.methods, *(key for key in ("requests", "journey") if getattr(self, key))]
        if len(named) != 1:
            problem = f"has {' and '.join(named)}" if named else "has no method"
            hint = f"write exactly one of {', '.join(METHODS)}: `get: /path0`; or `requests`, or `journey`"
            raise WrongValueError(f"this scenario {problem}", hint)
        names = [request.name for request in self.requests if request.name]
        if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
            raise WrongValueError(f"the request `{twice}` is given twice", "rename one of the two", field="requests")
        outside = sorted(
            {"headers", "accept", *_BODY_KEYS.values(), "expect", "timestamp", "stream"} & self.model_fields_set
        )
        if several and outside:
            message = f"`{outside[0].removesuffix('_body')}` cannot be combined with `{several}`"
            raise WrongValueError(message, f"write it in every {'step' if self.journey else 'request'}")
        return self

    def all_requests(self) -> tuple[Request, ...]:
        """All requests as values of the model."""
        if self.journey is not None:
            return tuple(step.request(name=step.name or "") for step in (*self.journey.once, *self.journey.steps))
        return tuple(request.request(request.weight, request.name or "") for request in self.requests) or (
            self.request(),
        )

    def scenario(self, name: str, picks: Mapping[str, tuple[str, ...]], journey: Journey | None = None) -> Scenario:
        """The value of the model, with the lines of the files that its requests pick from, and its journey."""
        first, *others = self.all_requests()
        return Scenario(
            name=name,
            about=self.about,
            request=first,
            others=tuple(others),
            picks=dict(picks),
            journey=journey,
            requires=self.requires,
            against=self.against,
        )


class ScenariosSchema(Schema):
    """`catalogue/scenarios.yaml`: scenarios that any suite may name."""

    about: str = Field(default="", description="what these scenarios have in common")
    scenarios: dict[Annotated[str, Field(pattern=NAME)], ScenarioSchema] = Field(
        min_length=1, description="scenarios by name: a letter, then letters, digits, - and _"
    )
