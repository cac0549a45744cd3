"""Times as tables: a distribution as rows of bars, and percentiles of several kinds of time beside each other."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from redline.document.blocks import Column, Line, Medium, Section, Table
from redline.document.format import duration, integer, percent, point_sign, quantile_name
from redline.model.histogram import Histogram, HistogramTable
from redline.model.percentile import Percentile

_MOST = 10
_FROM, _TO = 0.01, 0.999
"""The quantiles between which bins have edges; all that is below or above is in the first or last one."""
_NARROWEST = 1.05
"""The ratio of neighbouring edges, at least: by three digits, narrower bins would be of unequal width."""
_BAR = 24
"""Columns of the longest bar: the rows fit a terminal of 60 columns."""
_EIGHTHS = " ▏▎▍▌▋▊▉"


def time_bins(times: Histogram) -> tuple[tuple[int, int], ...]:
    """Ten bins at most: the longest time of each in nanoseconds, and how many it holds; none of an empty histogram.

    The ratio of neighbouring edges is the same, since response times spread over orders of magnitude. Edges have three
    digits, as they are shown. No time is left out: the last bin ends with the longest.
    """
    low, high, longest = times.quantiles_ns((_FROM, _TO, 1.0))
    if not longest:
        return ()
    edges_wanted = min(_MOST - 1, 1 + int(math.log(high / low) / math.log(_NARROWEST)))
    wanted = np.geomspace(high, low, edges_wanted)
    rounded = {int(float(f"{edge_ns:.3g}")) for edge_ns in wanted}
    edges = [*sorted(edge for edge in rounded if edge < longest and duration(edge) != duration(longest)), longest]
    held = np.diff(HistogramTable([times]).counts_up_to_each(edges)[:, 0], prepend=0).tolist()
    first = next(at for at, number in enumerate(held) if number)
    return tuple(zip(edges, held, strict=True))[first:]


def histogram_section(times: Histogram) -> Section:
    """The table of bins alone."""
    return Section("", (histogram_table(times),))


def histogram_table(times: Histogram) -> Table:
    """The bins, with the share of each and a bar; no rows of an empty histogram."""
    bins = time_bins(times)
    most, total = max((number for _, number in bins), default=1), sum(number for _, number in bins)
    rows = (
        (duration(edge_ns), integer(number), percent(float(f"{number / total:.2g}")), _bar(number / most))
        for edge_ns, number in bins
    )
    heads = (Column("response up to", "right"), Column("requests", "right"), Column("share", "right"), Column(""))
    return Table(heads, tuple(rows))


def _bar(share: float) -> str:
    """A bar to an eighth of a column; what is there at all is seen."""
    eighths = max(1, round(share * _BAR * 8)) if share > 0 else 0
    whole, rest = divmod(eighths, 8)
    return f"{'█' * whole}{_EIGHTHS[rest]}".rstrip()


def times_table(
    times: Mapping[str, Sequence[Percentile]],
    levels: Collection[float] | None = None,
    title: Line = (),
    on: Medium = Medium.EVERYWHERE,
) -> Table:
    """A column for each kind of time that has any, and a row for each percentile of one, of these levels or of all."""
    times = {name: points for name, points in times.items() if points}
    known = [{point.q: point_sign(point) for point in points} for points in times.values()]
    reached = sorted(q for q in set().union(*known) if levels is None or q in levels)
    rows = ((quantile_name(q), *(points.get(q, "") for points in known)) for q in reached)
    return Table((Column("", "right"), *(Column(name, "right") for name in times)), tuple(rows), title, on=on)
