"""Comparisons of runs that are in memory."""

from redline.analysis.compare import RunsCompared, compare_runs
from redline.analysis.comparing import ComparedRun, compare_two, compare_within
from redline.analysis.results import judge_run
from redline.model import Run
from redline.model.compared import CompareResult


def two_compared(base: Run, other: Run, *, anyway: bool = False) -> CompareResult:
    """What `redline compare` says of two runs."""
    return compare_two(ComparedRun(base), ComparedRun(other), anyway=anyway)


def compared_within(run: Run) -> CompareResult:
    """What `redline compare` says of a single run."""
    return compare_within(ComparedRun(run))


def runs_compared(base: Run, other: Run) -> RunsCompared:
    """The cells of two runs, compared."""
    return compare_runs(base, other, judge_run(base), judge_run(other))
