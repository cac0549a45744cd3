"""The schema of a request: method, path, headers, body, and the expected answer."""

from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from redline.errors import WrongValueError
from redline.model import Body, Request
from redline.model.sign_in import SET_BY_SIGNING, UNSIGNED
from redline.model.template import has_placeholders
from redline.schema.bodies import (
    CONTENT_TYPES,
    BodyItem,
    Chunked,
    FormField,
    JsonBody,
    PartSchema,
    form_template,
    json_template,
    multipart_body,
    texts_of,
)
from redline.schema.expected import ExpectedSchema, TimestampSchema
from redline.schema.graphql import is_graphql_body, is_graphql_path
from redline.schema.http_texts import Headers, MethodText, PathText, check_placeholders
from redline.schema.sign_in import SignInSchema
from redline.schema.stream import StreamItem, stream_of
from redline.schema.types import Schema, Timeout, as_list, one_or_several

NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
METHOD_KEYS = (*METHODS, "method")
BODY_KEYS = {"body": "body", "json": "json_body", "form": "form", "multipart": "multipart"}
EXPECT_CONTINUE = "1s"
"""How long a body waits for an answer 100 where only `Expect: 100-continue` is given, as in curl."""
Encodings = Annotated[
    list[Literal["gzip", "br", "zstd", "deflate"]],
    BeforeValidator(as_list),
    one_or_several({"enum": ["gzip", "br", "zstd", "deflate"]}),
]


class RequestSchema(Schema):
    """A request: exactly one of get, head, post, put, patch, delete and options, and the expected answer."""

    get: PathText | None = Field(default=None, description="the path to GET", examples=["/path0"])
    head: PathText | None = Field(default=None, description="the path for HEAD")
    post: PathText | None = Field(default=None, description="the path to POST to", examples=["/bytes0"])
    put: PathText | None = Field(default=None, description="the path to PUT")
    patch: PathText | None = Field(default=None, description="the path to PATCH")
    delete: PathText | None = Field(default=None, description="the path to DELETE")
    options: PathText | None = Field(default=None, description="the path for OPTIONS")
    method: MethodText | None = Field(default=None, description="any other method, for `path`", examples=["PURGE"])
    path: PathText | None = Field(default=None, description="the path for `method`", examples=["/items"])
    headers: Headers = Field(
        default={},
        description="headers by name; values are texts, or lists of texts",
        examples=[{"Accept": "text/plain"}],
    )
    auth: SignInSchema | None = Field(
        default=None,
        description="how it signs in: basic, bearer or aws",
        examples=[{"bearer": "${TOKEN}"}],
    )
    accept: Encodings = Field(
        default=[],
        description="encodings of the answer that are accepted, and decoded when it is checked before the load",
        examples=[["gzip", "br", "zstd"]],
    )
    body: BodyItem | None = Field(
        default=None, description="the request's body: a text, or {size: 256}", examples=[{"size": 256}]
    )
    json_body: JsonBody | None = Field(
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
    multipart: list[PartSchema] | None = Field(
        default=None,
        min_length=1,
        description="the parts of a form, such as files; sets Content-Type with a boundary",
        examples=[[{"name": "note", "text": "hello"}, {"name": "photo", "file": "cat.jpg"}]],
    )
    chunked: Chunked = Field(
        default=False,
        description="the body is sent without its length: as a single chunk, or in chunks of this size",
        examples=["8KiB"],
    )
    expect_continue: Timeout | None = Field(
        default=None,
        description="the head asks by `Expect: 100-continue`, and the body waits so long for the answer 100",
        examples=["1s"],
    )
    expect: ExpectedSchema = Field(
        default=ExpectedSchema(),
        description="the expected answer; default: status 200 and any body",
        examples=[{"status": 200, "body": "path0"}],
    )
    timestamp: TimestampSchema | None = Field(
        default=None,
        description="where the answer, or each message of its stream, contains the server's clock",
        examples=[{"pointer": "/now", "unit": "ms"}],
    )
    stream: StreamItem | None = Field(
        default=None,
        description="the answer is a stream of events: `sse`, `ndjson` or `chunks`, or a mapping",
        examples=[{"events": "sse", "until": 20}],
    )

    _parts: tuple[Body, str] | None = PrivateAttr(default=None)

    @property
    def methods(self) -> list[str]:
        """The keys of the methods that are given."""
        return [key for key in METHOD_KEYS if getattr(self, key) is not None]

    @property
    def beside_method(self) -> str:
        """The first key that is given of a request beside its method; empty without one."""
        keys = {"headers", "auth", "accept", *BODY_KEYS.values(), "chunked", "expect_continue", "expect", "timestamp"}
        return min({*keys, "stream"} & self.model_fields_set, default="").removesuffix("_body")

    @model_validator(mode="after")
    def _method_with_path(self) -> Self:
        if (self.method is None) != (self.path is None):
            missing = "path" if self.path is None else "method"
            hint = "write both: `method: PURGE` and `path: /items`"
            raise WrongValueError(f"`method` and `path` belong together, and `{missing}` is missing", hint)
        bodies = [key for key, field in BODY_KEYS.items() if getattr(self, field) is not None]
        if len(bodies) > 1:
            message = f"this request has {' and '.join(f'`{key}`' for key in bodies)}"
            raise WrongValueError(message, "write its body in one way", field=bodies[1])
        if self.chunked and not bodies:
            hint = "write a `body`, `json`, `form` or `multipart`, or leave it out"
            raise WrongValueError("this request has no body to send in chunks", hint, field="chunked")
        if self.expect_continue is not None and not bodies:
            hint = "write a `body`, `json`, `form` or `multipart`, or leave it out"
            raise WrongValueError("this request has no body to wait with", hint, field="expect_continue")
        of_form = chain.from_iterable((name, *values) for name, values in (self.form or {}).items())
        for field, texts in (("json", texts_of(self.json_body)), ("form", of_form)):
            for text in texts:
                try:
                    check_placeholders(text)
                except WrongValueError as error:
                    raise WrongValueError(error.message, error.hint, field=field) from None
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if self.multipart is None:
            return self
        if any(name.lower() == "content-type" for name in self.headers):
            message = "`multipart` sets Content-Type, with the boundary of its parts"
            raise WrongValueError(message, "leave out the header, or write the whole as `body`", field="headers")
        self._parts = multipart_body(self.multipart)
        return self

    @model_validator(mode="after")
    def _signs_in_once(self) -> Self:
        given = {name.lower(): name for name in self.headers}
        if self.auth is not None and "authorization" in given:
            message, hint = "`auth` and the header `Authorization` are two sign-ins", "leave one of them out"
            raise WrongValueError(message, hint, field="auth")
        if self.auth is None or self.auth.aws is None or len(self.methods) != 1:
            return self
        if other := next((given[name] for name in given if name in SET_BY_SIGNING), None):
            raise WrongValueError(f"signing sets the header `{other}`", "leave out that header", field="auth")
        asked = self.request()
        lines = {f"the header `{name}`": value for name, value in asked.header_lines if name.lower() not in UNSIGNED}
        for what, text in {"its path": asked.path, "its body": asked.texts[-1], **lines}.items():
            if has_placeholders(text):
                hint = "write a request for each value, with a `weight`; or sign in by `basic` or `bearer`"
                message = f"a signature is made once for each load, and {what} has a placeholder"
                raise WrongValueError(message, hint, field="auth")
        if "+" in asked.path.partition("?")[2]:
            message = "a `+` in a query is a space to some servers and a plus to others, and has to be signed as either"
            raise WrongValueError(message, "write %20 or %2B", field="auth")
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
        if self.stream is not None and expected:
            what = f"`{'json' if 'json_values' in expected else min(expected)}`"
            problem = f"a stream of events is only counted, and has no {what} to check"
            raise WrongValueError(problem, "expect its status alone", field="stream")
        if self.stream is not None and (self.head is not None or self.method == "HEAD"):
            raise WrongValueError("an answer to HEAD has no events", "write `get`", field="stream")
        return self

    def request(self, weight: int = 1, name: str = "") -> Request:
        """The value of the model."""
        (key,) = self.methods
        method, path = (key.upper(), getattr(self, key)) if key in METHODS else (self.method, self.path)
        body = self._body()
        return Request(
            weight=weight,
            name=name,
            method=method or "",
            path=path or "",
            headers=self._all_headers(),
            auth=self.auth and self.auth.sign_in(),
            body=body,
            expect=self.expect.expected(by_status=bool(self.accept), no_errors=self._asks_graphql(path or "", body)),
            timestamp=self.timestamp and self.timestamp.timestamp(),
            stream=stream_of(self.stream),
            expect_continue_ns=self.expect_continue,
        )

    def _asks_graphql(self, path: str, body: Body | None) -> bool:
        """Whether the answer is one of GraphQL, whose errors come with status 200."""
        return self.stream is None and (is_graphql_path(path) or (body is not None and is_graphql_body(body)))

    def _all_headers(self) -> dict[str, str | tuple[str, ...]]:
        """The headers, with accepted encodings, and the kind of a body of JSON or of a form unless they name it."""
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in self.headers.items()}
        if self.auth is not None:
            given |= self.auth.headers
        if self.accept:
            given["Accept-Encoding"] = ", ".join(self.accept)
        kind = next((kind for field, kind in CONTENT_TYPES.items() if getattr(self, field) is not None), "")
        if self._parts is not None:
            _, kind = self._parts
        has_kind = any(name.lower() == "content-type" for name in given)
        return {**given, "Content-Type": kind} if kind and not has_kind else given

    def _body(self) -> Body | None:
        body = self._any_body()
        return body.in_chunks(of=self.chunked) if body is not None and self.chunked else body

    def _any_body(self) -> Body | None:
        if self._parts is not None:
            body, _ = self._parts
            return body
        if self.json_body is not None:
            return Body(text=json_template(self.json_body), escape="json")
        if self.form is not None:
            return Body(text=form_template(self.form), escape="form")
        if isinstance(self.body, str):
            return Body(text=self.body)
        return None if self.body is None else self.body.made()


class OneRequestSchema(RequestSchema):
    """A request with its method."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in METHOD_KEYS]})

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
        default=None,
        description="its name in results: a letter, then letters, digits, - and _; default: `GET /items`",
        examples=["items"],
    )
