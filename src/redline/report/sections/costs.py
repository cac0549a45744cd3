"""Costs, effects and rankings as tables."""

import re
from collections.abc import Iterator, Sequence

from redline.model import CellReport, Metric, Place, Ranking, Report, Verdict
from redline.report import format as fmt
from redline.report.document import ChangeCell, Column, Line, Prose, Section, Table, TextCell, line, words
from redline.report.sections.boards import Board, ServerPair, Workload, cost_boards, refusals, steps, worth_showing

_SHORT = (Metric.THROUGHPUT, Metric.P99)


def cost_summary(report: Report) -> Iterator[Section]:
    """Throughput and p99 for a terminal; nothing for one scenario with one baseline, where the results say it all."""
    boards = tuple(board for board in cost_boards(report) if board.metric in _SHORT)
    if any(len(board.scenarios) > 1 or not board.against for board in boards):
        yield Section("Cost against the baseline", tuple(_cost_tables(boards)), "change in percent")


def cost_sections(report: Report) -> Iterator[Section]:
    """What each server costs against its baseline, in every metric; nothing where the results say it all."""
    boards = cost_boards(report)
    if worth_showing(boards):
        key = legend("Change against its own baseline, [95% interval in percent]", report.run.threshold)
        yield Section("Cost against the baseline", (Prose((key,)), *_cost_tables(boards)))


def effect_sections(report: Report) -> Iterator[Section]:
    """What each step on an axis costs, in throughput and p99."""
    found = steps(report)
    if found:
        hint = "On throughput and p99; the other metrics are in the page and in the JSON."
        boards = [(board, step.title) for step in found for board in step.boards if board.metric in _SHORT]
        yield Section("Effects", tuple(table for board, title in boards for table in board_tables(board, title)), hint)


def legend(text: str, threshold: float) -> Line:
    """The signs of the verdicts, after what they are signs of."""
    marks: list[str | tuple[str, Verdict]] = []
    for verdict, mark in fmt.MARKS.items():
        within = f" (within {fmt.percent(threshold)})" if verdict is Verdict.EQUIVALENT else ""
        marks += [", " if marks else "", (f"{mark} {verdict}{within}", verdict)]
    return line((f"{text}: ", "dim"), *marks, ".")


def _cost_tables(boards: Sequence[Board]) -> Iterator[Table]:
    if all(len(board.lines) == 1 for board in boards):
        yield _one_pair(boards)
        return
    for board in boards:
        yield from board_tables(board)


def _one_pair(boards: Sequence[Board]) -> Table:
    """A line for each metric: there is but one server to speak of."""
    pair = boards[0].lines[0]
    reasons: dict[str, int] = {}
    rows: list[tuple[TextCell | ChangeCell, ...]] = []
    for board in boards:
        notes = {place: reasons.setdefault(why, len(reasons) + 1) for _, why, at in refusals(board) for place in at}
        found = (ChangeCell.of(board.found.get((pair, each)), notes.get((pair, each))) for each in boards[0].columns)
        rows.append((words(fmt.label(board.metric)), *found))
    columns = (Column(""), *_columns(boards[0]))
    return Table(columns, tuple(rows), line((pair.server, "strong"), f" vs {pair.against}"), tuple(reasons))


def board_tables(board: Board, step: str = "") -> Iterator[Table]:
    """A table for each load, or one for few numbers; and why some comparisons were refused."""
    notes = tuple(refusals(board))
    numbers = {place: number for number, _, places in notes for place in places}
    parts = board.parts()
    against = f" against {board.against}" if board.against and board.against != board.lines[0].server else ""
    label = fmt.label(board.metric)
    for load, part in parts:
        title = " · ".join(each for each in (step, f"{label}{against}", load) if each)
        reasons = tuple(reason for _, reason, _ in notes) if part is parts[-1][1] else ()
        yield board_table(part, numbers, line((title, "strong")), reasons, against=board.against)


def board_table(
    board: Board,
    numbers: dict[tuple[ServerPair, Workload], int],
    title: Line = (),
    reasons: tuple[str, ...] = (),
    *,
    against: str = "",
) -> Table:
    """A row for each pair of servers, a column for each workload; settings are shown where they vary."""
    has_settings = any(pair.setting for pair in board.lines)
    rows = (
        (
            *((words(pair.setting),) if has_settings else ()),
            _name(pair, against=bool(against)),
            *(ChangeCell.of(board.found.get((pair, each)), numbers.get((pair, each))) for each in board.columns),
        )
        for pair in board.lines
    )
    settings = (Column("setting", place="above"),) if has_settings else ()
    return Table((*settings, Column("server"), *_columns(board)), tuple(rows), title, reasons)


def _columns(board: Board) -> Iterator[Column]:
    both = len(board.loads) > 1 and len(board.scenarios) > 1
    for each in board.columns:
        yield Column(each.scenario if both else board.title_of(each), "right", group=each.load if both else "")


def _name(pair: ServerPair, *, against: bool) -> TextCell:
    """`against`: whether the table's title says what all are compared with."""
    other = f" vs {pair.against}" if pair.against != pair.server and not against else ""
    return TextCell((line((pair.server, "strong"), (other, "dim")),))


def ranking_sections(report: Report) -> Iterator[Section]:
    """A table for each load and setting, with a column for each scenario: servers in their order with their ranks."""
    if not report.rankings:
        return
    cells = {cell.cell_id: cell for cell in report.cells}
    alike: dict[tuple[str, str, str], list[Ranking]] = {}
    for ranking in report.rankings:
        alike.setdefault((ranking.load, ranking.setting, ranking.metric), []).append(ranking)
    tables = (_ranking_table(found, cells) for found in alike.values())
    loads = dict.fromkeys(ranking.load for ranking in report.rankings)
    missing = (
        f"Not ranked, without a valid measurement or interval: {', '.join(left_out)}."
        for load in loads
        if (left_out := unranked(report, load))
    )
    yield Section("Ranking", (*tables, Prose.of(missing)))


def _ranking_table(rankings: Sequence[Ranking], cells: dict[str, CellReport]) -> Table:
    first = rankings[0]
    columns = [[_place(ranking, place, cells) for place in ranking.places] for ranking in rankings]
    depth = max(map(len, columns))
    rows = (tuple(column[at] if at < len(column) else words() for column in columns) for at in range(depth))
    title = " · ".join(part for part in (fmt.label(first.metric), first.load, first.setting) if part)
    return Table(tuple(Column(each.scenario) for each in rankings), tuple(rows), line((title, "strong")))


def _place(ranking: Ranking, place: Place, cells: dict[str, CellReport]) -> TextCell:
    value = f"{fmt.amount(place.estimate.value, place.estimate.unit)} {fmt.spread(place.estimate)}".rstrip()
    name = server_in(ranking, place, cells)
    return TextCell((line(f"{rank_text(ranking, place)} ", (name, "strong"), f" {value}"),))


def rank_text(ranking: Ranking, place: Place) -> str:
    """`2`, or `2=` when others share the rank."""
    shared = sum(other.rank == place.rank for other in ranking.places) > 1
    return f"{place.rank}=" if shared else str(place.rank)


def server_in(ranking: Ranking, place: Place, cells: dict[str, CellReport]) -> str:
    """The server without what the ranking's setting says of it."""
    if place.cell_id not in cells:
        return place.cell_id
    said = set(re.split(r"[,\s]+", ranking.setting))
    name, *tokens = cells[place.cell_id].server.split("+")
    return "+".join([name, *(token for token in tokens if token not in said)])


def unranked(report: Report, load: str) -> tuple[str, ...]:
    """The slugs of subjects under this load that stand in no ranking, though others of their scenario do."""
    ranked = {place.cell_id for ranking in report.rankings for place in ranking.places}
    scenarios = {ranking.scenario for ranking in report.rankings if ranking.load == load}
    return tuple(
        cell.slug
        for cell in report.cells
        if cell.load == load and cell.scenario in scenarios and cell.role == "subject" and cell.cell_id not in ranked
    )
