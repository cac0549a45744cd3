"""The view of a run: what every renderer shows, and the published contract of `--json`."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, when_said
from redline.model.environment import Environment
from redline.model.estimate import Comparison, Estimate, Metric
from redline.model.finding import Finding
from redline.model.histogram import Histogram
from redline.model.layer import Waterfall
from redline.model.plan import Objective, Skipped
from redline.model.traffic import AgreedTls, Counts
from redline.model.warming import WarmUp

REPORT_FORMAT: Literal["redline.report/1"] = "redline.report/1"


class Percentile(Frozen):
    """A point of a latency distribution: a share `q` of requests took no longer than `ns`."""

    q: float
    ns: int


class TooFew(Frozen):
    """A percentile that is not given, since it is not known: fewer than 10 requests lie beyond it."""

    metric: Metric
    needs: int = Field(description="requests that would tell it")
    missing: int = Field(description="how many of them were not made")


class OtherTime(Frozen):
    """A time beside response and service time, of all used trials together.

    `handshake` is from the first byte of the ClientHello to the handshake's end. `to server` and `from server` are
    differences of two clocks and may be negative; nothing finer than `resolution_ns`, in which the server tells its
    clock, is known of them.
    """

    name: Literal["handshake", "to server", "from server"]
    count: int
    p50_ns: int
    p99_ns: int | None = Field(description="null when fewer than 10 lie beyond it")
    max_ns: int
    resolution_ns: int | None = None


class Moment(Frozen):
    """One interval of one trial, for the plots over time; `at_s` counts from the start of its warm-up."""

    position: int
    phase: Literal["warmup", "measure", "drain"]
    at_s: float
    rate_per_s: float
    p50_ns: int
    p99_ns: int


class ObjectiveResult(Frozen):
    """Whether a cell met one condition; `actual` has the unit of the objective's limit, None when not measured.

    Errors and achieved are of all trials that were made, percentiles of those that are used.
    """

    objective: Objective
    actual: float | None
    met: bool
    reason: str = Field(default="", description="why it is not met, where that is not for `actual` itself")


class TrialReport(Frozen):
    """One trial in a line."""

    position: int
    round: int
    used: bool = Field(description="whether the cell's estimates rest on it")
    rate_per_s: float | None
    p50_ns: int | None
    p99_ns: int | None
    cpu_per_request_ns: float | None
    warm_up: WarmUp | None = when_said(None, description="absent where it was too short to tell")
    failure: str = ""
    log_tail: str = Field(default="", description="the end of the server's output, when the trial failed")


class CellReport(Frozen):
    """One cell. When `valid` is false the findings say why and the estimates must not be shown as results."""

    cell_id: str
    slug: str
    server: str
    build: str = Field(default="", description="content hash of what was built; empty when no trial got that far")
    runtime_version: str = Field(default="", description="as the server's runtime tells it, such as `rustc 1.95.0`")
    scenario: str
    load: str
    load_text: str = Field(description="such as `closed, 64 users, 1s`")
    role: Literal["subject", "ceiling"]
    is_baseline: bool
    valid: bool
    trials_planned: int
    trials: tuple[TrialReport, ...]
    estimates: dict[Metric, Estimate]
    counts: Counts = Field(description="sums over the used trials")
    response: Histogram = Field(description="merged over the used trials")
    response_percentiles: tuple[Percentile, ...]
    service_percentiles: tuple[Percentile, ...]
    too_few: tuple[TooFew, ...] = when_said((), description="percentiles that are not given, and what they need")
    other_times: tuple[OtherTime, ...] = when_said((), description="handshakes and one-way times, where there are any")
    tls: tuple[AgreedTls, ...] = when_said((), description="what its trials' handshakes agreed on, each once")
    timeline: tuple[Moment, ...] = Field(description="of the used trials")
    findings: tuple[Finding, ...]
    objectives: tuple[ObjectiveResult, ...] = ()


class Precision(Frozen):
    """How well a run that decides by itself knows its main comparisons, after `rounds` whole rounds.

    `half_width` is the widest of them, relative, and `cell_id` whose it is; both are None where none has an interval.
    `without` are the cells that have none: more trials may not help them. Of the cells in `lost`, which are compared or
    compared with, every trial is invalid.
    """

    asked: float
    rounds: int
    half_width: float | None
    cell_id: str | None
    without: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    ended: Literal["precision", "budget", "no valid trial", "at most", "not yet"]


class RunReport(Frozen):
    """How the run was made, and how to make it again."""

    name: str
    suite: str
    about: str
    started_unix_ns: int
    command: str
    seed: int
    complete: bool = Field(description="whether every trial that is wanted has its recording")
    trials_done: int
    trials_planned: int
    threshold: float
    suite_text: str
    precision: Precision | None = when_said(None, description="where the suite leaves the number of trials open")


class Effect(Frozen):
    """What one step on one axis costs on one server, everything else being equal.

    `axis` is the name of an option, whose `value` is compared with its `reference`, the first value that the suite
    has; or `scenario`, one that the suite tells against another.
    """

    axis: str
    value: str
    reference: str
    comparison: Comparison


class Place(Frozen):
    """One cell in a ranking. Cells that cannot be told apart from the first of their rank share it."""

    rank: int = Field(ge=1)
    cell_id: str
    estimate: Estimate


class Ranking(Frozen):
    """The subjects of one scenario and load with the same values of the options that all of them share, best first.

    `metric` is throughput where users ask again at once, and p99 in open loads and where users think or keep a
    pace. Only valid cells with an interval are ranked.
    """

    scenario: str
    load: str
    setting: str = Field(description="such as `interceptor=off`; empty when no shared option varies")
    metric: Metric
    places: tuple[Place, ...]


class Report(Frozen):
    """A whole run as it is shown."""

    format: Literal["redline.report/1"] = REPORT_FORMAT
    run: RunReport
    environment: Environment
    cells: tuple[CellReport, ...]
    comparisons: tuple[Comparison, ...]
    layers: tuple[Waterfall, ...] = when_said((), description="where baselines have baselines of their own")
    effects: tuple[Effect, ...] = when_said(())
    rankings: tuple[Ranking, ...] = when_said(())
    skipped: tuple[Skipped, ...]
