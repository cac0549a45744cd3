"""A profiler's cost is measured within a start: with it, and before and after it without."""

from dataclasses import replace

import numpy as np
import pytest

from redline.model import Metric, Recording
from redline.profiles.overhead import overhead
from redline.stats.distributions import t_quantile
from redline.stats.series import switched
from tests.fakes.behaviour import GOOD
from tests.fakes.profiles import profiled, profiled_start
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording

CELL = simulated_cell(load=SATURATE.model_copy(update={"duration_ns": 5_000_000_000}))


@pytest.mark.parametrize("trend", [0.0, 0.2])
@pytest.mark.parametrize("starts", [1, 3])
def test_a_known_cost_lies_in_its_interval_also_when_the_server_gets_faster(trend: float, starts: int) -> None:
    behaviour = replace(GOOD, trend=trend, noise=0.02)
    recordings = [profiled_start(CELL, behaviour, position=each, seed=each, cost=1.1) for each in range(starts)]
    found = overhead(recordings)
    for metric, truth in ((Metric.THROUGHPUT, 1 / 1.1), (Metric.CPU_PER_REQUEST, 1.1)):
        ratio = found[metric]
        assert ratio.value == pytest.approx(truth, rel=0.03)
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.low < truth < ratio.high
        assert ratio.high / ratio.low < 1.1
        assert ratio.n == starts


def test_what_was_not_measured_before_and_after_has_no_cost() -> None:
    """Recordings of earlier versions, and loads that change, were profiled from beginning to end."""
    assert overhead([]) == {}
    assert overhead([profiled(simulated_recording(CELL, GOOD))]) == {}
    cut = profiled_start(CELL)
    assert cut.profile is not None
    assert overhead([without(cut, stopped=None)]) == {}
    assert overhead([without(cut, started=cut.profile.started, stopped=cut.profile.started)]) == {}
    short = simulated_cell(load=SATURATE.model_copy(update={"duration_ns": 500_000_000}))
    assert overhead([profiled_start(short)]) == {}


def without(recording: Recording, **update: object) -> Recording:
    assert recording.profile is not None
    return recording.model_copy(update={"profile": recording.profile.model_copy(update=update)})


def test_without_cpu_times_the_throughput_is_known() -> None:
    one = profiled_start(CELL, cost=1.1)
    series = tuple(each for each in one.series if each.subject != "server")
    assert set(overhead([one.model_copy(update={"series": series})])) == {Metric.THROUGHPUT}


AT = np.arange(20.0)
ON = (AT >= 5) & (AT < 15)


def test_what_is_switched_on_is_found_beside_a_trend() -> None:
    found = switched(3.0 + 0.1 * AT + 0.25 * ON, AT, ON)
    assert found.value == pytest.approx(0.25)
    assert found.error == pytest.approx(0.0, abs=1e-9)
    assert found.freedom == 17


@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.93), (0.3, 0.9), (0.6, 0.84)])
def test_its_interval_holds_the_truth_though_neighbours_resemble_each_other(correlation: float, least: float) -> None:
    drawn, runs, held = np.random.default_rng(7), 1_000, 0
    for _ in range(runs):
        noise = drawn.normal(size=2 * len(AT))
        for place in range(1, len(noise)):
            noise[place] += correlation * noise[place - 1]
        found = switched(noise[len(AT) :] + 0.02 * AT, AT, ON)
        held += abs(found.value) < t_quantile(0.975, found.freedom) * found.error
    assert held / runs >= least
