"""All measurements, in tables of every group of cells, folded; the servers, and how to repeat the run."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from redline.document import format as fmt
from redline.document.blocks import (
    Column,
    Fold,
    InvalidCell,
    Medium,
    Prose,
    Section,
    ServerCell,
    Table,
    TableCell,
    TextCell,
    WithoutScript,
    filled,
    line,
    words,
)
from redline.model import Bound, CellReport, Estimate, Metric, Report
from redline.report.objectives import mark
from redline.report.parts import repeat_section, server_cell, server_table
from redline.report.slowest import LEFT, TITLE, slowest_heads, slowest_row
from redline.report.table import WHOLE
from redline.report.trials import route_text, warm_ups
from redline.report.views import Group, colours, groups, invalid_reason

_OUTCOMES = [
    *(
        "due",
        "right",
        "wrong or lost",
        "by kind",
        "status codes",
        "late",
        "waited",
        "retried",
        "sent again",
        "reconnects",
    ),
    *("sent", "received"),
]
_HASH = 12
_UNDRAWN = "These tables need JavaScript; results.json has their numbers."
_Cells = list[tuple[CellReport, ServerCell]]
_Rows = Iterator[tuple[ServerCell, Iterable[TableCell]]]


def measured(report: Report) -> Iterator[Section]:
    """Objectives, estimates, percentiles, other times and outcomes of every cell; trials stand below the results."""
    series, folds, large = colours(report), list[Fold](), len(report.cells) > WHOLE
    for group in groups(report):
        cells = [(cell, server_cell(cell, series[cell.server])) for cell in group.cells]
        tables = (replace(table, later=large) for table in _tables(cells) if table)
        folds.append(Fold(group.heading(), tuple(filled(*tables, _notes(group))), open=False, later=large))
    said = (WithoutScript(_UNDRAWN),) if large else ()
    whole = (Fold(line("Tables by workload"), tuple(folds), open=False),) if len(folds) > 1 else tuple(folds)
    yield Section("All that was measured", (*said, *whole), anchor="measured")


def _tables(cells: _Cells) -> Iterator[Table | None]:
    yield server_table("Objectives", ["objective", "measured", "met"], _objectives(cells), left=("objective", "met"))
    levels = [metric for metric in Metric if any(metric in {**cell.known, **cell.bounds} for cell, _ in cells)]
    heads = [*map(fmt.label, levels), "rests on"]
    estimates = ((name, _estimates(cell, levels)) for cell, name in cells)
    yield server_table("Estimates, each with its 95% interval", heads, estimates, left=("rests on",))
    metrics = [Metric.CPU_PER_REQUEST, Metric.MEMORY]
    parts = ((name, (part.name, *_amounts(part.estimates, metrics))) for cell, name in cells for part in cell.parts)
    yield server_table("Server and proxies, each by itself", ["part", *map(fmt.label, metrics)], parts, left=("part",))
    timed = [(cell, name) for cell, name in cells if cell.shows_numbers]
    shares = sorted({p.q for cell, _ in timed for p in (*cell.response_percentiles, *cell.service_percentiles)})
    sliced = "" if all(cell.trials for cell, _ in timed) else ", all slices together"
    title = f"Percentiles of the response time and of the service time{sliced}"
    yield server_table(title, ["time", *map(fmt.percent, shares)], _percentiles(timed, shares), left=("time",))
    drawn = [(cell, name) for cell, name in timed if cell.other_times]
    shares = sorted({p.q for cell, _ in drawn for time in cell.other_times for p in time.points})
    heads = ["time", "count", "resolution", "clocks", *map(fmt.percent, shares)]
    title = "Times to the first byte, handshakes and one-way times, over all used trials"
    yield server_table(title, heads, _other_times(drawn, shares), left=("time",))
    slow = ((name, slowest_row(request)) for cell, name in cells for request in cell.slowest)
    yield server_table(TITLE, slowest_heads(cell for cell, _ in cells), slow, left=LEFT)
    outcomes = ((name, _outcomes(cell)) for cell, name in cells)
    yield server_table(
        "Outcomes, over the used trials, or all trials of an invalid cell",
        _OUTCOMES,
        outcomes,
        left=("by kind", "status codes"),
    )


def _objectives(cells: _Cells) -> _Rows:
    for cell, name in cells:
        for result in cell.objectives:
            sign, look = mark(result.state)
            met = line((f"{sign}{result.state}", look), f": {result.reason}" if result.reason else "")
            shown = cell.valid or (result.known and result.actual is not None)
            yield name, (result.objective.text, fmt.actual(result) if shown else "no number", TextCell((met,)))


def _estimates(cell: CellReport, metrics: Iterable[Metric]) -> Iterator[TableCell]:
    """The estimates with their intervals, and their basis; for an invalid cell, why there are none."""
    if not cell.shows_numbers:
        yield InvalidCell(invalid_reason(cell))
        return
    yield from _amounts(cell.known, metrics, cell.bounds)
    yield _rests_on(cell)


def _amounts(
    estimates: Mapping[Metric, Estimate], metrics: Iterable[Metric], bounds: Mapping[Metric, Bound] = {}
) -> Iterator[TableCell]:
    """Metrics with their intervals, or their bounds; empty for metrics that were not measured."""
    for metric in metrics:
        estimate = estimates.get(metric)
        if bound := bounds.get(metric):
            yield bound.words
            continue
        yield (
            TextCell((line(fmt.amount(estimate.value, estimate.unit), (f" {fmt.interval(estimate)}", "dim")),))
            if estimate
            else ""
        )


def _rests_on(cell: CellReport) -> str:
    """`5 trials, bootstrap of the mean, BCa`; with the metrics if their bases differ."""
    bases: dict[str, list[str]] = {}
    noun = "trial" if cell.trials else "start"
    for metric, estimate in cell.known.items():
        bases.setdefault(f"{fmt.count(estimate.n, noun)}, {estimate.method}", []).append(fmt.label(metric))
    if len(bases) < 2:
        return next(iter(bases), "")
    return "; ".join(f"{', '.join(metrics)}: {basis}" for basis, metrics in bases.items())


def _percentiles(drawn: _Cells, shares: list[float]) -> _Rows:
    """A row per time of a cell, or a single row if both are the same; cells may lack the deepest shares."""
    for cell, name in drawn:
        response, service = cell.response_percentiles, cell.service_percentiles
        times = {"both": response} if response == service else {"response": response, "service": service}
        for time, points in times.items():
            known = {point.q: fmt.point_sign(point) for point in points}
            yield name, (time, *(known.get(share, "") for share in shares))


def _other_times(drawn: _Cells, shares: list[float]) -> _Rows:
    """A row per time of a cell: how many, how fine, how far the clocks may be apart, and the distribution."""
    for cell, name in drawn:
        for time in cell.other_times:
            off = f"±{fmt.duration(time.clock_bound_ns)}" if time.clock_bound_ns else ""
            resolution = "" if time.resolution_ns is None else fmt.duration(time.resolution_ns)
            known = {point.q: fmt.duration(point.ns) for point in time.points}
            yield name, (time.name, fmt.integer(time.count), resolution, off, *(known.get(q, "") for q in shares))


def _outcomes(cell: CellReport) -> Iterator[TableCell]:
    counts = cell.counts
    first_failures: dict[str, str] = {}
    for trial in cell.trials:
        for failure in trial.failures if trial.used else ():
            first_failures.setdefault(failure.outcome, failure.text)
    kinds = [f"{fmt.integer(n)} {kind.replace('_', ' ')}" for kind, n in counts.outcomes if kind != "ok" and n]
    yield from map(fmt.integer, (counts.due, counts.outcomes.ok, counts.outcomes.errors))
    yield words(", ".join(kinds) or "none", *first_failures.values())
    yield fmt.by_status(cell.answers) or "none"
    yield from map(fmt.integer, (counts.late, counts.waited, counts.retried, counts.resent, counts.reconnects))
    yield from map(fmt.size, (counts.bytes_sent, counts.bytes_received))


def _notes(group: Group) -> Prose:
    """Percentiles that need more requests, how servers warmed up, and what their connections negotiated."""
    texts = [
        f"{cell.server}, too few requests: {'; '.join(map(fmt.too_few, cell.too_few))}."
        for cell in group.cells
        if cell.too_few and cell.shows_numbers
    ]
    texts += [f"Warm-up of {names}: {text}." for names, text in warm_ups(group.cells)]
    texts += [f"{cell.server}: {'; '.join(map(fmt.agreed, cell.tls))}." for cell in group.cells if cell.tls]
    texts += [f"{cell.server}: {'; '.join(fmt.encodings(cell.encoded))}." for cell in group.cells if cell.encoded]
    texts += [text for cell in group.cells if (text := route_text(cell))]
    if any(time.is_one_way for cell in group.cells for time in cell.other_times):
        texts.append("One-way times are differences of two clocks, and no finer than the server's own resolution.")
    return Prose.of(texts, "dim")


def built_section(report: Report) -> Iterator[Section]:
    """The servers that ran, for Markdown: the page has them below how to repeat the run."""
    if table := _built_table(report):
        yield Section("Servers as they were built", (table,))


def _built_table(report: Report) -> Table | None:
    """The servers that ran; without a column of runtimes if no server reports a runtime."""
    rows = built(report)
    known = any(runtime for _, runtime, _ in rows)
    shown = ("server", "runtime", "build") if known else ("server", "build")
    cells = tuple(row if known else (row[0], row[2]) for row in rows)
    return Table(tuple(map(Column, shown)), cells) if rows else None


def built(report: Report) -> tuple[tuple[str, str, str], ...]:
    """Servers, then proxies, with the runtime that they report, and the build: the first digits of all its hashes."""
    sides = [(cell.server, cell.runtime_version, cell.build) for cell in report.cells]
    sides += [(part.name, part.runtime_version, part.build) for cell in report.cells for part in cell.parts]
    return tuple(
        (name, runtime, ", ".join(hashed[:_HASH] for hashed in build.split(", ")))
        for name, runtime, build in dict.fromkeys(sides)
        if runtime or build
    )


def repeat_run(report: Report) -> Iterator[Section]:
    """How to repeat the run."""
    run = report.run
    facts = {"run": run.name, "seed": str(run.seed)}
    table = _built_table(report)
    folds = (Fold(line("Servers as they were built"), (table,), open=False, on=Medium.PAGE),) if table else ()
    yield repeat_section("run", run.command, facts, report.environment, run.suite_text, *folds)
