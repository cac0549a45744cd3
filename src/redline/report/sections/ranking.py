"""Rankings: servers in their order, with shared ranks, for each scenario, load and setting."""

import re
from collections.abc import Iterator, Mapping, Sequence

from redline.model import CellReport, Place, Ranking, Report
from redline.report import format as fmt
from redline.report.document import Column, Fold, Panels, Prose, Section, Strip, Table, TextCell, key, line
from redline.report.scales import value_scale
from redline.report.sections import dots
from redline.report.sections.costs import load_line

_OPEN_AT_MOST = 8
"""So many rankings the page shows unfolded; of more, those of the first load are."""


def ranking_sections(report: Report) -> Iterator[Section]:
    """A table for each load and setting, with a column for each scenario: servers in their order with their ranks."""
    if not report.rankings:
        return
    cells = {cell.cell_id: cell for cell in report.cells}
    alike: dict[tuple[str, str, str], list[Ranking]] = {}
    for ranking in report.rankings:
        alike.setdefault((ranking.load, ranking.setting, ranking.metric), []).append(ranking)
    tables = (_columns_of(found, cells) for found in alike.values())
    loads = dict.fromkeys(ranking.load for ranking in report.rankings)
    yield Section("Ranking", (*tables, Prose(tuple(each for load in loads for each in _unranked(report, load).lines))))


def ranking_page(report: Report) -> Iterator[Section]:
    """The same for the page: a table with bars for each ranking, by load."""
    cells = {cell.cell_id: cell for cell in report.cells}
    by_load: dict[str, list[Ranking]] = {}
    for ranking in report.rankings:
        by_load.setdefault(ranking.load, []).append(ranking)
    folds = []
    for at, (load, rankings) in enumerate(by_load.items()):
        shown = [cells[place.cell_id] for each in rankings for place in each.places if place.cell_id in cells]
        blocks = (Panels(tuple(_with_bars(each, cells) for each in rankings)), _unranked(report, load))
        is_open = at == 0 or len(report.rankings) <= _OPEN_AT_MOST
        folds.append(Fold(load_line(load, shown), blocks, is_open if len(by_load) > 1 else None))
    intro = (
        *key(
            "Best first. Servers of which nothing distinguishes any two **share a rank** (2=). A change in brackets is "
            "a comparison with the baseline, which decides the place; the value is of trials of it alone. Whiskers "
            "are 95% intervals, dots are trials. What is close to this machine's ceiling is limited by the machine."
        ),
    )
    if folds:
        yield Section("Ranking", (Prose((intro,)), *folds), anchor="ranking")


def _columns_of(rankings: Sequence[Ranking], cells: Mapping[str, CellReport]) -> Table:
    first = rankings[0]
    columns = [[_place(ranking, place, cells) for place in ranking.places] for ranking in rankings]
    depth = max(map(len, columns))
    rows = (tuple(column[at] if at < len(column) else "" for column in columns) for at in range(depth))
    title = " · ".join(part for part in (fmt.label(first.metric), first.load, first.setting) if part)
    return Table(tuple(Column(each.scenario) for each in rankings), tuple(rows), line((title, "strong")))


def _place(ranking: Ranking, place: Place, cells: Mapping[str, CellReport]) -> TextCell:
    name = server_in(ranking, place, cells)
    level, change = fmt.with_spread(place.estimate), ratio_text(place)
    return TextCell((line(f"{rank_text(ranking, place)} ", (name, "strong"), f" {level}", (change, "dim")),))


def _with_bars(ranking: Ranking, cells: Mapping[str, CellReport]) -> Table:
    scale = value_scale([place.estimate for place in ranking.places])
    label = fmt.label(ranking.metric)
    rows = []
    for place in ranking.places:
        one = place.estimate
        value = TextCell((line(fmt.amount(one.value, one.unit), (f" {fmt.spread(one)}{ratio_text(place)}", "dim")),))
        behind = dots.values(cells, place.cell_id, ranking.metric)
        bar = Strip(scale, "bar", one.value, one.low, one.high, dots=behind)
        rows.append((rank_text(ranking, place), server_in(ranking, place, cells), bar, value))
    columns = (Column("rank"), Column("server"), Column(""), Column(label, "right"))
    title = line((ranking.scenario, "strong"), (f" {', '.join(filter(None, (ranking.setting, label)))}", "dim"))
    return Table(columns, tuple(rows), title, look="ranking")


def ratio_text(place: Place) -> str:
    """` (+32.4% [+29.0, +35.1] in duets)`: the change from its baseline, on which its place rests; empty of others."""
    if place.ratio is None:
        return ""
    in_duets = " in duets" if place.in_duets else ""
    return f" ({fmt.change(place.ratio)} {fmt.change_bounds(place.ratio)}{in_duets})"


def rank_text(ranking: Ranking, place: Place) -> str:
    """`2`, or `2=` when others share the rank."""
    shared = sum(other.rank == place.rank for other in ranking.places) > 1
    return f"{place.rank}=" if shared else str(place.rank)


def server_in(ranking: Ranking, place: Place, cells: Mapping[str, CellReport]) -> str:
    """The server without what the ranking's setting says of it."""
    if place.cell_id not in cells:
        return place.cell_id
    said = set(re.split(r"[,\s]+", ranking.setting))
    name, *tokens = cells[place.cell_id].server.split("+")
    return "+".join([name, *(token for token in tokens if token not in said)])


def _unranked(report: Report, load: str) -> Prose:
    left_out = unranked(report, load)
    text = f"Not ranked, without a valid measurement or interval: {', '.join(left_out)}."
    return Prose.of([text] if left_out else [])


def unranked(report: Report, load: str) -> tuple[str, ...]:
    """The slugs of subjects under this load that stand in no ranking, though others of their scenario do."""
    ranked = {place.cell_id for ranking in report.rankings for place in ranking.places}
    scenarios = {ranking.scenario for ranking in report.rankings if ranking.load == load}
    return tuple(
        cell.slug
        for cell in report.cells
        if cell.load == load and cell.scenario in scenarios and cell.role == "subject" and cell.cell_id not in ranked
    )
