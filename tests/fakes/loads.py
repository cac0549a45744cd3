"""Loads that are measured by themselves, judged by their only recording."""

from redline.analysis.judging import judged_load
from redline.analysis.load_result import load_result
from redline.model import Cell, CellReport, Objective, Recording
from redline.model.load_result import LoadResult
from tests.fakes.recordings import simulated_run


def load_of(cell: Cell, recording: Recording, *objectives: Objective) -> CellReport:
    """The judged cell of a load."""
    suite = simulated_run({}, ceiling=None).manifest.plan.suite.model_copy(update={"objectives": objectives})
    return judged_load(suite, cell, recording)


def result_of(cell: Cell, recording: Recording, *objectives: Objective) -> LoadResult:
    """The same in its published form."""
    return load_result(load_of(cell, recording, *objectives), "http://127.0.0.1:8080/")
