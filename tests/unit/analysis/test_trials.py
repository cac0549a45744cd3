"""What reports have of every trial, and of its moments."""

import pytest

from redline.analysis.trials import _by_trial, _moments
from redline.model import Counts, Histogram, Metric, Recording
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording

MADE = simulated_recording(simulated_cell(), GOOD)


def with_traffic(**changes: object) -> Recording:
    assert MADE.traffic is not None
    return MADE.model_copy(update={"traffic": MADE.traffic.model_copy(update=changes)})


def test_every_trial_has_its_rate_its_times_and_its_cost() -> None:
    trial = Trial(MADE)
    made = _by_trial(trial)
    assert MADE.traffic is not None
    assert made == {
        Metric.THROUGHPUT: trial.rate_per_s,
        Metric.P50: MADE.traffic.response.quantile_ns(0.5),
        Metric.P99: MADE.traffic.response.quantile_ns(0.99),
        Metric.CPU_PER_REQUEST: trial.cpu_per_request_ns,
    }


def test_a_trial_without_traffic_has_no_number_and_one_without_answers_no_rate() -> None:
    assert _by_trial(Trial(MADE.model_copy(update={"traffic": None}))) == {}
    assert Metric.THROUGHPUT not in _by_trial(Trial(with_traffic(counts=Counts(due=9))))
    assert Metric.P50 not in _by_trial(Trial(with_traffic(response=Histogram())))


@pytest.mark.parametrize(("requests", "known"), [(999, False), (1000, True)])
def test_a_trial_has_a_p99_from_a_thousand_requests_on(requests: int, known: bool) -> None:
    made = _by_trial(Trial(with_traffic(response=Histogram.of([1e6] * requests))))
    assert (Metric.P50 in made, Metric.P99 in made) == (True, known)


def test_a_moment_is_the_middle_of_an_interval_with_its_rate() -> None:
    assert MADE.traffic is not None
    first, *rest = [one for one in MADE.traffic.intervals if one.lasts_ns > 0 and one.counts.completed]
    moment, *others = _moments(Trial(MADE), timed=True)
    assert moment.at_s == pytest.approx((first.start_ns + first.end_ns) / 2e9)
    assert moment.rate_per_s == pytest.approx(first.counts.completed / first.lasts_ns * 1e9)
    assert moment.p50_ns > 0
    assert len(others) == len(rest)
    assert {one.p50_ns for one in _moments(Trial(MADE), timed=False)} == {0}
