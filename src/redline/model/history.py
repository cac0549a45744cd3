"""The view of many runs: cells from run to run, and the published format of `redline history --json`."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.estimate import Estimate, Metric, Verdict
from redline.model.percentile import Percentile

HISTORY_FORMAT: Literal["redline.history/1"] = "redline.history/1"


class HistoryRun(Frozen):
    """A run. Environments of runs of the same `era` do not differ gravely."""

    name: str
    folder: str
    suite: str
    started_unix_ns: int
    complete: bool = Field(description="whether every planned trial has its recording")
    era: int = Field(ge=0)
    environment_differs: tuple[str, ...] = Field(
        default=(), description="from the run before in its era: `governor: powersave -> performance`"
    )


class Era(Frozen):
    """Runs that may be compared with each other."""

    first_run: int
    differs: tuple[str, ...] = Field(default=(), description="grave differences from the run before")


class HistoryPoint(Frozen):
    """The value of a cell in one metric in one run, or its ratio to a baseline; `missing` says why there is none."""

    run: int = Field(description="index of the run, from 0")
    estimate: Estimate | None
    missing: str = ""
    build: str = Field(default="", description="content hash of the build")
    baseline_build: str = omitted_if_default("", "of a ratio: that of the baseline")


class Change(Frozen):
    """A change point: from `run` on, the cell has another level. `ratio` is the new level over the old level.

    Both levels reach to the neighbouring change points, or to the ends of the era.
    """

    run: int
    ratio: Estimate
    verdict: Verdict
    before: Estimate
    after: Estimate
    runs: int = Field(ge=1, description="number of runs at the new level, up to the next change or the last run")
    build_before: str = ""
    build_after: str = ""
    baseline_build_before: str = omitted_if_default("")
    baseline_build_after: str = omitted_if_default("")


class Followed(Frozen):
    """A cell in one metric from run to run, by era: its level, or its ratio to a baseline in duets."""

    cell_id: str = Field(description="for a level the id of the cell; for a ratio the identity of the comparison")
    slug: str
    baseline: str = omitted_if_default(
        "", description="slug of the server that the cell is compared with; empty if a level is followed"
    )
    request: str = omitted_if_default("", "the request's name, if the run has several; empty of a mix")
    role: Literal["subject", "ceiling"]
    metric: Metric
    threshold: float = Field(description="the smallest relative difference that is a change, by its last run's suite")
    current: bool = Field(description="whether the last run of its suite still has it")
    points: tuple[HistoryPoint, ...]
    changes: tuple[Change, ...] = ()
    regressed: bool = Field(default=False, description="whether it became slower in its last era, and still is")
    regressed_since: int | None = Field(default=None, description="index of the run that began the regression, if any")

    @property
    def name(self) -> str:
        """`rust.hyper.SimpleGet.saturate`, or `B.home.load against A`."""
        return f"{self.slug} against {self.baseline}" if self.baseline else self.slug

    @property
    def last(self) -> Estimate | None:
        """The estimate of its last run; None if there is none."""
        return self.points[-1].estimate

    @property
    def known(self) -> tuple[HistoryPoint, ...]:
        """Points with an estimate."""
        return tuple(point for point in self.points if point.estimate)


class ReportedRegression(Frozen):
    """A regression that `--fail-on new-regression` failed by: a later change for the worse is another."""

    cell_id: str
    metric: Metric
    newest_unix_ns: int = Field(description="start of the newest run that there was then")


class Reported(Frozen):
    """The regressions that were reported: `reported.json` in the folder of the runs."""

    format: Literal["redline.reported/1"] = "redline.reported/1"
    regressions: tuple[ReportedRegression, ...] = ()


class LeftOut(Frozen):
    """A run that is not part of the history, and why."""

    folder: str
    reason: str
    suite: str = Field(default="", description="empty if its manifest cannot be read")
    started_unix_ns: int | None = Field(default=None, description="null if its manifest cannot be read")
    going: bool = omitted_if_default(default=False, description="whether it is still being measured")


class OtherResult(Frozen):
    """A single result of another tool, or of Redline without its trials: it has no interval, and gets no verdict."""

    file: str
    tool: str
    url: str = Field(description="what was requested, or a cell's slug; empty if the file does not say it")
    load: str = Field(description="as the file says it; empty if it does not")
    started_unix_ns: int | None = Field(description="null if the file does not say it")
    rate_per_s: float | None = Field(description="as the tool counts; null if the file does not say it")
    requests: int | None = Field(description="right answers; null if the file does not say it")
    failed: int | None = Field(description="as the tool counts; null if the file does not say it")
    response: tuple[Percentile, ...] = Field(description="as the tool times requests; ns")
    unsaid: tuple[str, ...] = Field(description="values that files of this kind do not have")


class OtherLine(Frozen):
    """Results of one tool, URL and load, one after the other."""

    tool: str
    url: str
    load: str
    folder: str = omitted_if_default("", "of the files, where these do not say the URL")
    results: tuple[OtherResult, ...]
    dated: bool = Field(
        description="whether they are in the order of their start; else in the order in which they were named"
    )


class History(Frozen):
    """The runs below a directory by start time, and their cells from run to run."""

    format: Literal["redline.history/1"] = HISTORY_FORMAT
    folder: str
    runs: tuple[HistoryRun, ...]
    eras: tuple[Era, ...]
    cells: tuple[Followed, ...]
    left_out: tuple[LeftOut, ...] = Field(
        default=(), description="runs that are unreadable or have only measured a capacity"
    )
    foreign: tuple[str, ...] = Field(default=(), description="names of directories that hold no run")
    others: tuple[OtherLine, ...] = omitted_if_default((), "results of other tools, which are shown and not judged")
