"""Numbers that carry their uncertainty, and what may be said when two of them are compared."""

from enum import StrEnum

from pydantic import Field

from redline.model.base import Frozen, when_said


class Metric(StrEnum):
    """What is estimated and compared. The unit and the better direction belong to the metric."""

    THROUGHPUT = "throughput"
    P50 = "p50"
    P90 = "p90"
    P99 = "p99"
    P999 = "p99.9"
    P9999 = "p99.99"
    CPU_PER_REQUEST = "cpu-per-request"
    MEMORY = "memory"

    @property
    def unit(self) -> str:
        """`1/s`, `ns` or `B`; percentiles are of the response time."""
        if self is Metric.THROUGHPUT:
            return "1/s"
        return "B" if self is Metric.MEMORY else "ns"

    @property
    def higher_is_better(self) -> bool:
        """True for throughput alone."""
        return self is Metric.THROUGHPUT


SHOWN = (Metric.THROUGHPUT, Metric.P50, Metric.P99, Metric.CPU_PER_REQUEST)
"""What tables with a column for each metric have room for."""

COMPARED = (
    Metric.THROUGHPUT,
    Metric.P50,
    Metric.P90,
    Metric.P99,
    Metric.P999,
    Metric.CPU_PER_REQUEST,
    Metric.MEMORY,
)
"""What cells are compared in. The p99.9 only where there are requests enough, which short trials seldom have."""


class Estimate(Frozen):
    """A value with its interval. `low` and `high` are None when the trials are too few to say (n < 2)."""

    value: float
    low: float | None
    high: float | None
    confidence: float = 0.95
    unit: str
    n: int = Field(description="trials that it rests on")
    method: str

    @property
    def relative_half_width(self) -> float | None:
        """Half of the interval's width over the value; None without an interval or a value."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / 2 / abs(self.value)


class Verdict(StrEnum):
    """What a comparison may say. For CPU per request and memory, `faster` means that less is used."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


class Comparison(Frozen):
    """A cell against its baseline in one metric.

    `ratio` is cell over baseline. `verdict` is None when the two may not be compared; `refused` then says why.
    `caveat` is what to know before taking the ratio for a finding of its own.
    """

    metric: Metric
    cell_id: str
    baseline_id: str
    ratio: Estimate | None
    verdict: Verdict | None
    threshold: float
    refused: str = ""
    caveat: str = when_said("")
    rounds: int | None = when_said(
        None, description="paired by round: of how many, where some have no valid trial of both; the ratio's n have one"
    )
    p: float | None = when_said(None, description="how likely equal cells come out as far apart, by chance alone")
    p_adjusted: float | None = when_said(None, description="the same by Holm, for all comparisons of the family")
    family: int | None = when_said(None, description="how many comparisons were adjusted together")
    p_equivalent: float | None = when_said(
        None, description="of two one-sided tests (TOST) that the ratio is past the threshold; 0.025 is the limit"
    )

    @property
    def held_back(self) -> bool:
        """Whether the interval alone would call it faster or slower, and the number of comparisons forbids it."""
        if self.verdict is not Verdict.INCONCLUSIVE or self.ratio is None:
            return False
        low, high = self.ratio.low, self.ratio.high
        return low is not None and high is not None and not low <= 1 <= high
