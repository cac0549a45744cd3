"""A selftest as the terminal shows it."""

from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.quantities import duration, integer, percent, significant
from redline.selftest.judge import at
from redline.selftest.results import CaseResult, Check, Judgement, Noise, PeerAnswer, Point, Quantile, SelftestResult

_STYLES: dict[Judgement, str] = {"ok": "green", "off": "red", "too noisy to say": "yellow"}
_NONE = "\u2014"


def print_selftest(result: SelftestResult, console: Console) -> None:
    """The machine, every case, and what it comes to."""
    machine = result.machine
    console.print(
        Text(f"{machine.cpu_model}, {machine.cores} cores, Linux {machine.kernel}; engine {machine.engine}", "bold")
    )
    console.print(f"round trip  {_line(result.round_trip)}", highlight=False)
    console.print(f"at rest     {_line(result.resting_round_trip)}", highlight=False)
    moved = duration(result.round_trip_drift_ns), duration(result.resting_round_trip_drift_ns)
    console.print(f"            their medians moved by {moved[0]} and {moved[1]}", highlight=False)
    console.print(f"sleeper     {_line(result.sleeper)}", highlight=False)
    for case in result.cases:
        console.print()
        _print_case(case, console)
    console.print()
    console.print(_summary(result))


def _line(found: tuple[Quantile, ...]) -> str:
    return "  ".join(f"{name(each.q)} {duration(each.ns)}" for each in found)


def name(q: float) -> str:
    """`p50`, `p99.9`, `max`."""
    return "max" if q >= 1 else f"p{q * 100:g}"


def _print_case(case: CaseResult, console: Console) -> None:
    console.print(Text.assemble((case.name, "bold"), f"  {case.about}"))
    console.print(Text(f"{case.load}; {integer(case.requests)} requests", style="dim"))
    console.print(Text(noise_text(case.noise), style="dim"))
    if case.points:
        console.print(_points(case.points))
    for check in case.checks:
        if check.judgement != "ok" or check.name != "wrong answers":
            console.print(_check(check))
    _print_reasons(case, console)
    if case.peers:
        console.print(_peers(case))
        for peer in case.peers:
            if peer.note:
                console.print(Text(f"  {peer.peer}: {peer.note}", style="dim"))


def _print_reasons(case: CaseResult, console: Console) -> None:
    """Each reason once, after what it is the reason of."""
    whose: dict[tuple[str, Judgement], list[str]] = {}
    for point in case.points:
        whose.setdefault((point.reason, point.judgement), []).append(name(point.q))
    for check in case.checks:
        whose.setdefault((check.reason, check.judgement), []).append(check.name)
    for (reason, judgement), names in whose.items():
        if reason:
            console.print(Text(f"  {', '.join(names)}: {reason}", style=_STYLES[judgement]))


def _points(points: tuple[Point, ...]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("", "truth", "Redline", "error", "chance+server", "goal", ""):
        table.add_column(heading, justify="left" if heading == "" else "right", no_wrap=True)
    for point in points:
        table.add_row(
            name(point.q),
            duration(point.truth_ns),
            duration(point.answer_ns),
            _signed(point.error_ns),
            _chance(point),
            f"±{duration(point.goal_ns)}",
            Text(point.judgement, style=_STYLES[point.judgement]),
        )
    return table


def _signed(ns: float) -> str:
    return duration(ns) if ns < 0 else f"+{duration(ns)}"


def _chance(point: Point) -> str:
    """Below and above the truth; the server's own lateness is only ever above."""
    low, high = round(point.truth_ns - point.low_ns), round(point.high_ns + point.allowance_ns - point.truth_ns)
    parts = [f"-{duration(low)}"] if low > 0 else []
    parts += [f"+{duration(high)}"] if high > 0 else []
    return " ".join(parts) or _NONE


def _check(check: Check) -> Text:
    texts: dict[str, Callable[[float], str]] = {
        "ns": duration,
        "distance": significant,
        "requests": lambda value: integer(round(value)),
    }
    text_of = texts[check.unit]
    text = f"{check.name}: {text_of(check.value)}, at most {text_of(check.limit)}  "
    return Text.assemble(text, (check.judgement, _STYLES[check.judgement]))


def noise_text(noise: Noise) -> str:
    """What the machine did, in a line."""
    shares = {
        "steal": noise.stolen_share,
        "pressure": noise.pressure_share,
        "without a core: engine": noise.engine_waited_share,
        "server": noise.server_waited_share,
    }
    parts = [f"{what} {percent(round(share, 3))}" for what, share in shares.items() if share is not None]
    return ", ".join([*parts, f"engine late p99 {duration(at(noise.engine_late, 0.99))}"])


def _peers(case: CaseResult) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("reports", no_wrap=True)
    for point in case.points:
        table.add_column(name(point.q), justify="right", no_wrap=True)
    table.add_row("truth", *(duration(point.truth_ns) for point in case.points))
    table.add_row("Redline", *(duration(point.answer_ns) for point in case.points))
    for peer in case.peers:
        table.add_row(_peer_name(peer), *(_reported(peer, point.q) for point in case.points))
    return table


def _peer_name(peer: PeerAnswer) -> str:
    named = f"{peer.peer} {peer.version}".strip()
    return f"{named} (closed)" if peer.loop == "closed" else named


def _reported(peer: PeerAnswer, q: float) -> str:
    return next((duration(point.ns) for point in peer.points if point.q == q), _NONE)


def _summary(result: SelftestResult) -> Text:
    judgements = [point.judgement for case in result.cases for point in case.points]
    judgements += [check.judgement for case in result.cases for check in case.checks]
    counts = ", ".join(f"{judgements.count(kind)} {kind}" for kind in _STYLES if kind in judgements)
    return Text.assemble((result.judgement, f"bold {_STYLES[result.judgement]}"), f": {counts}")
