"""What a probe showed, in slices of time, with enough detail to know its uncertainty."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import inf
from typing import TypeVar

import numpy as np

from redline.model import Histogram
from redline.stats.samples import Floats

T = TypeVar("T")
SAME_RATE = 1.005
_TOLERANCE = 0.005
_PER_OVERLOAD = 0.02
_BATCHES = 10
SURE = 5.0
"""In standard errors of the mean step: a false alarm at capacity has p = 6e-7 per look, of some fifty per probe."""
LEAST_SHARE = 0.02
"""The least share of due requests left over in a hopeless probe: less is not hopeless, however certain."""
FEWEST = 10
"""The fewest slices of a hopeless probe."""
_LONG = 0.99
"""Requests slower than this percentile are fewer than `LEAST_SHARE`, and cannot make a backlog look hopeless."""
_MUCH_LEFT = 0.3
_STALLED = 10.0
"""The fewest answers that a stall lacks: by chance, so many are missing once in 20,000 times."""
_FASTEST, _MUCH_FASTER = 0.1, 0.25
_QUARTERS = 4
SLOWED = 2.0


@dataclass(frozen=True)
class ProbeSlice:
    """A slice of a probe's time: the requests that fell due in it, and the outcomes that became known in it.

    `answered` counts right answers. Outcomes known only after the last slice are in a slice of no length.
    """

    seconds: float
    due: int
    answered: int
    errors: int
    response: Histogram

    @property
    def ended(self) -> int:
        """Requests whose outcome became known."""
        return self.answered + self.errors


@dataclass(frozen=True)
class RequestSeen:
    """What a whole probe showed of one of several requests: its counts, and the times of all that fell due."""

    due: int
    answered: int
    errors: int
    response: Histogram


@dataclass(frozen=True, eq=False)
class Evidence:
    """A probe: the rate that was set, and what was observed. Probes compare by identity.

    `hopeless`: ended early because the backlog grew without bound. `client`: why the load generator or the host was the
    limit; otherwise empty. `lengthens`: that limit only lengthens response times, so objectives that were met stay met.
    `aborted`: the condition of the user that ended it early, and what was measured of it.
    `missed`: texts of the objectives that the server missed by more than that. `passing`: the host took CPU time, which
    may be over soon. `start`: the start of the server, from 0. `requests`: by label, of a scenario of several.
    `messages`: times of messages and `goodput`, of one of several requests or of all: each time, or conversation, as a
    request. `speed`: how much faster than recorded; None unless the probe sent a recording. `by_users`: its load is
    closed: `rate_per_s` is then the number of its users, and no backlog grows beyond these.
    """

    rate_per_s: float
    slices: tuple[ProbeSlice, ...]
    hopeless: bool = False
    client: str = ""
    lengthens: bool = False
    aborted: str = ""
    missed: frozenset[str] = frozenset()
    passing: bool = False
    start: int = 0
    requests: Mapping[str, RequestSeen] = field(default_factory=dict)
    messages: Mapping[tuple[str | None, str], RequestSeen] = field(default_factory=dict)
    speed: float | None = None
    by_users: bool = False

    @property
    def is_queue(self) -> bool:
        """Whether requests fall due by chance at a rate, as in models of queues."""
        return self.speed is None and not self.by_users

    @cached_property
    def timed(self) -> tuple[ProbeSlice, ...]:
        """The slices with load."""
        return tuple(slice_ for slice_ in self.slices if slice_.seconds > 0)

    @cached_property
    def seconds(self) -> float:
        """The length of the load in seconds."""
        return sum(slice_.seconds for slice_ in self.timed)

    @cached_property
    def due(self) -> int:
        """Requests that fell due."""
        return sum(slice_.due for slice_ in self.slices)

    @property
    def offered_per_s(self) -> float:
        """Requests that fell due per second: with Poisson arrivals, not quite the rate that was set."""
        return self.due / self.seconds if self.seconds > 0 else 0.0

    @property
    def answered_per_s(self) -> float:
        """Right answers per second of load."""
        return sum(slice_.answered for slice_ in self.timed) / self.seconds if self.seconds > 0 else 0.0

    @cached_property
    def response(self) -> Histogram:
        """Response times of all requests that fell due."""
        return Histogram.merged(slice_.response for slice_ in self.slices)

    def counted(self, name: str) -> Floats:
        """The count of this name (`due`, `answered`, `errors`, `ended`) in every timed slice."""
        return np.array([getattr(slice_, name) for slice_ in self.timed], dtype=np.float64)

    def all_counted(self, name: str) -> Floats:
        """The same, with outcomes known only after the last timed slice spread over all of them.

        A timeout may be as long as the probe: then all requests that time out end there, whenever they were due, and
        would look like a single accident in one slice.
        """
        counts = self.counted(name)
        later = sum(getattr(slice_, name) for slice_ in self.slices if slice_.seconds <= 0)
        return counts + later / len(counts) if len(counts) else counts

    def backlog(self) -> Floats:
        """The growth of unfinished requests since the first timed slice began, at the end of each timed slice."""
        return np.asarray(np.cumsum(self.counted("due") - self.counted("ended")))


def by_rate(items: Iterable[T], rate_of: Callable[[T], float]) -> list[list[T]]:
    """Group items whose rates are within half a percent of the group's lowest, by ascending rate."""
    groups: list[list[T]] = []
    for item in sorted(items, key=rate_of):
        if groups and rate_of(item) <= rate_of(groups[-1][0]) * SAME_RATE:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


@dataclass(frozen=True)
class Capacity:
    """The answers per second of an overloaded server, with the standard deviations of chance and tolerance.

    The tolerance: overload may make a server a little faster or slower, the more so the larger it is.
    """

    per_s: float
    chance_per_s: float
    tolerance_per_s: float

    @property
    def sd_per_s(self) -> float:
        """The combined standard error."""
        return float(np.hypot(self.chance_per_s, self.tolerance_per_s))


def capacity_of(evidence: Evidence) -> Capacity | None:
    """The capacity that an overloaded probe shows; None when it answered nothing."""
    answered = evidence.counted("answered")
    per_s = evidence.answered_per_s
    if len(answered) < _BATCHES or per_s <= 0:
        return None
    rates = batch_means(answered / np.array([slice_.seconds for slice_ in evidence.timed]), _BATCHES)
    # The spread is below Poisson's only if the batches say so. They are few, so it is at least half of Poisson's.
    least = 0.5 * np.sqrt(answered.sum()) / evidence.seconds
    chance = max(float(rates.std(ddof=1)) / np.sqrt(len(rates)), float(least))
    beyond = max(0.0, evidence.offered_per_s / per_s - 1)
    return Capacity(per_s, chance, per_s * (_TOLERANCE + _PER_OVERLOAD * beyond))


def batch_means(values: Floats, batches: int) -> Floats:
    """The means of this many stretches of equal length: stretches are far less correlated than neighbouring values.

    Source: Law and Kelton, Simulation Modeling and Analysis, the method of batch means.
    """
    parts: Sequence[Floats] = np.array_split(values, min(batches, len(values)))
    return np.array([part.mean() for part in parts])


@dataclass(frozen=True)
class Growth:
    """The growth of the backlog: per second, as a share of due requests, and in standard errors."""

    per_s: float
    share: float
    errors: float


def growth(slices: Sequence[ProbeSlice]) -> Growth:
    """The growth of the backlog over slices, none of which has zero length."""
    due = np.array([slice_.due for slice_ in slices], dtype=np.float64)
    steps = due - np.array([slice_.ended for slice_ in slices], dtype=np.float64)
    seconds = sum(slice_.seconds for slice_ in slices)
    if len(slices) < 2 or seconds <= 0 or due.sum() == 0:
        return Growth(0.0, 0.0, 0.0)
    spread = max(float(steps.std(ddof=1)), float(np.sqrt(due.mean())))
    return Growth(
        per_s=float(steps.sum()) / seconds,
        share=float(steps.sum() / due.sum()),
        errors=float(steps.mean() / (spread / np.sqrt(len(steps)))),
    )


def hopeless(slices: Sequence[ProbeSlice], patience_s: float = inf) -> bool:
    """Whether more requests surely fall due than end, by enough to matter, in every quarter of the time so far.

    While no request has ended, this holds only after `patience_s` seconds: the loosest limit on a response time, or the
    timeout.
    """
    if not _grows(slices):
        return False
    if not any(slice_.ended for slice_ in slices):
        return sum(slice_.seconds for slice_ in slices) > patience_s
    return _grows(answering(slices))


def _grows(slices: Sequence[ProbeSlice]) -> bool:
    if len(slices) < FEWEST:
        return False
    grown = growth(slices)
    steps = np.array([slice_.due - slice_.ended for slice_ in slices], dtype=np.float64)
    in_quarters = all(part.sum() > 0 for part in np.array_split(steps, _QUARTERS))
    return grown.errors >= SURE and grown.share >= LEAST_SHARE and in_quarters


def answering(slices: Sequence[ProbeSlice]) -> Sequence[ProbeSlice]:
    """The slices in which requests of this probe could have ended: after the first outcome and a long response time.

    Far above capacity, response times grow nearly as fast as time, which would leave no slices. So if many due requests
    stay unfinished and no more end over time, all slices from the first outcome on count.
    """
    first = next((index for index, slice_ in enumerate(slices) if slice_.ended), len(slices))
    since = slices[first:]
    seen = Histogram.merged(slice_.response for slice_ in since)
    if seen.count == 0:
        return since
    long_s, passed_s = seen.quantile_ns(_LONG) / 1e9, np.cumsum([slice_.seconds for slice_ in since])
    rest = since[int(np.searchsorted(passed_s, long_s)) + 1 :]
    if len(since) < FEWEST or len(rest) >= FEWEST or growth(since).share < _MUCH_LEFT:
        return rest
    half, ended = len(since) // 2, [slice_.ended for slice_ in since]
    before, after = sum(ended[:half]), sum(ended[-half:])
    more_ends = after - before > float(np.sqrt(before + after))  # by more than one standard deviation of a count
    return rest if more_ends else since


@lru_cache(maxsize=256)
def overloaded(evidence: Evidence) -> bool:
    """Whether a probe's backlog grew without bound, including probes that were ended early for that.

    The rate of a recording changes, and with it the number of requests that are under way at any time: its backlog has
    to grow in all parts of it, and to make answers slower.
    """
    if evidence.hopeless or evidence.by_users or not hopeless(evidence.timed):
        return evidence.hopeless
    return evidence.speed is None or (slows(evidence) and _grows_throughout(answering(evidence.timed)))


@lru_cache(maxsize=256)
def stall_ns(evidence: Evidence) -> int:
    """The longest time in which a server ended no request although some waited, in nanoseconds; 0 for none.

    An overloaded server is busy and goes on to answer; one that stands still may have been stopped by something else.
    The time lacks ten answers at least, at the rate at which requests ended in the rest of the probe. Before the first
    of them a slow server is silent too; unless its fastest answers then take a fraction of that time. Users who all are
    in long conversations are silent as well: of them none is known.
    """
    if evidence.by_users:
        return 0
    timed = evidence.timed
    ended, waiting = evidence.counted("ended"), evidence.backlog() > 0
    first = int(np.argmax(ended > 0)) if ended.any() else 0
    silent_s = sum(slice_.seconds for slice_ in timed[:first])
    if evidence.response.quantile_ns(_FASTEST) < _MUCH_FASTER * silent_s * 1e9:
        first = 0
    longest_s = run_s = 0.0
    for at in range(first, len(timed)):
        run_s = run_s + timed[at].seconds if waiting[at] and not ended[at] else 0.0
        longest_s = max(longest_s, run_s)
    if not ended.any():
        return round(evidence.seconds * 1e9)
    lacked = float(ended.sum()) / max(evidence.seconds - longest_s, 1e-9) * longest_s
    return round(longest_s * 1e9) if lacked >= _STALLED else 0


def _grows_throughout(slices: Sequence[ProbeSlice]) -> bool:
    """Whether the backlog grew in each quarter by more than what is left over at the end of any load."""
    quarters = np.array_split(np.arange(len(slices)), _QUARTERS)
    return all(growth([slices[at] for at in quarter]).share >= LEAST_SHARE for quarter in quarters)


def slows(evidence: Evidence) -> bool:
    """Whether answers took twice as long in the last quarter of a probe, and after it, as in the first."""
    answered = [slice_ for slice_ in evidence.slices if slice_.response.count]
    if len(answered) < _QUARTERS:
        return False
    quarter = len(answered) // _QUARTERS
    first, last = (
        Histogram.merged(slice_.response for slice_ in part) for part in (answered[:quarter], answered[-quarter:])
    )
    return last.quantile_ns(0.5) > SLOWED * first.quantile_ns(0.5)
