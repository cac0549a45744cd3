"""Duets: servers that were alive at once and loaded in turn, against their baselines, with their controls."""

from collections.abc import Iterator

from redline.model import CellReport, Comparison, Estimate, Grade, Metric, Report
from redline.model.estimate import DuetComparison
from redline.report import format as fmt
from redline.report.document import (
    ChangeCell,
    Column,
    Item,
    Items,
    Prose,
    Section,
    Table,
    TableCell,
    TextCell,
    filled,
    key,
    line,
    words,
)

_INTRO = (
    "Both servers were alive at once and loaded {how}, on **fresh starts**: what disturbs the machine "
    "disturbs both. A duet gives ratios; levels are of trials of each server alone. The baseline **against itself** "
    "shows what no difference looks like, and **alone** what trials of each server say by themselves. Under the number "
    "of starts: by how much they differ, and the error that the machine leaves in the value of one."
)
_IN_TURN = "in turn, in slices of 10 to 50 ms"
_PARALLEL = "at the same time, each on cores of its own, which were drawn for each start"
_COLUMNS = (
    Column("CPU per request", "right"),
    Column("throughput", "right"),
    Column("baseline against itself", "right"),
    Column("alone", "right"),
    Column("starts", "right"),
)


def duet_sections(report: Report, *, page: bool = False) -> Iterator[Section]:
    """Every comparison by duets, with what to know of it; nothing where none was measured."""
    cells = {cell.cell_id: cell for cell in report.cells}
    rows: list[tuple[TableCell, ...]] = []
    doubts: dict[tuple[Grade, str], list[str]] = {}
    found = {(each.cell_id, each.metric): each for each in report.comparisons if each.duet}
    for (cell_id, metric), one in found.items():
        if metric is not Metric.CPU_PER_REQUEST or one.duet is None:
            continue
        cell, baseline = cells[cell_id], cells[one.baseline_id]
        servers, workload = f"{cell.server} vs {baseline.server}", f"{cell.scenario} · {cell.load}"
        rows.append(
            (
                words(workload, servers) if page else f"{workload}: {servers}",
                _change(one),
                _change(found.get((cell_id, Metric.THROUGHPUT))),
                _estimate(one.duet.control),
                _estimate(one.duet.alone),
                _starts(one.duet),
            )
        )
        for doubt in one.duet.findings:
            doubts.setdefault((doubt.grade, doubt.message), []).append(_where(cell))
    if rows:
        # A terminal has no room for one more column.
        named = Column("duet", place="column" if page else "above")
        items = Items(tuple(_doubt(grade, message, places) for (grade, message), places in doubts.items()))
        parallel = any(one.duet.parallel for one in found.values() if one.duet)
        intro = _INTRO.format(how=_PARALLEL if parallel else _IN_TURN)
        blocks = filled(Prose((key(intro),)), Table((named, *_COLUMNS), tuple(rows)), items)
        yield Section("Duets", tuple(blocks), anchor="duets")


def _change(one: Comparison | None) -> TableCell:
    cell = ChangeCell.of(one) if one else ChangeCell()
    return words(" ".join(filter(None, (cell.text, cell.sign))), cell.bounds, look=cell.verdict or "dim")


def _estimate(ratio: Estimate | None) -> TableCell:
    return words(fmt.change(ratio), fmt.change_bounds(ratio), look="dim") if ratio else words("")


def _starts(duet: DuetComparison) -> TextCell:
    """`9`, and below it by how much they differ, and how much of that is the machine's noise within one."""
    named = (("differ", duet.between_sd), ("machine", duet.blocks_se))
    known = (f"{name} {value * 100:.2g}%" for name, value in named if value is not None)
    return TextCell((line(str(duet.starts)), line((", ".join(known), "dim"))))


def _where(cell: CellReport) -> str:
    return f"{cell.server} {cell.scenario} {cell.load}"


def _doubt(grade: Grade, message: str, places: list[str]) -> Item:
    return Item(
        line((f"{fmt.GRADE_MARKS[grade]} {grade}", grade)), (line(message), line((f"in {', '.join(places)}", "dim")))
    )
