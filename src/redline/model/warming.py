"""How a server came to its steady speed, as a trial shows it."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, when_said

Warming = Literal["flat", "warmed up", "slowing down", "never steady"]


class WarmUp(Frozen):
    """What a whole trial was like, from its first request to the end of its measurement. Times count from the epoch.

    `flat`: of one level from the beginning on; `warmed up`: steady, and faster than ever before; `slowing down`:
    steady, and slower than it was before; `never steady`: it changed after the measurement had begun, or all the time.
    """

    kind: Warming
    steady_from_ns: int | None = Field(default=None, description="where its last level begins; null when never steady")
    measured_from_ns: int = Field(description="when the measurement began")
    lost: float | None = when_said(None, description="slowing down: by what share it is slower than at its best")
