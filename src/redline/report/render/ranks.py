"""What rankings are told with: ranks that are shared, names without what the ranking's head says, who is in none."""

import re

from redline.model import CellReport, Place, Ranking, Report


def rank_text(ranking: Ranking, place: Place) -> str:
    """`2`, or `2=` when others share the rank."""
    shared = sum(other.rank == place.rank for other in ranking.places) > 1
    return f"{place.rank}=" if shared else str(place.rank)


def server_in(ranking: Ranking, place: Place, cells: dict[str, CellReport]) -> str:
    """The server without what the ranking's setting says of it."""
    if place.cell_id not in cells:
        return place.cell_id
    said = set(re.split(r"[,\s]+", ranking.setting))
    name, *tokens = cells[place.cell_id].server.split("+")
    return "+".join([name, *(token for token in tokens if token not in said)])


def unranked(report: Report, load: str) -> tuple[str, ...]:
    """The slugs of subjects under this load that stand in no ranking, though others of their scenario do."""
    ranked = {place.cell_id for ranking in report.rankings for place in ranking.places}
    scenarios = {ranking.scenario for ranking in report.rankings if ranking.load == load}
    return tuple(
        cell.slug
        for cell in report.cells
        if cell.load == load and cell.scenario in scenarios and cell.role == "subject" and cell.cell_id not in ranked
    )
