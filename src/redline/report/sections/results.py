"""Results: the levels of every server, a table per scenario and load."""

from collections.abc import Iterator

from redline.findings import RULES
from redline.model import SHOWN, CellReport, Estimate, FindingKind, Grade, Metric, Ranking, Report
from redline.report import format as fmt
from redline.report.document import (
    Column,
    Fold,
    InvalidCell,
    Medium,
    ObjectiveText,
    Prose,
    ScoreCell,
    Section,
    ServerCell,
    Strip,
    Table,
    TableCell,
    filled,
    key,
)
from redline.report.scales import Scale, value_scale
from redline.report.sections import dots
from redline.report.sections.trials import route_text, warm_ups
from redline.report.sections.views import (
    Group,
    better,
    colours,
    groups,
    invalid_findings,
    invalid_reason,
    weighed_findings,
)

_UNFOLDED = 6
"""The page unfolds up to this number of groups: readers look up a group in a page of more."""
_DRAWN = 200
"""The most cells whose values have pictures: the page of a larger study would be too large to mail."""


def results_section(report: Report) -> Iterator[Section]:
    """A table per group with a row per server. The levels of comparisons by duets stand on the page alone."""
    made, alone = tuple(groups(report)), report.run.alone
    on = Medium.EVERYWHERE if alone else Medium.PAGE
    ranks, series = ranks_of(report), colours(report)
    drawn = len(report.cells) <= _DRAWN
    folds = (
        Fold(
            group.heading(f"; baseline {group.baseline}" if group.baseline else ""),
            tuple(filled(_table(report, group, ranks, series, drawn=drawn), Prose.of(_notes(group), "dim"))),
            at == 0 if len(made) > _UNFOLDED else None,
            on=on,
        )
        for at, group in enumerate(made)
    )
    texts = (
        f"Bars show the values, whiskers their 95% intervals{', dots the trials' if alone else ''}." if drawn else "",
        "Servers that nothing distinguishes **share a rank** (2=)." if ranks else "",
    )
    sliced = "" if alone else "Levels are of the slices in which a server had its load: the comparisons know more."
    blocks = filled(
        Prose((key(" ".join(filter(None, texts))),), on=Medium.PAGE),
        Prose.of([sliced], "dim", on=on),
        Prose.of([] if made else ["No cell was planned."], "dim"),
        *folds,
    )
    yield Section("Results", tuple(blocks), anchor="results")


def shown_metrics(report: Report) -> tuple[Metric, ...]:
    """The metrics of the tables of results, as far as any cell has them."""
    return tuple(metric for metric in SHOWN if any(metric in cell.estimates for cell in report.cells)) or SHOWN


def ranks_of(report: Report) -> dict[str, str]:
    """The ranks of cells by id: `2=`, and `2= with interceptor=off` where settings have own rankings."""
    several = {(ranking.scenario, ranking.load) for ranking in report.rankings if ranking.setting}
    return {
        place.cell_id: rank_text(ranking, place.rank)
        + (f" with {ranking.setting}" if (ranking.scenario, ranking.load) in several and ranking.setting else "")
        for ranking in report.rankings
        for place in ranking.places
        if len(ranking.places) > 1
    }


def rank_text(ranking: Ranking, rank: int) -> str:
    """`2`, or `2=` when others share the rank."""
    return f"{rank}=" if sum(other.rank == rank for other in ranking.places) > 1 else str(rank)


def _table(report: Report, group: Group, ranks: dict[str, str], series: dict[str, int], *, drawn: bool) -> Table:
    metrics = shown_metrics(report)
    cells = {cell.cell_id: cell for cell in group.cells}
    scales = _value_scales(group, metrics) if drawn else {}
    rows: list[tuple[TableCell, ...]] = []
    for cell in group.cells:
        name = _server(cell, group, ranks.get(cell.cell_id, ""), series[cell.server])
        if not cell.valid:
            advice = tuple(dict.fromkeys(finding.advice for finding in invalid_findings(cell)))
            rows.append((name, InvalidCell(invalid_reason(cell), advice)))
            continue
        scores = []
        for metric in metrics:
            estimate, strip = cell.estimates.get(metric), None
            if metric in scales and estimate:
                strip = _strip(scales[metric], estimate, name, dots.values(cells, cell.cell_id, metric))
            scores.append(ScoreCell.of(estimate, strip))
        rows.append((name, *scores))
    columns = (Column(fmt.label(metric), "right", hint=better(metric)) for metric in metrics)
    return Table((Column("server"), *columns), tuple(rows), look="scores")


def _value_scales(group: Group, metrics: tuple[Metric, ...]) -> dict[Metric, Scale]:
    """A scale per metric that several servers of the group have."""
    estimates = {
        metric: [cell.estimates[metric] for cell in group.cells if metric in cell.estimates] for metric in metrics
    }
    return {metric: value_scale(those) for metric, those in estimates.items() if len(those) > 1}


def _strip(scale: Scale, estimate: Estimate, server: ServerCell, behind: tuple[float, ...]) -> Strip:
    series = None if server.role == "ceiling" else server.series
    return Strip(scale, "bar", estimate.value, estimate.low, estimate.high, series=series, dots=behind)


def _server(cell: CellReport, group: Group, rank: str, series: int) -> ServerCell:
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


def _notes(group: Group) -> Iterator[str]:
    """How servers warmed up, what connections agreed on, routes, and percentiles that need more requests."""
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
