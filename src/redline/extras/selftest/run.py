"""Run the cases in sequence, and judge them."""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from redline.errors import DriveError
from redline.extras.peers import Peer, PeerLoad, run_peer
from redline.extras.selftest.cases import ARRIVALS, Case, even, poisson
from redline.extras.selftest.judge import (
    Ground,
    Measured,
    Way,
    against_uniform,
    at,
    check_answers,
    check_fit,
    check_late,
    even_lateness,
    exponential_gaps,
    judged,
    noise,
    quantiles,
    slices,
    worst,
)
from redline.extras.selftest.results import CaseResult, Check, MachineFacts, Noise, PeerAnswer, Quantile, SelftestResult
from redline.extras.selftest.rig import STOPPED_AFTER_SHARE, Observed, Rig, wake_ups
from redline.extras.selftest.truth import Chance, PeriodicStop, expected
from redline.linux.host import Host
from redline.model import Closed, Histogram, Load, Open, Think, Traffic
from redline.suite.load_text import load_text

ROUND_TRIP_S = 1.5
_RESTS_NS = 1_000_000
ARRIVALS_S = 3.0
_SLEPT_S = 1.0
_BURST_S = 1.0
_BURST_USERS = 64
_ARRIVALS_PER_S = 500.0
_MARGIN_S = 0.02
_BEHIND_NS = 100_000.0
"""Half is for the sender, as at 20,000/s, and half for the receiver, which reads the clock."""
_AROUND_S = 0.8
_PEER_AROUND_S = 1.0


@dataclass(frozen=True)
class SelftestPlan:
    """The plan: cases, the test of arrivals, peers, and the length of the other measurements."""

    cases: tuple[Case, ...]
    arrivals: bool
    peers: tuple[Peer, ...]
    at_most_s: float | None = None

    def length(self, usual_s: float) -> float:
        """The usual length, cut to the maximum."""
        return usual_s if self.at_most_s is None else min(usual_s, self.at_most_s)

    @property
    def seconds(self) -> float:
        """The approximate length of everything in seconds, without building."""
        loads = [case.seconds for case in self.cases]
        loads += [self.length(ROUND_TRIP_S)] * 4 + [self.length(_BURST_S)]
        loads += [self.length(ARRIVALS_S)] * (2 if self.arrivals else 0)
        compared = [case.seconds for case in self.cases if compares(case)]
        with_peers = [seconds + peer.adapter.settles_s for seconds in compared for peer in self.peers]
        slept = 2 * self.length(_SLEPT_S)
        return slept + sum(loads) + _AROUND_S * len(loads) + sum(with_peers) + _PEER_AROUND_S * len(with_peers)


def compares(case: Case) -> bool:
    """Whether peers can run the same load: no peer has Poisson arrivals."""
    return case.load.arrivals == "uniform"


def run(plan: SelftestPlan, rig: Rig, begin: Callable[[str], None]) -> SelftestResult:
    """Run everything; `begin` is called with the next name. Raises BuildError, LaunchError and DriveError."""
    cpus = rig.oracle.placement.engine_cpus[:1]
    begin("the round trip")
    slept = wake_ups(plan.length(_SLEPT_S), cpus)
    before = _round_trips(plan, rig)
    each_ns = _burst(plan, rig)
    runs = []
    for case in plan.cases:
        begin(case.name)
        observed = rig.observe(case.oracle, case.load, case.seconds, stop_s=case.stop_s)
        runs.append((case, observed, _peer_answers(plan.peers, case, rig, begin)))
    arrived = []
    for shape in (poisson(_ARRIVALS_PER_S, 64), even(_ARRIVALS_PER_S, 64)) if plan.arrivals else ():
        begin(f"{ARRIVALS}, {shape.arrivals}")
        arrived.append((shape, *rig.record_arrivals(shape, plan.length(ARRIVALS_S))))
    begin("the round trip, again")
    awake, resting = (Way(*both) for both in zip(before, _round_trips(plan, rig), strict=True))
    ground = Ground(awake, resting, Histogram.merged((slept, wake_ups(plan.length(_SLEPT_S), cpus))))
    cases = [_judged(*measured, ground, each_ns) for measured in runs]
    cases += [_judged_arrivals(*recorded, ground) for recorded in arrived]
    judgements = [point.judgement for case in cases for point in case.points]
    judgements += [check.judgement for case in cases for check in case.checks]
    return SelftestResult(
        judgement=worst(judgements),
        machine=_machine(rig),
        round_trip=quantiles(awake.both),
        round_trip_drift_ns=awake.drift_ns,
        resting_round_trip=quantiles(resting.both),
        resting_round_trip_drift_ns=resting.drift_ns,
        sleeper=quantiles(ground.sleeper),
        cases=tuple(cases),
    )


def _round_trips(plan: SelftestPlan, rig: Rig) -> tuple[Histogram, Histogram]:
    """Measure round trips of awake and of resting cores."""
    shapes = (Closed(users=1), Closed(users=1, think=Think(mean_ns=_RESTS_NS)))
    awake, resting = (rig.observe(("null",), shape, plan.length(ROUND_TRIP_S)) for shape in shapes)
    return awake.traffic.response, resting.traffic.response


def _burst(plan: SelftestPlan, rig: Rig) -> float:
    """The time per request, in nanoseconds, when many are answered together."""
    traffic = rig.observe(("null",), Closed(users=_BURST_USERS), plan.length(_BURST_S)).traffic
    return 1e9 / traffic.rate_per_s if traffic.rate_per_s > 0 else 0.0


def _peer_answers(
    peers: tuple[Peer, ...], case: Case, rig: Rig, begin: Callable[[str], None]
) -> tuple[PeerAnswer, ...]:
    answers, cpus = [], rig.oracle.placement.engine_cpus
    for peer in peers if compares(case) else ():
        begin(f"{case.name} by {peer.adapter.name}")
        settles_s = peer.adapter.settles_s
        after_s = settles_s + STOPPED_AFTER_SHARE * case.seconds
        with rig.server(case.oracle, stop_s=case.stop_s, after_s=after_s) as url:
            connections, seconds = case.load.connections, case.seconds + settles_s
            load = PeerLoad(url, connections, seconds, rig.scratch, rate_per_s=case.rate_per_s, cpus=cpus)
            answers.append(_peer_answer(peer, load))
    return tuple(answers)


def _peer_answer(peer: Peer, load: PeerLoad) -> PeerAnswer:
    """A peer's report about this load; the note says why if there is none."""
    adapter, latencies_ns = peer.adapter, {}
    try:
        latencies_ns = run_peer(peer, load).latencies_ns
        note = adapter.note if latencies_ns else "gave no answer that can be read"
    except DriveError as error:
        note = f"gave no answer: {error.message}"
    return PeerAnswer(
        peer=adapter.name,
        version=peer.version,
        tried_with=adapter.tried_with,
        loop=adapter.loop,
        points=tuple(Quantile(q=q, ns=ns) for q, ns in sorted(latencies_ns.items())),
        note=note,
    )


def _judged(
    case: Case, observed: Observed, peers: tuple[PeerAnswer, ...], ground: Ground, each_ns: float
) -> CaseResult:
    traffic = observed.traffic
    stop = case.law if isinstance(case.law, PeriodicStop) else PeriodicStop(1.0, 0.0)
    measured = Measured(
        response=traffic.response,
        lateness=traffic.lateness,
        slices=() if stop.for_s else slices(traffic),  # they hold different shares of a period
        seen=_noise(observed),
        spreads=case.spreads,
        burst_ns=case.rate_per_s * stop.for_s * each_ns,
        goals=case.goals,
        idles=case.idles,
        held_share=stop.for_s / stop.every_s,
        held_ns=stop.for_s * 1e9,
    )
    checks = []
    if case.late_p99_goal_ns is not None:
        late = at(measured.seen.engine_late, 0.99)
        name = f"send lateness p99 at {case.rate_per_s:,.0f}/s"
        checks.append(check_late(name, 0.99, late, case.late_p99_goal_ns, measured.machine(ground, 0.99)))
    return CaseResult(
        name=case.name,
        about=case.about,
        load=_load_text(case.load, case.seconds),
        measured_ns=traffic.measure_end_ns - traffic.measure_start_ns,
        requests=traffic.counts.due,
        points=judged(measured, _chances(case, observed), ground),
        checks=(_checked_answers(traffic, measured, ground), *checks),
        noise=measured.seen,
        peers=peers,
    )


def _judged_arrivals(shape: Open, observed: Observed, came_unix_ns: tuple[int, ...], ground: Ground) -> CaseResult:
    """Judge arrivals in the window, in s from its start, without its edges: requests arrive after they are due."""
    traffic = observed.traffic
    measured = Measured(traffic.response, traffic.lateness, (), _noise(observed), 1.0, 0.0, {})
    begin_ns, end_ns = traffic.window_unix_ns
    length_s = (end_ns - begin_ns) / 1e9 - 2 * _MARGIN_S
    times_s = (np.asarray(came_unix_ns) - begin_ns) / 1e9 - _MARGIN_S
    times_s = times_s[(times_s >= 0) & (times_s < length_s)]
    fits = {"times of arrival": against_uniform(times_s / length_s)}
    if shape.arrivals == "poisson":
        fits["gaps between arrivals"] = exponential_gaps(times_s, _ARRIVALS_PER_S)
    machine = measured.machine(ground, 0.99)
    checks = [check_fit(name, fit, 1e9 / _ARRIVALS_PER_S, machine) for name, fit in fits.items()]
    if shape.arrivals == "uniform":
        # Without any arrivals, by all of the measurement.
        behind_s = (
            float(np.quantile(even_lateness(times_s, _ARRIVALS_PER_S), 0.99)) if len(times_s) else traffic.seconds
        )
        checks.append(check_late("p99 behind an even schedule", 0.99, behind_s * 1e9, _BEHIND_NS, machine))
    about = "arrivals as another process saw them, against the schedule (Kolmogorov-Smirnov)"
    return CaseResult(
        name=f"{ARRIVALS}-{shape.arrivals}",
        about=about,
        load=_load_text(shape, traffic.seconds),
        measured_ns=traffic.measure_end_ns - traffic.measure_start_ns,
        requests=traffic.counts.due,
        points=(),
        checks=(_checked_answers(traffic, measured, ground), *checks),
        noise=measured.seen,
    )


def _checked_answers(traffic: Traffic, measured: Measured, ground: Ground) -> Check:
    outcomes = traffic.counts.outcomes
    overdue = outcomes.timeout + outcomes.in_flight + outcomes.unsent
    return check_answers(outcomes.errors - overdue, overdue, measured.machine(ground, 1.0))


def _load_text(shape: Open, seconds: float) -> str:
    return load_text(Load(name="known", shape=shape, duration_ns=round(seconds * 1e9)))


def _noise(observed: Observed) -> Noise:
    return noise(observed.recording, observed.traffic, observed.server_late, os.cpu_count() or 1)


def _chances(case: Case, observed: Observed) -> tuple[Chance, ...]:
    """The truth; for a suspended server, with the measured length of its stop."""
    if case.law is None:
        return tuple(Chance(q, 0.0, 0.0, 0.0) for q in case.quantiles)
    law = PeriodicStop(case.seconds, observed.stopped_s) if case.stop_s else case.law
    return expected(law, observed.traffic.counts.due, case.quantiles)


def _machine(rig: Rig) -> MachineFacts:
    host, placement = Host(), rig.oracle.placement
    return MachineFacts(
        cpu_model=host.cpu_model(),
        cores=os.cpu_count() or 1,
        kernel=platform.release(),
        engine=rig.driver.version(),
        server_cpus=placement.server_cpus,
        engine_cpus=placement.engine_cpus,
    )
