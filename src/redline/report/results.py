"""Results in text: the levels of every server, a table per scenario and load."""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from redline.document import format as fmt
from redline.document.blocks import (
    Column,
    Fold,
    InvalidCell,
    Medium,
    ObjectiveText,
    Prose,
    ScoreCell,
    Section,
    ServerCell,
    Table,
    TableCell,
    filled,
    line,
)
from redline.findings import RULES
from redline.findings.load import client_queueing, send_lateness
from redline.model import (
    RESPONSE_TIMES,
    SHOWN,
    Bound,
    CellReport,
    FindingKind,
    Grade,
    Metric,
    Ranking,
    Report,
    TrialReport,
)
from redline.report.histogram import times_table
from redline.report.trials import route_text, warm_ups
from redline.report.views import (
    Group,
    colours,
    groups,
    invalid_findings,
    invalid_reason,
    weighed_findings,
)

Level: TypeAlias = Metric | Literal["max"]
"""The largest response time, `max`, is decided by a single request: it has no interval, and is not compared."""
LEVELS: tuple[Level, ...] = (
    *(Metric.THROUGHPUT, Metric.CPU_PER_REQUEST, *RESPONSE_TIMES),
    *("max", Metric.MEAN, Metric.RECEIVED),
)
"""The columns of tables of results that have room for all of them."""
_TIMES: tuple[Level, ...] = LEVELS[2:]
_LENGTHENING = {send_lateness.kind, client_queueing.kind}
"""The findings whose advice names the service time, which then stands beside the response time."""
_SAID = (0.5, 0.9, 0.99, 0.999)
IN_FULL = 12
"""Up to so many cells a terminal has all percentiles; of more it says where they stand."""


def results_section(report: Report) -> Iterator[Section]:
    """A table per group with a row per server, in text: for comparisons by duets, only the page has levels."""
    made, ranks, series = tuple(groups(report)), ranks_of(report), colours(report)
    if not report.run.alone:
        return
    few = len(report.cells) <= IN_FULL
    known = levels_of(report) or SHOWN

    def tables(group: Group) -> Iterator[Table | Prose]:
        servers = [scored_server(cell, group, ranks.get(cell.cell_id, ""), series[cell.server]) for cell in group.cells]
        yield _table(group, servers, [level for level in SHOWN if level in known], Medium.TERMINAL)
        yield _table(group, servers, known, Medium.MARKDOWN)
        if few:
            yield _times(group, [level for level in _TIMES if level in known])
        yield from _one_way(group, Medium.TEXT if few else Medium.MARKDOWN)
        yield Prose.of(row_notes(group), "dim")

    folds = (
        Fold(group.heading(f"; baseline {group.baseline}" if group.baseline else ""), tuple(filled(*tables(group))))
        for group in made
    )
    more = "The mean, all percentiles and the transfer rate stand on the page, in Markdown, CSV and JSON."
    told = Prose.of([] if few else [more], "dim", on=Medium.TERMINAL)
    nothing = Prose.of([] if made else ["No cell was planned."], "dim")
    yield Section("Results", tuple(filled(nothing, *folds, told)))


def one_way_section(report: Report) -> Iterator[Section]:
    """The one-way times of comparisons by duets, whose text has no table of results."""
    made = () if report.run.alone else groups(report)
    tables = tuple(table for group in made for table in _one_way(group, Medium.TEXT))
    if tables:
        yield Section("One-way times", tables)


def encoded_section(report: Report) -> Iterator[Section]:
    """How encoded answers came in comparisons by duets, whose text has no table of results."""
    cells = () if report.run.alone else report.cells
    said = {f"{cell.server}: {'; '.join(fmt.encodings(cell.encoded))}.": None for cell in cells if cell.encoded}
    if said:
        yield Section("Encoded answers", (Prose.of([*said], "dim"),))


def levels_of(report: Report) -> tuple[Level, ...]:
    """The levels that any cell has, in the order of columns."""

    def has(cell: CellReport, level: Level) -> bool:
        return bool(cell.response_percentiles) if level == "max" else level in cell.estimates or level in cell.bounds

    return tuple(level for level in LEVELS if any(has(cell, level) for cell in report.cells))


def level_name(level: Level) -> str:
    """`p99`, `CPU per request`, `max`: the heading of its column."""
    return fmt.label(level) if isinstance(level, Metric) else level


def level_hint(level: Level) -> str:
    """`more is better`; empty where less is, as in most columns."""
    return "more is better" if isinstance(level, Metric) and level.higher_is_better else ""


def level_score(cell: CellReport, level: Level) -> ScoreCell:
    """The level of a cell with its interval, or its bound; the maximum has no interval."""
    if isinstance(level, Metric):
        if bound := cell.bounds.get(level):
            return _bounded(bound)
        estimate = cell.known.get(level)
        return ScoreCell.of(estimate, place=estimate.value if estimate else None)
    largest = max(cell.response_percentiles, key=lambda point: point.ns, default=None)
    return ScoreCell() if largest is None else ScoreCell(fmt.point_sign(largest), place=float(largest.ns))


def _bounded(bound: Bound) -> ScoreCell:
    """What is known in place of a metric: `≤ 12.0 ms (≥ 3.10 ms)`."""
    ends = [end for end in (bound.at_most, bound.at_least) if end is not None]
    least = f"(≥ {fmt.amount(ends[1], bound.unit)})" if len(ends) == 2 and ends[1] else ""
    return ScoreCell(fmt.bound_sign(bound), least, bound.words, place=next(iter(ends), None), why=bound.reason)


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


def _table(group: Group, servers: Sequence[ServerCell], levels: Sequence[Level], on: Medium) -> Table:
    rows: list[tuple[TableCell, ...]] = []
    for cell, server in zip(group.cells, servers, strict=True):
        if cell.shows_numbers:
            rows.append((server, *(level_score(cell, level) for level in levels)))
        else:
            advice = tuple(dict.fromkeys(finding.advice for finding in invalid_findings(cell)))
            rows.append((server, InvalidCell(invalid_reason(cell), advice)))
    columns = (Column(level_name(level), "right") for level in levels)
    return Table((Column("server"), *columns), tuple(rows), on=on)


def _times(group: Group, levels: Sequence[Level]) -> Table:
    """For a terminal: percentiles, mean and transfer rate without their intervals, so that many fit a line."""
    rows = (
        (cell.server, *(level_score(cell, level).value or "\u2013" for level in levels))
        for cell in group.cells
        if cell.shows_numbers
    )
    columns = (Column(level_name(level), "right") for level in levels)
    title = line(("percentiles, mean and transfer rate", "dim"))
    return Table((Column("server"), *columns), tuple(rows) if levels else (), title, on=Medium.TERMINAL)


def _one_way(group: Group, on: Medium) -> Iterator[Table]:
    """A table for each cell whose answers carry the server's clock: its times there and back, and each way."""
    for cell in group.cells:
        ways = [time for time in cell.other_times if time.is_one_way] if cell.shows_numbers else []
        if ways:
            times = {"response": cell.response_percentiles, "service": cell.service_percentiles}
            times |= {time.name: time.points for time in ways}
            title = line((cell.server, "strong"), (" one-way times", "dim"))
            yield times_table(times, fmt.PERCENTILES, title, on)


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


def bound_notes(cell: CellReport) -> Iterator[str]:
    """Why numbers are only bounds, or not known, and the service times where findings name them.

    `hyper: p95 and p99 are upper bounds (≤): At p99 the engine took up requests 8.00 ms after …`
    """
    alike: dict[tuple[str, str], list[str]] = {}
    for metric, bound in cell.bounds.items() if cell.shows_numbers else ():
        side = "upper" if bound.at_most is not None else "lower" if bound.at_least is not None else ""
        alike.setdefault((side, bound.reason), []).append(fmt.label(metric))
    for (side, reason), names in alike.items():
        is_one, sign = len(names) == 1, "≤" if side == "upper" else "≥"
        what = f"{'an ' if is_one and side == 'upper' else 'a ' if is_one else ''}{side} bound{'' if is_one else 's'}"
        are = f"{'is' if is_one else 'are'} {f'{what} ({sign})' if side else fmt.NOT_KNOWN}"
        yield f"{cell.server}: {', '.join(names)} {are}: {reason}"
    yield from _ended_early(cell)
    if _LENGTHENING & {finding.kind for finding in cell.findings}:
        times = [f"{fmt.quantile_name(p.q)} {fmt.point_words(p)}" for p in cell.service_percentiles if p.q in _SAID]
        if times:
            yield f"{cell.server}: service time {', '.join(times)}."


def _ended_early(cell: CellReport) -> Iterator[str]:
    """On how many trials an invalid cell's numbers rest, and what is known of each of the others."""
    others = () if cell.valid else cell.ended_early
    if others and cell.known:
        rest, every = len(cell.trials) - len(others), fmt.count(len(cell.trials), "trial")
        yield f"{cell.server}: its numbers rest on {rest} of {every}; the others failed, or were cut short."
    elif not any(trial.rate_per_s for trial in others):
        return  # the row says why nothing is known
    for trial in others:
        grave = (f for f in cell.findings if f.position == trial.position and f.grade is Grade.INVALID)
        why = next((finding.message for finding in grave), trial.failure)
        yield f"{cell.server}, trial {trial.round + 1}: {why}{_own(trial)}"


def _own(trial: TrialReport) -> str:
    """` It measured 5,234 ok, 12 in flight in 600 ms, 8.72 k/s, p50 1.02 ms.`; empty if it counted nothing."""
    ended = [f"{fmt.integer(n)} {kind.replace('_', ' ')}" for kind, n in trial.outcomes or () if n]
    if not ended or not trial.seconds:
        return ""
    said = [f" It measured {', '.join(ended)} in {fmt.duration(trial.seconds * 1e9)}"]
    said += [fmt.rate(trial.rate_per_s)] if trial.rate_per_s is not None else []
    times = {"p50": trial.p50_ns, "p99": trial.p99_ns}
    return ", ".join((*said, *(f"{name} {fmt.duration(ns)}" for name, ns in times.items() if ns is not None))) + "."


def row_notes(group: Group) -> Iterator[str]:
    """How servers warmed up, what connections negotiated, routes, and percentiles that need more requests."""
    for names, text in warm_ups(group.cells):
        yield f"Warm-up of {names}: {text}."
    for cell in group.cells:
        said = (*map(fmt.agreed, cell.tls), *map(fmt.other_time, cell.other_times), *fmt.encodings(cell.encoded))
        said += tuple(fmt.compression(cell.counts))
        if cell.shows_numbers and said:
            yield f"{cell.server}: {'; '.join(said)}."
    for cell in group.cells:
        yield from bound_notes(cell)
    yield from filter(None, map(route_text, group.cells))
    missing: dict[str, list[str]] = {}
    for cell in group.cells:
        for few in cell.too_few if cell.shows_numbers and cell.trials else ():
            needs = f"{fmt.label(few.metric)} needs {fmt.integer(few.needs)} requests"
            missing.setdefault(needs, []).append(f"{cell.server} {fmt.integer(few.missing)} more")
    for needs, short in missing.items():
        yield f"{needs}: {', '.join(short)}."
