"""The base of all model classes: frozen, strict about unknown keys, with a JSON form."""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

from redline.visible import visible

_NOT_ASCII = re.compile(rb"[\x7f-\xff]+")
"""What JSON may hold that is not visible: it escapes all other control characters."""


class Frozen(BaseModel):
    """An immutable value with a published JSON form; an unknown key is an error."""

    # Validators are built upon first use: no command needs those of all models.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        ser_json_bytes="base64",
        val_json_bytes="base64",
        defer_build=True,
    )

    def model_post_init(self, _context: Any, /) -> None:
        """Share the set of its fields' names with all values of its class: a set for each is a quarter of a report."""
        object.__setattr__(self, "__pydantic_fields_set__", _names(type(self)))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The value with some fields changed, which are not validated. Raises TypeError for unknown fields."""
        if unknown := (update or {}).keys() - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return super().model_copy(update=update, deep=deep)

    def json_bytes(self, *, indent: int | None = None) -> bytes:
        """The value as JSON in UTF-8, without the text in between, and with all its text `visible`."""
        try:
            content: bytes = self.__pydantic_serializer__.to_json(self, indent=indent)
        except PydanticSerializationError:
            content = self.model_dump_json(indent=indent).encode()
        if content.isascii() and b"\x7f" not in content:
            return content
        return _NOT_ASCII.sub(lambda match: visible(match[0].decode()).encode(), content)

    def model_dump_json(self, **options: Any) -> str:
        """The value as JSON. Text that cannot be encoded, such as a file name that is not UTF-8, is made `visible`."""
        try:
            return super().model_dump_json(**options)
        except PydanticSerializationError:
            indent = options.pop("indent", None)
            separators = (",", ":") if indent is None else None
            content = _visible(self.model_dump(mode="json", **options))
            return json.dumps(content, indent=indent, separators=separators, ensure_ascii=False)


ROW = ConfigDict(extra="forbid", allow_inf_nan=False)
"""The configuration of frozen dataclasses with slots: values of which a report has tens of thousands."""


@cache
def _names(model: type[BaseModel]) -> set[str]:
    """The names of a model's fields. A set, since pydantic copies it as one; nobody changes it."""
    return set(model.model_fields)


def _visible(content: Any) -> Any:
    if isinstance(content, str):
        return visible(content)
    if isinstance(content, list):
        return [*map(_visible, content)]
    if isinstance(content, dict):
        return {_visible(key): _visible(value) for key, value in content.items()}
    return content


def omitted_where(default: Any, description: str | None = None) -> Any:
    """The annotation of a dataclass's field that is in the JSON form only if it differs from its `default`."""
    return Field(description=description, exclude_if=lambda value: bool(value == default))


def omitted_if_default(default: Any, description: str | None = None, **more: Any) -> Any:
    """A field that is in the JSON form only if it differs from `default`; `more` goes to pydantic's Field.

    Files from before the field existed thus have the same form as new files, and a cell that does not use the field
    keeps its id.
    """
    if default == {}:  # pydantic would make a deep copy of it each time
        more |= {"default_factory": dict, "json_schema_extra": {"default": {}}}
    else:
        more |= {"default": default}
    return Field(description=description, exclude_if=lambda value: bool(value == default), **more)
