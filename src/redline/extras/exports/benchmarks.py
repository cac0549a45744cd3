"""The report's numbers for tools that follow benchmarks over time: levels of servers, and ratios to their baselines.

`bmf`: https://bencher.dev/docs/reference/bencher-metric-format. `benchmark`: the format that github-action-benchmark
reads as `customSmallerIsBetter`, so without throughput and limits.
"""

import json
from collections.abc import Iterator
from math import sqrt
from typing import NamedTuple

from redline.model import Estimate, Report
from redline.model.limits import AnyReport, LimitAnswer, LimitReport
from redline.report.views import has_result
from redline.visible import visible


class _Number(NamedTuple):
    """A number of a benchmark, with its interval if there is one."""

    benchmark: str
    measure: str
    unit: str
    value: float
    low: float | None
    high: float | None
    higher_is_better: bool

    @classmethod
    def of(cls, benchmark: str, measure: str, estimate: Estimate, *, higher_is_better: bool) -> "_Number":
        """Convert an estimate; its interval is left out if it says nothing."""
        low, high = (None, None) if estimate.says_nothing else (estimate.low, estimate.high)
        return cls(benchmark, measure, estimate.unit, estimate.value, low, high, higher_is_better)


def bmf(report: AnyReport) -> bytes:
    """Bencher Metric Format: the measures of each benchmark."""
    benchmarks: dict[str, dict[str, dict[str, float]]] = {}
    for number in _numbers(report):
        values = {"value": number.value, "lower_value": number.low, "upper_value": number.high}
        known = {name: value for name, value in values.items() if value is not None}
        benchmarks.setdefault(number.benchmark, {})[number.measure] = known
    return _json(benchmarks)


def smaller_is_better(report: AnyReport) -> bytes:
    """A list of all numbers for which smaller is better; empty for a search."""
    return _json(
        [
            {"name": f"{number.benchmark} {number.measure}", "unit": number.unit, "value": number.value}
            | (
                {}
                if number.low is None or number.high is None
                else {"range": f"± {(number.high - number.low) / 2:.6g}"}
            )
            for number in _numbers(report)
            if not number.higher_is_better
        ]
    )


def _numbers(report: AnyReport) -> Iterator[_Number]:
    return _of_search(report) if isinstance(report, LimitReport) else _of_run(report)


def _of_run(report: Report) -> Iterator[_Number]:
    cells = {cell.cell_id: cell for cell in report.cells if has_result(cell)}
    names = {cell.cell_id: f"{cell.server}/{cell.scenario}/{cell.load}" for cell in cells.values()}
    for cell_id, cell in cells.items():
        for metric, estimate in cell.known.items():
            better = metric.higher_is_better
            yield _Number.of(names[cell_id], metric.value, estimate, higher_is_better=better)
    for comparison in report.comparisons:
        if comparison.ratio is not None and {comparison.cell_id, comparison.baseline_id} <= set(cells):
            name = f"{names[comparison.cell_id]} over {cells[comparison.baseline_id].server}"
            metric = comparison.metric
            better = metric.higher_is_better
            yield _Number.of(name, f"{metric.value}-ratio", comparison.ratio, higher_is_better=better)


def _of_search(report: LimitReport) -> Iterator[_Number]:
    cells = {cell.slug: cell for cell in report.cells}
    for cell in report.cells:
        for answer in cell.limits:
            yield from _limit(f"{cell.slug}/{answer.name}", answer)
    for comparison in report.comparisons:
        if comparison.ratio is not None:
            name = f"{comparison.slug}/{comparison.objective} over {cells[comparison.baseline].server}"
            yield _Number.of(name, "limit-ratio", comparison.ratio, higher_is_better=True)


def _limit(benchmark: str, answer: LimitAnswer) -> Iterator[_Number]:
    """Yield the middle of the interval; the lower side if the upper is open, and nothing if the lower is."""
    low, high = answer.passed, answer.failed
    if low is not None:
        middle = low if high is None else sqrt(low * high)
        unit = "users" if answer.by_users else "1/s"
        yield _Number(benchmark, "limit", unit, middle, low, high, higher_is_better=True)


def _json(document: object) -> bytes:
    return visible(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)).encode() + b"\n"
