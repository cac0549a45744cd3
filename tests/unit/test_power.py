"""How many rounds show a difference is the inverse of what so many rounds show, and both agree with intervals."""

import math
import random
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis.judged import judge_run
from redline.analysis.resolution import resolutions
from redline.model import Comparison, Estimate, FindingKind, Metric, Verdict
from redline.stats import rounds_for, scatter_of, shown_by
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
    assert all(each.kind is FindingKind.RESOLUTION for findings in found.values() for each in findings)
    return [each.message for findings in found.values() for each in findings]


def test_an_undecided_comparison_says_what_it_could_show_and_what_shows_less() -> None:
    (said,) = undecided(1 / 1.28, 1.28)
    assert said.startswith("These rounds show differences from 28% in throughput on; for 5% take `design: duet`")
    trials = int(said.partition("--trials ")[2].split("`")[0])
    scatter = scatter_of(ratio(1 / 1.28, 1.28, 9))
    assert trials == rounds_for(scatter or 0.0, 0.05) == 169


def test_the_command_that_shows_less_names_the_run() -> None:
    assert "`redline run --resume DIR --trials " in undecided(1 / 1.28, 1.28)[0]
    assert "`redline run --resume runs/today --trials " in undecided(1 / 1.28, 1.28, folder="runs/today")[0]
    assert "`redline run --resume 'my runs/1' --trials " in undecided(1 / 1.28, 1.28, folder="my runs/1")[0]


def test_a_fine_or_a_decided_comparison_raises_nothing() -> None:
    assert undecided(1 / 1.04, 1.04) == []
    assert undecided(0.6, 0.9, Verdict.SLOWER) == []


def test_what_nobody_waits_for_is_not_offered() -> None:
    (said,) = undecided(0.001, 1000.0)
    assert "--trials" not in said


def test_rounds_that_take_more_than_a_day_are_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    (offered,) = undecided(1 / 1.28, 1.28)
    assert "--trials" in offered
    monkeypatch.setattr("redline.analysis.resolution.LONGEST_NS", 60_000_000_000)
    (said,) = undecided(1 / 1.28, 1.28)
    assert "--trials" not in said
    assert "`design: duet`" in said
