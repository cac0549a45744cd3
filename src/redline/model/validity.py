"""What is known of a number that a finding makes doubtful: validity belongs to each number, not to the load."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen
from redline.model.estimate import Metric
from redline.model.finding import FindingKind
from redline.quantities import amount

Numbers = Literal["counts", "throughput", "response times", "service times", "message times", "CPU and memory"]
"""The groups of numbers that a finding touches. Counts: outcomes and errors. Message times: after the first message."""

_NUMBERS: dict[Metric, Numbers] = {
    Metric.THROUGHPUT: "throughput",
    Metric.RECEIVED: "throughput",
    Metric.CPU_PER_REQUEST: "CPU and memory",
    Metric.MEMORY: "CPU and memory",
}


def numbers_of(metric: Metric) -> Numbers:
    """The group of a metric; the mean and percentiles are response times, as is the first message."""
    if metric.value.startswith(("gap", "per-message", "push", "jitter")):
        return "message times"
    return _NUMBERS.get(metric, "response times")


class Bound(Frozen):
    """What is known in place of a number: the ends between which it lies; nothing where both are null."""

    at_least: float | None = None
    at_most: float | None = None
    unit: str
    finding: FindingKind = Field(description="the invalid finding that hides the number itself")
    reason: str = Field(description="its message")

    @property
    def words(self) -> str:
        """`at most 12.0 ms (at least 3.10 ms)`, `at least 3.20 s` or `not known`."""
        least = "" if self.at_least is None else f"at least {amount(self.at_least, self.unit)}"
        if self.at_most is None:
            return least or "not known"
        most = f"at most {amount(self.at_most, self.unit)}"
        return f"{most} ({least})" if self.at_least else most

    @property
    def unknown(self) -> str:
        """`not known: it is at most 12.0 ms. At p99 the engine …`."""
        said = f"it is {self.words}. " if self.says_something else ""
        return f"not known: {said}{self.reason}"

    @property
    def says_something(self) -> bool:
        """Whether either end is known."""
        return self.at_least is not None or self.at_most is not None
