"""The engine's events become traffic: the examples of the protocol do, contradicting events do not."""

import json
from pathlib import Path
from typing import Any

import pytest

from redline.driving.protocol import Transcript
from redline.errors import DriveError
from redline.model import Histogram

PROTOCOL = (Path(__file__).parents[3] / "docs" / "reference" / "engine-protocol.md").read_text()
STARTED: dict[str, Any] = json.loads(next(line for line in PROTOCOL.splitlines() if '"event":"started"' in line)[1:-1])
ONE = Histogram.of([1_000_000.0]).encode()
NONE = Histogram().encode()
OUTCOMES = [
    *("ok", "unexpected_status", "unexpected_body", "malformed", "connect", "tls", "reset", "closed", "refused"),
    *("timeout", "in_flight", "unsent"),
]
COUNTS = [
    *("due", "sent", "completed", "late", "waited", "retried", "resent", "reconnects", "handshakes"),
    *("resumed", "bytes_sent", "bytes_received", "saturated", "exhausted"),
]


def seen(due: int) -> dict[str, Any]:
    """What happened in a slice of time, with every key that the protocol has."""
    histogram = ONE if due else NONE
    outcomes = dict.fromkeys(OUTCOMES, 0) | {"ok": due}
    counts = dict.fromkeys(COUNTS, 0) | {"due": due, "sent": due, "completed": due, "handshakes": 1, "resumed": 1}
    signed = {"negative": histogram, "positive": NONE}
    return {
        "counts": {**counts, "status": {"2xx": due}, "outcomes": outcomes},
        "response": histogram,
        "service": histogram,
        "lateness": histogram,
        "handshake": ONE,
        "one_way": {"to_server": signed, "from_server": {"negative": NONE, "positive": histogram}},
        "engine_cpu_ns": 5,
    }


def interval(phase: str, index: int, due: int) -> dict[str, Any]:
    times = {"start_ns": index * 100, "end_ns": (index + 1) * 100}
    return {"event": "interval", "phase": phase, "index": index, **times, **seen(due)}


RESULT = {"event": "result", "ended": "complete", "measure_start_ns": 100, "measure_end_ns": 200, **seen(1)}


def read(*events: dict[str, Any]) -> Transcript:
    transcript = Transcript()
    for event in events:
        transcript.read(json.dumps(event))
    return transcript


def test_all_that_the_protocol_reports_is_kept() -> None:
    intervals = [interval("warmup", 0, 1), interval("measure", 1, 1), interval("drain", 2, 0)]
    traffic = read(STARTED, *intervals, RESULT).traffic()
    assert traffic is not None
    assert traffic.engine.backend == "io_uring"
    assert traffic.engine.processes == 1
    assert traffic.tls is not None
    assert (traffic.tls.version, traffic.tls.alpn, traffic.tls.insecure) == ("1.3", "h2", False)
    assert traffic.counts.handshakes == traffic.counts.resumed == 1
    assert traffic.handshake is not None
    assert traffic.handshake.count == 1
    assert traffic.all_handshakes is not None
    assert traffic.all_handshakes.count == 3
    assert traffic.measured_one_way is not None
    assert traffic.measured_one_way.to_server.quantiles_ns((0.5,))[0] < 0
    assert traffic.measured_one_way.from_server.count == 1
    assert type(traffic).model_validate_json(traffic.model_dump_json()) == traffic


def test_without_tls_and_timestamps_none_of_it_is_there() -> None:
    def less(event: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in event.items() if key not in ("handshake", "one_way", "tls")}

    traffic = read(less(STARTED), less(interval("measure", 0, 1)), less(RESULT)).traffic()
    assert traffic is not None
    assert traffic.tls is None
    assert traffic.all_handshakes is None
    assert traffic.measured_one_way is None
    assert not {"tls", "handshake", "one_way"} & set(traffic.model_dump())


def test_one_way_times_without_a_sum_are_those_of_the_measured_intervals() -> None:
    short = {key: value for key, value in RESULT.items() if key != "one_way"}
    traffic = read(STARTED, interval("warmup", 0, 1), interval("measure", 1, 1), short).traffic()
    assert traffic is not None
    assert traffic.measured_one_way is not None
    assert traffic.measured_one_way.to_server.count == 1


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({**STARTED, "format": "redline.engine/2"}, "redline.engine/2"),
        ({**interval("measure", 0, 1), "mood": "good"}, "mood"),
        ({**interval("measure", 0, 1), "handshake": "junk"}, "handshake"),
        ({**interval("measure", 0, 1), "one_way": {"to_server": {"negative": ONE}}}, "one_way"),
    ],
)
def test_what_is_not_of_the_format_is_an_error(event: dict[str, Any], says: str) -> None:
    with pytest.raises(DriveError, match=says):
        read(event)


def test_counts_that_the_format_does_not_have_are_an_error() -> None:
    wrong = interval("measure", 0, 1)
    wrong["counts"]["outcomes"]["bored"] = 1
    with pytest.raises(DriveError, match="bored"):
        read(wrong)


@pytest.mark.parametrize("kind", ["bad_job", "connect", "limit", "internal"])
def test_an_error_is_reported_with_its_hint(kind: str) -> None:
    message = "65000 descriptors are allowed, 250003 connections are asked for"
    with pytest.raises(DriveError, match="65000") as caught:
        read({"event": "error", "kind": kind, "message": message, "hint": "ulimit -Hn"})
    assert caught.value.hint == "ulimit -Hn"


def test_the_outcomes_are_those_of_the_protocol() -> None:
    section = PROTOCOL.split("### Outcomes")[1].split("Limits:")[0]
    assert all(f"`{kind}`" in section for kind in OUTCOMES)


def test_what_came_of_a_load_without_a_result_is_kept_and_the_rest_of_its_requests_was_in_flight() -> None:
    cut = interval("measure", 2, 1)
    cut["counts"]["due"] = 3
    transcript = read(STARTED, interval("warmup", 0, 1), interval("measure", 1, 1), cut)
    assert transcript.traffic() is None
    traffic = transcript.traffic_so_far()
    assert traffic is not None
    assert (traffic.ended, len(traffic.intervals)) == ("deadline", 3)
    assert (traffic.measure_start_ns, traffic.measure_end_ns, traffic.engine_cpu_ns) == (100, 300, 10)
    counts = traffic.counts
    assert (counts.due, counts.outcomes.ok, counts.outcomes.in_flight, counts.status) == (4, 2, 2, {"2xx": 2})
    assert traffic.response.count == 4
    assert type(traffic).model_validate_json(traffic.model_dump_json()) == traffic


def test_a_load_of_which_nothing_was_measured_has_no_traffic() -> None:
    assert read(STARTED, interval("warmup", 0, 1)).traffic_so_far() is None
    assert read(interval("measure", 0, 1)).traffic_so_far() is None
