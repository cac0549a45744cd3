"""How long a server may still work on requests that nobody waits for any more, before its next probe."""

import pytest

from redline.model import Counts, Outcomes, Traffic
from redline.running.probing import unserved_s
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, simulated_cell, simulated_recording


def after(answered: int, **outcomes: int) -> Traffic:
    """A load of some seconds with so many answers."""
    traffic = simulated_recording(simulated_cell(load=STEADY), GOOD).traffic
    assert traffic is not None
    counts = Counts(due=answered, completed=answered, outcomes=Outcomes(ok=answered, **outcomes))
    return traffic.model_copy(update={"counts": counts})


def test_what_timed_out_or_is_in_flight_takes_the_time_that_answers_took() -> None:
    seconds = after(100).seconds
    assert unserved_s(after(100), 64, 9.0) == 0
    assert unserved_s(after(100, timeout=50), 64, 9.0) == pytest.approx(0.5 * seconds)
    assert unserved_s(after(100, timeout=50, in_flight=30), 64, 9.0) == pytest.approx(0.8 * seconds)


def test_where_requests_were_never_sent_all_connections_were_in_use() -> None:
    seconds = after(100).seconds
    assert unserved_s(after(100, in_flight=30, unsent=1), 64, 9.0) == pytest.approx(0.64 * seconds)
    assert unserved_s(after(100, in_flight=80, unsent=1), 64, 9.0) == pytest.approx(0.8 * seconds)


def test_it_is_no_longer_than_the_timeout_and_all_of_it_without_an_answer() -> None:
    assert unserved_s(after(1, timeout=5000), 64, 2.5) == 2.5
    assert unserved_s(after(0, timeout=1), 64, 2.5) == 2.5
    assert unserved_s(after(0), 64, 2.5) == 0
