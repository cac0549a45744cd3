"""Conversations: how many messages came, and the times to the first and between them."""

from collections.abc import Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import Fold, Medium, Prose, Section, ServerCell, Table
from redline.model import Percentile, Report, StreamReport
from redline.quantities import percent
from redline.report.parts import server_cell, server_table
from redline.report.views import colours, groups

_MEDIAN, _DEEP = 0.5, 0.99
_SHARES = (0.5, 0.9, 0.99, 1.0)
_NAMES = tuple(fmt.quantile_name(q) for q in _SHARES)
_TIMES = {
    "first message": "To the first message",
    "between messages": "Between messages",
    "slowest gap": "The slowest gap of each conversation",
    "per message": "For each message after the first",
    "one way": "From the server's clock in each message to ours",
    "jitter": "Off the server's schedule, which the first message of a conversation began",
}
_TEXT = (
    "Over all used trials together, or all starts of a duet, whose slices give no rate. The time to the first message "
    "runs from when its request was due; what never came is as old as it was at the end. The slowest gap is of each "
    "conversation, and the time per message that after its first. The messages counted are those that arrived in the "
    "measurement, whenever their conversations began; others, such as comments and the role of a speaker, do not count."
)


def stream_sections(report: Report) -> Iterator[Section]:
    """A table for each group of cells, with a row for each request that is a conversation; empty without any."""
    series, folds = colours(report), list[Fold]()
    for group in groups(report):
        rows: list[tuple[ServerCell, dict[str, str]]] = []
        for cell in group.cells:
            own: dict[str, StreamReport | None] = {request.request: request.streams for request in cell.requests}
            shown = (own if cell.requests else {cell.scenario: cell.streams}) if cell.shows_numbers else {}
            server = server_cell(cell, series[cell.server])
            rows += [(server, {"request": name} | _row(streams)) for name, streams in shown.items() if streams]
        if rows:
            folds.append(Fold(group.heading(), tuple(_tables(rows)), not folds))
    if folds:
        yield Section("Messages", (Prose.of([_TEXT], "dim", on=Medium.WRITTEN), *folds), anchor="streams")


def _tables(rows: Sequence[tuple[ServerCell, dict[str, str]]]) -> Iterator[Table]:
    """Yield a table of what is known of any row, for a terminal in parts, because a line does not hold all columns."""
    heads = tuple(head for head in rows[0][1] if any(row[head] for _, row in rows))

    def part(title: str, shown: dict[str, str], on: Medium) -> Table:
        cut = [(server, tuple(row[head] for head in shown)) for server, row in rows]
        return server_table(title, tuple(shown.values()), cut, left=("request",), on=on)

    yield part("", {head: head for head in heads}, Medium.WRITTEN)
    yield part("", {head: head for head in heads if not head.startswith(tuple(_TIMES))}, Medium.TERMINAL)
    for times, title in _TIMES.items():
        shown = {f"{times} {name}": name for name in _NAMES if f"{times} {name}" in heads}
        if shown:
            yield part(title, {"request": "request"} | shown, Medium.TERMINAL)


def streams_text(streams: StreamReport) -> str:
    """`conversations  12, with 240 messages, 80.0 /s, 960 tokens /s, 36 others, 3 stalls, 2 ended early, 98% good`.

    The rate is of the messages in the measurement, so both counts are shown where conversations go on longer than it.
    """
    per_s = f", {fmt.rate(streams.events_per_s)}" if streams.events_per_s is not None else ""
    stalls = f", {fmt.count(streams.stalls, 'stall')}" if streams.stalls else ""
    in_time = f"; {fmt.integer(streams.events)} arrived in the measurement" * (
        streams.events != streams.events_of_begun
    )
    messages = f"{fmt.count(streams.events_of_begun, 'message')}{in_time}"
    amount = f", {fmt.rate(streams.amount_per_s)} of {streams.unit}" if streams.amount_per_s is not None else ""
    others = f", {fmt.count(streams.aside, 'other')}" if streams.aside else ""
    early = f", {fmt.integer(streams.early)} ended early" if streams.early else ""
    good = f", {percent(streams.goodput)} good" if streams.goodput is not None else ""
    return f"conversations  {fmt.integer(streams.begun)}, with {messages}{per_s}{amount}{others}{stalls}{early}{good}"


def messages_text(streams: StreamReport) -> str:
    """`768 /s, first p50 81.6 ms, p99 91.9 ms, gap p50 20.9 ms, p99 28.0 ms`, as far as it is known.

    Of messages that say when they were sent: how late they were, and how far off their schedule, if they have one.
    """
    parts = [] if streams.events_per_s is None else [fmt.rate(streams.events_per_s)]
    times = (("first", streams.first_event), ("gap", streams.gaps))
    for name, points in (("one way", streams.push), ("jitter", streams.jitter)) if streams.push else times:
        if shown := at_a_glance(points):
            parts.append(f"{name} {', '.join(f'{fmt.quantile_name(p.q)} {fmt.point_words(p)}' for p in shown)}")
    return ", ".join(parts)


def at_a_glance(points: Sequence[Percentile]) -> tuple[Percentile, ...]:
    """The median, and the deepest percentile up to p99 that is known."""
    return (
        tuple(point for point in points if point.q == _MEDIAN)
        + tuple(point for point in points if _MEDIAN < point.q <= _DEEP)[-1:]
    )


def _row(streams: StreamReport) -> dict[str, str]:
    """The texts by their heads; empty where there is nothing."""
    known = {
        "conversations": fmt.integer(streams.begun),
        "messages": fmt.integer(streams.events),
        "per second": "" if streams.events_per_s is None else fmt.rate(streams.events_per_s),
        "others": fmt.integer(streams.aside) if streams.aside else "",
        "amount": f"{fmt.integer(streams.amount)} {streams.unit}" if streams.amount else "",
        "amount per second": "" if streams.amount_per_s is None else fmt.rate(streams.amount_per_s),
        "stalls": fmt.integer(streams.stalls),
        "ended early": fmt.integer(streams.early) if streams.early else "",
        "good": "" if streams.goodput is None else percent(streams.goodput),
    }
    early = (streams.first_event, streams.gaps, streams.slowest_gap, streams.per_message)
    all_times = (*early, streams.push, streams.jitter)
    for times, points in zip(_TIMES, all_times, strict=True):
        signs = {point.q: fmt.point_sign(point) for point in points}
        known |= {f"{times} {name}": signs.get(q, "") for q, name in zip(_SHARES, _NAMES, strict=True)}
    return known
