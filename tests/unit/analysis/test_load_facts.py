"""What is told of a single load beside its numbers."""

import pytest

from redline.analysis.load_facts import _deviations
from redline.model import Traffic
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording


def traffic_with(share: float) -> Traffic:
    """A load whose last interval lasted this share of the others, and answered nothing."""
    made = simulated_recording(simulated_cell(), GOOD).traffic
    assert made is not None
    measured = [one for one in made.intervals if one.phase == "measure"]
    outcomes = measured[-1].counts.outcomes.model_copy(update={"ok": 0})
    last = measured[-1].model_copy(
        update={
            "end_ns": measured[-1].start_ns + round(share * measured[0].lasts_ns),
            "counts": measured[-1].counts.model_copy(update={"outcomes": outcomes}),
        }
    )
    return made.model_copy(update={"intervals": (*measured[:-1], last)})


@pytest.mark.parametrize(("share", "more"), [(0.49, 0), (0.51, 1)])
def test_intervals_shorter_than_half_the_longest_say_nothing_of_the_rate(share: float, more: int) -> None:
    traffic = traffic_with(share)
    found = _deviations(traffic, times=False, rate=True)
    assert found is not None
    assert found.rate is not None
    assert found.rate.values == len(traffic.intervals) - 1 + more
    assert found.response is None
    assert found.interval_ns == traffic.intervals[0].lasts_ns


def test_nothing_is_told_of_what_is_not_known() -> None:
    assert _deviations(traffic_with(1.0), times=False, rate=False) is None
