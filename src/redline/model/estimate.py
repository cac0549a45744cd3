"""Numbers with their uncertainty, and the result of comparing two of them."""

import math
from enum import StrEnum
from typing import Protocol

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.finding import Finding


class Metric(StrEnum):
    """A measured quantity that is compared, with its unit and its better direction."""

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
    FIRST_MESSAGE_P50 = "first-message p50"
    FIRST_MESSAGE_P95 = "first-message p95"
    GAP_P50 = "gap p50"
    GAP_P99 = "gap p99"
    PER_MESSAGE_P50 = "per-message p50"
    PUSH_P50 = "push p50"
    PUSH_P99 = "push p99"
    JITTER_P99 = "jitter p99"
    CPU_PER_REQUEST = "cpu-per-request"
    MEMORY = "memory"

    @property
    def unit(self) -> str:
        """`1/s`, `B/s`, `ns` or `B`; the mean and percentiles are of the response time, unless they name another."""
        return {Metric.THROUGHPUT: "1/s", Metric.RECEIVED: "B/s", Metric.MEMORY: "B"}.get(self, "ns")

    @property
    def is_of_messages(self) -> bool:
        """Whether only conversations have it."""
        return self.value.startswith(("first-message", "gap", "per-message", "push", "jitter"))

    @property
    def words(self) -> str:
        """The name in running text: `throughput`, `p99`, `CPU per request`."""
        return {Metric.CPU_PER_REQUEST: "CPU per request", Metric.RECEIVED: "transfer rate"}.get(self, self.value)

    @property
    def higher_is_better(self) -> bool:
        """True for throughput, of requests and of bytes."""
        return self in (Metric.THROUGHPUT, Metric.RECEIVED)


SHOWN = (Metric.THROUGHPUT, Metric.P50, Metric.P99, Metric.CPU_PER_REQUEST)
"""The metrics of tables with a column per metric."""

RESPONSE_TIMES = (Metric.P50, Metric.P75, Metric.P90, Metric.P95, Metric.P99, Metric.P999)
"""The percentiles of tables of results and comparisons."""

COMPARED = (Metric.THROUGHPUT, *RESPONSE_TIMES, Metric.CPU_PER_REQUEST, Metric.MEMORY)
"""The compared metrics; verdicts are given in the primary metrics of the load alone."""

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
    def interval(self) -> tuple[float, float] | None:
        """`low` and `high`; None without an interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def inverse(self) -> "Estimate":
        """The ratio of the same two the other way round."""
        low, high = (1 / end if end else None for end in (self.high, self.low))
        return self.model_copy(update={"value": 1 / self.value if self.value else 0.0, "low": low, "high": high})

    def over(self, other: "Estimate", method: str) -> "Estimate":
        """The quotient of two ratios, as wide as both intervals allow, whatever their errors have in common."""
        inverse = other.inverse
        low, high = (a * b if a and b else None for a, b in ((self.low, inverse.low), (self.high, inverse.high)))
        ends = {"low": low, "high": high, "n": min(self.n, other.n), "method": method}
        return self.model_copy(update={"value": self.value * inverse.value, **ends})

    def biased(self, bias: float) -> "Estimate":
        """The ratio whose logarithm may be off by so much beyond chance."""
        low, high = (end and end * math.exp(by) for end, by in ((self.low, -bias), (self.high, bias)))
        return self.model_copy(update={"low": low, "high": high})

    @property
    def log_interval(self) -> tuple[float, float] | None:
        """The natural logarithms of `low` and `high`; None without an interval above 0."""
        low, high = self.interval or (0.0, 0.0)
        return (math.log(low), math.log(high)) if low > 0 else None

    @property
    def relative_half_width(self) -> float | None:
        """Half of the interval's width over the value; None without an interval or a value."""
        if self.interval is None or self.value == 0:
            return None
        low, high = self.interval
        return (high - low) / 2 / abs(self.value)

    def is_within(self, threshold: float) -> bool:
        """Whether the whole interval of a ratio lies within 1 / (1 + threshold) to 1 + threshold."""
        low, high = self.interval or (0.0, math.inf)
        return 1 / (1 + threshold) <= low and high <= 1 + threshold

    @property
    def says_nothing(self) -> bool:
        """Whether the high end is a thousand times the low end, so a level or ratio is shown as not known."""
        low, high = self.interval or (0.0, 0.0)
        return high >= low * _SAYS_NOTHING and high > low


class Verdict(StrEnum):
    """The result of a comparison. For CPU per request and memory, `faster` means that less is used.

    `faster` and `slower`: significant, however small. `equivalent`: not significant, and within the threshold.
    """

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


class DuetComparison(Frozen):
    """Details of a comparison by duets. Standard deviations and errors are of the logarithm of the ratio."""

    starts: int = Field(description="fresh starts of all servers")
    left_out: int = omitted_if_default(0, "further starts that do not count: cold starts, if enough others were warm")
    parallel: bool = omitted_if_default(default=False, description="they were loaded at the same time, not in turn")
    attached: bool = omitted_if_default(default=False, description="Redline did not start them: one start is enough")
    between_sd: float | None = Field(description="how starts differ beyond the scatter of batches; null if unknown")
    blocks_se: float | None = Field(description="the error of a start, because its batches scatter with the machine")
    control: Estimate | None = Field(description="the baseline against itself, as two servers in the same duets")
    alone: Estimate | None = Field(description="the ratio by trials of each server alone, which also give the levels")
    unsettled: str = omitted_if_default("", "why the ratio may still move within its interval: servers were not warm")
    bias: float | None = omitted_if_default(
        0.0, "how far the logarithm of the ratio may be off beyond chance, as by servers that were not warm; null: any"
    )
    of_starts: tuple[float, ...] = omitted_if_default((), "the ratio of each start that counts, in their order")
    findings: tuple[Finding, ...]

    @property
    def fewest(self) -> int:
        """The number of starts that a verdict needs."""
        return 1 if self.attached else FEWEST_TRIALS


FEWEST_TRIALS = 3
"""Trials per side, or starts of a duet, that a verdict needs. The interval of two has one degree of freedom."""


class Comparison(Frozen):
    """A cell against its baseline in one metric.

    `ratio` is cell over baseline; None if the two may not be compared, as `refused` says. A ratio without a `verdict`
    is not judged: its metric is not primary, or there are fewer than three trials.
    """

    metric: Metric
    cell_id: str
    baseline_id: str
    ratio: Estimate | None
    verdict: Verdict | None
    matters: bool | None = omitted_if_default(None, "of faster or slower: whether it may exceed the threshold")
    threshold: float = Field(description="the smallest relative difference that matters")
    primary: bool = Field(default=False, description="whether this metric gets a verdict under this load")
    refused: str = ""
    caveat: str = omitted_if_default("")
    rounds: int | None = omitted_if_default(None, "number of rounds, if only the ratio's n have valid trials of both")
    p: float | None = omitted_if_default(None, "probability that equal cells differ this much by chance")
    p_adjusted: float | None = omitted_if_default(None, "p with Holm's correction for all comparisons of the family")
    family: int | None = omitted_if_default(None, "number of comparisons in the family")
    family_name: str = omitted_if_default("", "the question that the family of comparisons answers")
    p_equivalent: float | None = omitted_if_default(
        None, "the larger of two one-sided p (TOST); equivalent below 0.025"
    )

    duet: DuetComparison | None = omitted_if_default(None, "only for a ratio by duets, whose servers take turns")

    def with_verdict(self, verdict: Verdict, *, matters: bool | None) -> "Comparison":
        """The comparison with its verdict."""
        return self.model_copy(update={"verdict": verdict, "matters": matters})

    def refuse(self, why: str) -> "Comparison":
        """The comparison without a ratio, because the two may not be compared."""
        return self.model_copy(update={"ratio": None, "p": None, "p_equivalent": None, "refused": why})

    def by_duet(
        self, duet: DuetComparison, ratio: Estimate, p: float | None, p_equivalent: float | None
    ) -> "Comparison":
        """The comparison with a duet's ratio in place of the trials' ratio; described if not primary."""
        judged = self.primary and ratio.n >= duet.fewest
        tests = {"p": p if judged else None, "p_equivalent": p_equivalent if judged else None}
        return self.model_copy(
            update={"ratio": ratio, "refused": "", "rounds": None, "caveat": "", "duet": duet, **tests}
        )

    @property
    def fewest(self) -> int:
        """The number of trials, or starts of a duet, that a verdict needs."""
        return self.duet.fewest if self.duet else FEWEST_TRIALS

    def warned(self, caveat: str) -> "Comparison":
        """The comparison with a caveat."""
        return self.model_copy(update={"caveat": caveat})

    def in_family(self, name: str, size: int, p_adjusted: float) -> "Comparison":
        """The comparison with its p-value adjusted for its family."""
        return self.model_copy(update={"family_name": name, "family": size, "p_adjusted": p_adjusted})

    @property
    def says_something(self) -> bool:
        """Whether there is a ratio, or a reason worth reading why a requested verdict is missing."""
        return self.primary or self.ratio is not None

    @property
    def why_no_verdict(self) -> str:
        """Why there is no verdict, however large the difference; empty if there is a verdict."""
        if self.ratio is None:
            return self.refused
        if self.ratio.n < self.fewest:
            return f"{self.ratio.n} of the {self.fewest} {'starts' if self.duet else 'trials'} that a verdict needs"
        if self.ratio.low is None:
            return self.ratio.method
        if self.verdict is Verdict.INCONCLUSIVE and self.duet is not None:
            return self.duet.unsettled
        return "" if self.verdict is not None else "this metric is described, and not judged"

    @property
    def resolution(self) -> float | None:
        """The smallest relative difference that it can show: half the width of its interval of logarithms."""
        low, high = (self.ratio and self.ratio.interval) or (0.0, 0.0)
        return math.sqrt(high / low) - 1 if low > 0 else None

    @property
    def differs(self) -> bool:
        """Whether its own interval excludes 1, whatever the verdict."""
        low, high = (self.ratio and self.ratio.interval) or (1.0, 1.0)
        return not low <= 1 <= high

    @property
    def held_back(self) -> bool:
        """Whether the interval excludes 1, but the number of comparisons does not allow a verdict."""
        return self.verdict is Verdict.INCONCLUSIVE and self.differs


class HasVerdict(Protocol):
    """A comparison of servers, runs or limits, or a change in a history, with its verdict."""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if it was not asked for, or cannot be given."""

    @property
    def matters(self) -> bool | None:
        """False if a significant difference is within the threshold."""
