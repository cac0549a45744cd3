"""A search for the commit that made a metric worse: what was measured, and what is known. Stored as `bisect.json`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.catalogue import Revision
from redline.model.why import WhyReport

Ending = Literal["found", "several", "none", "opposite", "undecided", "interrupted"]
"""How a search ended.

found: one commit, or the few that remain. several: no single commit. none: no difference between the ends.
opposite: the other revision is the better one. undecided: too little is known after the most measurements.
"""

Interval95: TypeAlias = tuple[float, float, float]
"""A value, and the low and the high end of its 95% interval."""


class CommitDuet(Frozen):
    """A measurement of a commit against the oldest one: the logarithm of the ratio of each start."""

    logs: tuple[Annotated[float, Field(allow_inf_nan=False)], ...] = Field(min_length=1)
    within_se: float = Field(default=0.0, description="the error of a start's value by the scatter within it")
    bias: float = omitted_if_default(0.0, "how far they may be off alike, as because servers were not warm")
    is_same: bool = omitted_if_default(default=False, description="it builds the same bytes; nothing was measured")
    took_ns: int = 0
    build_ns: int = omitted_if_default(0, "of that, how long its build took")


class BisectedCommit(Frozen):
    """A commit after the oldest one. Its `level` is its ratio to the oldest commit, less 1."""

    commit: str
    subject: str
    parents: tuple[str, ...]
    weight: float = Field(description="before anything is measured, relative to the others; above 0")
    duets: tuple[CommitDuet, ...] = ()
    comparable: bool = omitted_if_default(
        default=True, description="it contains the oldest commit; one that does not is not measured"
    )
    broken: str = omitted_if_default("", "why it cannot be measured")
    failed: str = omitted_if_default("", "why the last attempt to measure it failed, by chance")
    broken_ns: int = omitted_if_default(0, "how long failed attempts took")
    level: Interval95 | None = Field(default=None, description="its value, low and high at 95%")
    probability: float = Field(default=0.0, description="that it is the only change")

    @property
    def name(self) -> str:
        """`e41f2c9 Validate headers twice`."""
        return f"{self.commit[:9]} {self.subject}".strip()


class ChangedRange(Frozen):
    """Measured commits that follow each other, and the change from one to the next, less 1."""

    after: str = Field(description="the first of them, which is before the change; the oldest commit at first")
    until: str
    commits: int = Field(description="how many commits are in it, with `until`")
    change: Interval95 = Field(description="its value, low and high at 95%")


class PrintedNumber(Frozen):
    """A shell command that prints the number, where no server is loaded; lower is better, unless it is said."""

    command: str
    build: str | None = Field(description="commands that build a checkout first")
    below: str = Field(description="the folder of a checkout in which it runs")
    budget_ns: int = Field(description="how long each commit is measured")


class Bisection(Frozen):
    """`redline bisect --json`, and `bisect.json` of its directory. Changes are ratios to a baseline, less 1."""

    format: Literal["redline.bisect/1"] = "redline.bisect/1"
    command: str
    repository: str = Field(description="its topmost folder")
    good: Revision
    bad: Revision
    is_fix: bool = omitted_if_default(
        default=False, description="the good revision is the newest: what made it better is sought"
    )
    first_parent: bool = omitted_if_default(default=False, description="commits of merged branches are left out")
    metric: str = Field(description="what is compared, in words")
    higher_is_better: bool = omitted_if_default(default=False)
    printed: PrintedNumber | None = omitted_if_default(None, "where a command prints the number")
    commits: tuple[BisectedCommit, ...] = Field(min_length=1, description="parents first; the last is the newest")
    order: tuple[str, ...] = Field(default=(), description="what was measured or could not be, in time")
    several: float = Field(default=0.0, description="the probability of several changes")
    none: float = Field(default=0.0, description="the probability of no change")
    ending: Ending | None = Field(default=None, description="absent until it has ended")
    culprits: tuple[str, ...] = Field(default=(), description="the commit; several if more than one remains")
    probability: float = Field(default=0.0, description="that the change is among `culprits`")
    change: Interval95 | None = Field(
        default=None, description="by the culprits, or between the ends if there are none: its value, low and high"
    )
    ranges: tuple[ChangedRange, ...] = omitted_if_default((), "where the level surely changes, if no commit is found")
    why: tuple[WhyReport, ...] = omitted_if_default((), "the account of the commit against its parent")
    log: str = Field(default="", description="as `git bisect replay` reads it")

    def by_number(self, printed: PrintedNumber) -> "Bisection":
        """The same search, of a number that a command prints."""
        return self.model_copy(update={"printed": printed})

    def with_duet(self, commit: BisectedCommit, duet: CommitDuet, took_ns: int) -> "Bisection":
        """The search with one more measurement."""
        duets = (*commit.duets, duet.model_copy(update={"took_ns": took_ns}))
        return self._with(commit.model_copy(update={"duets": duets, "failed": ""}))

    def with_failure(self, commit: BisectedCommit, why: str, took_ns: int, *, by_chance: bool) -> "Bisection":
        """The search with an attempt to measure a commit that failed; unless by chance, it is not tried again.

        One that was measured before has failed by chance.
        """
        reason = "failed" if by_chance or commit.duets else "broken"
        return self._with(commit.model_copy(update={reason: why, "broken_ns": commit.broken_ns + took_ns}))

    def _with(self, changed: BisectedCommit) -> "Bisection":
        commits = tuple(changed if one.commit == changed.commit else one for one in self.commits)
        return self.model_copy(update={"commits": commits, "order": (*self.order, changed.commit)})

    def accounted(self, why: tuple[WhyReport, ...]) -> "Bisection":
        """The search with the account of its commit."""
        return self.model_copy(update={"why": why})

    def stopped(self) -> "Bisection":
        """The search as it is shown where it was interrupted."""
        return self.model_copy(update={"ending": "interrupted"})

    def known_by(
        self, levels: Mapping[int, Interval95 | None], chances: Sequence[float], several: float, none: float
    ) -> "Bisection":
        """The search with the level and the probability of each commit, by its number, and of other answers."""
        commits = tuple(
            commit.model_copy(update={"level": levels.get(number), "probability": chances[number]})
            for number, commit in enumerate(self.commits)
        )
        return self.model_copy(update={"commits": commits, "several": several, "none": none})

    def answered(
        self, ending: Ending | None, culprits: tuple[str, ...], probability: float, change: Interval95 | None
    ) -> "Bisection":
        """The search with its answer, if it has ended."""
        found = {"ending": ending, "culprits": culprits, "probability": probability, "change": change}
        return self.model_copy(update=found)

    def written(self, ranges: tuple[ChangedRange, ...], log: str) -> "Bisection":
        """The search with the ranges in which the level changes, and as a log."""
        return self.model_copy(update={"ranges": ranges, "log": log})

    @property
    def oldest(self) -> Revision:
        """The baseline of all measurements."""
        return self.bad if self.is_fix else self.good

    @property
    def newest(self) -> Revision:
        """The last commit."""
        return self.good if self.is_fix else self.bad

    @property
    def parent(self) -> str | None:
        """The first parent of the commit that was found; None if it is not one commit, or has none."""
        found = [one for one in self.commits if self.culprits == (one.commit,)]
        return next((one.parents[0] for one in found if one.parents), None)

    @property
    def built(self) -> int:
        """How many commits were built and measured, with the oldest one."""
        measured = sum(bool(commit.duets) for commit in self.commits)
        return measured + 1 if measured else 0

    @property
    def took_ns(self) -> int:
        """How long all measurements took, with their builds."""
        duets = sum(duet.took_ns for commit in self.commits for duet in commit.duets)
        return duets + sum(commit.broken_ns for commit in self.commits)
