"""How a server reached its steady speed in a trial."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default

Warming = Literal["flat", "warmed up", "slowing down", "never steady"]


class WarmUp(Frozen):
    """The timeline of a trial, from its first request to the end of its measurement. Times count from the epoch.

    `flat`: one level from the beginning on; `warmed up`: steady, and as fast as ever; `slowing down`: steady, and
    slower than before; `never steady`: it changed after the measurement had begun, or all the time.
    """

    kind: Warming
    steady_from_ns: int | None = Field(default=None, description="where its last level begins; null if never steady")
    measured_from_ns: int = Field(description="when the measurement began")
    lost: float | None = omitted_if_default(
        None, description="if slowing down: by what share it is slower than at its best"
    )
