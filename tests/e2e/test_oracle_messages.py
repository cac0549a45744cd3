"""Chat completions against the oracle: its tokens alone count, as many and as far apart as it sent them."""

import statistics
from pathlib import Path

import pytest

from bench.rig import AskedOf, drive, running
from redline.model import Closed, Load, Request, Scenario, Stream, StreamTraffic, Traffic
from redline.model.catalogue import HttpVersion
from redline.model.streams import Good
from tests.e2e.test_oracle_events import GAP_MS, MS, REQUESTS, SECOND, US

pytestmark = [pytest.mark.e2e, pytest.mark.truth]

EVENTS, TOKENS = 20, 17
"""A role before the tokens, their number and [DONE] after them, each a gap after the one before."""

FIRST_NS = 2 * GAP_MS * MS


def conversation(oracle: Path, http: HttpVersion, good: Good | None = None) -> Traffic:
    """What one user saw of chat completions."""
    request = Request(path="/chat", stream=Stream(events="openai", good=good))
    load = Load(name="closed", shape=Closed(users=1), duration_ns=60 * SECOND, count=REQUESTS)
    timing = ("--events", str(EVENTS), "--event-gap", f"{GAP_MS}ms", "--tokens")
    with running(oracle, "null", *timing) as server:
        traffic = drive(server, load, AskedOf(Scenario(name="Chat", request=request), http), warmup_ns=0)
    assert traffic.counts.outcomes.ok == traffic.counts.due == REQUESTS
    arrived = StreamTraffic.merged(part.streams for part in traffic.intervals)
    assert arrived is not None
    assert (arrived.events, arrived.amount) == (REQUESTS * TOKENS, REQUESTS * TOKENS)
    assert arrived.aside == REQUESTS * (EVENTS - TOKENS)
    return traffic


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_tokens_are_those_that_were_sent(oracle: Path, http: HttpVersion) -> None:
    """The role, which comes a gap earlier, is no first token; usage and [DONE] are none, either."""
    streams = conversation(oracle, http, Good(first_message_ns=FIRST_NS)).streams
    assert streams is not None
    assert (streams.begun, streams.counted) == (REQUESTS, REQUESTS * TOKENS)
    assert (streams.early, streams.good) == (0, 0), "no first token comes before it is sent"
    assert streams.first_event.quantile_ns(0) >= FIRST_NS
    assert streams.gaps.count == REQUESTS * (TOKENS - 1)
    for times in (streams.slowest_gap, streams.per_message):
        assert times is not None
        assert times.count == REQUESTS


@pytest.mark.upper_bound
@pytest.mark.parametrize("http", ["1.1", "2"])
def test_times_are_those_that_were_sent(oracle: Path, http: HttpVersion) -> None:
    """Medians within 20 us of what was sent; the first token, from the head on, later by the oracle's lateness, too.
    The medians of three tries are judged, because the machine may do something else during one of them.
    """
    tries = [medians_of(conversation(oracle, http)) for _ in range(3)]
    gap, per_message, first = (statistics.median(values) for values in zip(*tries, strict=True))
    assert abs(gap - GAP_MS * MS) <= 20 * US
    assert abs(per_message - GAP_MS * MS) <= 20 * US
    resolved = FIRST_NS / 1000  # three digits of a histogram
    assert -resolved <= first - FIRST_NS <= 200 * US


def medians_of(traffic: Traffic) -> tuple[int, int, int]:
    """The gap, the time per message, and from the head of the answer to the first token."""
    streams, head = traffic.streams, traffic.first_byte
    assert streams is not None
    assert streams.per_message is not None
    assert head is not None
    first = streams.first_event.quantile_ns(0.5) - head.quantile_ns(0.5)
    return streams.gaps.quantile_ns(0.5), streams.per_message.quantile_ns(0.5), first
