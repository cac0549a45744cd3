"""Costs and effects: tables of changes in every metric, and for the page bars."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from redline.model import CellReport, Metric, Report, Verdict
from redline.report import format as fmt
from redline.report.document import (
    Bar,
    BarChart,
    Block,
    ChangeCell,
    Column,
    Fold,
    Line,
    Panels,
    Prose,
    Section,
    Span,
    Table,
    Tabs,
    TextCell,
    key,
    line,
    refused,
)
from redline.report.scales import Scale, change_scale, percent_of
from redline.report.sections import dots
from redline.report.sections.boards import Board, ServerPair, Workload, cost_boards, refusals, steps, worth_showing
from redline.report.sections.views import common_load
from redline.suite.load_text import is_open

_SHORT = (Metric.THROUGHPUT, Metric.P99)
_OPEN_AT_MOST = 48
"""So many numbers the page shows unfolded; of more, the first load is, and the others are a click away."""

Numbers = Mapping[tuple[ServerPair, Workload], int]
"""Under which number it is said why a comparison was refused."""


def cost_summary(report: Report) -> Iterator[Section]:
    """Throughput and p99 for a terminal; nothing for one scenario with one baseline, where the results say it all."""
    boards = tuple(board for board in cost_boards(report) if board.metric in _SHORT)
    if any(len(board.scenarios) > 1 or not board.against for board in boards):
        yield Section("Cost against the baseline", tuple(_cost_tables(boards)), "change in percent")


def cost_sections(report: Report) -> Iterator[Section]:
    """What each server costs against its baseline, in every metric; nothing where the results say it all."""
    boards = cost_boards(report)
    if worth_showing(boards):
        text = legend("Change against its own baseline, [95% interval in percent]", report.run.threshold)
        yield Section("Cost against the baseline", (Prose((text,)), *_cost_tables(boards)))


def cost_page(report: Report) -> Iterator[Section]:
    """The same for the page, with bars."""
    boards = cost_boards(report)
    if worth_showing(boards):
        intro = (
            *key(
                "Each server's **change against its own baseline**, in percent, with the 95% interval. Sign and "
                "colour are the verdict, "
            ),
            *signs(),
            *key(
                f", and the colour is stronger from 5% and from 15% on. Within {fmt.percent(report.run.threshold)}, "
                "the shaded band, a difference is too small to matter. Each round is a dot. An arrow says that a bar "
                "or its interval goes on."
            ),
        )
        tabs = _tabs("cost", report, [("", boards)])
        yield Section("Cost against the baseline", (Prose((intro,)), tabs), anchor="cost")


def effect_sections(report: Report) -> Iterator[Section]:
    """What each step on an axis costs, in throughput and p99."""
    found = steps(report)
    if found:
        hint = "On throughput and p99; the other metrics are in the page and in the JSON."
        boards = [(board, step.title) for step in found for board in step.boards if board.metric in _SHORT]
        yield Section("Effects", tuple(block for board, title in boards for block in board_tables(board, title)), hint)


def effect_page(report: Report) -> Iterator[Section]:
    """The same for the page, in every metric and with bars."""
    questions = [(step.title, step.boards) for step in steps(report) if step.boards]
    if questions:
        intro = key("What **one step** costs each server, all else being equal: its change in percent, with the 95% ")
        intro += (*key("interval. Signs: "), *signs())
        yield Section("Effects", (Prose((intro,)), _tabs("effects", report, questions)), anchor="effects")


def signs() -> Line:
    """The verdicts with their signs."""
    spans = (Span(f"{mark} {verdict}", verdict) for verdict, mark in fmt.MARKS.items())
    return (*(each for span in spans for each in (span, Span(" "))), Span("no sign: no verdict"))


def legend(text: str, threshold: float) -> Line:
    """The signs of the verdicts, after what they are signs of."""
    marks: list[str | tuple[str, Verdict]] = []
    for verdict, mark in fmt.MARKS.items():
        within = f" (within {fmt.percent(threshold)})" if verdict is Verdict.EQUIVALENT else ""
        marks += [", " if marks else "", (f"{mark} {verdict}{within}", verdict)]
    return line((f"{text}: ", "dim"), *marks, ", no sign: no verdict.")


def better(metric: Metric) -> str:
    """`response time, less is better`."""
    what = "response time, " if metric.value.startswith("p") else ""
    return f"{what}{'more' if metric.higher_is_better else 'less'} is better"


def _cost_tables(boards: Sequence[Board]) -> Iterator[Block]:
    if all(len(board.lines) == 1 for board in boards):
        yield from _one_pair(boards)
        return
    for board in boards:
        yield from board_tables(board)


def _one_pair(boards: Sequence[Board]) -> Iterator[Block]:
    """A line for each metric: there is but one server to speak of."""
    pair = boards[0].lines[0]
    reasons: dict[str, int] = {}
    rows: list[tuple[str | ChangeCell, ...]] = []
    for board in boards:
        notes = {place: reasons.setdefault(why, len(reasons) + 1) for _, why, at in refusals(board) for place in at}
        found = (ChangeCell.of(board.found.get((pair, each)), notes.get((pair, each))) for each in boards[0].columns)
        rows.append((fmt.label(board.metric), *found))
    columns = (Column(""), *_columns(boards[0]))
    yield Table(columns, tuple(rows), line((pair.server, "strong"), f" vs {pair.against}"))
    yield refused(reasons)


def board_tables(board: Board, step: str = "") -> Iterator[Block]:
    """A table for each load, or one for few numbers; and why some comparisons were refused."""
    notes = tuple(refusals(board))
    against = f" against {board.against}" if board.against and board.against != board.lines[0].server else ""
    for load, part in board.parts():
        title = " · ".join(each for each in (step, f"{fmt.label(board.metric)}{against}", load) if each)
        yield _table(part, _numbers(board), line((title, "strong")), against=board.against)
    yield refused(reason for _, reason, _ in notes)


def _numbers(board: Board) -> Numbers:
    return {place: number for number, _, places in refusals(board) for place in places}


def _table(board: Board, numbers: Numbers, title: Line = (), *, against: str = "") -> Table:
    """A row for each pair of servers, a column for each workload; settings are shown where they vary."""
    has_settings = any(pair.setting for pair in board.lines)
    rows = (
        (
            *((pair.setting,) if has_settings else ()),
            _name(pair, against=bool(against)),
            *(ChangeCell.of(board.found.get((pair, each)), numbers.get((pair, each))) for each in board.columns),
        )
        for pair in board.lines
    )
    settings = (Column("setting", place="above"),) if has_settings else ()
    return Table((*settings, Column("server"), *_columns(board)), tuple(rows), title, look="tiles")


def _columns(board: Board) -> Iterator[Column]:
    both = len(board.loads) > 1 and len(board.scenarios) > 1
    for each in board.columns:
        yield Column(each.scenario if both else board.title_of(each), "right", group=each.load if both else "")


def _name(pair: ServerPair, *, against: bool) -> TextCell:
    """`against`: whether the table's title says what all are compared with."""
    other = f" vs {pair.against}" if pair.against != pair.server and not against else ""
    return TextCell((line((pair.server, "strong"), (other, "dim")),))


def _tabs(name: str, report: Report, questions: Sequence[tuple[str, tuple[Board, ...]]]) -> Tabs:
    """A tab for each metric, with a part for each question that has a title."""
    cells = {cell.cell_id: cell for cell in report.cells}
    boards = [board for _, found in questions for board in found]
    choices = []
    metrics = [metric for metric in Metric if any(board.metric is metric for board in boards)]
    for metric in metrics:
        blocks: list[Block] = []
        for title, found in questions:
            for board in found:
                if board.metric is metric:
                    made = tuple(_board_blocks(board, cells, report.run.threshold, title))
                    blocks += [Fold(line(title), made)] if title else made
        choices.append((fmt.label(metric), better(metric), tuple(blocks)))
    return Tabs(name, tuple(choices), metrics.index(_first(report, boards, cells)))


def _first(report: Report, boards: Sequence[Board], cells: Mapping[str, CellReport]) -> Metric:
    """The p99 where all loads are open, else the metric by which servers are ranked when all rankings are by it.

    In an open load the throughput is the schedule's and not the server's. Shares of a capacity have no rankings.
    """
    metrics = [board.metric for board in boards]
    if Metric.P99 in metrics and all(is_open(cell.load_text) for board in boards for cell in _shown(board, cells)):
        return Metric.P99
    ranked = {ranking.metric for ranking in report.rankings}
    return next((metric for metric in metrics if ranked == {metric}), metrics[0])


def _board_blocks(board: Board, cells: Mapping[str, CellReport], threshold: float, title: str) -> Iterator[Block]:
    """One metric of one question: what it is at a glance, bars and numbers for each load, and what was refused."""
    scale, numbers, parts = change_scale(board.found.values(), threshold), _numbers(board), board.parts(_OPEN_AT_MOST)
    name = fmt.label(board.metric) + (f" against {board.against}" if board.against and not title else "")
    if len(parts) > 1:
        glance = line((f"{name}: change at a glance", "dim"))
        yield replace(_table(board, numbers, glance, against=board.against), brief=True)
    for at, (load, part) in enumerate(parts):
        caption = line((f"{name}{f', {load}' if load else ''}: change in percent, [95% interval]", "dim"))
        blocks = (*_settings(part, scale, numbers, load), _table(part, numbers, caption, against=board.against))
        is_shown = len(board.found) <= _OPEN_AT_MOST or (not title and at == 0)
        heading = load_line(load, _shown(part, cells))
        yield from [Fold(heading, blocks, is_shown if len(parts) > 1 else None)] if load else blocks
    yield refused(f"{reason} ({_where(places)})" for _, reason, places in refusals(board))


def load_line(load: str, cells: Iterable[CellReport]) -> Line:
    """`saturate  closed, 64 users`, a heading."""
    return line(load, (f" {common_load(cells)}", "dim"))


def _shown(board: Board, cells: Mapping[str, CellReport]) -> Iterator[CellReport]:
    """Both sides of every comparison, as far as they are in the report."""
    for found in board.found.values():
        yield from (cells[one] for one in (found.cell_id, found.baseline_id) if one in cells)


def _settings(board: Board, scale: Scale, numbers: Numbers, load: str) -> Iterator[Block]:
    for setting in board.settings:
        panels = Panels(tuple(_charts(board, setting, scale, numbers, load)))
        yield Fold(line(setting), (panels,)) if setting else panels


def _charts(board: Board, setting: str, scale: Scale, numbers: Numbers, load: str) -> Iterator[BarChart]:
    """The bars of each column, one for each server; of a server that stands alone, one chart for all columns."""
    pairs = board.of_setting(setting)

    def chart(title: str, rows: Iterable[tuple[str, ServerPair, Workload]]) -> BarChart:
        label = f"Bars of {', '.join(filter(None, (title, load, setting)))}: the numbers stand in the table below"
        return BarChart(title, label, scale, tuple(_bar(board, *row, numbers) for row in rows))

    if len(pairs) == 1:
        yield chart(pairs[0].server, ((board.title_of(each), pairs[0], each) for each in board.columns))
        return
    for column in board.columns:
        yield chart(board.title_of(column), ((pair.server, pair, column) for pair in pairs))


def _bar(
    board: Board, name: str, pair: ServerPair, column: Workload, numbers: Numbers
) -> tuple[str, Bar | None, ChangeCell]:
    found = board.found.get((pair, column))
    change = ChangeCell.of(found, numbers.get((pair, column)))
    if found is None or found.ratio is None:
        return name, None, change
    low, high = (None if end is None else percent_of(end) for end in (found.ratio.low, found.ratio.high))
    rounds = tuple(map(percent_of, dots.ratios(board.cells, found)))
    return name, Bar(0.0, percent_of(found.ratio.value), low, high, found.verdict, rounds), change


def _where(places: Sequence[tuple[ServerPair, Workload]]) -> str:
    """The places in words; the first few of many."""
    named = [
        " ".join(part for part in (pair.server, pair.setting, column.scenario, column.load) if part)
        for pair, column in places
    ]
    return "; ".join(named[:4]) + (f"; and {len(named) - 4} more" if len(named) > 4 else "")
