"""The view of many runs: how each cell went from run to run, and the published contract of `redline history --json`."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen
from redline.model.estimate import Estimate, Metric, Verdict

HISTORY_FORMAT: Literal["redline.history/1"] = "redline.history/1"


class HistoryRun(Frozen):
    """One run. Those of one `era` were made in environments that do not differ gravely."""

    name: str
    folder: str
    suite: str
    started_unix_ns: int
    complete: bool = Field(description="whether every planned trial has its recording")
    era: int = Field(ge=0)
    environment_differs: tuple[str, ...] = Field(
        default=(), description="from the run before it in its era, such as `governor: powersave -> performance`"
    )


class Era(Frozen):
    """Runs that may be held against each other."""

    first_run: int
    differs: tuple[str, ...] = Field(
        default=(), description="what was gravely different from the run before it; empty for the first era"
    )


class HistoryPoint(Frozen):
    """What one run says of a cell in one metric; `missing` says why it says nothing."""

    run: int = Field(description="its place among the runs, from 0")
    estimate: Estimate | None
    missing: str = ""
    build: str = Field(default="", description="content hash of what was built")


class Change(Frozen):
    """A change point: from `run` on, the cell is another. `ratio` is all trials after it over all before it.

    Before and after reach to the neighbouring change points, or to the ends of the era.
    """

    run: int
    ratio: Estimate
    verdict: Verdict
    before: Estimate
    after: Estimate
    runs: int = Field(ge=1, description="how many runs say so, up to the next change or the last run")
    build_before: str = ""
    build_after: str = ""


class Followed(Frozen):
    """One cell in one metric from run to run, in each era by itself."""

    cell_id: str
    slug: str
    role: Literal["subject", "ceiling"]
    metric: Metric
    threshold: float = Field(description="the smallest relative difference that is a change; of its last run's suite")
    current: bool = Field(description="whether its suite, as it was last run, still has it")
    points: tuple[HistoryPoint, ...]
    changes: tuple[Change, ...] = ()
    regressed: bool = Field(
        default=False, description="whether it became slower in its last era, and still is: nothing mended it"
    )
    regressed_since: int | None = Field(
        default=None, description="the place of the run whose change for the worse stands; null where none does"
    )

    @property
    def last(self) -> Estimate | None:
        """What its last run says; None when that says nothing."""
        return self.points[-1].estimate

    @property
    def known(self) -> tuple[HistoryPoint, ...]:
        """The points that say something."""
        return tuple(point for point in self.points if point.estimate)


class LeftOut(Frozen):
    """A run that is no part of the history, and why."""

    folder: str
    reason: str
    suite: str = Field(default="", description="empty where its manifest cannot be read")
    started_unix_ns: int | None = Field(default=None, description="null where its manifest cannot be read")


class History(Frozen):
    """The runs below a directory in the order of their start, and every cell of theirs from run to run."""

    format: Literal["redline.history/1"] = HISTORY_FORMAT
    folder: str
    runs: tuple[HistoryRun, ...]
    eras: tuple[Era, ...]
    cells: tuple[Followed, ...]
    left_out: tuple[LeftOut, ...] = Field(default=(), description="runs that cannot be read, or never came far enough")
    foreign: tuple[str, ...] = Field(default=(), description="names of directories beside the runs that hold none")
