"""What each server of a duet had served by each slice, counted by hand."""

import pytest

from redline.findings.served import in_all, served
from redline.findings.starts import traffic_of
from redline.model import DuetRecording, ServerFacts
from tests.fakes.duets import simulated_duet
from tests.fakes.plugins import FACTS


def start(number: int, *, running: bool = False) -> DuetRecording:
    """A start of two blocks whose servers answer 10, 20 and 30 requests a slice, and fail 2 of each."""
    made = simulated_duet(number)
    blocks = [
        block.with_slices(
            one.model_copy(update={"completed": 10 * (one.target + 1) - 2, "failed": 2}) for one in block.slices
        )
        for block in traffic_of(made).blocks[:2]
    ]
    servers: tuple[ServerFacts | None, ...] = (None, None, None) if running else (FACTS, FACTS, FACTS)
    traffic = traffic_of(made).model_copy(update={"blocks": tuple(blocks)})
    return made.model_copy(update={"traffic": traffic, "servers": servers})


def test_a_slice_has_what_its_server_had_served_by_its_middle() -> None:
    ((first, second),) = served([start(1)])
    assert first == [5, 10, 15, 45, 30, 15]
    assert second == [25, 50, 75, 105, 70, 35]


def test_servers_that_were_running_serve_on_and_others_begin_anew() -> None:
    _, anew = served([start(1), start(2)])
    assert anew[0][0] == 5
    _, on = served([start(1, running=True), start(2, running=True)])
    assert on[0][0] == 165, "the control is the baseline's process"
    assert on[0][1] == 90


def test_in_all_is_what_was_served_by_the_last_measured_slice() -> None:
    made = start(1)
    ((first, second),) = served([made])
    assert in_all(made, [first, second]) == {0: 35, 1: 70, 2: 105}
    warm = tuple(block.model_copy(update={"phase": "warmup"}) for block in traffic_of(made).blocks)
    unmeasured = made.model_copy(update={"traffic": traffic_of(made).model_copy(update={"blocks": warm})})
    assert in_all(unmeasured, [first, second]) == pytest.approx({0: 0, 1: 0, 2: 0})
