"""Which time counts as the lab's own in a trial."""

from bench.lab_overhead import overhead
from redline.model import Failure
from tests.fakes.behaviour import Behaviour
from tests.fakes.recordings import simulated_cell, simulated_recording

CELL = simulated_cell()


def test_start_warm_up_and_measurement_are_not_the_labs() -> None:
    found = overhead(simulated_recording(CELL), CELL)
    assert found is not None
    assert found.by_stage == {"launch": 5_000_000, "verify": 2_000_000, "load": 150_000_000, "stop": 10_000_000}
    assert found.total_ns == 167_000_000


def test_trials_that_were_not_run_whole_do_not_count() -> None:
    failure = Failure(stage="load", kind="died", message="it ended", hint="see its log")
    assert overhead(simulated_recording(CELL, Behaviour(failure=failure)), CELL) is None
    assert overhead(simulated_recording(CELL, Behaviour(ended="interrupted", measured=0.5)), CELL) is None
