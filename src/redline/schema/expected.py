"""The expected answer to a request, and the server's clock in it."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from redline.errors import WrongValueError
from redline.model import Expected, Timestamp
from redline.model.exchange import POINTER
from redline.schema.types import BY_FORM, LIST, PLAIN, Schema, one_or_several

FinalStatus = Annotated[int, Field(ge=200, le=599)]
StatusItem = Annotated[
    Annotated[FinalStatus, PLAIN] | Annotated[list[FinalStatus], Field(min_length=1), LIST],
    BY_FORM,
    one_or_several({"type": "integer", "minimum": 200, "maximum": 599}, minItems=1),
]


_OPERATORS = frozenset({"absent", "present", "empty", "equals"})


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
        default={},
        alias="json",
        description="values by JSON Pointer (RFC 6901), or {absent: true}, {present: true}, {empty: true}",
        examples=[{"/total": 3, "/errors": {"absent": True}}],
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

    @model_validator(mode="after")
    def _json_is_clear(self) -> "ExpectedSchema":
        for pointer, written in self.json_values.items():
            _stands_or_value(pointer, written)
        return self

    def says_of_errors(self) -> bool:
        """Whether it says what stands in `errors`, so that nothing more is expected of them."""
        return self.body is not None or any(pointer.split("/")[1:2] in (["errors"], []) for pointer in self.json_values)

    def expected(self, *, by_status: bool = False, no_errors: bool = False) -> Expected:
        """The value of the model; `by_status`: the engine compares nothing else under load."""
        under_load = "status" if by_status else self.under_load or ("hash" if self.sha256 else "length")
        statuses = statuses_of(self.status)
        status = statuses if len(statuses) > 1 else statuses[0]
        told = {pointer: _stands_or_value(pointer, written) for pointer, written in self.json_values.items()}
        json_values = {pointer: value for pointer, (stands, value) in told.items() if stands is None}
        json_stands = {pointer: stands for pointer, (stands, _) in told.items() if stands is not None}
        return Expected.model_validate(
            {
                **self.model_dump(),
                "status": status,
                "under_load": under_load,
                "json_values": json_values,
                "json_stands": json_stands,
                "no_errors": no_errors and not self.says_of_errors(),
            }
        )


def _stands_or_value(pointer: str, written: JsonValue) -> tuple[str | None, JsonValue]:
    """What stands at a pointer, or else the value to compare with. Raises WrongValueError for what may mean either."""
    where = pointer or "the root"
    if written in ("absent", "present", "empty"):
        message = f"`{written}` at {where} is a text that is compared, or what stands there"
        raise WrongValueError(
            message, f"write `{{{written}: true}}`, or for the text `{{equals: {written}}}`", field="json"
        )
    if not isinstance(written, dict) or not _OPERATORS & written.keys():
        return None, written
    if len(written) > 1:
        message = f"{where} has {' and '.join(f'`{key}`' for key in written)}"
        raise WrongValueError(message, "write one of them; an object to compare with is `{equals: {…}}`", field="json")
    ((operator, value),) = written.items()
    if operator == "equals":
        return None, value
    if value is not True:
        other = {"absent": "present", "present": "absent", "empty": "present"}[operator]
        raise WrongValueError(
            f"`{operator}` at {where} is true or left out", f"write `{{{other}: true}}`", field="json"
        )
    return operator, None


class TimestampSchema(Schema):
    """Where the answer contains the server's clock, for one-way times."""

    pointer: Annotated[str, Field(pattern=r"^(body|/.*)$")] = Field(
        description="a JSON Pointer, or `body` if the entire body is the time", examples=["/now"]
    )
    unit: Literal["s", "ms", "us", "ns"] = Field(description="s, ms, us or ns since 1970", examples=["ms"])

    def timestamp(self) -> Timestamp:
        """The value of the model."""
        return Timestamp(pointer=None if self.pointer == "body" else self.pointer, unit=self.unit)
