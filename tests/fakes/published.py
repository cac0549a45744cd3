"""Reports without what they have for pages alone, to compare them with their JSON."""

from typing import TypeVar

from redline.model import Report
from redline.model.limits import AnyReport, LimitReport

R = TypeVar("R", Report, LimitReport)


def published(report: R) -> R:
    """The report without its timelines."""
    made: AnyReport
    if isinstance(report, LimitReport):
        searched = tuple(cell.model_copy(update={"loads": ()}) for cell in report.cells)
        made = report.model_copy(update={"cells": searched})
    else:
        cells = tuple(cell.model_copy(update={"trial_timelines": ()}) for cell in report.cells)
        made = report.model_copy(update={"cells": cells, "duet_timelines": ()})
    return made
