"""What a report says of the requests of a scenario that has several."""

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.estimate import Estimate
from redline.model.percentile import Effect, Percentile, bounded
from redline.model.streams import STREAMS, StreamReport
from redline.model.traffic import Outcomes


class RequestReport(Frozen):
    """One of several requests of a scenario, in all used trials together; nothing of it is compared by itself."""

    request: str = Field(description="its name, else `GET /items`: unique among the requests")
    name: str = omitted_if_default("")
    method: str
    path: str
    rate_per_s: float | None = Field(description="its part of the throughput; null in duets, which give no levels")
    response: tuple[Percentile, ...] = Field(description="from when each request was due; ns")
    first_byte: tuple[Percentile, ...] = omitted_if_default(
        (), "from when each request was due to the first byte of its answer; ns; absent where that is the last, too"
    )
    outcomes: Outcomes
    answers: dict[str, int] = Field(default={}, description="complete answers by status")
    body_bytes: int = Field(description="bytes of the bodies of complete answers")
    streams: StreamReport | None = omitted_if_default(None, STREAMS)

    def bounded(self, leaves: Effect | None, later: Effect | None, *, rated: bool) -> "RequestReport":
        """The same with bounds of its times, as far as findings leave them, and those of `later` messages.

        Its rate only if it is `rated`.
        """
        streams = self.streams and self.streams.bounded(leaves, later)
        if streams and not rated:
            streams = streams.unrated
        return self.model_copy(
            update={
                "rate_per_s": self.rate_per_s if rated else None,
                "response": bounded(self.response, leaves),
                "first_byte": bounded(self.first_byte, leaves),
                "streams": streams,
            }
        )

    @property
    def answered(self) -> int:
        """Complete answers, right or wrong."""
        return sum(self.answers.values())


class RequestRatio(Frozen):
    """The response time of a request as a ratio to the baseline's, over the starts of duets that have it."""

    cell_id: str
    baseline_id: str
    request: str
    quantile: float
    ratio: Estimate


class RequestCpu(Frozen):
    """The part of a mix's CPU time that a request has."""

    request: str
    of_requests: float = Field(description="its share of the requests, by its weight")
    share: Estimate = Field(description="its share of the CPU time")


class MixCpu(Frozen):
    """How a server's CPU time in a mix divides among its requests, where duets also measured all of them by themselves.

    There are no shares if the requests by themselves need surely another CPU time than the mix, or for a `reason`.
    """

    cell_id: str
    parts_over_mix: Estimate | None = Field(
        description="CPU time of the requests by themselves, over that of the mix; null if there is a `reason`"
    )
    reason: str = omitted_if_default("", "why nothing is known of it, such as servers that were not warm")
    requests: tuple[RequestCpu, ...] = Field(description="in the order of the scenario; empty if it is not known")
