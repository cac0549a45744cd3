"""The latency-throughput curve of a search, and its knee, where *power*, rate over mean response time, is highest.

Sources: A. Giessler and others, Free buffer allocation, Computer Networks 2, 1978; L. Kleinrock, Power and
deterministic rules of thumb for probabilistic problems in computer communications, ICC 1979.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from redline.model import Histogram
from redline.model.limits import CurvePoint, Knee, LimitProbe
from redline.search.evidence import Floats, by_rate

FEWEST_BEYOND = 10
"""The fewest responses beyond a percentile for it to be reported."""

FEWEST_POINTS = 3
"""The fewest sustained rates that determine a knee."""

FLAT = 0.95
"""The share of the highest power from which on a power cannot be distinguished from it."""

CURVE_SHARES = (0.25, 0.5, 0.75)
"""Rates at which the curve needs points, as shares of the highest sustained rate."""

_NEAR = 1.25
_STEPS = 2000


def quantile_known(response: Histogram, q: float) -> int | None:
    """The percentile in nanoseconds; None when fewer than ten responses lie beyond it."""
    if round(response.count * (1 - q), 6) < FEWEST_BEYOND:
        return None
    return response.quantile_ns(q)


def curve(probes: Sequence[LimitProbe]) -> tuple[CurvePoint, ...]:
    """The points of the curve, by ascending rate. Probes that the client limited are left out.

    Probes at the same rate (within half a percent) that kept up make one point, and those that did not make another.
    """
    usable = [probe for probe in probes if not probe.client and probe.seconds > 0 and probe.response.count]
    points: list[CurvePoint] = []
    for overloaded in (False, True):
        alike = (probe for probe in usable if probe.overloaded == overloaded)
        points += map(_point, by_rate(alike, lambda probe: probe.tried))
    return tuple(sorted(points, key=lambda point: (point.users or 0, point.rate_per_s, point.overloaded)))


def _point(probes: Sequence[LimitProbe]) -> CurvePoint:
    response = Histogram.merged(probe.response for probe in probes)
    seconds = sum(probe.seconds for probe in probes)
    return CurvePoint(
        rate_per_s=sum(probe.rate_per_s * probe.seconds for probe in probes) / seconds,
        users=probes[0].users,
        answered_per_s=sum(probe.answered_per_s * probe.seconds for probe in probes) / seconds,
        seconds=seconds,
        probes=len(probes),
        errors=sum(probe.errors for probe in probes),
        mean_ns=response.mean_ns,
        p50_ns=quantile_known(response, 0.5),
        p90_ns=quantile_known(response, 0.9),
        p99_ns=quantile_known(response, 0.99),
        p999_ns=quantile_known(response, 0.999),
        p75_ns=quantile_known(response, 0.75),
        p95_ns=quantile_known(response, 0.95),
        max_ns=response.max_ns,
        overloaded=probes[0].overloaded,
    )


def knee(points: Sequence[CurvePoint]) -> Knee | str:
    """The knee of a curve, or why it shows none.

    Between points, the inverse of the mean response time is taken as linear in the rate, which is exact for M/M/1.
    """
    if any(point.users is not None for point in points):
        return "it is a rate, and this search is by users"
    kept_up = sorted((point for point in points if _serves(point)), key=lambda point: point.answered_per_s)
    if len(kept_up) < FEWEST_POINTS:
        return f"the server kept up at {len(kept_up)} of the rates that were tried: a knee takes {FEWEST_POINTS}"
    rates = np.array([point.answered_per_s for point in kept_up])
    # The weights of 1 / mean for a queue observed for this long: its variance is 4 rate / seconds at every rate. The
    # relaxation time of a queue is about 4 rate / gap^2 (Whitt 1989), and 1 / mean is its gap.
    weights = np.array([point.seconds / point.answered_per_s for point in kept_up])
    speeds = _falling(1e9 / np.array([point.mean_ns for point in kept_up]), weights)
    past = max((point.answered_per_s for point in points if point.overloaded), default=None)
    if past is not None:
        rates = np.append(rates, max(past, float(rates[-1]) * (1 + 1e-6)))
        speeds = np.append(speeds, 0.0)
    return _highest(rates, speeds, past)


def _serves(point: CurvePoint) -> bool:
    """Whether a point shows how long a served request takes: refusals are fast and say nothing about speed."""
    return not point.overloaded and point.answered_per_s > 0 and point.errors < point.answered_per_s * point.seconds


def _highest(rates: Floats, speeds: Floats, past: float | None) -> Knee | str:
    fine = np.unique(np.concatenate([rates, *(np.linspace(*pair, _STEPS // len(rates)) for pair in pairwise(rates))]))
    speed = np.interp(fine, rates, speeds)
    power = fine * speed
    top = int(power.argmax())
    flat = fine[power >= FLAT * power[top]]
    if top == 0:
        return f"at {rates[0]:,.0f}/s, the lowest rate that was tried, the curve is past its knee already"
    if top == len(fine) - 1:
        return f"up to {rates[-1]:,.0f}/s, the highest rate that was tried, the curve has not reached its knee"
    return Knee(
        rate_per_s=float(fine[top]),
        low_per_s=float(flat[0]),
        high_per_s=float(flat[-1]),
        mean_ns=1e9 / float(speed[top]),
        share=None if past is None else min(1.0, float(fine[top] / rates[-1])),
    )


def _falling(values: Floats, weights: Floats) -> Floats:
    """The nearest values that do not rise (pool adjacent violators): more load makes no server faster.

    Source: R. E. Barlow and others, Statistical Inference under Order Restrictions, 1972.
    """
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] < pool[0]:
            before = pools.pop()
            both = before[1] + pool[1]
            pool = ((before[0] * before[1] + pool[0] * pool[1]) / both, both, before[2] + pool[2])
        pools.append(pool)
    return np.concatenate([np.full(count, value) for value, _, count in pools])


def rates_for_curve(points: Sequence[CurvePoint], least_per_s: float) -> tuple[float, ...]:
    """The rates to probe so that the curve has no gaps, ascending: a search itself probes only near the limit.

    They are shares of the highest rate at which the server kept up, without those that a probe was near. None is below
    `least_per_s`.
    """
    kept_up = [point.rate_per_s for point in points if not point.overloaded]
    wanted = [share * max(kept_up) for share in CURVE_SHARES] if kept_up else []
    return tuple(rate for rate in wanted if rate >= least_per_s and not any(_near(rate, other) for other in kept_up))


def _near(rate: float, other: float) -> bool:
    return max(rate, other) <= _NEAR * min(rate, other)
