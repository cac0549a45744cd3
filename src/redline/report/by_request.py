"""The requests of scenarios with several: tables of speeds, times, outcomes and CPU time, and their ratios in duets."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from redline.document import format as fmt
from redline.document.blocks import Block, Column, Fold, Line, Medium, Prose, Section, Table, filled, line
from redline.model import CellReport, MixCpu, ObjectiveState, Report, RequestRatio, RequestReport
from redline.model.limits import LimitProbe, LimitReport
from redline.model.percentile import Percentile
from redline.report.by_journey import journey_tables
from redline.report.views import counts_are_known, groups

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
MOST_ROWS = 20
"""A terminal shows so many requests of a scenario; other media show all."""
_WIDE = 0.5
"""A share with a wider interval stands in the table alone."""


def request_tables(
    requests: Sequence[RequestReport], title: str = "", cpu: Mapping[str, str] | None = None
) -> Iterator[Block]:
    """Yield the tables of a load: for a terminal in two parts, because a line does not hold all columns.

    `cpu` has the share of each request in the server's CPU time, where it is known.
    """
    if not requests:
        return
    heading = line((title, "strong")) if title else ()
    rated = any(request.rate_per_s is not None for request in requests)
    most = sorted(request.outcomes.total for request in requests)[-MOST_ROWS:]
    # In the order of the list, which is that of a journey's steps.
    shown = [request for request in requests if request.outcomes.total >= most[0]][:MOST_ROWS]
    known = [q for q in QUANTILES if any(point.q == q for request in requests for point in request.response)]
    columns = (Column("request"), *_times_heads(known))
    rows = tuple((request.request, *_times(request.response, known)) for request in shown)
    yield Table(columns, rows, heading, on=Medium.TERMINAL)
    columns = (Column("request"), *_counts_heads(cpu, rated=rated))
    yield Table(
        columns, tuple((request.request, *_counts(request, cpu, rated=rated)) for request in shown), on=Medium.TERMINAL
    )
    early = [request for request in shown if request.first_byte]
    known_early = [q for q in QUANTILES if any(point.q == q for request in requests for point in request.first_byte)]
    columns = (Column("first byte of"), *_times_heads(known_early))
    rows = tuple((request.request, *_times(request.first_byte, known_early)) for request in early)
    yield from [Table(columns, rows)] if rows else ()
    left = len(requests) - len(shown)
    more = f"{fmt.integer(left)} more came less often; Markdown, page, CSV and JSON have all of them."
    yield Prose.of([more] if left else (), "dim", on=Medium.TERMINAL)
    columns = (Column("request"), Column("sent as"), *_counts_heads(cpu, rated=rated), *_times_heads(known))
    all_rows = tuple(
        (
            *(request.request, f"{request.method} {request.path}"),
            *_counts(request, cpu, rated=rated),
            *_times(request.response, known),
        )
        for request in requests
    )
    yield Table(columns, all_rows, heading, on=Medium.WRITTEN)


def searched_tables(report: LimitReport) -> Iterator[Section]:
    """The tables of a search: of the probe at the highest rate that met its objectives, else at the lowest."""
    blocks = list[Block]()
    for cell in report.cells:
        if probe := _telling(cell.probes):
            name = f"{cell.slug}, at {probe.said}, which {_VERDICTS[_state(probe)]}"
            blocks += [*journey_tables(probe.journeys, name), *request_tables(probe.requests, name)]
    if blocks:
        about = Prose.of([_OF_PROBES], "dim", on=Medium.WRITTEN)
        yield Section("By request", tuple(filled(about, *blocks)), anchor="requests")


_OF_PROBES = "Of a single probe of each search; JSON and CSV have the requests of all probes."
_VERDICTS = {
    "met": "met the objectives",
    "missed": "missed the objectives",
    "not known": "says nothing of the objectives for sure",
}


def _state(probe: LimitProbe) -> ObjectiveState:
    """Whether a probe met all objectives."""
    states = {verdict.state for verdict in probe.counts}
    return "missed" if "missed" in states else "met" if states == {"met"} else "not known"


def _telling(probes: Iterable[LimitProbe]) -> LimitProbe | None:
    """The probe whose requests a reader of the answer wants to see; None without results by request."""
    by_state: dict[ObjectiveState, list[LimitProbe]] = {"met": [], "missed": [], "not known": []}
    for probe in sorted(probes, key=lambda probe: probe.tried):
        if probe.requests and not probe.is_void:
            by_state[_state(probe)].append(probe)
    ordered = [*reversed(by_state["met"]), *by_state["missed"], *by_state["not known"]]
    return next(iter(ordered), None)


def outcomes_table(requests: Sequence[RequestReport]) -> Table:
    """How requests ended, without speeds and times: those of an invalid load are no result."""
    heads = _counts_heads(rated=False)[:-1]
    return Table(
        (Column("request"), *heads), tuple((own.request, *[*_counts(own, rated=False)][:-1]) for own in requests)
    )


def request_sections(report: Report) -> Iterator[Section]:
    """The tables of every cell of a mix, and how its requests compare in duets; empty without mixes."""
    folds = list[Fold]()
    for group in groups(report):
        counted = [cell for cell in group.cells if cell.requests and (cell.shows_numbers or counts_are_known(cell))]
        cells = [cell for cell in counted if cell.shows_numbers]
        blocks = [block for cell in counted for block in journey_tables(cell.journeys, cell.server)]
        blocks += [
            block for cell in cells for block in request_tables(cell.requests, cell.server, _cpu_of(report, cell))
        ]
        blocks += [block for cell in cells for block in _ratios(report, cell)]
        if blocks:
            folds.append(Fold(group.heading(), tuple(filled(*blocks)), open=not folds))
    if folds:
        yield Section(
            "By request", (Prose.of([_ABOUT, *_about_cpu(report)], "dim", on=Medium.WRITTEN), *folds), anchor="requests"
        )


def cpu_lines(report: Report) -> Iterator[Line]:
    """Yield which request of a mix uses most of a server's CPU time, or why it is not known."""
    cells = {cell.cell_id: cell for cell in report.cells}
    where = {cell.cell_id: group.where(report.cells) for group in groups(report) for cell in group.cells}
    unknown: dict[tuple[str, str], list[str]] = {}
    for divided in report.cpu_by_request:
        cell = cells[divided.cell_id]
        if divided.reason and cell.shows_numbers:
            unknown.setdefault((where[divided.cell_id], divided.reason), []).append(cell.server)
        elif cell.shows_numbers and (text := _most_of_the_cpu(divided, cell.server)):
            yield line((where[divided.cell_id], "dim"), text)
    for (place, reason), servers in unknown.items():
        whose = " and ".join(servers)
        yield line((place, "dim"), f"which request uses most of the CPU time of {whose} is not known: {reason}")


def _most_of_the_cpu(divided: MixCpu, server: str) -> str:
    """`of A's CPU time, 61% [55, 67] goes to checkout, which is 10% of the requests`; empty if the interval is wide."""
    whole = divided.parts_over_mix
    if whole is not None and not divided.requests:
        apart = f"{fmt.percent(abs(whole.value - 1))} {'more' if whole.value > 1 else 'less'}"
        return (
            f"which request uses most of {server}'s CPU time is not known: by themselves the requests need {apart} "
            f"than in the mix {fmt.change_bounds(whole)}"
        )
    if not divided.requests:
        return ""
    most = max(divided.requests, key=lambda request: request.share.value)
    low, high = most.share.interval or (0.0, 1.0)
    if high - low > _WIDE:
        return ""
    return (
        f"of {server}'s CPU time, {fmt.share_with_bounds(most.share)} goes to {most.request}, "
        f"which is {fmt.percent(most.of_requests)} of the requests"
    )


def _cpu_of(report: Report, cell: CellReport) -> dict[str, str]:
    """The shares of a cell's requests in its server's CPU time, by request; empty if they are not known."""
    return {
        request.request: fmt.share_with_bounds(request.share)
        for divided in report.cpu_by_request
        if divided.cell_id == cell.cell_id
        for request in divided.requests
    }


_ABOUT = (
    "All used trials together, or all starts of a duet, whose slices give no throughput of a server alone. The "
    "throughputs of the requests add up to that of the server. Changes by request show where a difference comes from; "
    "the verdict is on the whole mix."
)


def _about_cpu(report: Report) -> Iterator[str]:
    if any(divided.requests for divided in report.cpu_by_request):
        yield "Shares of the CPU time rest on what each request costs by itself, in the same starts as the mix."


def _times_heads(quantiles: Sequence[float]) -> Iterator[Column]:
    return (Column(fmt.quantile_name(q), "right") for q in quantiles)


def _times(points: Sequence[Percentile], quantiles: Sequence[float]) -> Iterator[str]:
    """The percentiles for which there are enough requests."""
    known = {point.q: fmt.point_sign(point) for point in points}
    return (known.get(q, "") for q in quantiles)


def _counts_heads(cpu: Mapping[str, str] | None = None, *, rated: bool = True) -> tuple[Column, ...]:
    names = (
        *(("throughput",) if rated else ()),
        "requests",
        *(("of the CPU",) if cpu else ()),
        "failed",
        "status codes",
        "body",
    )
    return tuple(Column(name, "left" if name == "status codes" else "right") for name in names)


def _counts(request: RequestReport, cpu: Mapping[str, str] | None = None, *, rated: bool = True) -> Iterator[str]:
    kinds = [f"{fmt.integer(n)} {kind.replace('_', ' ')}" for kind, n in request.outcomes if kind != "ok" and n]
    if rated:
        yield "" if request.rate_per_s is None else fmt.rate(request.rate_per_s)
    yield fmt.integer(request.outcomes.total)
    if cpu:
        yield cpu.get(request.request, "")
    yield ", ".join(kinds) or "none"
    yield fmt.by_status(request.answers) or "none"
    yield fmt.size(request.body_bytes / request.answered) if request.answered else ""


def _ratios(report: Report, cell: CellReport) -> Iterator[Table]:
    """The changes of a cell's requests against those of its baseline, a row per request."""
    rows: dict[str, dict[float, RequestRatio]] = {}
    for ratio in report.request_ratios:
        if ratio.cell_id == cell.cell_id:
            rows.setdefault(ratio.request, {})[ratio.quantile] = ratio
    quantiles = sorted({q for known in rows.values() for q in known})
    if rows:
        columns = (Column("request"), *_times_heads(quantiles))
        cells = tuple(
            (request, *(fmt.with_bounds(known[q].ratio) if q in known else "" for q in quantiles))
            for request, known in rows.items()
        )
        title = line((cell.server, "strong"), (" against its baseline: response times by request", "dim"))
        yield Table(columns, cells, title)
