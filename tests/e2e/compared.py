"""What a report of `redline ab` says of its two servers."""

from redline.model import Comparison, Metric, Report
from redline.model.estimate import DuetComparison


def answer(report: Report) -> Comparison:
    """The comparison that has the verdict, of a report with one scenario."""
    (found,) = (comparison for comparison in report.comparisons if comparison.primary)
    return found


def in_metric(report: Report, metric: Metric) -> Comparison:
    """The comparison in a metric, of a report with one scenario."""
    (found,) = (comparison for comparison in report.comparisons if comparison.metric is metric)
    return found


def duet(report: Report) -> DuetComparison:
    """How the answer came about."""
    found = answer(report).duet
    assert found is not None
    return found


def kinds(report: Report) -> set[str]:
    """The kinds of the findings of the duet."""
    return {str(finding.kind) for finding in duet(report).findings}
