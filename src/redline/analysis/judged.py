"""A run's recordings by cell, judged: which trials may be used, and what is doubtful."""

from dataclasses import dataclass

from redline.findings import SERVERS_DOING, is_valid, judge, judge_cell, usable
from redline.model import Cell, Finding, FindingKind, Grade, Recording, Run


@dataclass(frozen=True)
class JudgedTrial:
    """One trial and what makes it doubtful."""

    recording: Recording
    findings: tuple[Finding, ...]
    used: bool

    @property
    def lost_to(self) -> tuple[FindingKind, ...]:
        """What the server did for which this trial is not used; empty when it is used, or was lost to other causes."""
        grave = (finding.kind for finding in self.findings if finding.grade is Grade.INVALID)
        return tuple(kind for kind in grave if kind in SERVERS_DOING)


@dataclass(frozen=True)
class JudgedCell:
    """One cell, its trials so far and what makes it doubtful as a whole."""

    cell: Cell
    planned: int
    trials: tuple[JudgedTrial, ...]
    own_findings: tuple[Finding, ...]
    valid: bool

    @property
    def used(self) -> tuple[Recording, ...]:
        """The recordings that its numbers rest on, in the run's order."""
        return tuple(trial.recording for trial in self.trials if trial.used)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All doubts: of its trials in the run's order, then of the whole, which often follow from those."""
        return (*(finding for trial in self.trials for finding in trial.findings), *self.own_findings)


def judge_run(run: Run) -> dict[str, JudgedCell]:
    """Every cell of the plan by its id, in the plan's order; those without a recording too."""
    plan = run.manifest.plan
    trials: dict[str, list[JudgedTrial]] = {cell_id: [] for cell_id in plan.cells}
    for recording in run.recordings:
        if recording.cell_id in trials:
            trials[recording.cell_id].append(judge_trial(plan.cells[recording.cell_id], recording))
    planned = {cell_id: sum(1 for trial in run.wanted if trial.cell_id == cell_id) for cell_id in plan.cells}
    ceilings = _ceilings(plan.cells, trials)
    judged = {}
    for cell_id, cell in plan.cells.items():
        own = tuple(trials[cell_id])
        used = [trial.recording for trial in own if trial.used]
        judged[cell_id] = JudgedCell(
            cell=cell,
            planned=planned[cell_id],
            trials=own,
            own_findings=judge_cell(
                cell, used, planned=planned[cell_id], ceiling_per_s=ceilings.get((cell.scenario.name, cell.load.name))
            ),
            valid=is_valid(len(own), len(used)),
        )
    return judged


def judge_trial(cell: Cell, recording: Recording) -> JudgedTrial:
    """One trial with its findings."""
    findings = judge(cell, recording)
    return JudgedTrial(recording, findings, usable(recording, findings))


def _ceilings(cells: dict[str, Cell], trials: dict[str, list[JudgedTrial]]) -> dict[tuple[str, str], float]:
    """The rate of the do-nothing server by scenario and load, where it has usable trials."""
    ceilings = {}
    for cell_id, cell in cells.items():
        used = [trial.recording.traffic for trial in trials[cell_id] if trial.used]
        seconds = sum(traffic.seconds for traffic in used if traffic)
        if cell.role == "ceiling" and seconds > 0:
            completed = sum(traffic.counts.completed for traffic in used if traffic)
            ceilings[cell.scenario.name, cell.load.name] = completed / seconds
    return ceilings
