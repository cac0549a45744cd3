"""The base of all model classes: frozen, strict about unknown keys, with a JSON form."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


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


def omitted_if_default(default: Any, **more: Any) -> Any:
    """A field that is in the JSON form only if it differs from `default`; `more` is for pydantic's Field.

    So files from before the field existed have the same form as new ones, and a cell that does not use the field
    keeps its id.
    """
    return Field(default=default, exclude_if=lambda value: bool(value == default), **more)
