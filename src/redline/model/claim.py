"""What somebody published about cells of a suite, and what the measurements say to it."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.estimate import Estimate, Metric

ClaimState = Literal["agrees", "differs", "not known", "not measured"]


class Claim(Frozen):
    """A published number: a ratio of two cells of a suite, or the level of one; without `of` no cell can show it."""

    id: str = omitted_if_default("", "its number in the publication")
    text: str
    metric: Metric = Metric.THROUGHPUT
    of: str = omitted_if_default("", "the slug of a cell")
    to: str = omitted_if_default("", "the slug of the cell that `of` is divided by; absent: the level of `of`")
    expected: str = omitted_if_default("", "as written: `0.8`, `< 1ms`")
    low: float = omitted_if_default(0.0, "the least that agrees: a ratio, or a level in the metric's unit")
    high: float | None = omitted_if_default(None, "the most that agrees; absent: anything above `low`")
    missing: str = omitted_if_default("", "why this suite cannot show it")


class ClaimResult(Frozen):
    """What the measurements say to a claim.

    *Agrees*: the whole interval lies within what was published; *differs*: all of it lies outside; *not known*: it has
    parts on both sides, or no interval.
    """

    claim: Claim
    state: ClaimState
    measured: Estimate | None = Field(description="the ratio or the level; null if not measured")
    reason: str = omitted_if_default("", "why it is not known or not measured, if `measured` does not show it")
