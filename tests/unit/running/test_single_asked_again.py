"""After wrong answers to several requests, a load sends each of them once more."""

from dataclasses import dataclass, field

import pytest

from redline.errors import DriveError
from redline.model import Cell, Recording
from redline.model.traffic import Ended, Outcomes
from redline.ports import Endpoint
from redline.running.single import still_wrong
from tests.fakes.plugins import FakeDriver
from tests.fakes.recordings import POST_BYTES, SIMPLE_GET, simulated_cell, simulated_recording

SEVERAL = simulated_cell(scenario=SIMPLE_GET.model_copy(update={"others": (POST_BYTES.request,)}))
SAID = "POST /bytes0: status 500 in place of 200"


@dataclass
class Ends(FakeDriver):
    """Is ended while it sends a request."""

    by: BaseException = field(default_factory=KeyboardInterrupt)

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        raise self.by


def recording(wrong: int = 3, ended: Ended = "complete") -> Recording:
    made = simulated_recording(SEVERAL)
    assert made.traffic is not None
    counts = made.traffic.counts.model_copy(update={"outcomes": Outcomes(ok=9, unexpected_status=wrong)})
    return made.model_copy(update={"traffic": made.traffic.model_copy(update={"counts": counts, "ended": ended})})


def asked_again(made: Recording, cell: Cell = SEVERAL, driver: FakeDriver | None = None) -> str:
    return still_wrong(cell, made, driver or FakeDriver([], wrong=SAID), Endpoint("127.0.0.1", 1))


def test_the_request_that_is_wrong_again_is_named() -> None:
    assert asked_again(recording()) == SAID
    assert not asked_again(recording(), driver=FakeDriver([]))


def test_nothing_is_sent_if_it_would_tell_nothing() -> None:
    assert not asked_again(recording(wrong=0))
    assert not asked_again(recording(ended="interrupted"))
    assert not asked_again(recording(), simulated_cell())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DriveError("the engine ended", hint="see its log")])
def test_what_was_measured_stays_if_nothing_can_be_sent(error: BaseException) -> None:
    assert not asked_again(recording(), driver=Ends([], by=error))
