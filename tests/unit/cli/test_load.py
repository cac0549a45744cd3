"""`redline load`: what is said where nothing was measured."""

import pytest

from redline.cli.commands.load import _unmeasured
from redline.model import Histogram
from redline.model.exchange import Scenario
from redline.model.journey import Journey, JourneyStep, Rows
from redline.model.journey_traffic import JourneyTraffic
from tests.fakes.recordings import SIMPLE_GET, simulated_cell, simulated_recording

ROWS = Rows(file="users.csv", columns=("name",), count=4, use="unique", sha256="0" * 64)


@pytest.mark.parametrize(
    ("used_up", "says"),
    [(True, "all 4 rows of users.csv were used in the warm-up"), (False, "the load ended before its measurement")],
)
def test_rows_that_the_warm_up_used_are_why_nothing_was_measured(*, used_up: bool, says: str) -> None:
    walked = Journey(steps=(JourneyStep(),), rows=ROWS)
    cell = simulated_cell().model_copy(
        update={"scenario": Scenario(name="shop", request=SIMPLE_GET.request, journey=walked)}
    )
    recording = simulated_recording(simulated_cell())
    assert recording.traffic is not None
    journeys = JourneyTraffic(response=Histogram(), rows_used_up=used_up)
    traffic = recording.traffic.model_copy(update={"journeys": journeys})
    error = _unmeasured(cell, recording.model_copy(update={"traffic": traffic}))
    assert error.message.startswith(says)
