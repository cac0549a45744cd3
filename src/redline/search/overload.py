"""The overload test: a load of three stages, and what the server's answers show. Pure.

The stages are a rate that the server surely sustains, an overload, and the first rate again. A robust server keeps
answering, and drains a backlog b in b / (capacity - rate). Others answer less the longer their queue is, and may not
recover. Sources: Mogul and Ramakrishnan, Eliminating receive livelock in an interrupt-driven kernel, ACM TOCS 15(3),
1997; Bronson and others, Metastable failures in distributed systems, HotOS 2021.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from redline.model import Histogram, LoadStage, Open
from redline.model.limits import Beyond, BeyondMoment
from redline.quantities import percent, rate
from redline.search.evidence import ProbeSlice

CALM = 0.8
"""The calm rate as a share of an answer's lower end: a rate that is surely sustained."""

OVERLOAD = 1.3
"""The overload as a multiple of the upper end or of the most that was answered, whichever is larger."""

OVERLOADED_FOR = 1.5
"""The length of the overload in probes."""

DRAIN = 1.5
"""The time to drain the backlog, as a multiple of what a server needs whose capacity did not suffer."""

SLICES_PER_PROBE = 25

HOLDS = 0.9
COLLAPSED = 0.5
"""The shares of the capacity from which on goodput holds, and below which it collapses."""
SLOWER = 2.0
"""The growth of p99 over that before from which on a server is slower: less may be chance."""
SUSTAINED = 0.97
"""The answered share of due requests from which on a server was not overloaded."""
ANSWERED = 0.9
"""The answered share of requests due late after the overload below which a server has not recovered."""
_LEAST_MARGIN = 0.05
_SETTLING = 0.25
_WINDOWS = 10
_LATE = 1 / 3
_BATCHES = 6

Goodput = Literal["holds", "sags", "collapses", "not known"]
Recovery = Literal["recovers", "stays slow", "does not come back", "not known"]


@dataclass(frozen=True)
class OverloadPlan:
    """A load of three stages: rates per second, and the length of each stage in whole slices."""

    calm_per_s: float
    overload_per_s: float
    capacity_per_s: float
    before_s: float
    overload_s: float
    after_s: float
    slice_s: float

    @property
    def seconds(self) -> float:
        """The total length in seconds, without a warm-up at the calm rate."""
        return self.before_s + self.overload_s + self.after_s

    def shape(self, probes: Open) -> Open:
        """The load for the engine, with the arrivals and connections of the probes."""
        before, over = round(self.before_s * 1e9), round(self.overload_s * 1e9)
        stages = (
            LoadStage(to=self.calm_per_s, over_ns=before),
            LoadStage(to=self.overload_per_s, over_ns=0),
            LoadStage(to=self.overload_per_s, over_ns=over),
            LoadStage(to=self.calm_per_s, over_ns=0),
        )
        return probes.staged(self.calm_per_s, stages)


def overload_plan(
    ends: Sequence[tuple[float | None, float | None]], answered_per_s: float, probe_s: float
) -> OverloadPlan:
    """The overload test for a search, from the ends of its answers and the most that any probe answered per second.

    If no rate passed, half of the answered rate serves as calm.
    """
    low = max((low for low, _ in ends if low is not None), default=None)
    high = max((high for _, high in ends if high is not None), default=0.0)
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
    plan: OverloadPlan, slices: Sequence[ProbeSlice], *, died: str = "", stopped: str = "", client: str = ""
) -> Beyond:
    """Judge the overload test. `died`: how the server died, if it did; `stopped`: why the load ended early, if it did.

    `client`: why the load generator was the limit, if it was; the server's part is then not known.
    """
    seen = _SeenOverload(plan, tuple(slice_ for slice_ in slices if slice_.seconds > 0))
    before, late = seen.response(seen.before), seen.response(seen.late)
    goodput, why_not = _goodput(seen, died or stopped, client)
    recovery, reason = _recovery(seen, died, stopped, client)
    return Beyond(
        **{name: value for name, value in vars(plan).items() if name != "slice_s"},
        goodput=goodput,
        goodput_share=seen.share_under_overload(),
        collapsed_after_s=seen.collapsed_after_s() if goodput == "collapses" else None,
        recovery=recovery,
        backlog_at_most=int(max(seen.backlog.max(initial=0.0), 0.0)),
        backlog_gone_s=seen.gone_s,
        back_s=seen.back_s(),
        p50_before_ns=_quantile(before, 0.5),
        p50_after_ns=_quantile(late, 0.5),
        p99_before_ns=_quantile(before, 0.99),
        p99_after_ns=_quantile(late, 0.99),
        errors_overload=int(seen.errors[seen.overload].sum()),
        errors_after=int(seen.errors[seen.after].sum()),
        reason="; ".join(dict.fromkeys(filter(None, (why_not, reason)))),
        course=seen.course(),
    )


def _goodput(seen: "_SeenOverload", ended: str, client: str) -> tuple[Goodput, str]:
    """The grade, and the reason if it is not known."""
    share = seen.share_under_overload()
    if client:
        return "not known", client
    if share is None:
        return "not known", ended or "nothing was seen under overload"
    if seen.answered[seen.settled].sum() >= SUSTAINED * seen.due[seen.settled].sum():
        return "not known", f"it sustained even {rate(seen.plan.overload_per_s)}: this was no overload"
    if seen.collapsed_after_s() is not None:
        return "collapses", ""
    # Two standard deviations, as for Poisson-distributed answers.
    chance = 2 / np.sqrt(max(seen.plan.capacity_per_s * seen.lengths[seen.settled].sum(), 1.0))
    return ("holds" if share >= HOLDS - chance else "sags"), ""


def _recovery(seen: "_SeenOverload", died: str, stopped: str, client: str) -> tuple[Recovery, str]:
    """The grade, and the reason for it or for its absence."""
    if client or (stopped and not died):
        return "not known", client or stopped
    if died:
        return "does not come back", died
    if unknown := _unknown(seen):
        return "not known", unknown
    if seen.gone_s is None:
        return "does not come back", seen.behind()
    answered = float(seen.answered[seen.late].sum() / max(seen.due[seen.late].sum(), 1.0))
    if answered < ANSWERED:
        return "does not come back", f"late after the overload it answered {percent(answered)} of what was due"
    return ("stays slow" if seen.slow() else "recovers"), ""


def _unknown(seen: "_SeenOverload") -> str:
    """Why the slices do not show whether the server recovered; empty if they do."""
    if not len(seen.ends_s) or seen.ends_s[-1] < seen.plan.seconds - 2 * seen.plan.slice_s:
        return "the load ended before its time"
    if seen.response(seen.before).count == 0:
        return "nothing was answered before the overload"
    late_per_s = seen.answered[seen.late].sum() / max(seen.lengths[seen.late].sum(), 1e-9)
    if seen.gone_s is None and late_per_s >= HOLDS * seen.plan.capacity_per_s:
        return f"it answered as much as it can until the load ended, and {seen.behind()}"
    if seen.gone_s is not None and np.count_nonzero(seen.late) < _BATCHES:
        return "its backlog was gone only just before the load ended"
    return ""


def _quantile(response: Histogram, q: float) -> int | None:
    return response.quantile_ns(q) if response.count else None


class _SeenOverload:
    """The slices of the load, none of zero length, and its plan.

    `before`, `overload` and `after`: the slices of each stage, by their middles; `settled`: the overload once it has
    set in. `gone_s`: when the backlog was back at its maximum from before, in seconds after the overload; None if it
    stayed. `late`: the last third after the overload, once the backlog was gone, if ever.
    """

    def __init__(self, plan: OverloadPlan, slices: tuple[ProbeSlice, ...]) -> None:
        self.plan, self.slices = plan, slices
        self.lengths, self.due, self.answered, self.errors = (
            np.array([getattr(slice_, name) for slice_ in slices], dtype=np.float64)
            for name in ("seconds", "due", "answered", "errors")
        )
        self.ends_s = np.cumsum(self.lengths)
        middles, begin_s, self.end_s = self.ends_s - self.lengths / 2, plan.before_s, plan.before_s + plan.overload_s
        self.before, self.after = middles < begin_s, middles >= self.end_s
        self.overload = ~self.before & ~self.after
        self.settled = self.overload & (self.ends_s > begin_s + _SETTLING * plan.overload_s)
        grown = np.cumsum(self.due - self.answered - self.errors)
        # At the end of each slice; requests left from the warm-up would make it negative.
        self.backlog = grown - min(float(grown.min(initial=0.0)), 0.0)
        level = max(float(self.backlog[self.before].max(initial=0.0)), 1.0)
        gone = np.flatnonzero(self.after & (self.backlog <= level))
        self.gone_s = max(0.0, float(self.ends_s[gone[0]]) - self.end_s) if len(gone) else None
        self.late = middles >= max(plan.seconds - _LATE * plan.after_s, self.end_s + (self.gone_s or 0.0))

    def response(self, which: NDArray[np.bool_]) -> Histogram:
        """The response times of the requests that ended in these slices."""
        return Histogram.merged(slice_.response for slice_, taken in zip(self.slices, which, strict=True) if taken)

    def share_under_overload(self) -> float | None:
        """Right answers per second over the capacity, once the overload had set in; None if that was not seen."""
        if not self.settled.any() or self.plan.capacity_per_s <= 0:
            return None
        answered_per_s = self.answered[self.settled].sum() / self.lengths[self.settled].sum()
        return float(answered_per_s / self.plan.capacity_per_s)

    def collapsed_after_s(self) -> float | None:
        """Seconds of overload until goodput fell below half of the capacity, if it was still so in the last quarter."""
        answered, lengths = self.answered[self.overload], self.lengths[self.overload]
        last = max(1, len(answered) // 4)
        half = COLLAPSED * self.plan.capacity_per_s
        if not len(answered) or answered[-last:].sum() / lengths[-last:].sum() >= half:
            return None
        width = max(1, len(answered) // _WINDOWS)
        weights = np.ones(width)
        rates = np.convolve(answered, weights, "valid") / np.convolve(lengths, weights, "valid")
        above = np.flatnonzero(rates >= half)
        first = int(above[-1]) + 1 if len(above) else 0
        # The fall is about in the middle of the first window below half.
        return float(lengths[:first].sum() + lengths[first : first + width].sum() / 2) if first else 0.0

    def back_s(self) -> float | None:
        """Seconds from the overload until the backlog was gone and p99 was at most `SLOWER` times that before."""
        before = self.response(self.before)
        if self.gone_s is None or not before.count:
            return None
        most_ns = SLOWER * before.quantile_ns(0.99)
        later = np.flatnonzero(self.ends_s >= self.end_s + self.gone_s - self.plan.slice_s / 2)
        fast = (i for i in later if 0 < (_quantile(self.slices[i].response, 0.99) or 0) <= most_ns)
        return next((max(0.0, float(self.ends_s[i]) - self.end_s) for i in fast), None)

    def behind(self) -> str:
        """A message about the requests that still waited in the end, and how their number changed."""
        late = self.late
        waiting, falling = self.backlog[late], -(self.due[late] - self.answered[late] - self.errors[late]).sum()
        per_s = float(falling / max(self.lengths[late].sum(), 1e-9))
        fewer = f"{rate(per_s)} fewer" if per_s > 0 else "no fewer"
        return f"{int(waiting[-1]) if len(waiting) else 0:,} requests still waited, {fewer} as time went by"

    def slow(self) -> bool:
        """Whether p99 is far above its earlier value in at least half of the stretches of the late time.

        A single long pause affects one stretch, and is no lasting state.
        """
        most_ns = SLOWER * self.response(self.before).quantile_ns(0.99)
        stretches = np.array_split(np.flatnonzero(self.late), _BATCHES)
        parts = [Histogram.merged(self.slices[i].response for i in part) for part in stretches if len(part)]
        return 2 * sum(part.count == 0 or part.quantile_ns(0.99) > most_ns for part in parts) >= len(parts)

    def course(self) -> tuple[BeyondMoment, ...]:
        """The slices in their published form."""
        return tuple(
            BeyondMoment(
                at_s=round(float(self.ends_s[i]), 6),
                stage="before" if self.before[i] else "after" if self.after[i] else "overload",
                asked_per_s=slice_.due / slice_.seconds,
                answered_per_s=slice_.answered / slice_.seconds,
                errors_per_s=slice_.errors / slice_.seconds,
                backlog=int(self.backlog[i]),
                p50_ns=_quantile(slice_.response, 0.5),
                p99_ns=_quantile(slice_.response, 0.99),
            )
            for i, slice_ in enumerate(self.slices)
        )
