"""Judge the cells of a run one by one, each by what it rests on alone: whoever builds a report may share the work."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from redline.analysis.cells import cell_report
from redline.analysis.results import CellResult, judged_cell, planned_trials, rate_per_s
from redline.analysis.timelines import Detail, detail_for
from redline.lazily import dataclass
from redline.model import Cell, CellReport, Plan, PlannedTrial, Recording, Run, Suite
from redline.suite.screening import axes_of_server, by_server

if TYPE_CHECKING:  # trials alone need nothing of duets
    from redline.analysis.levels import SlicedCell


@dataclass(frozen=True)
class CellTask:
    """All that a cell is judged by, but the recordings of its trials, which are those at `places` of the run.

    `settings` are those in which the variants of its server differ; `sliced` are its starts, if it has no trials.
    """

    cell_id: str
    cell: Cell
    places: tuple[int, ...]
    trials: tuple[PlannedTrial, ...]
    planned: int
    ceiling_per_s: float | None
    detail: Detail
    settings: Mapping[str, str]
    suite: Suite = field(repr=False)
    sliced: "SlicedCell | None" = None


@dataclass(frozen=True)
class JudgedCell:
    """A cell with the numbers for comparisons, and its part of the report. Its histograms are not decoded."""

    result: CellResult
    report: CellReport


def judged_load(suite: Suite, cell: Cell, recording: Recording) -> CellReport:
    """The cell of a load by its only recording, without courses and curves, which only its page has."""
    result = judged_cell(cell, [recording], 1, None, Detail(is_load=True))
    return cell_report(result, suite, {}, None, with_curves=False)


Judging = Callable[[Run, Sequence[CellTask]], Iterator[JudgedCell]]
"""Judges the cells of these tasks, in their order."""


def judge_task(task: CellTask, recordings: Sequence[Recording]) -> JudgedCell:
    """Judge a cell by the recordings of its trials."""
    result = judged_cell(task.cell, recordings, task.planned, task.ceiling_per_s, task.detail)
    result.know_id(task.cell_id)
    with_curves = task.detail.steps > 0
    report = cell_report(result, task.suite, dict(task.settings), task.sliced, with_curves=with_curves)
    judged = JudgedCell(result, report)
    result.compute_ahead()
    result.release()
    return judged


def judge_in_turn(run: Run, tasks: Sequence[CellTask]) -> Iterator[JudgedCell]:
    """Judge one cell after the other: only the recordings of one are in memory at a time."""
    for task in tasks:
        yield judge_task(task, [run.recordings[place] for place in task.places])


def judged_cells(
    run: Run, sliced: Mapping[str, "SlicedCell"], judging: Judging = judge_in_turn
) -> dict[str, JudgedCell]:
    """Every cell of the plan by its id, in the plan's order: ceilings first, since others are judged by them."""
    tasks = list(_tasks(run, sliced))
    ceilings: dict[tuple[str, str], float] = {}
    made: dict[str, JudgedCell] = {}
    for role in ("ceiling", "subject"):
        wanted = [_under(task, ceilings) for task in tasks if task.cell.role == role]
        for task, judged in zip(wanted, judging(run, wanted), strict=True):
            made[task.cell_id] = judged
            if role == "ceiling" and (rate := rate_per_s(judged.result)):
                ceilings[place_of(task.cell)] = rate
    return {task.cell_id: made[task.cell_id] for task in tasks}


def tasks_of_plan(plan: Plan) -> dict[str, CellTask]:
    """The task of every cell by its id, as it is once all trials of the plan are measured."""
    trials: dict[str, list[PlannedTrial]] = {cell_id: [] for cell_id in plan.cells}
    for trial in plan.trials:
        trials[trial.cell_id].append(trial)
    detail, settings = detail_for(len(plan.trials), len(plan.cells)), _settings(plan)
    return {
        cell_id: CellTask(
            cell_id=cell_id,
            cell=cell,
            places=(),
            trials=tuple(sorted(trials[cell_id], key=lambda trial: trial.position)),
            planned=len(trials[cell_id]),
            ceiling_per_s=None,
            detail=detail,
            settings=settings[cell_id],
            suite=plan.suite,
        )
        for cell_id, cell in plan.cells.items()
    }


def _tasks(run: Run, sliced: Mapping[str, "SlicedCell"]) -> Iterator[CellTask]:
    plan, planned, places = run.manifest.plan, planned_trials(run), run.by_cell()
    detail = replace(detail_for(len(run.recordings), len(plan.cells)), is_load=run.manifest.kind == "load")
    settings = _settings(plan)
    trials, positions = {trial.position: trial for trial in plan.trials}, run.positions
    for cell_id, cell in plan.cells.items():
        yield CellTask(
            cell_id=cell_id,
            cell=cell,
            places=tuple(places[cell_id]),
            trials=tuple(trials[positions[place]] for place in places[cell_id]),
            planned=planned[cell_id],
            ceiling_per_s=None,
            detail=detail,
            settings=settings[cell_id],
            suite=plan.suite,
            sliced=sliced.get(cell_id),
        )


def _settings(plan: Plan) -> dict[str, dict[str, str]]:
    """The settings of every cell's variant in which the variants of its server differ, by the cell's id."""
    varying = {server: axes_of_server(variants).values for server, variants in by_server(plan.suite.variants).items()}
    return {
        cell_id: {
            name: value for name, value in cell.variant.settings.items() if name in varying.get(cell.variant.server, ())
        }
        for cell_id, cell in plan.cells.items()
    }


def _under(task: CellTask, ceilings: Mapping[tuple[str, str], float]) -> CellTask:
    return replace(task, ceiling_per_s=ceilings.get(place_of(task.cell)))


def place_of(cell: Cell) -> tuple[str, str]:
    """The scenario and load of a cell, which it shares with its ceiling."""
    return cell.scenario.name, cell.load.name
