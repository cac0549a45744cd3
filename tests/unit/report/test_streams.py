"""Conversations: the counts of the measurement and of those that began in it, and their times at a glance."""

import pytest

from redline.analysis.percentiles import stream_report
from redline.model import Request
from redline.model.histogram import Histogram
from redline.model.percentile import Effect
from redline.model.streams import Good, MessageAmount, Stream, StreamTraffic
from redline.report.answer import level
from redline.report.streams import messages_text, streams_text
from tests.fakes import reports


def _streams(events: int, first: int, gaps: int) -> StreamTraffic:
    return StreamTraffic(
        begun=first,
        events=events,
        first_event=Histogram.of([2_000_000] * first),
        gaps=Histogram.of([20_000_000] * gaps),
    )


@pytest.mark.parametrize(
    ("events", "first", "gaps", "text"),
    [
        (20, 4, 16, "conversations  4, with 20 messages, 10 /s"),
        (4, 4, 16, "conversations  4, with 20 messages; 4 arrived in the measurement, 2 /s"),
        (240, 0, 0, "conversations  0, with 0 messages; 240 arrived in the measurement, 120 /s"),
    ],
    ids=["all within", "most after the last request was sent", "all of streams of the warm-up"],
)
def test_events_after_the_measurement_are_told_apart(events: int, first: int, gaps: int, text: str) -> None:
    report = stream_report([_streams(events, first, gaps)], 2.0)
    assert report
    assert report.events_of_begun == first + gaps
    assert streams_text(report) == text


def test_what_does_not_count_is_shown_apart() -> None:
    streams = _streams(20, 4, 16).model_copy(
        update={"counted": 20, "aside": 12, "amount": 30, "early": 1, "good": 3, "per_message": Histogram.of([1] * 4)}
    )
    request = Request(path="/", stream=Stream(events="openai", good=Good(gap_ns=1)))
    report = stream_report([streams], 2.0, [(request, 5), (Request(path="/plain"), 9)])
    assert report
    assert (report.goodput, report.per_message[0].ns, report.slowest_gap) == (0.6, 1, ())
    assert streams_text(report) == (
        "conversations  4, with 20 messages, 10 /s, 15 /s of tokens, 12 others, 1 ended early, 60% good"
    )


@pytest.mark.parametrize(
    ("others", "shown"),
    [
        (Stream(events="ndjson"), (30, 15.0, "tokens")),
        (Stream(events="ndjson", amount=MessageAmount(is_bytes=True)), (0, None, "")),
        (Stream(events="ndjson", amount=MessageAmount(each=("/n",))), (0, None, "")),
    ],
)
def test_amounts_of_different_units_have_no_sum(others: Stream, shown: tuple[int, float | None, str]) -> None:
    streams = _streams(20, 4, 16).model_copy(update={"amount": 30})
    asked = [Request(path="/feed", stream=others), Request(path="/chat", stream=Stream(events="openai"))]
    report = stream_report([streams], 2.0, [(request, 5) for request in asked])
    assert report
    assert (report.amount, report.amount_per_s, report.unit) == shown


def test_jitter_is_known_where_a_schedule_is() -> None:
    streams = _streams(40, 4, 36).model_copy(update={"jitter": Histogram.of([5_000_000] * 36)})
    report = stream_report([streams], 2.0)
    assert report
    assert {point.q: point.ns for point in report.jitter}[0.5] == pytest.approx(5_000_000, rel=0.01)
    assert report.bounded(None, "unknown").jitter == ()
    good = report.model_copy(update={"goodput": 0.6})
    assert [good.bounded(*effects).goodput for effects in ((None, None), (None, "at most"), ("at most", None))] == [
        *(0.6, None, None)
    ]
    assert (good.unrated.events_per_s, good.unrated.goodput) == (None, 0.6)
    merged = StreamTraffic.merged([streams, streams])
    assert merged
    assert merged.jitter is not None
    assert merged.jitter.count == 72
    earlier = stream_report([_streams(40, 4, 36)], 2.0)
    assert earlier
    assert earlier.jitter == ()


def test_messages_that_say_when_they_were_sent_are_said_to_be_late() -> None:
    report = stream_report([_streams(40, 4, 36)], 2.0)
    assert report
    late = report.model_copy(update={"push": report.gaps})
    assert messages_text(late) == "20 /s, one way p50 20.0 ms"
    assert messages_text(late.model_copy(update={"jitter": report.gaps})) == (
        "20 /s, one way p50 20.0 ms, jitter p50 20.0 ms"
    )


def test_the_answer_about_a_server_of_conversations_is_about_its_messages() -> None:
    cell = reports.alone().cells[0]
    assert " answers " in level(cell)
    report = stream_report([_streams(40, 4, 36)], 2.0)
    said = level(cell.model_copy(update={"streams": report}))
    assert said.startswith(f"{cell.server} messages 20 /s, first p50 2.00 ms, gap p50 20.0 ms, CPU per ")
    assert " answers " not in said


def test_earlier_recordings_have_no_slowest_gaps() -> None:
    now = _streams(20, 4, 16).model_copy(update={"counted": 20, "slowest_gap": Histogram.of([1] * 4)})
    merged = StreamTraffic.merged([now, _streams(1, 1, 0)])
    assert merged
    assert (merged.counted, merged.slowest_gap, merged.events_of_begun) == (None, None, 21)


@pytest.mark.parametrize(
    ("first", "gaps", "response", "text"),
    [
        (4, 16, None, "10 /s, first p50 2.00 ms, gap p50 20.0 ms"),
        (40, 160, None, "10 /s, first p50 2.00 ms, p75 2.00 ms, gap p50 20.0 ms, p90 20.0 ms"),
        (4_000, 40_000, None, "10 /s, first p50 2.00 ms, p99 2.00 ms, gap p50 20.0 ms, p99 20.0 ms"),
        (4, 16, "at most", "10 /s, first p50 at most 2.00 ms, gap p50 20.0 ms"),
        (4, 16, "unknown", "10 /s, gap p50 20.0 ms"),
        (0, 0, None, "10 /s"),
    ],
)
def test_a_glance_has_the_median_and_the_deepest_percentile_that_is_known(
    first: int, gaps: int, response: Effect | None, text: str
) -> None:
    report = stream_report([_streams(20, first, gaps)], 2.0)
    assert report
    assert messages_text(report.bounded(response, None)) == text


def test_without_a_rate_a_glance_has_the_times() -> None:
    report = stream_report([_streams(20, 4, 16)], None)
    assert report
    assert messages_text(report) == "first p50 2.00 ms, gap p50 20.0 ms"
