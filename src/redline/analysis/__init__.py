"""Judging a run: comparisons, effects, layers, ranking, history, capacity, precision. Pure."""

from redline.analysis.build import build_report
from redline.analysis.capacity import capacities
from redline.analysis.cells import other_times
from redline.analysis.compare import RunsCompared, compare_runs
from redline.analysis.objectives import evaluate_all, load_objectives
from redline.analysis.percentiles import (
    LoadedRequests,
    are_sent_at_once,
    journey_report,
    percentiles,
    request_reports,
    stream_report,
)
