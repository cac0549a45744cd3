"""Repeat trials and duets that steal disturbed, as a search repeats its probes.

Their measurements are not looked at, so repeating favours no result. A trial is repeated with its partner, since
compared trials should run side by side. Earlier recordings stay stored, and are not in the report.

Comparisons within a time budget repeat nothing: a further start narrows their interval more than a repetition does
(docs/concepts/statistics.md#starts-that-steal-disturbed).
"""

import math
from collections.abc import Sequence

from redline import findings
from redline.model import Plan, PlannedDuet, PlannedTrial
from redline.running.trial import Step
from redline.storage.runs import RunStore

SHARE = 0.25
"""The most repetitions of a run, as a share of the trials and duets that its suite asks for."""


class Repeats:
    """The repetitions of a run. Earlier repetitions are read from its directory."""

    def __init__(self, plan: Plan, store: RunStore) -> None:
        suite = plan.suite
        rounds = suite.auto.at_least if suite.auto else suite.trials
        in_a_round = len(plan.cells) + sum(duet.round == 0 for duet in plan.duets)
        self._plan, self._store = plan, store
        self._left = math.ceil(SHARE * rounds * in_a_round) - len(store.repeated()) if suite.alone else 0

    def of_round(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Return the trials and duets of a whole round to repeat, in order; their recordings are set aside."""
        again: dict[int, Step] = {}
        for step in steps if self._left > 0 else ():
            if self._is_disturbed(step):
                group = {other.position: other for other in steps if other is step or self._are_compared(other, step)}
                if len(again | group) <= self._left:
                    again |= group
        for position in again:
            self._store.set_aside(position)
        self._left -= len(again)
        return tuple(step for step in steps if step.position in again)

    def _is_disturbed(self, step: Step) -> bool:
        if isinstance(step, PlannedDuet):
            return findings.much_stolen_duet(self._store.duet(step.position))
        # A ceiling is not compared.
        is_subject = self._plan.cells[step.cell_id].role == "subject"
        return is_subject and findings.much_stolen(self._store.recording(step.position))

    def _are_compared(self, first: Step, second: Step) -> bool:
        """Whether two steps are trials of a server and of its baseline."""
        if not isinstance(first, PlannedTrial) or not isinstance(second, PlannedTrial):
            return False
        cells = [self._plan.cells[trial.cell_id] for trial in (first, second)]
        alike = len({(cell.scenario.name, cell.load.name, cell.role) for cell in cells}) == 1
        slug, other = (cell.variant.slug for cell in cells)
        suite = self._plan.suite
        return alike and (suite.baseline_of(slug) == other or suite.baseline_of(other) == slug)
