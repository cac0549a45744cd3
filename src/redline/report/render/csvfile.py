"""The report as CSV (RFC 4180): one row for each cell and metric. docs/reference/results.md is the contract."""

import csv
import io
from collections.abc import Iterator

from redline.model import CellReport, Comparison, Metric, Report
from redline.report.sections.views import comparisons_by_cell, weighed_findings

COLUMNS = (
    "run",
    "cell_id",
    "slug",
    "server",
    "scenario",
    "load",
    "load_text",
    "role",
    "is_baseline",
    "valid",
    "metric",
    "value",
    "low",
    "high",
    "confidence",
    "unit",
    "n",
    "method",
    "baseline_id",
    "ratio",
    "ratio_low",
    "ratio_high",
    "verdict",
    "refused",
    "findings",
    "build",
    "runtime_version",
    "p",
    "p_adjusted",
    "family",
    "p_equivalent",
    "caveat",
)

_POOLED = "all used trials together: no interval"
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
Field = str | int | float | bool | None


class CsvRenderer:
    """Report -> CSV: header, UTF-8, CRLF. Text that a spreadsheet would run as a formula is led by an apostrophe."""

    def render(self, report: Report) -> bytes:
        """Eight rows for each cell, one a metric, and three for each of its other times; then one for each skipped."""
        sheet = io.StringIO(newline="")
        writer = csv.writer(sheet, lineterminator="\r\n")
        writer.writerow(COLUMNS)
        for row in _rows(report):
            writer.writerow([_text(row.get(column)) for column in COLUMNS])
        return sheet.getvalue().encode(errors="replace")


def _rows(report: Report) -> Iterator[dict[str, Field]]:
    comparisons = comparisons_by_cell(report)
    for cell in report.cells:
        about = {"run": report.run.name, **_identity(cell)}
        compared = comparisons.get(cell.cell_id, {})
        for metric in Metric:
            yield about | _numbers(cell, metric) | _judgement(compared.get(metric), shown=cell.valid)
        for time in cell.other_times if cell.valid else ():
            for name, value in (("p50", time.p50_ns), ("p99", time.p99_ns), ("max", time.max_ns)):
                metric_name = f"{time.name.replace(' ', '-')}-{name}"
                yield about | {"metric": metric_name, "unit": "ns", "value": value, "method": _POOLED}
    for skipped in report.skipped:
        yield {
            "run": report.run.name,
            "slug": skipped.slug,
            "valid": False,
            "findings": f"skipped: {skipped.reason}",
        }


def _identity(cell: CellReport) -> dict[str, Field]:
    findings = dict.fromkeys(f"{finding.grade}:{finding.kind}" for finding in weighed_findings(cell))
    return {
        "cell_id": cell.cell_id,
        "slug": cell.slug,
        "server": cell.server,
        "scenario": cell.scenario,
        "load": cell.load,
        "load_text": cell.load_text,
        "role": cell.role,
        "is_baseline": cell.is_baseline,
        "valid": cell.valid,
        "findings": ";".join(findings),
        "build": cell.build,
        "runtime_version": cell.runtime_version,
    }


def _numbers(cell: CellReport, metric: Metric) -> dict[str, Field]:
    """The estimate; nothing but the metric and its unit when the cell is invalid or the metric was not measured."""
    estimate = cell.estimates.get(metric)
    if estimate is None or not cell.valid:
        return {"metric": metric.value, "unit": metric.unit}
    return {
        "metric": metric.value,
        "unit": estimate.unit,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "confidence": estimate.confidence,
        "n": estimate.n,
        "method": estimate.method,
    }


def _judgement(comparison: Comparison | None, *, shown: bool) -> dict[str, Field]:
    if comparison is None:
        return {}
    ratio = comparison.ratio if shown else None
    return {
        "baseline_id": comparison.baseline_id,
        "ratio": ratio.value if ratio else None,
        "ratio_low": ratio.low if ratio else None,
        "ratio_high": ratio.high if ratio else None,
        "verdict": comparison.verdict.value if comparison.verdict and shown else None,
        "refused": comparison.refused,
        "p": comparison.p if shown else None,
        "p_adjusted": comparison.p_adjusted if shown else None,
        "family": comparison.family if shown else None,
        "p_equivalent": comparison.p_equivalent if shown else None,
        "caveat": comparison.caveat if shown else None,
    }


def _text(field: Field) -> str:
    """Numbers in the shortest form that reads back the same; text defused (OWASP, CSV injection)."""
    if field is None:
        return ""
    if isinstance(field, bool):
        return "true" if field else "false"
    if isinstance(field, str):
        return f"'{field}" if field.startswith(_FORMULA_STARTS) else field
    return repr(field)
