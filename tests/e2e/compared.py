"""Reads the comparison of two servers in a report of `redline ab`."""

from redline.model import Comparison, Metric, Report
from redline.model.estimate import DuetComparison


def answer(report: Report) -> Comparison:
    """The comparison with the verdict, in a report with one scenario."""
    (found,) = (comparison for comparison in report.comparisons if comparison.primary)
    return found


def in_metric(report: Report, metric: Metric) -> Comparison:
    """The comparison in a metric, in a report with one scenario."""
    (found,) = (comparison for comparison in report.comparisons if comparison.metric is metric)
    return found


def duet(report: Report) -> DuetComparison:
    """The notes on how the answer was reached."""
    found = answer(report).duet
    assert found is not None
    return found


def kinds(report: Report) -> set[str]:
    """The kinds of the findings of the duet."""
    return {str(finding.kind) for finding in duet(report).findings}
