"""The pooled quantile of probes sorts few of their values, and is that of all of them."""

from itertools import accumulate

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from redline.search.queue_model import ProbePoint, stretch_of

COUNTS = st.lists(st.tuples(st.integers(1, 400), st.integers(1, 50)), min_size=1, max_size=30)
PROBES = st.lists(st.tuples(COUNTS, st.floats(1.0, 900.0), st.floats(0.2, 1.0)), min_size=1, max_size=8)


def probe(counted: list[tuple[int, int]]) -> ProbePoint:
    counts = dict(sorted(counted))
    shares = np.array([*counts.values()]) / sum(counts.values())
    return ProbePoint(100.0, 10.0, np.array([*counts]) / 1e3, shares)


@given(PROBES, st.floats(0.0, 0.003), st.sampled_from([0.5, 0.9, 0.99, 0.999]))
def test_the_pooled_quantile_is_that_of_all_values_in_their_order(
    probes: list[tuple[list[tuple[int, int]], float, float]], base_s: float, q: float
) -> None:
    points = [probe(counted) for counted, _, _ in probes]
    gaps = np.array([gap for _, gap, _ in probes])
    signal = gaps * np.array([part for _, _, part in probes])
    weighted = sorted(
        ((value - base_s) * gap, share * point.seconds * own**2)
        for point, gap, own in zip(points, gaps, signal, strict=True)
        for value, share in zip(point.values_s, point.shares, strict=True)
    )
    reached = [*accumulate(weight for _, weight in weighted)]
    found = stretch_of(points, base_s, gaps, signal, q)
    # Within rounding, a share `q` of the weight is at `found` or below it, and less than that below it alone.
    up_to = max(share for share, (value, _) in zip(reached, weighted, strict=True) if value <= found) / reached[-1]
    below = max((share for share, (value, _) in zip(reached, weighted, strict=True) if value < found), default=0.0)
    assert below / reached[-1] - 1e-9 <= q <= up_to + 1e-9
    assert found in [value for value, _ in weighted]
