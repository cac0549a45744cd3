"""JSON with its numbers as they were written: `1.10`, `-0` and `1E400` stay so. Pure."""

import json
import re
from typing import Any, Self

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


class WrittenNumber(float):
    """A number whose text differs from what its value is written as."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str | float) -> Self:
        """The number of a text."""
        made = super().__new__(cls, text)
        made.text = str(text)
        return made


def real_number(text: str) -> float:
    """The number of a text with a fraction or an exponent, which knows that text if it is JSON."""
    value = float(text)
    return WrittenNumber(text) if repr(value) != text and _NUMBER.fullmatch(text) else value


def whole_number(text: str) -> int | float:
    """The number of a text of digits; only `-0` differs from its value. Raises ValueError for thousands of digits."""
    return WrittenNumber(text) if text == "-0" else int(text)


def json_text(value: Any, *, spaces: bool = True) -> str:
    """The value as JSON. Raises ValueError for what JSON cannot express, such as infinity."""
    comma, colon = (", ", ": ") if spaces else (",", ":")
    if isinstance(value, WrittenNumber):
        return value.text
    if isinstance(value, dict):
        pairs = [f"{json.dumps(str(key), ensure_ascii=False)}{colon}{_inner(value[key], spaces)}" for key in value]
        return f"{{{comma.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{comma.join([_inner(item, spaces) for item in value])}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _inner(value: Any, spaces: bool) -> str:  # noqa: FBT001 - as `json_text` was asked
    return json_text(value, spaces=spaces)
