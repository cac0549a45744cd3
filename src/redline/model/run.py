"""A stored plan with its recordings, and their origin."""

from collections.abc import Callable, Sequence
from typing import Literal, overload

from pydantic import Field, InstanceOf, model_validator

from redline.model.base import Frozen, omitted_if_default
from redline.model.duet import DuetRecording
from redline.model.environment import Environment
from redline.model.hosts import UsedHost
from redline.model.plan import Plan, PlannedDuet, PlannedTrial
from redline.model.profile import Library, Stacks
from redline.model.recording import Recording
from redline.model.search import SearchTerms
from redline.model.why import TouchedFunction

RUN_FORMAT: Literal["redline.run/1"] = "redline.run/1"

Kind = Literal["run", "comparison", "search", "load"]
"""The kind of a directory, by the command that created it: `run`, `ab`, `limit` or `load`."""


_SHOWN = 5


class SameBuilds(Frozen):
    """Why two revisions were not measured: their servers are started from the same bytes."""

    servers: tuple[str, str] = Field(description="the baseline first")
    files: int = Field(ge=0, description="files, folders and links of both checkouts, with what the builds left there")
    unopened: int = omitted_if_default(
        0, "those that differ, and that nobody opened while each server was started, answered, and was stopped"
    )
    named: tuple[str, ...] = omitted_if_default((), "the first of them")
    stamped: tuple[str, ...] = omitted_if_default(
        (), "those that the builds made, and that differ only by the stamps in brackets"
    )

    @property
    def text(self) -> str:
        """`main and this pull request build the same bytes: nothing to compare`."""
        same = "the same program, but for its stamps" if self.stamped else "the same bytes"
        return f"{self.servers[0]} and {self.servers[1]} build {same}: nothing to compare"

    @property
    def evidence(self) -> str:
        """What shows it."""
        equal = self.files - self.unopened - len(self.stamped)
        if equal == self.files:
            return f"all {self.files:,} files of both checkouts are equal, with what the builds left there"
        said = [f"{equal:,} of {self.files:,} files of the checkouts are equal, with what the builds left there"]
        if self.stamped:
            said.append(f"only by their stamps differ {_first(self.stamped, len(self.stamped))}")
        if self.unopened:
            others = _first(self.named, self.unopened)
            said.append(f"neither server opened the others, {others}, when it started and answered")
        return "; ".join(said)


def _first(named: tuple[str, ...], count: int) -> str:
    """Return the first of so many names."""
    shown = named[:_SHOWN]
    return ", ".join(shown) + (f" and {count - len(shown):,} more" if count > len(shown) else "")


class Manifest(Frozen):
    """`run.json`: written once, before the first trial."""

    format: Literal["redline.run/1"] = RUN_FORMAT
    kind: Kind = omitted_if_default("run")
    name: str
    created_unix_ns: int = Field(ge=0)
    command: str
    suite_file: str
    suite_text: str
    plan: Plan
    environment: Environment
    hosts: tuple[UsedHost, ...] = omitted_if_default((), "the hosts of trials; empty for this host alone")
    search: SearchTerms | None = omitted_if_default(None, "the task of a search; null for other kinds")
    earlier: bool = omitted_if_default(default=False, description="stored by a version before 0.1.0")
    same: SameBuilds | None = omitted_if_default(
        None, "of two revisions that are not measured: they are the same server"
    )
    touched: tuple[TouchedFunction, ...] | None = omitted_if_default(
        None, "functions that differ between the two revisions; null if nobody asks why, or it compares others"
    )

    def of_same_builds(self, same: SameBuilds | None) -> "Manifest":
        """The same manifest, and why its servers are the same, if they are."""
        return self.model_copy(update={"same": same})

    def of_range(self, touched: tuple[TouchedFunction, ...] | None) -> "Manifest":
        """The same manifest, and the functions that its range of commits touches."""
        return self.model_copy(update={"touched": touched})

    @model_validator(mode="after")
    def _has_its_task(self) -> "Manifest":
        if self.kind == "search" and self.search is None:
            raise ValueError("it is of a search, and does not say what is searched")
        return self

    def with_plan(self, plan: Plan) -> "Manifest":
        """The same manifest with another plan."""
        return self.model_copy(update={"plan": plan})

    @property
    def terms(self) -> SearchTerms:
        """The task of a search. Only the manifest of a search has it."""
        assert self.search is not None, f"{self.name} is not a search"
        return self.search


class Enough(Frozen):
    """`enough.json`: why a run with an open number of trials stopped after `rounds` rounds."""

    format: Literal["redline.enough/1"] = "redline.enough/1"
    rounds: int
    why: Literal["precision", "budget", "no valid trial"]


class Calibration(Frozen):
    """`calibration.json`: how pairs of hosts compared before a run, by duets of one server with itself."""

    format: Literal["redline.calibration/1"] = "redline.calibration/1"
    duets: tuple[DuetRecording, ...]


class StoredRecordings(Sequence[Recording]):
    """Recordings on disk, which `read` loads by their position in the plan whenever they are accessed."""

    def __init__(self, positions: Sequence[int], read: Callable[[int], Recording]) -> None:
        self.positions = tuple(positions)
        self._read = read

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> Recording: ...
    @overload
    def __getitem__(self, index: slice) -> "StoredRecordings": ...
    def __getitem__(self, index: int | slice) -> "Recording | StoredRecordings":
        if isinstance(index, slice):
            return StoredRecordings(self.positions[index], self._read)
        return self._read(self.positions[index])

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.positions)


class StoredProfiles:
    """Readers of stacks, by the name of their file, and of the table of libraries. Both may raise RedlineError."""

    def __init__(self, stacks: Callable[[str], Stacks], libraries: Callable[[], tuple[Library, ...]]) -> None:
        self.stacks, self.libraries = stacks, libraries

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, StoredProfiles)  # their location is not part of a run's identity

    def __hash__(self) -> int:
        return 0


class Run(Frozen):
    """A manifest and the recordings so far, in the order of the plan. Stored recordings are read on access."""

    manifest: Manifest
    # Left to right: testing whether stored recordings are a tuple would read all of them.
    recordings: InstanceOf[StoredRecordings] | tuple[Recording, ...] = Field(union_mode="left_to_right")
    duets: tuple[DuetRecording, ...] = omitted_if_default(())
    profiled: tuple[Recording, ...] = omitted_if_default((), "recordings of trials with a profiler")
    sampled: tuple[DuetRecording, ...] = omitted_if_default((), "recordings of duets with a profiler on each server")
    profiles: InstanceOf[StoredProfiles] | None = Field(default=None, exclude=True)
    enough: Enough | None = omitted_if_default(None)
    repeated: tuple[int, ...] = omitted_if_default((), "positions of repeated trials and duets, once per repetition")
    lost: int = omitted_if_default(0, "trials and duets that a lost host ended and others repeated")
    calibration: tuple[DuetRecording, ...] = omitted_if_default((), "duets that compared pairs of hosts, if several")
    unread: tuple[str, ...] = omitted_if_default((), "stored files but recordings that cannot be read, and why")

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions in the plan of trials that have a recording."""
        if isinstance(self.recordings, StoredRecordings):
            return self.recordings.positions
        return tuple(recording.position for recording in self.recordings)

    @property
    def done(self) -> frozenset[int]:
        """The positions of all steps that have a recording, duets and profiled trials included."""
        duets = {duet.position for duet in (*self.duets, *self.sampled)}
        return frozenset(self.positions) | duets | {recording.position for recording in self.profiled}

    def by_cell(self) -> dict[str, list[int]]:
        """Indices into `recordings` by cell id; empty for a cell without recordings."""
        planned = {trial.position: trial.cell_id for trial in self.manifest.plan.trials}
        indices: dict[str, list[int]] = {cell_id: [] for cell_id in self.manifest.plan.cells}
        for index, position in enumerate(self.positions):
            if (cell_id := planned.get(position)) in indices:
                indices[cell_id].append(index)
        return indices

    @property
    def wanted(self) -> tuple[PlannedTrial | PlannedDuet, ...]:
        """The planned trials and duets of all rounds that are needed."""
        steps = self.manifest.plan.steps
        return steps if self.enough is None else tuple(step for step in steps if step.round < self.enough.rounds)

    @property
    def complete(self) -> bool:
        """Whether every wanted step has a recording."""
        plan = self.manifest.plan
        return len(self.done) == len(self.wanted) + len(plan.profiled) + len(plan.sampled)
