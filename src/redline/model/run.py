"""A stored plan with its recordings, and their origin."""

from typing import Literal

from redline.model.base import Frozen, when_said
from redline.model.environment import Environment
from redline.model.plan import Plan, PlannedTrial
from redline.model.recording import Recording

RUN_FORMAT: Literal["redline.run/1"] = "redline.run/1"


class Manifest(Frozen):
    """`run.json`: written once, before the first trial."""

    format: Literal["redline.run/1"] = RUN_FORMAT
    name: str
    created_unix_ns: int
    command: str
    suite_file: str
    suite_text: str
    plan: Plan
    environment: Environment


class Enough(Frozen):
    """`enough.json`: why a run with an open number of trials stopped after `rounds` rounds."""

    format: Literal["redline.enough/1"] = "redline.enough/1"
    rounds: int
    why: Literal["precision", "budget", "no valid trial"]


class Run(Frozen):
    """A manifest and the recordings so far, in the plan's order."""

    manifest: Manifest
    recordings: tuple[Recording, ...]
    enough: Enough | None = when_said(None)

    @property
    def wanted(self) -> tuple[PlannedTrial, ...]:
        """The planned trials, without those of rounds that turned out not to be needed."""
        trials = self.manifest.plan.trials
        return trials if self.enough is None else tuple(one for one in trials if one.round < self.enough.rounds)

    @property
    def complete(self) -> bool:
        """Whether every wanted trial has its recording."""
        return len(self.recordings) == len(self.wanted)
