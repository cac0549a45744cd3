"""Each trial of a run over time: its panels, and what they show in words."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from redline.document import format as fmt
from redline.document.blocks import Fold, Prose, Section, line
from redline.document.figures import TimeView
from redline.model import CellReport, Grade, Report, TrialReport
from redline.model.timeline import ROWS_PER_DECADE, TimedSteps, TimelineEvent, TrialTimeline
from redline.report.time_axis import (
    TimeHeat,
    TimeItem,
    TimeLine,
    TimePanel,
    TimeStretch,
    Unit,
    ats,
    points,
    steps,
    stretch,
)
from redline.report.views import groups

_TIMES = {"p50": "--s2", "p90": "--s0", "p99": "--s1", "p99.9": "--s3"}
_GRADES = {Grade.NOTE: "--note-bg", Grade.WARN: "--warn-bg", Grade.INVALID: "--invalid-bg"}
_SINGLE = "--band"


def trials_section(report: Report) -> Iterator[Section]:
    """The trials of all cells, one at a time; empty if none has a timeline."""
    made = [timeline for cell in report.cells for timeline in cell.trial_timelines]
    if not made:
        return
    trials = sum(len(cell.trials) for cell in report.cells)
    text = (
        "What engine, monitors and runtime recorded of a trial, on one time axis. Values are of steps, and are drawn "
        "as such; where nothing was recorded there is a gap. The warm-up is shaded and is in no result. "
    )
    if len(made) < trials:
        text += (
            "Of each cell there is the middle trial, in few steps: `redline report RUN --format intervals-csv` has "
            "every interval of every trial. "
        )
    text += "Drag to zoom in, double-click to see all again."
    view, told = TimeView("trials", "Trial", "A trial over time"), Prose.of([text], "dim")
    if trials == 1:
        yield Section("Over time", (view, told), anchor="trials")
        return
    fold = Fold(line("A trial at a time"), (told, view), open=False)
    yield Section("Each trial over time", (fold,), anchor="trials")


def trial_items(report: Report) -> list[TimeItem]:
    """The data of all trials with a timeline, in the order of the page."""
    cells = [cell for group in groups(report) for cell in group.cells]
    several = sum(len(cell.trials) for cell in cells) > 1
    return [_item(cell, timeline, noted=several) for cell in cells for timeline in cell.trial_timelines]


def _item(cell: CellReport, timeline: TrialTimeline, *, noted: bool) -> TimeItem:
    """The data of a trial. The findings of the only trial stand in their section: they are not `noted` here, too."""
    numbers = {trial.position: number for number, trial in enumerate(cell.trials, 1)}
    trials = {trial.position: trial for trial in cell.trials}
    trial = trials.get(timeline.position)
    counted = "" if trial is None or trial.used else " (used in part)" if trial.partly else " (left out)"
    own = [finding for finding in cell.findings if finding.position == timeline.position]
    return {
        "subject": f"{cell.server} · {cell.scenario} · {cell.load}",
        "name": f"trial {numbers.get(timeline.position, 1)}{counted}",
        "end": ats([timeline.ends_s])[0],
        "says": _says(trial, timeline),
        "notes": [f"{fmt.GRADE_MARKS[each.grade]} {each.kind}: {each.message}" for each in own if noted],
        "stretches": [*_stretches(timeline)],
        "panels": panels(timeline),
    }


def panels(timeline: TrialTimeline) -> list[TimePanel]:
    """The panels that have data."""
    return [panel for panel in _panels(timeline) if panel["lines"] or "heat" in panel]


def _panels(timeline: TrialTimeline) -> Iterator[TimePanel]:
    load = timeline.load
    errors = load if any(load.known("errors")) else TimedSteps.none()
    fine = _line(timeline.ticks, "answered", "--s2")
    if fine:
        fine["name"] = f"answered, by {_tick(timeline)}"
    yield _panel(
        "Rate",
        "rate",
        fine,
        _line(load, "offered", "--ceiling", dash=True),
        _line(load, "answered", "--s0"),
        _line(errors, "errors", "--slower"),
    )
    yield _panel("Response time", "ns", *(_line(load, name, token) for name, token in _TIMES.items()), log=True)
    if any(column.counts for column in timeline.heat):
        panel = _panel("Response times of all requests", "ns", log=True)
        panel["heat"] = heat_of(timeline)
        panel["label"] = "Requests by response time and step: the more, the stronger the colour"
        yield panel
    yield _panel(
        "CPU, in cores",
        "cores",
        _line(timeline.cpu, "server", "--s0"),
        _line(load, "engine", "--ceiling"),
        _line(timeline.cpu, "collector", "--s3"),
        _line(timeline.cpu, "compiler", "--s4"),
    )
    yield _panel("Memory of the server", "bytes", *_memory(timeline))
    yield _panel("Pauses and collections, by length", "ns", *_stops(timeline), log=True)
    taken = timeline.taken
    yield _panel(
        "CPU time that was taken away, in cores",
        "cores",
        *(
            _line(taken, name, token)
            for name, token in (("steal", "--slower"), ("throttled", "--s4"))
            if any(taken.known(name))
        ),
    )


def _panel(title: str, unit: Unit, *lines: TimeLine | None, log: bool = False) -> TimePanel:
    known = [line for line in lines if line is not None]
    label = f"{title}: {', '.join(line['name'] for line in known)}"
    return {"title": title, "unit": unit, "log": log, "label": label, "lines": known}


def _line(of: TimedSteps, name: str, colour: str, *, dash: bool = False) -> TimeLine | None:
    return steps(name, colour, of.edges_s, of.values[name], dash=dash) if name in of.values else None


def heat_of(timeline: TrialTimeline) -> TimeHeat:
    """The heat map: columns by step of the load, rows by response time."""
    columns = [[column.first, *column.counts] for column in timeline.heat]
    return {"x": ats(timeline.load.edges_s), "per": ROWS_PER_DECADE, "columns": columns}


def _memory(timeline: TrialTimeline) -> Iterator[TimeLine]:
    for name, token, dash in (("resident", "--s0", False), ("heap", "--ceiling", True)):
        if line := _line(timeline.memory, name, token, dash=dash):
            line["name"] = "capacity of the heap" if name == "heap" else name
            yield line
    if timeline.live:
        yield points("dots", "live after a collection", "--s2", timeline.live)


def _stops(timeline: TrialTimeline) -> Iterator[TimeLine]:
    for name, token, events in (
        ("pauses", "--s1", timeline.pauses),
        ("collections", "--s3", timeline.collections),
    ):
        if events:
            where = ((event.at_s, max(event.lasts_ns, 1)) for event in events)
            yield points("rings", name, token, where, (event.name for event in events))


def _stretches(timeline: TrialTimeline) -> Iterator[TimeStretch]:
    if timeline.measured_from_s > 0:
        yield stretch(0.0, timeline.measured_from_s, "warm-up")
    for event in timeline.events:
        colour = _GRADES[event.grade] if event.grade else _SINGLE
        yield stretch(event.at_s, event.end_s, event.name, colour)


def _says(trial: TrialReport | None, timeline: TrialTimeline) -> str:
    """What the panels show, in words."""
    parts = [*_steps_text(timeline)]
    if trial is not None and not trial.used:
        why = f": {trial.failure}" if trial.failure else ""
        said = (
            "Only some of the results rest on this trial" if trial.partly else "This trial is left out of all results"
        )
        parts.insert(0, f"{said}{why}")
    if timeline.apart:
        parts.append("CPU and memory are not shown: the server ran on another host, whose clock is another")
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts)


def _steps_text(timeline: TrialTimeline) -> Iterator[str]:
    load, start = timeline.load, timeline.measured_from_s
    width = median(b - a for a, b in pairwise(load.edges_s))
    warm = f" after a warm-up of {_seconds(start)}" if start > 0 else ""
    yield f"{_seconds(timeline.ends_s - start)} measured{warm}, in steps of about {_seconds(width)}"
    measured = {name: _measured(load, name, start) for name in load.values}
    rates = ((name, measured.get(name)) for name in ("offered", "answered", "errors"))
    said = (f"{_between(fmt.rate, known)} {name}" for name, known in rates if known and any(known))
    yield ", ".join(said) or "no requests"
    if times := measured.get("p99"):
        yield f"p99 {_between(fmt.duration, times)}"
    for name, steps_ in (("server", timeline.cpu), ("engine", load)):
        if cores := _measured(steps_, name, start):
            yield f"the {name} used at most {_cores(cores)}"
    if sizes := _measured(timeline.memory, "resident", start):
        yield f"memory {_between(fmt.size, sizes)}"
    yield from _counted("pause", timeline.pauses, timeline.pauses_in_all)
    yield from _counted("collection", timeline.collections, timeline.collections_in_all)
    if steal := timeline.taken.known("steal"):
        yield f"the host took at most {_cores(steal)}" if any(steal) else "the host took nothing"


def _cores(values: Sequence[float]) -> str:
    return f"{fmt.significant(max(values), 2)} cores"


def _between(text: Callable[[float], str], values: Sequence[float]) -> str:
    """`1.2 ms`, or `from 1.2 ms to 4 ms`."""
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"from {low} to {high}"


def _measured(of: TimedSteps, name: str, start_s: float) -> list[float]:
    """The values of steps after the warm-up."""
    pairs = zip(of.edges_s, of.values.get(name, ()), strict=False)
    return [value for at_s, value in pairs if value is not None and at_s >= start_s - 1e-6]


def _counted(noun: str, events: tuple[TimelineEvent, ...], in_all: int) -> Iterator[str]:
    if events:
        longest = fmt.duration(max(event.lasts_ns for event in events))
        shown = f", of which the longest {len(events)} are shown" if in_all > len(events) else ""
        yield f"{fmt.count(in_all or len(events), noun)} while it was measured{shown}, the longest {longest}"


def _tick(timeline: TrialTimeline) -> str:
    first, second = timeline.ticks.edges_s[:2]
    return _seconds(round(second - first, 3))


def _seconds(seconds: float) -> str:
    return fmt.duration(seconds * 1e9)
