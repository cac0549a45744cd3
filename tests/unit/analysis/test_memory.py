"""The memory and the pauses of a cell: its counters are summed over all windows, or not known."""

import pytest

from redline.analysis.memory import _cores
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording

CELL = simulated_cell()
MADE = simulated_recording(CELL, GOOD)
UNWATCHED = MADE.model_copy(update={"series": ()})


def test_cores_are_the_time_of_all_trials_over_their_length() -> None:
    trials = [Trial(MADE), Trial(MADE)]
    grown = trials[0].increase("cpu_ns", "server")
    assert grown
    assert _cores(trials, "cpu_ns", 4.0) == pytest.approx(2 * grown / 4e9)


@pytest.mark.parametrize(
    ("trials", "seconds"), [([Trial(MADE), Trial(UNWATCHED)], 4.0), ([Trial(MADE)], 0.0), ([Trial(UNWATCHED)], 4.0)]
)
def test_cores_are_not_known_without_a_trial_or_without_time(trials: list[Trial], seconds: float) -> None:
    assert _cores(trials, "cpu_ns", seconds) is None
