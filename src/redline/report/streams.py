"""Streams of events: how many events came, and the times to the first and between them."""

from collections.abc import Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import Fold, Medium, Prose, Section, ServerCell, Table
from redline.model import Percentile, Report, StreamReport
from redline.report.parts import server_cell, server_table
from redline.report.views import colours, groups

_SHARES = (0.5, 0.9, 0.99, 1.0)
_NAMES = tuple(fmt.quantile_name(q) for q in _SHARES)
_COUNTS = ("streams", "events", "per second", "stalls")
_HEADS = (*_COUNTS, *(f"first event {name}" for name in _NAMES), *(f"between events {name}" for name in _NAMES))
_TEXT = (
    "Over all used trials together, or all starts of a duet, whose slices give no rate. The time to the first event "
    "runs from when its request was due. The events counted are those that arrived in the measurement, whenever their "
    "streams began."
)


def stream_sections(report: Report) -> Iterator[Section]:
    """A table for each group of cells, with a row for each request that is a stream; empty without streams."""
    series, folds = colours(report), list[Fold]()
    for group in groups(report):
        rows: list[tuple[ServerCell, tuple[str, ...]]] = []
        for cell in group.cells:
            own: dict[str, StreamReport | None] = {request.request: request.streams for request in cell.requests}
            shown = (own if cell.requests else {cell.scenario: cell.streams}) if cell.shows_numbers else {}
            server = server_cell(cell, series[cell.server])
            rows += [(server, (name, *_row(streams))) for name, streams in shown.items() if streams]
        if rows:
            folds.append(Fold(group.heading(), tuple(_tables(rows)), not folds))
    if folds:
        yield Section("Streams of events", (Prose.of([_TEXT], "dim", on=Medium.WRITTEN), *folds), anchor="streams")


def _tables(rows: Sequence[tuple[ServerCell, tuple[str, ...]]]) -> Iterator[Table]:
    """Yield a table, for a terminal in parts, because a line does not hold all columns."""
    left, end = ("request",), 1 + len(_COUNTS)
    middle = end + len(_SHARES)
    yield server_table("", ("request", *_HEADS), rows, left=left, on=Medium.WRITTEN)
    for title, heads, part in (
        ("", _COUNTS, slice(1, end)),
        ("To the first event", _NAMES, slice(end, middle)),
        ("Between events", _NAMES, slice(middle, None)),
    ):
        cut = [(server, (row[0], *row[part])) for server, row in rows]
        yield server_table(title, ("request", *heads), cut, left=left, on=Medium.TERMINAL)


def streams_text(streams: StreamReport) -> str:
    """`streams  12, with 240 events, 80.0 /s, 3 stalls`.

    The rate is of the events in the measurement, so both counts are shown where streams last longer than it.
    """
    per_s = f", {fmt.rate(streams.events_per_s)}" if streams.events_per_s is not None else ""
    stalls = f", {fmt.count(streams.stalls, 'stall')}" if streams.stalls else ""
    in_time = f"; {fmt.integer(streams.events)} arrived in the measurement" * (
        streams.events != streams.events_of_begun
    )
    events = f"{fmt.count(streams.events_of_begun, 'event')}{in_time}"
    return f"streams  {fmt.integer(streams.begun)}, with {events}{per_s}{stalls}"


def _row(streams: StreamReport) -> Iterator[str]:
    yield from map(fmt.integer, (streams.begun, streams.events))
    yield "" if streams.events_per_s is None else fmt.rate(streams.events_per_s)
    yield fmt.integer(streams.stalls)
    yield from _times(streams.first_event)
    yield from _times(streams.gaps)


def _times(points: tuple[Percentile, ...]) -> Iterator[str]:
    """The percentiles for which there are enough events."""
    known = {point.q: fmt.point_sign(point) for point in points}
    return (known.get(q, "") for q in _SHARES)
