"""Comparisons with baselines, and steps on axes: tables of ratios with their intervals and verdicts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from redline.model import SHOWN, CellReport, Comparison, Metric, Report
from redline.report import format as fmt
from redline.report.document import (
    Block,
    ChangeCell,
    Column,
    Fold,
    Line,
    Medium,
    Prose,
    Section,
    Strip,
    Table,
    TableCell,
    Tabs,
    TextCell,
    filled,
    key,
    line,
    refused,
    words,
)
from redline.report.scales import Scale, ratio_scale
from redline.report.sections import dots
from redline.report.sections.boards import Board, ServerPair, Workload, cost_boards, refusals, steps
from redline.report.sections.trials import lone_rounds
from redline.report.sections.views import better, caveats, common_load, signs, tally
from redline.suite.load_text import is_open

_DRAWN = 400
"""The most comparisons that have pictures: the page of a larger study would be too large to mail."""
_IN_TEXT = (Metric.THROUGHPUT, Metric.P99, Metric.CPU_PER_REQUEST)
"""The metrics of tables of many servers and workloads that text has too."""

Numbers = Mapping[tuple[ServerPair, Workload], int]
"""The number under which the reason of a refusal stands."""


def comparison_sections(report: Report) -> Iterator[Section]:
    """Servers against their baselines; nothing where nothing is compared."""
    boards = cost_boards(report)
    if not boards:
        return
    counts = tuple(
        line((str(number), "strong"), " ", (f"{verdict.mark} {verdict.words}", verdict))
        for verdict, number in tally(report).items()
    )
    legend = key(
        "The **change against the baseline**, with its 95% interval. Within "
        f"{fmt.percent(report.run.threshold)} a difference is too small to matter. Signs: "
    )
    duets = _duets(report)
    explained = (Prose(((*legend, *signs()),)), *((duets,) if duets else ()))
    below: tuple[Prose, ...] = ()
    if not report.run.alone:  # the answer has words for a terminal, and a phone has room for the table
        explained, below = _only(Medium.PAGE, explained), _only(Medium.MARKDOWN, explained)
    blocks = filled(*explained, *_tables(report, boards), *below, _remarks(report))
    aside = Prose(counts) if counts else None
    yield Section("Comparisons", tuple(blocks), anchor="comparisons", aside=aside)


def effect_sections(report: Report) -> Iterator[Section]:
    """What a step on an axis costs servers, all else being equal."""
    shown = [step for step in steps(report) if step.boards]
    if shown:
        intro = key("What **one step** costs each server, all else being equal: its change in percent, with the 95% ")
        intro += (*key("interval. Signs: "), *signs())
        cells = {cell.cell_id: cell for cell in report.cells}
        titled = [(step.title, board) for step in shown for board in step.boards]
        tabs = _tabs("effects", report, titled, _Drawing(cells, {}))
        yield Section("Effects", (Prose((intro,)), tabs), anchor="effects")


def ratio_scales(report: Report) -> dict[Metric, Scale]:
    """A scale per metric that is compared, the same for all tables, so that rows compare down the page."""
    return {
        board.metric: ratio_scale(board.comparisons.values(), report.run.threshold, board.metric.value)
        for board in cost_boards(report)
    }


def _only(medium: Medium, texts: Iterable[Prose]) -> tuple[Prose, ...]:
    return tuple(replace(text, on=medium) for text in texts)


def _duets(report: Report) -> Prose | None:
    """How the servers of duets were compared."""
    duets = [(comparison.metric, comparison.duet) for comparison in report.comparisons if comparison.duet]
    if not duets:
        return None
    *others, last = dict.fromkeys(fmt.label(metric) for metric, _ in duets)
    metrics = " and ".join(filter(None, (", ".join(others), last)))
    how = (
        "at the same time, each on cores of its own, which were drawn for each start"
        if any(duet.parallel for _, duet in duets)
        else "in turn, in slices of 10 to 50 ms"
    )
    text = (
        f"Ratios of {metrics} are of **duets**: both servers were alive at once and loaded {how}, on fresh starts, so "
        "what disturbs the machine disturbs both. The baseline **over itself** shows what no difference looks like."
    )
    return Prose((key(text),), on=Medium.WRITTEN)


def _remarks(report: Report) -> Prose:
    """What to know of some comparisons: their families, caveats, and rounds without a partner."""
    families = dict.fromkeys(fmt.family(compared) for compared in report.comparisons if (compared.family or 1) > 1)
    adjusted = f"Verdicts are adjusted within each question: {'; '.join(families)}." if families else ""
    said = (f"{', '.join(map(fmt.label, metrics))}: {caveat}" for caveat, metrics in caveats(report).items())
    return Prose.of((adjusted, *said, *(f"{text}." for text in lone_rounds(report))), "dim")


@dataclass(frozen=True)
class _Drawing:
    """What pictures of ratios are made from, and where the tables with them appear."""

    cells: Mapping[str, CellReport]
    scales: Mapping[Metric, Scale]
    on: Medium = Medium.EVERYWHERE

    def strip(self, comparison: Comparison | None) -> Strip | None:
        """A picture of a ratio on the scale of its metric, above a dot per round."""
        if comparison is None or comparison.ratio is None or comparison.metric not in self.scales:
            return None
        ratio, rounds = comparison.ratio, dots.ratios(self.cells, comparison)
        sign = fmt.VerdictSign.of(comparison)
        return Strip(self.scales[comparison.metric], "point", ratio.value, ratio.low, ratio.high, sign, dots=rounds)


def _tables(report: Report, boards: Sequence[Board]) -> Iterator[Block]:
    """The comparisons, laid out by what varies: servers, workloads, or both."""
    drawn = sum(len(board.comparisons) for board in boards) <= _DRAWN
    cells = {cell.cell_id: cell for cell in report.cells}
    drawing = _Drawing(cells, ratio_scales(report) if drawn else {})
    pairs = tuple(dict.fromkeys(pair for board in boards for pair in board.lines))
    workloads = tuple(dict.fromkeys(column for board in boards for column in board.columns))
    if len(pairs) == len(workloads) == 1:
        yield from _by_metric(pairs[0], workloads[0], boards, drawing)
    elif len(pairs) == 1 or len(workloads) == 1:
        yield from _by_row(pairs, workloads, boards, drawing)
    else:
        yield _tabs("comparisons", report, [("", board) for board in boards], drawing)


def _by_metric(pair: ServerPair, workload: Workload, boards: Sequence[Board], drawing: _Drawing) -> Iterator[Block]:
    """A row per metric: there is one pair of servers under one load."""
    reasons: dict[str, int] = {}
    comparisons = sorted(_at(pair, workload, boards), key=lambda comparison: not comparison.primary)
    rows: list[tuple[TableCell, ...]] = [
        (fmt.label(comparison.metric), _change(comparison, reasons, drawing), _control(comparison, " "))
        for comparison in comparisons
    ]
    over = f"over {pair.against}"
    columns = [Column(""), Column(f"{pair.server} {over}", "right"), Column(f"{pair.against} {over}", "right")]
    if not _has_controls(comparisons):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    ids = dict.fromkeys(side for comparison in comparisons for side in (comparison.cell_id, comparison.baseline_id))
    load = common_load(drawing.cells[cell_id] for cell_id in ids if cell_id in drawing.cells)
    title = line((_workload(workload), "strong"), (f" {load}", "dim"))
    yield Table(tuple(columns), tuple(rows), title, look="tiles")
    yield Prose(tuple(_details(comparisons)), listed=True, on=Medium.PAGE)
    yield refused(reasons)


def _by_row(
    pairs: Sequence[ServerPair], workloads: Sequence[Workload], boards: Sequence[Board], drawing: _Drawing
) -> Iterator[Block]:
    """A row per pair of servers, or per workload, and a column per metric."""
    main = [board for board in boards if board.metric in SHOWN or _is_judged(board)] or list(boards)
    others = [board for board in boards if board not in main]
    brief = [board for board in main if board.metric in _IN_TEXT or _is_judged(board)]
    controlled = _has_controls(comparison for board in main for comparison in board.comparisons.values())
    if controlled and brief:  # a terminal has no room for the medians, too, and a phone for the verdicts alone
        yield from _rows(pairs, workloads, brief, replace(drawing, on=Medium.TERMINAL))
        judged = [board for board in main if _is_judged(board)]
        described = [board for board in main if board not in judged]
        yield from _rows(pairs, workloads, judged, replace(drawing, on=Medium.MARKDOWN))
        yield from _rows(pairs, workloads, described, replace(drawing, on=Medium.MARKDOWN), aside=True)
        drawing = replace(drawing, on=Medium.PAGE)
    yield from _rows(pairs, workloads, main, drawing)
    if others:
        fold = tuple(_rows(pairs, workloads, others, _Drawing(drawing.cells, {})))
        yield Fold(line("Other metrics"), fold, open=False, on=Medium.PAGE)


def _rows(
    pairs: Sequence[ServerPair],
    workloads: Sequence[Workload],
    boards: Sequence[Board],
    drawing: _Drawing,
    *,
    aside: bool = False,
) -> Iterator[Block]:
    """A table; nothing without boards. One `aside` has the other metrics of a table with the verdicts and controls."""
    if not boards:
        return
    reasons: dict[str, int] = {}
    rows: list[tuple[TableCell, ...]] = []
    first, base, several = boards[0], boards[0].against, len(pairs) > 1
    controls = not aside and _has_controls(comparison for board in boards for comparison in board.comparisons.values())
    for workload, pair in product(workloads, pairs):
        comparisons = _at(pair, workload, boards)
        by_metric = {comparison.metric: comparison for comparison in comparisons}
        changes = (_change(by_metric.get(board.metric), reasons, drawing, stacked=True) for board in boards)
        by_duets = [comparison for comparison in comparisons if comparison.duet]
        by_cpu = max(by_duets, key=lambda duet: duet.metric is Metric.CPU_PER_REQUEST, default=None)
        control = [_control(by_cpu) if by_cpu else ""] if controls else []
        against = f" vs {pair.against}" if several and not base else ""
        name = line(
            (pair.server if several else first.title_of(workload), "strong"),
            (f"{against}{f' {pair.setting}' if pair.setting else ''}", "dim"),
        )
        rows.append((TextCell((name,), details=tuple(_details(comparisons))), *changes, *control))
    metrics = (
        Column(fmt.label(board.metric), "right", hint=better(board.metric), scale=drawing.scales.get(board.metric))
        for board in boards
    )
    control_columns = [Column(f"{base} over {base}" if base else "baseline over itself", "right")] if controls else []
    title = _workload(workloads[0]) if several else f"{pairs[0].server} over {pairs[0].against}"
    yield Table(
        (Column("server" if several else "workload"), *metrics, *control_columns),
        tuple(rows),
        line(
            (title, "strong"),
            (f" against {base}" if several and base else "", "dim"),
            (" other metrics" if aside else "", "dim"),
        ),
        look="scores",
        on=drawing.on,
    )
    yield replace(refused(reasons), on=drawing.on)


def _at(pair: ServerPair, workload: Workload, boards: Iterable[Board]) -> list[Comparison]:
    return [comparison for board in boards if (comparison := board.comparisons.get((pair, workload)))]


def _is_judged(board: Board) -> bool:
    return any(comparison.primary for comparison in board.comparisons.values())


def _has_controls(comparisons: Iterable[Comparison]) -> bool:
    return any(comparison.duet and comparison.duet.control for comparison in comparisons)


def _change(
    comparison: Comparison | None, reasons: dict[str, int], drawing: _Drawing, *, stacked: bool = False
) -> ChangeCell:
    note = None
    if comparison is not None and comparison.ratio is None:
        note = reasons.setdefault(comparison.refused or "no reason was given", len(reasons) + 1)
    return ChangeCell.of(comparison, note, drawing.strip(comparison), stacked=stacked)


def _workload(workload: Workload) -> str:
    return f"{workload.scenario} · {workload.load}"


def _control(comparison: Comparison, between: str = "\n") -> TextCell:
    """The baseline over itself, in two lines, or on the same line."""
    control = comparison.duet.control if comparison.duet else None
    texts = [fmt.change(control), fmt.change_bounds(control)] if control else []
    return words(*between.join(texts).split("\n"), look="dim")


def _details(comparisons: Iterable[Comparison], where: str = "") -> Iterator[Line]:
    """How comparisons by duets came about: `CPU per request: 9 starts, which differ by 0.4%; …`."""
    for comparison in comparisons:
        if comparison.duet is None:
            continue
        duet, parts = comparison.duet, [fmt.count(comparison.duet.starts, "fresh start")]
        if duet.between_sd is not None:
            parts.append(f"starts differ by {duet.between_sd * 100:.2g}%")
        if duet.blocks_se is not None:
            parts.append(f"the machine's noise leaves an error of {duet.blocks_se * 100:.2g}% in one start")
        if duet.alone is not None:
            parts.append(f"trials of each server alone say {fmt.with_bounds(duet.alone)}")
        yield line((f"{where}{fmt.label(comparison.metric)}: ", "dim"), "; ".join(parts))


def _tabs(name: str, report: Report, titled: Sequence[tuple[str, Board]], drawing: _Drawing) -> Tabs:
    """A tab per metric, with a part per board that has a title."""
    boards = [board for _, board in titled]
    choices = []
    metrics = [metric for metric in Metric if any(board.metric is metric for board in boards)]
    for metric in metrics:
        here = replace(drawing, on=Medium.EVERYWHERE if metric in _IN_TEXT else Medium.PAGE)
        blocks: list[Block] = []
        for title, board in titled:
            if board.metric is metric:
                made = tuple(_board_blocks(board, here))
                blocks += [Fold(line(title), made, on=here.on)] if title else made
        choices.append((fmt.label(metric), better(metric), tuple(blocks)))
    return Tabs(name, tuple(choices), metrics.index(_first(report, boards, drawing.cells)))


def _first(report: Report, boards: Sequence[Board], cells: Mapping[str, CellReport]) -> Metric:
    """The p99 where all loads are open, else the metric by which servers are ranked when all rankings are by it.

    In an open load the throughput is the schedule's and not the server's. Shares of a capacity have no rankings.
    """
    metrics = [board.metric for board in boards]
    shown = (cells[comparison.cell_id] for board in boards for comparison in board.comparisons.values())
    if Metric.P99 in metrics and all(is_open(cell.load_text) for cell in shown):
        return Metric.P99
    ranked = {ranking.metric for ranking in report.rankings}
    return next((metric for metric in metrics if ranked == {metric}), metrics[0])


def _board_blocks(board: Board, drawing: _Drawing) -> Iterator[Block]:
    """A table per load, or a single one for few numbers; and why some comparisons were refused."""
    notes = tuple(refusals(board))
    numbers = {place: number for number, _, places in notes for place in places}
    against = f" against {board.against}" if board.against and board.against != board.lines[0].server else ""
    for load, part in board.parts():
        shown = (drawing.cells[comparison.cell_id] for comparison in part.comparisons.values())
        under = f" {load} {common_load(shown)}" if load else ""
        heading = line((f"{fmt.label(board.metric)}{against}", "strong"), (under, "dim"))
        yield _board(part, numbers, heading, drawing, against=bool(board.against))
    reasons = refused(f"{reason} ({_where(places)})" for _, reason, places in notes)
    yield replace(reasons, on=drawing.on)


def _board(board: Board, numbers: Numbers, title: Line, drawing: _Drawing, *, against: bool) -> Table:
    """A row per pair of servers, a column per workload; settings are shown where they vary."""
    has_settings = any(pair.setting for pair in board.lines)
    rows: list[tuple[TableCell, ...]] = []
    for pair in board.lines:
        details: list[Line] = []
        changes: list[ChangeCell] = []
        for column in board.columns:
            comparison = board.comparisons.get((pair, column))
            details += _details([comparison] if comparison else [], f"{board.title_of(column)}, ")
            changes.append(ChangeCell.of(comparison, numbers.get((pair, column)), drawing.strip(comparison)))
        other = f" vs {pair.against}" if pair.against != pair.server and not against else ""
        server = TextCell((line((pair.server, "strong"), (other, "dim")),), details=tuple(details))
        rows.append((*((pair.setting,) if has_settings else ()), server, *changes))
    both = len(board.loads) > 1 and len(board.scenarios) > 1
    scale = drawing.scales.get(board.metric)
    columns = [Column("setting", place="above")] if has_settings else []
    columns.append(Column("server"))
    for column in board.columns:
        name, group = (column.scenario, column.load) if both else (board.title_of(column), "")
        columns.append(Column(name, "right", group=group, scale=scale))
    return Table(tuple(columns), tuple(rows), title, look="tiles", on=drawing.on)


def _where(places: Sequence[tuple[ServerPair, Workload]]) -> str:
    """The places in words; the first few of many."""
    named = [
        " ".join(part for part in (pair.server, pair.setting, workload.scenario, workload.load) if part)
        for pair, workload in places
    ]
    return "; ".join(named[:4]) + (f"; and {len(named) - 4} more" if len(named) > 4 else "")
