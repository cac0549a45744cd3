"""The page's distributions of any cells, one over the other: percentiles, histograms, and the difference of two."""

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import numpy as np

from redline.document import format as fmt
from redline.document.blocks import Fold, Line, Prose, filled, line
from redline.document.figures import Distributions
from redline.model import CellReport, Report, SharesCompared
from redline.model.histogram import HistogramTable
from redline.quantities import duration
from redline.report.curves import Distribution, distribution, has_curves
from redline.report.views import Group, colours, groups

BINS_IN_TEN = 20
"""Bins of a histogram in each factor of ten of its times: a bin ends 12% above the one before."""
_MOST_PAIRS, _MOST_STEPS = 100, 3_000
"""Differences on a page, and their times together: each of a few has all of its own."""
_SAID = 3
"""Up to so many differences of a group are said beside its plots."""


class ComparableCell(TypedDict):
    """A cell: its name, requests by bin from the bin `first` on, and its curves.

    Curves that a plot of the page has stand there: `drawn` is the place of its group, and their place in that.
    """

    name: str
    count: int
    first: int
    bins: list[int]
    drawn: NotRequired[tuple[int, int]]
    curve: NotRequired[Distribution]


class PlotDifference(TypedDict):
    """The shares of two cells, by their indices, at times in nanoseconds; `low` and `high` are the interval's ends."""

    cell: int
    baseline: int
    t: list[int]
    ours: list[float]
    theirs: list[float]
    low: NotRequired[list[float]]
    high: NotRequired[list[float]]
    about: str


class PlotDistributions(TypedDict):
    """All cells with curves, the edges of their bins in nanoseconds, and the differences that the report has."""

    cells: list[ComparableCell]
    edges: list[int]
    chosen: list[int]
    differences: list[PlotDifference]


def distributions_fold(report: Report) -> Fold | None:
    """The choice of cells, folded; None if there is nothing to draw."""
    cells = cells_with_curves(report)
    if not cells:
        return None
    explained = (
        "Each request of a cell is in a bin of its histogram; a bin ends 12% above the last. The difference is of "
        "the shares of requests that two servers answered within a time, with a 95% interval at each time alone."
    )
    title = line("Distributions of any cells, overlaid")
    blocks = tuple(filled(Distributions(bool(_pairs(report, cells))), Prose.of([explained], "dim")))
    return Fold(title, blocks, open=False, anchor="distributions")


def said_of(report: Report, group: Group) -> Prose:
    """Where the distributions of a group's comparisons are farthest apart; nothing if they are many."""
    names = {cell.cell_id: cell.server for cell in group.cells}
    parts = [part for part in report.shares if {part.cell_id, part.baseline_id} <= names.keys()]
    return Prose(tuple(farthest_line(part, names) for part in parts) if len(parts) <= _SAID else (), listed=True)


def farthest_line(part: SharesCompared, names: Mapping[str, str]) -> Line:
    """`B against A: within 2.00 ms B has answered 12.0 points fewer of its requests than A [10.9, 13.1]: …`."""
    point = part.farthest
    who, other = names[part.cell_id], names[part.baseline_id]
    apart = abs(point.difference)
    if apart < 0.0005:
        return line(
            (f"{who} against {other}", "strong"),
            ": both have answered the same share of their requests within every time.",
        )
    sign, more = (-1, "fewer") if point.difference < 0 else (1, "more")
    ends = chance = ""
    if point.low is not None and point.high is not None:
        low, high = sorted((100 * sign * point.low, 100 * sign * point.high))
        ends = f" [{_points(low)}, {_points(high)}]"
        chance = " The interval includes 0." if low <= 0 <= high else ""
    cold = f" The interval does not allow for this: {part.unsettled}." if ends and part.unsettled else ""
    return line(
        (f"{who} against {other}", "strong"),
        f": within {duration(point.ns)} {who} has answered {100 * apart:.1f} points {more} of its requests than "
        f"{other}{ends}: {_share(point.cell)} against {_share(point.baseline)}. There they are farthest apart."
        f"{chance}{cold}",
    )


def _points(value: float) -> str:
    return fmt.signed(value, 1).removeprefix("+")


def _share(share: float) -> str:
    return f"{100 * share:.1f}%"


def distributions_payload(report: Report, drawn: Sequence[Sequence[str]]) -> PlotDistributions:
    """The data of these plots. `drawn` are the ids of the cells whose curves the plots of groups have, by group."""
    cells, index = cells_with_curves(report), colours(report)
    held = {cell_id: (group, at) for group, ids in enumerate(drawn) for at, cell_id in enumerate(ids)}
    edges, table = _edges([cell for _, cell in cells]), HistogramTable([cell.response for _, cell in cells])
    counts = np.diff(table.counts_up_to_each(edges), axis=0, prepend=0).T
    made: list[ComparableCell] = []
    for (where, cell), row in zip(cells, counts, strict=True):
        filled_bins = np.flatnonzero(row)
        first, last = (int(filled_bins[0]), int(filled_bins[-1])) if len(filled_bins) else (0, -1)
        shown: ComparableCell = {
            "name": f"{where}{cell.server}{' (ceiling)' if cell.role == 'ceiling' else ''}",
            "count": cell.response.count,
            "first": first,
            "bins": row[first : last + 1].tolist(),
        }
        if cell.cell_id in held:
            shown["drawn"] = held[cell.cell_id]
        else:
            shown["curve"] = distribution(index[cell.server], cell)
        made.append(shown)
    pairs = _pairs(report, cells)
    differences = [_difference(place, part, len(pairs)) for place, part in pairs]
    return {"cells": made, "edges": edges, "chosen": sorted(_chosen(report, cells)), "differences": differences}


def _pairs(report: Report, cells: Sequence[tuple[str, CellReport]]) -> list[tuple[tuple[int, int], SharesCompared]]:
    """The differences that are drawn, with the places of their cells: the first ones of a large study."""
    places = {cell.cell_id: at for at, (_, cell) in enumerate(cells)}
    both = (((places.get(part.cell_id), places.get(part.baseline_id)), part) for part in report.shares)
    drawn = [((cell, base), part) for (cell, base), part in both if cell is not None and base is not None]
    return drawn[:_MOST_PAIRS]


def _difference(places: tuple[int, int], part: SharesCompared, several: int) -> PlotDifference:
    step = max(1, -(-len(part.points) // (_MOST_STEPS // several)))
    points = part.points[::step]
    made: PlotDifference = {
        "cell": places[0],
        "baseline": places[1],
        "t": [point.ns for point in points],
        "ours": [round(point.cell, 5) for point in points],
        "theirs": [round(point.baseline, 5) for point in points],
        "about": fmt.count(part.n, "start" if part.in_duets else "round"),
    }
    lows, highs = [point.low for point in points], [point.high for point in points]
    known = [(low, high) for low, high in zip(lows, highs, strict=True) if low is not None and high is not None]
    if len(known) == len(points):
        made["low"] = [round(low, 5) for low, _ in known]
        made["high"] = [round(high, 5) for _, high in known]
    return made


def cells_with_curves(report: Report) -> list[tuple[str, CellReport]]:
    """The cells whose response times are all known, in the order of the page, and the group of each in words."""
    return [
        (where, cell)
        for group in groups(report)
        for where in (group.where(report.cells),)
        for cell in filter(has_curves, group.cells)
        if cell.response.count
    ]


def _chosen(report: Report, cells: list[tuple[str, CellReport]]) -> set[int]:
    """The two cells of the first comparison, else the first two that are not ceilings."""
    for part in report.shares:
        pair = {at for at, (_, cell) in enumerate(cells) if cell.cell_id in (part.cell_id, part.baseline_id)}
        if len(pair) == 2:
            return pair
    subjects = [at for at, (_, cell) in enumerate(cells) if cell.role == "subject"]
    return set((subjects or [*range(len(cells))])[:2])


def _edges(cells: list[CellReport]) -> list[int]:
    """The ends of bins from the shortest to the longest time of any cell, with three digits, as they are shown."""
    shortest = min((cell.response.quantile_ns(0.0) for cell in cells), default=1)
    longest = max((cell.response.max_ns for cell in cells), default=1)
    begin = int(np.floor(BINS_IN_TEN * np.log10(max(shortest, 1)))) - 1
    end = int(np.ceil(BINS_IN_TEN * np.log10(max(longest, 1)))) + 1
    edges = sorted({int(float(f"{10 ** (at / BINS_IN_TEN):.3g}")) for at in range(begin, end + 1)})
    return [edge for edge in edges if edge > 0]
