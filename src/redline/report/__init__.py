"""A run as it is shown, and two runs against each other. Renderers turn a Report into bytes."""

from redline.report.build import build_report
from redline.report.compare import Differences, compare_runs, differences
from redline.report.views import trial_summary

__all__ = ["Differences", "build_report", "compare_runs", "differences", "trial_summary"]
