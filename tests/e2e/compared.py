"""Compares two servers by `redline ab`, for as long as it takes, and reads the comparison in its report."""

import shutil
from pathlib import Path

from redline.cli.exits import DONE, MISSED
from redline.model import Comparison, Metric, Report, Verdict
from redline.model.estimate import DuetComparison
from tests.e2e.conftest import Done, Redline

LENGTHS = ("3s", "12s", "48s")
"""So short a comparison has three starts at least; a busy machine may leave it without an answer."""


def compared(
    redline: Redline, *args: str | Path, lengths: tuple[str, ...] = LENGTHS, decided: bool = False, keep: str = ""
) -> Done:
    """`redline ab` of these, as JSON: for longer where it has no answer, or no verdict if it has to be `decided`.

    What it has wrong it has wrong for any length. `keep` is the folder that it is stored in.
    """
    for length in lengths:
        if keep:
            shutil.rmtree(redline.folder / keep, ignore_errors=True)
        done = redline("ab", *args, "--for", length, "--json", *(("-o", keep) if keep else ()))
        if done.code in {DONE, MISSED} and not (decided and _is_open(done)):
            break
    return done


def _is_open(done: Done) -> bool:
    return answer(Report.model_validate(done.json)).verdict in {None, Verdict.INCONCLUSIVE}


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
