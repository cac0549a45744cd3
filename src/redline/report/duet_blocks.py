"""Each comparison by duets over time: both servers by turns, and the ratio after each start."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import Fold, Prose, Section, line
from redline.document.figures import TimeView
from redline.model import Metric, Report
from redline.model.timeline import BlockStep, DuetTimeline, StartTimeline
from redline.report.time_axis import (
    TimeItem,
    TimeLine,
    TimePanel,
    TimeStretch,
    Unit,
    at,
    ats,
    points,
    rounded,
    stretch,
)

_TOKENS = ("--s0", "--s1", "--ceiling")
_METRICS: dict[Metric, tuple[str, str, Unit, Callable[[BlockStep], Sequence[float | None]]]] = {
    Metric.CPU_PER_REQUEST: ("CPU time per request", "CPU per request", "ns", lambda block: block.costs),
    Metric.THROUGHPUT: ("Right answers per second", "throughput", "rate", lambda block: block.rates),
}
_BASELINE, _SERVER, _CONTROL = range(3)

Placed = tuple[StartTimeline, float, float]
"""A start with its begin and its end on the axis, in seconds."""


def blocks_section(report: Report) -> Iterator[Section]:
    """The duets of all comparisons, one at a time; empty without duets."""
    if not report.duet_timelines:
        return
    text = (
        "Servers of a comparison by turns, a block after the other; starts stand one after the other, without the time "
        "between them. The line is the ratio as it read once the start below it was over, from all starts up to "
        "this, and the band its 95% interval. Rings are blocks that do not count: of warm-ups, and of "
        "starts that are left out."
    )
    yield Section(
        "Each comparison over time",
        (
            Fold(
                line("A comparison at a time"),
                (Prose.of([text], "dim"), TimeView("duets", "Comparison", "A comparison over time")),
                open=False,
            ),
        ),
        anchor="blocks",
    )


def duet_items(report: Report) -> list[TimeItem]:
    """The data of all duets."""
    cells = {cell.cell_id: cell for cell in report.cells}
    made = []
    for timeline in report.duet_timelines:
        if cell := cells.get(timeline.cell_id):
            baseline, server, _ = timeline.servers
            made.append(_item(f"{cell.scenario} · {cell.load}", f"{server} against {baseline}", timeline))
    return made


def _item(subject: str, name: str, timeline: DuetTimeline) -> TimeItem:
    placed = _placed(timeline.starts)
    return {
        "subject": subject,
        "name": name,
        "end": at(placed[-1][2]) if placed else 1,
        "says": " ".join(f"{part[:1].upper()}{part[1:]}." for part in _says(timeline)),
        "notes": [*_notes(timeline)],
        "stretches": [*_stretches(placed)],
        "panels": [*_panels(timeline, placed)],
    }


def _placed(starts: Iterable[StartTimeline]) -> list[Placed]:
    placed, begins = [], 0.0
    for start in starts:
        if start.blocks:
            ends = begins + start.blocks[-1].end_s
            placed.append((start, begins, ends))
            begins = ends
    return placed


def _stretches(placed: Iterable[Placed]) -> Iterator[TimeStretch]:
    for start, begins, ends in placed:
        if start.left_out:
            yield stretch(begins, ends, f"start {start.number} left out", "--warn-bg")
        elif warm := [block for block in start.blocks if block.warms]:
            yield stretch(begins, begins + warm[-1].end_s, "warm-up")


def _panels(timeline: DuetTimeline, placed: Sequence[Placed]) -> Iterator[TimePanel]:
    judged = [metric for metric in _METRICS if any(metric in start.so_far for start, _, _ in placed)]
    for metric, (title, _, unit, values) in _METRICS.items():
        lines = [_server(timeline, placed, place, values) for place in range(len(timeline.servers))]
        known = [line for line in lines if any(value is not None for value in line["y"])]
        if known:
            label = f"{title} by block: {', '.join(line['name'] for line in known)}"
            yield {"title": title, "unit": unit, "log": False, "label": label, "lines": known}
        if metric in judged:
            yield _ratio_panel(metric, timeline, placed)


def _server(
    timeline: DuetTimeline,
    placed: Sequence[Placed],
    place: int,
    values: Callable[[BlockStep], Sequence[float | None]],
) -> TimeLine:
    """A step for each block, and a gap between starts."""
    edges: list[float] = []
    heights: list[float | None] = []
    for start, begins, _ in placed:
        for block in start.blocks:
            if edges:
                heights.append(None)
            edges += [begins + block.at_s, begins + block.end_s]
            heights.append(values(block)[place])
    return {
        "kind": "steps",
        "name": timeline.servers[place],
        "colour": _TOKENS[place],
        "x": ats(edges),
        "y": rounded(heights),
    }


def _ratio_panel(metric: Metric, timeline: DuetTimeline, placed: Sequence[Placed]) -> TimePanel:
    _, noun, _, values = _METRICS[metric]
    baseline, server, _ = timeline.servers
    counted, others = list[tuple[float, float]](), list[tuple[float, float]]()
    for start, begins, _ in placed:
        for block in start.blocks:
            if (ratio := _ratio(values(block))) is not None:
                middle = begins + (block.at_s + block.end_s) / 2
                (counted if block.counts else others).append((middle, ratio))
    lines = [*_so_far(metric, placed)]
    if others:
        lines.append(points("rings", "blocks that do not count", "--ceiling", others))
    lines.append(points("dots", "blocks that count", "--s0", counted))
    title = f"{server} / {baseline} in {noun}"
    label = f"{title}: {'; '.join(_readings(metric, timeline))}"
    rules = [{"y": 1.0, "text": "no difference"}]
    return {"title": title, "unit": "ratio", "log": False, "label": label, "lines": lines, "rules": rules}  # type: ignore[typeddict-item]


def _ratio(values: Sequence[float | None]) -> float | None:
    """The server over the geometric mean of the two copies of the baseline, as the estimate has it."""
    baseline, server, control = (values[place] for place in (_BASELINE, _SERVER, _CONTROL))
    return server / (baseline * control) ** 0.5 if baseline and server and control else None


def _so_far(metric: Metric, placed: Sequence[Placed]) -> Iterator[TimeLine]:
    """The ratio as it read once a start was over, drawn over this start and those since the reading before."""
    read = [(ends, start.so_far[metric]) for start, _, ends in placed if metric in start.so_far]
    if not read:
        return
    begins = next(begins for start, begins, _ in placed if metric in start.so_far)
    edges = [begins, *(ends for ends, _ in read)]
    estimates = [estimate for _, estimate in read]
    yield {
        "kind": "band",
        "name": "95% interval after each start",
        "colour": "--s2",
        "x": ats(edges),
        "y": rounded(estimate.low for estimate in estimates),
        "high": rounded(estimate.high for estimate in estimates),
    }
    yield {
        "kind": "steps",
        "name": "the ratio after each start",
        "colour": "--s2",
        "x": ats(edges),
        "y": rounded(estimate.value for estimate in estimates),
    }


def _readings(metric: Metric, timeline: DuetTimeline) -> Iterator[str]:
    for start in timeline.starts:
        if estimate := start.so_far.get(metric):
            yield f"after start {start.number} {fmt.with_bounds(estimate)}"


def _says(timeline: DuetTimeline) -> Iterator[str]:
    steps = [step for start in timeline.starts for step in start.blocks]
    blocks, counted = sum(step.blocks for step in steps), sum(step.blocks for step in steps if step.counts)
    merged = "" if len(steps) == blocks else f", drawn in {len(steps)} steps"
    starts = fmt.count(len(timeline.starts), "start")
    yield f"{starts} with {fmt.count(blocks, 'block')}, of which {fmt.integer(counted)} count{merged}"
    for metric, (_, noun, _, _) in _METRICS.items():
        known = [start.so_far[metric] for start in timeline.starts if metric in start.so_far]
        if known:
            read = fmt.with_bounds(known[0])
            more = f" at first, and {fmt.with_bounds(known[-1])} at last" if len(known) > 1 else ""
            yield f"in {noun} the ratio read {read}{more}"


def _notes(timeline: DuetTimeline) -> Iterator[str]:
    for start in timeline.starts:
        if start.left_out:
            yield f"Start {start.number} is left out: {start.left_out}."
        if start.paused_blocks:
            paused = fmt.count(start.paused_blocks, "block")
            yield f"Start {start.number}: {paused} left out and not drawn, as the engine was paused meanwhile."
    for why in dict.fromkeys(timeline.failed):
        times = timeline.failed.count(why)
        yield f"{fmt.count(times, 'start')} failed: {why}"
