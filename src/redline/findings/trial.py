"""Findings about one trial, from what the engine saw of it."""

import math

from redline.findings.arrivals import arrivals, bunched
from redline.findings.failed import (
    errors,
    exhausted,
    failed,
    instead_of_cores,
    reconnecting,
    surplus_bytes,
    wrong_answers,
)
from redline.findings.hosts import clock_bound, clock_stepped, load_hosts_differ
from redline.findings.machine import (
    client_saturated,
    cpu_pressure,
    cpu_sampled,
    cpu_steal,
    cpu_unknown,
    engine_paused,
    listen_overflow,
    network_limited,
    noisy_neighbour,
    port_pressure,
    retransmits,
    throttled,
)
from redline.findings.memory import memory
from redline.findings.rules import RULES, graded
from redline.findings.server import debug_logging, lock_limited, runtime_differs, server_restarted, upstream
from redline.findings.steadiness import not_warmed_up, shrinking, still_compiling, unsteady, warmed
from redline.model import Cell, Closed, Finding, FindingKind, Interval, Open, Recording, Traffic
from redline.quantities import duration, percent
from redline.stats import Trial

BY_CHANCE = 4.0
"""In standard deviations: by so much two counts differ once in 16,000 times."""


def judge(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """All findings about this recording; see `judge_trial`."""
    return judge_trial(cell, Trial(recording))


def judge_trial(cell: Cell, trial: Trial) -> tuple[Finding, ...]:
    """All findings about one trial, in the order of the rules. A trial with an `invalid` one is not used."""
    traffic = trial.traffic
    found: list[tuple[Finding, ...]] = [failed(cell, trial), _perturbed(trial)]
    if traffic is not None:
        found += [_cut_short(cell, trial, traffic), _tls_insecure(cell, trial), *upstream(trial)]
        if traffic.ended != "failing" and traffic.counts.due > 0 and traffic.seconds > 0:
            found += _of_requests(cell, trial, traffic)
            if traffic.counts.completed > 0:  # without an answer, when and how they came is no question
                found += _of_answers(cell, trial, traffic)
    return tuple(sorted((each for findings in found for each in findings), key=lambda each: _PLACES[each.kind]))


_PLACES = {kind: place for place, kind in enumerate(RULES)}


def _of_requests(cell: Cell, trial: Trial, traffic: Traffic) -> list[tuple[Finding, ...]]:
    """What became of requests, and what client, machine and network did meanwhile."""
    return [
        client_saturated(cell, trial, traffic),
        _send_lateness(cell, trial, traffic),
        arrivals(cell, trial, traffic),
        bunched(cell, trial, traffic),
        errors(trial, traffic),
        exhausted(trial, traffic),
        wrong_answers(trial, traffic),
        surplus_bytes(trial, traffic),
        reconnecting(cell, trial, traffic),
        server_restarted(trial),
        debug_logging(cell, trial, traffic),
        memory(cell, trial, traffic),
        runtime_differs(cell, trial),
        engine_paused(trial, traffic),
        cpu_steal(trial),
        cpu_pressure(trial, traffic),
        noisy_neighbour(trial, traffic),
        throttled(trial),
        cpu_sampled(trial, traffic),
        cpu_unknown(trial, traffic),
        retransmits(trial),
        listen_overflow(trial, traffic),
        port_pressure(trial, traffic),
        network_limited(trial, traffic),
        clock_bound(trial, traffic),
        load_hosts_differ(trial),
        clock_stepped(trial, traffic),
    ]


def _of_answers(cell: Cell, trial: Trial, traffic: Traffic) -> list[tuple[Finding, ...]]:
    """What right answers say of the server, and of how it was loaded."""
    return [
        _rate_missed(cell, trial, traffic),
        _backlog(cell, trial, traffic),
        _client_queueing(cell, trial, traffic),
        shrinking(cell, trial, traffic),
        unsteady(cell, trial, traffic),
        warmed(cell, trial, traffic),
        still_compiling(trial, traffic),
        not_warmed_up(cell, trial),
        _carried_over(cell, trial, traffic),
        _littles_law(cell, trial, traffic),
        lock_limited(cell, trial, traffic),
    ]


def judge_probe(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """What engine, machine, proxies and compilers did to a probe of a search. All else is what it is to find out."""
    trial, traffic = Trial(recording), recording.traffic
    if traffic is None or traffic.counts.due == 0 or traffic.seconds <= 0:
        return ()
    return (
        *_send_lateness(cell, trial, traffic),
        *exhausted(trial, traffic),
        *surplus_bytes(trial, traffic),
        *reconnecting(cell, trial, traffic),
        *still_compiling(trial, traffic),
        *engine_paused(trial, traffic),
        *cpu_steal(trial),
        *cpu_pressure(trial, traffic),
        *noisy_neighbour(trial, traffic),
        *throttled(trial),
        *(finding for found in upstream(trial) for finding in found),
    )


def judge_server(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """What is known of the server of a search by its first probe, and stays so."""
    trial = Trial(recording)
    return (*not_warmed_up(cell, trial), *runtime_differs(cell, trial))


def _perturbed(trial: Trial) -> tuple[Finding, ...]:
    message = "A profiler or monitor ran that slows down what it watches; this trial is not compared."
    return graded(FindingKind.PERTURBED, float(trial.recording.perturbed), message, trial)


def _cut_short(cell: Cell, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    if traffic.ended in ("complete", "failing"):  # a failure says why
        return ()
    planned = cell.load.duration_ns / 1e9
    missing = 1.0 if traffic.ended == "deadline" else max(1.0 - traffic.seconds / planned, 0.0)
    failed = trial.recording.failure is not None  # which says why; then the engine gave no ending of its own
    deadline = "The load was cut off" if failed else "The engine ran into its deadline"
    why = deadline if traffic.ended == "deadline" else "The measurement was interrupted"
    message = f"{why}: {traffic.seconds:.3g} s of the planned {planned:.3g} s were measured."
    return graded(FindingKind.CUT_SHORT, missing, message, trial)


def _rate_missed(cell: Cell, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    if not isinstance(cell.load.shape, Open):
        return ()
    # Against what was due, not rate x time: the number of Poisson arrivals varies, and that is no fault.
    missed = 1.0 - traffic.answered / traffic.counts.due
    message = (
        f"{traffic.rate_per_s:,.0f} right answers/s of {traffic.counts.due / traffic.seconds:,.0f} requests/s due: "
        f"{percent(max(missed, 0.0))} of the rate was missed."
    )
    return graded(FindingKind.RATE_MISSED, missed, message, trial, advice=_FAILED if _by_failing(traffic) else None)


_FAILED = "Most of what was missed failed, rather than came late: see `errors` and `wrong-answers` first."


def _by_failing(traffic: Traffic) -> bool:
    """Whether requests that failed in another way than by waiting are most of what was missed."""
    ended = traffic.counts.outcomes
    waited = ended.timeout + ended.in_flight + ended.unsent
    return 2 * (ended.errors - waited) > traffic.counts.due - traffic.answered


def _backlog(cell: Cell, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the server still worked off what was due in the warm-up, beyond what chance explains.

    What is under way at the two ends of the window are two counts, whose difference has their sum as its variance.
    """
    shape = cell.load.shape
    if not isinstance(shape, Open) and shape.pace_per_s is None:
        return ()
    before, left = traffic.carried_in, traffic.carried_out
    beyond = before - left - BY_CHANCE * math.sqrt(before + left)
    message = (
        f"{before:,} requests that were due before the measurement were answered in it, and {left:,} were left at its "
        f"end: when it began, the server had not caught up."
    )
    return graded(FindingKind.BACKLOG, beyond / traffic.counts.due, message, trial)


def _send_lateness(cell: Cell, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    if not _due_by_timer(cell):
        return ()
    late = traffic.lateness.quantiles_ns((0.5, 0.99))
    response = traffic.response.quantiles_ns((0.5, 0.99))
    shares = [own / whole if whole > 0 else 0.0 for own, whole in zip(late, response, strict=True)]
    worst = 0 if shares[0] >= shares[1] else 1
    message = (
        f"At {('p50', 'p99')[worst]} the engine took up requests {duration(late[worst])} after they were due, which is "
        f"{percent(shares[worst])} of the response time of {duration(response[worst])}."
    )
    advice = instead_of_cores(cell, traffic)
    return graded(FindingKind.SEND_LATENESS, shares[worst], message, trial, advice=advice)


def _client_queueing(cell: Cell, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    if not isinstance(cell.load.shape, Open):
        return ()
    waited, due = traffic.counts.waited, traffic.counts.due
    message = (
        f"{waited:,} of {due:,} requests ({percent(waited / due)}) found none of {cell.load.shape.connections} "
        f"connections free when they were due: part of their response time is a queue in the client."
    )
    return graded(FindingKind.CLIENT_QUEUEING, waited / due, message, trial, advice=instead_of_cores(cell, traffic))


def _due_by_timer(cell: Cell) -> bool:
    """Whether requests fall due at a time of their own; with zero think time they are due upon the last answer."""
    shape = cell.load.shape
    return isinstance(shape, Open) or shape.think is not None or shape.pace_per_s is not None


def _tls_insecure(cell: Cell, trial: Trial) -> tuple[Finding, ...]:
    insecure = cell.variant.tls is not None and cell.variant.tls.insecure
    message = "The server's certificate was not checked: any server could have answered."
    return graded(FindingKind.TLS_INSECURE, float(insecure), message, trial)


def _carried_over(cell: Cell, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether users were held for long by requests that were due before the measurement."""
    kept, share = _in_flight(cell, traffic), carried_over_share(cell, traffic)
    late = [(_from_before(interval), interval) for interval in traffic.intervals if interval.phase == "measure"]
    last = next((interval for number, interval in reversed(late) if number), None)
    if last is None or not kept:
        return ()
    number = sum(number for number, _ in late)
    message = (
        f"{number:,} requests that were due before the measurement were answered in it, the last ones after more than "
        f"{duration(last.start_ns - traffic.measure_start_ns)}: they took {percent(share)} of the users' time or more."
    )
    return graded(FindingKind.CARRIED_OVER, share, message, trial)


def carried_over_share(cell: Cell, traffic: Traffic) -> float:
    """Share of the users' time in the measurement for which they waited for what was due before it.

    At least: of right answers alone, and each to the beginning of the interval in which it came. 0 where users do not
    always wait.
    """
    kept = _in_flight(cell, traffic)
    if not kept:
        return 0.0
    waited_ns = sum(
        _from_before(interval) * (interval.start_ns - traffic.measure_start_ns)
        for interval in traffic.intervals
        if interval.phase == "measure"
    )
    return waited_ns / 1e9 / (kept * traffic.seconds)


def _from_before(interval: Interval) -> int:
    """Right answers in an interval to requests that were due before the measurement."""
    return max(0, interval.counts.completed - interval.counts.outcomes.ok)


def _in_flight(cell: Cell, traffic: Traffic) -> float:
    """How many requests the users keep in flight, or think about; 0 where that is not fixed, or nothing was due."""
    shape = cell.load.shape
    if not isinstance(shape, Closed) or shape.pace_per_s is not None or traffic.seconds <= 0:
        return 0.0
    return shape.mean_users(traffic.measure_end_ns - traffic.measure_start_ns) * shape.depth


def _littles_law(cell: Cell, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    shape = cell.load.shape
    if not isinstance(shape, Closed) or shape.pace_per_s is not None or traffic.ended != "complete":
        return ()
    mean_s = traffic.response.mean_ns / 1e9
    think_s = shape.think.mean_ns / 1e9 if shape.think else 0.0
    rate_per_s = traffic.counts.due / traffic.seconds
    busy = rate_per_s * (mean_s + think_s)
    kept = _in_flight(cell, traffic)
    if kept <= 0:
        return ()
    ends_s = (
        max(_missing_s(traffic), carried_over_share(cell, traffic) * traffic.seconds) + traffic.response.max_ns / 1e9
    )
    off = abs(busy / kept - 1.0) - (ends_s + think_s) / traffic.seconds
    time = f"({duration(mean_s * 1e9)} mean response time + {duration(think_s * 1e9)} think time)"
    message = (
        f"{rate_per_s:,.0f} requests/s x {time if think_s else f'{duration(mean_s * 1e9)} mean response time'} make "
        f"{busy:.3g} {'users busy' if shape.depth == 1 else 'requests in flight'}, but the load has {kept:.10g}."
    )
    return graded(FindingKind.LITTLES_LAW, off, message, trial)


def _missing_s(traffic: Traffic) -> float:
    """For how many seconds at its beginning the window has no requests, because users still wait for earlier ones.

    That shows as intervals in which fewer requests fell due than on average. At the end, the longest response time
    bounds what reaches over it.
    """
    missing_s = 0.0
    for interval in traffic.intervals:
        seconds = (interval.end_ns - interval.start_ns) / 1e9
        if interval.phase == "measure" and seconds > 0:
            share = min(interval.counts.due / seconds / (traffic.counts.due / traffic.seconds), 1.0)
            missing_s += seconds * (1.0 - share)
            if share > 0.5:
                break
    return missing_s
