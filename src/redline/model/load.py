"""How hard the load presses: Load, closed or open."""

from typing import Annotated, Literal

from pydantic import Field

from redline.model.base import Frozen


class Closed(Frozen):
    """`users` users, each with one connection, who ask again as soon as they are answered."""

    kind: Literal["closed"] = "closed"
    users: int = Field(ge=1)


class Open(Frozen):
    """Requests fall due at `rate_per_s` whatever the server does, over at most `connections` connections."""

    kind: Literal["open"] = "open"
    rate_per_s: float = Field(gt=0)
    arrivals: Literal["uniform", "poisson"] = "poisson"
    connections: int = Field(ge=1)


class Load(Frozen):
    """A named load and how long it is measured."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    shape: Annotated[Closed | Open, Field(discriminator="kind")]
    duration_ns: int = Field(gt=0)

    @property
    def connections(self) -> int:
        """How many connections the load may hold at once."""
        return self.shape.users if isinstance(self.shape, Closed) else self.shape.connections
