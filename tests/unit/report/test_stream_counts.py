"""The counts of streams of events: of the measurement, and of the streams that began in it."""

import pytest

from redline.analysis.percentiles import stream_report
from redline.model.histogram import Histogram
from redline.model.streams import StreamTraffic
from redline.report.streams import streams_text


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
        (20, 4, 16, "streams  4, with 20 events, 10 /s"),
        (4, 4, 16, "streams  4, with 20 events; 4 arrived in the measurement, 2 /s"),
        (240, 0, 0, "streams  0, with 0 events; 240 arrived in the measurement, 120 /s"),
    ],
    ids=["all within", "most after the last request was sent", "all of streams of the warm-up"],
)
def test_events_after_the_measurement_are_told_apart(events: int, first: int, gaps: int, text: str) -> None:
    report = stream_report([_streams(events, first, gaps)], 2.0)
    assert report
    assert report.events_of_begun == first + gaps
    assert streams_text(report) == text
