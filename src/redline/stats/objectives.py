"""Whether a load met an objective: met, missed, or not known. The same for loads, runs and searches; pure."""

from dataclasses import dataclass

from redline.model import Counts, Histogram, Metric, Objective, ObjectiveState, Traffic
from redline.quantities import duration, percent
from redline.stats.trials import QUANTILE_OF, enough_beyond

DEPTHS = {**{metric.value: q for metric, q in QUANTILE_OF.items()}, "max": 1.0}
"""Which quantile of the response times an objective of latency is about."""

LATE = 0.1
"""The share of a limit of latency: an engine that is later than this may be why it is not met."""

_SURELY_LATE = 0.99
"""The quantile of lateness that matters at least, however shallow the objective."""

CONNECTS = "it opens a connection for about every request, which takes its time"
"""What an engine was seen to do that is busy or late by that: then more cores are no advice."""

_FEWEST = 20
"""Requests whose median may be held against a limit: ten are beyond it, as many as beyond any other percentile."""

_HALF = 0.5
_CHANCE = 1 / 50
_ROUNDING = 1e-9


@dataclass(frozen=True)
class LoadTotals:
    """One load, or the sum of several: what was counted, and how long requests took. `seconds`: the length of each.

    `answered` are the right answers without those that worked off a backlog: see `Traffic.answered`. `latest_ns`: by
    how much the engine was late at most in all that was counted, which may be more loads than the histograms are of.
    """

    counts: Counts
    answered: int
    response: Histogram
    service: Histogram
    lateness: Histogram
    latest_ns: int
    seconds: float

    @classmethod
    def of_load(cls, traffic: Traffic) -> "LoadTotals":
        """The totals of a single load."""
        counts, late = traffic.counts, traffic.lateness
        return cls(counts, traffic.answered, traffic.response, traffic.service, late, late.max_ns, traffic.seconds)


@dataclass(frozen=True)
class JudgedObjective:
    """What became of an objective; `actual` is what it is held against, None where that is not known."""

    state: ObjectiveState
    actual: float | None
    reason: str = ""


def judge_objective(objective: Objective, measured: LoadTotals) -> JudgedObjective:
    """Whether it was met. What is not surely missed by the server's doing is not known.

    A late client only lengthens response times: what is met stays met, and what is missed must be missed by more.
    """
    actual = _actual(objective.metric, measured)
    if actual is None:
        return _too_few(objective, measured.response)
    if actual < objective.limit if objective.below else actual > objective.limit:
        return JudgedObjective("met", actual)
    reason = excused(objective, measured)
    return JudgedObjective("not known" if reason else "missed", actual, reason)


def excused(objective: Objective, measured: LoadTotals) -> str:
    """Why an objective that was not met may have been missed by the client alone; empty where the server missed it.

    The departures of a queue are no later than its arrivals are late: so a client that is late by at most M lengthens
    no response time by more than M, whatever waits for what. A service time begins when the request is written, and
    has no lateness of its own in it. Errors have none either.
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
    # What is left beyond the limit if every late request is why another took so long.
    beyond = share_beyond(measured.response, objective.limit) - share_beyond(measured.lateness, LATE * objective.limit)
    if not often and beyond > 1 - service_q + _ROUNDING:
        return ""
    if often and service_q < 1:
        return late_text(long_ns, "p99" if service_q <= _SURELY_LATE else objective.metric, measured.counts)
    return late_text(late_ns, "at most", measured.counts)


def _not_achieved(objective: Objective, measured: LoadTotals) -> str:
    """Why less may have been achieved by the client alone: what it sent too late, or could not connect for."""
    more = 1 + measured.latest_ns / 1e9 / max(measured.seconds, 1e-9)
    wanted, lacked = objective.limit * measured.counts.due, measured.counts.exhausted
    if (measured.answered + lacked) * more <= wanted:
        return ""
    if measured.answered * more > wanted:
        return late_text(measured.latest_ns, "at most", measured.counts)
    return nothing_left(lacked)


def nothing_left(requests: int) -> str:
    """Says that the engine's own side had nothing left to connect with."""
    return f"no port, descriptor or memory was left on the engine's side for {requests:,} requests"


def surely_missed(share: float, allowed: float) -> bool:
    """Whether so large a share of all requests was wrong that no chance explains it, however few they were.

    Half of them, and fifty times what is allowed: at the limit at most one load in fifty shows that (Markov's
    inequality). So only objectives that allow 2% or less are missed in this way.
    """
    return share >= _HALF and allowed <= _CHANCE * share + _ROUNDING


def share_beyond(times: Histogram, limit_ns: float) -> float:
    """The share of these times that are that long, or longer."""
    values, counts = times.buckets()
    return float(counts[values >= limit_ns].sum()) / max(times.count, 1)


def late_text(late_ns: float, which: str, counts: Counts) -> str:
    """Says by how much the engine was late, and what to do about it; or what it was busy with, where that is known."""
    advice = CONNECTS if counts.connects_often else "pin it or free a core"
    return f"the engine was late ({which} {duration(late_ns)}): {advice}"


def _actual(metric: str, measured: LoadTotals) -> float | None:
    counts, response = measured.counts, measured.response
    if metric in ("errors", "achieved"):
        # Connections that the engine's own side could not open never reached the server.
        part = counts.outcomes.errors - counts.exhausted if metric == "errors" else measured.answered
        return part / counts.due if counts.due else None
    if metric == "max":
        return float(response.max_ns) if response.count else None
    share = QUANTILE_OF[Metric(metric)]
    enough = response.count >= _FEWEST and enough_beyond(response.count, share)
    return float(response.quantile_ns(share)) if enough else None


def _too_few(objective: Objective, response: Histogram) -> JudgedObjective:
    """Too few requests fix no percentile; half of them beyond its limit may miss it all the same."""
    beyond = share_beyond(response, objective.limit)
    if response.count and surely_missed(beyond, 1 - DEPTHS.get(objective.metric, 0.0)):
        return JudgedObjective("missed", None, f"{percent(beyond)} of {response.count:,} requests took as long")
    return JudgedObjective("not known", None, f"{response.count:,} requests are too few for {objective.metric}")
