"""Past the edge: a load of three stages, and what a server's answers in it say. Pure.

A rate that the server surely bears, then more than it can do, then the first rate again, on one server in one load. A
server that is only busy answers as much as it can all the while, and is back when its queue is gone: a backlog b drains
at capacity - rate, so after b / (capacity - rate). One that does more work the more is waiting answers less and less,
and may stay so at a rate that it bore before.

Sources: J. C. Mogul and K. K. Ramakrishnan, Eliminating receive livelock in an interrupt-driven kernel, ACM TOCS 15(3),
1997; N. Bronson and others, Metastable failures in distributed systems, HotOS 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from redline.model import LoadStage, Open

CALM = 0.8
"""Of the lower end of an answer: a rate that it surely bore."""

OVERLOAD = 1.3
"""Of the upper end, or of the most that it answered, whichever is more."""

OVERLOADED_FOR = 1.5
"""Times the length of a probe."""

DRAIN = 1.5
"""Times what a server needs for its backlog that answers as much as before."""

SLICES_PER_PROBE = 25

_LEAST_MARGIN = 0.05


@dataclass(frozen=True)
class BeyondPlan:
    """A load of three stages: rates per second, and how long each stands, in whole slices."""

    calm_per_s: float
    overload_per_s: float
    capacity_per_s: float
    before_s: float
    overload_s: float
    after_s: float
    slice_s: float

    @property
    def seconds(self) -> float:
        """The whole of it, without a warm-up at the calm rate."""
        return self.before_s + self.overload_s + self.after_s

    def shape(self, probes: Open) -> Open:
        """The load as the engine takes it, with the arrivals and connections of the probes before."""
        before, over = round(self.before_s * 1e9), round(self.overload_s * 1e9)
        stages = (
            LoadStage(to=self.calm_per_s, over_ns=before),
            LoadStage(to=self.overload_per_s, over_ns=0),
            LoadStage(to=self.overload_per_s, over_ns=over),
            LoadStage(to=self.calm_per_s, over_ns=0),
        )
        return probes.model_copy(update={"rate_per_s": self.calm_per_s, "stages": stages})


def beyond_plan(ends: Sequence[tuple[float | None, float | None]], answered_per_s: float, probe_s: float) -> BeyondPlan:
    """What to try past the edge, from the answers' ends and the most that any probe saw answered per second.

    Where no rate passed, half of what was answered is taken for calm.
    """
    low = max((each for each, _ in ends if each is not None), default=None)
    high = max((each for _, each in ends if each is not None), default=0.0)
    capacity = max(answered_per_s, low or 0.0)
    overload = OVERLOAD * max(high, capacity)
    calm = CALM * low if low is not None else 0.5 * capacity
    margin = max(capacity - calm, _LEAST_MARGIN * capacity)
    slice_s = probe_s / SLICES_PER_PROBE
    overload_s = _whole(OVERLOADED_FOR * probe_s, slice_s)
    drain_s = (overload - capacity) * overload_s / margin
    return BeyondPlan(
        calm_per_s=calm,
        overload_per_s=overload,
        capacity_per_s=capacity,
        before_s=_whole(probe_s, slice_s),
        overload_s=overload_s,
        after_s=_whole(DRAIN * drain_s + probe_s, slice_s),
        slice_s=slice_s,
    )


def _whole(seconds: float, slice_s: float) -> float:
    return ceil(round(seconds / slice_s, 6)) * slice_s
