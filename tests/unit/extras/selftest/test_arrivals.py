"""The test of arrivals can pass, and it can fail."""

import numpy as np
import pytest
from scipy import stats

from redline.extras.selftest.judge import ALPHA, against_uniform, even_lateness, exponential_gaps

N = 2000


def test_the_critical_distance_has_its_probability() -> None:
    fit = against_uniform(np.random.default_rng(2).random(N))
    assert float(stats.kstwo.sf(fit.critical, N)) == pytest.approx(ALPHA, rel=0.05)


def test_a_poisson_process_passes_and_others_do_not() -> None:
    rng = np.random.default_rng(3)
    poisson = np.cumsum(rng.exponential(0.002, N))
    fit = exponential_gaps(poisson, 500)
    assert fit.distance <= fit.critical
    even = np.linspace(0.0, 0.002 * N, N)
    assert exponential_gaps(even, 500).distance > fit.critical
    assert exponential_gaps(poisson, 600).distance > fit.critical
    bursts = np.sort(np.round(poisson, 2))
    assert exponential_gaps(bursts, 500).distance > fit.critical
    stopped = against_uniform(np.concatenate((rng.random(N) * 0.5, rng.random(N // 4))))
    assert stopped.distance > stopped.critical


def test_where_nothing_came_nothing_fits() -> None:
    nothing = against_uniform(np.zeros(0))
    assert nothing.distance > nothing.critical
    assert exponential_gaps(np.asarray([0.5]), 500).distance == 1.0


def test_lateness_behind_an_even_schedule() -> None:
    late = np.zeros(100)
    late[7] = 0.0005
    behind = even_lateness(3.0 + np.arange(100) / 1000 + 0.0001 + late, 1000)
    assert behind[7] == pytest.approx(0.0005)
    assert float(np.delete(behind, 7).max()) == pytest.approx(0, abs=1e-12)
