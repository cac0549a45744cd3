"""The overload test: a load of three stages, and what a server's answers in it show. Pure.

First a rate that the server surely bears, then more than it can do, then the first rate again, on one server in one
load. A server that is only busy keeps answering as much as it can, and recovers when its queue is gone: a backlog b
drains at capacity - rate, so after b / (capacity - rate). A server that does more work the longer its queue is answers
less and less, and may stay so at a rate that it bore before.

Sources: J. C. Mogul and K. K. Ramakrishnan, Eliminating receive livelock in an interrupt-driven kernel, ACM TOCS 15(3),
1997; N. Bronson and others, Metastable failures in distributed systems, HotOS 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from redline.model import Histogram, LoadStage, Open
from redline.model.limits import Beyond, BeyondMoment
from redline.quantities import percent, rate
from redline.search.evidence import Floats, Slice

CALM = 0.8
"""Of the lower end of an answer: a rate that it surely bore."""

OVERLOAD = 1.3
"""Of the upper end, or of the most that it answered, whichever is more."""

OVERLOADED_FOR = 1.5
"""Times the length of a probe."""

DRAIN = 1.5
"""Times what a server needs for its backlog that answers as much as before."""

SLICES_PER_PROBE = 25

HOLDS = 0.9
COLLAPSED = 0.5
"""Of the capacity."""
SLOWER = 2.0
"""Times the p99 before: what is less may be chance."""
BORNE = 0.97
"""Of what fell due in overload: a server that answers as much was not overloaded."""
ANSWERED = 0.9
"""Of what falls due late after the overload: a server that answers less has not come back."""
_LEAST_MARGIN = 0.05
_SETTLING = 0.25
_WINDOWS = 10
_LATE = 1 / 3
_BATCHES = 6

Stage = Literal["before", "overload", "after"]
Goodput = Literal["holds", "sags", "collapses", "not known"]
Recovery = Literal["recovers", "stays slow", "does not come back", "not known"]


@dataclass(frozen=True)
class OverloadPlan:
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
        """The total length, without a warm-up at the calm rate."""
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


def overload_plan(
    ends: Sequence[tuple[float | None, float | None]], answered_per_s: float, probe_s: float
) -> OverloadPlan:
    """The overload test for a search, from the ends of its answers and the most that any probe saw answered per second.

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
    return OverloadPlan(
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


def judge_overload(
    plan: OverloadPlan, slices: Sequence[Slice], *, died: str = "", stopped: str = "", client: str = ""
) -> Beyond:
    """What the load showed. `died`: the server did, and how; `stopped`: the load was ended early, and why.

    `client`: why the load generator was the limit; then the server's part is not known.
    """
    seen = _Seen(plan, tuple(each for each in slices if each.seconds > 0))
    before, late = seen.response(seen.stage("before")), seen.response(seen.late)
    share = seen.share_under_overload()
    goodput, why_not = _goodput(seen, share, died or stopped, client)
    gone_s, back_s = seen.gone_s(), seen.back_s()
    recovery, reason = _recovery(seen, gone_s, died, stopped, client)
    collapsed = goodput == "collapses"
    return Beyond(
        calm_per_s=plan.calm_per_s,
        overload_per_s=plan.overload_per_s,
        before_s=plan.before_s,
        overload_s=plan.overload_s,
        after_s=plan.after_s,
        capacity_per_s=plan.capacity_per_s,
        goodput=goodput,
        goodput_share=share,
        collapsed_after_s=seen.collapsed_after_s() if collapsed else None,
        recovery=recovery,
        backlog_at_most=int(max(seen.backlog.max(initial=0.0), 0.0)),
        backlog_gone_s=gone_s,
        back_s=back_s,
        p50_before_ns=_quantile(before, 0.5),
        p50_after_ns=_quantile(late, 0.5),
        p99_before_ns=_quantile(before, 0.99),
        p99_after_ns=_quantile(late, 0.99),
        errors_overload=int(seen.errors[seen.stage("overload")].sum()),
        errors_after=int(seen.errors[seen.stage("after")].sum()),
        reason="; ".join(dict.fromkeys(each for each in (why_not, reason) if each)),
        course=seen.course(),
    )


def _goodput(seen: "_Seen", share: float | None, ended: str, client: str) -> tuple[Goodput, str]:
    """The grade, and why there is none."""
    if client:
        return "not known", client
    if share is None:
        return "not known", ended or "nothing was seen under overload"
    if seen.borne():
        return "not known", f"it bore even {rate(seen.plan.overload_per_s)}: this was no overload"
    if seen.collapsed_after_s() is not None:
        return "collapses", ""
    return ("holds" if share >= HOLDS - seen.chance() else "sags"), ""


def _recovery(seen: "_Seen", gone_s: float | None, died: str, stopped: str, client: str) -> tuple[Recovery, str]:
    """The grade, and why there is none, or what makes it sure."""
    if client or (stopped and not died):
        return "not known", client or stopped
    if died:
        return "does not come back", died
    if unknown := _unknown(seen, gone_s):
        return "not known", unknown
    if gone_s is None:
        return "does not come back", seen.behind()
    if seen.answered_late() < ANSWERED:
        return (
            "does not come back",
            f"late after the overload it answered {percent(seen.answered_late())} of what was due",
        )
    return ("stays slow" if seen.slow() else "recovers"), ""


def _unknown(seen: "_Seen", gone_s: float | None) -> str:
    """Why the slices do not show whether it recovered; empty when they do."""
    if not seen.whole():
        return "the load ended before its time"
    if seen.response(seen.stage("before")).count == 0:
        return "nothing was answered before the overload"
    if gone_s is None and seen.late_per_s() >= HOLDS * seen.plan.capacity_per_s:
        return f"it answered as much as it can until the load ended, and {seen.behind()}"
    if gone_s is not None and np.count_nonzero(seen.late) < _BATCHES:
        return "its backlog was gone only just before the load ended"
    return ""


def _quantile(response: Histogram, q: float) -> int | None:
    return response.quantile_ns(q) if response.count else None


@dataclass(frozen=True)
class _Seen:
    """The slices of the load, all of which have a length, and its plan."""

    plan: OverloadPlan
    slices: tuple[Slice, ...]

    @cached_property
    def lengths(self) -> Floats:
        return np.array([each.seconds for each in self.slices], dtype=np.float64)

    @cached_property
    def ends_s(self) -> Floats:
        """When each slice ended, from the beginning of the measurement."""
        return np.asarray(np.cumsum(self.lengths))

    @cached_property
    def due(self) -> Floats:
        return np.array([each.due for each in self.slices], dtype=np.float64)

    @cached_property
    def answered(self) -> Floats:
        return np.array([each.answered for each in self.slices], dtype=np.float64)

    @cached_property
    def errors(self) -> Floats:
        return np.array([each.errors for each in self.slices], dtype=np.float64)

    @cached_property
    def backlog(self) -> Floats:
        """At the end of each slice; what the warm-up left open would make it negative."""
        grown = np.cumsum(self.due - self.answered - self.errors)
        return np.asarray(grown - min(float(grown.min(initial=0.0)), 0.0))

    def stage(self, name: Stage) -> NDArray[np.bool_]:
        """Which slices are of this stage, by their middles."""
        middles = self.ends_s - self.lengths / 2
        over, after = self.plan.before_s, self.plan.before_s + self.plan.overload_s
        return {"before": middles < over, "overload": (middles >= over) & (middles < after), "after": middles >= after}[
            name
        ]

    @cached_property
    def late(self) -> NDArray[np.bool_]:
        """The last third of the time after the overload; of that what is after the backlog was gone, where it was."""
        gone_s = self.gone_s() or 0.0
        from_s = max(self.plan.seconds - _LATE * self.plan.after_s, self.plan.before_s + self.plan.overload_s + gone_s)
        return np.asarray(self.ends_s - self.lengths / 2 >= from_s)

    def whole(self) -> bool:
        """Whether the load came to its end."""
        return bool(len(self.ends_s)) and bool(self.ends_s[-1] >= self.plan.seconds - 2 * self.plan.slice_s)

    def response(self, which: NDArray[np.bool_]) -> Histogram:
        """Of what ended in these slices."""
        return Histogram.merged(each.response for each, taken in zip(self.slices, which, strict=True) if taken)

    def borne(self) -> bool:
        """Whether it answered what fell due in overload."""
        settled = self._settled()
        return bool(self.answered[settled].sum() >= BORNE * self.due[settled].sum())

    def share_under_overload(self) -> float | None:
        """What it answered per second of its capacity, once the overload had set in; None when that was not seen."""
        settled = self._settled()
        if not settled.any() or self.plan.capacity_per_s <= 0:
            return None
        return float(self.answered[settled].sum() / self.lengths[settled].sum() / self.plan.capacity_per_s)

    def chance(self) -> float:
        """Two standard deviations of that share, for a server whose answers are as irregular as Poisson's."""
        return float(2 / np.sqrt(max(self.plan.capacity_per_s * self.lengths[self._settled()].sum(), 1.0)))

    def _settled(self) -> NDArray[np.bool_]:
        return self.stage("overload") & (self.ends_s > self.plan.before_s + _SETTLING * self.plan.overload_s)

    def collapsed_after_s(self) -> float | None:
        """Of overload, until it answered less than half of its capacity, where it still did so in the last quarter."""
        over = self.stage("overload")
        answered, lengths = self.answered[over], self.lengths[over]
        last = max(1, len(answered) // 4)
        half = COLLAPSED * self.plan.capacity_per_s
        if not len(answered) or answered[-last:].sum() / lengths[-last:].sum() >= half:
            return None
        width = max(1, len(answered) // _WINDOWS)
        weights = np.ones(width)
        rates = np.convolve(answered, weights, "valid") / np.convolve(lengths, weights, "valid")
        above = np.flatnonzero(rates >= half)
        first = int(above[-1]) + 1 if len(above) else 0
        # The window that is the first below half lies about the moment of the fall.
        return float(lengths[:first].sum() + lengths[first : first + width].sum() / 2) if first else 0.0

    def gone_s(self) -> float | None:
        """After the overload, until the backlog was no more than it had been at most before it; None when it stayed."""
        before, after = self.stage("before"), self.stage("after")
        level = max(float(self.backlog[before].max(initial=0.0)), 1.0)
        end_s = self.plan.before_s + self.plan.overload_s
        found = np.flatnonzero(after & (self.backlog <= level))
        return max(0.0, float(self.ends_s[found[0]]) - end_s) if len(found) else None

    def back_s(self) -> float | None:
        """The same until, with the backlog gone, p99 of one slice was at most `SLOWER` times that before."""
        gone_s, before = self.gone_s(), self.response(self.stage("before"))
        if gone_s is None or not before.count:
            return None
        end_s, most_ns = self.plan.before_s + self.plan.overload_s, SLOWER * before.quantile_ns(0.99)
        later = np.flatnonzero(self.ends_s >= end_s + gone_s - self.plan.slice_s / 2)
        fast = (i for i in later if 0 < (_quantile(self.slices[i].response, 0.99) or 0) <= most_ns)
        first = next(fast, None)
        return None if first is None else max(0.0, float(self.ends_s[first]) - end_s)

    def late_per_s(self) -> float:
        """Right answers per second, late after the overload."""
        return float(self.answered[self.late].sum() / max(self.lengths[self.late].sum(), 1e-9))

    def behind(self) -> str:
        """How much still waited in the end, and how that changed, for people."""
        late = self.late
        waiting, falling = self.backlog[late], -(self.due[late] - self.answered[late] - self.errors[late]).sum()
        per_s = float(falling / max(self.lengths[late].sum(), 1e-9))
        fewer = f"{rate(per_s)} fewer" if per_s > 0 else "no fewer"
        return f"{int(waiting[-1]) if len(waiting) else 0:,} requests still waited, {fewer} as time went by"

    def answered_late(self) -> float:
        """Right answers of what fell due, late after the overload."""
        return float(self.answered[self.late].sum() / max(self.due[self.late].sum(), 1.0))

    def slow(self) -> bool:
        """Whether p99 is far above what it was before in at least half of the stretches of the late time.

        One long pause is in one stretch, and no lasting state.
        """
        most_ns = SLOWER * self.response(self.stage("before")).quantile_ns(0.99)
        stretches = np.array_split(np.flatnonzero(self.late), _BATCHES)
        parts = [Histogram.merged(self.slices[i].response for i in part) for part in stretches if len(part)]
        return 2 * sum(part.count == 0 or part.quantile_ns(0.99) > most_ns for part in parts) >= len(parts)

    def course(self) -> tuple[BeyondMoment, ...]:
        """The slices, as they are published."""
        names: list[Stage] = ["before", "overload", "after"]
        of = {int(i): name for name in names for i in np.flatnonzero(self.stage(name))}
        return tuple(
            BeyondMoment(
                at_s=round(float(self.ends_s[i]), 6),
                stage=of[i],
                asked_per_s=each.due / each.seconds,
                answered_per_s=each.answered / each.seconds,
                errors_per_s=each.errors / each.seconds,
                backlog=int(self.backlog[i]),
                p50_ns=_quantile(each.response, 0.5),
                p99_ns=_quantile(each.response, 0.99),
            )
            for i, each in enumerate(self.slices)
        )
