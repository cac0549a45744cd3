"""What monitors of other packages saw: the means of trials, in the measurement alone, both ends of it included."""

from types import SimpleNamespace
from typing import Any

import pytest

from redline.analysis.watched import watched_series
from redline.model import Series

S = 1_000_000_000


def series(values: tuple[float, ...], *, kind: str = "gauge", name: str = "own.depth", every_s: int = 1) -> Series:
    """Samples from 9 s on."""
    times = tuple((9 + every_s * at) * S for at in range(len(values)))
    facts = {"name": name, "unit": "1", "subject": "server", "kind": kind, "times_unix_ns": times, "values": values}
    return Series.model_validate(facts)


def trial(*lines: Series, measured: bool = True) -> Any:
    """A trial that was measured from 10 to 12 s."""
    traffic = SimpleNamespace(window_unix_ns=(10 * S, 12 * S)) if measured else None
    return SimpleNamespace(recording=SimpleNamespace(series=lines), traffic=traffic)


def test_a_gauge_has_the_means_of_trials_and_the_most_of_all() -> None:
    trials = [trial(series((99.0, 1.0, 2.0, 6.0, 99.0))), trial(series((99.0, 4.0, 4.0, 4.0))), trial(series((9.0,)))]
    (found,) = watched_series(trials)
    assert (found.name, found.subject, found.unit, found.kind) == ("own.depth", "server", "1", "gauge")
    assert (found.trials, found.middle, found.lowest, found.highest, found.most) == (2, 3.5, 3.0, 4.0, 6.0)


def test_a_counter_has_its_increase_per_second_and_no_most() -> None:
    (found,) = watched_series([trial(series((0.0, 10.0, 20.0, 50.0, 90.0), kind="counter"))])
    assert (found.middle, found.lowest, found.highest) == pytest.approx((20.0, 20.0, 20.0))
    assert found.most is None


def test_series_of_redline_and_of_trials_without_traffic_are_left_out() -> None:
    assert watched_series([trial(series((1.0, 1.0), name="cpu_ns"))]) == ()
    assert watched_series([trial(series((1.0, 1.0)), measured=False)]) == ()


def test_what_has_no_sample_in_the_measurement_is_named_without_a_value() -> None:
    (found,) = watched_series([trial(series((1.0,)))])
    assert (found.trials, found.middle, found.lowest, found.highest, found.most) == (0, None, None, None, None)
