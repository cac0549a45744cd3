"""Histograms of groups, and differences of two servers' shares, as charts from the page's data."""

from collections.abc import Iterator, Sequence

from redline.document.scales import Scale, scale_from_zero, time_scale
from redline.model import Report
from redline.quantities import percent
from redline.render.svg.chart import Chart, ChartArea, ChartLine, Point
from redline.render.svg.run_charts import CEILING, DASHES, SERIES
from redline.report.distributions import (
    ComparableCell,
    PlotDifference,
    cells_with_curves,
    distributions_payload,
)
from redline.report.views import colours, groups


def distribution_charts(report: Report) -> Iterator[tuple[str, Chart]]:
    """Each by a name such as `SimpleGet.saturate.histogram`, or `SimpleGet.saturate.B-minus-A`."""
    data, index = distributions_payload(report, ()), colours(report)
    cells = [cell for _, cell in cells_with_curves(report)]
    for group in groups(report):
        places = [at for at, cell in enumerate(cells) if any(cell.cell_id == own.cell_id for own in group.cells)]
        if not places:
            continue
        name, about = f"{group.scenario}.{group.load}", f"{group.title}, {group.load_text}"
        drawn = []
        for place in places:
            cell, server = cells[place], index[cells[place].server]
            ceiling = cell.role == "ceiling"
            label = f"{cell.server} (ceiling)" if ceiling else cell.server
            look = (CEILING if ceiling else SERIES[server % len(SERIES)], DASHES[server // len(SERIES) % len(DASHES)])
            drawn.append((label, look, data["cells"][place]))
        if chart := _histogram(about, data["edges"], drawn):
            yield f"{name}.histogram", chart
        for pair in data["differences"]:
            if pair["cell"] in places:
                ours, theirs = cells[pair["cell"]].server, cells[pair["baseline"]].server
                yield f"{name}.{ours}-minus-{theirs}", _difference(about, ours, theirs, pair)


def _histogram(
    about: str, edges: Sequence[int], cells: Sequence[tuple[str, tuple[str, str], ComparableCell]]
) -> Chart | None:
    """Steps from the beginning of each bin to its end, and the shares of requests as heights."""
    lines, areas, times, highest = list[ChartLine](), list[ChartArea](), list[float](), 0.0
    for label, (colour, dash), cell in cells:
        if not cell["bins"]:
            continue
        first, total = cell["first"], cell["count"]
        ends = [float(edge) for edge in edges[first - 1 : first + len(cell["bins"])]]
        shares = [number / total for number in cell["bins"]]
        steps: list[Point] = []
        for start, end, share in zip(ends, ends[1:], shares, strict=False):
            steps += [(start, share), (end, share)]
        times += ends
        highest = max(highest, *shares)
        lines.append(ChartLine(label, colour, (tuple(steps),), dash, 1.5))
        areas.append(ChartArea(colour, tuple((x, 0.0, y) for x, y in steps)))
    x = time_scale(times)
    if x is None:
        return None
    return Chart(
        "Histogram of response times",
        f"{about}; a bin ends 12% above the last",
        x,
        scale_from_zero(highest, percent),
        "response time",
        "share of requests in a bin",
        tuple(lines),
        tuple(areas),
    )


def _difference(about: str, ours: str, theirs: str, pair: PlotDifference) -> Chart:
    times = [float(ns) for ns in pair["t"]]
    values = [our - their for our, their in zip(pair["ours"], pair["theirs"], strict=True)]
    low, high = pair.get("low", values), pair.get("high", values)
    reach = 1.1 * max(0.005, *(abs(share) for row in (values, low, high) for share in row))
    ticks = [*(tick for tick, _ in scale_from_zero(reach / 1.2, percent).ticks)]
    marked = tuple((tick, _points(tick)) for tick in sorted({*ticks, *(-tick for tick in ticks)}))
    x = time_scale(times) or Scale(1.0, 10.0, log=True)
    band = (
        f"band: 95% interval at each time alone, over {pair['about']}"
        if "low" in pair
        else f"no band from {pair['about']}"
    )
    return Chart(
        f"Share of requests answered within a time: {ours} minus {theirs}",
        f"{about}; {band}",
        x,
        Scale(-reach, reach, marked),
        "response time",
        "points",
        (
            ChartLine("", "#575d68", (((x.low, 0.0), (x.high, 0.0)),), "", 1.0),
            ChartLine(f"{ours} minus {theirs}", SERIES[0], (tuple(zip(times, values, strict=True)),)),
        ),
        (ChartArea(SERIES[0], tuple(zip(times, low, high, strict=True))),) if "low" in pair else (),
    )


def _points(share: float) -> str:
    sign = "+" if share > 0 else "\u2212" if share < 0 else ""
    return f"{sign}{abs(100 * share):g}"
