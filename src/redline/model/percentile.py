"""Points of distributions of times, and those that are left out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from redline.model.base import ROW, Frozen, omitted_if_default, omitted_where
from redline.model.estimate import Metric

Effect = Literal["unknown", "at most", "at least"]
"""What an invalid finding leaves of a number: nothing, or a bound from above or below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentile:
    """A point of a latency distribution: a share `q` of requests took no longer than `ns`.

    It may be a bound: a late engine only lengthens response times, so what was measured is `at most` what they were.
    """

    __pydantic_config__ = ROW

    q: float
    ns: Annotated[int, Field(description="the time, or the `bound`")]
    bound: Annotated[
        Literal["", "at most", "at least"], omitted_where("", "what `ns` is, if the time itself is not known")
    ] = ""
    at_least_ns: Annotated[int | None, omitted_where(None, "of an upper bound: a lower one")] = None


def bounded(points: Iterable[Percentile], leaves: Effect | None) -> tuple[Percentile, ...]:
    """The points as bounds, as far as a finding `leaves` them: all if it is None, and none if they are not known."""
    if leaves is None:
        return tuple(points)
    return () if leaves == "unknown" else tuple(Percentile(q=point.q, ns=point.ns, bound=leaves) for point in points)


class TooFew(Frozen):
    """A percentile that is left out, because fewer than 10 requests are beyond it."""

    metric: Metric
    needs: int = Field(description="number of requests that it needs")
    missing: int = Field(description="how many of them are missing")


TimeName = Literal["first byte", "handshake", "upgrade", "to server", "from server"]
"""The other times: `upgrade` is from the request that opens a WebSocket to its answer."""


class OtherTime(Frozen):
    """A time other than response and service time, over all used trials.

    `to server` and `from server` are differences of two clocks and may be negative. They are no finer than
    `resolution_ns` of the server's timestamps, and off by up to `clock_bound_ns` if the clocks are of two hosts.
    """

    name: TimeName
    count: int
    p50_ns: int
    p99_ns: int | None = Field(description="null if fewer than 10 lie beyond it")
    max_ns: int
    resolution_ns: int | None = None
    clock_bound_ns: int = omitted_if_default(0)
    percentiles: tuple[Percentile, ...] = omitted_if_default(
        (), "the whole distribution, as deep as its count supports; absent in earlier reports"
    )

    @property
    def is_one_way(self) -> bool:
        """Whether it is a difference of two clocks."""
        return self.name in {"to server", "from server"}

    @property
    def points(self) -> tuple[Percentile, ...]:
        """The whole distribution; of an earlier report the median, p99 and maximum that it has."""
        if self.percentiles:
            return self.percentiles
        known = ((0.5, self.p50_ns), (0.99, self.p99_ns), (1.0, self.max_ns))
        return tuple(Percentile(q=q, ns=ns) for q, ns in known if ns is not None)
