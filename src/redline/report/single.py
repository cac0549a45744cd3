"""The page of a single server under a single load: on its first screen its numbers, and how they came about."""

from collections.abc import Callable, Iterable, Iterator

from redline.document import format as fmt
from redline.document.blocks import Section
from redline.document.figures import Tile, Tiles
from redline.model import CellReport, Metric, Report
from redline.report.results import Level, level_name, level_score

_SHOWN: tuple[Level, ...] = (Metric.THROUGHPUT, Metric.P50, Metric.P99, "max", Metric.CPU_PER_REQUEST)


def is_single(report: Report) -> bool:
    """Whether there is one cell, and nothing that it is compared with."""
    return len(report.cells) == 1 and not report.comparisons and not report.run.same


def tiles(report: Report) -> Tiles | None:
    """The numbers of the only cell; None if there are several, or nothing was counted."""
    return Tiles((*_tiles(report.cells[0]),)) if is_single(report) and report.cells[0].counts.due else None


def _tiles(cell: CellReport) -> Iterator[Tile]:
    outcomes = cell.counts.outcomes
    yield Tile("requests", fmt.integer(cell.counts.due))
    failed = f"{fmt.percent(outcomes.errors / outcomes.total)} of all" if outcomes.errors else ""
    yield Tile("failed", fmt.integer(outcomes.errors), failed, is_bad=outcomes.errors > 0)
    for level in _SHOWN:
        if (score := level_score(cell, level)).value not in ("", fmt.NOT_KNOWN):
            yield Tile(level_name(level), score.value, score.spread)


def of_single(build: Callable[[Report], Iterable[Section]]) -> Callable[[Report], Iterable[Section]]:
    """The sections of a report of a single cell; none of others."""
    return lambda report: build(report) if is_single(report) else ()


def of_several(build: Callable[[Report], Iterable[Section]]) -> Callable[[Report], Iterable[Section]]:
    """The sections of a report of several cells; none of a single one."""
    return lambda report: () if is_single(report) else build(report)
