"""How a search is told: a line for each probe, and its answers."""

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.analysis.limits import Ending, answer
from redline.errors import RedlineError
from redline.model.limits import CellLimit, LimitAnswer, LimitReport, LimitStart
from redline.quantities import duration, rate, significant
from redline.report.render import limit_words as words
from redline.search import Converged, Doomed, Evidence, Exhausted, Search


@dataclass(frozen=True)
class Broken:
    """A search that could not go on: a probe could not be made, such as when the server died."""

    error: RedlineError


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


def warm_line(start: LimitStart) -> str:
    """`     steady after 12.5 s`, under the numbers of the probes."""
    return f"     {words.warm_up_told(start)}"


def wait_line(seconds: float) -> str:
    """`     once more in 5 s …`, under the probe that told nothing."""
    return f"     once more in {seconds:g} s, when the host may have given the CPU time back"


def ending(end: Ended) -> Ending:
    """How a search ended, as it is published."""
    match end:
        case Converged():
            return Ending("converged", confirmed=end.confirmed)
        case Exhausted():
            return Ending("exhausted")
        case Doomed():
            return Ending("doomed", end.reason)
        case Broken():
            return Ending("broken", end.error.problems[0].message)
        case None:
            return Ending("interrupted")


def answers(search: Search, end: Ended) -> tuple[LimitAnswer, ...]:
    """What is known of each set of objectives; nothing before the first probe."""
    if not search.evidence:
        return ()
    limits = search.limits() if end is None or isinstance(end, Broken) else end.limits
    return tuple(answer(limit, search) for limit in limits)


def print_report(report: LimitReport, console: Console) -> None:
    """Each cell, and what was skipped."""
    for cell in report.cells:
        if report.suite:
            console.print(Text(f"\n{cell.slug}", style="bold"))
        print_cell(cell, console)
    for skipped in report.skipped:
        console.print(Text(f"skipped: {skipped.slug}: {skipped.reason}", style="yellow"))


def print_cell(cell: CellLimit, console: Console) -> None:
    """The curve, ascending, and below it each answer."""
    if cell.probes:
        console.print(_curve(cell))
    if client := words.client_told(cell):
        console.print(Text(client, style="yellow"))
    for doubt in words.doubts_told(cell):
        console.print(Text(doubt, style="yellow"))
    for limit in cell.limits:
        console.print(Text(_answer(limit), style="bold"))
        if (asked := ", ".join(limit.conditions)) != limit.name:
            console.print(Text(f"  asked of it: {asked}", style="dim"))
        if limit.reason:
            console.print(Text(f"  {limit.reason}", style="yellow"))
    for line in _around(cell):
        console.print(Text(line, style="dim"))
    if cell.ended == "exhausted":
        console.print(Text(_exhausted(cell), style="red"))
    elif cell.ended != "converged":
        console.print(Text(words.ended_told(cell), style="red" if cell.ended == "doomed" else "yellow"))


def _around(cell: CellLimit) -> list[str]:
    """What is beside the answer: whether it was confirmed, the knee, and what is past the edge."""
    knee = words.knee_of(cell) if cell.knee else ""
    beyond = words.beyond_told(cell) if cell.beyond else ()
    lines = (words.starts_told(cell), words.confirmed_told(cell), f"knee: {knee}" if knee else "", *beyond)
    return [line for line in lines if line]


def _exhausted(cell: CellLimit) -> str:
    """Which side was not found, and the flags that help."""
    nowhere = any(limit.passed_per_s is None for limit in cell.limits)
    beyond = any(limit.failed_per_s is None for limit in cell.limits)
    begin = "another" if nowhere == beyond else "a lower" if nowhere else "a higher"
    used = f"all {sum(each.phase != 'curve' for each in cell.probes)} probes are used up"
    return f"no answer: {used}; begin at {begin} rate (--start), or allow more (--probes)"


def _answer(limit: LimitAnswer) -> str:
    told = f"{limit.name}: {words.answer_told(limit)}"
    if limit.passed_per_s is None or limit.failed_per_s is None:
        return told
    told += f", {words.method_told(limit)}"
    return told + ("" if limit.decided else "; wider than asked: more or longer probes would narrow it")


def _curve(cell: CellLimit) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("rate", "answered", "p50", "p90", "p99", "p99.9", "errors", ""):
        table.add_column(heading, justify="right")
    for each in sorted(cell.probes, key=lambda probe: probe.rate_per_s):
        times = (each.p50_ns, each.p90_ns, each.p99_ns, each.p999_ns)
        note = "not the server" if each.client else "hopeless" if each.hopeless else ""
        table.add_row(
            f"{each.rate_per_s:,.0f}/s",
            f"{each.answered_per_s:,.0f}/s",
            *("—" if ns is None else duration(ns) for ns in times),
            str(each.errors),
            note,
        )
    return table
