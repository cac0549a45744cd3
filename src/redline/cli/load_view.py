"""One load: its live line, its published result, and that as a section."""

from redline.analysis import load_objectives, other_times, percentiles
from redline.cli.contracts import LoadResult
from redline.errors import DriveError
from redline.findings import judge, warm_up
from redline.model import Cell, Counts, Estimate, Grade, Interval, Objective, Recording, Traffic
from redline.report.document import Column, Item, Items, Prose, Section, Table, filled, line
from redline.report.format import agreed, duration, integer, other_time, quantile_name, rate
from redline.report.sections.answer import objective_line
from redline.report.sections.trials import trial_text
from redline.stats import Trial
from redline.suite.load_text import load_text

_METHOD = "one trial: no interval"


def live_line(cell: Cell, interval: Interval) -> str:
    """One interval, as it passes by."""
    seconds = max(interval.end_ns - interval.start_ns, 1) / 1e9
    outcomes = interval.counts.outcomes
    errors = f"  errors {outcomes.errors}" if outcomes.errors else ""
    return (
        f"{interval.phase}  {interval.end_ns / 1e9:.1f} s of {(cell.warmup_ns + cell.load.duration_ns) / 1e9:g} s"
        f"  {rate(interval.counts.completed / seconds)}"
        f"  p50 {duration(interval.response.quantile_ns(0.5))}"
        f"  p99 {duration(interval.response.quantile_ns(0.99))}{errors}"
    )


def load_result(url: str, cell: Cell, recording: Recording, objectives: tuple[Objective, ...] = ()) -> LoadResult:
    """The published view of one load. Raises DriveError when it ended by itself before anything was measured."""
    traffic = recording.traffic
    if traffic is None or (traffic.seconds <= 0 and traffic.ended != "interrupted"):
        raise DriveError("the load ended before its measurement began", hint="let it run past its warm-up (--warmup)")
    findings = judge(cell, recording)
    valid = traffic.seconds > 0 and all(finding.grade is not Grade.INVALID for finding in findings)
    return LoadResult(
        url=url,
        load=load_text(cell.load),
        seed=recording.seed,
        valid=valid,
        ended=traffic.ended,
        measured_ns=traffic.measure_end_ns - traffic.measure_start_ns,
        throughput=_single(traffic.rate_per_s, "1/s"),
        engine_cpu_per_request=_cpu_per_request(traffic),
        response=percentiles(traffic.response),
        service=percentiles(traffic.service),
        lateness=percentiles(traffic.lateness),
        other_times=other_times(
            [traffic.all_handshakes], [traffic.measured_one_way], cell.scenario.clock_resolution_ns
        ),
        tls=traffic.tls,
        warm_up=warm_up(cell, Trial(recording)),
        counts=traffic.counts,
        engine=traffic.engine,
        objectives=load_objectives(cell, traffic, findings, objectives),
        findings=findings,
    )


def _cpu_per_request(traffic: Traffic) -> Estimate | None:
    done = traffic.counts.completed
    return _single(traffic.engine_cpu_ns / done, "ns") if done else None


def _single(value: float, unit: str) -> Estimate:
    return Estimate(value=value, low=None, high=None, unit=unit, n=1, method=_METHOD)


def load_section(result: LoadResult) -> Section:
    """Throughput, percentiles, outcomes and findings; of an invalid load, why in place of its numbers."""
    times = map(other_time, result.other_times if result.valid else ())
    lines = (*times, agreed(result.tls) if result.tls else "", f"outcomes  {outcomes_text(result.counts)}")
    warm = f"warm-up  {trial_text(result.warm_up)}" if result.warm_up else ""
    findings = (
        Item(line((f"{one.grade}: {one.message}", one.grade)), (line((f"→ {one.advice}", "dim")),))
        for one in sorted(result.findings, key=lambda found: -found.grade.weight)
    )
    blocks = filled(
        Prose.of([f"throughput  {rate(result.throughput.value)}"] if result.valid else []),
        _percentiles(result) if result.valid else None,
        Prose.of((*lines, warm)),
        Items(tuple(findings)),
        Prose(tuple(map(objective_line, result.objectives))),
    )
    return Section(result.url, tuple(blocks), result.load)


def _percentiles(result: LoadResult) -> Table:
    times = {"response": result.response, "service": result.service, "engine lateness": result.lateness}
    known = [{point.q: duration(point.ns) for point in points} for points in times.values()]
    rows = ((quantile_name(q), *(each.get(q, "") for each in known)) for q in sorted(set().union(*known)))
    return Table((Column("", "right"), *(Column(name, "right") for name in times)), tuple(rows))


def outcomes_text(counts: Counts) -> str:
    """`480,000 ok, 12 timeout; 3 late; 2 retried`."""
    kinds = [f"{integer(n)} {kind.replace('_', ' ')}" for kind, n in counts.outcomes if n]
    more = {
        "late": counts.late,
        "waited for a connection": counts.waited,
        "retried": counts.retried,
        "sent again": counts.resent,
        "reconnects": counts.reconnects,
    }
    return "; ".join([", ".join(kinds) or "no request", *(f"{integer(n)} {name}" for name, n in more.items() if n)])
