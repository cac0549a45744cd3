"""What a limit says in words: the same in the terminal, in Markdown and on the page."""

from collections.abc import Sequence

from redline.model import Finding, FindingKind, Grade
from redline.model.limits import Beyond, CellLimit, Knee, LimitAnswer, LimitReport, LimitStart
from redline.quantities import duration, percent, rate, significant


def rate_told(per_s: float | None) -> str:
    """`1,769/s`: as many digits as an answer has; a dash where it is not known."""
    return "—" if per_s is None else f"{per_s:,.0f}/s"


def answer_told(answer: LimitAnswer) -> str:
    """`met up to 1,720/s, missed from 1,817/s (±2.7%)`; where a side is not known, what is known of it."""
    low, high = answer.passed_per_s, answer.failed_per_s
    if low is None or high is None:
        return f"{_met(answer)}, {_missed(answer)}"
    return f"met up to {rate_told(low)}, missed from {rate_told(high)} ({half_width(answer)})"


def half_width(answer: LimitAnswer) -> str:
    """`±2.7%` of the middle; empty where a side is open."""
    low, high = answer.passed_per_s, answer.failed_per_s
    return "" if low is None or high is None else f"±{percent((high - low) / (high + low))}"


def method_told(answer: LimitAnswer) -> str:
    """How the interval is known, in few words: with several workers it holds the truth less often than it says.

    So it does where starts differ.
    """
    if answer.confidence is None:
        return "by how starts differ, and by single rates" if answer.starts_differ else "by single rates"
    if answer.starts_differ:
        return f"{percent(answer.confidence)} interval, by how starts differ: they are few, so it may be too sure"
    return f"{percent(answer.confidence)} interval, by the model of a queue with one worker"


def _met(answer: LimitAnswer) -> str:
    if answer.passed_per_s is not None:
        return f"met up to {rate_told(answer.passed_per_s)}"
    return "up to where it is met is not known" if answer.met_somewhere else "met at no rate that was tried"


def _missed(answer: LimitAnswer) -> str:
    if answer.failed_per_s is not None:
        return f"missed from {rate_told(answer.failed_per_s)}"
    return "from where it is missed is not known" if answer.missed_somewhere else "missed at none"


def ended_told(cell: CellLimit) -> str:
    """How the search ended, where that is not with an answer for each set; empty otherwise."""
    match cell.ended:
        case "converged":
            return ""
        case "doomed":
            return f"no answer: {cell.reason}"
        case "exhausted":
            used = sum(probe.phase != "curve" for probe in cell.probes)
            return f"all {used} probes are used up while a side is not known"
        case "broken":
            return f"broken: {cell.reason}; this is what was known by then"
        case "interrupted":
            return "interrupted: this is what was known by then"


def confirmed_told(cell: CellLimit) -> str:
    """Whether the ends were tried again, and agreed; empty where there is no answer to confirm."""
    if cell.ended != "converged":
        return ""
    starts = len({probe.start for probe in cell.probes if probe.phase == "confirm" and probe.fresh})
    where = f" on {starts} fresh start{'s' if starts > 1 else ''} of the server" if starts else ""
    return f"{'confirmed' if cell.confirmed else 'not confirmed'} at both ends{where}"


def warm_up_told(start: LimitStart) -> str:
    """How one start was warmed up: `steady after 12.5 s`."""
    after = duration(start.warmed_ns)
    if start.steady is None:
        return f"warmed up for {after}"
    return f"steady after {after}" if start.steady else f"still changing after all of {after}"


def starts_told(cell: CellLimit) -> str:
    """How its starts were warmed up; empty where none was."""
    told = [warm_up_told(start) for start in cell.starts]
    if len(set(told)) <= 1:
        return "".join(told[:1]) if len(told) <= 1 else f"each of {len(told)} starts {told[0]}"
    return "; ".join(f"start {number} {one}" for number, one in enumerate(told, 1))


def knee_told(knee: Knee) -> str:
    """`at 1,003/s (780 to 1,240/s) …, 50% of the most that it answered`."""
    share = "" if knee.share is None else f", {percent(round(knee.share, 2))} of the most that it answered"
    bounds = f"{knee.low_per_s:,.0f} to {rate_told(knee.high_per_s)}"
    return f"at {rate_told(knee.rate_per_s)} ({bounds} are within 5%), mean {duration(knee.mean_ns)}{share}"


def knee_of(cell: CellLimit) -> str:
    """The same, or why there is none."""
    return knee_told(cell.knee) if cell.knee else f"not known: {cell.no_knee}" if cell.no_knee else ""


def goodput_told(beyond: Beyond) -> str:
    """What the server answered while more was asked than it can do."""
    asked = f"asked for {rate_told(beyond.overload_per_s)} over {significant(beyond.overload_s, 2)} s"
    if beyond.goodput == "not known" or beyond.goodput_share is None:
        return f"{asked}: not known, {beyond.reason}"
    share = f"{percent(round(beyond.goodput_share, 2))} of its capacity of {rate_told(beyond.capacity_per_s)}"
    errors = f", and {beyond.errors_overload:,} errors" if beyond.errors_overload else ""
    if beyond.collapsed_after_s is not None:
        fell = f"below half after {significant(beyond.collapsed_after_s, 2)} s"
        return f"{asked}, it collapses: {share}, {fell}{errors}"
    return f"{asked}, it {beyond.goodput}: {share}{errors}"


def recovery_told(beyond: Beyond) -> str:
    """Whether it came back at the rate that it bore before."""
    back_at = f"back at {rate_told(beyond.calm_per_s)}"
    p99 = _p99s(beyond)
    match beyond.recovery:
        case "recovers":
            gone = "" if beyond.backlog_gone_s is None else f" (the backlog after {_seconds(beyond.backlog_gone_s)})"
            after = "within that time" if beyond.back_s is None else f"after {_seconds(beyond.back_s)}"
            return f"{back_at}, it recovers {after}{gone}{p99}"
        case "stays slow":
            return f"{back_at}, it stays slow: hysteresis{p99}"
        case "does not come back":
            reason = f": {beyond.reason}" if beyond.reason else ""
            return f"{back_at}, it does not come back within {_seconds(beyond.after_s)}: hysteresis{reason}"
        case "not known":
            return f"{back_at}: not known, {beyond.reason}"


def _p99s(beyond: Beyond) -> str:
    if beyond.p99_before_ns is None or beyond.p99_after_ns is None:
        return ""
    return f"; p99 {duration(beyond.p99_before_ns)} before, {duration(beyond.p99_after_ns)} after"


def _seconds(seconds: float) -> str:
    return "at once" if seconds <= 0 else f"{significant(seconds, 2)} s"


def beyond_told(cell: CellLimit) -> tuple[str, ...]:
    """Both, or why nobody looked."""
    if cell.beyond is None:
        return (f"not tried: {cell.no_beyond}",) if cell.no_beyond else ()
    return goodput_told(cell.beyond), recovery_told(cell.beyond)


def client_told(cell: CellLimit) -> str:
    """Where not the server was the limit, or how many probes told nothing where others of their rate did.

    Empty when none, or where the search's reason says it.
    """
    clients = [each for each in cell.probes if each.client]
    if not clients or cell.ended == "doomed":
        return ""
    told = {each.rate_per_s for each in cell.probes if not each.client}
    if untold := [each for each in clients if each.rate_per_s not in told]:
        highest = max(untold, key=lambda probe: probe.rate_per_s)
        return f"not the server was the limit at {rate(highest.rate_per_s)}: {highest.client}"
    count = f"{len(clients)} probes" if len(clients) > 1 else "1 probe"
    return f"{count} told nothing, as at {rate(clients[0].rate_per_s)}: {clients[0].client}"


def doubts_told(cell: CellLimit) -> tuple[str, ...]:
    """What engine and machine did to the probes: of each kind the gravest, and to how many; notes are not told."""
    grave = [each for each in cell.findings if each.grade is not Grade.NOTE]
    return tuple(_doubt_told(cell, [each for each in grave if each.kind is kind]) for kind in _kinds(grave))


def _kinds(findings: Sequence[Finding]) -> list[FindingKind]:
    return list(dict.fromkeys(each.kind for each in findings))


def _doubt_told(cell: CellLimit, alike: Sequence[Finding]) -> str:
    worst = max(alike, key=lambda each: each.grade.weight)
    where = "" if worst.position is None else f" at {rate_told(cell.probes[worst.position].rate_per_s)}"
    return f"{worst.kind} in {len(alike)} of {len(cell.probes)} probes, as{where}: {worst.message} {worst.advice}"


def title(report: LimitReport) -> str:
    """What was searched."""
    return report.suite or report.url
