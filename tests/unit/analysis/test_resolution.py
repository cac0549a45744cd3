"""What would show a difference of 5%: more rounds, a duet or longer loads, but none that takes far too long."""

import math
from dataclasses import replace

import pytest

from redline.analysis.resolution import WORTH_SHOWING, _Remedy, _Scatter
from redline.stats import scatter_showing
from tests.fakes.recordings import simulated_cell, simulated_run

SECOND, MINUTE, HOUR = 10**9, 60 * 10**9, 3600 * 10**9
PLAN = simulated_run(trials=4).manifest.plan
LOUD = _Scatter(rounds=4, total=0.05, within=0.05, load_ns=10 * SECOND)


def remedy(scatter: _Scatter | None, round_ns: int = 30 * SECOND) -> _Remedy:
    return _Remedy(PLAN, round_ns, "out", (scatter,), simulated_cell())


@pytest.mark.parametrize(("round_ns", "bound_ns"), [(30 * SECOND, HOUR), (90 * SECOND, HOUR), (2 * HOUR, 80 * HOUR)])
def test_suggestions_take_an_hour_or_ten_times_what_was_spent_at_most(round_ns: int, bound_ns: int) -> None:
    assert remedy(LOUD, round_ns)._bound_ns == bound_ns


def test_a_duet_lasts_as_long_as_its_batches_need_and_a_minute_at_least() -> None:
    loaded_s = 10 * (2 * 0.05 / math.log1p(WORTH_SHOWING)) ** 2
    assert LOUD.duet_for(WORTH_SHOWING) == pytest.approx(6 * loaded_s * SECOND, rel=1e-6)
    assert replace(LOUD, within=0.001).duet_for(WORTH_SHOWING) == MINUTE
    assert replace(LOUD, within=None).duet_for(WORTH_SHOWING) is None


def test_longer_loads_average_out_what_batches_explain_and_nothing_else() -> None:
    some = replace(LOUD, total=0.06)
    left = scatter_showing(0.2, 4) ** 2 - (0.06**2 - 0.05**2)
    assert some.load_for(0.2) == pytest.approx(10 * SECOND * 0.05**2 / left, rel=1e-6)
    assert replace(LOUD, total=1.0).load_for(WORTH_SHOWING) is None
    assert replace(LOUD, within=None).load_for(WORTH_SHOWING) is None
    assert replace(LOUD, total=0.05, within=0.05).between == 0


def test_what_nothing_shows_is_said_with_why() -> None:
    text = remedy(replace(LOUD, total=2.0, within=None)).text()
    assert text == "nothing that takes 1 h shows 5%: rounds differ by 639%"
    assert remedy(None).text() == "nothing that takes 1 h shows 5%"


def test_rounds_are_suggested_by_the_command_that_makes_them() -> None:
    text = remedy(replace(LOUD, total=0.02, within=None)).text()
    assert text.startswith("for 5% take `redline run --resume out --trials ")
    assert (
        "take `redline run --resume DIR --trials "
        in replace(remedy(replace(LOUD, total=0.02, within=None)), folder=None).text()
    )
