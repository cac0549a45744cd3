"""The types of the files' fields: strict mappings, and quantities that are written as text."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Tag, WithJsonSchema

from redline.errors import WrongValueError
from redline.model import HttpVersion, Objective, OptionValue, Share, TlsVersion
from redline.suite.schema.units import (
    parse_any_rate,
    parse_duration,
    parse_objectives,
    parse_rate,
    parse_rate_or_share,
    parse_share,
    parse_size,
)

LONGEST_TIMEOUT_NS = 3_600_000_000_000
SHORTEST_LOAD_NS = 1_000_000
SHORTEST_DETECTION_NS = 5_000_000_000  # what `findings.warming` needs to call a level steady


def _title(model: type) -> str:
    return model.__name__.removesuffix("Schema")


class Schema(BaseModel):
    """A mapping of a file: unknown keys are errors, and nothing is converted silently."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, allow_inf_nan=False, model_title_generator=_title
    )


def _form(value: object) -> str:
    return "<mapping>" if isinstance(value, (dict, BaseModel)) else "<list>" if isinstance(value, list) else "<plain>"


BY_FORM = Discriminator(_form)
"""Between what is written as a plain value, as a mapping and as a list. Errors do not show these tags."""
PLAIN, MAPPING, LIST = Tag("<plain>"), Tag("<mapping>"), Tag("<list>")


def _from_text(parse: Callable[[Any], Any], example: str, kinds: tuple[type, ...] = (str,)) -> BeforeValidator:
    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, kinds):
            number = not isinstance(value, bool) and isinstance(value, (int, float))
            message = f"`{value}` has no unit" if number else "this has the wrong type here"
            raise WrongValueError(message, f"write it like `{example}`")
        return parse(value)

    return BeforeValidator(read)


def _check(holds: Callable[[Any], bool], message: str, hint: str) -> AfterValidator:
    def check(value: Any) -> Any:
        if not holds(value):
            raise WrongValueError(message, hint)
        return value

    return AfterValidator(check)


def _at_least(least: int, text: str, why: str) -> AfterValidator:
    return _check(lambda value: value >= least, f"must be at least {text}", why)


def _objectives(value: object) -> tuple[Objective, ...]:
    written = value if isinstance(value, list) else [value]
    texts = [text for text in written if isinstance(text, str)]
    if not texts or len(texts) < len(written):
        raise WrongValueError("an objective is text, or a list of texts", "write it like `p99 < 200ms, errors < 0.1%`")
    return parse_objectives(", ".join(texts))


def _objective_sets(value: object) -> dict[str, tuple[Objective, ...]]:
    """By name; objectives without a name have an empty one."""
    if not isinstance(value, dict):
        return {"": _objectives(value)}
    names = [name for name in value if isinstance(name, str) and name.strip()]
    if not names or len(names) < len(value):
        raise WrongValueError("a set of objectives has no name", "write them like `good: p99 < 200ms`")
    return {name.strip(): _objectives(conditions) for name, conditions in value.items()}


def _scalar(value: object) -> object:
    if not isinstance(value, (str, int)):
        raise WrongValueError("an option's value is a text, a whole number, or true or false", "write one of those")
    return value


def _version(value: object) -> object:
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def _choices(value: object) -> list[object]:
    chosen = value if isinstance(value, list) else [value]
    if not chosen:
        raise WrongValueError("an axis needs at least one value", "remove the option to take its default")
    return [_scalar(item) for item in chosen]


def _schema(kind: str | list[str], pattern: str, *examples: object) -> WithJsonSchema:
    return WithJsonSchema({"type": kind, "pattern": pattern, "examples": list(examples)})


_DURATION_PATTERN = r"^\s*([0-9]+(\.[0-9]+)?\s*(h|m|s|ms|us|µs|ns)\s*)+$"
_duration_schema = _schema("string", _DURATION_PATTERN, "250ms", "25s", "1m30s")
_duration = _from_text(parse_duration, "25s")

Duration = Annotated[int, _duration, _duration_schema]
LoadLength = Annotated[
    int, _duration, _at_least(SHORTEST_LOAD_NS, "1ms", "a shorter load measures nothing"), _duration_schema
]
DetectionBudget = Annotated[
    int,
    _duration,
    _at_least(SHORTEST_DETECTION_NS, "5s", "detection takes that long"),
    _duration_schema,
]
Wait = Annotated[int, _duration, _at_least(1, "1ns", "a wait of nothing always ends in failure"), _duration_schema]
Timeout = Annotated[
    int,
    _duration,
    _at_least(1, "1ns", "with a timeout of nothing no answer is in time"),
    _check(
        lambda value: value <= LONGEST_TIMEOUT_NS,
        "must be at most 1h",
        "longer waits are past the range of the histograms",
    ),
    _duration_schema,
]
_rate_schema = _schema(
    ["number", "string"], r"^\s*[0-9]+(\.[0-9]+)?([eE]\+?[0-9]+)?\s*(/s|/min|/h)?\s*$", 5000, "5000/s"
)
Rate = Annotated[float, _from_text(parse_rate, "5000", (str, int, float)), _rate_schema]
AnyRate = Annotated[float, _from_text(parse_any_rate, "5000", (str, int, float)), _rate_schema]
RateOrShare = Annotated[
    float | Share,
    _from_text(parse_rate_or_share, "5000", (str, int, float)),
    _schema(
        ["number", "string"],
        r"^\s*([0-9]+(\.[0-9]+)?([eE]\+?[0-9]+)?\s*(/s|/min|/h)?|[0-9]+(\.[0-9]+)?\s*%\s*of\s+\S+)\s*$",
        5000,
        "5000/s",
        "50% of saturate",
    ),
]
ThinkTime = Annotated[int, _duration, _at_least(1, "1ns", "leave it out, and users do not think"), _duration_schema]
_share_schema = _schema(["number", "string"], r"^\s*[0-9]+(\.[0-9]+)?\s*%?\s*$", "2%", 0.02)
Threshold = Annotated[
    float,
    _from_text(parse_share, "2%", (str, int, float)),
    _check(lambda value: 0 < value < 1, "must be more than 0% and less than 100%", "write the least that matters: 2%"),
    _share_schema,
]
Size = Annotated[
    int,
    _from_text(parse_size, "5MB", (str, int)),
    _schema(["integer", "string"], r"^\s*[0-9]+(\.[0-9]+)?\s*(B|kB|KiB|MB|MiB)?\s*$", 256, "5MB"),
]
_OBJECTIVE = {"type": "string", "examples": ["p99 < 200ms, errors < 0.1%, achieved > 99%"]}
_OBJECTIVES = [_OBJECTIVE, {"type": "array", "items": _OBJECTIVE, "minItems": 1}]
ObjectiveSets = Annotated[
    dict[str, tuple[Objective, ...]],
    BeforeValidator(_objective_sets),
    WithJsonSchema(
        {
            "anyOf": [
                *_OBJECTIVES,
                {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": _OBJECTIVES}},
            ]
        }
    ),
]
Http = Annotated[HttpVersion, BeforeValidator(_version), WithJsonSchema({"enum": ["1.1", "2", 1.1, 2]})]
TlsEdition = Annotated[TlsVersion, BeforeValidator(_version), WithJsonSchema({"enum": ["1.2", "1.3", 1.2, 1.3]})]
Scalar = Annotated[OptionValue, BeforeValidator(_scalar)]
_VALUE = {"type": ["string", "integer", "boolean"]}
Choices = Annotated[
    list[OptionValue],
    BeforeValidator(_choices),
    WithJsonSchema({"anyOf": [_VALUE, {"type": "array", "items": _VALUE, "minItems": 1}]}),
]
