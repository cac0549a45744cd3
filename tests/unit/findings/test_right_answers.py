"""Right answers that may be wrong: conversations that were cut short are found on each side."""

import pytest

from redline.findings.right_answers import ended_early
from redline.findings.rules import Observation
from redline.model import Counts, Histogram, Outcomes, StreamTraffic
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording


@pytest.mark.parametrize(("early", "failed", "share"), [(21, 0, 0.21), (21, 20, 0.01), (20, 20, None), (0, 0, None)])
def test_conversations_that_failed_did_not_end_early(early: int, failed: int, share: float | None) -> None:
    traffic = simulated_recording(simulated_cell(), GOOD).traffic
    assert traffic is not None
    streams = StreamTraffic(begun=100, early=early, first_event=Histogram(), gaps=Histogram())
    counts = traffic.counts.model_copy(update={"outcomes": Outcomes(ok=100 - failed, closed=failed)})
    seen = traffic.model_copy(update={"streams": streams, "counts": counts})
    assert ended_early.function is not None
    found = ended_early.function(seen)
    if share is None:
        assert found is None
    else:
        assert isinstance(found, Observation)
        assert found.value == share
        assert found.message.startswith(f"Under load {early - failed} of 100 conversations count as right")


def test_a_load_without_conversations_has_none_that_ended_early() -> None:
    traffic = simulated_recording(simulated_cell(), GOOD).traffic
    assert traffic is not None
    assert traffic.streams is None
    assert ended_early.function is not None
    assert ended_early.function(traffic.model_copy(update={"counts": Counts()})) is None
