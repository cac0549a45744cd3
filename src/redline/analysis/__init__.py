"""Judging a run: comparisons, effects, layers, ranking, history, capacity, precision. Pure."""

from redline.analysis.build import build_report
from redline.analysis.capacity import capacities
from redline.analysis.cells import percentiles
from redline.analysis.compare import RunsCompared, compare_runs
from redline.analysis.other_times import other_times

__all__ = ["RunsCompared", "build_report", "capacities", "compare_runs", "other_times", "percentiles"]
