"""The rows of intervals, as reports and exports have them."""

import pytest

from redline.analysis.intervals import interval_row
from redline.model import Counts, Histogram, Interval, Outcomes
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording

MADE = simulated_recording(simulated_cell(), GOOD)


def lasting(seconds: float) -> Interval:
    """An interval of the measurement with 50 answers in this time."""
    assert MADE.traffic is not None
    made = next(one for one in MADE.traffic.intervals if one.phase == "measure")
    counts = Counts(due=50, completed=50, outcomes=Outcomes(ok=50))
    end_ns = made.start_ns + round(seconds * 1e9)
    return made.model_copy(update={"end_ns": end_ns, "counts": counts, "response": Histogram.of([1e6] * 50)})


@pytest.mark.parametrize(("seconds", "per_s"), [(0.1, 500.0), (1.0, 50.0), (2.0, 25.0), (0.0, None)])
def test_answers_per_second_are_those_of_its_length(seconds: float, per_s: float | None) -> None:
    row = interval_row("it", "trial-1", lasting(seconds))
    assert row.answered_per_s == (None if per_s is None else pytest.approx(per_s))


def test_when_an_interval_began_is_known_with_its_recording_alone() -> None:
    interval = lasting(1.0)
    assert interval_row("it", "trial-1", interval).start_unix_ns is None
    assert MADE.traffic is not None
    began = interval_row("it", "trial-1", interval, MADE).start_unix_ns
    assert began == MADE.traffic.epoch_unix_ns + interval.start_ns
