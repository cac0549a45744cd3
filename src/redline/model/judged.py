"""What is judged of a load and of its trials, which runs and reports share: objectives, warm-up, precision."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.estimate import Estimate
from redline.model.plan import Objective

Warming = Literal["flat", "warmed up", "still compiling", "slowing down", "never steady"]
ObjectiveState = Literal["met", "missed", "not known"]


class ObjectiveResult(Frozen):
    """Whether a cell met a condition; `actual` has the unit of the objective's limit, None if not measured.

    Errors and achieved are of all trials, percentiles of the used trials.
    """

    objective: Objective
    actual: float | None
    met: bool = Field(description="whether it was shown to be met")
    known: bool = omitted_if_default(default=True, description="false: neither met nor missed; `reason` says why")
    at_most: bool = omitted_if_default(default=False, description="`actual` is an upper bound: the client was late")
    reason: str = Field(default="", description="why it is missed or not known, if not because of `actual`")

    def unmet(self, reason: str, *, known: bool) -> "ObjectiveResult":
        """The same result, but missed, or not known to be met, for this reason."""
        return self.model_copy(update={"met": False, "known": known, "reason": reason})

    @property
    def state(self) -> ObjectiveState:
        """Met, missed or not known."""
        return "met" if self.met else "missed" if self.known else "not known"


class WarmUp(Frozen):
    """The timeline of a trial, from its first request to the end of its measurement. Times count from the epoch.

    `flat`: on one level; `warmed up`: steady, and as fast as ever; `still compiling`: either of these, but compilers
    worked while it was measured; `slowing down`: steady, and slower than before; `never steady`: still changing.
    """

    kind: Warming
    steady_from_ns: int | None = Field(default=None, description="where its last level begins; null if never steady")
    measured_from_ns: int = Field(description="when the measurement began")
    lost: float | None = omitted_if_default(None, "if slowing down: the share by which it is slower than at its best")


class Precision(Frozen):
    """How narrow the main comparisons are after `rounds` complete rounds, if the number of trials is open.

    `half_width` is the largest relative half width, and `cell_id` its cell; None if no cell has an interval.
    `forecast` is about how many rounds would make it as narrow as asked, if known. `without` are the cells without an
    interval, `lost` those whose trials are all invalid.
    """

    asked: float
    rounds: int
    half_width: float | None
    cell_id: str | None
    forecast: int | None = omitted_if_default(None)
    at_most: int | None = omitted_if_default(None, "the maximum number of rounds")
    scatter: Literal["starts", "machine"] | None = omitted_if_default(None, "of a duet: the larger scatter")
    without: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    ended: Literal["precision", "budget", "no valid trial", "at most", "not yet"]


class PairSpeed(Frozen):
    """A pair of hosts before the run, by its server host. `ratio` is its CPU time per request over other pairs'.

    Measured by duets of a server with itself.
    """

    host: str
    cpu_per_request_ns: float | None = Field(description="null if all starts failed")
    ratio: Estimate | None = Field(description="null if too few starts succeeded")
    failed: int = omitted_if_default(0, "starts that failed")
