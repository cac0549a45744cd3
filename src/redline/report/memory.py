"""Memory and pauses of every cell whose runtime reports them: tables, which every renderer draws."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import Block, Fold, Medium, Prose, Section, ServerCell, filled
from redline.model import MemoryReport, Report
from redline.report.parts import server_cell, server_table
from redline.report.views import colours, groups

STEPS_MS = (0.1, 1, 2, 5, 10, 20, 50, 100, 200, 500)
"""The bounds of pause lengths between which pauses are counted."""

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
    """Tables of the groups; empty if no runtime reported anything. Text has the main numbers."""
    series, folds = colours(report), list[Fold]()
    for group in groups(report):
        cells = [(server_cell(cell, series[cell.server]), cell.memory) for cell in group.cells if cell.memory]
        if cells:
            short = server_table("", _SHORT, ((name, _in_short(memory)) for name, memory in cells), on=Medium.TEXT)
            folds.append(Fold(group.heading(), tuple(filled(_invalid(cells), short, *_tables(cells))), not folds))
    if folds:
        text = (
            "What the runtimes of servers said of the measurements, over the used trials, or all of them if a cell is "
            "invalid. A pause stops all threads of the application, and includes the time to the safepoint, until the "
            "last of them has stopped. The live set is what lives, or an upper bound, as collections of the whole heap "
            "found it. Threads of collector and compiler are given in cores that they used, and that they waited for."
        )
        yield Section("Memory and pauses", (Prose.of([text], "dim", on=Medium.PAGE), *folds), anchor="memory")


_Cells = list[tuple[ServerCell, MemoryReport]]


def _invalid(cells: _Cells) -> Prose:
    """Name the invalid cells; the report says elsewhere why."""
    names = ", ".join(name.name for name, _ in cells if not name.valid)
    return Prose.of([f"Invalid, so over all trials: {names}."] if names else ())


def _tables(cells: _Cells) -> Iterator[Block]:
    yield server_table("Memory", _MEMORY, ((name, _memory(memory)) for name, memory in cells))
    yield server_table("Pauses", _PAUSES, ((name, _pauses(memory)) for name, memory in cells), left=("collector",))
    yield server_table("Pauses by length", _steps(), ((name, _by_length(memory)) for name, memory in cells))
    present = {collection.kind for _, memory in cells for collection in memory.collections}
    kinds = [kind for kind in _KINDS if kind in present]
    rows = ((name, _collections(memory, kinds)) for name, memory in cells)
    yield server_table("Collections, and the time in them", [*kinds, "causes"], rows, left=("causes",))


def _in_short(memory: MemoryReport) -> Iterator[str]:
    sizes = (memory.allocated_per_request, memory.live_bytes, memory.max_heap_bytes, memory.peak_rss_bytes)
    yield from map(_size, sizes)
    yield fmt.percent(memory.paused_share)
    yield fmt.duration(memory.pauses.histogram.max_ns) if memory.pauses.count else "none"
    yield fmt.integer(memory.stalls.count) if memory.stalls.count else "none"


def _memory(memory: MemoryReport) -> Iterator[str]:
    yield "" if memory.allocated_per_s is None else f"{fmt.size(memory.allocated_per_s)}/s"
    sizes = (memory.allocated_per_request, memory.live_bytes, memory.most_used_bytes, memory.heap_bytes)
    yield from map(_size, (*sizes, memory.max_heap_bytes, memory.peak_rss_bytes, memory.limit_bytes))


def _size(known: float | None) -> str:
    return "" if known is None else fmt.size(known)


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
    return "" if known is None else fmt.significant(known, 2)


def _steps() -> Iterator[str]:
    for low, high in zip((0.0, *STEPS_MS), STEPS_MS, strict=False):
        yield f"{low:g} to {high:g} ms" if low else f"below {high:g} ms"
    yield f"from {STEPS_MS[-1]:g} ms"


def _by_length(memory: MemoryReport) -> Iterator[str]:
    """Count the pauses between the bounds."""
    counts = [0] * (len(STEPS_MS) + 1)
    for ns, count in zip(*(bucket.tolist() for bucket in memory.pauses.histogram.buckets()), strict=True):
        counts[bisect_right(STEPS_MS, ns / 1e6)] += count
    return (fmt.integer(count) if count else "" for count in counts)


def _collections(memory: MemoryReport, kinds: Sequence[str]) -> Iterator[str]:
    for kind in kinds:
        alike = [collection for collection in memory.collections if collection.kind == kind]
        count, total_ns = sum(those.count for those in alike), sum(those.total_ns for those in alike)
        yield f"{fmt.integer(count)}, {fmt.duration(total_ns)}" if count else ""
    causes = [
        f"{collection.cause} ({collection.kind}) {fmt.integer(collection.count)}"
        for collection in memory.collections
        if collection.cause
    ]
    yield ", ".join((*causes[:_CAUSES], *(("…",) if len(causes) > _CAUSES else ())))
