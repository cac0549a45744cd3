"""Remarks on the trials behind the numbers: how they warmed up, why so many were made, and which have no partner."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from redline.document import format as fmt
from redline.model import Comparison, Metric, Precision, Warming, WarmUp
from redline.quantities import duration, percent

if TYPE_CHECKING:  # a load has none
    from redline.model import CellReport, Report

_ORDER: tuple[Warming, ...] = ("flat", "warmed up", "still compiling", "slowing down", "never steady")


def warm_ups(cells: "Iterable[CellReport]") -> list[tuple[str, str]]:
    """Servers, with commas, and how they warmed up; cells whose trials were too short to judge are left out."""
    said: dict[str, list[str]] = {}
    for cell in cells:
        if text := warm_up_text(cell):
            said.setdefault(text, []).append(cell.server)
    return [(", ".join(servers), text) for text, servers in said.items()]


def route_text(cell: "CellReport") -> str:
    """`hyper+via=nginx: h1 → proxy.nginx → h1; of all CPU per request: server 9.1 µs, proxy.nginx 12 µs.`; or empty."""
    said = [cell.route] if cell.route else []
    for metric in (Metric.CPU_PER_REQUEST, Metric.MEMORY) if cell.shows_numbers else ():
        known = [(part.name, part.estimates[metric]) for part in cell.parts if metric in part.estimates]
        amounts = ", ".join(f"{name} {fmt.amount(estimate.value, estimate.unit)}" for name, estimate in known)
        said += [f"of all {fmt.label(metric)}: {amounts}"] if known else []
    return f"{cell.server}: {'; '.join(said)}." if said else ""


def warm_up_text(cell: "CellReport") -> str:
    """`3 of 5 trials flat, 2 warmed up after 4.20 s to 6.10 s; measured from 8.40 s to 12.5 s`; empty if unknown.

    An earlier warm-up by another load, such as `1 min by 2 users`, comes last.
    """
    seen = [trial.warm_up for trial in cell.trials if trial.warm_up]
    if not seen:
        return ""
    kinds = {kind: [warm_up for warm_up in seen if warm_up.kind == kind] for kind in _ORDER}
    counted = [(kind, those) for kind, those in kinds.items() if those]
    of = f" of {len(cell.trials)} trials"
    all_alike = len(counted) == 1 and len(seen) == len(cell.trials)
    parts = [
        ("" if all_alike else f"{len(those)}{of if first == 0 else ''} ") + _kind_text(kind, those)
        for first, (kind, those) in enumerate(counted)
    ]
    before = f", after {cell.warmed_up_before}" if cell.warmed_up_before else ""
    return f"{', '.join(parts)}; measured from {_range(warm_up.measured_from_ns for warm_up in seen)}{before}"


def trial_text(warm_up: WarmUp | None) -> str:
    """`warmed up after 4.20 s, measured from 8.40 s`; empty if unknown."""
    if warm_up is None:
        return ""
    return f"{_kind_text(warm_up.kind, [warm_up])}, measured from {duration(warm_up.measured_from_ns)}"


def _kind_text(kind: Warming, those: list[WarmUp]) -> str:
    if kind == "warmed up":
        return f"warmed up after {_range(warm_up.steady_from_ns or 0 for warm_up in those)}"
    if kind == "slowing down":
        return f"slowing down, by {percent(max(warm_up.lost or 0.0 for warm_up in those))}"
    return kind


def _range(times_ns: Iterable[int]) -> str:
    ordered = sorted(times_ns)
    ends = dict.fromkeys((duration(ordered[0]), duration(ordered[-1])))
    return " to ".join(ends)


def precision_text(precision: Precision) -> str:
    """`7 rounds: all main comparisons are within ±2%, the widest (rust.axum.SimpleGet.saturate) ±1.8%`."""
    rounds = fmt.count(precision.rounds, "round")
    if precision.ended == "no valid trial":
        lost = ", ".join(map(fmt.slug_of, precision.lost)) or "a main comparison"
        goal = f"the goal was ±{fmt.percent(precision.asked)}"
        return f"{rounds}: no valid trial of {lost}, so more rounds would not help; {goal}"
    ended = {"at most": ", the most that were allowed", "budget": ", until the budget was spent"}.get(precision.ended)
    without = ""
    if precision.without and precision.half_width is not None:
        without = f"; without an interval: {', '.join(map(fmt.slug_of, precision.without))}"
    return f"{rounds}{ended or ''}: {_known(precision)}{without}"


def _known(precision: Precision) -> str:
    goal = f"±{fmt.percent(precision.asked)}"
    if precision.half_width is None or precision.cell_id is None:
        return f"no main comparison has an interval yet; the goal is {goal}"
    half = "beyond ±100%" if precision.half_width > 1 else f"±{fmt.percent(precision.half_width)}"
    widest = f"the widest ({fmt.slug_of(precision.cell_id)}) {half}"
    if precision.half_width <= precision.asked:
        return f"all main comparisons are within {goal}, {widest}"
    return f"not all main comparisons are within {goal}, {widest}{_forecast(precision)}"


def _forecast(precision: Precision) -> str:
    """`; ±1% would take about 40 rounds, and 30 are allowed: starts differ, so only more of them help`."""
    if precision.forecast is None or precision.at_most is None:
        return ""
    goal, rounds = f"±{fmt.percent(precision.asked)}", fmt.count(precision.forecast, "round")
    allowed = f", and {precision.at_most} are allowed" if precision.forecast > precision.at_most else ""
    advice = {
        "starts": ": starts differ, so only more of them help",
        "machine": ": it is the machine's noise, so a longer `for` helps as well",
        None: "",
    }[precision.scatter]
    return f"; {goal} would take about {rounds}{allowed}{advice}"


def lone_rounds(report: "Report") -> tuple[str, ...]:
    """The rounds without a partner in all comparisons, with baselines and step by step."""
    return lone_rounds_of((*report.comparisons, *(effect.comparison for effect in report.effects)))


def lone_rounds_of(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """`4 of 6 rounds have a valid trial of both: rust.axum.SimpleGet.saturate and rust.hyper.SimpleGet.saturate`."""
    texts: dict[tuple[str, str], str] = {}
    for comparison in comparisons:
        if comparison.rounds is not None and comparison.ratio is not None:
            sides = comparison.cell_id, comparison.baseline_id
            rounds = f"{comparison.ratio.n} of {comparison.rounds} rounds have a valid trial of both"
            texts.setdefault(sides, f"{rounds}: {' and '.join(map(fmt.slug_of, sides))}")
    return tuple(texts.values())
