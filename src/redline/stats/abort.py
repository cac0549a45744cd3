"""When a load is to end early because the user said so: `errors > 5% for 3s`. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from redline.model import AbortRule, DuetBlock, Histogram, Interval, StreamTraffic
from redline.quantities import duration, percent
from redline.stats.late_reads import share_in_doubt
from redline.stats.objectives import DEPTHS, share_beyond

FEWEST = 10
"""The fewest requests that show anything: one failed request is all of a quiet interval."""


_LONGEST_NS, _PER_RULE = 1_000_000_000, 3
"""The shortest time that is judged as a whole: a second, or a third of the rule's. Shorter times hold few requests."""


class AbortJudge:
    """Takes in the intervals of a load in order, and says which rule ends it. Only the measurement counts.

    A rule holds while every second in which requests ended is beyond its limit, until these have lasted for its time.
    A second in which nothing ended shows nothing: it neither ends such a stretch nor begins one. Where intervals are
    longer than a second, or the rule's time is below three, intervals or thirds of that time stand for seconds.
    """

    def __init__(self, rules: Sequence[AbortRule]) -> None:
        self._conditions = [_HeldCondition(rule) for rule in rules]

    def seen(self, interval: Interval) -> str:
        """Take in the next interval; why the load is to end, or an empty text."""
        if interval.phase != "measure":
            return ""
        outcomes = interval.counts.outcomes
        seen = _JudgedTime(
            interval.start_ns, interval.end_ns, outcomes.total, outcomes.errors, (interval.response,), interval.streams
        )
        return next(filter(None, [condition.seen(seen) for condition in self._conditions]), "")


class DuetAbortJudge:
    """The same for a duet, by its blocks: a rule is about each server by itself.

    `names` are those of its servers. Blocks have no percentiles, so rules about these never hold.
    """

    def __init__(self, rules: Sequence[AbortRule], names: Sequence[str]) -> None:
        errors = [rule for rule in rules if rule.metric == "errors"]
        self._conditions = [[_HeldCondition(rule, f" to {name}") for rule in errors] for name in names]

    def seen(self, block: DuetBlock) -> str:
        """Take in the next block; why the duet is to end, or an empty text."""
        if block.phase != "measure" or not block.slices:
            return ""
        began_ns = min(slice_.start_ns for slice_ in block.slices)
        ended_ns = max(slice_.end_ns for slice_ in block.slices)
        said = []
        for target, conditions in enumerate(self._conditions):
            mine = [slice_ for slice_ in block.slices if slice_.target == target]
            failed = sum(slice_.failed for slice_ in mine)
            seen = _JudgedTime(began_ns, ended_ns, failed + sum(slice_.completed for slice_ in mine), failed)
            said += [condition.seen(seen) for condition in conditions]
        return next(filter(None, said), "")


@dataclass(frozen=True)
class _JudgedTime:
    """A stretch of time, and the requests that ended in it."""

    start_ns: int
    end_ns: int
    requests: int = 0
    errors: int = 0
    times: tuple[Histogram, ...] = ()
    streams: StreamTraffic | None = None

    def about(self, rule: AbortRule) -> "_JudgedTime":
        """The same with the times of messages that a rule is about, if it is about any: each is as a request."""
        name, _, depth = rule.metric.partition(" ")
        if not depth:
            return self
        times = (self.streams.times(name) if self.streams else None) or Histogram()
        return replace(self, requests=times.count, times=(times,))

    def and_then(self, later: "_JudgedTime") -> "_JudgedTime":
        return _JudgedTime(
            self.start_ns,
            later.end_ns,
            self.requests + later.requests,
            self.errors + later.errors,
            (*self.times, *later.times),
            StreamTraffic.merged((self.streams, later.streams)),
        )


class _HeldCondition:
    """The time in which the condition of a rule has held without a break. `whose`: of which requests, for messages."""

    def __init__(self, rule: AbortRule, whose: str = "") -> None:
        self._rule, self._whose = rule, whose
        self._whole_ns = min(_LONGEST_NS, rule.for_ns // _PER_RULE)
        self._part: _JudgedTime | None = None
        self._held: _JudgedTime | None = None

    def seen(self, next_: _JudgedTime) -> str:
        next_ = next_.about(self._rule)
        part = next_ if self._part is None else self._part.and_then(next_)
        if part.end_ns - part.start_ns < self._whole_ns:
            self._part = part
            return ""
        self._part = None
        if part.requests and not self._holds(part):
            self._held = None
        elif part.requests or self._held is not None:
            self._held = part if self._held is None else self._held.and_then(part)
        if self._held is None or self._held.requests < FEWEST:
            return ""
        lasts_ns = self._held.end_ns - self._held.start_ns
        return self._reason(self._held, lasts_ns) if lasts_ns >= self._rule.for_ns else ""

    def _holds(self, part: _JudgedTime) -> bool:
        """Whether it is surely beyond the limit: more than the allowed share failed, or took longer."""
        rule = self._rule
        if rule.metric == "errors":
            return part.errors > rule.limit * part.requests
        name, _, depth = rule.metric.partition(" ")
        doubted = share_in_doubt(part.streams, name) if depth and part.streams else 0.0
        return share_beyond(Histogram.merged(part.times), rule.limit) > 1 - DEPTHS[rule.metric] + doubted

    def _reason(self, held: _JudgedTime, lasted_ns: int) -> str:
        """`errors > 5% for 3s: 12% of 3,112 requests failed in 3 s`."""
        rule = self._rule
        if rule.metric == "errors":
            said = f"{percent(held.errors / held.requests)} of {held.requests:,} requests{self._whose} failed"
        else:
            times = Histogram.merged(held.times)
            said = f"{rule.metric} was {duration(times.quantiles_ns((DEPTHS[rule.metric],))[0])}"
        return f"{rule.text}: {said} in {duration(lasted_ns)}"
