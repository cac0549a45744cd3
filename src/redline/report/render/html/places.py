"""The page's rankings: places with bars, by load."""

from dataclasses import dataclass

from redline.model import CellReport, Metric, Ranking, Report
from redline.report import format as fmt
from redline.report.render.html.bars import place_bar
from redline.report.sections.costs import rank_text, server_in, unranked
from redline.report.sections.views import common_load

_OPEN_AT_MOST = 8
"""So many rankings are shown unfolded; of more, those of the first load are."""


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
        _of_load(load, report, cells, unfolded=place == 0 or len(report.rankings) <= _OPEN_AT_MOST)
        for place, load in enumerate(loads)
    )


def places(ranking: Ranking, cells: dict[str, CellReport]) -> tuple[PlaceView, ...]:
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
        RankingView(ranking.scenario, ranking.setting, ranking.metric, places(ranking, cells))
        for ranking in report.rankings
        if ranking.load == load
    )
    shown = (place.cell_id for ranking in report.rankings if ranking.load == load for place in ranking.places)
    text = common_load(cells[cell_id] for cell_id in shown if cell_id in cells)
    return RankedLoad(load, text, views, unranked(report, load), unfolded)
