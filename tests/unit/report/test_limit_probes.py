"""The table of a search's probes: what decides about conversations stands in it."""

from redline.analysis.percentiles import stream_report
from redline.document.blocks import Table
from redline.model import Histogram, Request, Stream, StreamTraffic
from redline.model.limits import LimitProbe
from redline.model.streams import Good
from redline.render.csvfile import search_rows
from redline.report.limit_probes import probes_table
from tests.fakes.limits import by_hand, client_limited


def conversed() -> LimitProbe:
    """A probe of ten conversations of ten messages each, of which nine were good."""
    streams = StreamTraffic(
        begun=200,
        events=2000,
        counted=2000,
        first_event=Histogram.of([20_000_000] * 200),
        gaps=Histogram.of([5_000_000] * 1800),
        good=180,
    )
    asked = Request(path="/chat", stream=Stream(events="openai", good=Good(gap_ns=1)))
    report = stream_report([streams], 2.0, [(asked, 200)])
    return client_limited().model_copy(update={"streams": report})


def column(table: Table, head: str) -> list[object]:
    at = [column.title for column in table.columns].index(head)
    return [row[at] for row in table.rows]


def test_messages_of_probes_are_shown_where_any_had_some() -> None:
    for brief in (False, True):
        table = probes_table([conversed(), client_limited().model_copy(update={"rate_per_s": 1})], brief=brief)
        assert column(table, "messages") == [
            "",
            "1.00 k/s, first p50 20.0 ms, p95 20.0 ms, gap p50 5.00 ms, p99 5.00 ms, 90% good",
        ]
        assert "messages" not in {column.title for column in probes_table([client_limited()], brief=brief).columns}


def test_messages_of_probes_are_in_the_csv_without_bounds() -> None:
    probe = conversed()
    report = by_hand()
    cell = report.cells[0].model_copy(update={"probes": (probe,)})
    (row,) = (row for row in search_rows(report.model_copy(update={"cells": (cell,)})) if row["row"] == "probe")
    assert (row["messages_per_s"], row["goodput"]) == (1000.0, 0.9)
    assert isinstance(row["gap_p99_ns"], int)
    assert abs(row["gap_p99_ns"] - 5_000_000) < 5_000
    assert probe.streams is not None
    bounded = probe.model_copy(update={"streams": probe.streams.bounded("at most", None)})
    cell = cell.model_copy(update={"probes": (bounded,)})
    (row,) = (row for row in search_rows(report.model_copy(update={"cells": (cell,)})) if row["row"] == "probe")
    assert "first_message_p50_ns" not in row
