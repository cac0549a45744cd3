"""The servers of a run that goes on, compared after every trial."""

from collections.abc import Sequence

from redline.analysis.compare import compare_in_suite, metrics_asked
from redline.analysis.results import CellResult, cell_of_trials
from redline.analysis.trials import TrialResult, judged_trial
from redline.model import Cell, Comparison, Finding, Plan, PlannedDuet, PlannedTrial, Recording


class TrialsSoFar:
    """The trials that ended in this session: each is judged once, and kept without its decoded histograms.

    Cells as a whole are judged only for validity.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._ids = {
            (cell.variant.slug, cell.scenario.name, cell.load.name): cell_id
            for cell_id, cell in plan.cells.items()
            if cell.role == "subject"
        }
        self._trials: dict[str, dict[int, TrialResult]] = {}

    def add(self, cell: Cell, recording: Recording) -> tuple[Finding, ...]:
        """Judge a trial. A profiled one counts for no comparison, since the profiler perturbs it."""
        _, trial = judged_trial(cell, recording)
        trial.release()
        if recording.profile is None:
            self._trials.setdefault(recording.cell_id, {})[recording.position] = trial
        return trial.findings

    def forget(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> None:
        """Leave out trials that are repeated."""
        for step in steps:
            if isinstance(step, PlannedTrial):
                self._trials.get(step.cell_id, {}).pop(step.position, None)

    def compared(self, cell_id: str) -> tuple[Comparison, ...]:
        """The cell beside its baseline, or those of which it is the baseline beside it, after a trial of it.

        They are compared in the load's main metric over the rounds of both, without a verdict: that takes all
        comparisons of the run. Empty for servers that are compared in duets.
        """
        suite, cell = self._plan.suite, self._plan.cells[cell_id]
        if not suite.alone or cell.role != "subject":
            return ()
        own = [cell_id] if suite.baseline_of(cell.variant.slug) else self._against(cell)
        metric = metrics_asked(cell.load, suite)[0]
        compared = []
        for server in own:
            baseline = self._baseline_of(self._plan.cells[server])
            if baseline is not None and server in self._trials and baseline in self._trials:
                compared.append(compare_in_suite(self._result(server), self._result(baseline), metric, suite, {}))
        return tuple(compared)

    def _against(self, baseline: Cell) -> list[str]:
        """The cells of which this one is the baseline."""
        slug, where = baseline.variant.slug, (baseline.scenario.name, baseline.load.name)
        return [
            cell_id
            for (server, *names), cell_id in self._ids.items()
            if tuple(names) == where and self._plan.suite.baseline_of(server) == slug
        ]

    def _baseline_of(self, cell: Cell) -> str | None:
        slug = self._plan.suite.baseline_of(cell.variant.slug)
        return self._ids.get((slug or "", cell.scenario.name, cell.load.name))

    def _result(self, cell_id: str) -> CellResult:
        result = cell_of_trials(self._plan.cells[cell_id], tuple(self._trials.get(cell_id, {}).values()))
        result.know_id(cell_id)
        return result
