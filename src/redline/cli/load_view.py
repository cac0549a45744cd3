"""One load as the terminal shows it: live line, summary, and the published result."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.analysis import other_times, percentiles
from redline.cli.contracts import LoadResult
from redline.errors import DriveError
from redline.findings import judge, warm_up
from redline.model import Cell, Estimate, Grade, Interval, Recording, Traffic
from redline.report.format import agreed, duration, integer, other_time, rate
from redline.report.sections.trials import trial_text
from redline.stats import Trial
from redline.suite.load_text import load_text

_STYLES = {Grade.INVALID: "red", Grade.WARN: "yellow", Grade.NOTE: "blue"}
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


def load_result(url: str, cell: Cell, recording: Recording) -> LoadResult:
    """The published view of one load. Raises DriveError when it ended by itself before anything was measured."""
    traffic = recording.traffic
    if traffic is None or (traffic.seconds <= 0 and traffic.ended != "interrupted"):
        raise DriveError("the load ended before its measurement began", hint="let it run past its warm-up (--warmup)")
    findings = judge(cell, recording)
    return LoadResult(
        url=url,
        load=load_text(cell.load),
        seed=recording.seed,
        valid=traffic.seconds > 0 and all(finding.grade is not Grade.INVALID for finding in findings),
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
        findings=findings,
    )


def _cpu_per_request(traffic: Traffic) -> Estimate | None:
    done = traffic.counts.completed
    return _single(traffic.engine_cpu_ns / done, "ns") if done else None


def _single(value: float, unit: str) -> Estimate:
    return Estimate(value=value, low=None, high=None, unit=unit, n=1, method=_METHOD)


def print_load(result: LoadResult, console: Console) -> None:
    """Throughput, percentiles, outcomes and findings; of an invalid load, why in place of its numbers."""
    console.print(Text(f"{result.url}  {result.load}", style="bold"))
    if result.valid:
        console.print(f"throughput  {rate(result.throughput.value)}", highlight=False)
        console.print(_percentiles(result))
        for time in result.other_times:
            console.print(other_time(time), highlight=False)
    if result.tls:
        console.print(Text(agreed(result.tls)))
    console.print(_outcomes(result), highlight=False)
    if result.warm_up:
        console.print(f"warm-up     {trial_text(result.warm_up)}", highlight=False)
    for finding in sorted(result.findings, key=lambda found: -found.grade.weight):
        console.print(Text(f"{finding.grade}: {finding.message}", style=_STYLES[finding.grade]))
        console.print(Text(f"  → {finding.advice}", style="dim"))


def _percentiles(result: LoadResult) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("", "response", "service", "engine lateness"):
        table.add_column(heading, justify="right")
    columns = [{point.q: point.ns for point in points} for points in (result.response, result.service, result.lateness)]
    for q in sorted(set().union(*columns)):
        table.add_row(quantile_name(q), *(duration(column[q]) if q in column else "" for column in columns))
    return table


def quantile_name(q: float) -> str:
    """`p50`, `p99.9`; `max` for the largest."""
    return "max" if q >= 1 else f"p{q * 100:.6g}"


def _outcomes(result: LoadResult) -> str:
    counts = result.counts
    kinds = {kind: n for kind, n in counts.outcomes.model_dump().items() if n}
    counted = ", ".join(f"{integer(n)} {kind.replace('_', ' ')}" for kind, n in kinds.items()) or "no request"
    extra = {
        "late": counts.late,
        "waited for a connection": counts.waited,
        "retried": counts.retried,
        "sent again": counts.resent,
        "reconnects": counts.reconnects,
    }
    more = "".join(f"; {integer(n)} {name}" for name, n in extra.items() if n)
    return f"outcomes    {counted}{more}"
