"""Bodies that are written as JSON or as the fields of a form, and become texts with placeholders."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated
from urllib.parse import quote_plus

from pydantic import BeforeValidator, JsonValue, WithJsonSchema

from redline.errors import WrongValueError
from redline.model.template import for_each_literal

CONTENT_TYPES = {"json_body": "application/json", "form": "application/x-www-form-urlencoded"}
"""The kinds of content that bodies of these fields have."""


def _form_texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(item, (str, int, float)) for item in values):
        raise WrongValueError("a field of a form is a text, a number, or a list of them", "send other values by `json`")
    return [str(item).lower() if isinstance(item, bool) else str(item) for item in values]


_FIELD = {"type": ["string", "number", "boolean"]}
FormField = Annotated[
    list[str],
    BeforeValidator(_form_texts),
    WithJsonSchema({"anyOf": [_FIELD, {"type": "array", "items": _FIELD}]}),
]


def texts_of(value: JsonValue) -> Iterator[str]:
    """All texts in JSON, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_of(item)


def json_template(value: JsonValue) -> str:
    """JSON as a text without spaces, in which placeholders stay as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def form_template(fields: Mapping[str, Sequence[str]]) -> str:
    """A form as `application/x-www-form-urlencoded`, in which placeholders stay as they are."""
    return "&".join(f"{_encoded(name)}={_encoded(value)}" for name, values in fields.items() for value in values)


def _encoded(text: str) -> str:
    return for_each_literal(text, quote_plus)
