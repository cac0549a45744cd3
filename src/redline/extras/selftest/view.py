"""Show a selftest as sections: the machine, every case, and the summary."""

from collections.abc import Callable, Iterator, Sequence

from redline.document.blocks import (
    Block,
    Column,
    Line,
    Look,
    Prose,
    Section,
    Table,
    TextCell,
    filled,
    line,
    words,
)
from redline.document.format import quantile_name
from redline.extras.selftest.judge import at
from redline.extras.selftest.results import CaseResult, Check, Judgement, Noise, PeerAnswer, Point, SelftestResult
from redline.model import Grade
from redline.quantities import duration, integer, percent, significant

_LOOKS: dict[Judgement, Look] = {"ok": "met", "off": "missed", "too noisy to say": Grade.WARN}
_NONE = "\u2014"
_TEXTS: dict[str, Callable[[float], str]] = {
    "ns": duration,
    "distance": significant,
    "requests": lambda value: integer(round(value)),
}


def selftest_sections(result: SelftestResult) -> Iterator[Section]:
    """The machine, every case, and the summary."""
    machine = result.machine
    times = {"round trip": result.round_trip, "at rest": result.resting_round_trip, "sleeper": result.sleeper}
    quantiles = sorted({quantile.q for quantiles in times.values() for quantile in quantiles})
    rows = (
        (name, *(known.get(q, _NONE) for q in quantiles))
        for name, points in times.items()
        for known in [{point.q: duration(point.ns) for point in points}]
    )
    moved = duration(result.round_trip_drift_ns), duration(result.resting_round_trip_drift_ns)
    drift = Prose.of([f"The medians of both round trips moved by {moved[0]} and {moved[1]}."], "dim")
    title = f"{machine.cpu_model}, {machine.cores} cores, Linux {machine.kernel}; engine {machine.engine}"
    yield Section(title, (Table(_columns("", *map(quantile_name, quantiles)), tuple(rows)), drift))
    for case in result.cases:
        yield Section(case.name, tuple(filled(*_case(case))), case.about)
    yield Section("", (Prose((_summary(result),)),))


def _columns(first: str, *others: str) -> tuple[Column, ...]:
    return (Column(first), *(Column(name, "right" if name else "left") for name in others))


def _case(case: CaseResult) -> Iterator[Block]:
    yield Prose.of([f"{case.load}; {integer(case.requests)} requests", noise_text(case.noise)], "dim")
    yield Table(_columns("", "truth", "Redline", "error", "chance+server", "goal", ""), tuple(map(_point, case.points)))
    checks = (check for check in case.checks if check.judgement != "ok" or check.name != "wrong answers")
    yield Prose(tuple(map(_check, checks)))
    yield Prose(tuple(_reasons(case)), listed=True)
    if case.peers:
        rows = (
            ("truth", *(duration(point.truth_ns) for point in case.points)),
            ("Redline", *(duration(point.answer_ns) for point in case.points)),
            *(_reported(peer, [point.q for point in case.points]) for peer in case.peers),
        )
        yield Table(_columns("reports", *(quantile_name(point.q) for point in case.points)), rows)
        yield Prose.of((f"{peer.peer}: {peer.note}" for peer in case.peers if peer.note), "dim", listed=True)


def _reasons(case: CaseResult) -> Iterator[Line]:
    """Yield the reasons without repetition, after the points that they explain."""
    whose: dict[tuple[str, Judgement], list[str]] = {}
    for point in case.points:
        whose.setdefault((point.reason, point.judgement), []).append(quantile_name(point.q))
    for check in case.checks:
        whose.setdefault((check.reason, check.judgement), []).append(check.name)
    for (reason, judgement), names in whose.items():
        if reason:
            yield line((f"{', '.join(names)}: {reason}", _LOOKS[judgement]))


def _point(point: Point) -> tuple[str | TextCell, ...]:
    return (
        quantile_name(point.q),
        duration(point.truth_ns),
        duration(point.answer_ns),
        f"{'' if point.error_ns < 0 else '+'}{duration(point.error_ns)}",
        _chance(point),
        f"±{duration(point.goal_ns)}",
        words(point.judgement, look=_LOOKS[point.judgement]),
    )


def _chance(point: Point) -> str:
    """The error below and above the truth; the server's own lateness is only above."""
    low, high = round(point.truth_ns - point.low_ns), round(point.high_ns + point.allowance_ns - point.truth_ns)
    parts = [f"-{duration(low)}"] if low > 0 else []
    parts += [f"+{duration(high)}"] if high > 0 else []
    return " ".join(parts) or _NONE


def _check(check: Check) -> Line:
    text = _TEXTS[check.unit]
    goal = f"{check.name}: {text(check.value)}, at most {text(check.limit)}  "
    return line(goal, (check.judgement, _LOOKS[check.judgement]))


def noise_text(noise: Noise) -> str:
    """Describe in a line how the machine disturbed the case."""
    shares = {
        "steal": noise.stolen_share,
        "pressure": noise.pressure_share,
        "without a core: engine": noise.engine_waited_share,
        "server": noise.server_waited_share,
    }
    parts = [f"{what} {percent(round(share, 3))}" for what, share in shares.items() if share is not None]
    return ", ".join([*parts, f"engine late p99 {duration(at(noise.engine_late, 0.99))}"])


def _reported(peer: PeerAnswer, qs: Sequence[float]) -> tuple[str, ...]:
    """Return the name of a peer, and what it reports at these quantiles."""
    named = f"{peer.peer} {peer.version}".strip() + (" (closed)" if peer.loop == "closed" else "")
    known = {point.q: duration(point.ns) for point in peer.points}
    return named, *(known.get(q, _NONE) for q in qs)


def _summary(result: SelftestResult) -> Line:
    judgements = [point.judgement for case in result.cases for point in case.points]
    judgements += [check.judgement for case in result.cases for check in case.checks]
    counts = ", ".join(f"{judgements.count(kind)} {kind}" for kind in _LOOKS if kind in judgements)
    return line((result.judgement, _LOOKS[result.judgement]), f": {counts}")
