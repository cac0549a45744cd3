"""A stored plan with its recordings, and what says where it came from."""

from typing import Literal

from redline.model.base import Frozen
from redline.model.environment import Environment
from redline.model.plan import Plan
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


class Run(Frozen):
    """A manifest and the recordings so far, in the plan's order."""

    manifest: Manifest
    recordings: tuple[Recording, ...]

    @property
    def complete(self) -> bool:
        """Whether every planned trial has its recording."""
        return len(self.recordings) == len(self.manifest.plan.trials)
