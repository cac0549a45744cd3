"""Distributions with their uncertainty: percentiles with intervals, and the difference of two servers' shares."""

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default


class BandedPercentile(Frozen):
    """A share `q` of requests took no longer than `ns`, with the ends of its 95% interval, None without one."""

    q: float
    ns: int
    low_ns: int | None = omitted_if_default(None)
    high_ns: int | None = omitted_if_default(None)


class AnsweredBy(Frozen):
    """The shares of requests that two servers answered within `ns`, and `difference`, cell minus baseline.

    `low` and `high` are the ends of the difference's 95% interval at this time alone; None for fewer than two rounds.
    """

    ns: int
    cell: float
    baseline: float
    difference: float
    low: float | None = omitted_if_default(None)
    high: float | None = omitted_if_default(None)


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
