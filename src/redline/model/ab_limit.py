"""The answer of `redline ab --limit`: the limits of two servers, found in one session, and their ratio."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen
from redline.model.duet import Ratio
from redline.model.estimate import Verdict
from redline.model.limits import CellLimit


class AbLimitReport(Frozen):
    """`redline ab --limit --json`: the limit of B over that of A, and both searches.

    A limit is the highest rate that meets the objective; see `limits` of each search.
    """

    format: Literal["redline.ab-limit/1"] = "redline.ab-limit/1"
    a: str
    b: str
    objective: str
    ratio: Ratio | None = Field(
        description="from the middles of both intervals on a logarithmic scale; null while a side of one is unknown"
    )
    confidence: float | None = Field(
        description="of the interval of the ratio, if both limits have one: their errors are taken as independent; "
        "null: the interval spans all ratios of the two limits, and how sure that is is not known"
    )
    verdict: Verdict = Field(description="slower: B meets the objective up to a lower rate")
    seconds: float
    interrupted: bool = False
    searches: tuple[CellLimit, CellLimit] = Field(description="of A and of B; each has one answer in `limits`")
