"""The speed of cores by fixed work: beside the median of all trials, and only where both measurements agree."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from redline.analysis.speeds import core_speeds

USUAL_NS = 1_000


def trial(position: int, *works: tuple[int, int, int], cpus: Sequence[int] | None = (0,)) -> Any:
    """A trial whose server has these cores, and the fixed work of cores before and after it."""
    fixed_work = [SimpleNamespace(cpu=cpu, before_ns=before, after_ns=after) for cpu, before, after in works]
    server = None if cpus is None else SimpleNamespace(cpus=tuple(cpus))
    return SimpleNamespace(numbers=SimpleNamespace(position=position, fixed_work=fixed_work, server=server))


def speeds(*trials: Any, usual: int = 4) -> dict[int, float]:
    """The speeds of these trials beside others of usual speed, which have positions from 100 on."""
    others = [trial(100 + at, (0, USUAL_NS, USUAL_NS), (1, USUAL_NS, USUAL_NS)) for at in range(usual)]
    found = core_speeds({"a": SimpleNamespace(trials=trials), "b": SimpleNamespace(trials=others)})  # type: ignore[dict-item]
    assert all(found[position] == 1 for position in found if position >= 100)
    return {position: speed for position, speed in found.items() if position < 100}


@pytest.mark.parametrize(
    ("before", "after", "speed"),
    [(500, 400, 2.0), (400, 500, 2.0), (2_000, 4_000, 0.5), (500, 2_000, 1.0), (500, 1_000, 1.0)],
)
def test_the_measurement_that_is_closer_to_usual_counts_if_both_are_on_its_side(
    before: int, after: int, speed: float
) -> None:
    assert speeds(trial(7, (0, before, after))) == pytest.approx({7: speed})


def test_cores_of_the_server_alone_count_by_their_geometric_mean() -> None:
    assert speeds(trial(7, (0, 500, 500), (1, 2_000, 2_000))) == pytest.approx({7: 2.0})
    assert speeds(trial(7, (0, 500, 500), (1, 125, 125), cpus=(0, 1))) == pytest.approx({7: 4.0})
    assert speeds(trial(7, (0, 500, 500), cpus=(3,))) == {}
    assert speeds(trial(7, (0, 500, 500), cpus=None)) == {}


@pytest.mark.parametrize(("usual", "known"), [(3, False), (4, True)])
def test_five_trials_with_fixed_work_are_the_fewest(usual: int, *, known: bool) -> None:
    without = trial(8)
    assert speeds(trial(7, (0, 500, 500)), without, usual=usual) == (pytest.approx({7: 2.0}) if known else {})
