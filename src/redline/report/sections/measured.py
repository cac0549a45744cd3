"""All that was measured, in tables of every group of cells, folded; what ran, and how to repeat it."""

from collections.abc import Iterable, Iterator, Mapping

from redline.model import CellReport, Estimate, Grade, Metric, Report, TrialReport
from redline.report import format as fmt
from redline.report.document import (
    Block,
    Column,
    Fold,
    InvalidCell,
    Prose,
    Section,
    ServerCell,
    Table,
    TableCell,
    TextCell,
    filled,
    line,
    words,
)
from redline.report.sections.answer import mark
from redline.report.sections.parts import repeat_section
from redline.report.sections.plots import has_curves
from redline.report.sections.trials import route_text, trial_text, warm_ups
from redline.report.sections.views import Group, built, groups, invalid_reason, servers

_SERVER = Column("server", merged=True)


def measured(report: Report) -> Iterator[Section]:
    """Objectives, estimates, percentiles, other times, outcomes and trials of every cell."""
    colours = {server: place for place, server in enumerate(servers(report))}
    folds = []
    for group in groups(report):
        cells = [(cell, _name(cell, colours[cell.server])) for cell in group.cells]
        folds.append(Fold(group.heading(), tuple(filled(*_tables(cells), _notes(group))), open=False))
    yield Section("All that was measured", tuple(folds), anchor="measured")


_Cells = list[tuple[CellReport, ServerCell]]


def _name(cell: CellReport, series: int) -> ServerCell:
    return ServerCell(cell.server, "ceiling" if cell.role == "ceiling" else "", series=series)


def _tables(cells: _Cells) -> Iterator[Block]:
    yield _table("Objectives", ["objective", "measured", "met"], _objectives(cells), left=("objective", "met"))
    metrics = [fmt.label(metric) for metric in Metric]
    estimates: Iterable[tuple[TableCell, ...]] = ((name, *_estimates(cell)) for cell, name in cells)
    yield _table("Estimates, each with its 95% interval", [*metrics, "rests on"], estimates, left=("rests on",))
    parts = [Metric.CPU_PER_REQUEST, Metric.MEMORY]
    rows = ((name, part.name, *_amounts(part.estimates, parts)) for cell, name in cells for part in cell.parts)
    yield _table("Server and proxies, each by itself", ["part", *map(fmt.label, parts)], rows, left=("part",))
    drawn = [(cell, name) for cell, name in cells if has_curves(cell)]
    shares = sorted({p.q for cell, _ in drawn for p in (*cell.response_percentiles, *cell.service_percentiles)})
    title = "Percentiles of the response time and of the service time"
    yield _table(title, ["time", *map(fmt.percent, shares)], _percentiles(drawn, shares), left=("time",))
    heads = ["time", "p50", "p99", "max", "count", "resolution"]
    yield _table("Handshakes and one-way times, over all used trials", heads, _other_times(drawn), left=("time",))
    outcomes: Iterable[tuple[TableCell, ...]] = ((name, *_outcomes(cell)) for cell, name in cells)
    yield _table("Outcomes, over the used trials", _OUTCOMES, outcomes, left=("by kind",))
    trials = [(trial, name) for cell, name in cells for trial in cell.trials]
    unused = frozenset(at for at, (trial, _) in enumerate(trials) if not trial.used)
    of_trials: Iterable[tuple[TableCell, ...]] = (
        (
            name,
            str(trial.round),
            str(trial.position),
            "yes" if trial.used else "no",
            _rate(trial),
            *("" if ns is None else fmt.duration(ns) for ns in (trial.p50_ns, trial.p99_ns, trial.cpu_per_request_ns)),
            trial_text(trial.warm_up),
            TextCell((line(trial.failure),), trial.log_tail) if trial.failure or trial.log_tail else "",
        )
        for trial, name in trials
    )
    yield _table("Trials", _TRIALS, of_trials, left=("warm-up", "failure"), muted=unused)


_OUTCOMES = [
    *("due", "right", "wrong or lost", "by kind", "late", "waited", "retried", "sent again", "reconnects", "sent"),
    "received",
]
_TRIALS = ["round", "position", "used", "throughput", "p50", "p99", "CPU per request", "warm-up", "failure"]


def _table(
    title: str,
    heads: list[str],
    rows: Iterable[tuple[TableCell, ...]],
    *,
    left: tuple[str, ...],
    muted: frozenset[int] = frozenset(),
) -> Table:
    columns = (Column(head, "left" if head in left else "right") for head in heads)
    return Table((_SERVER, *columns), tuple(rows), line((title, "strong")), muted=muted)


def _rate(trial: TrialReport) -> str:
    if trial.rate_per_s is not None:
        return fmt.rate(trial.rate_per_s)
    return "" if trial.failure else fmt.NO_ANSWERS


def _objectives(cells: _Cells) -> Iterator[tuple[TableCell, ...]]:
    for cell, name in cells:
        for result in cell.objectives:
            if cell.valid or result.known:
                sign, look = mark(result.state)
                met = line((f"{sign}{result.state}", look), f": {result.reason}" if result.reason else "")
            else:
                met = line((f"{fmt.GRADE_MARKS[Grade.INVALID]} invalid", Grade.INVALID))
            shown = cell.valid or result.at_most
            yield name, result.objective.text, fmt.actual(result) if shown else "no number", TextCell((met,))


def _estimates(cell: CellReport) -> Iterator[TableCell]:
    """Each with its interval below it, and what they rest on; of an invalid cell why there are none."""
    if not cell.valid:
        yield InvalidCell(invalid_reason(cell))
        return
    yield from _amounts(cell.estimates, Metric)
    yield _rests_on(cell)


def _amounts(estimates: Mapping[Metric, Estimate], metrics: Iterable[Metric]) -> Iterator[TableCell]:
    """Metrics with their intervals; nothing for those that were not measured."""
    for metric in metrics:
        estimate = estimates.get(metric)
        yield (
            TextCell((line(fmt.amount(estimate.value, estimate.unit), (f" {fmt.interval(estimate)}", "dim")),))
            if estimate
            else ""
        )


def _rests_on(cell: CellReport) -> str:
    """`5 trials, bootstrap of the mean, BCa`; with the metrics where not all rest on the same."""
    bases: dict[str, list[str]] = {}
    noun = "trial" if cell.trials else "start"
    for metric, estimate in cell.estimates.items():
        bases.setdefault(f"{fmt.count(estimate.n, noun)}, {estimate.method}", []).append(fmt.label(metric))
    if len(bases) < 2:
        return next(iter(bases), "")
    return "; ".join(f"{', '.join(metrics)}: {basis}" for basis, metrics in bases.items())


def _percentiles(drawn: _Cells, shares: list[float]) -> Iterator[tuple[TableCell, ...]]:
    """A row per time of a cell, or a single row where both are the same; cells may lack the deepest shares."""
    for cell, name in drawn:
        response, service = cell.response_percentiles, cell.service_percentiles
        times = {"both": response} if response == service else {"response": response, "service": service}
        for time, points in times.items():
            known = {point.q: fmt.duration(point.ns) for point in points}
            yield name, time, *(known.get(share, "") for share in shares)


def _other_times(drawn: _Cells) -> Iterator[tuple[TableCell, ...]]:
    for cell, name in drawn:
        for time in cell.other_times:
            off = f" ±{fmt.duration(time.clock_bound_ns)}" if time.clock_bound_ns else ""
            p50, p99, largest, resolution = (
                "" if ns is None else f"{fmt.duration(ns)}{error}"
                for ns, error in ((time.p50_ns, off), (time.p99_ns, off), (time.max_ns, off), (time.resolution_ns, ""))
            )
            yield name, time.name, p50, p99, largest, fmt.integer(time.count), resolution


def _outcomes(cell: CellReport) -> Iterator[TableCell]:
    counts = cell.counts
    kinds = [f"{fmt.integer(n)} {kind.replace('_', ' ')}" for kind, n in counts.outcomes if kind != "ok" and n]
    yield from map(fmt.integer, (counts.due, counts.outcomes.ok, counts.outcomes.errors))
    yield words(", ".join(kinds) or "none", *_first_failures(cell))
    yield from map(fmt.integer, (counts.late, counts.waited, counts.retried, counts.resent, counts.reconnects))
    yield from map(fmt.size, (counts.bytes_sent, counts.bytes_received))


def _first_failures(cell: CellReport) -> Iterator[str]:
    """The first failure per outcome, of the used trials."""
    told: set[str] = set()
    for failure in (failure for trial in cell.trials if trial.used for failure in trial.failures):
        if failure.outcome not in told:
            told.add(failure.outcome)
            yield failure.text


def _notes(group: Group) -> Prose:
    """Percentiles that need more requests, how servers warmed up, and what their connections agreed on."""
    texts = [
        f"{cell.server}, too few requests: {'; '.join(map(fmt.too_few, cell.too_few))}."
        for cell in group.cells
        if cell.too_few and has_curves(cell)
    ]
    texts += [f"Warm-up of {names}: {text}." for names, text in warm_ups(group.cells)]
    texts += [f"{cell.server}: {'; '.join(map(fmt.agreed, cell.tls))}." for cell in group.cells if cell.tls]
    texts += [text for cell in group.cells if (text := route_text(cell))]
    if any(cell.other_times for cell in group.cells):
        texts.append("One-way times are differences of two clocks, and no finer than the server's own resolution.")
    return Prose.of(texts, "dim")


def built_section(report: Report) -> Iterator[Section]:
    """What ran."""
    rows = tuple((server.server, server.runtime_version or "unknown", server.short_build) for server in built(report))
    if rows:
        table = Table(tuple(map(Column, ("server", "runtime", "build"))), rows)
        yield Section("Servers as they were built", (table,), anchor="built")


def repeat_run(report: Report) -> Iterator[Section]:
    """How to do the same again."""
    run = report.run
    facts = {"run": run.name, "seed": str(run.seed)}
    yield repeat_section("run", run.command, facts, report.environment, run.suite_text)
