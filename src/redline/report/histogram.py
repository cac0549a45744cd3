"""A distribution of response times as rows of bars, for a terminal."""

import math

import numpy as np

from redline.document.blocks import Column, Table
from redline.document.format import duration, integer, percent
from redline.model.histogram import Histogram, HistogramTable

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
