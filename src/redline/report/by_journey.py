"""The journeys of a scenario: how many began and how they ended, and the response times of the completed ones."""

from collections.abc import Iterator

from redline.document import format as fmt
from redline.document.blocks import Block, Column, Line, Medium, Prose, Table, line
from redline.model import JourneyReport

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


def journey_tables(journeys: JourneyReport | None, title: str = "") -> Iterator[Block]:
    """Yield the table of a load's journeys, and which steps ended them: for a terminal in two parts."""
    if journeys is None:
        return
    heading = line((f"{title}, journeys" if title else "Journeys", "strong"))
    known = {point.q: fmt.point_sign(point) for point in journeys.response}
    times = {fmt.quantile_name(q): known[q] for q in QUANTILES if q in known}
    rate = {} if journeys.begun_per_s is None else {"begun per second": fmt.rate(journeys.begun_per_s)}
    counts = rate | {
        "begun": fmt.integer(journeys.begun),
        "completed": fmt.integer(journeys.completed),
        "abandoned": fmt.integer(journeys.ended_early),
        "unfinished": fmt.integer(journeys.unfinished),
    }
    yield _table(counts, heading, Medium.TERMINAL)
    if times:
        yield _table(times, (), Medium.TERMINAL)
    yield _table(counts | times, heading, Medium.WRITTEN)
    said = [
        _by_step("abandoned at", journeys.abandoned),
        _by_step("left out by their conditions:", journeys.skipped),
        f"`once` taken again {fmt.integer(journeys.again)} times" if journeys.again else "",
        "every row was used, so no other journey could begin" if journeys.rows_used_up else "",
    ]
    yield Prose.of(tuple(text for text in said if text))


def _by_step(what: str, counts: dict[str, int]) -> str:
    steps = ", ".join(f"{step} ({fmt.integer(count)})" for step, count in counts.items())
    return f"{what} {steps}" if steps else ""


def _table(cells: dict[str, str], heading: Line, on: Medium) -> Table:
    return Table(tuple(Column(name, "right") for name in cells), (tuple(cells.values()),), heading, on=on)
