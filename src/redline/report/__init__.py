"""A run as it is shown, and two runs against each other. Renderers turn a Report into bytes."""

from redline.report.build import build_report
from redline.report.capacity import capacities
from redline.report.compare import RunsCompared, compare_runs
from redline.report.load_words import load_text
from redline.report.others import other_times
from redline.report.views import percentiles

__all__ = ["RunsCompared", "build_report", "capacities", "compare_runs", "load_text", "other_times", "percentiles"]
