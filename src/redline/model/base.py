"""What every word of the model shares: frozen, strict about unknown keys, JSON in and out."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value with a published JSON form; an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, ser_json_bytes="base64", val_json_bytes="base64"
    )
