"""The base of all model classes: frozen, strict about unknown keys, with a JSON form."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

from redline.visible import visible

F = TypeVar("F", bound="Frozen")


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

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The value with some fields changed, which are not validated. Raises TypeError for unknown fields."""
        if unknown := (update or {}).keys() - type(self).model_fields.keys():
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return super().model_copy(update=update, deep=deep)

    def model_dump_json(self, **options: Any) -> str:
        """The value as JSON. Text that cannot be encoded, such as a file name that is not UTF-8, is made `visible`."""
        try:
            return super().model_dump_json(**options)
        except PydanticSerializationError:
            indent = options.pop("indent", None)
            separators = (",", ":") if indent is None else None
            content = _visible(self.model_dump(mode="json", **options))
            return json.dumps(content, indent=indent, separators=separators, ensure_ascii=False)


def lean(values: Iterable[F]) -> tuple[F, ...]:
    """The same values, of which neighbours with the same fields share the set of their names: half of the memory."""
    made, shared, share = tuple(values), set[str](), object.__setattr__
    for value in made:
        if value.__pydantic_fields_set__ != shared:
            shared = value.__pydantic_fields_set__
        share(value, "__pydantic_fields_set__", shared)
    return made


def _visible(content: Any) -> Any:
    if isinstance(content, str):
        return visible(content)
    if isinstance(content, list):
        return [*map(_visible, content)]
    if isinstance(content, dict):
        return {_visible(key): _visible(value) for key, value in content.items()}
    return content


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
