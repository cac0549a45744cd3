"""Costs, effects and rankings as Markdown tables."""

from collections.abc import Callable, Iterable, Iterator

from redline.model import CellReport, Comparison, Metric, Place, Ranking, Report, Verdict
from redline.report import format as fmt
from redline.report.render.boards import Board, Column, cost_boards, refusals, steps, tells_more
from redline.report.render.lines import Line
from redline.report.render.markdown_layers import layers
from redline.report.render.ranks import rank_text, server_in, unranked

Safe = Callable[[str], str]
_OF_EFFECTS = (Metric.THROUGHPUT, Metric.P99)


def overview(report: Report, safe: Safe) -> list[str]:
    """Layers, what each server costs against its baseline, effects and rankings; nothing where there is nothing."""
    return [*layers(report, safe), *_cost(report, safe), *_effects(report, safe), *_rankings(report, safe)]


def _cost(report: Report, safe: Safe) -> Iterator[str]:
    boards = cost_boards(report)
    if not tells_more(boards):
        return
    yield "### Cost against the baseline"
    yield _key(report)
    if all(len(board.lines) == 1 for board in boards):
        yield _one_server(boards, safe)
        return
    for board in boards:
        yield from _board(board, fmt.label(board.metric), safe)


def _one_server(boards: tuple[Board, ...], safe: Safe) -> str:
    """A line for each metric: there is but one server to tell of."""
    line, columns = boards[0].lines[0], boards[0].columns
    header = [f"**{safe(line.server)}** vs {safe(line.against)}", *(safe(boards[0].title_of(c)) for c in columns)]
    rows = []
    for board in boards:
        found = [board.found.get((line, column)) for column in columns]
        cells = (_change(one, f"refused: {safe(one.refused)}" if one else "") for one in found)
        rows.append([fmt.label(board.metric), *cells])
    return "\n".join(_table(header, rows))


def _effects(report: Report, safe: Safe) -> Iterator[str]:
    found = steps(report)
    if not found:
        return
    yield "### Effects"
    yield "On throughput and p99; the other metrics stand in the page and in the JSON."
    for step in found:
        for board in (board for board in step.boards if board.metric in _OF_EFFECTS):
            yield from _board(board, f"{safe(step.title)} · {fmt.label(board.metric)}", safe)


def _key(report: Report) -> str:
    marks = {verdict: f"{mark} {verdict}" for verdict, mark in fmt.MARKS.items()}
    marks[Verdict.EQUIVALENT] += f" (within {fmt.percent(report.run.threshold)})"
    return f"Change against its own baseline, \\[95% interval in percent\\]: {', '.join(marks.values())}."


def _board(board: Board, title: str, safe: Safe) -> Iterator[str]:
    """A table for each load, or one for few numbers; and why some comparisons were refused."""
    notes = tuple(refusals(board))
    numbers = {place: number for number, _, places in notes for place in places}
    against = f" against {safe(board.against)}" if board.against and board.against != board.lines[0].server else ""
    for load, part in board.parts():
        header = ["server", *(safe(part.title_of(column)) for column in part.columns)]
        rows = [[_name(line, board, safe), *_cells(part, line, numbers)] for line in part.lines]
        yield "\n".join([f"**{title}{against}{f' · {safe(load)}' if load else ''}**\n", *_table(header, rows)])
    if notes:
        yield "\n".join(f"- \\[{number}\\] refused: {safe(reason)}" for number, reason, _ in notes)


def _name(line: Line, board: Board, safe: Safe) -> str:
    against = f" vs {safe(line.against)}" if line.against != line.server and not board.against else ""
    return f"**{safe(line.server)}**{against}" + (f", {safe(line.setting)}" if line.setting else "")


def _cells(board: Board, line: Line, numbers: dict[tuple[Line, Column], int]) -> Iterator[str]:
    for column in board.columns:
        yield _change(board.found.get((line, column)), f"refused \\[{numbers.get((line, column))}\\]")


def _change(comparison: Comparison | None, refused: str) -> str:
    """`+3.1% [+1.2, +5.0] ▼`; `refused` where there is no ratio."""
    if comparison is None:
        return "not run"
    if comparison.ratio is None or comparison.verdict is None:
        return refused
    bounds = fmt.change_bounds(comparison.ratio).replace("[", "\\[").replace("]", "\\]")
    return " ".join(part for part in (fmt.change(comparison.ratio), bounds, fmt.MARKS[comparison.verdict]) if part)


def _rankings(report: Report, safe: Safe) -> Iterator[str]:
    """A table for each load and setting, with a column for each scenario: servers in their order with their ranks."""
    if not report.rankings:
        return
    yield "### Ranking"
    cells = {cell.cell_id: cell for cell in report.cells}
    groups: dict[tuple[str, str, str], list[Ranking]] = {}
    for ranking in report.rankings:
        groups.setdefault((ranking.load, ranking.setting, ranking.metric), []).append(ranking)
    for found in groups.values():
        first = found[0]
        columns = [[_place(ranking, place, cells, safe) for place in ranking.places] for ranking in found]
        depth = max(len(column) for column in columns)
        rows = [[column[row] if row < len(column) else "" for column in columns] for row in range(depth)]
        title = " · ".join(safe(part) for part in (fmt.label(first.metric), first.load, first.setting) if part)
        yield "\n".join([f"**{title}**\n", *_table([safe(ranking.scenario) for ranking in found], rows)])
    for load in dict.fromkeys(ranking.load for ranking in report.rankings):
        left_out = unranked(report, load)
        if left_out:
            yield f"Not ranked, without a valid measurement or interval: {safe(', '.join(left_out))}."


def _place(ranking: Ranking, place: Place, cells: dict[str, CellReport], safe: Safe) -> str:
    estimate = place.estimate
    value = f"{fmt.amount(estimate.value, estimate.unit)} {fmt.spread(estimate)}".rstrip()
    return f"{rank_text(ranking, place)} **{safe(server_in(ranking, place, cells))}** {value}"


def _table(header: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *lines]
