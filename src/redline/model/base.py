"""What every word of the model shares: frozen, strict about unknown keys, JSON in and out."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    """An immutable value with a published JSON form; an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_bytes="base64", val_json_bytes="base64"
    )


def when_said(default: Any, **more: Any) -> Any:
    """A field that is in the JSON form only when it differs from `default`; `more` is for pydantic's Field.

    What was saved before the word existed is then still of one form with what is saved now, and a cell that does not
    use the word keeps its id.
    """
    return Field(default=default, exclude_if=lambda value: bool(value == default), **more)
