"""Results in text: the levels of every server, a table per scenario and load."""

from collections.abc import Iterator

from redline.findings import RULES
from redline.model import SHOWN, CellReport, FindingKind, Grade, Metric, Ranking, Report
from redline.report import format as fmt
from redline.report.document import (
    Column,
    Fold,
    InvalidCell,
    ObjectiveText,
    Prose,
    ScoreCell,
    Section,
    ServerCell,
    Table,
    TableCell,
    filled,
)
from redline.report.sections.trials import route_text, warm_ups
from redline.report.sections.views import (
    Group,
    colours,
    groups,
    invalid_findings,
    invalid_reason,
    weighed_findings,
)


def results_section(report: Report) -> Iterator[Section]:
    """A table per group with a row per server, in text: for comparisons by duets, only the page has levels."""
    made, ranks, series = tuple(groups(report)), ranks_of(report), colours(report)
    if not report.run.alone:
        return
    folds = (
        Fold(
            group.heading(f"; baseline {group.baseline}" if group.baseline else ""),
            tuple(filled(_table(report, group, ranks, series), Prose.of(row_notes(group), "dim"))),
        )
        for group in made
    )
    yield Section("Results", tuple(filled(Prose.of([] if made else ["No cell was planned."], "dim"), *folds)))


def shown_metrics(report: Report) -> tuple[Metric, ...]:
    """The metrics of the tables of results, as far as any cell has them."""
    return tuple(metric for metric in SHOWN if any(metric in cell.estimates for cell in report.cells)) or SHOWN


def ranks_of(report: Report) -> dict[str, str]:
    """The ranks of cells by id: `2=`, and `2= with interceptor=off` if settings have their own rankings."""
    several = {(ranking.scenario, ranking.load) for ranking in report.rankings if ranking.setting}
    return {
        place.cell_id: rank_text(ranking, place.rank)
        + (f" with {ranking.setting}" if (ranking.scenario, ranking.load) in several and ranking.setting else "")
        for ranking in report.rankings
        for place in ranking.places
        if len(ranking.places) > 1
    }


def rank_text(ranking: Ranking, rank: int) -> str:
    """`2`, or `2=` if others share the rank."""
    return f"{rank}=" if sum(other.rank == rank for other in ranking.places) > 1 else str(rank)


def _table(report: Report, group: Group, ranks: dict[str, str], series: dict[str, int]) -> Table:
    metrics = shown_metrics(report)
    rows: list[tuple[TableCell, ...]] = []
    for cell in group.cells:
        name = scored_server(cell, group, ranks.get(cell.cell_id, ""), series[cell.server])
        if cell.valid:
            rows.append((name, *(ScoreCell.of(cell.estimates.get(metric)) for metric in metrics)))
        else:
            advice = tuple(dict.fromkeys(finding.advice for finding in invalid_findings(cell)))
            rows.append((name, InvalidCell(invalid_reason(cell), advice)))
    columns = (Column(fmt.label(metric), "right") for metric in metrics)
    return Table((Column("server"), *columns), tuple(rows))


def scored_server(cell: CellReport, group: Group, rank: str, series: int) -> ServerCell:
    """The server of a cell, with its rank, its objectives and the marks of its findings."""
    worst: dict[FindingKind, Grade] = {}
    for finding in weighed_findings(cell):
        if not RULES[finding.kind].reassures:
            worst.setdefault(finding.kind, finding.grade)
    return ServerCell(
        cell.server,
        "ceiling" if cell.role == "ceiling" else "baseline" if cell.is_baseline else "",
        group.against.get(cell.cell_id, ""),
        cell.load_text if group.own_loads else "",
        cell.valid,
        tuple(ObjectiveText(result.objective.text, result.state, result.reason) for result in cell.objectives),
        tuple(worst.items()),
        series,
        rank,
    )


def row_notes(group: Group) -> Iterator[str]:
    """How servers warmed up, what connections negotiated, routes, and percentiles that need more requests."""
    for names, text in warm_ups(group.cells):
        yield f"Warm-up of {names}: {text}."
    for cell in group.cells:
        if cell.valid and (cell.tls or cell.other_times):
            yield f"{cell.server}: {'; '.join((*map(fmt.agreed, cell.tls), *map(fmt.other_time, cell.other_times)))}."
    yield from filter(None, map(route_text, group.cells))
    missing: dict[str, list[str]] = {}
    for cell in group.cells:
        for few in cell.too_few if cell.valid and cell.trials else ():
            needs = f"{fmt.label(few.metric)} needs {fmt.integer(few.needs)} requests"
            missing.setdefault(needs, []).append(f"{cell.server} {fmt.integer(few.missing)} more")
    for needs, short in missing.items():
        yield f"{needs}: {', '.join(short)}."
