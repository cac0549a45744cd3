"""Counters over a window: only what was counted in it, and nothing without samples."""

import pytest

from redline.model import Series


def test_cpu_is_counted_over_the_window_alone() -> None:
    times = tuple(range(0, 1_000, 100))
    series = Series(
        name="cpu_ns",
        unit="ns",
        subject="server",
        kind="counter",
        times_unix_ns=times,
        values=tuple(t * 0.5 for t in times),
    )
    assert series.increase(250, 750) == pytest.approx(250)
    assert series.increase(500, 1_000) == pytest.approx(250)  # its last sample is at 900: the rate up to there stands
    assert series.increase(850, 1_050) is None
    assert series.increase(2_000, 3_000) is None


def test_cpu_of_a_server_that_is_idle_after_the_window_is_not_diluted() -> None:
    """Busy all the time until the load ends at 1000, then idle, and sampled at other moments than that."""
    times = (-70, 30, 130, 330, 530, 730, 930, 1_030, 1_130)
    busy = tuple(float(min(t, 1_000) + 70) for t in times)
    counter = Series(name="cpu_ns", unit="ns", subject="server", kind="counter", times_unix_ns=times, values=busy)
    assert counter.increase(0, 1_000) == pytest.approx(1_000)
