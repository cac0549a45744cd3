"""Builds that differ by more than their starts, by the textbook's analysis of variance."""

import numpy as np
import pytest
from scipy import stats

from redline.stats.builds import _ratios, differing

LOGS = [0.0, 0.1, 0.2, 1.0, 1.1, 1.2, 2.0, 2.1, 2.2]
BUILDS = [5, 5, 5, 7, 7, 7, 9, 9, 9]


def test_the_scatter_of_builds_is_that_beyond_their_starts() -> None:
    found = differing(LOGS, BUILDS)
    assert found is not None
    assert found.builds == 3
    assert found.within_sd == pytest.approx(0.1)
    # Means of 0.1, 1.1 and 2.1 have a variance of 1, of which chance makes 0.01 / 3.
    assert found.between_sd == pytest.approx(np.sqrt(1 - 0.01 / 3))


def test_unequal_numbers_of_starts_are_weighted() -> None:
    logs, builds = [0.0, 0.1, 2.0, 2.1, 2.2, 1.9, 4.0, 4.2, 4.1], [0, 0, 1, 1, 1, 1, 2, 2, 2]
    found = differing(logs, builds)
    assert found is not None
    groups = [np.array([one for one, build in zip(logs, builds, strict=True) if build == own]) for own in range(3)]
    within = sum(((group - group.mean()) ** 2).sum() for group in groups) / 6
    between = sum(len(group) * (group.mean() - np.mean(logs)) ** 2 for group in groups) / 2
    assert found.between_sd == pytest.approx(np.sqrt((between - within) / ((9 - (4 + 16 + 9) / 9) / 2)))


def test_the_ratio_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=9)
    ratios, _, _ = _ratios(values[np.newaxis, :], np.repeat([0, 1, 2], 3), np.array([3, 3, 3]))
    assert ratios[0] == pytest.approx(stats.f_oneway(values[:3], values[3:6], values[6:]).statistic)


def test_two_builds_of_two_starts_are_needed_and_shuffles_decide() -> None:
    assert differing([0.0, 0.1, 1.0, 1.1], [0, 0, 0, 0]) is None
    assert differing([0.0, 0.1, 1.0], [0, 0, 1]) is None
    assert differing([], []) is None
    # Of 4 starts in two builds, a third of all orders are as far apart.
    assert differing([0.0, 0.1, 1.0, 1.1], [0, 0, 1, 1]) is None
    # Of 2 x 5, 2 of 252 orders are: 0.8%.
    apart = [0.0, 0.1, 0.2, 0.3, 0.4, 9.0, 9.1, 9.2, 9.3, 9.4]
    assert differing(apart, [0] * 5 + [1] * 5) is not None
    assert differing([*apart[:4], *apart[5:9]], [0] * 4 + [1] * 4) is None
