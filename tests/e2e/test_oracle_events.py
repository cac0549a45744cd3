"""Streams of events against the oracle: as many as it sent, and as far apart."""

from pathlib import Path

import pytest

from bench.rig import AskedOf, drive, running
from redline.model import Closed, Load, Request, Scenario, Stream, StreamTraffic, Traffic
from redline.model.catalogue import HttpVersion
from redline.model.streams import EventKind

pytestmark = [pytest.mark.e2e, pytest.mark.truth]

US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
REQUESTS, EVENTS, GAP_MS = 40, 20, 2
FORMS: list[tuple[EventKind, HttpVersion, int | None]] = [
    ("sse", "1.1", None),
    ("ndjson", "1.1", None),
    ("sse", "2", None),
    ("chunks", "2", None),
    ("sse", "1.1", EVENTS // 2),
    ("ndjson", "2", EVENTS // 2),
]
"""What an event is, the version of HTTP, and after how many events a request is complete.

The oracle may send events that are due together in one frame: how many chunks there are in HTTP/2 is not known.
"""


def followed(oracle: Path, kind: EventKind, http: HttpVersion, until: int | None) -> Traffic:
    """The traffic of one user, who follows streams from the first event to the last that counts."""
    stream = Stream(events=kind, until=until)
    scenario = Scenario(name="Events", request=Request(path="/events", stream=stream))
    load = Load(name="closed", shape=Closed(users=1), duration_ns=60 * SECOND, count=REQUESTS)
    lines = ("--ndjson",) if kind == "ndjson" else ()
    with running(oracle, "null", "--events", str(EVENTS), "--event-gap", f"{GAP_MS}ms", *lines) as server:
        return drive(server, load, AskedOf(scenario, http), warmup_ns=0)


def streams_of(traffic: Traffic) -> StreamTraffic:
    assert traffic.counts.outcomes.ok == traffic.counts.due == REQUESTS
    assert traffic.streams is not None
    return traffic.streams


@pytest.mark.parametrize(("kind", "http", "until"), [form for form in FORMS if form[0] != "chunks"])
def test_events_are_those_that_were_sent(oracle: Path, kind: EventKind, http: HttpVersion, until: int | None) -> None:
    traffic = followed(oracle, kind, http, until)
    streams, each = streams_of(traffic), until or EVENTS
    assert streams.begun == streams.first_event.count == REQUESTS
    assert streams.gaps.count == REQUESTS * (each - 1)
    assert sum(part.streams.events for part in traffic.intervals if part.streams) == REQUESTS * each
    # No event is seen before it was sent: the first leaves a gap after the request's arrival, the last so many.
    assert streams.first_event.quantile_ns(0) >= GAP_MS * MS
    assert traffic.response.quantile_ns(0) >= GAP_MS * MS * each


@pytest.mark.upper_bound
@pytest.mark.parametrize(("kind", "http", "until"), FORMS)
def test_gaps_are_those_that_were_sent(oracle: Path, kind: EventKind, http: HttpVersion, until: int | None) -> None:
    """The median within 20 us. What an event is late, the next gap is shorter: the median is that of what was sent."""
    streams = streams_of(followed(oracle, kind, http, until))
    assert abs(streams.gaps.quantile_ns(0.5) - GAP_MS * MS) <= 20 * US
