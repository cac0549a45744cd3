"""Limits against those of baselines: a sentence for each comparison, and a table."""

from collections.abc import Iterator

from redline.model import Estimate, Verdict
from redline.model.limits import CellLimit, LimitComparison, LimitReport
from redline.quantities import percent, significant
from redline.report import format as fmt
from redline.report.document import Block, Column, Line, Look, Prose, Section, Table, TableCell, filled, line, words

_FROM_ON = 2.0
"""From this ratio on it is written as `2.5 times`, not in percent."""
_UNDECIDED = {Verdict.INCONCLUSIVE: "cannot be distinguished", Verdict.EQUIVALENT: "are equivalent"}


def ratio_section(report: LimitReport, *, table: bool) -> Iterator[Section]:
    """The ratios of limits in words, and as a table if that is wanted; nothing where nothing is compared."""
    if not report.comparisons:
        return
    cells = {cell.slug: cell for cell in report.cells}
    several = len({cell.scenario for cell in report.cells}) > 1
    lines = Prose(tuple(_line(comparison, cells, several=several) for comparison in report.comparisons), listed=True)
    blocks: tuple[Block, ...] = (lines, ratio_table(report)) if table else (lines,)
    yield Section("The limits compared", tuple(filled(*blocks)), anchor="ratios")


def _line(one: LimitComparison, cells: dict[str, CellLimit], *, several: bool) -> Line:
    cell = cells[one.slug]
    where = f"{cell.scenario}: " if several else ""
    return line((where, "dim"), (ratio_sentence(one, cell.server, cells[one.baseline].server), "strong"))


def ratio_table(report: LimitReport) -> Table:
    """A row for each comparison."""
    cells = {cell.slug: cell for cell in report.cells}
    columns = (
        Column("server", merged=True),
        Column("against", merged=True),
        Column("objectives"),
        Column("limit", "right"),
        Column("interval", "right"),
        Column("verdict"),
    )
    return Table(columns, tuple(_row(comparison, cells) for comparison in report.comparisons))


def _row(one: LimitComparison, cells: dict[str, CellLimit]) -> tuple[TableCell, ...]:
    change = _change(one.ratio.value) if one.ratio else "—"
    interval = _interval(one.ratio) if one.ratio else ""
    look: Look = "dim" if one.matters is False else one.verdict
    said = f"{fmt.MARKS[one.verdict]} {one.verdict}{_immaterial(one)}{_adjusted(one)}"
    name, against = cells[one.slug], cells[one.baseline]
    scenario = f", {name.scenario}" if len({cell.scenario for cell in cells.values()}) > 1 else ""
    return f"{name.server}{scenario}", against.server, one.objective, change, interval, words(said, look=look)


def ratio_sentence(one: LimitComparison, server: str, against: str) -> str:
    """`B answers 12.1% more requests/s than A within p99 < 50ms [8.0, 16.3]`."""
    ratio, what = one.ratio, f"requests/s within {one.objective}"
    if ratio is None or ratio.low is None or ratio.high is None:
        return f"{server} and {against} are not compared within {one.objective}: a side of a limit is not known"
    if one.confidence is None:
        times = f"{significant(ratio.low)} to {significant(ratio.high)} times as many {what} as {against}"
        return f"{server} answers {times}, by single rates, which give no confidence"
    if one.verdict in _UNDECIDED:
        change = f"{_change(ratio.value)} {_interval(ratio)}{_equivalent(one)}{_adjusted(one)}"
        return f"{server} and {against} {_UNDECIDED[one.verdict]} in {what}: {change}"
    if ratio.high >= _FROM_ON:
        times = f"{significant(ratio.value)} times as many {what} as {against}"
        return f"{server} answers {times} [{significant(ratio.low)}, {significant(ratio.high)}]"
    near, far = sorted(abs(bound - 1) * 100 for bound in (ratio.low, ratio.high))
    more = f"{abs(ratio.value - 1) * 100:.1f}% {'more' if ratio.value > 1 else 'fewer'} requests/s"
    return f"{server} answers {more} than {against} within {one.objective} [{near:.1f}, {far:.1f}]{_immaterial(one)}"


def _change(ratio: float) -> str:
    return f"{fmt.signed((ratio - 1) * 100, 1)}%"


def _interval(ratio: Estimate) -> str:
    low, high = (fmt.signed(((bound or 0.0) - 1) * 100, 1) for bound in (ratio.low, ratio.high))
    return f"[{low}, {high}]"


def _immaterial(one: LimitComparison) -> str:
    return f", within the {percent(one.threshold)} that do not matter" if one.matters is False else ""


def _equivalent(one: LimitComparison) -> str:
    return f", within the {percent(one.threshold)} that do not matter" if one.verdict is Verdict.EQUIVALENT else ""


def _adjusted(one: LimitComparison) -> str:
    """`(p 0.12 among 3)` where the interval alone would show a difference."""
    ratio = one.ratio
    if one.p_adjusted is None or ratio is None or ratio.low is None or ratio.high is None:
        return ""
    held_back = one.verdict in _UNDECIDED and not ratio.low <= 1 <= ratio.high
    return f" (p {significant(one.p_adjusted, 2)} among {one.family})" if held_back else ""
