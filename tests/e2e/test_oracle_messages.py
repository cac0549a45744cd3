"""Chat completions against the oracle: its tokens alone count, as many and as far apart as it sent them."""

from pathlib import Path

import pytest

from bench.rig import AskedOf, drive, running
from redline.model import Closed, Load, Request, Scenario, Stream, StreamTraffic
from redline.model.catalogue import HttpVersion
from redline.model.streams import Good
from tests.e2e.test_oracle_events import GAP_MS, MS, REQUESTS, SECOND, US

pytestmark = [pytest.mark.e2e, pytest.mark.truth]

EVENTS, TOKENS = 20, 17
"""A role before the tokens, their number and [DONE] after them, each a gap after the one before."""

FIRST_NS = 2 * GAP_MS * MS


def conversed(oracle: Path, http: HttpVersion, good: Good | None = None) -> StreamTraffic:
    """What one user saw of chat completions."""
    request = Request(path="/chat", stream=Stream(events="openai", good=good))
    load = Load(name="closed", shape=Closed(users=1), duration_ns=60 * SECOND, count=REQUESTS)
    timing = ("--events", str(EVENTS), "--event-gap", f"{GAP_MS}ms", "--tokens")
    with running(oracle, "null", *timing) as server:
        traffic = drive(server, load, AskedOf(Scenario(name="Chat", request=request), http), warmup_ns=0)
    assert traffic.counts.outcomes.ok == traffic.counts.due == REQUESTS
    assert traffic.streams is not None
    arrived = StreamTraffic.merged(part.streams for part in traffic.intervals)
    assert arrived is not None
    assert (arrived.events, arrived.amount) == (REQUESTS * TOKENS, REQUESTS * TOKENS)
    assert arrived.aside == REQUESTS * (EVENTS - TOKENS)
    return traffic.streams


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_tokens_are_those_that_were_sent(oracle: Path, http: HttpVersion) -> None:
    """The role, which comes a gap earlier, is no first token; usage and [DONE] are none, either."""
    streams = conversed(oracle, http, Good(first_message_ns=FIRST_NS))
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
    """Medians within 20 us of what was sent; the first token by what the oracle and the loopback take, too."""
    streams = conversed(oracle, http)
    assert streams.per_message is not None
    assert abs(streams.gaps.quantile_ns(0.5) - GAP_MS * MS) <= 20 * US
    assert abs(streams.per_message.quantile_ns(0.5) - GAP_MS * MS) <= 20 * US
    assert 0 <= streams.first_event.quantile_ns(0.5) - FIRST_NS <= 200 * US
