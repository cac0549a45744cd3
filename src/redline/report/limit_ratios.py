"""Limits compared with those of baselines: in sentences, and as a table."""

from collections.abc import Iterator

from redline.document import format as fmt
from redline.document.blocks import Column, Line, Section, Table, TableCell, line, words
from redline.model import Verdict
from redline.model.limits import CellLimit, LimitComparison, LimitReport
from redline.quantities import percent, significant


def ratio_lines(report: LimitReport) -> Iterator[Line]:
    """The ratios of limits in words."""
    cells = {cell.slug: cell for cell in report.cells}
    several = len({cell.scenario for cell in report.cells}) > 1
    for comparison in report.comparisons:
        cell = cells[comparison.slug]
        against = cells[comparison.baseline].server
        sentence = ratio_sentence(comparison, cell.server, against, by_users=cell.by_users)
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
    change = fmt.change(comparison.ratio) if comparison.ratio else "—"
    interval = fmt.change_bounds(comparison.ratio) if comparison.ratio else ""
    said = words(fmt.verdict(comparison), look=fmt.VerdictSign.of(comparison) or "")
    name, against = cells[comparison.slug], cells[comparison.baseline]
    scenario = f", {name.scenario}" if len({cell.scenario for cell in cells.values()}) > 1 else ""
    return f"{name.server}{scenario}", against.server, comparison.objective, change, interval, said


def ratio_sentence(comparison: LimitComparison, server: str, against: str, *, by_users: bool = False) -> str:
    """`B answers 12.1% more requests/s than A within p99 < 50ms [8.0, 16.3]`; by users `B holds 12.1% more users …`."""
    does, noun = ("holds", "users") if by_users else ("answers", "requests/s")
    ratio, what = comparison.ratio, f"{noun} within {comparison.objective}"
    if ratio is None or ratio.low is None or ratio.high is None:
        return f"{server} and {against} are not compared within {comparison.objective}: a side of a limit is not known"
    if comparison.confidence is None:
        times = f"{significant(ratio.low, 2)} to {significant(ratio.high, 2)} times as many {what} as {against}"
        return f"{server} {does} {times}, by limits without a confidence"
    if comparison.verdict in {Verdict.INCONCLUSIVE, Verdict.EQUIVALENT}:
        same = f"are the same within {percent(comparison.threshold)}"
        said = same if comparison.verdict is Verdict.EQUIVALENT else "cannot be distinguished"
        change = f"{fmt.with_bounds(ratio)} {fmt.held_back(comparison)}".rstrip()
        return f"{server} and {against} {said} in {what}: {change}"
    if (factor := fmt.factor_in_times(ratio.value)) is not None:
        ends = (ratio.low, ratio.high) if ratio.value > 1 else (1 / ratio.high, 1 / ratio.low)
        times = f"as many {what} as {against}" if ratio.value > 1 else f"fewer {what} than {against}"
        bounds = ", ".join(significant(end, 2) for end in ends)
        return f"{server} {does} {significant(factor, 2)} times {times} [{bounds}]"
    near, far = sorted(abs(bound - 1) * 100 for bound in (ratio.low, ratio.high))
    places = fmt.end_places(ratio.low, ratio.high, 1)
    more = f"{abs(ratio.value - 1) * 100:.{places}f}% {'more' if ratio.value > 1 else 'fewer'} {noun}"
    bounds = f"[{near:.{places}f}, {far:.{places}f}]{fmt.immaterial(comparison)}"
    return f"{server} {does} {more} than {against} within {comparison.objective} {bounds}"
