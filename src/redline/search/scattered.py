"""The limit of a server whose speed differs between probes by more than chance in a queue explains.

Each probe has a random capacity, its *root*. An overloaded probe shows it as its answers per second; any other shows
its distance: 1 / (percentile - base) times a scale (see queue_model.py). Slow draws are overloaded more often, so all
probes count, and the scale is chosen so that roots do not depend on the rate: least squares would flatten the line.

A server that pauses now and then has slow probes too, but a pause is slow only in a part of its probe.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from redline.model import Histogram
from redline.search.evidence import Evidence, Floats, capacity_of, overloaded
from redline.search.queue_model import BASE, WELL_KNOWN, Aim, ProbePoint, diluted, jackknife_error, stretch_of
from redline.stats.distributions import t_quantile

Flags = NDArray[np.bool_]

FEWEST = 6
"""The fewest probes that show how they differ."""
FEWEST_SETTLED = 3
"""The fewest probes that kept up: they show the scale."""
LEAST = 0.03
"""The spread, as a share of the capacity, up to which the queue model holds."""
_NEAR = 0.4
_CLEARLY = 0.05
_ERRORS = 3.0
_FEWEST_SLOW = 2
_PARTS = 4


@dataclass(frozen=True)
class Scattered:
    """The limit of the typical probe, half the width of its interval, and the capacity; `spread` is relative to it.

    `uneven`: parts of single probes differ as much, so no speed of a probe explains it, and the limit is not known.
    """

    limit_per_s: float
    half_per_s: float
    root_per_s: float
    spread: float
    uneven: bool = False


def scattered(evidence: Sequence[Evidence], aim: Aim, tail: float) -> Scattered | None:
    """Estimate from all probes not far below the capacity; None if they are too few, or differ by chance alone.

    `tail`: the share below the upper end, by the jackknife and Student's t.
    """
    usable = [probe for probe in evidence if not probe.client and probe.response.count > 0]
    probes = [(evidence, capacity_of(evidence) if overloaded(evidence) else None) for evidence in usable]
    roots_per_s = [capacity.per_s for _, capacity in probes if capacity]
    if not roots_per_s:
        return None
    least_per_s = _NEAR * float(np.median(roots_per_s))
    near = [(evidence, capacity) for evidence, capacity in probes if evidence.offered_per_s >= least_per_s]
    probes = [(evidence, capacity) for evidence, capacity in near if capacity or not overloaded(evidence)]
    settled = [ProbePoint.of(evidence) for evidence, capacity in probes if capacity is None]
    if len(probes) < FEWEST or len(settled) < FEWEST_SETTLED:
        return None
    q, calmest = min(aim.q, WELL_KNOWN), ProbePoint.of(min(usable, key=lambda evidence: evidence.rate_per_s))
    over = np.array([capacity is not None for _, capacity in probes])
    at = np.array([evidence.offered_per_s for evidence, _ in probes])
    shown = np.array([capacity.per_s if capacity else evidence.offered_per_s for evidence, capacity in probes])
    times = np.array([point.quantile_s(q) for point in settled])
    base_s = calmest.quantile_s(BASE)
    inverse = np.zeros(len(probes))
    inverse[~over] = 1 / np.maximum(times - base_s, times * 1e-3)
    scale = scale_of(at, shown, inverse)
    if scale <= 0:
        return None
    roots = shown + scale * inverse
    root = _typical(roots)
    if aim.below_s <= base_s:
        return None
    free = len(probes) - 2
    chance = np.sqrt(4 * at / np.array([evidence.seconds for evidence, _ in probes]))
    chance[over] = [capacity.sd_per_s for _, capacity in probes if capacity]
    chance[~over] *= diluted(times, base_s)
    spread = sqrt(max(float(((roots - roots.mean()) ** 2).sum()) / free - float((chance**2).mean()), 0.0)) / root
    slow = _clearly_slower(at, shown, scale * inverse, chance, over)
    if spread < LEAST or slow < _FEWEST_SLOW:
        return None
    gaps = np.maximum((roots - at)[~over], 0.02 * root)
    signal = gaps / diluted(np.array([point.quantile_s(aim.q) for point in settled]), base_s)
    gap = stretch_of(settled, base_s, gaps, signal, aim.q) / (aim.below_s - base_s)
    # Leaving out a probe changes the scale, and with it the gap.
    limits = []
    for left_out in range(len(probes)):
        rest = np.arange(len(probes)) != left_out
        other = scale_of(at[rest], shown[rest], inverse[rest])
        limits.append(_typical((shown + other * inverse)[rest]) - gap * other / scale)
    half = t_quantile(tail, free) * jackknife_error(np.array(limits))
    within = np.zeros(len(probes))
    within[~over] = [_chance_within(probe, q, base_s, scale) for probe, capacity in probes if capacity is None]
    still_slow = _clearly_slower(at, shown, scale * inverse, np.maximum(chance, within), over)
    uneven = still_slow < _FEWEST_SLOW or still_slow <= slow / 2
    return Scattered(root - gap, half, root, spread, uneven)


def _chance_within(evidence: Evidence, q: float, base_s: float, scale: float) -> float:
    """The standard error of the root of a probe that kept up, by the jackknife over its quarters."""
    times = np.array(_without_each_part(evidence, q))
    return jackknife_error(scale / np.maximum(times - base_s, times * 1e-3))


@lru_cache(maxsize=1024)
def _without_each_part(evidence: Evidence, q: float) -> tuple[float, ...]:
    """The percentile in seconds without each quarter of the probe in turn."""
    ends = [len(evidence.slices) * part // _PARTS for part in range(_PARTS + 1)]
    parts = [Histogram.merged(one.response for one in evidence.slices[a:b]) for a, b in pairwise(ends)]
    rests = [Histogram.merged(part for part in parts if part is not left_out) for left_out in parts]
    return tuple((rest if rest.count else evidence.response).quantile_ns(q) / 1e9 for rest in rests)


def _clearly_slower(at: Floats, shown: Floats, scaled: Floats, chance: Floats, over: Flags) -> int:
    """The number of probes that were clearly slower than a probe at the same rate or a higher one.

    If there are two, neither a queue, nor a server without a queue, nor one that overload slows down explains them.
    `scaled` is the distance to the root of a probe that kept up, and 0 for an overloaded probe.
    """
    faster = scaled[:, None] - scaled + over * (shown[:, None] - shown)
    clearly = np.maximum(_CLEARLY * shown, _ERRORS * np.hypot(chance[:, None], chance))
    comparable = (at[:, None] >= at) & (over | ~over[:, None])
    return int(((faster > clearly) & comparable).any(axis=0).sum())


def scale_of(at: Floats, shown: Floats, inverse: Floats) -> float:
    """The scale for which the roots, `shown + scale * inverse`, do not depend on the rates `at`; 0 for none."""
    away = at - at.mean()
    over = float(away @ inverse)
    return -float(away @ shown) / over if over else 0.0


def _typical(roots: Floats) -> float:
    """The geometric mean of the roots: speeds differ by factors."""
    return float(np.exp(np.log(np.maximum(roots, 1e-9)).mean()))
