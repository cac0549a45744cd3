"""The types of the schemas' fields: strict mappings, and quantities written as text."""

import re
import shlex
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Tag, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue

from redline.errors import WrongValueError
from redline.model import HttpVersion, OptionValue, Share, TlsVersion
from redline.model.jvm import FlagSet
from redline.quantities import (
    NUMBER,
    clip,
    parse_any_rate,
    parse_duration,
    parse_memory,
    parse_rate,
    parse_share,
    parse_size,
    parse_speed,
    quoted,
)

LONGEST_TIMEOUT_NS = 3_600_000_000_000
SHORTEST_LOAD_NS = 1_000_000
SHORTEST_BUDGET_NS = 3_000_000_000
SHORTEST_DETECTION_NS = 5_000_000_000  # the minimum for `findings.warming` to call a level steady
HIGHEST_SHARE = 10.0
_CAPACITY_HINT = "write a percentage of a closed load of this suite, such as `50% of saturate`"


def _title(model: type) -> str:
    return model.__name__.removesuffix("Schema")


class Schema(BaseModel):
    """A mapping in a file: unknown keys are errors, and nothing is converted silently."""

    # Validators are built upon first use: most commands read no suite.
    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        model_title_generator=_title,
        defer_build=True,
    )


def _form(value: object) -> str:
    return "<mapping>" if isinstance(value, (dict, BaseModel)) else "<list>" if isinstance(value, list) else "<plain>"


BY_FORM = Discriminator(_form)
"""The tags of a union of a plain value, a mapping and a list. Errors do not show them."""
PLAIN, MAPPING, LIST = Tag("<plain>"), Tag("<mapping>"), Tag("<list>")


def _from_text(parse: Callable[[Any], Any], example: str, kinds: tuple[type, ...] = (str,)) -> BeforeValidator:
    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, kinds):
            number = not isinstance(value, bool) and isinstance(value, (int, float))
            message = f"`{value}` has no unit" if number else "this has the wrong type here"
            unit = example.lstrip("0123456789.")
            hint = f"write `{value}{unit}`, if that is what you mean" if number else f"write it like `{example}`"
            raise WrongValueError(message, hint)
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


def parse_rate_or_share(text: str | float) -> float | Share:
    """Parse a rate, 0 included, or a share of a closed load's capacity: `5000/s`, or `50% of saturate`, up to 1000%.

    Raises WrongValueError (a ValueError) for anything else.
    """
    if not re.search(r"%|\bof\b", str(text)):
        return parse_any_rate(text)
    match = re.fullmatch(rf"({NUMBER})\s*%\s*of\s+(\S+)", str(text).strip())
    if not match:
        raise WrongValueError(f"{quoted(text)} is not a share of a load", _CAPACITY_HINT)
    share = float(Decimal(match[1]) / 100)
    if share <= 0:
        raise WrongValueError("a rate of 0 sends nothing", _CAPACITY_HINT)
    if share > HIGHEST_SHARE:
        raise WrongValueError(f"{quoted(text)} is more than {HIGHEST_SHARE:.0%}", "write at most 1000%")
    return Share(share=share, of=match[2])


def _scalar(value: object) -> object:
    if not isinstance(value, (str, int)):
        raise WrongValueError("an option's value is a text, a whole number, or true or false", "write such a value")
    return value


_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_COLLECTOR = re.compile(r"-XX:[+-]Use(Serial|Parallel|G1|Z|Shenandoah|ConcMarkSweep|Epsilon)GC$")
_FLAGS_HINT = 'write them like `compact: "-XX:+UseCompactObjectHeaders"`'


def _flag_sets(value: object) -> tuple[FlagSet | None, ...]:
    """Sets of flags in the order written; None for an empty set."""
    if not isinstance(value, dict) or not value:
        raise WrongValueError("flags are named sets", _FLAGS_HINT)
    return tuple(_flag_set(name, flags) for name, flags in value.items())


def _flag_set(name: object, written: object) -> FlagSet | None:
    if not isinstance(name, str) or not _SAFE_NAME.fullmatch(name):
        hint = "use letters, digits, `.`, `_` and `-`, beginning with a letter or a digit"
        raise WrongValueError(f"`{clip(str(name))}` is not safe in a file name", hint)
    texts = written if isinstance(written, list) else [written]
    plain = [text for text in texts if isinstance(text, str)]
    if len(plain) < len(texts):
        raise WrongValueError("flags are a text, or a list of texts", _FLAGS_HINT)
    try:
        flags = tuple(flag for text in plain for flag in shlex.split(text))
    except ValueError as error:
        raise WrongValueError(f"{quoted(str(written))} has an unclosed quotation mark", _FLAGS_HINT) from error
    for flag in flags:
        if not flag.startswith(("-X", "-D", "--")):
            raise WrongValueError(f"`{clip(flag)}` is not a JVM flag", "flags begin with `-X`, `-D` or `--`")
        if _COLLECTOR.fullmatch(flag):
            raise WrongValueError(f"`{clip(flag)}` contradicts the option `gc`", "write it as `gc`, such as `gc: Z`")
        if flag.startswith(("-Xmx", "-Xms", "-XX:MaxHeapSize", "-XX:InitialHeapSize")):
            raise WrongValueError(f"`{clip(flag)}` contradicts the option `heap`", "write it as `heap: 512m`")
    return FlagSet(name=name, flags=flags) if flags else None


def as_list(value: object) -> object:
    """Wrap a single value in a list."""
    return value if isinstance(value, list) else [value]


def one_or_several(item: JsonSchemaValue, **limits: int) -> WithJsonSchema:
    """The JSON Schema of a value, or of a list of such values."""
    return WithJsonSchema({"anyOf": [item, {"type": "array", "items": item, **limits}]})


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
Budget = Annotated[
    int,
    _duration,
    _at_least(SHORTEST_BUDGET_NS, "3s", "a shorter comparison decides nothing"),
    _duration_schema,
]
DetectionBudget = Annotated[
    int,
    _duration,
    _at_least(SHORTEST_DETECTION_NS, "5s", "detection takes that long"),
    _duration_schema,
]
Wait = Annotated[int, _duration, _at_least(1, "1ns", "a wait of 0 always fails"), _duration_schema]
Timeout = Annotated[
    int,
    _duration,
    _at_least(1, "1ns", "with a timeout of 0 no answer is in time"),
    _check(
        lambda value: value <= LONGEST_TIMEOUT_NS,
        "must be at most 1h",
        "longer waits exceed the range of the histograms",
    ),
    _duration_schema,
]
StreamTime = Annotated[
    int,
    _duration,
    _at_least(1, "1ns", "leave it out"),
    _check(
        lambda value: value <= LONGEST_TIMEOUT_NS,
        "must be at most 1h",
        "longer times exceed the range of the histograms",
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
Speed = Annotated[
    float,
    _from_text(parse_speed, "2x", (str, int, float)),
    _schema(["number", "string"], r"^\s*[0-9]+(\.[0-9]+)?\s*x?\s*$", 2, "2x"),
]
ThinkTime = Annotated[int, _duration, _at_least(1, "1ns", "leave it out, and users do not think"), _duration_schema]
_share_schema = _schema(["number", "string"], r"^\s*[0-9]+(\.[0-9]+)?\s*%?\s*$", "2%", 0.02)
Threshold = Annotated[
    float,
    _from_text(parse_share, "2%", (str, int, float)),
    _check(lambda value: 0 < value < 1, "must be more than 0% and less than 100%", "write it like 2%"),
    _share_schema,
]
SIZE = _schema(["integer", "string"], r"^\s*[0-9]+(\.[0-9]+)?\s*(B|kB|KiB|MB|MiB)?\s*$", 256, "5MB")
Size = Annotated[int, _from_text(parse_size, "5MB", (str, int)), SIZE]
LEAST_MEMORY_BYTES = 6_000_000
Memory = Annotated[
    int,
    _from_text(parse_memory, "512MiB", (str, int)),
    _at_least(LEAST_MEMORY_BYTES, "6MB", "container engines take no less: write it like `512MiB`"),
    _schema(["integer", "string"], r"^\s*[0-9]+(\.[0-9]+)?\s*(B|kB|KiB|MB|MiB|GB|GiB)?\s*$", "512MiB", "2GiB"),
]
Http = Annotated[HttpVersion, BeforeValidator(_version), WithJsonSchema({"enum": ["1.1", "2", 1.1, 2]})]
TlsEdition = Annotated[TlsVersion, BeforeValidator(_version), WithJsonSchema({"enum": ["1.2", "1.3", 1.2, 1.3]})]
Scalar = Annotated[OptionValue, BeforeValidator(_scalar)]
CHOICES = one_or_several({"type": ["string", "integer", "boolean"]}, minItems=1)
Choices = Annotated[list[OptionValue], BeforeValidator(_choices), CHOICES]
_FLAGS = one_or_several({"type": "string"}).json_schema
FLAG_SETS = {"type": "object", "minProperties": 1, "additionalProperties": _FLAGS}
FlagSets = Annotated[tuple[FlagSet | None, ...], BeforeValidator(_flag_sets), WithJsonSchema(FLAG_SETS)]
