"""Comparisons with baselines, and steps on axes: ratios with their intervals and verdicts, each in one table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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
"""Up to this number of comparisons each has a picture: the page of a larger study would be too large to mail."""
_IN_TEXT = (Metric.THROUGHPUT, Metric.P99, Metric.CPU_PER_REQUEST)
"""The metrics of tables of many servers and workloads that text has too."""

Numbers = Mapping[tuple[ServerPair, Workload], int]
"""The number under which the reason of a refusal stands."""


def comparison_sections(report: Report) -> Iterator[Section]:
    """Each server against its baseline; nothing where nothing is compared."""
    shown = _Comparisons(report)
    if not shown.boards:
        return
    counts = tuple(
        line((str(number), "strong"), " ", (f"{verdict.mark} {verdict.words}", verdict))
        for verdict, number in tally(report).items()
    )
    blocks = filled(Prose((_key(report),)), _duets(report), *shown.tables(), _remarks(report))
    aside = Prose(counts) if counts else None
    yield Section("Comparisons", tuple(blocks), anchor="comparisons", aside=aside)


def effect_sections(report: Report) -> Iterator[Section]:
    """What each step on an axis costs each server, all else being equal."""
    found = [step for step in steps(report) if step.boards]
    if found:
        intro = key("What **one step** costs each server, all else being equal: its change in percent, with the 95% ")
        intro += (*key("interval. Signs: "), *signs())
        cells = {cell.cell_id: cell for cell in report.cells}
        titled = [(step.title, board) for step in found for board in step.boards]
        tabs = _tabs("effects", report, titled, _Drawing(cells, {}))
        yield Section("Effects", (Prose((intro,)), tabs), anchor="effects")


def ratio_scales(report: Report) -> dict[Metric, Scale]:
    """A scale for each metric that is compared, the same for all tables, so that rows compare down the page."""
    return {
        board.metric: ratio_scale(board.found.values(), report.run.threshold, board.metric.value)
        for board in cost_boards(report)
    }


def _key(report: Report) -> Line:
    within = fmt.percent(report.run.threshold)
    return (
        *key(
            f"The **change against the baseline**, with its 95% interval. Within {within} a difference is too small to "
            "matter. Signs: "
        ),
        *signs(),
    )


def _duets(report: Report) -> Prose:
    """How the servers of duets were compared."""
    duets = [comparison.duet for comparison in report.comparisons if comparison.duet]
    if not duets:
        return Prose(())
    metrics = " and ".join(
        dict.fromkeys(fmt.label(comparison.metric) for comparison in report.comparisons if comparison.duet)
    )
    how = (
        "at the same time, each on cores of its own, which were drawn for each start"
        if any(duet.parallel for duet in duets)
        else "in turn, in slices of 10 to 50 ms"
    )
    text = (
        f"Ratios of {metrics} are of **duets**: both servers were alive at once and loaded {how}, on fresh starts, so "
        "what disturbs the machine disturbs both. The baseline **over itself** shows what no difference looks like."
    )
    return Prose((key(text),), on=Medium.PAGE | Medium.MARKDOWN)


def _remarks(report: Report) -> Prose:
    """What to know of some comparisons: their families, caveats, and rounds without a partner."""
    families = dict.fromkeys(
        fmt.family(comparison) for comparison in report.comparisons if (comparison.family or 1) > 1
    )
    adjusted = f"Verdicts are adjusted within each question: {'; '.join(families)}." if families else ""
    said = (f"{', '.join(map(fmt.label, metrics))}: {caveat}" for caveat, metrics in caveats(report).items())
    return Prose.of((adjusted, *said, *(f"{text}." for text in lone_rounds(report))), "dim")


@dataclass(frozen=True)
class _Drawing:
    """What pictures of ratios are made from, and where the tables with them appear."""

    cells: Mapping[str, CellReport]
    scales: Mapping[Metric, Scale]
    on: Medium = Medium.EVERYWHERE

    def strip(self, one: Comparison | None) -> Strip | None:
        """A picture of a ratio on the scale of its metric, above a dot for each round."""
        if one is None or one.ratio is None or one.metric not in self.scales:
            return None
        ratio, rounds = one.ratio, dots.ratios(self.cells, one)
        sign = fmt.VerdictSign.of(one)
        return Strip(self.scales[one.metric], "point", ratio.value, ratio.low, ratio.high, sign, dots=rounds)


@dataclass(frozen=True)
class _Comparisons:
    """The comparisons of a report, laid out by what varies: servers, workloads, or both."""

    report: Report

    @cached_property
    def boards(self) -> tuple[Board, ...]:
        return cost_boards(self.report)

    @cached_property
    def _cells(self) -> dict[str, CellReport]:
        return {cell.cell_id: cell for cell in self.report.cells}

    @cached_property
    def _drawing(self) -> _Drawing:
        drawn = sum(len(board.found) for board in self.boards) <= _DRAWN
        return _Drawing(self._cells, ratio_scales(self.report) if drawn else {})

    def tables(self) -> Iterator[Block]:
        pairs = tuple(dict.fromkeys(pair for board in self.boards for pair in board.lines))
        workloads = tuple(dict.fromkeys(column for board in self.boards for column in board.columns))
        if len(pairs) == len(workloads) == 1:
            yield from self._by_metric(pairs[0], workloads[0])
        elif len(pairs) == 1 or len(workloads) == 1:
            yield from self._by_row(pairs, workloads)
        else:
            yield _tabs("comparisons", self.report, [("", board) for board in self.boards], self._drawing)

    def _by_metric(self, pair: ServerPair, workload: Workload) -> Iterator[Block]:
        """A row for each metric: there is one pair of servers under one load."""
        reasons: dict[str, int] = {}
        found = [one for board in self.boards if (one := board.found.get((pair, workload)))]
        found.sort(key=lambda one: not one.primary)
        controls = any(one.duet and one.duet.control for one in found)
        rows = []
        for one in found:
            row: list[TableCell] = [fmt.label(one.metric), self._change(one, reasons)]
            rows.append((*row, *([_control(one)] if controls else [])))
        control = [Column(f"{pair.against} over {pair.against}", "right")] if controls else []
        columns = (Column(""), Column(f"{pair.server} over {pair.against}", "right"), *control)
        title = line((_workload(workload), "strong"), (f" {common_load(self._shown(found))}", "dim"))
        yield Table(columns, tuple(rows), title, look="tiles")
        yield Prose(tuple(_details(found)), listed=True, on=Medium.PAGE)
        yield refused(reasons)

    def _by_row(self, pairs: Sequence[ServerPair], workloads: Sequence[Workload]) -> Iterator[Block]:
        """A row for each pair of servers, or for each workload, and a column for each metric."""
        boards = [board for board in self.boards if board.metric in SHOWN] or list(self.boards)
        others = [board for board in self.boards if board not in boards]
        yield from self._rows(pairs, workloads, boards, self._drawing)
        if others:
            fold = tuple(self._rows(pairs, workloads, others, _Drawing(self._cells, {})))
            yield Fold(line("Other metrics"), fold, open=False, on=Medium.PAGE)

    def _rows(
        self,
        pairs: Sequence[ServerPair],
        workloads: Sequence[Workload],
        boards: Sequence[Board],
        drawing: _Drawing,
    ) -> Iterator[Block]:
        reasons: dict[str, int] = {}
        rows: list[tuple[TableCell, ...]] = []
        all_found = [
            (pair, workload, [one for board in boards if (one := board.found.get((pair, workload)))])
            for workload in workloads
            for pair in pairs
        ]
        controls = any(one.duet and one.duet.control for _, _, found in all_found for one in found)
        for pair, each, found in all_found:
            by_metric = {one.metric: one for one in found}
            changes = (self._change(by_metric.get(board.metric), reasons, drawing, stacked=True) for board in boards)
            by_duets = [one for one in found if one.duet]
            by_cpu = max(by_duets, key=lambda one: one.metric is Metric.CPU_PER_REQUEST, default=None)
            control = [_control(by_cpu) if by_cpu else ""] if controls else []
            name = boards[0].title_of(each) if len(pairs) == 1 else pair.server
            against = "" if boards[0].against or len(pairs) == 1 else f" vs {pair.against}"
            setting = f" {pair.setting}" if pair.setting else ""
            head = TextCell((line((name, "strong"), (f"{against}{setting}", "dim")),), details=tuple(_details(found)))
            rows.append((head, *changes, *control))
        title = f"{pairs[0].server} over {pairs[0].against}" if len(pairs) == 1 else _workload(workloads[0])
        against = f" against {boards[0].against}" if len(pairs) > 1 and boards[0].against else ""
        base = boards[0].against
        columns = (
            Column("workload" if len(pairs) == 1 else "server"),
            *(
                Column(
                    fmt.label(board.metric), "right", hint=better(board.metric), scale=drawing.scales.get(board.metric)
                )
                for board in boards
            ),
            *([Column(f"{base} over {base}" if base else "baseline over itself", "right")] if controls else []),
        )
        yield Table(columns, tuple(rows), line((title, "strong"), (against, "dim")), look="scores")
        yield refused(reasons)

    def _change(
        self,
        one: Comparison | None,
        reasons: dict[str, int],
        drawing: _Drawing | None = None,
        *,
        stacked: bool = False,
    ) -> ChangeCell:
        note = None
        if one is not None and one.ratio is None:
            note = reasons.setdefault(one.refused or "no reason was given", len(reasons) + 1)
        return ChangeCell.of(one, note, (drawing or self._drawing).strip(one), stacked=stacked)

    def _shown(self, found: Iterable[Comparison]) -> Iterator[CellReport]:
        for one in found:
            yield from (self._cells[each] for each in (one.cell_id, one.baseline_id) if each in self._cells)


def _workload(workload: Workload) -> str:
    return f"{workload.scenario} · {workload.load}"


def _control(one: Comparison) -> TextCell:
    control = one.duet.control if one.duet else None
    return words(fmt.change(control), fmt.change_bounds(control), look="dim") if control else words("")


def _details(found: Iterable[Comparison], where: str = "") -> Iterator[Line]:
    """How comparisons by duets came about: `CPU per request: 9 starts, which differ by 0.4%; …`."""
    for one in found:
        if one.duet is None:
            continue
        duet, parts = one.duet, [fmt.count(one.duet.starts, "fresh start")]
        if duet.between_sd is not None:
            parts.append(f"starts differ by {duet.between_sd * 100:.2g}%")
        if duet.blocks_se is not None:
            parts.append(f"the machine's noise leaves an error of {duet.blocks_se * 100:.2g}% in one start")
        if duet.alone is not None:
            parts.append(f"trials of each server alone say {fmt.change(duet.alone)} {fmt.change_bounds(duet.alone)}")
        yield line((f"{where}{fmt.label(one.metric)}: ", "dim"), "; ".join(parts))


def _tabs(name: str, report: Report, titled: Sequence[tuple[str, Board]], drawing: _Drawing) -> Tabs:
    """A tab for each metric, with a part for each board that has a title."""
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
    shown = (cells[found.cell_id] for board in boards for found in board.found.values())
    if Metric.P99 in metrics and all(is_open(cell.load_text) for cell in shown):
        return Metric.P99
    ranked = {ranking.metric for ranking in report.rankings}
    return next((metric for metric in metrics if ranked == {metric}), metrics[0])


def _board_blocks(board: Board, drawing: _Drawing) -> Iterator[Block]:
    """A table for each load, or one for few numbers; and why some comparisons were refused."""
    notes = tuple(refusals(board))
    numbers = {place: number for number, _, places in notes for place in places}
    against = f" against {board.against}" if board.against and board.against != board.lines[0].server else ""
    for load, part in board.parts():
        shown = (drawing.cells[one.cell_id] for one in part.found.values())
        under = f" {load} {common_load(shown)}" if load else ""
        heading = line((f"{fmt.label(board.metric)}{against}", "strong"), (under, "dim"))
        yield _board(part, numbers, heading, drawing, against=bool(board.against))
    reasons = refused(f"{reason} ({_where(places)})" for _, reason, places in notes)
    yield replace(reasons, on=drawing.on)


def _board(board: Board, numbers: Numbers, title: Line, drawing: _Drawing, *, against: bool) -> Table:
    """A row for each pair of servers, a column for each workload; settings are shown where they vary."""
    has_settings = any(pair.setting for pair in board.lines)
    rows: list[tuple[TableCell, ...]] = []
    for pair in board.lines:
        found = [(column, board.found.get((pair, column))) for column in board.columns]
        details = tuple(text for each, one in found if one for text in _details([one], f"{board.title_of(each)}, "))
        changes = (ChangeCell.of(one, numbers.get((pair, each)), drawing.strip(one)) for each, one in found)
        other = f" vs {pair.against}" if pair.against != pair.server and not against else ""
        name = TextCell((line((pair.server, "strong"), (other, "dim")),), details=details)
        rows.append((*((pair.setting,) if has_settings else ()), name, *changes))
    both = len(board.loads) > 1 and len(board.scenarios) > 1
    scale = drawing.scales.get(board.metric)
    columns = (
        *((Column("setting", place="above"),) if has_settings else ()),
        Column("server"),
        *(
            Column(
                column.scenario if both else board.title_of(column),
                "right",
                group=column.load if both else "",
                scale=scale,
            )
            for column in board.columns
        ),
    )
    return Table(columns, tuple(rows), title, look="tiles", on=drawing.on)


def _where(places: Sequence[tuple[ServerPair, Workload]]) -> str:
    """The places in words; the first few of many."""
    named = [
        " ".join(part for part in (pair.server, pair.setting, workload.scenario, workload.load) if part)
        for pair, workload in places
    ]
    return "; ".join(named[:4]) + (f"; and {len(named) - 4} more" if len(named) > 4 else "")
