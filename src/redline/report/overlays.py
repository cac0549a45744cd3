"""Variants that differ in a JVM setting, overlaid: percentiles by collector, JDK or flags."""

from collections.abc import Iterator
from dataclasses import dataclass

from redline.document.blocks import Column, Section, Table, line
from redline.document.format import PERCENTILES, point_sign
from redline.model import CellReport, Report
from redline.report.curves import has_curves
from redline.report.views import Group, groups

_LAID_OVER = ("gc", "jdk", "flags", "heap")
"""Settings whose variants are overlaid; if several differ, the first."""


@dataclass(frozen=True)
class Overlay:
    """Cells of a scenario and load that differ in a single setting, by its value; `server` has all other settings."""

    server: str
    axis: str
    cells: dict[str, CellReport]

    @property
    def title(self) -> str:
        """`http4s.vanilla+jdk=25 by gc`."""
        return f"{self.server} by {self.axis}"


def overlays(group: Group) -> tuple[Overlay, ...]:
    """Return the variants with valid percentiles, by server; empty if no JVM setting varies."""
    left = [cell for cell in group.cells if has_curves(cell)]
    made = list[Overlay]()
    for axis in _LAID_OVER:
        by_server: dict[str, dict[str, CellReport]] = {}
        for cell in left:
            if axis in cell.settings:
                name, *tokens = cell.server.split("+")
                others = "+".join([name, *(token for token in tokens if token.partition("=")[0] != axis)])
                by_server.setdefault(others, {})[cell.settings[axis]] = cell
        made += [Overlay(server, axis, those) for server, those in by_server.items() if len(those) > 1]
        laid = {cell.cell_id for overlay in made for cell in overlay.cells.values()}
        left = [cell for cell in left if cell.cell_id not in laid]
    return tuple(made)


def values(report: Report) -> tuple[str, ...]:
    """Return the overlaid values: a collector has the same colour in all plots."""
    every = (value for group in groups(report) for overlay in overlays(group) for value in overlay.cells)
    return tuple(dict.fromkeys(every))


def percentile_table(overlay: Overlay, title: str = "") -> Table:
    """Response times from the median to the slowest request, a column per value; too few requests leave gaps."""
    columns = [{point.q: point_sign(point) for point in cell.response_percentiles} for cell in overlay.cells.values()]
    rows = (
        (f"{100 * share:.6g}%", *(known.get(share, "") for known in columns))
        for share in PERCENTILES
        if any(share in known for known in columns)
    )
    values_ = (Column(value, "right") for value in overlay.cells)
    return Table((Column("percentile"), *values_), tuple(rows), line((title, "strong")))


def overlay_sections(report: Report) -> Iterator[Section]:
    """A table per server, scenario and load; empty if no JVM setting varies."""
    tables = [
        percentile_table(overlay, f"{group.title} · {overlay.title}")
        for group in groups(report)
        for overlay in overlays(group)
    ]
    if tables:
        yield Section("Response time by percentile", tuple(tables))
