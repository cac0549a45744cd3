"""Why a probe shows nothing about the server: what the load generator lacked, or the host took. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from redline.model import Finding, Grade, Objective, Traffic
from redline.quantities import percent
from redline.search.evidence import Evidence, overloaded
from redline.search.steps import too_many_errors, verdict
from redline.stats.objectives import CONNECTS, DEPTHS, LoadTotals, excused, late_text, nothing_left

SATURATED = 0.95
"""The busy share of the workers' time from which the engine may be what holds the rate down."""
WAITED = 0.05
"""The share of due requests that found all connections busy from which connections may be short."""
OCCUPIED = 0.5
"""The least average share of the connections' room in use: with less, connections were short for a moment only, such as
while the server collected its garbage. Then requests wait for it and not for a connection."""
UNMOVED = 1.5
"""The growth of service times from the calmest up to which a server is not slower: overload makes them far longer."""
FAILING = 0.05
"""The share of due requests that failed from which service times show nothing."""
_FEWEST_TIMES = 50
LACKED = 0.001
"""The tolerated share of due requests that the engine's own side could not connect for: they never reached a server."""
DISTURBANCES = ("engine-paused", "cpu-steal")
"""The kinds of findings that void a probe."""


def lacking(traffic: Traffic) -> str:
    """Says that the engine's own side had nothing left to connect with; empty when it had."""
    lacked = traffic.counts.exhausted
    if lacked <= LACKED * traffic.counts.due:
        return ""
    return f"{nothing_left(lacked)}: see `redline doctor`"


def busy_workers(traffic: Traffic, workers: int) -> str:
    """Says that the engine's workers had no time left; empty when they had."""
    busy = traffic.engine_cpu_ns / 1e9 / max(traffic.seconds * workers, 1e-9)
    advice = CONNECTS if traffic.counts.connects_often else "give -t more"
    return f"the engine was busy {percent(min(busy, 1.0))} of the time: {advice}" if busy > SATURATED else ""


def busy_connections(traffic: Traffic, connections: int, calm_ns: float | None, room: int | None = None) -> str:
    """Says that requests waited for a connection though the server was no slower than it is when it is calm.

    An overloaded server keeps connections busy by its own queue: then answers take far longer than `calm_ns`, the
    median when it was calm. Nothing is said where that is not known, or where most connections had nothing to do.
    """
    places = room or connections
    if not _waits(traffic) or calm_ns is None or _slower(traffic, places, calm_ns):
        return ""
    # What is under way on average is rate times time of service (Little).
    under_way = traffic.counts.completed / traffic.seconds * traffic.service.mean_ns / 1e9
    if traffic.service.count >= _FEWEST_TIMES and under_way < OCCUPIED * places:
        return ""
    return f"all {connections} connections were busy: give -c more"


def _slower(traffic: Traffic, room: int, calm_ns: float) -> bool:
    """Whether the server was slower than when it is calm; so it was where no answer came.

    All that was sent in the window may have been due before it. Then the answers give the mean time of service by
    Little's law, since as much was under way as there is room for; a mean may be twice a median.
    """
    if traffic.service.count >= _FEWEST_TIMES:
        return traffic.service.quantile_ns(0.5) > UNMOVED * calm_ns
    answered = traffic.counts.completed
    return answered == 0 or room * traffic.seconds * 1e9 / answered > 2 * UNMOVED * calm_ns


def late_engine(evidence: Evidence, traffic: Traffic, objectives: Sequence[Objective]) -> Evidence:
    """The evidence, marked where the engine was late by what may be why an objective was missed.

    A backlog that grew is the engine's only up to what falls due in the time by which it was late at most.
    """
    lateness, grew = traffic.lateness, overloaded(evidence)
    if grew and float(evidence.backlog().max(initial=0.0)) > lateness.max_ns / 1e9 * evidence.offered_per_s:
        return evidence
    made = LoadTotals.of_load(traffic)
    beyond = {
        objective.text: excused(objective, made) for objective in objectives if grew or _is_beyond(objective, made)
    }
    reasons = list(filter(None, beyond.values()))
    if grew and not any(objective.metric in DEPTHS for objective in objectives):
        reasons = [late_text(lateness.max_ns, "at most", traffic.counts)]
    if not reasons:
        return evidence
    missed = frozenset() if grew else frozenset(text for text, excuse in beyond.items() if not excuse)
    return replace(evidence, client=reasons[0], lengthens=True, missed=evidence.missed | missed, hopeless=False)


def errors_missed(
    evidence: Evidence, traffic: Traffic, objectives: Sequence[Objective], *, waited: bool = False
) -> frozenset[str]:
    """The objectives of errors that the server surely missed, however late or busy the engine was.

    `waited`: it may have been so busy, or so short of connections, that what ended by waiting ended so by its doing.
    """
    errors = sum(slice_.errors for slice_ in evidence.slices)
    not_its_own = traffic.counts.exhausted + (_by_waiting(traffic) if waited else 0)
    return frozenset(
        objective.text
        for objective in objectives
        if objective.metric == "errors"
        and errors - not_its_own >= objective.limit * evidence.due
        and too_many_errors(evidence, objective)
    )


def _is_beyond(objective: Objective, made: LoadTotals) -> bool:
    """Whether what was measured lies beyond the limit, be it by chance."""
    if objective.metric in DEPTHS:
        return made.response.quantile_ns(DEPTHS[objective.metric]) >= objective.limit
    return objective.metric == "achieved" and made.counts.completed <= objective.limit * made.counts.due


def stolen(findings: Sequence[Finding], *, some: bool = False) -> str:
    """Says that the host took much, or `some`, of the time of a load, or that the engine stood still; else empty."""
    for finding in findings:
        if finding.kind in DISTURBANCES and (some or finding.grade is not Grade.NOTE):
            return finding.message[:1].lower() + finding.message[1:].rstrip(".")
    return ""


def disturbed(
    evidence: Evidence, findings: Sequence[Finding], objectives: Sequence[Objective], *, patient: bool = False
) -> Evidence:
    """The evidence, marked as void where the host took much of the CPU time, and an objective was not surely met.

    What is taken only ever adds to a response time: what is met is met in spite of it. `patient`: the probe can be made
    again, so that some is enough, unless its backlog grew without bound: that is not of a few stalls. Where the load
    generator was the limit the host may be why, also by some. Errors are the server's in spite of it.
    """
    much, some = stolen(findings), stolen(findings, some=True)
    errors = evidence.missed & {objective.text for objective in objectives if objective.metric == "errors"}
    if evidence.client:
        missed = errors if much else evidence.missed
        return replace(evidence, client=much or evidence.client, missed=missed, passing=bool(some))
    taken = some if patient and not evidence.hopeless else much
    if not taken or all(verdict((evidence,), objective) == "passed" for objective in objectives):
        return evidence
    return replace(evidence, client=taken, lengthens=True, passing=True, hopeless=False)


def failing(traffic: Traffic) -> bool:
    """Whether so many requests ended wrong that service times say nothing: a refusal is fast."""
    return traffic.counts.outcomes.errors - _by_waiting(traffic) > FAILING * traffic.counts.due


def _by_waiting(traffic: Traffic) -> int:
    outcomes = traffic.counts.outcomes
    return outcomes.in_flight + outcomes.unsent + outcomes.timeout


def calmest_ns(traffic: Traffic, before_ns: int | None) -> int | None:
    """The least median service time of the probes so far in which hardly a request waited; None where all did.

    The first moments of one that is overloaded are no calm: its connections fill up meanwhile.
    """
    if _waits(traffic) or traffic.service.count < _FEWEST_TIMES:
        return before_ns
    median_ns = traffic.service.quantile_ns(0.5)
    return median_ns if before_ns is None else min(median_ns, before_ns)


def _waits(traffic: Traffic) -> bool:
    return traffic.counts.waited > WAITED * traffic.counts.due
