"""The page's answers at a glance: costs and effects as coloured tables and bars, and rankings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redline.model import CellReport, Metric, Ranking, Report
from redline.report import format as fmt
from redline.report.document import ChangeCell, Table
from redline.report.render.html.bars import Bars, Scale, place_bar
from redline.report.sections.boards import Board, ServerPair, Workload, cost_boards, refusals, steps, worth_showing
from redline.report.sections.costs import board_table, rank_text, server_in, unranked
from redline.report.sections.views import common_load
from redline.suite.load_text import is_open

_OPEN_AT_MOST = 48
"""So many numbers are shown unfolded; of more, the first load is, and the others are a click away."""


_RANKINGS_OPEN = 8
"""So many rankings are shown unfolded; of more, those of the first load are."""


@dataclass(frozen=True)
class Panel:
    """The bars of one column, one for each server; or, of a server that stands alone, one for each column."""

    title: str
    names: tuple[str, ...]
    changes: tuple[ChangeCell, ...]
    bars: Bars


@dataclass(frozen=True)
class LoadView:
    """One load, or all when `load` is empty: bars by setting, and the same numbers with their intervals as a table."""

    load: str
    load_text: str
    panels: tuple[tuple[str, tuple[Panel, ...]], ...]
    table: Table
    open: bool


@dataclass(frozen=True)
class BoardView:
    """One metric of one question. `matrix` stands before the loads when there is more than one."""

    title: str
    metric: Metric
    against: str
    matrix: Table | None
    loads: tuple[LoadView, ...]
    scale: Scale
    notes: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True)
class Answer:
    """One question in every metric that was compared; `first` is the metric that is shown first."""

    by_metric: tuple[tuple[Metric, tuple[BoardView, ...]], ...]
    first: Metric


def cost(report: Report) -> Answer | None:
    """What each server costs against its baseline; None when the results say it all, or nothing is compared."""
    boards = cost_boards(report)
    if not worth_showing(boards):
        return None
    views = tuple((board.metric, (_view(report, board, "", unfolded=True),)) for board in boards)
    return Answer(views, _first(report, boards))


def effects(report: Report) -> Answer | None:
    """What each step on each axis costs each server; None without effects."""
    found = steps(report)
    boards = [board for step in found for board in step.boards]
    if not boards:
        return None
    metrics = tuple(metric for metric in Metric if any(board.metric is metric for board in boards))
    views = tuple(
        (
            metric,
            tuple(
                _view(report, board, step.title, unfolded=False)
                for step in found
                for board in step.boards
                if board.metric is metric
            ),
        )
        for metric in metrics
    )
    return Answer(views, _first(report, boards))


def _first(report: Report, boards: Sequence[Board]) -> Metric:
    """The p99 where all loads are open, else the metric by which servers are ranked when all rankings are by it.

    In an open load the throughput is the schedule's and not the server's. Shares of a capacity have no rankings.
    """
    metrics = [board.metric for board in boards]
    cells = {cell.cell_id: cell for cell in report.cells}
    if Metric.P99 in metrics and all(is_open(cell.load_text) for board in boards for cell in _shown(board, cells)):
        return Metric.P99
    ranked = {ranking.metric for ranking in report.rankings}
    return next((metric for metric in metrics if ranked == {metric}), metrics[0])


def _view(report: Report, board: Board, title: str, *, unfolded: bool) -> BoardView:
    cells = {cell.cell_id: cell for cell in report.cells}
    scale = Scale.of(board.found.values(), report.run.threshold)
    notes = tuple(refusals(board))
    numbers = {place: number for number, _, places in notes for place in places}
    small = len(board.found) <= _OPEN_AT_MOST
    parts = board.parts(_OPEN_AT_MOST)
    loads = [
        LoadView(
            load,
            common_load(_shown(part, cells)) if load else "",
            tuple((setting, _panels(part, setting, scale, numbers)) for setting in part.settings),
            board_table(part, numbers, against=board.against),
            open=small or (unfolded and place == 0),
        )
        for place, (load, part) in enumerate(parts)
    ]
    return BoardView(
        title,
        board.metric,
        board.against,
        board_table(board, numbers, against=board.against) if len(parts) > 1 else None,
        tuple(loads),
        scale,
        tuple((number, reason, _where(places)) for number, reason, places in notes),
    )


def _shown(board: Board, cells: Mapping[str, CellReport]) -> Iterator[CellReport]:
    """Both sides of every comparison, as far as they are in the report."""
    for found in board.found.values():
        yield from (cells[one] for one in (found.cell_id, found.baseline_id) if one in cells)


def _panels(
    board: Board, setting: str, scale: Scale, numbers: dict[tuple[ServerPair, Workload], int]
) -> tuple[Panel, ...]:
    lines = board.of_setting(setting)
    titles = {column: board.title_of(column) for column in board.columns}

    def panel(title: str, rows: Sequence[tuple[str, ServerPair, Workload]]) -> Panel:
        found = [board.found.get((line, column)) for _, line, column in rows]
        changes = (ChangeCell.of(one, numbers.get(row[1:])) for one, row in zip(found, rows, strict=True))
        return Panel(title, tuple(name for name, _, _ in rows), tuple(changes), scale.bars(found))

    if len(lines) == 1:
        return (panel(lines[0].server, [(title, lines[0], column) for column, title in titles.items()]),)
    return tuple(panel(title, [(line.server, line, column) for line in lines]) for column, title in titles.items())


def _where(places: Sequence[tuple[ServerPair, Workload]]) -> str:
    """The places in words; the first few of many."""
    named = [
        " ".join(part for part in (line.server, line.setting, column.scenario, column.load) if part)
        for line, column in places
    ]
    return "; ".join(named[:4]) + (f"; and {len(named) - 4} more" if len(named) > 4 else "")


@dataclass(frozen=True)
class PlaceView:
    """One place; `rank` is `2`, or `2=` when others share it."""

    rank: str
    server: str
    value: str
    spread: str
    fill: str
    error: str


@dataclass(frozen=True)
class RankingView:
    """One scenario in one setting."""

    scenario: str
    setting: str
    metric: Metric
    places: tuple[PlaceView, ...]


@dataclass(frozen=True)
class RankedLoad:
    """All rankings of one load, and the subjects that are in none of them."""

    load: str
    load_text: str
    rankings: tuple[RankingView, ...]
    unranked: tuple[str, ...]
    open: bool


def rankings(report: Report) -> tuple[RankedLoad, ...]:
    """By load, in the report's order; empty without rankings."""
    cells = {cell.cell_id: cell for cell in report.cells}
    loads = tuple(dict.fromkeys(ranking.load for ranking in report.rankings))
    return tuple(
        _of_load(load, report, cells, unfolded=first == 0 or len(report.rankings) <= _RANKINGS_OPEN)
        for first, load in enumerate(loads)
    )


def _places(ranking: Ranking, cells: dict[str, CellReport]) -> tuple[PlaceView, ...]:
    """The places of one ranking, in order."""
    ends = (place.estimate.value if place.estimate.high is None else place.estimate.high for place in ranking.places)
    largest = 1.02 * max(ends, default=0.0)
    return tuple(
        PlaceView(
            rank_text(ranking, place),
            server_in(ranking, place, cells),
            fmt.amount(place.estimate.value, place.estimate.unit),
            fmt.spread(place.estimate),
            *place_bar(place.estimate, largest),
        )
        for place in ranking.places
    )


def _of_load(load: str, report: Report, cells: dict[str, CellReport], *, unfolded: bool) -> RankedLoad:
    views = tuple(
        RankingView(ranking.scenario, ranking.setting, ranking.metric, _places(ranking, cells))
        for ranking in report.rankings
        if ranking.load == load
    )
    shown = (place.cell_id for ranking in report.rankings if ranking.load == load for place in ranking.places)
    text = common_load(cells[cell_id] for cell_id in shown if cell_id in cells)
    return RankedLoad(load, text, views, unranked(report, load), unfolded)
