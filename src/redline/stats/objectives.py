"""Whether a load met an objective: met, missed, or not known. Shared by loads, runs and searches. Pure."""

from collections.abc import Mapping
from dataclasses import field, replace
from math import ceil, log

from redline.lazily import dataclass
from redline.model import (
    Counts,
    Histogram,
    Metric,
    Objective,
    ObjectiveState,
    RequestTraffic,
    Scenario,
    StreamTraffic,
    Traffic,
)
from redline.model.streams import MESSAGE_TIMES, Good
from redline.model.traffic import Requests
from redline.quantities import duration, percent
from redline.stats.late_reads import ends_ns
from redline.stats.trials import QUANTILE_OF, chance_at_ends, enough_beyond

_OF_RESPONSE = {**{metric.value: q for metric, q in QUANTILE_OF.items()}, "max": 1.0}
DEPTHS = _OF_RESPONSE | {f"{times} {metric}": q for times in MESSAGE_TIMES for metric, q in _OF_RESPONSE.items()}
"""The quantile of the times for every objective of latency: of the response times, or of times of messages."""

LATE = 0.1
"""A share of a latency limit: a later engine may be why the limit is not met."""

_SURELY_LATE = 0.99
"""The least quantile of lateness that matters, however shallow the objective."""

CONNECTS = "it opens a connection for about every request, which takes its time"
"""Why an engine is busy or late that keeps connecting: more cores would be wrong advice."""

BLURRED = "the engine read messages late: give it a core of its own"

NO_MESSAGES = "the load has no conversations whose messages are known"

_LATE_GOOD_NS = 1_000_000
"""A client that is later than this may be why conversations are not good, whose limits are milliseconds at least."""

_FEWEST = 20
"""The fewest requests whose median may be judged: ten lie beyond it, as for any other percentile."""

_SHARES = ("errors", "achieved", "goodput")
_HALF = 0.5
_CHANCE = 1 / 50
_ROUNDING = 1e-9
_RULE_OF_THREE = -log(0.05)


@dataclass(frozen=True)
class LoadTotals:
    """The counts and response times of a load, or of several together. `seconds`: the length of every load.

    `answered` counts right answers without those that worked off a backlog: see `Traffic.answered`. `latest_ns` is the
    engine's largest lateness in all counted loads, which may be more than the histograms cover.
    """

    counts: Counts
    answered: int
    response: Histogram
    service: Histogram
    lateness: Histogram
    latest_ns: int
    seconds: float
    requests: Mapping[str, RequestTraffic] = field(default_factory=dict)
    streams: StreamTraffic | None = None
    conversations: int | None = None
    """The conversations that were due, if that is known: all requests, unless the scenario has several."""
    good: Mapping[str, Good] = field(default_factory=dict)
    """What makes conversations good, by request; the only request of a scenario has an empty label."""

    def of_times(self, times: str) -> "LoadTotals | None":
        """The same with these times of messages in place of response times; None if they are not known.

        Lateness delays a first message as it delays an answer, and adds nothing between two messages.
        """
        known = self.streams.times(times) if self.streams else None
        if known is None:
            return None
        if times == "first-message":
            return replace(self, response=known, service=Histogram())
        return replace(self, response=known, service=known, lateness=Histogram(), latest_ns=0)

    @classmethod
    def of_load(cls, traffic: Traffic, scenario: Scenario | None = None) -> "LoadTotals":
        """The totals of a load; by request too, if the scenario has several."""
        counts, late = traffic.counts, traffic.lateness
        totals = cls(
            counts,
            traffic.answered,
            traffic.response,
            traffic.service,
            late,
            late.max_ns,
            traffic.seconds,
            streams=traffic.streams,
        )
        return totals if scenario is None else totals.with_requests(scenario, traffic.requests)

    def with_requests(self, scenario: Scenario, requests: Requests) -> "LoadTotals":
        """The same totals, with those by request, unless they are not known."""
        labels = scenario.several_labels
        streams = zip(labels or ("",), (request.stream for request in scenario.requests), strict=True)
        good = {label: stream.good for label, stream in streams if stream and stream.good}
        if not labels:
            return replace(self, conversations=self.counts.due if good else 0, good=good)
        if len(labels) != len(requests):
            return replace(self, good=good)
        of_good = zip(scenario.requests, requests, strict=True)
        due = sum(seen.outcomes.total for of, seen in of_good if of.stream and of.stream.good)
        return replace(self, requests=dict(zip(labels, requests, strict=True)), conversations=due, good=good)

    @property
    def good_from_due(self) -> bool:
        """Whether a late client may be why conversations are not good; it is not where only gaps decide."""
        return not self.good or any(good.times_from_due for good in self.good.values())

    @property
    def good_between(self) -> bool:
        """Whether times between messages decide which conversations are good."""
        return any(good.times_between for good in self.good.values())

    def of_request(self, label: str) -> "LoadTotals | None":
        """The totals of a request; None if they are not known.

        Service times are not counted by request. A request may have met any lateness that a load had.
        """
        counted = self.requests.get(label)
        if counted is None:
            return None
        counts = Counts(due=counted.outcomes.total, completed=counted.completed, outcomes=counted.outcomes)
        return replace(
            self,
            counts=counts,
            answered=counted.completed,
            response=counted.response,
            service=Histogram(),
            requests={},
            streams=counted.streams,
            conversations=counts.due if label in self.good else 0,
            good={of: good for of, good in self.good.items() if of == label},
        )


@dataclass(frozen=True)
class EvaluatedObjective:
    """The result of an objective; `actual` is the measured value, None if it is not known."""

    state: ObjectiveState
    actual: float | None
    reason: str = ""


def evaluate_objective(objective: Objective, measured: LoadTotals) -> EvaluatedObjective:
    """Judge an objective. Unless the server surely missed it, a missed objective is not known.

    A late client only lengthens response times: a met objective stays met, and a missed one must be missed by more.
    """
    if objective.request is not None:
        return _evaluate_by_request(objective, objective.request, measured)
    if objective.times:
        of_messages = measured.of_times(objective.times)
        if of_messages is None or _is_blurred(objective, measured):
            return EvaluatedObjective("not known", None, BLURRED if of_messages else NO_MESSAGES)
        measured = of_messages
    if objective.metric == "goodput":
        return _goodput(objective, measured)
    actual = _actual(objective.metric.split()[-1], measured)
    if actual is None:
        return _too_few(objective, measured.response)
    if actual < objective.limit if objective.below else actual > objective.limit:
        return _met(objective, actual, measured.counts.due)
    reason = _excused(objective, measured)
    return EvaluatedObjective("not known" if reason else "missed", actual, reason)


def _met(objective: Objective, actual: float, due: int, what: str = "requests") -> EvaluatedObjective:
    """Judge a measured value within its limit: a share is met only by as many requests as can show it."""
    allowed = objective.limit if objective.below else 1 - objective.limit
    if objective.metric not in _SHARES or shows_none(due, allowed):
        return EvaluatedObjective("met", actual)
    enough = f": {ceil(_RULE_OF_THREE / allowed):,} would show it" if allowed > 0 else ""
    return EvaluatedObjective("not known", actual, f"{due:,} {what} are too few{enough}")


def _goodput(objective: Objective, measured: LoadTotals) -> EvaluatedObjective:
    """Judge the share of good conversations. A client that is late only makes fewer of them good.

    Where only gaps decide, it makes no difference.
    """
    if measured.streams is None:
        return EvaluatedObjective("not known", None, NO_MESSAGES)
    if not measured.conversations:
        return EvaluatedObjective("not known", None, "no conversation that was due says by `good` what makes it good")
    if _is_blurred(objective, measured):
        return EvaluatedObjective("not known", None, BLURRED)
    actual = measured.streams.good / measured.conversations
    if actual > objective.limit:
        return _met(objective, actual, measured.conversations, "conversations")
    late_ns = measured.lateness.quantile_ns(_SURELY_LATE) if measured.lateness.count else 0
    if measured.good_from_due and late_ns > _LATE_GOOD_NS:
        return EvaluatedObjective("not known", actual, late_text(late_ns, "p99", measured.counts))
    return EvaluatedObjective("missed", actual)


def _evaluate_by_request(objective: Objective, request: str, measured: LoadTotals) -> EvaluatedObjective:
    """Judge an objective for a request, by what was counted of it alone."""
    counted = measured.of_request(request)
    if counted is None:
        return EvaluatedObjective("not known", None, "the load was not counted by request")
    evaluated = evaluate_objective(objective.on_everything, counted)
    lacked = measured.counts.exhausted
    if lacked and evaluated.state == "missed" and objective.metric == "errors":
        # Whose requests these were is not known.
        return EvaluatedObjective("not known", evaluated.actual, nothing_left(lacked))
    return evaluated


def _is_blurred(objective: Objective, measured: LoadTotals) -> bool:
    """Whether messages that were read too late may decide it: the limit is where the measured value may really be."""
    streams = measured.streams
    if streams is None or not streams.blurred:
        return False
    if objective.metric == "goodput":
        due = measured.conversations or 1
        return measured.good_between and abs(streams.good / due - objective.limit) <= streams.blurred / due
    if not objective.times:
        return False
    low, high = ends_ns(streams, objective.times, DEPTHS[objective.metric])
    return low < objective.limit <= high


def excused(objective: Objective, measured: LoadTotals) -> str:
    """As below, of the times that the objective is about."""
    if _is_blurred(objective, measured):
        return BLURRED
    about = measured.of_times(objective.times) if objective.times else measured
    return "" if about is None else _excused(objective, about)


def _excused(objective: Objective, measured: LoadTotals) -> str:
    """Why the client alone may have missed an objective; empty if the server missed it.

    A queue's departures are delayed by no more than its arrivals, so a client that is late by at most M lengthens no
    response time by more than M, however requests wait. A service time begins when the request is written, so it
    includes no lateness. Errors do not depend on it either.
    """
    late_ns, service_q = measured.lateness.max_ns, DEPTHS.get(objective.metric)
    if objective.metric == "achieved":
        return _not_achieved(objective, measured)
    if service_q is None:
        return ""
    long_ns = measured.lateness.quantile_ns(max(service_q, _SURELY_LATE))
    often = long_ns > LATE * objective.limit
    service_ns, response_ns = (histogram.quantile_ns(service_q) for histogram in (measured.service, measured.response))
    if service_ns >= objective.limit or response_ns - late_ns >= objective.limit:
        return ""
    # The requests beyond the limit if every late request delayed another.
    beyond = share_beyond(measured.response, objective.limit) - share_beyond(measured.lateness, LATE * objective.limit)
    if not often and beyond > 1 - service_q + _ROUNDING:
        return ""
    if often and service_q < 1:
        return late_text(long_ns, "p99" if service_q <= _SURELY_LATE else objective.metric, measured.counts)
    return late_text(late_ns, "at most", measured.counts)


def _not_achieved(objective: Objective, measured: LoadTotals) -> str:
    """Why the server may not be why less was achieved: the client was late or could not connect, or it is chance."""
    more = 1 + measured.latest_ns / 1e9 / max(measured.seconds, 1e-9)
    counts, answered = measured.counts, measured.answered
    wanted, lacked = objective.limit * counts.due, counts.exhausted
    if answered * more > wanted:
        return late_text(measured.latest_ns, "at most", counts)
    if (answered + lacked) * more > wanted:
        return nothing_left(lacked)
    chance = chance_at_ends(counts.completed, measured.response, measured.seconds)
    if min(answered + chance, counts.due - counts.outcomes.errors) > wanted:
        return f"{counts.due:,} requests are too few: as many may be under way at the ends"
    return ""


def nothing_left(requests: int) -> str:
    """A message that the engine's side ran out of ports, descriptors or memory."""
    return f"no port, descriptor or memory was left on the engine's side for {requests:,} requests"


def surely_missed(share: float, allowed: float) -> bool:
    """Whether the share of wrong requests is too large for chance, however few requests there were.

    It must be half of them, and fifty times what is allowed: at the limit, at most one load in fifty shows that
    (Markov's inequality). So only objectives that allow 2% or less are missed in this way.
    """
    return share >= _HALF and allowed <= _CHANCE * share + _ROUNDING


def shows_none(requests: int, allowed: float) -> bool:
    """Whether so many requests without an error show that fewer than this share fail: 95% sure, the "rule of three"."""
    return requests * allowed >= _RULE_OF_THREE


def share_beyond(times: Histogram, limit_ns: float) -> float:
    """The share of times that reach or exceed the limit."""
    values, counts = times.buckets()
    return float(counts[values >= limit_ns].sum()) / max(times.count, 1)


def late_text(late_ns: float, which: str, counts: Counts) -> str:
    """A message about the engine's lateness, with advice, or with what kept the engine busy if that is known."""
    advice = CONNECTS if counts.connects_often else "pin it or free a core"
    return f"the engine was late ({which} {duration(late_ns)}): {advice}"


def _actual(metric: str, measured: LoadTotals) -> float | None:
    counts, response = measured.counts, measured.response
    if metric in ("errors", "achieved"):
        # Requests for which the engine's side could not connect never reached the server.
        part = counts.outcomes.errors - counts.exhausted if metric == "errors" else measured.answered
        return part / counts.due if counts.due else None
    if metric == "max":
        return float(response.max_ns) if response.count else None
    share = QUANTILE_OF[Metric(metric)]
    enough = response.count >= _FEWEST and enough_beyond(response.count, share)
    return float(response.quantile_ns(share)) if enough else None


def _too_few(objective: Objective, response: Histogram) -> EvaluatedObjective:
    """Judge a percentile of too few requests: not known, or missed if half of them are beyond its limit."""
    beyond = share_beyond(response, objective.limit)
    if response.count and surely_missed(beyond, 1 - DEPTHS.get(objective.metric, 0.0)):
        what = "messages" if objective.times else "requests"
        return EvaluatedObjective("missed", None, f"{percent(beyond)} of {response.count:,} {what} took as long")
    what = "messages" if objective.times else "requests"
    return EvaluatedObjective("not known", None, f"{response.count:,} {what} are too few for {objective.metric}")
