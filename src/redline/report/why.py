"""Why compared servers differ: a sentence for each, and the functions that surely differ."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from redline.document import format as fmt
from redline.document.blocks import Block, ChangeCell, Column, Line, Look, Prose, Section, Table, line
from redline.document.figures import Bar, BarChart, FlameBox, FlameDifference, Panels
from redline.document.scales import Scale
from redline.model import CodeCost, Comparison, Estimate, FrameChange, Metric, Report, Verdict, WhyReport
from redline.quantities import duration, significant, size
from redline.report.views import groups
from redline.stats.stacks import KERNEL_MARK

TITLE = "Why"
_US = 1000.0
_MINUS = "\u2212"
_TOUCHED = " (touched in this range)"
_FLAMES: Mapping[str, Verdict | None] = {"grew": Verdict.SLOWER, "shrank": Verdict.FASTER, "not sure": None}
_FLAMES_HINT = (
    "width: CPU time per request with what it calls, the mean of both; orange: surely grew, green: surely shrank, "
    "grey: not sure, with 95% confidence among all frames"
)
_OF_MEASUREMENT = ("bytes received", "connections opened again")
_PACKAGES = re.compile(r"^(?:[a-z_]\w*\.)+(?=[A-Z])")
_ROWS, _NAMED = 10, 3
"""The most functions in the table, and in the sentence."""


def why_sections(report: Report) -> Iterator[Section]:
    """How differences of CPU time divide among functions; empty unless that was asked for."""
    blocks = list[Block]()
    for why in report.why:
        blocks.append(Prose(tuple(filter(None, (_sentence(report, why), _range(why)))), listed=True))
        if why.functions:
            blocks += [*_waterfall(report, why), _table(why)]
        blocks += difference_flames(report, why)
        if why.counters:
            blocks.append(_counters(why))
    if blocks:
        blocks.append(Prose.of(_notes(report.why), "dim"))
        yield Section(TITLE, tuple(blocks), anchor="why")


def _sentence(report: Report, why: WhyReport) -> Line:
    """`B needs 3.1% more CPU per request [+2.4, +3.9], +1.31 µs: +0.98 ± 0.12 µs in often; …`."""
    servers = {cell.cell_id: cell.server for cell in report.cells}
    where = {cell.cell_id: group.where(report.cells) for group in groups(report) for cell in group.cells}
    place: tuple[str, Look] = (where[why.cell_id], "dim")
    head = _whole(report, why, servers[why.cell_id])
    if why.problem:
        return line(place, f"{head}; no function is named: {why.problem}")
    named = [
        f"{_microseconds(cost.difference_ns)} in {name_of(cost)}{_TOUCHED if cost.touched else ''}"
        for cost in why.functions[:_NAMED]
    ]
    if (more := len(why.functions) - _NAMED) > 0:
        named.append(f"{fmt.count(more, 'further function')} in the table")
    if not named:
        named = [f"no function surely differs, of {fmt.integer(why.tested)}"]
    if why.others_ns is not None:
        named.append(f"{_microseconds(why.others_ns)} in {'many small ones' if why.functions else 'all together'}")
    if why.rest_ns is not None:
        named.append(f"not accounted for: {_microseconds(why.rest_ns)}")
    return line(place, f"{head}: {'; '.join(named)}")


def _whole(report: Report, why: WhyReport, server: str) -> str:
    ratio = next((known.ratio for known in report.comparisons if _is_of(known, why)), None)
    if ratio is None or why.whole_ns is None:
        return f"how much more CPU {server} needs is not known"
    if ratio.interval is None or ratio.interval[0] <= 1 <= ratio.interval[1]:
        unsure = f"whether {server} needs more CPU per request is not sure"
        return f"{unsure} {fmt.change_bounds(ratio)}, {_microseconds(why.whole_ns)}"
    more = "more" if ratio.value >= 1 else "less"
    size = fmt.change(ratio).lstrip("+\N{MINUS SIGN}")
    return f"{server} needs {size} {more} CPU per request {fmt.change_bounds(ratio)}, {_microseconds(why.whole_ns)}"


def _is_of(comparison: Comparison, why: WhyReport) -> bool:
    """Whether a comparison is that of the CPU time of these two."""
    return comparison.metric is Metric.CPU_PER_REQUEST and (comparison.cell_id, comparison.baseline_id) == (
        why.cell_id,
        why.baseline_id,
    )


def _table(why: WhyReport) -> Table:
    in_range = why.touched is not None
    rows = tuple(
        (
            name_of(cost),
            cost.library,
            *((touched_text(cost),) if in_range else ()),
            _amount(cost.before_ns, cost.difference_ns),
            _amount(cost.after_ns, cost.difference_ns),
            _microseconds(cost.difference_ns),
        )
        for cost in why.functions[:_ROWS]
    )
    heads = (Column("before", "right"), Column("after", "right"), Column("difference", "right"))
    names = (Column("function"), Column("library"), *((Column("in this range"),) if in_range else ()))
    return Table((*names, *heads), rows)


def _waterfall(report: Report, why: WhyReport) -> Iterator[Panels]:
    """From the baseline to the server: what surely differs by function, all others, and what is not accounted for."""
    if why.whole_ns is None or why.others_ns is None or why.rest_ns is None:
        return
    steps = [(name_of(cost), cost.difference_ns) for cost in why.functions[:_ROWS]]
    if further := why.functions[_ROWS:]:
        value = sum(cost.difference_ns.value for cost in further)
        sum_of_all = Estimate(value=value, low=None, high=None, unit="ns", n=why.starts, method="a sum: no interval")
        steps.append((fmt.count(len(further), "further function"), sum_of_all))
    steps += [("many small ones", why.others_ns), ("not accounted for", why.rest_ns)]
    rows, begin = list[tuple[str, Bar | None, ChangeCell | str]](), 0.0
    for name, difference in steps:
        rows.append((name, _bar(begin, difference), _microseconds(difference)))
        begin += difference.value
    rows.append(("all together", _bar(0.0, why.whole_ns), _microseconds(why.whole_ns)))
    ends = [end for _, bar, _ in rows if bar is not None for end in (bar.start, bar.end, bar.low, bar.high)]
    known = [end for end in ends if end is not None]
    ticks = ((0.0, "0"), (why.whole_ns.value, f"{fmt.signed(why.whole_ns.value / _US, _places(why.whole_ns))} µs"))
    servers = {cell.cell_id: cell.server for cell in report.cells}
    title = f"CPU per request, from {servers[why.baseline_id]} to {servers[why.cell_id]}"
    scale = Scale(min(known), max(*known, min(known) + 1.0), ticks, origin=0.0)
    yield Panels((BarChart(title, f"Waterfall of {title}", scale, tuple(rows), joined=True),))


def _bar(begin: float, difference: Estimate) -> Bar:
    """A bar from where the last ended. What is not sure has no colour."""
    low, high = difference.low, difference.high
    verdict = Verdict.INCONCLUSIVE
    if low is not None and high is not None and not low <= 0 <= high:
        verdict = Verdict.SLOWER if low > 0 else Verdict.FASTER
    low, high = (None if end is None else begin + end for end in (low, high))
    return Bar(begin, begin + difference.value, low, high, verdict)


def difference_flames(report: Report, why: WhyReport) -> Iterator[FlameDifference]:
    """The stacks of both servers as one flame graph; nothing if they were not sampled."""
    if not why.frames:
        return
    servers = {cell.cell_id: cell.server for cell in report.cells}
    before, after = servers[why.baseline_id], servers[why.cell_id]
    whole, boxes, begins = max(_width(why.frames[0]), 1e-12), list[FlameBox](), [0.0]
    for frame in why.frames:
        start, width = begins[frame.depth], _width(frame) / whole
        difference = frame.after_ns - frame.before_ns
        change = f"{fmt.signed(difference / _US, 2)} ± {frame.half_width_ns / _US:,.2f} µs, {frame.changed}"
        name = _short(frame.name) if frame.name else "all"
        about = (
            f"{name}: {frame.before_ns / _US:,.2f} µs in {before}, {frame.after_ns / _US:,.2f} µs in {after}: {change}"
        )
        boxes.append(FlameBox(name, about, frame.depth, start, width, _FLAMES[frame.changed]))
        begins[frame.depth :] = [start + width, start]
    title = f"Where {after} and {before} need CPU time"
    sure = fmt.count(sum(box.verdict is not None for box in boxes[1:]), "frame")
    label = f"Flame graph of {after} against {before}: {sure} of {fmt.integer(len(boxes) - 1)} surely differ"
    yield FlameDifference(title, label, tuple(boxes), _FLAMES_HINT)


def _width(frame: FrameChange) -> float:
    """The mean of both servers, so that a frame of one of them alone is seen, and frames fit below their callers."""
    return (frame.before_ns + frame.after_ns) / 2


def _counters(why: WhyReport) -> Table:
    """What surely changed, what surely did not, and what is not decided, in this order."""
    order = ("surely", "surely not", "not decided")
    rows = tuple(
        (
            f"{counter.name}{', per request' if counter.per_request else ''}",
            _counted(counter.before, counter.difference.unit),
            _counted(counter.after, counter.difference.unit),
            _counted_difference(counter.difference),
            counter.changed,
        )
        for counter in sorted(why.counters, key=lambda counter: order.index(counter.changed))
    )
    heads = (Column("before", "right"), Column("after", "right"), Column("difference", "right"))
    return Table((Column("what else differs"), *heads, Column("changed")), rows)


def _counted(value: float, unit: str) -> str:
    if unit == "ns":
        return duration(value)
    return size(value) if unit == "B" else significant(value, 3)


def _counted_difference(difference: Estimate) -> str:
    """`+1.02 [+0.98, +1.06]`."""
    assert difference.low is not None, "it is an interval over starts"
    assert difference.high is not None, "it is an interval over starts"
    ends = (_signed(end, difference.unit) for end in (difference.low, difference.high))
    return f"{_signed(difference.value, difference.unit)} [{', '.join(ends)}]"


def _signed(value: float, unit: str) -> str:
    return f"{_MINUS if value < 0 else '+'}{_counted(abs(value), unit)}"


def touched_text(cost: CodeCost) -> str:
    """Whether the range of commits touches a function that surely differs, or what calls it."""
    if cost.touched or not cost.below:
        return "touched" if cost.touched else "not touched"
    return f"not touched, below {_short(cost.below)}"


def _range(why: WhyReport) -> Line | None:
    """`the range touches 3 functions: often (serve.c), …; 2 were sampled and tested first, and 1 surely differs`."""
    if why.touched is None or why.problem:
        return None
    if not why.touched:
        return line("the range touches no function that is known by its source: all functions are one family")
    names = ", ".join(one.text for one in why.touched[:_NAMED])
    if (more := len(why.touched) - _NAMED) > 0:
        names += f" and {fmt.integer(more)} more"
    differ = sum(bool(cost.touched) for cost in why.functions)
    tested = f"{fmt.integer(why.touched_tested)} were sampled and tested first, and {_differing(differ)}"
    others = len(why.functions) - differ
    also = f"; of the others, {_differing(others)}" if others else ""
    return line(f"the range touches {fmt.count(len(why.touched), 'function')}: {names}; {tested}{also}")


def _differing(functions: int) -> str:
    return f"{fmt.integer(functions)} surely differ{'s' if functions == 1 else ''}"


def name_of(cost: CodeCost) -> str:
    """A function without the packages of its class, which the library stands for; the kernel's are said to be that."""
    return _short(cost.name)


def _short(function: str) -> str:
    name = function.removesuffix(KERNEL_MARK)
    return _PACKAGES.sub("", name) if name == function else f"{name} (kernel)"


def _notes(reports: Sequence[WhyReport]) -> Iterator[str]:
    per_request = [counter.name for why in reports for counter in why.counters if counter.per_request]
    if not all(name.startswith(_OF_MEASUREMENT) for name in per_request):
        yield f"Other counts than {' and '.join(_OF_MEASUREMENT)} are those of whole starts, warm-up included."
    if uncounted := next((why.uncounted for why in reports if why.uncounted), ""):
        yield f"System calls were not counted: {uncounted}."
    used = next((why for why in reports if why.samples), None)
    if used is None:
        return
    cost = "" if used.overhead is None else f"; sampling changes CPU per request by {fmt.with_bounds(used.overhead)}"
    if lost := next((why for why in reports if why.lost), None):
        yield f"Left out: {fmt.count(lost.lost, 'sampled start')}, since {lost.lost_because}."
    yield (
        f"CPU time in a function itself, per request. {used.profiler}, {fmt.integer(used.samples)} samples, "
        f"{fmt.count(used.starts, 'further start')} that no other number includes{cost}. "
        f"Named is what differs with 95% confidence among all functions."
    )


def _places(of: Estimate) -> int:
    half = 0.0 if of.low is None or of.high is None else (of.high - of.low) / 2 / _US
    return min(4, max(0, 1 - math.floor(math.log10(half)))) if half > 0 else 2


def _amount(ns: float, beside: Estimate) -> str:
    """A cost in µs, with as many digits as the difference beside it has."""
    return f"{ns / _US:,.{_places(beside)}f} µs"


def _microseconds(difference: Estimate) -> str:
    """`+0.98 ± 0.12 µs`, with two digits of the half width."""
    places, value = _places(difference), difference.value / _US
    if difference.low is None or difference.high is None:
        return f"{fmt.signed(value, places)} µs"
    return f"{fmt.signed(value, places)} ± {(difference.high - difference.low) / 2 / _US:,.{places}f} µs"
