"""Conversations, whose answers are streams of messages: what is expected of them, and what was measured."""

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.histogram import Histogram
from redline.model.percentile import Effect, Percentile, bounded

EventKind = Literal["sse", "ndjson", "chunks", "openai", "anthropic", "messages"]

MessageMetric = Literal[
    "first-message p50",
    "first-message p75",
    "first-message p90",
    "first-message p95",
    "first-message p99",
    "first-message p99.9",
    "first-message max",
    "gap p50",
    "gap p75",
    "gap p90",
    "gap p95",
    "gap p99",
    "gap p99.9",
    "gap max",
    "slowest-gap p50",
    "slowest-gap p75",
    "slowest-gap p90",
    "slowest-gap p95",
    "slowest-gap p99",
    "slowest-gap p99.9",
    "slowest-gap max",
    "per-message p50",
    "per-message p75",
    "per-message p90",
    "per-message p95",
    "per-message p99",
    "per-message p99.9",
    "per-message max",
    "push p50",
    "push p75",
    "push p90",
    "push p95",
    "push p99",
    "push p99.9",
    "push max",
    "jitter p50",
    "jitter p75",
    "jitter p90",
    "jitter p95",
    "jitter p99",
    "jitter p99.9",
    "jitter max",
]
"""Percentiles of the times of messages that objectives and conditions are about."""

_TIMES = {
    "first-message": "first_event",
    "gap": "gaps",
    "slowest-gap": "slowest_gap",
    "per-message": "per_message",
    "push": "push",
    "jitter": "jitter",
}
MESSAGE_TIMES = tuple(_TIMES)
"""The times of messages, by the names that objectives use."""

STREAMS = "of conversations; absent if there are none"


class Counting(Frozen):
    """Which messages count: those with a value at one of these places, of one of these types, or with a match."""

    pointers: tuple[str, ...] = omitted_if_default((), "JSON Pointers to a value that is not null or empty")
    types: tuple[str, ...] = omitted_if_default((), "types of server-sent events")
    regex: str | None = omitted_if_default(None, "a regular expression that is found in it")

    def for_engine(self) -> dict[str, Any]:
        """The rule with its one key, as the engine reads it."""
        rules = {"json": list(self.pointers), "event": list(self.types), "regex": self.regex}
        return {key: value for key, value in rules.items() if value}


class MessageAmount(Frozen):
    """How much messages hold: numbers at one of these places of each, or of the conversation so far, or their bytes."""

    each: tuple[str, ...] = omitted_if_default((), "JSON Pointers to how much a message holds")
    total: tuple[str, ...] = omitted_if_default((), "JSON Pointers to how much the conversation held so far")
    is_bytes: bool = omitted_if_default(default=False, description="the bytes of messages that count")
    unit: str = omitted_if_default("", "what is counted, in words")

    def for_engine(self) -> dict[str, Any]:
        """The rule with its one key, as the engine reads it."""
        rules = {"each": list(self.each), "total": list(self.total), "bytes": self.is_bytes}
        return {key: value for key, value in rules.items() if value}


class Good(Frozen):
    """What a good conversation stays below, in nanoseconds."""

    first_message_ns: int | None = omitted_if_default(None, "from due to the first message", gt=0)
    gap_ns: int | None = omitted_if_default(None, "the slowest gap between two messages", gt=0)
    per_message_ns: int | None = omitted_if_default(None, "the time for each message after the first", gt=0)
    response_ns: int | None = omitted_if_default(None, "from due to the end", gt=0)

    @property
    def times_from_due(self) -> bool:
        """Whether it limits times that begin when a request is due, which a late client lengthens."""
        return self.first_message_ns is not None or self.response_ns is not None

    @property
    def times_between(self) -> bool:
        """Whether it limits times between messages, which have no lateness, as service times have none."""
        return self.gap_ns is not None or self.per_message_ns is not None


class Shape(Frozen):
    """A public format of conversations: what carries its messages, which count, and which message ends it."""

    events: Literal["sse", "ndjson", "chunks"]
    counting: Counting
    amount: MessageAmount
    last: dict[str, list[str]]
    errors: dict[str, list[str]] = Field(default={"json": ["/error"], "event": ["error"]})


SHAPES = {
    # Chat completions, legacy completions and responses: platform.openai.com/docs/api-reference
    "openai": Shape(
        events="sse",
        counting=Counting(
            pointers=(
                "/choices/0/delta/content",
                "/choices/0/text",
                "/delta",
                "/choices/0/delta/tool_calls",
                "/choices/0/delta/reasoning_content",
                "/choices/0/delta/reasoning",
                "/choices/0/delta/refusal",
            )
        ),
        amount=MessageAmount(total=("/usage/completion_tokens", "/response/usage/output_tokens"), unit="tokens"),
        last={"data": ["[DONE]"], "event": ["response.completed", "response.incomplete"]},
    ),
    # docs.anthropic.com/en/api/messages-streaming
    "anthropic": Shape(
        events="sse",
        counting=Counting(pointers=("/delta/text", "/delta/partial_json", "/delta/thinking")),
        amount=MessageAmount(total=("/usage/output_tokens",), unit="tokens"),
        last={"data": [], "event": ["message_stop"]},
    ),
}
"""The known shapes of conversations, by the name that a suite gives them."""


class Stream(Frozen):
    """A stream of events, and how long it is followed: to its end, unless `until` or `for_ns` end the request before.

    A time without an event longer than `stall_ns`, from the head on, is a stall. Where `stall_fails`, it ends the
    request as a timeout.
    """

    events: EventKind
    message: Counting | None = omitted_if_default(
        None, "which events are messages that count; absent: all, or as known"
    )
    amount: MessageAmount | None = omitted_if_default(None, "how much messages hold; absent: one each, or as known")
    good: Good | None = omitted_if_default(None, "what a good conversation stays below")
    until: int | None = omitted_if_default(None, "so many events complete the request", ge=1)
    for_ns: int | None = omitted_if_default(None, "the request is complete so long after the head", ge=1)
    stall_ns: int | None = omitted_if_default(None, ge=1)
    stall_fails: bool = omitted_if_default(default=False, description="whether a stall ends the request as a timeout")
    every_ns: int | None = omitted_if_default(None, "the schedule of the server, which sends a message each time", ge=1)

    @property
    def followed_ns(self) -> int:
        """How long it is followed, as far as that is known before: 0 if it is not."""
        return self.for_ns or (self.until or 0) * (self.every_ns or 0)

    @property
    def is_bounded(self) -> bool:
        """Whether the request is complete although the stream does not end."""
        return self.until is not None or self.for_ns is not None

    @property
    def unit(self) -> str:
        """What amounts count: `tokens`; empty where its messages hold none."""
        shape = SHAPES.get(self.events)
        amount = self.amount or (shape.amount if shape else None)
        if amount is None:
            return ""
        return "bytes" if amount.is_bytes else amount.unit or "amount"

    def for_engine(self) -> dict[str, Any]:
        """What the engine is told, which knows no shapes by name."""
        shape = SHAPES.get(self.events)
        counting, amount = self.message or (shape and shape.counting), self.amount or (shape and shape.amount)
        own = self.model_dump(mode="json", exclude={"message", "amount", "good"})
        rules: dict[str, Any] = {"events": shape.events if shape else self.events}
        if counting:
            rules["message"] = counting.for_engine()
        if amount:
            rules["amount"] = amount.for_engine()
        if shape:
            rules |= {"last": shape.last, "errors": shape.errors}
        if self.good:
            rules["good"] = self.good.model_dump(mode="json")
        return own | rules


class StreamTraffic(Frozen):
    """What the engine saw of streams of events."""

    begun: int = Field(default=0, description="streams that began, of the requests that were due in the phase")
    events: int = Field(default=0, description="events that arrived in this time, whenever their requests were due")
    stalls: int = Field(default=0, description="times without an event that were too long")
    first_event: Histogram = Field(description="from due to the first event, or to the end of a request without one")
    gaps: Histogram = Field(description="from an event to the next of its stream")
    counted: int | None = omitted_if_default(None, "messages that count, of the streams that began")
    aside: int = omitted_if_default(0, "messages that do not count, and arrived in this time")
    amount: int = omitted_if_default(0, "how much messages hold that arrived in this time")
    early: int = omitted_if_default(0, "streams that their server ended before their end")
    good: int = omitted_if_default(0, "streams that met all that makes one good")
    slowest_gap: Histogram | None = omitted_if_default(None, "the longest time between two messages of each stream")
    per_message: Histogram | None = omitted_if_default(None, "the time for each message of a stream after its first")
    push: Histogram | None = omitted_if_default(
        None, "the difference of our clock and the server's in each message that states it, without its sign"
    )
    jitter: Histogram | None = omitted_if_default(
        None, "how far messages are from their times on the schedule that the first of their stream began, without sign"
    )
    read_lateness: Histogram | None = omitted_if_default(
        None, "from the arrival of messages to the read that found them; empty if the kernel did not say"
    )
    blurred: int = omitted_if_default(0, "messages that were read together, late, and may have come one by one")

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
            counted=None if any(part.counted is None for part in known) else sum(part.counted or 0 for part in known),
            aside=sum(part.aside for part in known),
            amount=sum(part.amount for part in known),
            early=sum(part.early for part in known),
            good=sum(part.good for part in known),
            slowest_gap=_all_of(part.slowest_gap for part in known),
            per_message=_all_of(part.per_message for part in known),
            push=_all_of(part.push for part in known),
            jitter=_all_of(part.jitter for part in known),
            read_lateness=_all_of(part.read_lateness for part in known),
            blurred=sum(part.blurred for part in known),
        )

    def times(self, name: str) -> Histogram | None:
        """Those times of `MESSAGE_TIMES`; None where they are not known."""
        times: Histogram | None = getattr(self, _TIMES[name])
        return times

    @property
    def events_of_begun(self) -> int:
        """The messages of the streams that began, whenever they arrived: earlier runs have each one's time alone."""
        return self.first_event.count + self.gaps.count if self.counted is None else self.counted

    @property
    def blurred_share(self) -> float:
        """The share of messages that may have come one by one, though they were read together."""
        return self.blurred / max(self.events_of_begun, 1)

    def with_events_of(self, window: "StreamTraffic | None") -> "StreamTraffic":
        """The same streams, with the events of a window alone."""
        names = ("events", "aside", "amount")
        return self.model_copy(update={name: getattr(window, name) if window else 0 for name in names})


def _all_of(times: Iterable[Histogram | None]) -> Histogram | None:
    """The sum, if all know their times."""
    given = list(times)
    known = [part for part in given if part is not None]
    return Histogram.merged(known) if len(known) == len(given) else None


class StreamReport(Frozen):
    """Conversations over the used trials, or over all starts of duets, whose slices give no rate."""

    begun: int = Field(description="streams that began")
    events: int = Field(description="events that arrived in the measurement, whenever their streams began")
    events_of_begun: int = Field(description="events of the streams that began, also those after the measurement")
    events_per_s: float | None = Field(description="null in duets")
    stalls: int = Field(description="times without an event that were too long")
    first_event: tuple[Percentile, ...] = Field(description="from when a request was due to its first event; ns")
    gaps: tuple[Percentile, ...] = Field(description="from an event to the next of its stream; ns")
    slowest_gap: tuple[Percentile, ...] = omitted_if_default(
        (), "the longest time between two messages of each stream; ns"
    )
    per_message: tuple[Percentile, ...] = omitted_if_default((), "the time for each message after the first; ns")
    push: tuple[Percentile, ...] = omitted_if_default(
        (), "the one-way time of each message that states the server's clock, without its sign; ns"
    )
    jitter: tuple[Percentile, ...] = omitted_if_default(
        (), "how far each message after the first was from the schedule that the first began, without its sign; ns"
    )
    aside: int = omitted_if_default(0, "messages that arrived in the measurement and do not count")
    amount: int = omitted_if_default(0, "how much the messages hold that arrived in the measurement")
    amount_per_s: float | None = omitted_if_default(None, "absent in duets, and where messages hold no amount")
    unit: str = omitted_if_default("", "what the amount counts; absent where messages hold none")
    early: int = omitted_if_default(0, "streams that their server ended before their end")
    goodput: float | None = omitted_if_default(
        None, "the share of good streams of all that were due; absent: not asked"
    )

    def bounded(self, response: Effect | None, later: Effect | None) -> "StreamReport":
        """The same with bounds of its times, as far as findings leave those from due, and those of later messages.

        Goodput has no bound.
        """
        times = {
            "first_event": bounded(self.first_event, response),
            "gaps": bounded(self.gaps, later),
            "slowest_gap": bounded(self.slowest_gap, later),
            "per_message": bounded(self.per_message, later),
            "push": bounded(self.push, later),
            "jitter": bounded(self.jitter, later),
        }
        return self.model_copy(update=times | {"goodput": None if response or later else self.goodput})

    @property
    def unrated(self) -> "StreamReport":
        """The same without rates, which its findings hide."""
        return self.model_copy(update={"events_per_s": None, "amount_per_s": None})
