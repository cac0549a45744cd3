"""Limits compared with those of baselines: in sentences, and as a table."""

from collections.abc import Iterator

from redline.model import Estimate, Verdict
from redline.model.limits import CellLimit, LimitComparison, LimitReport
from redline.quantities import percent, significant
from redline.report import format as fmt
from redline.report.document import Column, Line, Look, Section, Table, TableCell, line, words

_FROM_ON = 2.0
"""Ratios from this on are written as `2.5 times`, not in percent."""
_UNDECIDED = {Verdict.INCONCLUSIVE: "cannot be distinguished", Verdict.EQUIVALENT: "are equivalent"}


def ratio_lines(report: LimitReport) -> Iterator[Line]:
    """The ratios of limits in words."""
    cells = {cell.slug: cell for cell in report.cells}
    several = len({cell.scenario for cell in report.cells}) > 1
    for comparison in report.comparisons:
        cell = cells[comparison.slug]
        sentence = ratio_sentence(comparison, cell.server, cells[comparison.baseline].server)
        yield line((f"{cell.scenario}: " if several else "", "dim"), (sentence, "strong"))


def ratio_section(report: LimitReport) -> Iterator[Section]:
    """The ratios of limits as a table; empty if nothing is compared."""
    cells = {cell.slug: cell for cell in report.cells}
    columns = (
        *(Column("server", merged=True), Column("against", merged=True), Column("objectives")),
        *(Column("limit", "right"), Column("interval", "right"), Column("verdict")),
    )
    if report.comparisons:
        table = Table(columns, tuple(_row(comparison, cells) for comparison in report.comparisons))
        yield Section("The limits compared", (table,), anchor="ratios")


def _row(comparison: LimitComparison, cells: dict[str, CellLimit]) -> tuple[TableCell, ...]:
    change = _change(comparison.ratio.value) if comparison.ratio else "—"
    interval = _interval(comparison.ratio) if comparison.ratio else ""
    look: Look = "dim" if comparison.matters is False else comparison.verdict
    said = f"{fmt.MARKS[comparison.verdict]} {comparison.verdict}{_immaterial(comparison)}{_adjusted(comparison)}"
    name, against = cells[comparison.slug], cells[comparison.baseline]
    scenario = f", {name.scenario}" if len({cell.scenario for cell in cells.values()}) > 1 else ""
    return f"{name.server}{scenario}", against.server, comparison.objective, change, interval, words(said, look=look)


def ratio_sentence(comparison: LimitComparison, server: str, against: str) -> str:
    """`B answers 12.1% more requests/s than A within p99 < 50ms [8.0, 16.3]`."""
    ratio, what = comparison.ratio, f"requests/s within {comparison.objective}"
    if ratio is None or ratio.low is None or ratio.high is None:
        return f"{server} and {against} are not compared within {comparison.objective}: a side of a limit is not known"
    if comparison.confidence is None:
        times = f"{significant(ratio.low)} to {significant(ratio.high)} times as many {what} as {against}"
        return f"{server} answers {times}, by single rates, which give no confidence"
    if comparison.verdict in _UNDECIDED:
        change = f"{_change(ratio.value)} {_interval(ratio)}{_immaterial(comparison)}{_adjusted(comparison)}"
        return f"{server} and {against} {_UNDECIDED[comparison.verdict]} in {what}: {change}"
    if ratio.high >= _FROM_ON:
        times = f"{significant(ratio.value)} times as many {what} as {against}"
        return f"{server} answers {times} [{significant(ratio.low)}, {significant(ratio.high)}]"
    near, far = sorted(abs(bound - 1) * 100 for bound in (ratio.low, ratio.high))
    more = f"{abs(ratio.value - 1) * 100:.1f}% {'more' if ratio.value > 1 else 'fewer'} requests/s"
    bounds = f"[{near:.1f}, {far:.1f}]{_immaterial(comparison)}"
    return f"{server} answers {more} than {against} within {comparison.objective} {bounds}"


def _change(ratio: float) -> str:
    return f"{fmt.signed((ratio - 1) * 100, 1)}%"


def _interval(ratio: Estimate) -> str:
    low, high = (fmt.signed(((bound or 0.0) - 1) * 100, 1) for bound in (ratio.low, ratio.high))
    return f"[{low}, {high}]"


def _immaterial(comparison: LimitComparison) -> str:
    """A remark on an equivalence, and on a significant difference that does not matter."""
    within = comparison.matters is False or comparison.verdict is Verdict.EQUIVALENT
    return f", within the {percent(comparison.threshold)} that do not matter" if within else ""


def _adjusted(comparison: LimitComparison) -> str:
    """`(p 0.12 among 3)` if the interval alone would show a difference."""
    ratio = comparison.ratio
    if comparison.p_adjusted is None or ratio is None or ratio.low is None or ratio.high is None:
        return ""
    held_back = comparison.verdict in _UNDECIDED and not ratio.low <= 1 <= ratio.high
    return f" (p {significant(comparison.p_adjusted, 2)} among {comparison.family})" if held_back else ""
