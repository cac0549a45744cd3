"""Whether single probes meet objectives, without a model, and the bounds that follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from redline.model import Histogram, Objective, ObjectiveState
from redline.model.limits import FAR_BELOW
from redline.quantities import duration
from redline.search.evidence import (
    Evidence,
    Floats,
    RequestSeen,
    answering,
    batch_means,
    by_rate,
    growth,
    overloaded,
    slows,
    stall_ns,
)
from redline.stats.distributions import normal_quantile, t_quantile
from redline.stats.objectives import shows_none, surely_missed

QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}

_BATCHES = 8
_SURE = 0.995
_GROWING = 3.0
_FAR = 4.0
_FEWEST = 30
"""With fewer requests, an exponential tail that misses a limit seems far below it more than once in 200 times."""


@dataclass(frozen=True)
class TriedRate:
    """Whether all probes at a rate meet a set of objectives."""

    rate_per_s: float
    state: ObjectiveState
    probes: int


def steps(evidence: Sequence[Evidence], *objectives: Objective) -> tuple[TriedRate, ...]:
    """The rates that were tried, ascending, and whether all of these objectives are met there.

    Only probes that say something about every objective count. Where none failed, requests at the next higher
    rates count too, up to a rate at which some failed: less load makes no errors.
    """
    tried: list[TriedRate] = []
    above = dict.fromkeys(objectives, 0)
    groups = by_rate((probe for probe in evidence if shows(probe, *objectives)), lambda probe: probe.rate_per_s)
    for group in map(tuple, reversed(groups)):
        states = [state_of(group, objective, above[objective]) for objective in objectives]
        tried.insert(0, TriedRate(group[0].rate_per_s, joint(states), len(group)))
        fails = any(map(overloaded, group))
        for objective in objectives:
            none = not fails and _none_failed(group, objective)
            above[objective] = above[objective] + _due(group, objective) if none else 0
    return tuple(tried)


def shows(evidence: Evidence, *objectives: Objective) -> bool:
    """Whether a probe says something about the server for all of these objectives: not if the client limited it.

    A client that only lengthens response times is an exception: objectives that are met stay met, and a set with an
    objective that was missed by more than that is missed.
    """
    if not evidence.client or any(objective.text in evidence.missed for objective in objectives):
        return True
    return evidence.lengthens and all(state_of((evidence,), objective) == "met" for objective in objectives)


def joint(states: Sequence[ObjectiveState]) -> ObjectiveState:
    """The state of a set of objectives."""
    if "missed" in states:
        return "missed"
    return "not known" if "not known" in states else "met"


@lru_cache(maxsize=1024)
def state_of(probes: tuple[Evidence, ...], objective: Objective, above: int = 0) -> ObjectiveState:
    """Whether all probes at a rate meet an objective; `above`: requests at higher rates, none of which failed.

    A rate misses it if its queue only grows, whatever the response times so far, or if half of all requests are beyond
    a limit that allows 1%, however short the probes are. Probes that contradict each other decide nothing: a probe was
    unlucky, or the server was not yet warm.
    """
    if len(probes) > 1 and {"met", "missed"} <= {state_of((probe,), objective) for probe in probes}:
        return "not known"
    if any(overloaded(probe) for probe in probes):
        return "missed"
    probes = tuple(probe for probe in probes if counts_for(probe, objective))
    if not probes:
        return "not known"
    if objective.metric.split()[-1] in ("max", "aborted"):
        return "missed" if any(_is_beyond(probe, objective) for probe in probes) else "met"
    if (
        surely_missed(_wrong_share(probes, objective), _allowed(objective))
        or (far := _far(probes, objective, above)) <= -1
    ):
        return "missed"
    growing = any(_grows(probe) for probe in probes)
    return "met" if far >= 1 and not growing else "not known"


def _grows(evidence: Evidence) -> bool:
    """Whether its backlog grew at the end."""
    grew = not evidence.by_users and growth(answering(evidence.timed)).errors > _GROWING
    return grew and (evidence.speed is None or slows(evidence))


def _is_beyond(evidence: Evidence, objective: Objective) -> bool:
    """Whether a single request, or an aborted probe, is enough to miss the objective."""
    if objective.metric == "aborted":
        return bool(evidence.aborted)
    return _response(evidence, objective).max_ns >= objective.limit


def _is_of_part(objective: Objective) -> bool:
    """Whether it is about what is not counted over time: one of several requests, or messages."""
    return objective.request is not None or bool(objective.times) or objective.metric == "goodput"


def _part(evidence: Evidence, objective: Objective) -> RequestSeen | None:
    """What was seen of that; None if it is not known."""
    if objective.times or objective.metric == "goodput":
        return evidence.messages.get((objective.request, objective.times or objective.metric))
    return evidence.requests.get(objective.request or "")


_NONE_SEEN = RequestSeen(0, 0, 0, Histogram())


def counts_for(evidence: Evidence, objective: Objective) -> bool:
    """Whether any request fell due that the objective is about, as far as is known."""
    if not _is_of_part(objective):
        return evidence.due > 0
    return (_part(evidence, objective) or _NONE_SEEN).due > 0


def due_of(evidence: Evidence, objective: Objective) -> int:
    """Requests that fell due of those that an objective is about."""
    return (_part(evidence, objective) or _NONE_SEEN).due if _is_of_part(objective) else evidence.due


def _due(probes: Sequence[Evidence], objective: Objective) -> int:
    return sum(due_of(probe, objective) for probe in probes)


def errors_of(evidence: Evidence, objective: Objective) -> int:
    """Errors of the requests that an objective is about."""
    if _is_of_part(objective):
        return (_part(evidence, objective) or _NONE_SEEN).errors
    return sum(slice_.errors for slice_ in evidence.slices)


def _response(evidence: Evidence, objective: Objective) -> Histogram:
    return (_part(evidence, objective) or _NONE_SEEN).response if _is_of_part(objective) else evidence.response


def _quantile(objective: Objective) -> float | None:
    """The percentile that it is about, if it is about one."""
    return QUANTILES.get(objective.metric.split()[-1])


def too_many_errors(evidence: Evidence, objective: Objective) -> bool:
    """Whether a probe surely missed an objective for errors by its errors alone, whatever its backlog did."""
    if not counts_for(evidence, objective):
        return False
    share = _wrong_share((evidence,), objective)
    return surely_missed(share, _allowed(objective)) or _far((evidence,), objective) <= -1


def reason(evidence: Evidence, objective: Objective) -> str:
    """Why a probe counts as it does, if its numbers alone do not say so."""
    if not shows(evidence, objective):
        return evidence.client
    state = state_of((evidence,), objective)
    if state == "missed":
        said = evidence.aborted if objective.metric == "aborted" else ""
        said = f"by {objective.text}" if objective.request is not None else said
        if overloaded(evidence):
            return (
                f"it answered nothing for {duration(pause)}"
                if (pause := stall_ns(evidence))
                else "its backlog only grew"
            )
        return said
    if state == "met":
        return f"in spite of this: {evidence.client}" if evidence.client else ""
    return _unclear(evidence, objective)


def _unclear(evidence: Evidence, objective: Objective) -> str:
    if not evidence.due:
        return "nothing fell due"
    if not counts_for(evidence, objective):
        if objective.times or objective.metric == "goodput":
            return "no conversation had such messages"
        return "no such request fell due" if objective.request in evidence.requests else "it was not counted by request"
    if _far((evidence,), objective) >= 1:
        return "its backlog grew at the end"
    if _quantile(objective) is not None or _none_failed((evidence,), objective):
        return "too few requests to be sure: probe for longer, with -d"
    return "too near to tell"


def without_stalls(tried: Sequence[TriedRate]) -> tuple[TriedRate, ...]:
    """The rates without those that a single probe missed far below a rate that passed: a stall, until it repeats."""
    passed = max((step.rate_per_s for step in tried if step.state == "met"), default=0.0)
    return tuple(
        step for step in tried if step.state != "missed" or step.probes > 1 or step.rate_per_s > FAR_BELOW * passed
    )


def bounds(tried: Sequence[TriedRate]) -> tuple[float | None, float | None]:
    """The [highest rate that passed, lowest that failed]; if these contradict each other, the bounds widen again.

    A pass counts only below every failure that is decisive, and a failure only above every pass: the rates between are
    open.
    """
    tried = without_stalls(tried)
    passes = [step.rate_per_s for step in tried if step.state == "met"]
    fails = [step.rate_per_s for step in tried if step.state == "missed"]
    low = [rate for rate in passes if not fails or rate < min(fails)]
    high = [rate for rate in fails if not passes or rate > max(passes)]
    return (max(low) if low else None), (min(high) if high else None)


def contradicted(tried: Sequence[TriedRate]) -> list[TriedRate]:
    """The rates that failed although a higher rate passed, then those that passed although a lower rate failed."""
    passes = [step for step in tried if step.state == "met"]
    fails = [step for step in tried if step.state == "missed"]
    wrong_fails = [step for step in fails if any(step.rate_per_s < pass_.rate_per_s for pass_ in passes)]
    return wrong_fails + [step for step in passes if any(step.rate_per_s > fail.rate_per_s for fail in fails)]


def _allowed(objective: Objective) -> float:
    """The share of requests that may be too slow, fail, or be missing."""
    if (q := _quantile(objective)) is not None:
        return 1 - q
    return objective.limit if objective.below else 1 - objective.limit


def _wrong_share(probes: Sequence[Evidence], objective: Objective) -> float:
    """The share of requests that took too long, or failed."""
    due = max(1, _due(probes, objective))
    if _quantile(objective) is not None:
        return sum(_slow(_response(evidence, objective), objective.limit) for evidence in probes) / due
    if objective.metric in ("errors", "goodput"):
        return sum(errors_of(probe, objective) for probe in probes) / due
    return 0.0


def _far(probes: Sequence[Evidence], objective: Objective, above: int = 0) -> float:
    """The signed distance from the objective: surely met from 1 on, surely missed from -1 down."""
    if objective.metric == "achieved":
        return _achieved(probes, objective)
    if _quantile(objective) is not None and all(_far_below(probe, objective) for probe in probes):
        return float("inf")
    # The share of requests that are too slow, or wrong.
    allowed = _allowed(objective)
    if _none_failed(probes, objective):
        return float(shows_none(_due(probes, objective) + above, allowed))
    if _is_of_part(objective):
        error = _least_error(probes, objective, allowed)
        return float((allowed - _wrong_share(probes, objective)) / (error * t_quantile(_SURE, _BATCHES - 1)))
    within = np.concatenate([_batches(probe, objective) for probe in probes])
    if len(within) < 2:
        return 0.0  # a probe that was aborted at once
    error = max(float(within.std(ddof=1)) / np.sqrt(len(within)), _least_error(probes, objective, allowed))
    return float((allowed - within.mean()) / (error * t_quantile(_SURE, len(within) - 1)))


def _none_failed(probes: Sequence[Evidence], objective: Objective) -> bool:
    return objective.metric in ("errors", "goodput") and not any(errors_of(probe, objective) for probe in probes)


def _far_below(evidence: Evidence, objective: Objective) -> bool:
    """Whether all times are below the limit, the percentile by four errors of a clustered exponential tail."""
    q, due = _quantile(objective) or 0.0, due_of(evidence, objective)
    if due < _FEWEST:
        return False
    beyond = due * (1 - q)
    error = np.sqrt(_clusters(evidence, min(0.9, q)) / beyond) / np.log(1 / (1 - q))
    response = _response(evidence, objective)
    percentile, most = response.quantile_ns(q), response.max_ns
    return bool(most < objective.limit and percentile * (1 + _FAR * error) < objective.limit)


def _achieved(probes: Sequence[Evidence], objective: Objective) -> float:
    """The signed distance of the answered share, late answers included, without answers to the warm-up's requests."""
    due = sum(float(probe.counted("due").sum()) for probe in probes)
    answered = sum(float(probe.all_counted("answered").sum()) for probe in probes)
    left_over = sum(max(0.0, -float(probe.backlog().min(initial=0.0))) for probe in probes)
    missing = due - answered + left_over
    chance = np.sqrt(max(missing, _allowed(objective) * due, 1.0))
    return float((_allowed(objective) * due - missing) / (chance * normal_quantile(_SURE)))


def _batches(evidence: Evidence, objective: Objective) -> Floats:
    """The share by stretches of the probe, so that correlated neighbours are not counted twice."""
    if _quantile(objective) is not None:
        return _beyond(evidence, objective.limit)
    return batch_means(evidence.all_counted("errors"), _BATCHES) / max(float(evidence.counted("due").mean()), 1.0)


@lru_cache(maxsize=1024)
def _beyond(evidence: Evidence, limit_ns: float) -> Floats:
    """The shares of requests beyond the limit, by stretch; outcomes known only at the end are in the last."""
    slow = np.array([_slow(slice_.response, limit_ns) for slice_ in evidence.timed])
    slow[-1] += sum(_slow(slice_.response, limit_ns) for slice_ in evidence.slices if slice_.seconds <= 0)
    return batch_means(slow, _BATCHES) / max(float(evidence.counted("due").mean()), 1.0)


def _slow(response: Histogram, limit_ns: float) -> float:
    values, counts = response.buckets()
    return float(counts[values >= limit_ns].sum())


def _least_error(probes: Sequence[Evidence], objective: Objective, allowed: float) -> float:
    """The least standard error of a share of `allowed` among this many requests: a sample without any proves little.

    Slow requests come in clusters. The variance of the counts of the probe's own slowest tenth shows their size. One
    of several requests is not counted over time: the clusters of all stand for its own, which are hardly larger.
    """
    requests = max(1, _due(probes, objective))
    clusters = 1.0
    if objective.metric in ("errors", "goodput") and _is_of_part(objective):
        clusters = float(np.mean([_clusters_of_errors(probe) for probe in probes]))
    if (q := _quantile(objective)) is not None:
        clusters = float(np.mean([_clusters(probe, min(0.9, q)) for probe in probes]))
    return float(np.sqrt(max(allowed, 1 / requests) * clusters / requests))


def _clusters(evidence: Evidence, q: float) -> float:
    return _clustered(evidence, _beyond(evidence, float(evidence.response.quantile_ns(q))))


def _clusters_of_errors(evidence: Evidence) -> float:
    shares = batch_means(evidence.all_counted("errors"), _BATCHES) / max(float(evidence.counted("due").mean()), 1.0)
    return _clustered(evidence, shares)


def _clustered(evidence: Evidence, shares: Floats) -> float:
    """How much more the shares of successive stretches differ than those of independent requests do."""
    if len(shares) < 2:
        return float(_BATCHES)
    in_each = evidence.due / min(_BATCHES, len(evidence.timed))
    return max(1.0, float(shares.var(ddof=1)) * in_each / max(float(shares.mean()), 1e-9))
