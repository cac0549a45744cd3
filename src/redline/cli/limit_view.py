"""How a search is told: a line for each probe, its answer, and the published result."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.cli.contracts import LimitResult, LimitTold, ProbeTold
from redline.quantities import duration, percent, rate, significant
from redline.search import Converged, Doomed, Evidence, Limit, Search

_QUANTILES = (0.5, 0.9, 0.99, 0.999)


def probe_line(evidence: Evidence, why: str, number: int) -> str:
    """`3  1.77 k/s  p50 2.1 ms  p99 18 ms  (near where the model sees the edge)`."""
    p50, p99 = evidence.response.quantiles_ns((0.5, 0.99))
    saw = f"p50 {duration(p50)}  p99 {duration(p99)}"
    if evidence.hopeless:
        saw = f"hopeless after {significant(evidence.seconds, 2)} s: answered {rate(evidence.answered_per_s)}"
    return f"{number:>3}  {rate(evidence.rate_per_s):>10}  {saw}  ({why})"


def limit_result(url: str, search: Search, end: Converged | Doomed | None, seed: int) -> LimitResult:
    """The published view of a search; `end` is None for one that was interrupted."""
    limits = search.limits() if end is None else end.limits
    return LimitResult(
        url=url,
        seed=seed,
        ended="interrupted" if end is None else "doomed" if isinstance(end, Doomed) else "converged",
        reason=end.reason if isinstance(end, Doomed) else "",
        confirmed=isinstance(end, Converged) and end.confirmed,
        limits=tuple(_told(limit) for limit in limits),
        probes=tuple(_probe(each) for each in search.evidence),
    )


def _told(limit: Limit) -> LimitTold:
    return LimitTold(
        name=limit.name,
        passed_per_s=limit.low_per_s,
        failed_per_s=limit.high_per_s,
        confidence=limit.confidence,
        decided=limit.decided,
        method="queue" if limit.modelled else "single rates",
        binding=limit.binding,
    )


def _probe(evidence: Evidence) -> ProbeTold:
    p50, p90, p99, p999 = evidence.response.quantiles_ns(_QUANTILES)
    return ProbeTold(
        rate_per_s=evidence.rate_per_s,
        seconds=evidence.seconds,
        offered_per_s=evidence.offered_per_s,
        answered_per_s=evidence.answered_per_s,
        errors=sum(each.errors for each in evidence.slices),
        p50_ns=p50,
        p90_ns=p90,
        p99_ns=p99,
        p999_ns=p999,
        hopeless=evidence.hopeless,
        engine_saturated=evidence.engine_saturated,
    )


def print_limit(result: LimitResult, console: Console) -> None:
    """The curve, ascending, and below it each answer."""
    console.print(_curve(result))
    for limit in result.limits:
        console.print(Text(_answer(limit), style="bold"))
    if result.reason:
        console.print(Text(f"no answer: {result.reason}", style="red"))
    if result.ended == "interrupted":
        console.print(Text("interrupted: this is what was known by then", style="yellow"))


def _answer(limit: LimitTold) -> str:
    low, high = limit.passed_per_s, limit.failed_per_s
    if low is None or high is None:
        met = "met at no rate that was tried" if low is None else f"met up to {low:,.0f}/s"
        missed = "missed at none" if high is None else f"missed from {high:,.0f}/s"
        return f"{limit.name}: {met}, {missed}"
    half = (high - low) / (high + low)
    sure = f"±{percent(half)}, {percent(limit.confidence)} sure"
    told = f"{limit.name}: met up to {low:,.0f}/s, missed from {high:,.0f}/s ({sure})"
    return told + ("" if limit.decided else "; wider than asked: more or longer probes would narrow it")


def _curve(result: LimitResult) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("rate", "answered", "p50", "p90", "p99", "p99.9", "errors", ""):
        table.add_column(heading, justify="right")
    for each in sorted(result.probes, key=lambda probe: probe.rate_per_s):
        times = (each.p50_ns, each.p90_ns, each.p99_ns, each.p999_ns)
        note = "hopeless" if each.hopeless else ""
        table.add_row(
            f"{each.rate_per_s:,.0f}/s",
            f"{each.answered_per_s:,.0f}/s",
            *(duration(ns) for ns in times),
            str(each.errors),
            note,
        )
    return table
