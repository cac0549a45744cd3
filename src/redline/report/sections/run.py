"""The report of a run as sections: its results by scenario and load, costs, layers, findings, and how to repeat it."""

from collections.abc import Iterator, Mapping

from redline.findings import REASSURING
from redline.model import SHOWN, CellReport, Comparison, FindingKind, Grade, Metric, Report
from redline.report import format as fmt
from redline.report.document import (
    Column,
    InvalidCell,
    Item,
    Items,
    Prose,
    ScoreCell,
    Section,
    ServerCell,
    Table,
    TableCell,
    filled,
    line,
)
from redline.report.sections.costs import cost_sections, cost_summary, effect_sections, legend, ranking_sections
from redline.report.sections.layers import layer_sections
from redline.report.sections.parts import machine_line, repeat_section, skipped_section
from redline.report.sections.trials import lone_rounds, precision_text, warm_ups
from redline.report.sections.views import (
    BuildLine,
    Group,
    built,
    caveats,
    comparisons_by_cell,
    finding_groups,
    groups,
    invalid_findings,
    invalid_reason,
    servers,
    tally,
    weighed_findings,
)


def run_summary(report: Report) -> Iterator[Section]:
    """For a terminal: tables by scenario and load, what servers cost, findings with advice, what was skipped."""
    run = report.run
    done = (
        f"{run.trials_done} of {run.trials_planned} trials{'' if run.complete else ', not complete'}  seed {run.seed}"
    )
    precision = Prose.of([precision_text(run.precision)] if run.precision else [], "dim")
    yield Section(run.name, tuple(filled(precision)), done, level=1)
    yield from _results(report)
    yield from layer_sections(report, percent=False)
    yield from cost_summary(report)
    yield from _missed(report)
    yield from _findings(report)
    yield from skipped_section(report.skipped)


def run_comment(report: Report) -> Iterator[Section]:
    """For a pull request: costs, effects and rankings, then the results, findings, and how to repeat the run."""
    run, machine = report.run, report.environment
    facts = line(
        f"{fmt.instant(run.started_unix_ns)} · {run.trials_done} of {run.trials_planned} trials",
        *(() if run.complete else (" (", ("not complete", "strong"), ")")),
        f" · {machine_line(machine)} · seed {run.seed}",
    )
    counts = ", ".join(f"{number} {fmt.MARKS[verdict]} {verdict}" for verdict, number in tally(report).items())
    more = Prose.of((f"{precision_text(run.precision)}." if run.precision else "", f"{counts}." if counts else ""))
    yield Section(run.suite, tuple(filled(Prose((facts,)), more)), level=1)
    yield from layer_sections(report, percent=True)
    yield from cost_sections(report)
    yield from effect_sections(report)
    yield from ranking_sections(report)
    yield from _results(report)
    yield from _findings(report)
    yield from skipped_section(report.skipped)
    names = " · ".join(map(_built, built(report)))
    yield repeat_section(machine, run.command, f"Servers: {names}" if names else "")


def _results(report: Report) -> Iterator[Section]:
    compared, metrics = comparisons_by_cell(report), shown_metrics(report)
    colours = {server: place for place, server in enumerate(servers(report))}
    for group in groups(report):
        notes = Prose.of(_notes(group), "dim")
        yield Section(
            group.title, tuple(filled(result_table(group, colours, compared, metrics), notes)), group.load_text
        )
    key = (
        (legend("Under each value its ratio to the baseline, with the 95% interval", report.run.threshold),)
        if compared
        else ()
    )
    more = Prose.of((*caveat_texts(report), *(f"{text}." for text in lone_rounds(report))), "dim")
    if blocks := tuple(filled(Prose(key), more)):
        yield Section("", blocks)


def shown_metrics(report: Report) -> tuple[Metric, ...]:
    """Those of the tables of results, as far as any cell has them."""
    return tuple(metric for metric in SHOWN if any(metric in cell.estimates for cell in report.cells)) or SHOWN


def result_table(
    group: Group,
    colours: Mapping[str, int],
    compared: Mapping[str, Mapping[Metric, Comparison]],
    metrics: tuple[Metric, ...],
) -> Table:
    """A row for each server of the group: its metrics, or why there are none."""
    rows: list[tuple[TableCell, ...]] = []
    for cell in group.cells:
        name = _server(cell, group, colours[cell.server])
        if not cell.valid:
            advice = tuple(dict.fromkeys(finding.advice for finding in invalid_findings(cell)))
            rows.append((name, InvalidCell(invalid_reason(cell), advice)))
            continue
        own = {} if cell.role == "ceiling" else compared.get(cell.cell_id, {})
        rows.append((name, *(ScoreCell(metric, cell.estimates.get(metric), own.get(metric)) for metric in metrics)))
    return Table((Column("server"), *(Column(fmt.label(metric), "right") for metric in metrics)), tuple(rows))


def _server(cell: CellReport, group: Group, series: int) -> ServerCell:
    worst: dict[FindingKind, Grade] = {}
    for found in weighed_findings(cell):
        if found.kind not in REASSURING:
            worst.setdefault(found.kind, found.grade)
    return ServerCell(
        cell.server,
        "ceiling" if cell.role == "ceiling" else "baseline" if cell.is_baseline else "",
        group.against.get(cell.cell_id, ""),
        cell.load_text if group.own_loads else "",
        cell.valid,
        cell.objectives,
        tuple(worst.items()),
        series,
    )


def _notes(group: Group) -> Iterator[str]:
    """How servers warmed up, what their connections agreed on, and percentiles that need more requests."""
    for names, text in warm_ups(group.cells):
        yield f"Warm-up of {names}: {text}."
    for cell in group.cells:
        if cell.valid and (cell.tls or cell.other_times):
            yield f"{cell.server}: {'; '.join((*map(fmt.agreed, cell.tls), *map(fmt.other_time, cell.other_times)))}."
    missing: dict[str, list[str]] = {}
    for cell in group.cells:
        for one in cell.too_few if cell.valid else ():
            needs = f"{fmt.label(one.metric)} needs {fmt.integer(one.needs)} requests"
            missing.setdefault(needs, []).append(f"{cell.server} {fmt.integer(one.missing)} more")
    for needs, short in missing.items():
        yield f"{needs}: {', '.join(short)}."


def caveat_texts(report: Report) -> Iterator[str]:
    """What to know of some comparisons, after the metrics that it is about."""
    for caveat, metrics in caveats(report).items():
        yield f"{', '.join(map(fmt.label, metrics))}: {caveat}"


def _missed(report: Report) -> Iterator[Section]:
    missed: dict[str, list[str]] = {}
    for cell in report.cells:
        for result in cell.objectives:
            if not result.met:
                reason = f" ({result.reason})" if result.reason else ""
                missed.setdefault(result.objective.text, []).append(cell.slug + reason)
    items = (
        Item(line((f"✗ {text}", Grade.INVALID)), (line((", ".join(slugs), "dim")),)) for text, slugs in missed.items()
    )
    if missed:
        yield Section("Objectives missed", (Items(tuple(items)),))


def _findings(report: Report) -> Iterator[Section]:
    items = tuple(
        Item(
            line((f"{fmt.GRADE_MARKS[found.grade]} {found.grade}", found.grade), " ", (found.kind, "strong")),
            (line(found.example), line(f"→ {found.advice}"), line((f"in {found.where(len(report.cells))}", "dim"))),
        )
        for found in finding_groups(report)
    )
    if items:
        yield Section("Findings", (Items(items),))


def _built(one: BuildLine) -> str:
    facts = (one.runtime_version, f"build {one.short_build}" if one.build else "")
    return f"{one.server} ({', '.join(fact for fact in facts if fact)})"
