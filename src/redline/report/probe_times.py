"""A search over time: each load at its rate or with its users, whether it met the objectives, what it measured."""

from collections.abc import Iterable, Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import Block, Fold, Prose, line
from redline.document.figures import TimeView
from redline.model.limits import Beyond, CellLimit, LimitProbe, LimitReport
from redline.model.timeline import SearchedLoad
from redline.report.limit_plots import band_colour, time_limits
from redline.report.limit_probes import counts_text, probe_note
from redline.report.time_axis import (
    TimeItem,
    TimeLine,
    TimePanel,
    TimeRule,
    TimeStretch,
    TimeZone,
    Unit,
    at,
    ats,
    rounded,
    steps,
    stretch,
)

_STATES = {"met": "--faster", "missed": "--slower", "not known": "--muted"}
_TIMES = {"p50": "--s2", "p99": "--s1"}

Placed = tuple[SearchedLoad, float]
"""A load with its begin on the axis, in seconds."""


def probes_view(cell: CellLimit, place: int) -> Iterator[Block]:
    """The search of a cell over time, for the page; `place` is that of its data. Nothing without recorded loads."""
    if not cell.loads:
        return
    text = (
        "The loads of the search in their order, without the time between them, each at the rate that was asked for; a "
        "warm-up by users is at the rate that it had. Point at a probe to see its rate on the curve above."
    )
    if cell.by_users:
        text = "The loads of the search in their order, without the time between them, each with its users."
    if [*_zones(cell)]:
        text += " Shaded across are the answers."
    yield Fold(
        line("The search over time"),
        (Prose.of([text], "dim"), TimeView("probes", "Search", f"The search of {cell.slug} over time", place)),
    )


def probe_items(report: LimitReport) -> list[TimeItem]:
    """The data of all cells; those without recorded loads have no panels."""
    return [_item(cell, place) for place, cell in enumerate(report.cells)]


def _item(cell: CellLimit, place: int) -> TimeItem:
    placed, ends = [], 0.0
    for load in cell.loads:
        placed.append((load, ends))
        ends += load.ends_s
    return {
        "subject": cell.slug,
        "name": "",
        "end": at(ends) or 1,
        "says": _says(cell, placed, ends),
        "notes": [],
        "stretches": [*_stretches(cell, placed)],
        "panels": [_rates(cell, placed), _times(cell, placed)] if placed else [],
        "links": place,
    }


def _stretches(cell: CellLimit, placed: Sequence[Placed]) -> Iterator[TimeStretch]:
    for number, (load, begins) in enumerate(placed):
        first = not number or placed[number - 1][0].start != load.start
        if first and load.start:
            yield stretch(begins, begins, f"start {load.start + 1}", "--muted")
        if load.phase == "warmup":
            yield stretch(begins, begins + load.ends_s, "warm-up")
        elif load.phase == "approach":
            yield stretch(begins, begins + load.ends_s, "approach")
        elif load.measured_from_s > 0:
            yield stretch(begins, begins + load.measured_from_s, "")
        if load.phase == "overload" and cell.beyond:
            before = begins + load.measured_from_s + cell.beyond.before_s
            yield stretch(before, before + cell.beyond.overload_s, "overload", "--invalid-bg")


def _state(probe: LimitProbe) -> str:
    """`missed` if any set of objectives is, `met` if all are."""
    states = {verdict.state for verdict in probe.counts}
    if "missed" in states:
        return "missed"
    return "met" if states == {"met"} else "not known"


def _rates(cell: CellLimit, placed: Sequence[Placed]) -> TimePanel:
    probes = [(load, begins, cell.probes[load.probe]) for load, begins in placed if load.probe is not None]
    lines: list[TimeLine] = []
    for state, colour in _STATES.items():
        mine = [(load, begins, probe) for load, begins, probe in probes if _state(probe) == state]
        if mine:
            heights = [probe.tried for _, _, probe in mine]
            says = [_probe_says(load, probe) for load, _, probe in mine]
            lines.append(_spans(state, colour, [(load, begins) for load, begins, _ in mine], heights, says))
    others = [(load, begins) for load, begins in placed if load.phase in ("warmup", "approach")]
    if others:
        heights = [load.users or load.rate_per_s or load.answered_per_s for load, _ in others]
        lines.append(_spans("warm-up", "--ceiling", others, heights, [load.phase for load, _ in others]))
    lines += _overload(cell.beyond, placed)
    title = "Users of each load" if cell.by_users else "Rate of each load"
    label = f"{title}: {'; '.join(_probe_line(probe) for _, _, probe in probes)}"
    unit: Unit = "count" if cell.by_users else "rate"
    made: TimePanel = {"title": title, "unit": unit, "log": False, "label": label, "lines": lines}
    if zones := [*_zones(cell)]:
        made["zones"] = zones
    if cell.knee:
        made["rules"] = [{"y": _short(cell.knee.rate_per_s), "text": f"knee {fmt.rate(cell.knee.rate_per_s)}"}]
    return made


def _spans(
    name: str, colour: str, placed: Sequence[Placed], heights: Iterable[float | None], says: Iterable[str] = ()
) -> TimeLine:
    """A bar from the start of each measurement to its end."""
    made: TimeLine = {
        "kind": "spans",
        "name": name,
        "colour": colour,
        "x": ats(begins + (load.measured_from_s if load.probe is not None else 0.0) for load, begins in placed),
        "until": ats(begins + load.ends_s for load, begins in placed),
        "y": rounded(heights),
    }
    if texts := [*says]:
        made["says"] = texts
    return made


def _zones(cell: CellLimit) -> Iterator[TimeZone]:
    for place, answer in enumerate(cell.limits):
        if answer.passed is not None and answer.failed is not None:
            yield {
                "low": _short(answer.passed),
                "high": _short(answer.failed),
                "colour": f"--s{band_colour(place)}",
            }


def _overload(beyond: Beyond | None, placed: Sequence[Placed]) -> Iterator[TimeLine]:
    """What was asked and answered in the overload test, by its slices."""
    if edges := _overload_edges(beyond, placed):
        course = beyond.course if beyond else ()
        yield steps("overload test: offered", "--ceiling", edges, (moment.asked_per_s for moment in course), dash=True)
        yield steps("answered", "--s0", edges, (moment.answered_per_s for moment in course))


def _overload_edges(beyond: Beyond | None, placed: Sequence[Placed]) -> list[float]:
    """The ends of its slices; `at_s` is where one ends."""
    begins = next((begins + load.measured_from_s for load, begins in placed if load.phase == "overload"), None)
    if beyond is None or begins is None or not beyond.course:
        return []
    return [begins, *(begins + moment.at_s for moment in beyond.course)]


def _times(cell: CellLimit, placed: Sequence[Placed]) -> TimePanel:
    probes = [(load, begins, cell.probes[load.probe]) for load, begins in placed if load.probe is not None]
    edges = _overload_edges(cell.beyond, placed)
    course = cell.beyond.course if cell.beyond and edges else ()
    lines: list[TimeLine] = []
    for name, colour in _TIMES.items():
        field = f"{name}_ns"
        known = [(load, begins, getattr(probe, field)) for load, begins, probe in probes if getattr(probe, field)]
        if known:
            heights = [height for _, _, height in known]
            lines.append(_spans(name, colour, [(load, begins) for load, begins, _ in known], heights))
        if course:
            values = (getattr(moment, field) or None for moment in course)
            lines.append(steps(f"{name} of the overload test", colour, edges, values))
    limits = sorted({limit for answer in cell.limits for limit in time_limits(answer)})
    title = "Response time of each load"
    made: TimePanel = {
        "title": title,
        "unit": "ns",
        "log": True,
        "label": f"{title}: p50 and p99; every number stands in the table of probes",
        "lines": lines,
    }
    rules: list[TimeRule] = [{"y": limit, "text": f"limit {fmt.duration(limit)}"} for limit in limits]
    if rules:
        made["rules"] = rules
    return made


def _probe_says(load: SearchedLoad, probe: LimitProbe) -> str:
    counts = counts_text(probe)
    at = "" if probe.began_s is None else f" at {probe.began_s:.0f} s"
    parts = (f"probe {(load.probe or 0) + 1}{at}", counts, probe_note(probe))
    return "; ".join(filter(None, parts))


def _probe_line(probe: LimitProbe) -> str:
    return f"{probe.said} {_state(probe)}"


def _says(cell: CellLimit, placed: Sequence[Placed], ends: float) -> str:
    states = [_state(cell.probes[load.probe]) for load, _ in placed if load.probe is not None]
    counted = ", ".join(f"{states.count(state)} {state}" for state in _STATES if state in states)
    starts = len({load.start for load, _ in placed})
    overload = ", and the overload test" if any(load.phase == "overload" for load, _ in placed) else ""
    probes = f"{fmt.count(len(states), 'probe')} ({counted})" if states else "no probe"
    return f"{probes} on {fmt.count(starts, 'start')} of the server{overload}: {fmt.duration(ends * 1e9)} of load."


def _short(value: float) -> float:
    return rounded([value])[0] or 0.0
