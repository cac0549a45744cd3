"""The claims of a suite: what somebody published about its cells."""

import math
import re
from collections.abc import Callable
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from redline.errors import WrongValueError
from redline.model import Metric
from redline.model.claim import Claim
from redline.quantities import NUMBER, did_you_mean, parse_any_rate, parse_duration, parse_size, quoted
from redline.schema.types import Schema

TOLERANCE = 0.1
"""A number agrees with what is published within this share: the error that the authors of Tapir's study give theirs."""

CPU = "cpu"
_METRICS = (CPU, *(metric.value for metric in Metric if metric is not Metric.CPU_PER_REQUEST))
_HINT = "write a number, `< 1`, `> 1` or `0.35 to 0.45`"


def _metric(value: object) -> Metric:
    if value == CPU:
        return Metric.CPU_PER_REQUEST
    if not isinstance(value, str) or value not in _METRICS:
        hint = did_you_mean(str(value), _METRICS) or f"known: {', '.join(_METRICS)}"
        raise WrongValueError(f"{quoted(str(value))} is not a metric", hint)
    return Metric(value)


def _expected(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise WrongValueError("not what was published", _HINT)
    return " ".join(str(value).split())


def expectation(text: str, read: Callable[[str], float]) -> tuple[float, float | None]:
    """What agrees with a published number, from least to most: `0.8` (±10%), `< 1`, `> 1`, `0.35 to 0.45`.

    `read` reads a number, or raises WrongValueError, as this does.
    """
    if sign := re.match(r"([<>])\s*", text):
        bound = read(text[sign.end() :])
        return (0.0, bound) if sign[1] == "<" else (bound, None)
    low, to, high = text.partition(" to ")
    if not to:
        about = read(text)
        return about * (1 - TOLERANCE), about * (1 + TOLERANCE)
    if read(low) >= read(high):
        raise WrongValueError(f"{quoted(text)} is empty", "write the smaller number first")
    return read(low), read(high)


def parse_ratio(text: str) -> float:
    """A ratio above 0, such as `0.8`. Raises WrongValueError (a ValueError) for anything else."""
    if not re.fullmatch(NUMBER, text.strip()) or not math.isfinite(float(text)) or float(text) <= 0:
        raise WrongValueError(f"{quoted(text)} is not a ratio", _HINT)
    return float(text)


def _level_of(metric: Metric) -> Callable[[str], float]:
    match metric.unit:
        case "1/s":
            return parse_any_rate
        case "B":
            return parse_size
        case "B/s":
            return lambda text: parse_size(text.removesuffix("/s"))
        case _:
            return parse_duration


class ClaimSchema(Schema):
    """A published claim: a ratio of two cells, the level of one, or why this suite cannot show it."""

    claim: str = Field(min_length=1, description="what was published, in words", examples=["GETs at 80% of vanilla"])
    id: str = Field(default="", description="its number in the publication", examples=["T2"])
    of: str | None = Field(
        default=None, description="a cell: server.scenario.load", examples=["http4s.tapir.SimpleGet.users128"]
    )
    to: str | None = Field(
        default=None, description="the cell that it is divided by", examples=["http4s.vanilla.SimpleGet.users128"]
    )
    metric: Annotated[
        Metric, BeforeValidator(_metric), WithJsonSchema({"enum": [*_METRICS], "default": Metric.THROUGHPUT.value})
    ] = Field(default=Metric.THROUGHPUT, description="what it is about", examples=["p99"])
    ratio: Annotated[str, BeforeValidator(_expected), WithJsonSchema({"type": ["number", "string"]})] | None = Field(
        default=None,
        description="`of` over `to`: a number (±10%), `< 1`, `> 1` or `0.35 to 0.45`",
        examples=[0.8, "> 1"],
    )
    level: Annotated[str, BeforeValidator(_expected), WithJsonSchema({"type": ["number", "string"]})] | None = Field(
        default=None, description="the level of `of`, with its unit", examples=["< 1ms", "5ms to 8ms"]
    )
    missing: str = Field(default="", description="why this suite cannot show it", examples=["it takes two machines"])

    @model_validator(mode="after")
    def _whole(self) -> Self:
        numbers = [key for key in ("ratio", "level") if getattr(self, key) is not None]
        if self.missing:
            if numbers or self.of or self.to:
                raise WrongValueError("a claim that is missing has no cells", "remove `missing`, or all other keys")
            return self
        if self.of is None or len(numbers) != 1:
            hint = "write `{claim: …, of: CELL, to: CELL, ratio: 0.8}`, `{claim: …, of: CELL, level: < 1ms}`"
            raise WrongValueError("this claim does not say what to compare", f"{hint} or `{{claim: …, missing: why}}`")
        if (self.to is None) == (self.ratio is not None):
            message = "a ratio needs `to`" if self.ratio is not None else "a level is of one cell"
            raise WrongValueError(message, "write `of`, `to` and `ratio`, or `of` and `level`", field=numbers[0])
        try:
            self.claimed()
        except WrongValueError as error:
            raise WrongValueError(error.message, error.hint, field=numbers[0]) from None
        return self

    def claimed(self) -> Claim:
        """The claim in the model. Raises WrongValueError for a number that is none."""
        expected = self.ratio or self.level or ""
        read = parse_ratio if self.ratio else _level_of(self.metric)
        low, high = expectation(expected, read) if expected else (0.0, None)
        return Claim(
            id=self.id,
            text=self.claim,
            metric=self.metric,
            of=self.of or "",
            to=self.to or "",
            expected=expected,
            low=low,
            high=high,
            missing=self.missing,
        )
