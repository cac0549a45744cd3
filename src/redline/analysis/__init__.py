"""Judging a run: comparisons, effects, layers, ranking, history, capacity, precision. Pure."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.analysis.build import build_report
    from redline.analysis.capacity import capacities
    from redline.analysis.compare import RunsCompared, compare_runs, not_compared
    from redline.analysis.intervals import interval_row
    from redline.analysis.judging import judged_load
    from redline.analysis.load_result import load_result as result_of_load
    from redline.analysis.objectives import evaluate_all
    from redline.analysis.percentiles import (
        LoadedRequests,
        are_sent_at_once,
        journey_report,
        other_times,
        request_reports,
        stream_report,
    )
else:
    __getattr__ = offered(__name__)
