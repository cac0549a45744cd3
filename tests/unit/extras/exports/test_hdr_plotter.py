"""Our .hgrm files by the rules of HdrHistogram's public plotter, `appendDataSeries` of its plotFiles.html.

Source: GoogleChartsExample/plotFiles.html of github.com/HdrHistogram/HdrHistogram, commit de84b0a7. It takes the lines
of four columns between spaces that do not begin with `#`, x from the fourth and y from the first; the points of a
second file stand at the x of the first one, place by place.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis.distributions import distributions
from redline.extras.exports.hdr_files import percentile_distribution
from redline.model import Histogram
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_run

Row = tuple[float, list[float | None]]


def plotted(*files: bytes) -> list[Row]:
    """What the plotter gives to its chart: x, and the value of each file there."""
    rows: list[tuple[float, list[float | None]]] = []
    for place, content in enumerate(files):
        at = 0
        for line in content.decode().split("\n"):
            values = line.strip().split()
            if line.strip().startswith("#") or len(values) != 4:
                continue
            x, y = (_parsed(values[column]) for column in (3, 0))
            if math.isnan(x) or math.isnan(y):
                continue
            if at >= len(rows):
                rows.append((x, []))
            rows[at][1].extend([None] * (place - len(rows[at][1])))
            rows[at][1].append(y)
            at += 1
        for _, ys in rows[at:]:
            ys.append(None)
    return rows


def _parsed(text: str) -> float:
    """As JavaScript's parseFloat does: the number that a text begins with, else NaN."""
    for end in range(len(text), 0, -1):
        try:
            return float(text[:end])
        except ValueError:
            continue
    return math.nan


def test_every_level_but_the_last_is_drawn_at_its_percentile() -> None:
    (first, *_) = distributions(simulated_run({"rust.hyper": GOOD}, trials=1))
    times = first.times
    assert isinstance(times, Histogram)
    rows = plotted(percentile_distribution(times))
    assert len(rows) > 20
    assert [x for x, _ in rows] == sorted(x for x, _ in rows)
    for x, (y,) in rows:
        q = 1 - 1 / x
        assert y is not None
        low, high = times.quantiles_ns((max(0.0, q - 0.005 / x), min(1.0, q + 0.005 / x)))
        assert low / 1e6 - 0.001 <= y <= high / 1e6 + 0.001
    assert rows[-1][1] == [pytest.approx(times.max_ns / 1e6, abs=0.001)]


@given(
    st.lists(st.integers(1, 10**10), min_size=1, max_size=300),
    st.lists(st.integers(1, 10**10), min_size=1, max_size=300),
)
def test_a_second_file_stands_at_the_percentiles_of_the_first(ours: list[int], theirs: list[int]) -> None:
    files = [percentile_distribution(Histogram.of(values)) for values in (ours, theirs)]
    alone = [plotted(file) for file in files]
    both = plotted(*files)
    assert len(both) == max(map(len, alone))
    for place in range(min(map(len, alone))):
        assert alone[0][place][0] == alone[1][place][0] == both[place][0], "it would be drawn at a wrong percentile"
        assert both[place][1] == [alone[0][place][1][0], alone[1][place][1][0]]


def test_header_footer_and_nothing_at_all_are_passed_over() -> None:
    assert plotted(percentile_distribution(Histogram())) == []
    many = percentile_distribution(Histogram.of(np.arange(1, 50) * 1e6))
    assert all(math.isfinite(x) and ys[0] is not None for x, ys in plotted(many))
