"""What became of the connections of a load."""

from collections.abc import Iterable

from pydantic import Field

from redline.model.base import Frozen

REACH = "how far its connections ever came, from the warm-up on; absent in earlier recordings"


class Reach(Frozen):
    """How many connections of a load ever came so far. In a closed load, each is a user's."""

    opened: int
    asked: int = Field(description="a request was written on them")
    answered: int = Field(description="an answer came on them, right or wrong")

    @property
    def stuck(self) -> int:
        """Those on which the server never answered."""
        return max(self.asked - self.answered, 0)

    @classmethod
    def merged(cls, parts: Iterable["Reach | None"]) -> "Reach | None":
        """The sum of the parts; None if any is not known."""
        known = list(parts)
        if not known or None in known:
            return None
        sums = {name: sum(getattr(part, name) for part in known) for name in cls.model_fields}
        return cls(**sums)


class AgreedTls(Frozen):
    """The settings that the first handshake negotiated. `insecure`: the certificate was not checked."""

    version: str
    cipher: str
    alpn: str | None = None
    insecure: bool = False
