"""How a search is told: a line for each probe, its answer, and the published result."""

from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.cli.contracts import LimitResult, LimitTold, ProbeTold
from redline.errors import DriveError
from redline.model import Objective
from redline.quantities import duration, percent, rate, significant
from redline.search import Converged, Doomed, Evidence, Exhausted, Limit, Search
from redline.search.steps import verdict

_QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class Broken:
    """A search that could not go on: a probe could not be made, such as when the server died."""

    error: DriveError


Ended = Converged | Exhausted | Doomed | Broken | None
"""How a search ended; None for one that was interrupted."""


def probe_line(evidence: Evidence, why: str, number: int) -> str:
    """`3  1.77 k/s  p50 2.1 ms  p99 18 ms  (near where the model sees the edge)`."""
    p50, p99 = evidence.response.quantiles_ns((0.5, 0.99))
    saw = f"p50 {duration(p50)}  p99 {duration(p99)}"
    if evidence.hopeless:
        saw = f"hopeless after {significant(evidence.seconds, 2)} s: answered {rate(evidence.answered_per_s)}"
    errors = sum(each.errors for each in evidence.slices)
    told = "".join(
        (f"  errors {errors:,}" if errors else "", f"  not the server: {evidence.client}" if evidence.client else "")
    )
    return f"{number:>3}  {rate(evidence.rate_per_s):>10}  {saw}{told}  ({why})"


def limit_result(url: str, search: Search, end: Ended, seed: int) -> LimitResult:
    """The published view of a search."""
    limits = search.limits() if end is None or isinstance(end, Broken) else end.limits
    return LimitResult(
        url=url,
        seed=seed,
        ended=_ended(end),
        reason=_reason(end),
        confirmed=isinstance(end, Converged) and end.confirmed,
        limits=tuple(_told(limit, search) for limit in limits),
        probes=tuple(_probe(each) for each in search.evidence),
    )


def _ended(end: Ended) -> Literal["converged", "exhausted", "doomed", "broken", "interrupted"]:
    match end:
        case Converged():
            return "converged"
        case Exhausted():
            return "exhausted"
        case Doomed():
            return "doomed"
        case Broken():
            return "broken"
        case None:
            return "interrupted"


def _reason(end: Ended) -> str:
    match end:
        case Doomed():
            return end.reason
        case Broken():
            return end.error.problems[0].message
        case _:
            return ""


def _told(limit: Limit, search: Search) -> LimitTold:
    conditions = search.sets[limit.name]
    seen = [_met(each, conditions) for each in search.evidence if not each.client]
    return LimitTold(
        name=limit.name,
        passed_per_s=limit.low_per_s,
        failed_per_s=limit.high_per_s,
        confidence=limit.confidence,
        decided=limit.decided,
        method="queue" if limit.modelled else "single rates",
        binding=limit.binding,
        conditions=tuple(each.text for each in conditions),
        met_somewhere=any(met is not False for met in seen),
        missed_somewhere=any(met is not True for met in seen),
        reason=limit.reason,
    )


def _met(evidence: Evidence, conditions: tuple[Objective, ...]) -> bool | None:
    """Whether a probe alone met all of them; None when that is unclear."""
    verdicts = [verdict((evidence,), each) for each in conditions]
    if "failed" in verdicts:
        return False
    return None if "unclear" in verdicts else True


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
        client=evidence.client,
    )


def print_limit(result: LimitResult, console: Console) -> None:
    """The curve, ascending, and below it each answer."""
    console.print(_curve(result))
    clients = [each for each in result.probes if each.client]
    if clients and result.ended != "doomed":  # whose reason says it
        highest = max(clients, key=lambda probe: probe.rate_per_s)
        console.print(
            Text(f"not the server was the limit at {rate(highest.rate_per_s)}: {highest.client}", style="yellow")
        )
    for limit in result.limits:
        console.print(Text(_answer(limit), style="bold"))
        if (asked := ", ".join(limit.conditions)) != limit.name:
            console.print(Text(f"  asked of it: {asked}", style="dim"))
        if limit.reason:
            console.print(Text(f"  {limit.reason}", style="yellow"))
    if result.ended == "doomed":
        console.print(Text(f"no answer: {result.reason}", style="red"))
    if result.ended == "exhausted":
        console.print(Text(_exhausted(result), style="red"))
    if result.ended in ("interrupted", "broken"):
        console.print(Text(f"{result.ended}: this is what was known by then", style="yellow"))


def _exhausted(result: LimitResult) -> str:
    """Which side was not found, and the flags that help."""
    nowhere = any(limit.passed_per_s is None for limit in result.limits)
    beyond = any(limit.failed_per_s is None for limit in result.limits)
    begin = "another" if nowhere == beyond else "a lower" if nowhere else "a higher"
    used = f"all {len(result.probes)} probes are used up"
    return f"no answer: {used}; begin at {begin} rate (--start), or allow more (--probes)"


def _answer(limit: LimitTold) -> str:
    low, high = limit.passed_per_s, limit.failed_per_s
    if low is None or high is None:
        return f"{limit.name}: {_met_told(limit)}, {_missed_told(limit)}"
    half = (high - low) / (high + low)
    model = "by the model of a queue with one worker"
    sure = "by single rates" if limit.confidence is None else f"{percent(limit.confidence)} interval, {model}"
    told = f"{limit.name}: met up to {low:,.0f}/s, missed from {high:,.0f}/s (±{percent(half)}, {sure})"
    return told + ("" if limit.decided else "; wider than asked: more or longer probes would narrow it")


def _met_told(limit: LimitTold) -> str:
    if limit.passed_per_s is not None:
        return f"met up to {limit.passed_per_s:,.0f}/s"
    return "up to where it is met is not known" if limit.met_somewhere else "met at no rate that was tried"


def _missed_told(limit: LimitTold) -> str:
    if limit.failed_per_s is not None:
        return f"missed from {limit.failed_per_s:,.0f}/s"
    return "from where it is missed is not known" if limit.missed_somewhere else "missed at none"


def _curve(result: LimitResult) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("rate", "answered", "p50", "p90", "p99", "p99.9", "errors", ""):
        table.add_column(heading, justify="right")
    for each in sorted(result.probes, key=lambda probe: probe.rate_per_s):
        times = (each.p50_ns, each.p90_ns, each.p99_ns, each.p999_ns)
        note = "not the server" if each.client else "hopeless" if each.hopeless else ""
        table.add_row(
            f"{each.rate_per_s:,.0f}/s",
            f"{each.answered_per_s:,.0f}/s",
            *(duration(ns) for ns in times),
            str(each.errors),
            note,
        )
    return table
