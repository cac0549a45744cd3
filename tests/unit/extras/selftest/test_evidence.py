"""From a recording to judged points: correct values pass, missing values do not."""

from dataclasses import replace

import numpy as np
import pytest

from redline.extras.selftest.cases import Case, known_cases
from redline.extras.selftest.judge import Ground, Measured, Way, at, judged, lost_share, quantiles, spread_ns
from redline.extras.selftest.results import QUANTILES, Noise, Quantile
from redline.extras.selftest.truth import PeriodicStop, expected
from redline.model import Histogram

WAY_NS = 30_000.0
QUIET = Noise(
    stolen_share=0.0,
    pressure_share=0.0,
    engine_waited_share=0.0,
    server_waited_share=0.0,
    engine_late=(),
    server_late=(),
)


def ground(way_ns: float = WAY_NS) -> Ground:
    once = Histogram.of([way_ns] * 1000)
    return Ground(Way(once, once), Way(once, once), Histogram.of([1.0] * 1000))


def measured(response_ns: "np.typing.NDArray[np.float64]", seen: Noise = QUIET) -> Measured:
    return Measured(Histogram.of(response_ns), Histogram(), (), seen, spreads=1.0, burst_ns=0.0, goals={})


def stopped(seconds: float = 20, stop_s: float = 1, rate: float = 500) -> "np.typing.NDArray[np.float64]":
    """Response times of an even load on a server that is stopped once."""
    due = np.arange(round(seconds * rate), dtype=np.float64) / rate
    wait = np.where((due >= 8) & (due < 8 + stop_s), 8 + stop_s - due, 0.0)
    return wait * 1e9 + WAY_NS


def test_a_stop_is_seen_as_it_is() -> None:
    responses = stopped()
    points = judged(measured(responses), expected(PeriodicStop(20, 1), len(responses), QUANTILES), ground())
    assert [point.judgement for point in points] == ["ok"] * 5
    by_q = {point.q: point for point in points}
    assert by_q[0.99].truth_ns == pytest.approx(0.8e9 + WAY_NS)


def test_a_stop_that_is_omitted_is_off() -> None:
    """A client that waits for its answers sends nothing during the stop: 64 slow requests in place of 500."""
    responses = np.sort(stopped())
    omitting = np.concatenate((responses[:9500], responses[-64:]))
    points = judged(measured(omitting), expected(PeriodicStop(20, 1), len(omitting), QUANTILES), ground())
    assert {point.q: point.judgement for point in points}[0.99] == "off"


def test_a_client_that_rounds_its_waits_to_milliseconds_is_off() -> None:
    responses = np.full(10_000, 5e6 + WAY_NS) + np.random.default_rng(1).random(10_000) * 1e6
    case = next(case for case in known_cases() if case.name == "fixed")
    assert case.law is not None
    points = judged(measured(responses), expected(case.law, len(responses), QUANTILES), ground())
    assert [point.judgement for point in points[:4]] == ["off"] * 4


def test_the_servers_own_lateness_is_allowed_for() -> None:
    responses = np.full(10_000, 5e6 + WAY_NS + 100_000)
    case = next(case for case in known_cases() if case.name == "fixed")
    assert case.law is not None
    chances = expected(case.law, len(responses), QUANTILES)
    late = tuple(Quantile(q=q, ns=100_000) for q in QUANTILES)
    assert judged(measured(responses), chances, ground())[0].judgement == "off"
    seen = QUIET.model_copy(update={"server_late": late})
    assert judged(measured(responses, seen), chances, ground())[0].judgement == "ok"


def test_cores_that_somebody_kept_awake_are_no_omission() -> None:
    awake, resting = Histogram.of([WAY_NS] * 1000), Histogram.of([90_000.0] * 1000)
    seen = replace(measured(stopped()), idles=True)
    chances = expected(PeriodicStop(20, 1), 10_000, QUANTILES)
    found = judged(seen, chances, Ground(Way(awake, awake), Way(resting, resting), Histogram.of([1.0])))
    assert found[0].truth_ns == pytest.approx(90_000, rel=1e-3)
    assert found[0].judgement == "ok"
    both = Ground(Way(resting, resting), Way(resting, resting), Histogram.of([1.0]))
    assert judged(seen, chances, both)[0].judgement == "off"


def test_lost_time_counts_until_the_queue_has_caught_up() -> None:
    seen = QUIET.model_copy(update={"stolen_share": 0.01, "engine_waited_share": 0.02})
    assert lost_share(seen, 1) == pytest.approx(0.04)
    assert lost_share(seen, 5) == pytest.approx(0.2)
    assert lost_share(seen, 100) == 1.0
    blind = QUIET.model_copy(update={"pressure_share": 0.3})
    assert lost_share(blind, 1) == pytest.approx(0.3)
    silent = QUIET.model_copy(update={"stolen_share": None, "engine_waited_share": None, "pressure_share": None})
    assert lost_share(silent, 5) == 0.0


def test_the_spread_of_slices() -> None:
    parts = tuple(Histogram.of([ns] * 100) for ns in (1e6, 2e6, 4e6))
    assert spread_ns(parts, 0.5) == pytest.approx(1.5e6, rel=1e-3)
    assert spread_ns((), 0.5) == 0.0


def test_quantiles_are_found_by_their_share() -> None:
    found = quantiles(Histogram.of([100.0, 200.0]))
    assert at(found, 1.0) == pytest.approx(200, rel=1e-3)
    assert at((), 0.5) == 0.0


@pytest.mark.parametrize("seconds", [None, 0.5, 1, 30])
def test_the_cases_are_possible(seconds: float | None) -> None:
    cases = known_cases(seconds)
    assert len({case.name for case in cases}) == len(cases) == 10
    for case in cases:
        assert case.requests > 0
        assert case.seconds == seconds or seconds is None
        assert stays_below_one(case)


def stays_below_one(case: Case) -> bool:
    """No queue is offered more than its capacity."""
    return 1.0 <= case.spreads < 6
