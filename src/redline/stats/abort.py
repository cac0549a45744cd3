"""When a load is to end early because the user said so: `errors > 5% for 3s`. Pure."""

from collections.abc import Sequence

from redline.model import AbortRule, Histogram, Interval
from redline.quantities import duration, percent
from redline.stats.objectives import DEPTHS, share_beyond

FEWEST = 10
"""The fewest requests that show anything: one failed request is all of a quiet interval."""


class AbortJudge:
    """Takes in the intervals of a load in order, and says which rule ends it. Only the measurement counts.

    A rule holds while every interval in which requests ended is beyond its limit, until they have lasted for its time.
    An interval in which nothing ended shows nothing: it neither ends such a stretch nor begins one.
    """

    def __init__(self, rules: Sequence[AbortRule]) -> None:
        self._conditions = [_HeldCondition(rule) for rule in rules]

    def seen(self, interval: Interval) -> str:
        """Take in the next interval; why the load is to end, or an empty text."""
        if interval.phase != "measure":
            return ""
        said = [condition.seen(interval) for condition in self._conditions]
        return next(filter(None, said), "")


class _HeldCondition:
    """The successive intervals in which the condition of a rule held."""

    def __init__(self, rule: AbortRule) -> None:
        self._rule = rule
        self._from_ns: int | None = None
        self._requests = self._errors = 0
        self._times: list[Histogram] = []

    def seen(self, interval: Interval) -> str:
        outcomes = interval.counts.outcomes
        if outcomes.total:
            if not self._holds(interval):
                self._from_ns, self._requests, self._errors, self._times = None, 0, 0, []
                return ""
            self._from_ns = interval.start_ns if self._from_ns is None else self._from_ns
            self._requests += outcomes.total
            self._errors += outcomes.errors
            self._times.append(interval.response)
        if self._from_ns is None or self._requests < FEWEST:
            return ""
        lasted_ns = interval.end_ns - self._from_ns
        return self._reason(lasted_ns) if lasted_ns >= self._rule.for_ns else ""

    def _holds(self, interval: Interval) -> bool:
        """Whether the interval is beyond the limit: more than the allowed share failed, or took longer."""
        outcomes, rule = interval.counts.outcomes, self._rule
        if rule.metric == "errors":
            return outcomes.errors > rule.limit * outcomes.total
        return share_beyond(interval.response, rule.limit) > 1 - DEPTHS[rule.metric]

    def _reason(self, lasted_ns: int) -> str:
        """`errors > 5% for 3s: 12% of 3,112 requests failed in 3 s`."""
        rule = self._rule
        if rule.metric == "errors":
            said = f"{percent(self._errors / self._requests)} of {self._requests:,} requests failed"
        else:
            times = Histogram.merged(self._times)
            said = f"{rule.metric} was {duration(times.quantiles_ns((DEPTHS[rule.metric],))[0])}"
        return f"{rule.text}: {said} in {duration(lasted_ns)}"
