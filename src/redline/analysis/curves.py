"""Distributions of cells with their intervals, and the difference of a cell's from its baseline's. Pure."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np

from redline.analysis.compare import same_rounds
from redline.analysis.duet import Duets
from redline.analysis.levels import SlicedCell
from redline.analysis.results import CellResult
from redline.findings.starts import BASELINE, traffic_of
from redline.model import (
    AnsweredBy,
    BandedPercentile,
    Comparison,
    Histogram,
    Metric,
    SharesCompared,
)
from redline.stats import QUANTILE_OF, Quantiles, enough_beyond
from redline.stats.duets import StartRatio, over_starts
from redline.stats.ecdf import METHOD_SHARES, METHOD_SHARES_NONE, ShareDifferences, share_differences, times_between
from redline.stats.estimate import interval
from redline.stats.gaps import gaps_at
from redline.stats.samples import Floats, Merged
from redline.stats.trials import enough

_COARSE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_PARTS = (1.0, 0.7, 0.5, 0.3, 0.2)
_DEEPEST = 6
"""The finest percentile of a curve is that of six nines, or the next one that its requests support."""
_NEAR = 1e-6
"""So near to a half, in millionths, the product may round to the other side."""
_TIMES = 96
"""Times at which two distributions are compared: more than a screen of a phone can tell apart."""


def response_curve(result: CellResult, sliced: SlicedCell | None) -> tuple[BandedPercentile, ...]:
    """The response times of all used trials, or of slices, by percentile; empty if findings touch any of them."""
    if sliced:
        return _of_starts([traffic.response for traffic in sliced.timed])
    whole = result.having(Metric.P50) if result.leaving("response times") else ()
    sample = result.sample(Metric.P50) if whole else None
    if not isinstance(sample, Quantiles):
        return ()
    return _of_trials(sample.merged, sample.hosts, QUANTILE_OF.values())


def service_curve(result: CellResult, sliced: SlicedCell | None) -> tuple[BandedPercentile, ...]:
    """The same of service times, whose trials have no batches; empty if they are the response times."""
    trials = result.leaving("service times")
    measured = sliced.timed if sliced else [trial.traffic for trial in trials if trial.traffic]
    parts = [traffic.service for traffic in measured]
    whole = sliced is not None or trials == result.leaving("response times")
    if whole and parts == [traffic.response for traffic in measured]:
        return ()
    if sliced:
        return _of_starts(parts)
    hosts = tuple(trial.host for trial in trials)
    return _of_trials(Merged(parts), hosts if all(hosts) else ()) if parts else ()


def grid(count: int) -> tuple[float, ...]:
    """The shares of a curve: five in each factor of ten of the rest, as deep as this many requests support."""
    return tuple([q for q, least in _least_counts() if count >= least])


@cache
def _least_counts() -> list[tuple[float, int]]:
    """The shares of the longest curve, and the fewest requests that support each."""
    fine = [
        round(1 - part * 10**-nines, nines + 1)
        for nines in range(1, _DEEPEST + 1)
        for part in (_PARTS if nines < _DEEPEST else _PARTS[:1])
    ]
    return [(q, enough(q)) for q in (*_COARSE, *fine)]


def _known(times: Histogram) -> tuple[float, ...]:
    """The shares of a curve whose percentiles are known: those that lie in a gap are only bounded."""
    shares = grid(times.count)
    gaps = gaps_at(times, shares)
    return tuple(q for q in shares if q not in gaps)


def _of_trials(merged: Merged, hosts: tuple[str, ...], others: Iterable[float] = ()) -> tuple[BandedPercentile, ...]:
    """The percentiles as the report estimates them; the shortest time has no interval.

    `others` are estimated later: their samples are computed with these.
    """
    points, wanted = list[BandedPercentile](), _known(Histogram.merged(merged.histograms))
    for sample in Quantiles.several(merged, [*dict.fromkeys((*wanted, *others))])[: len(wanted)]:
        sample.hosts = hosts
        points.append(_point(sample.q, sample.value, interval(sample)[0] if sample.q else None))
    return tuple(points)


def _of_starts(parts: Sequence[Histogram]) -> tuple[BandedPercentile, ...]:
    """The percentiles of all starts together; an interval is over the starts' own, and holds that value."""
    together, points = Histogram.merged(parts), list[BandedPercentile]()
    for q in _known(together):
        own = [part.quantile_ns(q) for part in parts if enough_beyond(part.count, q)]
        value = together.quantile_ns(q)
        whole = q > 0 and len(own) == len(parts) and all(own)
        ratio = over_starts([StartRatio(math.log(ns), None) for ns in own]).contrast.ratio if whole else None
        points.append(_point(q, value, ratio.interval if ratio else None))
    return tuple(points)


def _point(q: float, value: float, ends: tuple[float, float] | None) -> BandedPercentile:
    if ends is None:
        return BandedPercentile(q=q, ns=int(value))
    low, high = ends
    return BandedPercentile(q=q, ns=int(value), low_ns=math.floor(min(low, value)), high_ns=math.ceil(max(high, value)))


def shares_compared(
    results: Mapping[str, CellResult], comparisons: Sequence[Comparison], duets: Duets, *, alone: bool
) -> Iterator[SharesCompared]:
    """The difference of each cell whose response times are compared with those of its baseline.

    `alone`: by trials of both in the same rounds, else by starts of duets.
    """
    for comparison in comparisons:
        if comparison.metric is not Metric.P50 or comparison.ratio is None:
            continue
        ids = comparison.cell_id, comparison.baseline_id
        ours, theirs = _in_rounds(results, *ids) if alone else _in_starts(duets, *ids)
        Histogram.decode_all((*ours, *theirs))
        whole = [(our, their) for our, their in zip(ours, theirs, strict=True) if our.count and their.count]
        times = times_between([part for pair in whole for part in pair], _TIMES)
        if times:
            shares = share_differences([our for our, _ in whole], [their for _, their in whole], times)
            yield SharesCompared(
                cell_id=ids[0],
                baseline_id=ids[1],
                n=len(whole),
                in_duets=not alone,
                method=METHOD_SHARES if shares.interval else METHOD_SHARES_NONE,
                unsettled="" if alone else duets[ids].unsettled,
                points=tuple(_points(times, shares)),
            )
        if alone:  # a baseline's stay decoded, for the next of its comparisons
            results[ids[0]].release()


def _points(times: Sequence[int], shares: ShareDifferences) -> Iterator[AnsweredBy]:
    lows, highs = shares.interval or (None, None)
    ends = ([None] * len(times) if values is None else _rounded(values) for values in (lows, highs))
    columns = (times, _rounded(shares.ours), _rounded(shares.theirs), _rounded(shares.differences), *ends)
    for ns, our, their, difference, low, high in zip(*columns, strict=True):
        yield AnsweredBy(ns=ns, cell=our, baseline=their, difference=difference, low=low, high=high)


def _rounded(shares: Floats) -> list[float]:
    """A millionth of the requests is finer than any plot, and shorter in a file. As `round` does it, at once."""
    millionths = shares * 1e6
    halves = np.abs(millionths - np.floor(millionths) - 0.5) < _NEAR
    rounded: list[float] = (np.rint(millionths) / 1e6).tolist()
    for at in np.flatnonzero(halves).tolist():
        rounded[at] = round(float(shares[at]), 6)
    return rounded


def _in_rounds(
    results: Mapping[str, CellResult], cell_id: str, baseline_id: str
) -> tuple[list[Histogram], list[Histogram]]:
    known = (results[of] for of in (cell_id, baseline_id))
    sides = same_rounds(*(cell.having(Metric.P50) if cell.leaving("response times") else () for cell in known))
    ours, theirs = ([trial.traffic.response for trial in side if trial.traffic] for side in sides)
    return ours, theirs


def _in_starts(duets: Duets, cell_id: str, baseline_id: str) -> tuple[list[Histogram], list[Histogram]]:
    """The starts that count; the baseline's two copies together."""
    duet = duets.get((cell_id, baseline_id))
    starts = [traffic_of(start).targets for start in duet.counting] if duet else []
    theirs = [Histogram.merged((targets[BASELINE].response, targets[-1].response)) for targets in starts]
    return [targets[duet.target].response for targets in starts] if duet else [], theirs
