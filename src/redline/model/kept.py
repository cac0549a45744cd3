"""Single requests that the engine keeps of a load: the slowest, and some whose traces are sampled."""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.failures import FailedOutcome

MOST_SLOWEST = 10
KEPT = "single requests of the measurement; absent in earlier recordings"
_TRACE_ID = slice(3, 35)
_PARENT_ID = slice(36, 52)


class KeptRequest(Frozen):
    """A request of the measurement. Times count from the epoch of the load."""

    request: int | None = omitted_if_default(None, "its place in the scenario, from 0; absent if there is one alone")
    due_ns: int
    written_ns: int | None = Field(description="null if it was never written")
    first_ns: int | None = Field(description="the first byte of its answer; null if that was never complete")
    end_ns: int = Field(description="the last byte of its answer, or when its outcome was known")
    outcome: Literal["ok"] | FailedOutcome
    status: int | None = Field(description="null without a complete answer, and of messages")
    traceparent: str = omitted_if_default("", "the trace context that was sent with it")

    @property
    def response_ns(self) -> int:
        """From when it was due to its end."""
        return self.end_ns - self.due_ns

    @property
    def trace_id(self) -> str:
        """The id of its trace in hexadecimal; empty without one."""
        return self.traceparent[_TRACE_ID]

    @property
    def parent_id(self) -> str:
        """The id of its span, the parent of those of the server, in hexadecimal; empty without one."""
        return self.traceparent[_PARENT_ID]

    @property
    def is_sampled(self) -> bool:
        """Whether its trace is sampled."""
        return self.traceparent.endswith("01")


class KeptRequests(Frozen):
    """The single requests that are kept of a load."""

    slowest: tuple[KeptRequest, ...] = Field(default=(), description="the slowest first")
    sampled: tuple[KeptRequest, ...] = omitted_if_default((), "of those whose traces are sampled, a random sample")

    @classmethod
    def merged(cls, parts: Iterable["KeptRequests | None"]) -> Self | None:
        """Those of the whole load; None if no part kept any."""
        known = [part for part in parts if part is not None]
        slowest = sorted((kept for part in known for kept in part.slowest), key=lambda kept: -kept.response_ns)
        sampled = tuple(kept for part in known for kept in part.sampled)
        return cls(slowest=tuple(slowest[:MOST_SLOWEST]), sampled=sampled) if known else None


class SlowRequest(Frozen):
    """One of the slowest requests of a cell."""

    trial: int = omitted_if_default(
        0, "which of `trials` it is of, or start of a duet, from 1; absent if there is one alone"
    )
    request: str = omitted_if_default("", "which of several it is, as in `requests`")
    at_ns: int = Field(description="when it was due, from the start of the measurement")
    response_ns: int
    outcome: Literal["ok"] | FailedOutcome
    status: int | None = Field(description="null without a complete answer, and of messages")
    trace_id: str = omitted_if_default("", "if it had a trace context")
