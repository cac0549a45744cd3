"""What is asked of a server and what it must answer: Scenario, Request, Expected."""

import hashlib
import random
from typing import Literal

from pydantic import Field, model_validator

from redline.model.base import Frozen


class Body(Frozen):
    """A request body: `text`, `raw` bytes (base64 in JSON), or `size` bytes made from `seed`.

    It is built before any clock starts.
    """

    text: str | None = None
    raw: bytes | None = None
    size: int | None = Field(default=None, ge=0, le=64 * 1024 * 1024)
    fill: Literal["bytes", "text"] = "bytes"
    seed: int = 1

    @model_validator(mode="after")
    def _one_source(self) -> "Body":
        if sum(source is not None for source in (self.text, self.raw, self.size)) != 1:
            raise ValueError("give one of `text`, `raw` and `size`")
        return self

    def content(self) -> bytes:
        """The bytes to send; the same seed gives the same bytes."""
        if self.text is not None:
            return self.text.encode()
        if self.raw is not None:
            return self.raw
        rng = random.Random(self.seed)  # noqa: S311 - reproducible filler, not a secret
        size = self.size or 0
        if self.fill == "bytes":
            return rng.randbytes(size)
        letters = b"abcdefghijklmnopqrstuvwxyz0123456789"
        return bytes(letters[byte % len(letters)] for byte in rng.randbytes(size))


class Expected(Frozen):
    """The answer that is right.

    Before the load all of it is compared. During the load `under_load` says how much of every response is: its status,
    its status and length, or its status and the SHA-256 of its body.
    """

    status: int = Field(default=200, ge=200, le=599)
    body: str | None = None
    length: int | None = Field(default=None, ge=0)
    under_load: Literal["status", "length", "hash"] = "length"

    @property
    def body_length(self) -> int | None:
        """Bytes of the expected body, or None when any length is right."""
        return len(self.body.encode()) if self.body is not None else self.length

    @property
    def body_sha256(self) -> str | None:
        """Hex SHA-256 of the expected body, or None when its bytes are not known."""
        return hashlib.sha256(self.body.encode()).hexdigest() if self.body is not None else None


class Request(Frozen):
    """One HTTP request and its expected answer."""

    method: str = Field(default="GET", pattern=r"^[A-Z]+$")
    path: str = Field(default="/", pattern=r"^/[!-~]*$")
    headers: dict[str, str] = {}
    body: Body | None = None
    expect: Expected = Expected()


class Scenario(Frozen):
    """An exchange with a name. `requires` names the server options without which it cannot be answered."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    about: str = ""
    request: Request
    requires: dict[str, str | int | bool] = {}
