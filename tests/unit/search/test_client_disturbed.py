"""Why a probe shows nothing about the server: what the load generator lacked, or the host took."""

from dataclasses import dataclass, replace

import pytest

from redline.findings import RULES
from redline.limits.search_state import SearchState
from redline.model import (
    Counts,
    Finding,
    Grade,
    Histogram,
    Objective,
    Outcomes,
    Traffic,
)
from redline.ports import Drive
from redline.search import Evidence, Proposal
from redline.search.client import DISTURBANCES, busy_connections, busy_workers, disturbed, errors_missed, late_engine
from redline.search.steps import shows, steps
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD
from tests.fakes.probed import S, ScriptedDriver, cell, evidence_of, interval, prober, shown, traffic
from tests.fakes.searched import plan_of


def stolen(grade: Grade) -> Finding:
    fields = {"message": "The host took 20% of it.", "advice": "Take another one.", "cell_id": "cell"}
    return Finding(kind="cpu-steal", grade=grade, **fields)


def test_a_probe_that_missed_while_the_host_took_the_cores_shows_nothing() -> None:
    limits = parse_objectives("p99 < 20ms, errors < 0.1%")
    met, missed = (evidence_of(traffic(replace(GOOD, response_ns=ns))) for ns in (1e6, 30e6))
    evidence = disturbed(missed, [stolen(Grade.WARN)], limits)
    assert evidence.client == "the host took 20% of it"
    looser, tighter = parse_objectives("p99 < 100ms, p90 < 20ms")
    assert (shows(evidence, looser), shows(evidence, tighter)) == (True, False), "what it met it met in spite of that"
    assert not disturbed(replace(missed, hopeless=True), [stolen(Grade.WARN)], limits).hopeless
    assert disturbed(missed, [stolen(Grade.NOTE)], limits) is missed, "too little to matter"
    assert disturbed(met, [stolen(Grade.WARN)], limits) is met, "met in spite of it"
    assert disturbed(evidence, [stolen(Grade.WARN)], limits).client == evidence.client


def test_what_the_host_may_have_done_may_pass() -> None:
    limits = parse_objectives("p99 < 20ms")
    missed = evidence_of(traffic(replace(GOOD, response_ns=30e6)))
    late = replace(missed, client="the engine was late")
    assert disturbed(missed, [stolen(Grade.WARN)], limits).passing
    few = disturbed(late, [stolen(Grade.NOTE)], limits)
    assert (few.passing, few.client) == (True, "the engine was late"), "a few stalls are enough to be late"
    much = disturbed(late, [stolen(Grade.WARN)], limits)
    assert (much.passing, much.client) == (True, "the host took 20% of it")
    assert not disturbed(late, [], limits).passing, "the engine's own fault stays"


def test_while_there_is_patience_some_of_the_time_is_enough() -> None:
    limits = parse_objectives("p99 < 20ms")
    met, missed = (evidence_of(traffic(replace(GOOD, response_ns=ns))) for ns in (1e6, 30e6))
    some = disturbed(missed, [stolen(Grade.NOTE)], limits, patient=True)
    assert (some.passing, some.client) == (True, "the host took 20% of it")
    assert disturbed(met, [stolen(Grade.NOTE)], limits, patient=True) is met
    hopeless = replace(missed, hopeless=True)
    assert disturbed(hopeless, [stolen(Grade.NOTE)], limits, patient=True) is hopeless, "not of a few stalls"
    assert disturbed(hopeless, [stolen(Grade.WARN)], limits, patient=True).passing


BUSY = replace(GOOD, response_ns=6e6)
"""At 1,000/s, six of eight connections are in use on average."""


def test_an_engine_that_is_always_busy_is_the_limit() -> None:
    busy = traffic().model_copy(update={"engine_cpu_ns": round(traffic().seconds * 0.99 * S)})
    assert busy_workers(busy, 1) == "the engine was busy 99% of the time: give -t more"
    assert not busy_workers(busy, 2)
    counts = busy.counts.model_copy(update={"reconnects": busy.counts.due})
    connecting = busy.model_copy(update={"counts": counts})
    assert busy_workers(connecting, 1).startswith("the engine was busy 99% of the time: it opens a connection for")


def test_busy_connections_are_the_limit_where_the_server_is_as_fast_as_ever() -> None:
    waited = traffic(BUSY, waited=traffic().counts.due // 10)
    calm_ns = waited.service.quantile_ns(0.5)
    assert busy_connections(waited, 8, calm_ns) == "all 8 connections were busy: give -c more"
    assert not busy_connections(waited, 8, calm_ns // 2), "an overloaded server"
    assert not busy_connections(waited, 8, None), "nobody knows how fast it is when it is calm"
    assert not busy_connections(traffic(BUSY, waited=1), 8, calm_ns), "too few"


def test_connections_that_were_short_for_a_moment_only_are_not_the_limit() -> None:
    """The server paused once: a tenth found no connection, and on average half of them had nothing to do."""
    paused = traffic(BUSY, waited=traffic().counts.due // 10)
    under_way = paused.counts.completed / paused.seconds * paused.service.mean_ns / 1e9
    calm_ns = paused.service.quantile_ns(0.5)
    assert busy_connections(paused, 8, calm_ns, room=int(1.9 * under_way))
    assert not busy_connections(paused, 8, calm_ns, room=int(2.1 * under_way) + 1)


@pytest.mark.parametrize(
    ("answered", "room", "says"),
    [(100, 8, ""), (0, 8, ""), (7000, 8, "all 8 connections were busy: give -c more"), (7000, 80, "")],
)
def test_where_only_what_was_due_before_was_sent_the_rate_of_answers_says(answered: int, room: int, says: str) -> None:
    """8 connections that are always busy and answer 100 in a second take 80 ms for each, and 7,000 take 1.1 ms."""
    waited = traffic(waited=traffic().counts.due)
    counts = waited.counts.model_copy(update={"completed": round(answered * waited.seconds)})
    waited = waited.model_copy(update={"service": Histogram(), "counts": counts})
    assert busy_connections(waited, 8, 1e6, room) == says


def test_what_the_engine_could_not_connect_is_no_fault_of_the_server() -> None:
    driver = ScriptedDriver([interval(n, due=100, done=100) for n in range(50)], "complete", 1)
    driver.counts = Counts(due=5000, completed=4000, outcomes=Outcomes(ok=4000, connect=1000), exhausted=1000)
    evidence = shown(prober(driver).probe(Proposal(1000, ""), "search"))
    assert evidence.client.startswith("no port, descriptor or memory was left on the engine's side for 1,000 requests")
    driver.counts = Counts(due=5000, completed=4000, outcomes=Outcomes(ok=4000, connect=1000), exhausted=5)
    assert not shown(prober(driver).probe(Proposal(1000, ""), "search")).client, "hardly any"


@dataclass
class Full(ScriptedDriver):
    """A driver whose connections are all busy from the second probe on, or from the first."""

    calm: int = 1
    resets: int = 0

    def drive(self, drive: Drive) -> Traffic:
        found = super().drive(drive)
        waits = {"waited": 0 if len(self.drives) <= self.calm else 99}
        counts = found.counts.model_copy(
            update={"due": 100, "outcomes": Outcomes(ok=100 - self.resets, reset=self.resets), **waits}
        )
        service = Histogram.of([150e6] * 100)  # 40/s: six under way
        return found.model_copy(update={"counts": counts, "service": service})


def test_how_fast_a_calm_server_is_comes_from_probes_without_a_wait() -> None:
    slices = [interval(n, due=4, done=4) for n in range(50)]
    proposal, busy = Proposal(40, ""), "all 8 connections were busy: give -c more"

    def clients(driver: ScriptedDriver, probes: int) -> list[str]:
        probing = prober(driver)
        made = [probing.probe(proposal, "search") for _ in range(probes)]
        return [shown(*made[: n + 1]).client for n in range(probes)]

    assert clients(Full(slices, "complete", 1), 2) == ["", busy]
    warmer, probe = (prober(Full(slices, "complete", 1, calm=calm)).probe(proposal, "search") for calm in (1, 0))
    assert shown(warmer.model_copy(update={"phase": "approach"}), probe).client == busy, "the load before the first"
    assert clients(Full(slices, "complete", 1, calm=0), 1) == [""], "it has seen no calm probe"
    assert clients(Full(slices, "complete", 1, resets=10), 2) == ["", ""], "a refusal is fast"


LIMITS = parse_objectives("p99 < 20ms, errors < 1%")


def judged(found: Traffic, *, cut: bool = False) -> Evidence:
    """The evidence of such a probe for p99 < 20 ms and errors < 1%."""
    return late_engine(replace(evidence_of(found), hopeless=cut), found, LIMITS)


def late_traffic(response_ms: float, service_ms: float = 1, late_ms: float = 25) -> Traffic:
    """A probe with these times, each of all requests."""
    times = {"response": response_ms, "service": service_ms, "lateness": late_ms}
    found = traffic(replace(GOOD, lateness_ns=late_ms * 1e6))

    def alike(due: int) -> dict[str, Histogram]:
        return {name: Histogram.of([ms * 1e6] * due) for name, ms in times.items()}

    intervals = tuple(each.model_copy(update=alike(each.counts.due)) for each in found.intervals)
    return found.model_copy(update={**alike(found.counts.due), "intervals": intervals})


def test_a_late_engine_is_the_limit_where_the_server_alone_met_it() -> None:
    late = judged(late_traffic(30))
    assert "pin it" in late.client
    slow = late_traffic(30)
    counts = slow.counts.model_copy(update={"reconnects": slow.counts.due})
    connecting = judged(slow.model_copy(update={"counts": counts})).client
    assert connecting.startswith("the engine was late")
    assert "pin it" not in connecting
    assert (late.lengthens, late.missed) == (True, frozenset())
    assert not judged(late_traffic(30, service_ms=30)).client, "the server's own fault"
    assert not judged(late_traffic(1)).client, "met in spite of it"
    assert judged(late_traffic(1), cut=True).client, "its backlog grew, and may have been the engine's"
    assert not judged(late_traffic(30, late_ms=0.1)).client


@pytest.mark.parametrize(("answered", "excused"), [(0.94, True), (0.95, True), (0.951, False)])
def test_a_late_engine_excuses_answers_that_are_too_few(answered: float, *, excused: bool) -> None:
    late = late_traffic(300, late_ms=250)
    few = late.counts.model_copy(update={"due": 1000, "completed": round(answered * 1000)})
    probe = late.model_copy(update={"counts": few})
    judged_by_rate = late_engine(evidence_of(probe), probe, parse_objectives("achieved > 95%"))
    assert bool(judged_by_rate.client) is excused


def test_a_client_that_is_late_by_little_does_not_excuse_a_queue_that_its_pool_hides() -> None:
    """86,000 requests due, 43,577 answered, p99 769 ms and service times of 6 ms: it was late by 2.9 ms."""
    hidden = late_traffic(769, service_ms=6, late_ms=2.9)
    assert not judged(hidden).client
    assert not judged(hidden, cut=True).client


def growing(found: Traffic, share: float) -> Traffic:
    """The same with this share of what falls due left over in every slice."""
    fewer = [
        each.counts.model_copy(update={"completed": round((1 - share) * each.counts.due), "outcomes": Outcomes()})
        for each in found.intervals
    ]
    pairs = zip(found.intervals, fewer, strict=True)
    return found.model_copy(
        update={"intervals": tuple(each.model_copy(update={"counts": counts}) for each, counts in pairs)}
    )


@pytest.mark.parametrize("text", ["p99 < 20ms", "errors < 1%", "p99 < 3s, errors < 1%"])
def test_a_backlog_is_the_engines_only_as_far_as_it_was_late(text: str) -> None:
    objectives = parse_objectives(text)
    found = growing(late_traffic(15, service_ms=6, late_ms=10), 0.5)
    evidence = replace(evidence_of(found), hopeless=True)
    assert late_engine(evidence, found, objectives) is evidence


def test_what_the_server_missed_by_more_than_the_lateness_counts_beside_what_it_may_not_have_missed() -> None:
    objectives = parse_objectives("p99 < 20ms, p90 < 2ms")
    found = late_traffic(30, service_ms=3)
    late = late_engine(evidence_of(found), found, objectives)
    assert late.missed == {"p90 < 2ms"}
    assert [shows(late, each) for each in objectives] == [False, True]
    assert shows(late, *objectives)


def seen(found: Traffic, limits: tuple[Objective, ...]) -> Evidence:
    """The evidence of a probe with that traffic for these objectives."""
    recording = prober(ScriptedDriver([], "complete", 1)).probe(Proposal(1000, ""), "search")
    made = recording.model_copy(update={"recording": recording.recording.model_copy(update={"traffic": found})})
    plan = plan_of(cell(), objectives=limits)
    evidence = SearchState(plan, cell()).add(made)
    assert evidence is not None
    return evidence


@pytest.mark.parametrize(("share", "missed"), [(0.5, True), (0.04, True), (0.0, False)])
def test_a_busy_engine_hides_no_errors(share: float, missed: bool) -> None:
    """Not even for a server that fails half of all requests."""
    limits = parse_objectives("p99 < 20ms, errors < 1%")
    found = with_errors(traffic(), share).model_copy(update={"engine_cpu_ns": round(traffic().seconds * S)})
    evidence = seen(found, limits)
    assert evidence.client.startswith("the engine was busy")
    assert evidence.missed == ({"errors < 1%"} if missed else frozenset())
    assert steps([evidence], *limits)[0].state == ("missed" if missed else "met")


def test_a_busy_engine_may_be_why_requests_timed_out() -> None:
    found = with_errors(traffic(), 0.5, kind="timeout")
    busy = found.model_copy(update={"engine_cpu_ns": round(found.seconds * S)})
    limits = parse_objectives("errors < 1%")
    assert not seen(busy, limits).missed
    assert steps([seen(found, limits)], *limits)[0].state == "missed"


def with_errors(found: Traffic, share: float, *, exhausted: int = 0, kind: str = "reset") -> Traffic:
    """The same with this share of its requests reset, or ended by another kind of error, in every interval."""

    def failed(counts: Counts) -> Counts:
        wrong = round(share * counts.due)
        outcomes = Outcomes.model_validate({"ok": counts.due - wrong, kind: wrong})
        return counts.model_copy(update={"completed": counts.due - wrong, "outcomes": outcomes})

    intervals = tuple(each.model_copy(update={"counts": failed(each.counts)}) for each in found.intervals)
    counts = failed(found.counts).model_copy(update={"exhausted": exhausted})
    return found.model_copy(update={"counts": counts, "intervals": intervals})


def late_with_errors(found: Traffic, limits: tuple[Objective, ...], *, cut: bool = False) -> Evidence:
    """The evidence of such a probe, as the search takes it in."""
    evidence = evidence_of(found)
    missed = errors_missed(evidence, found, limits)
    return late_engine(replace(evidence, hopeless=cut, missed=missed), found, limits)


@pytest.mark.parametrize("cut", [False, True])
def test_a_late_engine_excuses_no_errors(cut: bool) -> None:
    found = with_errors(late_traffic(30), 0.04)
    late = late_with_errors(found, LIMITS, cut=cut)
    assert late.client
    assert late.missed == {"errors < 1%"}
    assert [shows(late, each) for each in LIMITS] == [False, True]
    lacked = with_errors(late_traffic(30), 0.04, exhausted=round(0.035 * found.counts.due))
    assert not late_with_errors(lacked, LIMITS).missed, "these never reached the server"
    assert not late_with_errors(late_traffic(30), LIMITS).missed


def test_what_the_host_took_excuses_response_times_of_a_late_engine_and_no_errors() -> None:
    limits = parse_objectives("p99 < 20ms, p90 < 2ms, errors < 1%")
    found = with_errors(late_traffic(30, service_ms=3), 0.04)
    late = late_with_errors(found, limits)
    assert late.missed == {"p90 < 2ms", "errors < 1%"}
    assert disturbed(late, [stolen(Grade.NOTE)], limits).missed == late.missed
    assert disturbed(late, [stolen(Grade.WARN)], limits).missed == {"errors < 1%"}


def test_what_passed_counts_though_the_client_was_the_limit() -> None:
    """The late client may be why one of two objectives was missed; the other was met all the same."""
    found = late_traffic(30)
    objectives = parse_objectives("p99 < 100ms, p90 < 20ms")
    late = late_engine(evidence_of(found), found, objectives)
    assert late.client
    assert [shows(late, each) for each in objectives] == [True, False]
    assert steps([late], objectives[0])[0].state == "met"
    lacked = replace(late, lengthens=False)
    assert not any(shows(lacked, each) for each in objectives), "what never reached the server proves nothing"


def test_what_voids_a_probe_are_kinds_of_findings() -> None:
    assert set(DISTURBANCES) <= set(RULES)
