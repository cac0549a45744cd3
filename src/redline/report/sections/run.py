"""The report of a run as sections: its results by scenario and load, costs, layers, findings, and how to repeat it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from redline.findings import RULES
from redline.model import SHOWN, CellReport, Comparison, Estimate, FindingKind, Grade, Metric, Report
from redline.report import format as fmt
from redline.report.document import (
    Block,
    Column,
    Fold,
    InvalidCell,
    Item,
    Items,
    Line,
    ObjectiveText,
    Page,
    Prose,
    ScoreCell,
    Section,
    ServerCell,
    Span,
    Strip,
    Table,
    TableCell,
    filled,
    key,
    line,
)
from redline.report.scales import Scale, ratio_scale, value_scale
from redline.report.sections import dots
from redline.report.sections.answer import run_answer
from redline.report.sections.costs import (
    better,
    cost_page,
    cost_sections,
    cost_summary,
    effect_page,
    effect_sections,
    legend,
)
from redline.report.sections.doubt import doubt_section
from redline.report.sections.duets import duet_sections
from redline.report.sections.layers import layer_page, layer_sections
from redline.report.sections.main_effects import main_effect_sections
from redline.report.sections.measured import measured
from redline.report.sections.memory import memory_page, memory_sections
from redline.report.sections.overlays import overlay_sections
from redline.report.sections.parts import (
    hosts_section,
    machine_line,
    page_facts,
    repeat_page,
    repeat_section,
    skipped_section,
)
from redline.report.sections.plots import payload, plots_section
from redline.report.sections.profiles import profile_page, profile_sections, profiles_payload
from redline.report.sections.ranking import ranking_page, ranking_sections
from redline.report.sections.trials import lone_rounds, precision_text, route_text, warm_ups
from redline.report.sections.views import (
    BuildLine,
    FindingGroup,
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

_UNFOLDED = 6
"""So many groups of cells the page shows unfolded: a page of more is read by looking one up."""
_DRAWN_EACH = 200
"""So many cells have a picture beside each value; of a larger study the costs draw the same."""


def run_summary(report: Report) -> Iterator[Section]:
    """For a terminal: tables by scenario and load, costs, findings with advice, what was skipped; last the answer."""
    run = report.run
    done = (
        f"{run.trials_done} of {run.trials_planned} trials{'' if run.complete else ', not complete'}  seed {run.seed}"
    )
    precision = Prose.of([precision_text(run.precision)] if run.precision else [], "dim")
    yield Section(run.name, tuple(filled(precision)), done, level=1)
    yield from _results(report)
    yield from layer_sections(report, percent=False)
    yield from duet_sections(report)
    yield from cost_summary(report)
    yield from main_effect_sections(report)
    yield from memory_sections(report)
    yield from profile_sections(report)
    yield from _findings(report)
    yield from skipped_section(report.skipped)
    yield from hosts_section(report.hosts, report.pairs)
    yield doubt_section(report)
    yield run_answer(report)


def run_comment(report: Report) -> Iterator[Section]:
    """For a pull request: the answer, then costs, effects, rankings, results, findings, and how to repeat the run."""
    run, machine = report.run, report.environment
    facts = line(
        f"{fmt.instant(run.started_unix_ns)} · {run.trials_done} of {run.trials_planned} trials",
        *(() if run.complete else (" (", ("not complete", "strong"), ")")),
        f" · {machine_line(machine)} · seed {run.seed}",
    )
    counts = ", ".join(f"{number} {fmt.MARKS[verdict]} {verdict}" for verdict, number in tally(report).items())
    more = Prose.of((f"{precision_text(run.precision)}." if run.precision else "", f"{counts}." if counts else ""))
    yield Section(
        run.suite,
        tuple(filled(*run_answer(report).blocks, Prose((facts,)), more, *doubt_section(report).blocks)),
        level=1,
    )
    yield from layer_sections(report, percent=True)
    yield from duet_sections(report)
    yield from cost_sections(report)
    yield from main_effect_sections(report)
    yield from effect_sections(report)
    yield from ranking_sections(report)
    yield from _results(report)
    yield from memory_sections(report)
    yield from profile_sections(report, functions=10)
    yield from overlay_sections(report)
    yield from _findings(report)
    yield from skipped_section(report.skipped)
    yield from hosts_section(report.hosts, report.pairs)
    names = " · ".join(map(_built, built(report)))
    yield repeat_section(machine, run.command, f"Servers: {names}" if names else "")


def run_page(report: Report) -> Page:
    """The whole page of a run."""
    run, machine = report.run, report.environment
    scales, flames = _ratio_scales(report), profiles_payload(report)
    done = f"{run.trials_done} of {run.trials_planned} trials"
    incomplete = line(
        ("! This run is not complete: ", Grade.WARN),
        f"{done} were measured. redline run --resume continues where it stopped.",
    )
    sections = (
        run_answer(report),
        doubt_section(report),
        *layer_page(report),
        *duet_sections(report, page=True),
        *cost_page(report),
        *main_effect_sections(report),
        *effect_page(report),
        *ranking_page(report),
        _results_section(report, scales),
        *profile_page(report),
        *_findings(report, page=True),
        plots_section(report),
        *memory_page(report),
        *skipped_section(report.skipped, "These cells were selected and not run."),
        *hosts_section(report.hosts, report.pairs),
        measured(report),
        *_built_section(report),
        repeat_page("run", run.command, {"run": run.name, "seed": str(run.seed)}, machine, run.suite_text),
    )
    return Page(
        title=run.suite,
        brand="Redline",
        about=run.about,
        facts=page_facts(machine, run.started_unix_ns, done, run.seed),
        notices=(
            *((line((f"{precision_text(run.precision)}.", "dim")),) if run.precision else ()),
            *(() if run.complete else (incomplete,)),
        ),
        sections=sections,
        footer="Response time runs from when a request was due; service time from when it was written. "
        "Intervals hold the true value with 95% confidence, given these trials on this machine.",
        data=payload(report) if flames is None else {**payload(report), "profiles": flames},
        scripts=("page.js",) if flames is None else ("page.js", "flame.js"),
        scales=tuple(scales.values()),
    )


def _results(report: Report) -> Iterator[Section]:
    for group, table in _result_tables(report, {}, drawn=False):
        notes = Prose.of(_notes(group), "dim")
        yield Section(group.title, tuple(filled(table, notes)), group.load_text)
    signs = (
        (legend("Under each value its ratio to the baseline, with the 95% interval", report.run.threshold),)
        if report.comparisons
        else ()
    )
    if blocks := tuple(filled(Prose(signs), _remarks(report))):
        yield Section("", blocks)


def _remarks(report: Report) -> Prose:
    """What to know of some comparisons."""
    in_duets = [metric for metric in shown_metrics(report) if _is_of_duets(report, metric)]
    of_duets = f"Ratios of {' and '.join(map(fmt.label, in_duets))} are of duets; all else is of trials alone."
    rounds = (f"{text}." for text in lone_rounds(report))
    return Prose.of((of_duets if in_duets else "", *caveat_texts(report), *rounds), "dim")


def _is_of_duets(report: Report, metric: Metric) -> bool:
    return any(each.duet is not None for each in report.comparisons if each.metric is metric)


def _results_section(report: Report, scales: Mapping[Metric, Scale]) -> Section:
    """For the page: a table for each group, with a picture of each ratio; where nothing is compared, of each value."""
    drawn = not scales or len(report.cells) <= _DRAWN_EACH
    tables = tuple(_result_tables(report, scales, drawn=drawn))
    folds = len(tables) > _UNFOLDED
    blocks: list[Block] = [Prose((_results_key(report, compared=bool(scales), drawn=drawn),)), _remarks(report)]
    for at, (group, table) in enumerate(tables):
        title = group.heading(f"; baseline {group.baseline}" if group.baseline else "")
        titled = replace(table, title=title)
        blocks.append(Fold(title, (titled,), at == 0) if folds else titled)
    if not tables:
        blocks.append(Prose.of(["No cell was planned."], "dim"))
    counts = tuple(
        line((str(number), "strong"), " ", (f"{fmt.MARKS[verdict]} {verdict}", verdict))
        for verdict, number in tally(report).items()
    )
    aside = Prose(counts) if counts else None
    return Section("Results", tuple(filled(*blocks)), anchor="results", aside=aside)


def _results_key(report: Report, *, compared: bool, drawn: bool) -> Line:
    if not compared:
        return key(
            "Nothing is compared in this run: bars show the values, whiskers their 95% intervals, dots the trials."
        )
    if not drawn:
        text = (
            "Below each value stands its **ratio to the baseline**, with its 95% interval: too many to draw here, and "
        )
        return (*key(f"{text}drawn as changes in percent "), Span("above", "dim", "#cost"), *key("."))
    return (
        *key(
            "Each diamond is a server's **ratio to its baseline**, with its 95% interval, above a dot for each round, "
            "on a log scale that is the same down a column. Inside the shaded band, within "
            f"{fmt.percent(report.run.threshold)}, a difference is too small to matter. An interval "
            "that holds 1 and leaves the band is inconclusive; so "
            "is one that does not hold 1, where so many comparisons have one by chance."
        ),
    )


def _ratio_scales(report: Report) -> dict[Metric, Scale]:
    """One for each metric, for all groups, so that rows may be compared down the page; none where nothing is."""
    if not report.comparisons:
        return {}
    ceilings = {cell.cell_id for cell in report.cells if cell.role == "ceiling"}
    found: dict[Metric, list[Comparison]] = {metric: [] for metric in shown_metrics(report)}
    for one in report.comparisons:
        if one.cell_id not in ceilings and one.metric in found:
            found[one.metric].append(one)
    return {metric: ratio_scale(those, report.run.threshold, metric.value) for metric, those in found.items()}


def shown_metrics(report: Report) -> tuple[Metric, ...]:
    """Those of the tables of results, as far as any cell has them."""
    return tuple(metric for metric in SHOWN if any(metric in cell.estimates for cell in report.cells)) or SHOWN


def _result_tables(report: Report, scales: Mapping[Metric, Scale], *, drawn: bool) -> Iterator[tuple[Group, Table]]:
    """For each group a row for each server: its metrics, or why there are none. `drawn` adds pictures for the page."""
    compared, metrics = comparisons_by_cell(report), shown_metrics(report)
    colours = {server: place for place, server in enumerate(servers(report))}
    cells = {cell.cell_id: cell for cell in report.cells}
    for group in groups(report):
        rows: list[tuple[TableCell, ...]] = []
        largest = {} if scales or not drawn else _value_scales(group, metrics)
        has_ratios = False
        for cell in group.cells:
            name = _server(cell, group, colours[cell.server])
            if not cell.valid:
                advice = tuple(dict.fromkeys(finding.advice for finding in invalid_findings(cell)))
                rows.append((name, InvalidCell(invalid_reason(cell), advice)))
                continue
            own = {} if cell.role == "ceiling" else compared.get(cell.cell_id, {})
            own = {metric: one for metric, one in own.items() if one.says_something}
            has_ratios |= drawn and any(one.ratio for one in own.values())
            scores = []
            for metric in metrics:
                estimate, comparison, strip = cell.estimates.get(metric), own.get(metric), None
                if drawn and metric in scales:
                    strip = _ratio_strip(scales[metric], comparison, name, dots.ratios(cells, comparison))
                elif drawn and metric in largest and estimate:
                    strip = _value_strip(largest[metric], estimate, name, dots.values(cells, cell.cell_id, metric))
                scores.append(ScoreCell.of(estimate, comparison, strip))
            rows.append((name, *scores))
        columns = (
            Column(
                fmt.label(each), "right", hint=better(each), scale=scales.get(each) if has_ratios and drawn else None
            )
            for each in metrics
        )
        yield group, Table((Column("server"), *columns), tuple(rows), look="scores")


def _value_scales(group: Group, metrics: tuple[Metric, ...]) -> dict[Metric, Scale]:
    """Of each metric that more than one server of the group has."""
    found = {metric: [cell.estimates[metric] for cell in group.cells if metric in cell.estimates] for metric in metrics}
    return {metric: value_scale(those) for metric, those in found.items() if len(those) > 1}


def _ratio_strip(scale: Scale, comparison: Comparison | None, server: ServerCell, behind: tuple[float, ...]) -> Strip:
    """A picture of the ratio on the scale of its metric."""
    ratio = comparison.ratio if comparison else None
    if comparison and ratio:
        return Strip(scale, "point", ratio.value, ratio.low, ratio.high, comparison.verdict, dots=behind)
    return Strip(scale, "origin", 1.0 if server.role == "baseline" else None)


def _value_strip(scale: Scale, estimate: Estimate, server: ServerCell, behind: tuple[float, ...]) -> Strip:
    """A picture of the value, where nothing is compared."""
    series = None if server.role == "ceiling" else server.series
    return Strip(scale, "bar", estimate.value, estimate.low, estimate.high, series=series, dots=behind)


def _server(cell: CellReport, group: Group, series: int) -> ServerCell:
    worst: dict[FindingKind, Grade] = {}
    for found in weighed_findings(cell):
        if not RULES[found.kind].reassures:
            worst.setdefault(found.kind, found.grade)
    return ServerCell(
        cell.server,
        "ceiling" if cell.role == "ceiling" else "baseline" if cell.is_baseline else "",
        group.against.get(cell.cell_id, ""),
        cell.load_text if group.own_loads else "",
        cell.valid,
        tuple(ObjectiveText(each.objective.text, each.state, each.reason) for each in cell.objectives),
        tuple(worst.items()),
        series,
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
        for one in cell.too_few if cell.valid else ():
            needs = f"{fmt.label(one.metric)} needs {fmt.integer(one.needs)} requests"
            missing.setdefault(needs, []).append(f"{cell.server} {fmt.integer(one.missing)} more")
    for needs, short in missing.items():
        yield f"{needs}: {', '.join(short)}."


def caveat_texts(report: Report) -> Iterator[str]:
    """What to know of some comparisons, after the metrics that it is about."""
    for caveat, metrics in caveats(report).items():
        yield f"{', '.join(map(fmt.label, metrics))}: {caveat}"


def _findings(report: Report, *, page: bool = False) -> Iterator[Section]:
    """Warnings and worse with their advice; the page folds notes, and others count them."""
    found, anchors = finding_groups(report), set[str]()
    items = {one: _item(one, len(report.cells), anchors) for one in found}
    grave = Items(tuple(item for one, item in items.items() if one.grade is not Grade.NOTE))
    notes = {one: item for one, item in items.items() if one.grade is Grade.NOTE}
    if page:
        none = Prose.of([] if items else ["No reason to doubt any of these numbers was found."], "dim")
        fold = Fold(line((fmt.count(len(notes), "note"), "strong")), (Items(tuple(notes.values())),), open=False)
        blocks = filled(none, grave, fold if notes else None)
        yield Section("Findings", tuple(blocks), anchor="findings", count=len(items))
    elif items:
        kinds = ", ".join(dict.fromkeys(f"{one.kind} ({fmt.count(len(one.slugs), 'cell')})" for one in notes))
        where = " Read them in the page, or with `redline judge`."
        folded = line((f"i {fmt.count(len(notes), 'note')}", Grade.NOTE), f": {kinds}.", (where, "dim"))
        yield Section("Findings", tuple(filled(grave, Prose((folded,) if notes else ()))))


def _item(one: FindingGroup, cells: int, anchors: set[str]) -> Item:
    """What is said of many cells once, with an anchor that no other of these items has."""
    anchor = f"finding-{one.grade}-{one.kind}"
    first, *more = one.messages
    made = Item(
        line((f"{fmt.GRADE_MARKS[one.grade]} {one.grade}", one.grade), " ", (one.kind, "strong")),
        (line(first.message), line(f"→ {one.advice}"), line((f"in {one.where(cells)}", "dim"))),
        tuple(line(said.message, (f" {', '.join(said.slugs)}", "dim")) for said in more),
        "" if anchor in anchors else anchor,
        fmt.count(len(one.slugs), "cell"),
        one.log_tail,
    )
    anchors.add(anchor)
    return made


def _built_section(report: Report) -> Iterator[Section]:
    """For the page: what ran."""
    rows = tuple((one.server, one.runtime_version or "unknown", one.short_build) for one in built(report))
    if rows:
        table = Table(tuple(map(Column, ("server", "runtime", "build"))), rows)
        yield Section("Servers as they were built", (table,), anchor="built")


def _built(one: BuildLine) -> str:
    facts = (one.runtime_version, f"build {one.short_build}" if one.build else "")
    return f"{one.server} ({', '.join(fact for fact in facts if fact)})"
