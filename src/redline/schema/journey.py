"""The schema of a journey: steps in order, values taken from answers, and rows of a CSV file."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from redline.errors import WrongValueError
from redline.model import Request
from redline.model.exchange import POINTER
from redline.model.journey import RowUse
from redline.schema.expected import StatusItem
from redline.schema.http_texts import TokenText
from redline.schema.load import MOST_CONNECTIONS, ThinkItem
from redline.schema.request import METHOD_KEYS, METHODS, RequestSchema
from redline.schema.stream import RustRegex
from redline.schema.types import BY_FORM, MAPPING, PLAIN, Schema
from redline.schema.websocket import WebSocketSchema

_STEP_NAME = r"^[A-Za-z][A-Za-z0-9_-]*( [A-Za-z0-9_-]+)*$"  # of several words, if need be
_VALUE_NAME = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
_SOURCES = ("json", "header", "cookie", "regex", "text")


class TakenSchema(Schema):
    """Where a value of an answer stands: exactly one of json, header, cookie, regex and text."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in _SOURCES]})

    json_pointer: Annotated[str, Field(pattern=POINTER)] | None = Field(
        default=None, alias="json", description="a JSON Pointer (RFC 6901) into the body", examples=["/token"]
    )
    header: TokenText | None = Field(default=None, description="the name of a header", examples=["Location"])
    cookie: TokenText | None = Field(
        default=None, description="the name of a cookie that the answer sets", examples=["sid"]
    )
    regex: RustRegex | None = Field(
        default=None,
        min_length=1,
        description="a regular expression for the body: the value is its first group, or all that matches",
        examples=['name="csrf" value="([^"]+)"'],
    )
    text: Annotated[str, Field(pattern=POINTER)] | None = Field(
        default=None,
        description="a JSON Pointer into the messages of a conversation: the strings there, one after the other",
        examples=["/choices/0/delta/content"],
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
        fields = zip(_SOURCES, (self.json_pointer, self.header, self.cookie, self.regex, self.text), strict=True)
        return {key: source for key, source in fields if source is not None}


class StepSchema(RequestSchema):
    """A step of a journey: a request, or a conversation on a WebSocket; the pause before it, and what it takes."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [key]} for key in (*METHOD_KEYS, "websocket")]})

    websocket: WebSocketSchema | None = Field(
        default=None,
        description="a WebSocket that is opened for this step and closed after it, in place of a request",
        examples=[{"path": "/chat/{take:room}", "send": "{take:question}", "receive": {"until": 20}}],
    )
    name: Annotated[str, Field(pattern=_STEP_NAME)] | None = Field(
        default=None,
        description="its name in results: words of letters, digits, - and _; default: `GET /items`",
        examples=["log in"],
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
    take: dict[Annotated[str, Field(pattern=_VALUE_NAME)], TakenSchema] = Field(
        default={},
        description="values of the answer by name, for {take:NAME} in later steps",
        examples=[{"token": {"json": "/token"}}],
    )

    @model_validator(mode="after")
    def _one_exchange(self) -> Self:
        named = [*self.methods, *(["websocket"] if self.websocket else [])]
        if len(named) != 1:
            problem = f"has {' and '.join(named)}" if named else "has no method"
            hint = f"write exactly one of {', '.join(METHODS)}: `get: /path0`; or `websocket`"
            raise WrongValueError(f"this step {problem}", hint)
        if self.websocket is None:
            return self
        if self.beside_method:
            message = f"`{self.beside_method}` cannot be combined with `websocket`"
            raise WrongValueError(message, "write it in `websocket`, if it has it")
        if self.websocket.receive is None:
            hint = "write `receive: {until: 1}` for a single answer"
            raise WrongValueError("nothing says when this conversation is over", hint, field="websocket")
        return self

    @model_validator(mode="after")
    def _not_encoded(self) -> Self:
        if self.accept:
            message = "the answers of steps are read as they come, and not decoded"
            raise WrongValueError(
                message, "leave out `accept`, or load that request outside of a journey", field="accept"
            )
        return self

    @model_validator(mode="after")
    def _signs_no_cookie(self) -> Self:
        if self.auth is not None and self.auth.aws and any(name.lower() == "cookie" for name in self.headers):
            hint = "leave out the header, or `aws`"
            raise WrongValueError("the cookies of a user would change a header that is signed", hint, field="headers")
        return self

    @model_validator(mode="after")
    def _takes_what_is_kept(self) -> Self:
        sources = [source for value in self.take.values() for source in value.sources]
        talks = self.stream is not None or self.websocket is not None
        if not talks and "text" in sources:
            hint = "say which with `stream`, such as `stream: openai`, or take it by `json`"
            raise WrongValueError("a `text` is gathered from the messages of a conversation", hint, field="take")
        if talks and {"json", "regex"} & {*sources}:
            hint = "take a `text`, a `header` or a `cookie`"
            raise WrongValueError("the messages of a conversation are not kept as a body", hint, field="take")
        if len({value.text for value in self.take.values() if value.text}) > 1:
            raise WrongValueError("one text is gathered of a conversation", "take a single `text`", field="take")
        return self

    def request(self, weight: int = 1, name: str = "") -> Request:
        """The value of the model."""
        if self.websocket is None:
            return super().request(weight, name)
        return self.websocket.request(name)


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
