"""The limit of probes that differ, recomputed in plain steps from the same probes."""

from dataclasses import replace

import numpy as np
import pytest

from redline.search import Evidence
from redline.search.evidence import capacity_of, overloaded
from redline.search.queue_model import BASE, WELL_KNOWN, ProbePoint
from redline.search.scattered import Scattered, scattered
from redline.stats.distributions import t_quantile
from redline.stats.samples import Floats
from tests.unit.search.test_scattered import AIM, RATES, probes

MADE = probes(0.15, RATES, 3)


def roots_of(made: list[Evidence], *, without: int | None = None) -> tuple[Floats, float]:
    """The roots of all probes near the capacity, and the scale that makes them independent of the rates."""
    capacities = [capacity_of(one) if overloaded(one) else None for one in made]
    answered = [capacity.per_s if capacity else None for capacity in capacities]
    least = 0.4 * float(np.median([per_s for per_s in answered if per_s]))
    near = [(one, per_s) for one, per_s in zip(made, answered, strict=True) if one.offered_per_s >= least]
    base = ProbePoint.of(min(made, key=lambda one: one.rate_per_s)).quantile_s(BASE)
    times = [ProbePoint.of(one).quantile_s(min(AIM.q, WELL_KNOWN)) for one, _ in near]
    shown = np.array([per_s or one.offered_per_s for one, per_s in near])
    pairs = zip(near, times, strict=True)
    inverse = np.array([0.0 if per_s else 1 / max(took - base, took * 1e-3) for (_, per_s), took in pairs])
    at = np.array([one.offered_per_s for one, _ in near])
    kept = np.arange(len(near)) != (-1 if without is None else without)
    away = at[kept] - at[kept].mean()
    scale = -float(away @ shown[kept]) / float(away @ inverse[kept])
    return (shown + scale * inverse)[kept], scale


def typical(roots: Floats) -> float:
    return float(np.exp(np.log(roots).mean()))


def found(made: list[Evidence]) -> Scattered:
    seen = scattered(made, AIM, 0.975)
    assert seen is not None
    return seen


def test_the_root_is_the_geometric_mean_of_all_roots() -> None:
    roots, _ = roots_of(MADE)
    assert found(MADE).root_per_s == pytest.approx(typical(roots))


def test_half_the_interval_is_students_by_leaving_out_one_probe_at_a_time() -> None:
    seen, (roots, scale) = found(MADE), roots_of(MADE)
    gap, n = seen.root_per_s - seen.limit_per_s, len(roots)
    limits = []
    for left_out in range(n):
        rest, other = roots_of(MADE, without=left_out)
        limits.append(typical(rest) - gap * other / scale)
    values = np.array(limits)
    error = float(np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum()))
    assert seen.half_per_s == pytest.approx(t_quantile(0.975, n - 2) * error)


def test_probes_in_which_the_client_was_the_limit_do_not_count() -> None:
    odd = replace(MADE[5], client="it was full", rate_per_s=MADE[5].rate_per_s * 1.01)
    assert found([*MADE, odd]) == found(MADE)
    silent = replace(MADE[5], slices=())
    assert found([*MADE, silent]) == found(MADE)


def test_the_limit_must_be_above_the_base() -> None:
    base = ProbePoint.of(MADE[0]).quantile_s(BASE)
    assert scattered(MADE, replace(AIM, below_s=base * 0.99), 0.975) is None
    assert scattered(MADE, replace(AIM, below_s=base * 3), 0.975) is not None
