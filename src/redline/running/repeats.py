"""Trials that are made again because the host took CPU time while they ran, as a search does with probes.

What they measured is not looked at, so repeating them favours no result. A trial is repeated with its partner, since
what is compared should have run next to each other. What is set aside stays stored, and is no part of the report.
"""

import math
from collections.abc import Sequence

from redline.findings import much_stolen
from redline.model import Plan, PlannedDuet, PlannedTrial
from redline.storage.runs import RunStore

SHARE = 0.25
"""A run's budget of repetitions, with partners, as a share of the trials that the suite asks for."""


class Repeats:
    """The repetitions of one run. What was repeated before is read off its directory."""

    def __init__(self, plan: Plan, store: RunStore) -> None:
        rounds = plan.suite.auto.at_least if plan.suite.auto else plan.suite.trials
        self._plan, self._store = plan, store
        self._left = math.ceil(SHARE * rounds * len(plan.cells)) - len(store.repeated())

    def of_round(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> tuple[PlannedTrial, ...]:
        """What of a whole round is to be made again, in the plan's order; their recordings are set aside.

        A duet is not: it is stolen from in slices, which are many, and both servers had them.
        """
        trials = [step for step in steps if isinstance(step, PlannedTrial)]
        again: dict[int, PlannedTrial] = {}
        for trial in trials if self._left > 0 else ():
            # A ceiling is compared with nothing.
            subject = self._plan.cells[trial.cell_id].role == "subject"
            if subject and much_stolen(self._store.recording(trial.position)):
                pair = {each.position: each for each in trials if each is trial or self._are_compared(each, trial)}
                if len(again | pair) <= self._left:
                    again |= pair
        for position in again:
            self._store.set_aside(position)
        self._left -= len(again)
        return tuple(trial for trial in trials if trial.position in again)

    def _are_compared(self, one: PlannedTrial, other: PlannedTrial) -> bool:
        """Whether one of the two is the other's baseline."""
        cells, suite = [self._plan.cells[trial.cell_id] for trial in (one, other)], self._plan.suite
        first, second = ((cell.scenario.name, cell.load.name, cell.role) for cell in cells)
        mine, theirs = (cell.variant.slug for cell in cells)
        return first == second and (suite.baseline_of(mine) == theirs or suite.baseline_of(theirs) == mine)
