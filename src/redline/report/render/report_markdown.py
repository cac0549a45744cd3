"""The report as Markdown, fit for a comment on a pull request."""

from redline.model import SHOWN, CellReport, Comparison, Metric, ObjectiveResult, Report
from redline.report import format as fmt
from redline.report.format import GRADE_MARKS, MARKS
from redline.report.render.escaping import safe as _safe
from redline.report.render.markdown_boards import overview
from redline.report.render.pairs import lone_rounds
from redline.report.render.rounds import rounds_told
from redline.report.render.views import (
    Built,
    Doubt,
    Group,
    because,
    built,
    caveats,
    comparisons_by_cell,
    doubts,
    groups,
    marks,
    tally,
)
from redline.report.render.warm_ups import warm_ups


class MarkdownRenderer:
    """Report -> GitHub-flavoured Markdown. Texts are escaped; they can call nobody, hide no link and hold no HTML."""

    def render(self, report: Report) -> bytes:
        """A heading, costs, effects, rankings, a table for each scenario and load, findings, how to repeat the run."""
        blocks = [
            _head(report),
            *overview(report, _safe),
            *_tables(report),
            *_findings(report),
            *_skipped(report),
            _foot(report),
        ]
        return ("\n\n".join(blocks) + "\n").encode(errors="replace")


def _head(report: Report) -> str:
    run, machine = report.run, report.environment
    facts = [
        fmt.instant(run.started_unix_ns),
        f"{run.trials_done} of {run.trials_planned} trials" + ("" if run.complete else " (**not complete**)"),
        f"{_safe(machine.cpu_model or 'unknown CPU')}, {machine.cores} cores",
        f"seed {run.seed}",
    ]
    counted = [f"{number} {MARKS[verdict]} {verdict}" for verdict, number in tally(report).items()]
    lines = [f"## {_safe(run.suite)}", " · ".join(facts)]
    if run.precision:
        lines.append(_safe(f"{rounds_told(run.precision)}."))
    return "\n\n".join([*lines, *([", ".join(counted) + "."] if counted else [])])


def _tables(report: Report) -> list[str]:
    compared = comparisons_by_cell(report)
    blocks = [_table(group, compared) for group in groups(report)]
    if compared:
        threshold = fmt.percent(report.run.threshold)
        blocks.append(
            f"Under each value: its ratio to the baseline, with the 95% interval. Differences within {threshold} are "
            "too small to matter."
        )
    for caveat, metrics in caveats(report).items():
        blocks.append(f"{', '.join(fmt.label(metric) for metric in metrics)}: {_safe(caveat)}")
    return [*blocks, *(f"{_safe(told)}." for told in lone_rounds(report))]


def _table(group: Group, compared: dict[str, dict[Metric, Comparison]]) -> str:
    header = ["server", *(fmt.label(metric) for metric in SHOWN)]
    lines = [
        f"### {_safe(group.scenario)} · {_safe(group.load)}\n",
        f"{_safe(group.load_text)}\n",
        f"| {' | '.join(header)} |",
        f"|---|{'---:|' * len(SHOWN)}",
    ]
    for cell in group.cells:
        columns = _columns(cell, compared.get(cell.cell_id, {}))
        lines.append(f"| {' | '.join([_name(cell, group), *columns])} |")
    others = [
        f"{_safe(cell.server)}, {_safe(_others(cell))}"
        for cell in group.cells
        if cell.valid and (cell.tls or cell.other_times)
    ]
    others += [f"{_safe(servers)}, warm-up: {_safe(text)}" for servers, text in warm_ups(group.cells)]
    if others:
        lines += ["", "<br>".join(others)]
    short = _too_few(group)
    if short:
        lines += ["", "<br>".join(short)]
    return "\n".join(lines)


def _others(cell: CellReport) -> str:
    return "; ".join([*map(fmt.agreed, cell.tls), *map(fmt.other_time, cell.other_times)])


def _too_few(group: Group) -> list[str]:
    """`p99.99 needs 100,000 requests: rust.hyper 38,112 more`, for each percentile that some cell does not tell."""
    servers: dict[str, list[str]] = {}
    for cell in group.cells:
        for one in cell.too_few if cell.valid else ():
            needs = f"{fmt.label(one.metric)} needs {fmt.integer(one.needs)} requests"
            servers.setdefault(needs, []).append(f"{_safe(cell.server)} {fmt.integer(one.missing)} more")
    return [f"{needs}: {', '.join(told)}." for needs, told in servers.items()]


def _name(cell: CellReport, group: Group) -> str:
    role = " (ceiling)" if cell.role == "ceiling" else " (baseline)" if cell.is_baseline else ""
    if cell.cell_id in group.against:
        role = f" (vs {_safe(group.against[cell.cell_id])})"
    if group.own_loads:
        role += f"<br>{_safe(cell.load_text)}"
    missed = "".join(f"<br>✗ {_missed(result)}" for result in cell.objectives if not result.met)
    signs = "".join(f" {GRADE_MARKS[grade]}" for grade in marks(cell) if cell.valid)
    return f"**{_safe(cell.server)}**{role}{signs}{missed}"


def _missed(result: ObjectiveResult) -> str:
    return _safe(result.objective.text) + (f" ({_safe(result.reason)})" if result.reason else "")


def _columns(cell: CellReport, compared: dict[Metric, Comparison]) -> list[str]:
    if not cell.valid:
        return [f"✕ invalid: {_safe(because(cell))}", *[""] * (len(SHOWN) - 1)]
    return [_value(cell, metric, None if cell.role == "ceiling" else compared.get(metric)) for metric in SHOWN]


def _value(cell: CellReport, metric: Metric, comparison: Comparison | None) -> str:
    estimate = cell.estimates.get(metric)
    if estimate is None:
        return "not measured"
    text = f"{fmt.amount(estimate.value, estimate.unit)} {fmt.spread(estimate)}".rstrip()
    if comparison is None:
        return text
    if comparison.ratio is None or comparison.verdict is None:
        return f"{text}<br>not compared: {_safe(comparison.refused)}"
    bounds = fmt.interval(comparison.ratio)
    ratio = fmt.ratio(comparison.ratio.value) + (f" ({bounds})" if bounds else "")
    said = f"{MARKS[comparison.verdict]} {comparison.verdict} {fmt.held_back(comparison)}".rstrip()
    return f"{text}<br>{ratio}<br>{said}"


def _findings(report: Report) -> list[str]:
    found = doubts(report)
    return ["### Findings", "\n".join(_doubt(doubt, len(report.cells)) for doubt in found)] if found else []


def _doubt(doubt: Doubt, cells: int) -> str:
    return (
        f"- {GRADE_MARKS[doubt.grade]} **{doubt.grade}: {doubt.kind}**. {_safe(doubt.example)}\n"
        f"  {_safe(doubt.advice)}\n"
        f"  ({_safe(doubt.where(cells))})"
    )


def _skipped(report: Report) -> list[str]:
    listed = "\n".join(f"- **{_safe(skip.slug)}**: {_safe(skip.reason)}" for skip in report.skipped)
    return ["### Skipped", listed] if listed else []


def _foot(report: Report) -> str:
    machine = report.environment
    parts = [f"redline {machine.redline}", machine.commit, f"kernel {machine.kernel}", report.run.command]
    repeat = "Repeat: " + " · ".join(_safe(part) for part in parts if part)
    servers = " · ".join(_built(one) for one in built(report))
    return f"Servers: {servers}\n\n{repeat}" if servers else repeat


def _built(one: Built) -> str:
    facts = [one.runtime_version, f"build {one.short_build}" if one.build else ""]
    return f"{_safe(one.server)} ({', '.join(_safe(fact) for fact in facts if fact)})"
