"""Findings about differences between a cell's trials: drift, alternation, two groups; and independent trials."""

import math
import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.random import Generator

from redline.findings import judge_cell
from redline.findings.rules import AUTOCORRELATION_P
from redline.model import Cell, Finding, FindingKind, Grade, Recording
from redline.stats import Trial
from redline.stats.series import critical_gap, interval_excess, two_groups
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording

CLOSED = simulated_cell(load=SATURATE)
OPEN = simulated_cell(load=STEADY)
OF_TRIALS = {"run-drift", "autocorrelation", "bimodal"}
ONE = simulated_recording(CLOSED)


def judged(cell: Cell, recordings: Sequence[Recording]) -> tuple[Finding, ...]:
    return judge_cell(cell, [Trial(one) for one in recordings], planned=len(recordings))


def trials(speeds: list[float]) -> list[Recording]:
    """A closed load's trials, which answered at these shares of the usual rate."""
    assert ONE.traffic is not None
    usual = ONE.traffic.counts
    made = []
    for position, speed in enumerate(speeds):
        update = {"completed": round(usual.completed * speed), "due": round(usual.due * speed)}
        counts = usual.model_copy(update=update)
        traffic = ONE.traffic.model_copy(update={"counts": counts})
        made.append(ONE.model_copy(update={"position": position, "traffic": traffic}))
    return made


def raised(speeds: list[float], cell: Cell = CLOSED) -> dict[FindingKind, Grade]:
    made = trials(speeds)
    found = judged(cell, [*made[1:], made[0]])
    assert all(one.position is None and one.cell_id == cell.id for one in found)
    return {one.kind: one.grade for one in found if one.kind in OF_TRIALS}


def noise(n: int, seed: int = 1, sigma: float = 0.01) -> list[float]:
    return list(np.exp(np.random.default_rng(seed).normal(0, sigma, n)))


def wandering(n: int, rng: Generator) -> list[float]:
    """Numbers that are much like their predecessors, without a trend."""
    values = [0.0]
    for _ in range(n - 1):
        values.append(0.93 * values[-1] + rng.normal(0, 0.01))
    return list(np.exp(values))


@pytest.mark.parametrize("n", [2, 5, 9, 15, 30])
@pytest.mark.parametrize("seed", range(5))
def test_independent_trials_raise_nothing(n: int, seed: int) -> None:
    assert raised(noise(n, seed)) == {}


@pytest.mark.parametrize(("change", "grade"), [(0.01, None), (0.05, Grade.NOTE), (-0.3, Grade.WARN)])
def test_a_drift_over_the_run_is_reported_by_its_size(change: float, grade: Grade | None) -> None:
    drifting = [one * (1 + change * i / 11) for i, one in enumerate(noise(12, sigma=0.0005))]
    assert raised(drifting) == ({"run-drift": grade} if grade else {})


def test_an_open_load_drifts_in_its_response_times() -> None:
    made = []
    for position in range(8):
        one = simulated_recording(OPEN)
        assert one.traffic is not None
        slower = one.traffic.response.__class__.of(np.linspace(1e5, 3e5, 500) * (1 + position / 10))
        made.append(
            one.model_copy(
                update={"position": position, "traffic": one.traffic.model_copy(update={"response": slower})}
            )
        )
    found = {one.kind: one for one in judged(OPEN, made)}
    assert found["run-drift"].grade is Grade.WARN
    assert "p50 response time rose" in found["run-drift"].message


def test_trials_that_are_like_those_before_them_make_the_interval_too_narrow() -> None:
    waves = [1 + 0.05 * np.sin(i / 2.5) + 0.002 * one for i, one in enumerate(noise(30))]
    found = raised(waves)
    assert found.get("autocorrelation") is Grade.WARN
    assert "run-drift" not in found
    assert interval_excess(waves, AUTOCORRELATION_P) > 2
    assert raised(sorted(waves)).get("autocorrelation") is None, "a drift is reported as one"


def test_wandering_trials_are_seen_and_shuffled_ones_are_not() -> None:
    rng = np.random.default_rng(4)
    seen = shuffled = 0
    for _ in range(60):
        values = wandering(30, rng)
        seen += interval_excess(values, AUTOCORRELATION_P) > 1
        shuffled += interval_excess(list(rng.permutation(values)), AUTOCORRELATION_P) > 1
    assert seen > 30
    assert shuffled <= 1


@given(st.lists(st.floats(0.1, 10), max_size=40))
def test_an_interval_is_never_called_too_wide_and_few_trials_prove_nothing(values: list[float]) -> None:
    assert interval_excess(values, AUTOCORRELATION_P) >= 1
    assert len(values) >= 10 or interval_excess(values, AUTOCORRELATION_P) == 1


LOTTERY = [1.0, 1.2, 1.2, 1.0, 1.0, 1.2, 1.0, 1.2, 1.0]


def test_two_modes_are_reported_with_both() -> None:
    speeds = [one * mode for one, mode in zip(noise(9, sigma=0.003), LOTTERY, strict=True)]
    made = trials(speeds)
    (found,) = (one for one in judged(CLOSED, made) if one.kind == "bimodal")
    assert found.grade is Grade.WARN
    assert re.search(r"5 with a rate near (19\.9|20\.\d) k/s, 4 near 2[34]\.\d k/s, 2\d% apart", found.message)
    assert "before all of the other" not in found.message


def test_two_modes_one_after_the_other_are_said_to_be_a_change() -> None:
    made = trials([one * mode for one, mode in zip(noise(9, sigma=0.003), sorted(LOTTERY), strict=True)])
    (found,) = (one for one in judged(CLOSED, made) if one.kind == "bimodal")
    assert "before all of the other" in found.message


def test_modes_that_lie_close_together_are_a_note_or_nothing() -> None:
    for mode, grade in ((1.01, None), (1.03, Grade.NOTE)):
        speeds = [one * (mode if up > 1 else 1) for one, up in zip(noise(9, sigma=0.0002), LOTTERY, strict=True)]
        assert raised(speeds).get("bimodal") is grade


def test_a_single_odd_trial_is_no_group() -> None:
    assert raised([*noise(9, sigma=0.003), 0.7]) == {}


@pytest.mark.parametrize("n", [5, 9, 20])
def test_one_group_is_seldom_taken_for_two(n: int) -> None:
    """One in 1,000 for these; here at most 3 of 300."""
    rng = np.random.default_rng(6)
    normal = sum(two_groups(list(np.exp(0.01 * rng.standard_normal(n)))) is not None for _ in range(300))
    assert normal <= 3


def test_the_more_trials_the_smaller_a_gap_may_be() -> None:
    limits = [critical_gap(n) for n in range(5, 40)]
    assert limits == sorted(limits, reverse=True)


@given(st.lists(st.floats(0.5, 2), min_size=5, max_size=12))
@example([0.5, 0.5, 0.5, math.nextafter(0.5, 1), math.nextafter(0.5, 1)])
def test_groups_hold_every_number_and_two_or_more_each(values: list[float]) -> None:
    split = two_groups(values)
    if split is not None:
        assert sum(split.sizes) == len(values)
        assert min(split.sizes) >= 2
        lower = [value for value, up in zip(values, split.is_upper, strict=True) if not up]
        upper = [value for value, up in zip(values, split.is_upper, strict=True) if up]
        assert max(lower) < min(upper)
        assert split.apart > 0


@pytest.mark.parametrize("values", [[], [1.0] * 4, [1.0, 1.0, 1.0, 9.0], [3.0] * 20])
def test_too_few_or_equal_numbers_are_one_group(values: list[float]) -> None:
    assert two_groups(values) is None
