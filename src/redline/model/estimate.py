"""Numbers with their uncertainty, and the result of comparing two of them."""

import math
from enum import StrEnum
from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.finding import Grade


class Metric(StrEnum):
    """What is estimated and compared. The unit and the better direction belong to the metric."""

    THROUGHPUT = "throughput"
    RECEIVED = "received"
    MEAN = "mean"
    P50 = "p50"
    P75 = "p75"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    P999 = "p99.9"
    P9999 = "p99.99"
    CPU_PER_REQUEST = "cpu-per-request"
    MEMORY = "memory"

    @property
    def unit(self) -> str:
        """`1/s`, `B/s`, `ns` or `B`; the mean and percentiles are of the response time."""
        return {Metric.THROUGHPUT: "1/s", Metric.RECEIVED: "B/s", Metric.MEMORY: "B"}.get(self, "ns")

    @property
    def higher_is_better(self) -> bool:
        """True for throughput, of requests and of bytes."""
        return self in (Metric.THROUGHPUT, Metric.RECEIVED)


SHOWN = (Metric.THROUGHPUT, Metric.P50, Metric.P99, Metric.CPU_PER_REQUEST)
"""The metrics of tables with a column for each metric."""

COMPARED = (
    Metric.THROUGHPUT,
    Metric.P50,
    Metric.P90,
    Metric.P99,
    Metric.P999,
    Metric.CPU_PER_REQUEST,
    Metric.MEMORY,
)
"""The metrics that are compared. p99.9 only if there are enough requests, which short trials seldom have. Verdicts are
given in the primary metrics of the load alone."""


_SAYS_NOTHING = 1000.0


class Estimate(Frozen):
    """A value with its interval. `low` and `high` are None if there are too few trials (n < 2)."""

    value: float
    low: float | None
    high: float | None
    confidence: float = 0.95
    unit: str
    n: int = Field(description="number of trials in it")
    method: str

    @property
    def relative_half_width(self) -> float | None:
        """Half of the interval's width over the value; None without an interval or a value."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)

    @property
    def says_nothing(self) -> bool:
        """Whether one end is a thousand times the other, as of two trials that differ: then it is shown as not known.

        Only of what cannot be negative, such as a level or a ratio.
        """
        if self.low is None or self.high is None:
            return False
        return self.high >= self.low * _SAYS_NOTHING and self.high > self.low


class Verdict(StrEnum):
    """The result of a comparison. For CPU per request and memory, `faster` means that less is used."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


class DuetFinding(Frozen):
    """A reason to doubt what a duet says."""

    kind: Literal[
        "one-start",
        "few-starts",
        "failed-starts",
        "control",
        "cold",
        "disagreement",
        "errors",
        "answer-sizes",
        "cpu-unknown",
        "cpu-behind",
        "idle-work",
        "client-limited",
        "rare-costs",
        "engine-paused",
        "reconnecting",
        "surplus-bytes",
        "parallel",
        "builds-differ",
        "builds-alike",
    ]
    grade: Grade
    message: str


class DuetComparison(Frozen):
    """How a comparison by duets came about. Standard deviations and errors are of the logarithm of the ratio."""

    starts: int = Field(description="fresh starts of all servers")
    parallel: bool = omitted_if_default(default=False, description="they were loaded at the same time, not in turn")
    between_sd: float | None = Field(
        description="how starts differ, beyond the scatter of their blocks; null if too few blocks are known"
    )
    blocks_se: float | None = Field(description="the error of one start, because its blocks scatter with the machine")
    control: Estimate | None = Field(description="the baseline against itself, as two servers in the same duets")
    alone: Estimate | None = Field(description="the ratio by trials of each server alone, which are the levels too")
    unsettled: str = omitted_if_default(
        "", description="why the ratio may yet move, which its interval allows for: servers were not warm"
    )
    findings: tuple[DuetFinding, ...]


class Comparison(Frozen):
    """A cell against its baseline in one metric.

    `ratio` is cell over baseline; None if the two may not be compared, and `refused` then says why. A ratio without a
    `verdict` is described, not judged: its metric is not primary, or there are fewer than three trials.
    `caveat` is what to know before you interpret the ratio.
    """

    metric: Metric
    cell_id: str
    baseline_id: str
    ratio: Estimate | None
    verdict: Verdict | None
    threshold: float
    primary: bool = Field(default=False, description="whether a verdict is asked of this metric under this load")
    refused: str = ""
    caveat: str = omitted_if_default("")
    rounds: int | None = omitted_if_default(
        None, description="number of rounds, if some have no valid trial of both; the ratio's n rounds do"
    )
    p: float | None = omitted_if_default(None, description="probability that equal cells differ by as much by chance")
    p_adjusted: float | None = omitted_if_default(
        None, description="p with Holm's correction for all comparisons of the family"
    )
    family: int | None = omitted_if_default(None, description="number of comparisons in the family")
    p_equivalent: float | None = omitted_if_default(
        None, description="the larger p-value of two one-sided tests (TOST); equivalent below 0.025"
    )

    duet: DuetComparison | None = omitted_if_default(
        None, description="only if the ratio is of a duet, in which both servers are alive and loaded in turn"
    )

    @property
    def says_something(self) -> bool:
        """Whether there is a ratio, or a reason worth reading why a verdict that is asked for is not there."""
        return self.primary or self.ratio is not None

    @property
    def resolution(self) -> float | None:
        """The smallest relative difference that it could show: half the width of its interval, on logarithms."""
        if self.ratio is None or self.ratio.low is None or self.ratio.high is None or self.ratio.low <= 0:
            return None
        return math.sqrt(self.ratio.high / self.ratio.low) - 1

    @property
    def differs(self) -> bool:
        """Whether its own interval excludes 1, whatever the verdict: a difference that is there by this comparison."""
        low, high = (self.ratio.low, self.ratio.high) if self.ratio else (None, None)
        return low is not None and high is not None and not low <= 1 <= high

    @property
    def held_back(self) -> bool:
        """Whether the interval excludes 1, but the number of comparisons does not allow a verdict."""
        return self.verdict is Verdict.INCONCLUSIVE and self.differs
