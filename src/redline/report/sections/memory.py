"""Memory and pauses of every cell whose runtime reports them: tables, which every renderer draws."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from redline.model import MemoryReport, Report
from redline.report import format as fmt
from redline.report.document import (
    Block,
    Column,
    Fold,
    Medium,
    Prose,
    Section,
    ServerCell,
    Table,
    TableCell,
    filled,
    line,
)
from redline.report.sections.views import Group, groups, servers

STEPS_MS = (0.1, 1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Between these, pauses are counted."""

_KINDS = ("young", "mixed", "full", "cycle", "degenerated")
_CAUSES = 4
_MEMORY = (
    *("allocated", "per request", "live set", "most in use", "heap", "largest heap", "memory", "container's limit"),
)
_SHORT = ("allocated per request", "live set", "largest heap", "memory", "time paused", "longest pause", "waits")
_PAUSES = (
    *("collector", "pauses", "time paused", "p50", "p99", "longest", "to safepoint, p99", "waits for memory"),
    *("collector threads", "compiler threads: used, waited"),
)


def memory_sections(report: Report) -> Iterator[Section]:
    """Tables of the groups; nothing where no runtime said anything. Text has the main numbers."""
    folds = []
    for place, (group, cells) in enumerate(_groups(report)):
        rows: Iterable[tuple[TableCell, ...]] = ((name, *_in_short(memory)) for name, memory in cells)
        short = replace(_table("", _SHORT, rows), on=Medium.TEXT)
        folds.append(Fold(group.heading(), tuple(filled(_invalid(cells), short, *_tables(cells))), not place))
    if folds:
        text = (
            "What the runtimes of servers said of the measurements, over the used trials, or all of them if a cell is "
            "invalid. A pause stops all threads of the application, and includes the time to the safepoint, until the "
            "last of them has stopped. The live set is what lives, or an upper bound, as collections of the whole heap "
            "found it. Threads of collector and compiler are given in cores that they used, and that they waited for."
        )
        yield Section("Memory and pauses", (Prose.of([text], "dim", on=Medium.PAGE), *folds), anchor="memory")


def _groups(report: Report) -> Iterator[tuple[Group, "_Cells"]]:
    """The groups in which a runtime said something, and the cells of which it did."""
    colours = {server: place for place, server in enumerate(servers(report))}
    for group in groups(report):
        cells = [
            (
                ServerCell(
                    cell.server,
                    "ceiling" if cell.role == "ceiling" else "",
                    valid=cell.valid,
                    series=colours[cell.server],
                ),
                memory,
            )
            for cell in group.cells
            if (memory := cell.memory) is not None
        ]
        if cells:
            yield group, cells


_Cells = list[tuple[ServerCell, MemoryReport]]


def _invalid(cells: _Cells) -> Prose:
    """Which of them are invalid: why, the report says elsewhere."""
    names = ", ".join(name.name for name, _ in cells if not name.valid)
    return Prose.of([f"Invalid, so over all trials: {names}."] if names else ())


def _tables(cells: _Cells) -> Iterator[Block]:
    yield _table("Memory", _MEMORY, ((name, *_memory(memory)) for name, memory in cells))
    yield _table("Pauses", _PAUSES, ((name, *_pauses(memory)) for name, memory in cells), left=("collector",))
    yield _table("Pauses by length", _steps(), ((name, *_by_length(memory)) for name, memory in cells))
    kinds = [
        kind
        for kind in _KINDS
        if any(collection.kind == kind for _, memory in cells for collection in memory.collections)
    ]
    rows: Iterable[tuple[TableCell, ...]] = ((name, *_collections(memory, kinds)) for name, memory in cells)
    yield _table("Collections, and the time in them", [*kinds, "causes"], rows, left=("causes",))


def _table(
    title: str, heads: Iterable[str], rows: Iterable[tuple[TableCell, ...]], left: tuple[str, ...] = ()
) -> Table:
    columns = (Column(head, "left" if head in left else "right") for head in heads)
    return Table((Column("server"), *columns), tuple(rows), line((title, "strong")) if title else (), on=Medium.PAGE)


def _in_short(memory: MemoryReport) -> Iterator[str]:
    sizes = (memory.allocated_per_request, memory.live_bytes, memory.max_heap_bytes, memory.peak_rss_bytes)
    yield from ("" if known is None else fmt.size(known) for known in sizes)
    yield fmt.percent(memory.paused_share)
    yield fmt.duration(memory.pauses.histogram.max_ns) if memory.pauses.count else "none"
    yield fmt.integer(memory.stalls.count) if memory.stalls.count else "none"


def _memory(memory: MemoryReport) -> Iterator[str]:
    yield "" if memory.allocated_per_s is None else f"{fmt.size(memory.allocated_per_s)}/s"
    sizes = (memory.allocated_per_request, memory.live_bytes, memory.most_used_bytes, memory.heap_bytes)
    for known in (*sizes, memory.max_heap_bytes, memory.peak_rss_bytes, memory.limit_bytes):
        yield "" if known is None else fmt.size(known)


def _pauses(memory: MemoryReport) -> Iterator[str]:
    pauses, stalls = memory.pauses, memory.stalls
    yield memory.collector
    yield f"{fmt.integer(pauses.count)}, {fmt.rate(pauses.count / memory.seconds)}" if memory.seconds else ""
    yield fmt.percent(memory.paused_share)
    if pauses.count:
        yield from map(fmt.duration, pauses.histogram.quantiles_ns((0.5, 0.99, 1.0)))
    else:
        yield from ("", "", "")
    yield fmt.duration(memory.to_safepoint.histogram.quantile_ns(0.99)) if memory.to_safepoint.count else ""
    yield f"{fmt.integer(stalls.count)}, {fmt.duration(stalls.total_ns)}" if stalls.count else "none"
    yield _cores(memory.collector_cores)
    yield ", ".join(filter(None, map(_cores, (memory.compiler_cores, memory.compiler_waits))))


def _cores(known: float | None) -> str:
    return "" if known is None else f"{known:.2g}"


def _steps() -> Iterator[str]:
    for low, high in zip((0.0, *STEPS_MS), STEPS_MS, strict=False):
        yield f"{low:g} to {high:g} ms" if low else f"below {high:g} ms"
    yield f"from {STEPS_MS[-1]:g} ms"


def _by_length(memory: MemoryReport) -> Iterator[str]:
    """How many pauses there are between the steps."""
    counts = [0] * (len(STEPS_MS) + 1)
    for ns, count in zip(*(bucket.tolist() for bucket in memory.pauses.histogram.buckets()), strict=True):
        counts[bisect_right(STEPS_MS, ns / 1e6)] += count
    return (fmt.integer(count) if count else "" for count in counts)


def _collections(memory: MemoryReport, kinds: list[str]) -> Iterator[str]:
    for kind in kinds:
        own = [collection for collection in memory.collections if collection.kind == kind]
        count, total_ns = sum(collection.count for collection in own), sum(collection.total_ns for collection in own)
        yield f"{fmt.integer(count)}, {fmt.duration(total_ns)}" if count else ""
    causes = [
        f"{collection.cause} ({collection.kind}) {fmt.integer(collection.count)}"
        for collection in memory.collections
        if collection.cause
    ]
    yield ", ".join((*causes[:_CAUSES], *(("…",) if len(causes) > _CAUSES else ())))
