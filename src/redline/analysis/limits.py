"""The published form of a search: its answers and probes, with the curve, the knee and the overload test."""

from collections.abc import Mapping, Sequence

from redline.model import Histogram, Objective, ObjectiveState
from redline.model.failures import FirstFailure
from redline.model.limits import Beyond, CellLimit, LimitAnswer, LimitProbe, ProbePhase, ProbeVerdict
from redline.search import Evidence, Limit, Search
from redline.search.curve import curve, knee, quantile_known
from redline.search.evidence import overloaded
from redline.search.steps import Verdict, all_of, reason, shows, verdict

_STATES: Mapping[Verdict, ObjectiveState] = {"passed": "met", "failed": "missed", "unclear": "not known"}


def with_curve(limit: CellLimit, beyond: Beyond | str) -> CellLimit:
    """Add the curve and the knee of its probes to a search. `beyond`: the overload test, or why there was none."""
    points = curve(limit.probes)
    return limit.with_curve(points, knee(points), beyond)


def answer(limit: Limit, search: Search) -> LimitAnswer:
    """The answer for a set of objectives, with its conditions."""
    conditions = search.sets[limit.name]
    seen = [_verdict(evidence, conditions) for evidence in search.evidence if shows(evidence, *conditions)]
    return LimitAnswer(
        name=limit.name,
        passed_per_s=limit.low_per_s,
        failed_per_s=limit.high_per_s,
        confidence=limit.confidence,
        decided=limit.decided,
        method="queue" if limit.modelled else "single rates",
        binding=limit.binding,
        conditions=tuple(condition.text for condition in conditions),
        met_somewhere=any(verdict != "failed" for verdict in seen),
        missed_somewhere=any(verdict != "passed" for verdict in seen),
        reason=limit.reason,
        starts_differ=limit.starts_differ,
        probes_differ=limit.probes_differ,
    )


def probe(  # noqa: PLR0913
    evidence: Evidence,
    sets: Mapping[str, Sequence[Objective]],
    why: str = "",
    phase: ProbePhase = "search",
    *,
    fresh: bool = False,
    start: int = 0,
    failures: tuple[FirstFailure, ...] = (),
    recording: str = "",
) -> LimitProbe:
    """The published form of a probe; `why` is a message for users, `start` the number of the server's start."""
    response: Histogram = evidence.response
    return LimitProbe(
        phase=phase,
        fresh=fresh,
        start=start,
        rate_per_s=evidence.rate_per_s,
        seconds=evidence.seconds,
        offered_per_s=evidence.offered_per_s,
        answered_per_s=evidence.answered_per_s,
        errors=sum(slice_.errors for slice_ in evidence.slices),
        p50_ns=quantile_known(response, 0.5),
        p90_ns=quantile_known(response, 0.9),
        p99_ns=quantile_known(response, 0.99),
        p999_ns=quantile_known(response, 0.999),
        response=response,
        overloaded=overloaded(evidence),
        hopeless=evidence.hopeless,
        client=evidence.client,
        why=why,
        counts=tuple(_counts_for(name, evidence, conditions) for name, conditions in sets.items()),
        failures=failures,
        recording=recording,
    )


def _counts_for(name: str, evidence: Evidence, conditions: Sequence[Objective]) -> ProbeVerdict:
    """The verdict of a single probe on a set of objectives, and why: the first condition that decides it."""
    if not shows(evidence, *conditions):
        return ProbeVerdict(name=name, state="not known", why=evidence.client)
    alone = _verdict(evidence, conditions)
    deciding = next(condition for condition in conditions if verdict((evidence,), condition) == alone)
    return ProbeVerdict(name=name, state=_STATES[alone], why=reason(evidence, deciding))


def _verdict(evidence: Evidence, conditions: Sequence[Objective]) -> Verdict:
    """Whether a single probe met all conditions."""
    return all_of([verdict((evidence,), condition) for condition in conditions])
