"""A scenario as it is written: in a suite, or in the catalogue's `scenarios.yaml`."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, GetJsonSchemaHandler, Tag, WithJsonSchema, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from redline.model import Body, Expected, Request, Scenario
from redline.suite.forms import Scalar, Size, Written
from redline.suite.units import WrongValueError, clip

METHODS = ("get", "post", "put", "patch", "delete")
_LARGEST_BODY = 64 * 1024 * 1024
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token, RFC 9110 section 5.6.2
_OWN_HEADERS = {"content-length", "transfer-encoding", "connection"}


def _path(value: str) -> str:
    if not value.startswith("/"):
        raise WrongValueError(f"`{clip(value)}` is not a path", f"write `/{clip(value).removeprefix('http://')}`")
    if not re.fullmatch(r"[!-~]+", value) or "#" in value:
        raise WrongValueError("a path has only visible ASCII characters, and no `#`", "percent-encode the others")
    return value


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise WrongValueError(
            f"`{clip(name)}` is not a header name", "use letters, digits and - (RFC 9110, section 5.6.2)"
        )
    if name.lower() in _OWN_HEADERS:
        raise WrongValueError(f"the engine sets `{name}`", "remove it")
    return name


def _header_text(text: str) -> str:
    if not re.fullmatch(r"[\t -~]*", text) or text != text.strip():
        raise WrongValueError("a header's value is one line of ASCII", "remove control characters and outer spaces")
    return text


Headers = dict[Annotated[str, AfterValidator(_header_name)], Annotated[str, AfterValidator(_header_text)]]
PathText = Annotated[str, AfterValidator(_path), WithJsonSchema({"type": "string", "pattern": '^/[!"$-~]*$'})]


class WrittenBody(Written):
    """A body made of bytes: its size, what fills it, and the seed of the filler."""

    size: Size = Field(description="bytes, or a number with B, kB, KiB, MB or MiB", examples=[256, "5MB"])
    fill: Literal["bytes", "text"] = Field(default="bytes", description="any bytes, or lower-case letters and digits")
    seed: int = Field(default=1, ge=0, description="the same seed gives the same bytes")

    @model_validator(mode="after")
    def _bounded(self) -> "WrittenBody":
        if self.size > _LARGEST_BODY:
            raise WrongValueError("a body has at most 64 MiB", "send less")
        return self


def _body_kind(value: Any) -> str:
    return "<made>" if isinstance(value, (dict, WrittenBody)) else "<text>"


BodyItem = Annotated[Annotated[str, Tag("<text>")] | Annotated[WrittenBody, Tag("<made>")], Discriminator(_body_kind)]


class WrittenExpected(Written):
    """The answer that is right."""

    status: int = Field(default=200, ge=200, le=599, description="the final status code, 200 to 599")
    body: str | None = Field(default=None, description="the whole body as text", examples=["path0"])
    length: int | None = Field(default=None, ge=0, description="bytes of the body, when its text is not told")
    under_load: Literal["status", "length", "hash"] | None = Field(
        default=None,
        description="how much of every response is checked during the load; length when not said",
    )

    @model_validator(mode="after")
    def _knows_what_it_checks(self) -> "WrittenExpected":
        if self.body is not None and self.length is not None and self.length != len(self.body.encode()):
            actual = len(self.body.encode())
            raise WrongValueError(f"`body` has {actual} bytes but `length` says {self.length}", "remove `length`")
        if self.under_load == "hash" and self.body is None:
            raise WrongValueError("a hash under load needs the `body`", "write the whole body, or check the length")
        if self.under_load == "length" and self.body is None and self.length is None:
            raise WrongValueError(
                "a length under load needs `body` or `length`", "write one of them, or check the status"
            )
        return self

    def expected(self) -> Expected:
        """The model's word for it."""
        return Expected(status=self.status, body=self.body, length=self.length, under_load=self.under_load or "length")


class WrittenScenario(Written):
    """An exchange: exactly one of get, post, put, patch and delete, and the answer that is right."""

    about: str = Field(default="", description="one line for the reports")
    get: PathText | None = Field(default=None, description="the path to GET", examples=["/path0"])
    post: PathText | None = Field(default=None, description="the path to POST to", examples=["/bytes0"])
    put: PathText | None = Field(default=None, description="the path to PUT")
    patch: PathText | None = Field(default=None, description="the path to PATCH")
    delete: PathText | None = Field(default=None, description="the path to DELETE")
    headers: Headers = Field(default={}, description="headers by name", examples=[{"Accept": "text/plain"}])
    body: BodyItem | None = Field(
        default=None, description="the request's body: a text, or {size: 256}", examples=[{"size": 256}]
    )
    expect: WrittenExpected = Field(
        default=WrittenExpected(),
        description="the right answer; status 200 and any body when not said",
        examples=[{"status": 200, "body": "path0"}],
    )
    requires: dict[str, Scalar] = Field(
        default={}, description="server options without which it cannot be answered", examples=[{"routes": 128}]
    )

    @model_validator(mode="after")
    def _one_method(self) -> "WrittenScenario":
        named = [method for method in METHODS if getattr(self, method) is not None]
        if len(named) != 1:
            told = f"has {' and '.join(named)}" if named else "says nothing to ask for"
            raise WrongValueError(f"this scenario {told}", f"write exactly one of {', '.join(METHODS)}: `get: /path0`")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler.resolve_ref_schema(handler(schema))
        return json_schema | {"oneOf": [{"required": [method]} for method in METHODS]}

    def scenario(self, name: str) -> Scenario:
        """The model's word for it."""
        method = next(method for method in METHODS if getattr(self, method) is not None)
        return Scenario(
            name=name,
            about=self.about,
            request=Request(
                method=method.upper(),
                path=getattr(self, method),
                headers=self.headers,
                body=self._request_body(),
                expect=self.expect.expected(),
            ),
            requires=self.requires,
        )

    def _request_body(self) -> Body | None:
        if isinstance(self.body, WrittenBody):
            return Body(size=self.body.size, fill=self.body.fill, seed=self.body.seed)
        return Body(text=self.body) if self.body is not None else None


class ScenariosFile(Written):
    """`catalogue/scenarios.yaml`: scenarios that any suite may name."""

    about: str = Field(default="", description="what these scenarios have in common")
    scenarios: dict[Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")], WrittenScenario] = Field(
        min_length=1, description="scenarios by name: a letter, then letters, digits, - and _"
    )
