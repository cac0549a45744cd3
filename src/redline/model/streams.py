"""Answers that are streams of events: what is expected of them, and what was measured."""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.histogram import Histogram
from redline.model.percentile import Effect, Percentile, bounded

EventKind = Literal["sse", "ndjson", "chunks"]

STREAMS = "of answers that are streams of events; absent if there are none"


class Stream(Frozen):
    """A stream of events, and how long it is followed: to its end, unless `until` or `for_ns` end the request before.

    A time without an event longer than `stall_ns`, from the head on, is a stall. Where `stall_fails`, it ends the
    request as a timeout.
    """

    events: EventKind
    until: int | None = omitted_if_default(None, "so many events complete the request", ge=1)
    for_ns: int | None = omitted_if_default(None, "the request is complete so long after the head", ge=1)
    stall_ns: int | None = omitted_if_default(None, ge=1)
    stall_fails: bool = omitted_if_default(default=False, description="whether a stall ends the request as a timeout")

    @property
    def is_bounded(self) -> bool:
        """Whether the request is complete although the stream does not end."""
        return self.until is not None or self.for_ns is not None


class StreamTraffic(Frozen):
    """What the engine saw of streams of events."""

    begun: int = Field(default=0, description="streams that began, of the requests that were due in the phase")
    events: int = Field(default=0, description="events that arrived in this time, whenever their requests were due")
    stalls: int = Field(default=0, description="times without an event that were too long")
    first_event: Histogram = Field(description="from due to the first event")
    gaps: Histogram = Field(description="from an event to the next of its stream")

    @classmethod
    def merged(cls, parts: Iterable["StreamTraffic | None"]) -> Self | None:
        """The sums of the parts; None without any."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        return cls(
            begun=sum(part.begun for part in known),
            events=sum(part.events for part in known),
            stalls=sum(part.stalls for part in known),
            first_event=Histogram.merged(part.first_event for part in known),
            gaps=Histogram.merged(part.gaps for part in known),
        )

    @property
    def events_of_begun(self) -> int:
        """The events of the streams that began, whenever they arrived: first ones, and those after a gap."""
        return self.first_event.count + self.gaps.count

    def with_events_of(self, window: "StreamTraffic | None") -> "StreamTraffic":
        """The same streams, with the events of a window alone."""
        return self.model_copy(update={"events": window.events if window else 0})


class StreamReport(Frozen):
    """Streams of events over the used trials, or over all starts of duets, whose slices give no rate."""

    begun: int = Field(description="streams that began")
    events: int = Field(description="events that arrived in the measurement, whenever their streams began")
    events_of_begun: int = Field(description="events of the streams that began, also those after the measurement")
    events_per_s: float | None = Field(description="null in duets")
    stalls: int = Field(description="times without an event that were too long")
    first_event: tuple[Percentile, ...] = Field(description="from when a request was due to its first event; ns")
    gaps: tuple[Percentile, ...] = Field(description="from an event to the next of its stream; ns")

    def bounded(self, response: Effect | None, service: Effect | None) -> "StreamReport":
        """The same with bounds of its times, as far as findings leave response times, and service times."""
        times = {"first_event": bounded(self.first_event, response), "gaps": bounded(self.gaps, service)}
        return self.model_copy(update=times)
