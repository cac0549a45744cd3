"""Distributions with their uncertainty: percentiles with intervals, and the difference of two servers' shares."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from redline.model.base import ROW, Frozen, omitted_if_default, omitted_where


@dataclass(frozen=True, slots=True, kw_only=True)
class BandedPercentile:
    """A share `q` of requests took no longer than `ns`, with the ends of its 95% interval, None without one."""

    __pydantic_config__ = ROW

    q: float
    ns: int
    low_ns: Annotated[int | None, omitted_where(None)] = None
    high_ns: Annotated[int | None, omitted_where(None)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBy:
    """The shares of requests that two servers answered within `ns`, and `difference`, cell minus baseline.

    `low` and `high` are the ends of the difference's 95% interval at this time alone; None for fewer than two rounds.
    """

    __pydantic_config__ = ROW

    ns: int
    cell: float
    baseline: float
    difference: float
    low: Annotated[float | None, omitted_where(None)] = None
    high: Annotated[float | None, omitted_where(None)] = None


class SharesCompared(Frozen):
    """The difference of two servers' cumulative distributions of response times, from short times to long ones."""

    cell_id: str
    baseline_id: str
    n: int = Field(description="rounds, or starts of duets, that it rests on")
    in_duets: bool = omitted_if_default(default=False, description="whether these are starts of duets")
    method: str
    unsettled: str = omitted_if_default("", "servers were not warm, for which the interval does not allow")
    points: tuple[AnsweredBy, ...]

    @property
    def farthest(self) -> AnsweredBy:
        """The point at which the two shares are farthest apart."""
        return max(self.points, key=lambda point: abs(point.difference))
