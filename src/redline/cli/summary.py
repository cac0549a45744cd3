"""A report, and a list of comparisons, as a terminal shows them: readable at 80 columns, without colour, and piped."""

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from redline.cli.costs import COLOURS, print_costs
from redline.cli.layers_view import print_layers
from redline.model import SHOWN, CellReport, Comparison, Grade, Metric, Report, Skipped, Verdict
from redline.report.format import (
    GRADE_MARKS,
    MARKS,
    amount,
    held_back,
    interval,
    label,
    one_line,
    percent,
    ratio,
    spread,
)
from redline.report.render.pairs import lone_rounds, lone_rounds_of
from redline.report.render.rounds import rounds_told
from redline.report.render.views import (
    Doubt,
    Group,
    because,
    comparisons_by_cell,
    doubts,
    groups,
    marks,
)
from redline.report.render.warm_ups import warm_ups

GRADE_COLOURS = {Grade.NOTE: "blue", Grade.WARN: "yellow", Grade.INVALID: "bold red"}
_HEADERS = {Metric.CPU_PER_REQUEST: "CPU/request"}
_COLUMNS = range(len(SHOWN))
_LEAST_NAME = 12
_ROOM_FOR_WORDS = 112
_HASH = 9  # a cell's id is its slug, a dash and eight hex digits


def print_report(report: Report, console: Console) -> None:
    """Tables by scenario and load, what servers cost, then findings with advice, then what was skipped."""
    done = f"{report.run.trials_done} of {report.run.trials_planned} trials"
    console.print(
        Text.assemble(
            (one_line(report.run.name), "bold"),
            f"  {done}" + ("" if report.run.complete else ", not complete"),
            (f"  seed {report.run.seed}", "dim"),
        )
    )
    if report.run.precision:
        console.print(Text(one_line(rounds_told(report.run.precision)), style="dim"))
    compared = comparisons_by_cell(report)
    numbers = _numbers(report, compared, words=console.width >= _ROOM_FOR_WORDS)
    widths = [
        max(len(line) for row in numbers.values() for line in row[column].plain.split("\n")) for column in _COLUMNS
    ]
    names = max((len(name) for cell in report.cells for name in (cell.server, "baseline ! i")), default=0)
    names = min(names, max(console.width - sum(widths) - 2 * len(widths), _LEAST_NAME))
    for group in groups(report):
        console.print()
        console.print(Text.assemble((one_line(group.title), "bold"), (f"  {one_line(group.load_text)}", "dim")))
        console.print(_table(group, numbers, [names, *widths]))
        for servers, text in warm_ups(group.cells):
            console.print(Text(one_line(f"warm-up of {servers}: {text}"), "dim"))
    if compared:
        console.print()
        console.print(_legend(report.run.threshold))
    for told in lone_rounds(report):
        console.print(Text(one_line(told), "dim"))
    print_layers(report, console)
    print_costs(report, console)
    _print_missed(report.cells, console)
    _print_doubts(doubts(report), len(report.cells), console)
    _print_skipped(report.skipped, console)


def print_comparisons(comparisons: Sequence[Comparison], console: Console, *, base: str, other: str) -> None:
    """Each cell's ratios to its baseline, with interval and verdict; `base` and `other` name the runs.

    Of what tables do not show (the p99.9) only what could be compared: of most runs it is refused.
    """
    title = f"{one_line(other)} against {one_line(base)}" if base != other else f"{one_line(base)} against its baseline"
    console.print(Text(title, "bold"))
    by_pair: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.metric in SHOWN or comparison.verdict:
            by_pair.setdefault((comparison.cell_id, comparison.baseline_id), []).append(comparison)
    for (cell_id, baseline_id), found in by_pair.items():
        against = f"  against {_slug(baseline_id)}" if baseline_id != cell_id else ""
        console.print()
        console.print(Text.assemble((_slug(cell_id), "bold"), (against, "dim")))
        console.print(_inset(_ratios(found), 2))
        for told in lone_rounds_of(found):
            console.print(_inset(Text(one_line(told.partition(":")[0]), "dim"), 2))


def _ratios(comparisons: Iterable[Comparison]) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=len(label(Metric.CPU_PER_REQUEST)))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, min_width=11)
    table.add_column()
    for found in comparisons:
        if found.ratio is None or found.verdict is None:
            table.add_row(label(found.metric), "", "", Text(f"not compared: {one_line(found.refused)}", "dim"))
            continue
        said = f"{MARKS[found.verdict]} {found.verdict} {held_back(found)}".rstrip()
        verdict = Text(said, COLOURS[found.verdict])
        table.add_row(label(found.metric), ratio(found.ratio.value), Text(interval(found.ratio), "dim"), verdict)
    return table


def _numbers(report: Report, compared: dict[str, dict[Metric, Comparison]], *, words: bool) -> dict[str, list[Text]]:
    """The metrics of each valid cell by its id, and under "" their headers."""
    headers = [Text(_HEADERS.get(metric, label(metric)), "dim") for metric in SHOWN]
    return {"": headers} | {
        cell.cell_id: [
            _value(cell, metric, compared.get(cell.cell_id, {}).get(metric), words=words) for metric in SHOWN
        ]
        for cell in report.cells
        if cell.valid
    }


def _table(group: Group, numbers: dict[str, list[Text]], widths: Sequence[int]) -> Table:
    """Two columns: names, and either the metrics or, for an invalid cell, the reason over their whole width."""
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(width=widths[0], overflow="fold")
    table.add_column()
    table.add_row("", _line(numbers[""], widths[1:]))
    for cell in group.cells:
        void = Text.assemble((f"{GRADE_MARKS[Grade.INVALID]} invalid: ", "bold red"), one_line(because(cell)))
        table.add_row(_name(cell, group), _line(numbers[cell.cell_id], widths[1:]) if cell.valid else void)
    return table


def _line(cells: Sequence[Text], widths: Sequence[int]) -> Table:
    line = Table.grid(padding=(0, 2), pad_edge=False)
    for width in widths:
        line.add_column(width=width)
    line.add_row(*cells)
    return line


def _name(cell: CellReport, group: Group) -> Text:
    """The server, and below it its role or what it is compared with, its own load, and its findings by grade."""
    role = "ceiling" if cell.role == "ceiling" else "baseline" if cell.is_baseline else ""
    against = one_line(group.against.get(cell.cell_id, ""))
    told = [role, f"vs {against}" if against else "", one_line(cell.load_text) if group.own_loads else ""]
    text = Text(one_line(cell.server), "dim" if role == "ceiling" else "")
    notes = Text(", ".join(part for part in told if part), "dim")
    for grade in marks(cell):
        notes.append(" " if notes else "")
        notes.append(GRADE_MARKS[grade], GRADE_COLOURS[grade])
    return Text("\n").join([text, notes]) if notes else text


def _value(cell: CellReport, metric: Metric, comparison: Comparison | None, *, words: bool) -> Text:
    estimate = cell.estimates.get(metric)
    if estimate is None:
        return Text("not measured", "dim")
    text = Text.assemble(amount(estimate.value, estimate.unit), (f" {spread(estimate)}".rstrip(), "dim"))
    if comparison is None or cell.role == "ceiling":
        return text
    if comparison.ratio is None or comparison.verdict is None:
        return text.append("\nnot compared", "dim")
    sign = f"{MARKS[comparison.verdict]} {comparison.verdict} " if words else f"{MARKS[comparison.verdict]} "
    text.append(f"\n{sign}{ratio(comparison.ratio.value)}", COLOURS[comparison.verdict])
    return text.append(f" {spread(comparison.ratio)}".rstrip(), "dim")


def _legend(threshold: float) -> Text:
    signs = [
        (f"{MARKS[Verdict.FASTER]} faster", Verdict.FASTER),
        (f"{MARKS[Verdict.SLOWER]} slower", Verdict.SLOWER),
        (f"{MARKS[Verdict.EQUIVALENT]} equivalent (±{percent(threshold)})", Verdict.EQUIVALENT),
        (f"{MARKS[Verdict.INCONCLUSIVE]} inconclusive", Verdict.INCONCLUSIVE),
    ]
    parts = [Text(text, COLOURS[verdict]) for text, verdict in signs]
    return Text.assemble(Text("ratio to the baseline: ", "dim"), Text("  ").join(parts))


def _print_missed(cells: Sequence[CellReport], console: Console) -> None:
    missed: dict[str, list[str]] = {}
    for cell in cells:
        for result in cell.objectives:
            if not result.met:
                missed.setdefault(one_line(result.objective.text), []).append(
                    one_line(cell.slug) + (f" ({one_line(result.reason)})" if result.reason else "")
                )
    if not missed:
        return
    console.print()
    console.print(Text("Objectives missed", "bold"))
    for objective, slugs in missed.items():
        console.print(Text(f"✗ {objective}", "red"))
        console.print(_inset(Text(", ".join(slugs), "dim"), 4))


def _print_doubts(found: Sequence[Doubt], cells: int, console: Console) -> None:
    if not found:
        return
    console.print()
    console.print(Text("Findings", "bold"))
    for doubt in found:
        sign = f"{GRADE_MARKS[doubt.grade]} {doubt.grade}"
        console.print(Text.assemble((sign, GRADE_COLOURS[doubt.grade]), f"  {doubt.kind}"))
        console.print(_inset(Text(one_line(doubt.example)), 2))
        console.print(_inset(Text(one_line(doubt.where(cells)), "dim"), 4))
        console.print(_inset(Text(f"→ {one_line(doubt.advice)}"), 2))


def _print_skipped(skipped: Sequence[Skipped], console: Console) -> None:
    if not skipped:
        return
    reasons: dict[str, list[str]] = {}
    for skip in skipped:
        reasons.setdefault(one_line(skip.reason), []).append(one_line(skip.slug))
    console.print()
    console.print(Text(f"Skipped: {len(skipped)} cell{'' if len(skipped) == 1 else 's'}", "bold"))
    for reason, slugs in reasons.items():
        console.print(_inset(Text(reason), 2))
        console.print(_inset(Text(", ".join(slugs), "dim"), 4))


def _inset(what: RenderableType, by: int) -> Padding:
    return Padding(what, (0, 0, 0, by), expand=False)


def _slug(cell_id: str) -> str:
    return one_line(cell_id[:-_HASH])
