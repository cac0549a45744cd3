"""How many rounds show a difference is the inverse of what so many rounds show, and both agree with intervals."""

import math
import random
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis.resolution import _Scatter, resolutions
from redline.analysis.results import judge_run
from redline.model import Comparison, Estimate, Metric, Verdict
from redline.stats import rounds_for, scatter_of, scatter_showing, shown_by
from redline.stats.distributions import t_quantile
from tests.fakes.recordings import simulated_run


def ratio(low: float, high: float, n: int) -> Estimate:
    return Estimate(value=math.sqrt(low * high), low=low, high=high, unit="ratio", n=n, method="t")


def test_the_scatter_is_that_of_the_rounds_that_made_the_interval() -> None:
    rng = random.Random(1)
    logs = [rng.gauss(0.1, 0.16) for _ in range(9)]
    half = t_quantile(0.975, 8) * stdev(logs) / 3
    made = ratio(math.exp(mean(logs) - half), math.exp(mean(logs) + half), 9)
    scatter = scatter_of(made)
    assert scatter == pytest.approx(stdev(logs))
    assert shown_by(scatter or 0.0, 9) == pytest.approx(math.expm1(half))


@given(st.floats(0.01, 1.0), st.floats(0.01, 0.5))
def test_so_many_rounds_show_it_and_one_fewer_does_not(scatter: float, difference: float) -> None:
    rounds = rounds_for(scatter, difference)
    if rounds is None:
        assert shown_by(scatter, 10_000) > difference
        return
    assert shown_by(scatter, rounds) <= difference
    assert rounds == 2 or shown_by(scatter, rounds - 1) > difference


def test_nothing_is_known_without_an_interval() -> None:
    assert scatter_of(Estimate(value=1, low=None, high=None, unit="ratio", n=1, method="none")) is None
    assert scatter_of(ratio(1.0, 1.0, 9).model_copy(update={"low": 0.0})) is None


def undecided(low: float, high: float, verdict: Verdict = Verdict.INCONCLUSIVE, folder: str = "") -> list[str]:
    run = simulated_run(trials=9)
    baseline, cell, *_ = run.manifest.plan.cells
    one = Comparison(
        metric=Metric.THROUGHPUT, cell_id=cell, baseline_id=baseline, ratio=ratio(low, high, 9), verdict=verdict,
        threshold=0.02,
    )  # fmt: skip
    found = resolutions(judge_run(run), (one,), run.manifest.plan, folder)
    assert all(each.kind == "resolution" for findings in found.values() for each in findings)
    return [each.message for findings in found.values() for each in findings]


def test_an_undecided_comparison_says_what_it_could_show_and_what_shows_less() -> None:
    (said,) = undecided(1 / 1.12, 1.12)
    assert said.startswith("These rounds show differences from 12% in throughput on; for 5% take `redline run --resume")
    trials = int(said.partition("--trials ")[2].split("`")[0])
    scatter = scatter_of(ratio(1 / 1.12, 1.12, 9))
    assert trials == rounds_for(scatter or 0.0, 0.05) == 38


@given(st.floats(0.01, 1.0), st.integers(2, 100))
def test_the_largest_scatter_that_shows_a_difference(difference: float, rounds: int) -> None:
    scatter = scatter_showing(difference, rounds)
    assert shown_by(scatter, rounds) == pytest.approx(difference)


def test_the_command_that_shows_less_names_the_run() -> None:
    assert "`redline run --resume DIR --trials " in undecided(1 / 1.12, 1.12)[0]
    assert "`redline run --resume runs/today --trials " in undecided(1 / 1.12, 1.12, folder="runs/today")[0]
    assert "`redline run --resume 'my runs/1' --trials " in undecided(1 / 1.12, 1.12, folder="my runs/1")[0]


def test_a_fine_or_a_decided_comparison_raises_nothing() -> None:
    assert undecided(1 / 1.04, 1.04) == []
    assert undecided(0.6, 0.9, Verdict.SLOWER) == []


def test_what_nobody_waits_for_is_not_offered() -> None:
    (said,) = undecided(0.001, 1000.0)
    assert "--trials" not in said


def test_rounds_that_take_too_long_are_not_offered_but_what_can_show_it() -> None:
    """Hundreds of trials would take many times what was spent; by the scatter of blocks, a duet is enough."""
    (said,) = undecided(1 / 1.6, 1.6)
    assert "--trials" not in said
    assert said.endswith("these loads cannot show 5%, but a duet of 1 min can.")


def test_longer_loads_help_as_far_as_blocks_explain_how_rounds_differ() -> None:
    wanted = scatter_showing(0.05, 5)
    all_of_it = _Scatter(5, 0.1, 0.1, 10_000_000_000)
    assert all_of_it.load_for(0.05) == pytest.approx(10e9 * (0.1 / wanted) ** 2, rel=1e-6)
    assert _Scatter(5, 0.1, 0.02, 10_000_000_000).load_for(0.05) is None
    assert _Scatter(5, 0.1, None, 10_000_000_000).load_for(0.05) is None


@given(st.floats(0.01, 0.5), st.floats(0.0, 0.5), st.integers(3, 20))
def test_the_length_that_is_offered_shows_the_difference(total: float, within: float, rounds: int) -> None:
    scatter = _Scatter(rounds, total, within, 1_000_000_000)
    length = scatter.load_for(0.05)
    if length is not None:
        blocks = within * math.sqrt(1e9 / max(length, 1))
        assert shown_by(math.hypot(scatter.between, blocks), rounds) <= 0.05 + 1e-6
