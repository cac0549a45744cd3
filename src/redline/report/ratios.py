"""Comparisons with baselines, and steps on axes: tables of ratios with their intervals and verdicts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from redline.document import format as fmt
from redline.document.blocks import (
    Block,
    ChangeCell,
    Column,
    Fold,
    Line,
    Medium,
    Prose,
    Section,
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
from redline.model import SHOWN, CellReport, Comparison, Metric, Report
from redline.report.boards import Board, ServerPair, Workload, cost_boards, refusals, steps
from redline.report.trials import lone_rounds
from redline.report.views import better, caveats, common_load, signs, tally
from redline.suite.load_text import is_open

_FOLDED = 40
"""The most cells for which the page folds the matrix: the table of results then shows all of them."""
_IN_TEXT = (Metric.THROUGHPUT, Metric.P99, Metric.CPU_PER_REQUEST)
"""The metrics that text has too in tables of many servers and workloads."""

Numbers = Mapping[tuple[ServerPair, Workload], int]
"""The number of each refusal's reason, by its place in the table."""


def comparison_sections(report: Report) -> Iterator[Section]:
    """Servers against their baselines in text; on the page a matrix of servers and workloads, if both vary."""
    boards = cost_boards(report)
    if not boards:
        return
    texts = tuple(replace(text, on=text.on & Medium.TEXT) for text in legend(report))
    before, below = texts, tuple[Prose, ...]()
    if not report.run.alone:  # a terminal shows the answer in words, and a phone has room for the table
        before, below = (), tuple(replace(text, on=Medium.MARKDOWN) for text in texts)
    blocks = filled(*before, *_tables(report, boards), *below, replace(remarks(report), on=Medium.TEXT))
    yield Section("Comparisons", tuple(blocks), anchor="comparisons")


def verdict_counts(report: Report) -> tuple[Line, ...]:
    """Count the comparisons per verdict."""
    return tuple(
        line((str(number), "strong"), " ", (f"{verdict.mark} {verdict.words}", verdict))
        for verdict, number in tally(report).items()
    )


def legend(report: Report) -> tuple[Prose, ...]:
    """Explain ratios and signs, and how the servers of duets were compared; empty if nothing is compared."""
    if not cost_boards(report):
        return ()
    said = key(
        "The **change against the baseline**, with its 95% interval. Within "
        f"{fmt.percent(report.run.threshold)} a difference is too small to matter. Signs: "
    )
    duets = _duets(report)
    return (Prose(((*said, *signs()),)), *((duets,) if duets else ()))


def effect_sections(report: Report) -> Iterator[Section]:
    """The cost of a step on an axis to servers, all else being equal.

    The only step between two servers is their comparison, which stands above.
    """
    shown = [step for step in steps(report) if step.boards]
    compared = {(comparison.cell_id, comparison.baseline_id) for comparison in report.comparisons}
    others = [
        effect
        for effect in report.effects
        if (effect.comparison.cell_id, effect.comparison.baseline_id) not in compared
    ]
    if len(shown) > 1 or (shown and others):
        intro = key("What **one step** costs each server, all else being equal: its change in percent, with the 95% ")
        intro += (*key("interval. Signs: "), *signs())
        cells = {cell.cell_id: cell for cell in report.cells}
        titled = [(step.title, board) for step in shown for board in step.boards]
        fold = Fold(line("Steps by server"), (_tabs("effects", report, titled, cells),), open=False)
        yield Section("Effects", (Prose((intro,)), fold), anchor="effects")


def _duets(report: Report) -> Prose | None:
    """Explain how the servers of duets were compared."""
    duets = [(comparison.metric, comparison.duet) for comparison in report.comparisons if comparison.duet]
    if not duets:
        return None
    *others, last = dict.fromkeys(fmt.label(metric) for metric, _ in duets)
    metrics = " and ".join(filter(None, (", ".join(others), last)))
    how = (
        "at the same time, each on cores of its own, which were drawn for each start"
        if any(duet.parallel for _, duet in duets)
        else "in turn, in short slices"
    )
    text = (
        f"Ratios of {metrics} are of **duets**: both servers were alive at once and loaded {how}, on fresh starts, so "
        "what disturbs the machine disturbs both. The baseline **over itself** shows what no difference looks like."
    )
    return Prose((key(text),), on=Medium.WRITTEN)


def remarks(report: Report) -> Prose:
    """Remarks on some comparisons: their families, caveats, and rounds without a partner."""
    families = dict.fromkeys(fmt.family(compared) for compared in report.comparisons if (compared.family or 1) > 1)
    adjusted = f"Verdicts are adjusted within each question: {'; '.join(families)}." if families else ""
    said = (f"{', '.join(map(fmt.label, metrics))}: {caveat}" for caveat, metrics in caveats(report).items())
    return Prose.of((adjusted, *said, *(f"{text}." for text in lone_rounds(report))), "dim")


_Cells = Mapping[str, CellReport]


def _tables(report: Report, boards: Sequence[Board]) -> Iterator[Block]:
    """The comparisons, laid out by what varies: servers, workloads, or both; then the page has them, too."""
    cells = {cell.cell_id: cell for cell in report.cells}
    pairs = tuple(dict.fromkeys(pair for board in boards for pair in board.lines))
    workloads = tuple(dict.fromkeys(column for board in boards for column in board.columns))
    if len(pairs) == len(workloads) == 1:
        yield from _by_metric(pairs[0], workloads[0], boards, cells)
    elif len(pairs) == 1 or len(workloads) == 1:
        yield from _by_row(pairs, workloads, boards)
    else:
        tabs = _tabs("comparisons", report, [("", board) for board in boards], cells)
        title = line("Servers by workload")
        yield Fold(title, (tabs,), None if len(report.cells) > _FOLDED else False)
        yield _elsewhere(boards, _IN_TEXT, Medium.TEXT)


def _by_metric(pair: ServerPair, workload: Workload, boards: Sequence[Board], cells: _Cells) -> Iterator[Block]:
    """A row per metric, for a single pair of servers under a single load."""
    reasons: dict[str, int] = {}
    comparisons = sorted(_at(pair, workload, boards), key=lambda comparison: not comparison.primary)
    over = f"over {pair.against}"
    columns = [Column(""), Column(f"{pair.server} {over}", "right")]
    in_times = [fmt.times(comparison) for comparison in comparisons]
    # A terminal of 80 columns has no room for the multiples, too: the intervals would be left out.
    rows: list[tuple[TableCell, ...]] = [
        (fmt.label(comparison.metric), _change(comparison, reasons, stacked=any(in_times)))
        for comparison in comparisons
    ]
    if any(in_times):
        columns.append(Column("times", "right"))
        rows = [(*row, times) for row, times in zip(rows, in_times, strict=True)]
    if _has_controls(comparisons):
        between = "\n" if any(in_times) else " "
        columns.append(Column(f"{pair.against} {over}", "right"))
        rows = [(*row, _control(comparison, between)) for row, comparison in zip(rows, comparisons, strict=True)]
    ids = dict.fromkeys(side for comparison in comparisons for side in (comparison.cell_id, comparison.baseline_id))
    load = common_load(cells[cell_id] for cell_id in ids if cell_id in cells)
    title = line((_workload(workload), "strong"), (f" {load}", "dim"))
    yield Table(tuple(columns), tuple(rows), title, on=Medium.TEXT)
    yield replace(refused(reasons), on=Medium.TEXT)


def _by_row(pairs: Sequence[ServerPair], workloads: Sequence[Workload], boards: Sequence[Board]) -> Iterator[Block]:
    """A row per pair of servers, or per workload, and a column per metric."""
    main = [board for board in boards if board.metric in SHOWN or _is_judged(board)] or list(boards)
    brief = [board for board in main if board.metric in _IN_TEXT or _is_judged(board)]
    controlled = _has_controls(comparison for board in main for comparison in board.comparisons.values())
    if controlled and brief:  # a terminal has no room for the medians, too, and a phone only for the verdicts
        in_terminal, first = brief, [board for board in main if _is_judged(board)]
    else:
        in_terminal = first = main
    yield from _rows(pairs, workloads, in_terminal, Medium.TERMINAL)
    yield from _rows(pairs, workloads, first, Medium.MARKDOWN)
    yield from _rows(pairs, workloads, [b for b in boards if b not in first], Medium.MARKDOWN, aside=True)
    yield _elsewhere(boards, [board.metric for board in in_terminal], Medium.TERMINAL)


def _elsewhere(boards: Iterable[Board], shown: Sequence[Metric], on: Medium) -> Prose:
    """Where the metrics stand that a text has no room for."""
    left = [fmt.label(board.metric) for board in boards if board.metric not in shown]
    where = "the page, in Markdown, CSV and JSON" if on is Medium.TERMINAL else "the page, in CSV and JSON"
    return Prose.of([f"Compared too, and shown on {where}: {', '.join(left)}."] if left else [], "dim", on=on)


def _rows(
    pairs: Sequence[ServerPair],
    workloads: Sequence[Workload],
    boards: Sequence[Board],
    on: Medium,
    *,
    aside: bool = False,
) -> Iterator[Block]:
    """A table; empty without boards. `aside` has the other metrics of a table with the verdicts and controls."""
    if not boards:
        return
    reasons: dict[str, int] = {}
    rows: list[tuple[TableCell, ...]] = []
    first, base, several = boards[0], boards[0].against, len(pairs) > 1
    controls = not aside and _has_controls(comparison for board in boards for comparison in board.comparisons.values())
    shared = controls and bool(base) and several and len(workloads) == 1  # these duets share their control
    control: TextCell | str = ""
    for workload, pair in product(workloads, pairs):
        comparisons = _at(pair, workload, boards)
        by_metric = {comparison.metric: comparison for comparison in comparisons}
        changes = (_change(by_metric.get(board.metric), reasons, stacked=True) for board in boards)
        by_duets = [comparison for comparison in comparisons if comparison.duet]
        by_cpu = max(by_duets, key=lambda duet: duet.metric is Metric.CPU_PER_REQUEST, default=None)
        control = _control(by_cpu, " " if shared else "\n") if by_cpu else ""
        against = f" vs {pair.against}" if several and not base else ""
        name = line(
            (pair.server if several else first.title_of(workload), "strong"),
            (f"{against}{f' {pair.setting}' if pair.setting else ''}", "dim"),
        )
        rows.append(
            (TextCell((name,)), *changes, _in_times(comparisons), *([control] if controls and not shared else []))
        )
    metrics = (Column(fmt.label(board.metric), "right") for board in boards)
    over_itself = f"{base} over {base}" if base else "baseline over itself"
    control_columns = [Column(over_itself, "right")] if controls and not shared else []
    title = _workload(workloads[0]) if several else f"{pairs[0].server} over {pairs[0].against}"
    columns = (Column("server" if several else "workload"), *metrics, Column("times"), *control_columns)
    at = len(boards) + 1
    if aside or not any(isinstance(row[at], TextCell) for row in rows):
        columns = (*columns[:at], *columns[at + 1 :])
        rows = [(*row[:at], *row[at + 1 :]) for row in rows]
    yield Table(
        columns,
        tuple(rows),
        line(
            (title, "strong"),
            (f" against {base}" if several and base else "", "dim"),
            (" other metrics" if aside else "", "dim"),
        ),
        on=on,
    )
    if shared and isinstance(control, TextCell):
        yield Prose(((*line((f"{over_itself}: ", "dim")), *control.lines[0]),), on=on)
    yield replace(refused(reasons), on=on)


def _at(pair: ServerPair, workload: Workload, boards: Iterable[Board]) -> list[Comparison]:
    return [comparison for board in boards if (comparison := board.comparisons.get((pair, workload)))]


def _is_judged(board: Board) -> bool:
    return any(comparison.primary for comparison in board.comparisons.values())


def _has_controls(comparisons: Iterable[Comparison]) -> bool:
    return any(comparison.duet and comparison.duet.control for comparison in comparisons)


def _in_times(comparisons: Sequence[Comparison]) -> TableCell:
    """`1.6 times` over `fewer requests`: the rate if it is known, else the first judged metric."""
    ordered = sorted(comparisons, key=lambda known: (known.metric is not Metric.THROUGHPUT, not known.primary))
    first = next((comparison for comparison in ordered if comparison.ratio), None)
    text = fmt.times(first, named=True) if first else ""
    if not text:
        return ""
    head, _, rest = text.partition(" times ")
    return words(f"{head} times", rest)


def _change(comparison: Comparison | None, reasons: dict[str, int], *, stacked: bool = False) -> ChangeCell:
    note = None
    if comparison is not None and comparison.ratio is None:
        note = reasons.setdefault(comparison.refused or "no reason was given", len(reasons) + 1)
    return ChangeCell.of(comparison, note, stacked=stacked)


def _workload(workload: Workload) -> str:
    return f"{workload.scenario} · {workload.load}"


def _control(comparison: Comparison, between: str = "\n") -> TextCell:
    """The baseline over itself, in two lines, or on the same line."""
    control = comparison.duet.control if comparison.duet else None
    texts = [fmt.change(control), fmt.change_bounds(control)] if control else []
    return words(*between.join(texts).split("\n"), look="dim")


def duet_details(comparisons: Iterable[Comparison]) -> Iterator[Line]:
    """How duets led to comparisons: `CPU per request: 9 starts, which differ by 0.4%; …`."""
    for comparison in comparisons:
        if comparison.duet is None:
            continue
        duet, parts = comparison.duet, [fmt.count(comparison.duet.starts, "fresh start")]
        if duet.between_sd is not None:
            parts.append(f"starts differ by {fmt.significant(duet.between_sd * 100, 2)}%")
        if duet.blocks_se is not None:
            parts.append(
                f"the machine's noise leaves an error of {fmt.significant(duet.blocks_se * 100, 2)}% in one start"
            )
        if duet.alone is not None:
            parts.append(f"trials of each server alone say {fmt.with_bounds(duet.alone)}")
        yield line((f"{fmt.label(comparison.metric)}: ", "dim"), "; ".join(parts))


def _tabs(name: str, report: Report, titled: Sequence[tuple[str, Board]], cells: _Cells) -> Tabs:
    """A tab per metric, with a part per board that has a title."""
    boards = [board for _, board in titled]
    choices = []
    metrics = [metric for metric in Metric if any(board.metric is metric for board in boards)]
    for metric in metrics:
        on = Medium.EVERYWHERE if metric in _IN_TEXT else Medium.PAGE
        blocks: list[Block] = []
        for title, board in titled:
            if board.metric is metric:
                made = tuple(_board_blocks(board, cells, on))
                blocks += [Fold(line(title), made, on=on)] if title else made
        choices.append((fmt.label(metric), better(metric), tuple(blocks)))
    first = metrics.index(_first(report, boards, cells))
    return Tabs(name, tuple(choices), first, later=len(report.cells) > _FOLDED)


def _first(report: Report, boards: Sequence[Board], cells: _Cells) -> Metric:
    """The p99 if all loads are open, else the metric of all rankings, if they share it.

    In an open load the throughput is the schedule's, not the server's. Shares of a capacity have no rankings.
    """
    metrics = [board.metric for board in boards]
    shown = (cells[comparison.cell_id] for board in boards for comparison in board.comparisons.values())
    if Metric.P99 in metrics and all(is_open(cell.load_text) for cell in shown):
        return Metric.P99
    ranked = {ranking.metric for ranking in report.rankings}
    return next((metric for metric in metrics if ranked == {metric}), metrics[0])


def _board_blocks(board: Board, cells: _Cells, on: Medium) -> Iterator[Block]:
    """A table per load, or a single table for few numbers; and why some comparisons were refused."""
    notes = tuple(refusals(board))
    numbers = {place: number for number, _, places in notes for place in places}
    against = f" against {board.against}" if board.against and board.against != board.lines[0].server else ""
    for load, part in board.parts():
        shown = (cells[comparison.cell_id] for comparison in part.comparisons.values())
        under = f" {load} {common_load(shown)}" if load else ""
        heading = line((f"{fmt.label(board.metric)}{against}", "strong"), (under, "dim"))
        yield replace(_board(part, numbers, heading, against=bool(board.against)), on=on)
    reasons = refused(f"{reason} ({_where(places)})" for _, reason, places in notes)
    yield replace(reasons, on=on)


def _board(board: Board, numbers: Numbers, title: Line, *, against: bool) -> Table:
    """A row per pair of servers, a column per workload; settings are shown if they vary."""
    has_settings = any(pair.setting for pair in board.lines)
    rows: list[tuple[TableCell, ...]] = []
    for pair in board.lines:
        changes = (
            ChangeCell.of(board.comparisons.get((pair, column)), numbers.get((pair, column)))
            for column in board.columns
        )
        other = f" vs {pair.against}" if pair.against != pair.server and not against else ""
        server = TextCell((line((pair.server, "strong"), (other, "dim")),))
        rows.append((*((pair.setting,) if has_settings else ()), server, *changes))
    both = len(board.loads) > 1 and len(board.scenarios) > 1
    columns = [Column("setting", place="above")] if has_settings else []
    columns.append(Column("server"))
    for column in board.columns:
        name, group = (column.scenario, column.load) if both else (board.title_of(column), "")
        columns.append(Column(name, "right", group=group))
    return Table(tuple(columns), tuple(rows), title, look="tiles")


def _where(places: Sequence[tuple[ServerPair, Workload]]) -> str:
    """Name the places; the first few of many."""
    named = [
        " ".join(part for part in (pair.server, pair.setting, workload.scenario, workload.load) if part)
        for pair, workload in places
    ]
    return "; ".join(named[:4]) + (f"; and {len(named) - 4} more" if len(named) > 4 else "")
