"""Why a probe shows nothing about the server: a limit of the load generator, or CPU time taken by the host. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from redline.model import Finding, Grade, Objective, Scenario, Traffic
from redline.quantities import percent
from redline.search.evidence import Evidence, overloaded
from redline.search.steps import counts_for, due_of, errors_of, state_of, too_many_errors
from redline.stats.objectives import BLURRED, CONNECTS, DEPTHS, LoadTotals, excused, late_text, nothing_left

SATURATED = 0.95
"""The share of the workers' time above which a busy engine may limit the rate."""
WAITED = 0.05
"""The share of due requests that waited for a connection above which connections may be too few."""
OCCUPIED = 0.5
"""The least average share of the connections' room in use. With less, connections were short only for a moment, such as
during a garbage collection; requests then wait for the server, not for a connection."""
UNMOVED = 1.5
"""The growth of service times over the calmest probe up to which a server is no slower: overload adds far more."""
FAILING = 0.05
"""The share of failed due requests above which service times show nothing."""
_FEWEST_TIMES = 50
LACKED = 0.001
"""The tolerated share of due requests that never reached a server because the engine's side could not connect."""
DISTURBANCES = ("engine-paused", "cpu-steal")
"""The kinds of findings that void a probe."""


def lacking(traffic: Traffic) -> str:
    """A message if the engine's side ran out of ports, descriptors or memory; otherwise empty."""
    lacked = traffic.counts.exhausted
    if lacked <= LACKED * traffic.counts.due:
        return ""
    return f"{nothing_left(lacked)}: see `redline doctor`"


def busy_workers(traffic: Traffic, workers: int) -> str:
    """A message if the engine's workers had no time left; otherwise empty."""
    busy = traffic.engine_cpu_ns / 1e9 / max(traffic.seconds * workers, 1e-9)
    advice = CONNECTS if traffic.counts.connects_often else "give -t more"
    return f"the engine was busy {percent(min(busy, 1.0))} of the time: {advice}" if busy > SATURATED else ""


def busy_connections(traffic: Traffic, connections: int, calm_ns: float | None, room: int | None = None) -> str:
    """A message if requests waited for a connection although the server was no slower than under light load.

    An overloaded server keeps connections busy by its own queue; answers then take far longer than `calm_ns`, the
    median under light load. The message is empty if that is unknown, or if most connections were idle.
    """
    places = room or connections
    if not _waits(traffic) or calm_ns is None or _slower(traffic, places, calm_ns):
        return ""
    # The mean number of requests in flight is the rate times the service time (Little).
    under_way = traffic.counts.completed / traffic.seconds * traffic.service.mean_ns / 1e9
    if traffic.service.count >= _FEWEST_TIMES and under_way < OCCUPIED * places:
        return ""
    return f"all {connections} connections were busy: give -c more"


def busy_users(traffic: Traffic, users: int, calm_ns: float | None) -> str:
    """A message if journeys waited for users although the server was no slower than under light load.

    The wait is in the response times of their first steps, or they were never sent; it is in no service time.
    """
    unsent = traffic.counts.outcomes.unsent > WAITED * traffic.counts.due
    waits = unsent or traffic.response.mean_ns > 2 * traffic.service.mean_ns
    if not waits or calm_ns is None or _slower(traffic, users, calm_ns):
        return ""
    return f"all {users} users were under way: give -c more, or `users` of the journey"


def _slower(traffic: Traffic, room: int, calm_ns: float) -> bool:
    """Whether the server was slower than under light load, or gave no answer.

    All requests sent in the window may have been due before it. The number of answers then gives the mean service time
    by Little's law, since all places were in use; a mean may be twice a median.
    """
    if traffic.service.count >= _FEWEST_TIMES:
        return traffic.service.quantile_ns(0.5) > UNMOVED * calm_ns
    answered = traffic.counts.completed
    return answered == 0 or room * traffic.seconds * 1e9 / answered > 2 * UNMOVED * calm_ns


def late_engine(
    evidence: Evidence, traffic: Traffic, objectives: Sequence[Objective], scenario: Scenario | None = None
) -> Evidence:
    """The evidence, marked if the engine's lateness may be why an objective was missed.

    The engine explains a backlog only up to the requests that fall due within its largest lateness.
    """
    lateness, grew = traffic.lateness, overloaded(evidence)
    if grew and float(evidence.backlog().max(initial=0.0)) > lateness.max_ns / 1e9 * evidence.offered_per_s:
        return evidence
    made = LoadTotals.of_load(traffic, scenario)
    judged = [(objective, _totals_for(objective, made)) for objective in objectives]
    beyond = {
        objective.text: excused(objective, totals)
        for objective, totals in judged
        if grew or _is_beyond(objective, totals) or excused(objective, totals) == BLURRED
    }
    reasons = list(filter(None, beyond.values()))
    if grew and not any(objective.metric in DEPTHS for objective in objectives):
        reasons = [late_text(lateness.max_ns, "at most", traffic.counts)]
    if not reasons:
        return evidence
    missed = frozenset() if grew else frozenset(text for text, excuse in beyond.items() if not excuse)
    return replace(evidence, client=reasons[0], lengthens=True, missed=evidence.missed | missed, hopeless=False)


def _totals_for(objective: Objective, made: LoadTotals) -> LoadTotals:
    """The totals of the requests that an objective is about; of all, where they are not known by request."""
    of_request = None if objective.request is None else made.of_request(objective.request)
    return made if of_request is None else of_request


def errors_missed(
    evidence: Evidence, traffic: Traffic, objectives: Sequence[Objective], *, waited: bool = False
) -> frozenset[str]:
    """The objectives for errors that the server surely missed, however late or busy the engine was.

    `waited`: the engine may have been so busy, or so short of connections, that it caused timeouts and unfinished
    requests.
    """
    not_its_own = traffic.counts.exhausted + (_by_waiting(traffic) if waited else 0)
    return frozenset(
        objective.text
        for objective in objectives
        if objective.metric == "errors"
        and counts_for(evidence, objective)
        and errors_of(evidence, objective) - not_its_own >= objective.limit * due_of(evidence, objective)
        and too_many_errors(evidence, objective)
    )


def _is_beyond(objective: Objective, made: LoadTotals) -> bool:
    """Whether the measured value lies beyond the limit, perhaps by chance."""
    if objective.metric in DEPTHS:
        about = made.of_times(objective.times) if objective.times else made
        return about is not None and about.response.quantile_ns(DEPTHS[objective.metric]) >= objective.limit
    return objective.metric == "achieved" and made.counts.completed <= objective.limit * made.counts.due


def stolen(findings: Sequence[Finding], *, some: bool = False) -> str:
    """A message if the host took much, or `some`, of a load's time, or the engine stood still; otherwise empty."""
    for finding in findings:
        if finding.kind in DISTURBANCES and (some or finding.grade is not Grade.NOTE):
            return finding.message[:1].lower() + finding.message[1:].rstrip(".")
    return ""


def disturbed(
    evidence: Evidence, findings: Sequence[Finding], objectives: Sequence[Objective], *, patient: bool = False
) -> Evidence:
    """The evidence, marked as void if the host took much of the CPU time and an objective was not surely met.

    Stolen time only lengthens response times, so an objective that is met stays met. `patient`: the probe can be
    repeated, so some stolen time is enough, unless the backlog grew without bound, which a few stalls do not cause. If
    the load generator was the limit, even some stolen time may be the cause. Errors are still the server's.
    """
    much, some = stolen(findings), stolen(findings, some=True)
    errors = evidence.missed & {objective.text for objective in objectives if objective.metric == "errors"}
    if evidence.client:
        missed = errors if much else evidence.missed
        return replace(evidence, client=much or evidence.client, missed=missed, passing=bool(some))
    taken = some if patient and not evidence.hopeless else much
    if not taken or all(state_of((evidence,), objective) == "met" for objective in objectives):
        return evidence
    return replace(evidence, client=taken, lengthens=True, passing=True, hopeless=False)


def failing(traffic: Traffic) -> bool:
    """Whether so many requests failed that service times say nothing: refusals are fast."""
    return traffic.counts.outcomes.errors - _by_waiting(traffic) > FAILING * traffic.counts.due


def _by_waiting(traffic: Traffic) -> int:
    outcomes = traffic.counts.outcomes
    return outcomes.in_flight + outcomes.unsent + outcomes.timeout


def calmest_ns(traffic: Traffic, before_ns: int | None) -> int | None:
    """The least median service time of the probes so far in which hardly any request waited; None if there is none.

    The first moments of an overloaded probe do not count as calm: its connections are still filling up.
    """
    if _waits(traffic) or traffic.service.count < _FEWEST_TIMES:
        return before_ns
    median_ns = traffic.service.quantile_ns(0.5)
    return median_ns if before_ns is None else min(median_ns, before_ns)


def _waits(traffic: Traffic) -> bool:
    """Whether requests waited for a connection, or journeys for a user until the end."""
    most = WAITED * traffic.counts.due
    return traffic.counts.waited > most or traffic.counts.outcomes.unsent > most
