"""When the servers of a duet are warm: on simulated courses, of which it is known when they are."""

import numpy as np
import pytest

from redline.findings.warm_duet import FEWEST_BLOCKS, DuetWarmth, are_warm, warm
from redline.model import DuetBlock
from redline.stats.duets import Floats
from tests.fakes.duets import simulated_duet

BLOCKS = 200
STARTS = 100


def noise(seed: int, sd: float = 0.1, memory: float = 0.3) -> Floats:
    """Blocks that are alike if they are neighbours, of which one in twenty is an outlier by steal."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0, sd, BLOCKS)
    for place in range(1, BLOCKS):
        values[place] += memory * values[place - 1]
    return values + np.where(rng.random(BLOCKS) < 0.05, rng.normal(0, 10 * sd, BLOCKS), 0)


def first_warm(ratios: Floats, idle: Floats) -> int:
    """After how many blocks the servers are called warm; one more than there are if never."""
    course = ratios[:, np.newaxis]
    return next((n for n in range(1, BLOCKS + 1) if warm(course[:n], idle[:n])), BLOCKS + 1)


def test_steady_servers_are_soon_called_warm() -> None:
    found = [first_warm(noise(seed), np.full(BLOCKS, 0.002)) for seed in range(STARTS)]
    assert min(found) == FEWEST_BLOCKS
    assert np.quantile(found, 0.95) < 2 * FEWEST_BLOCKS


@pytest.mark.parametrize("compiled", [40, 100, 140])
def test_compilers_that_work_are_waited_for(compiled: int) -> None:
    """The idle share falls from 20% to .2% when they are done, and the ratio to that of warm servers."""
    place = np.arange(BLOCKS)
    idle = np.where(place < compiled, 0.2, 0.002)
    ratio = np.where(place < compiled, 1.5 - 0.5 * place / compiled, 0.6)
    found = [first_warm(ratio + noise(seed), idle) for seed in range(STARTS)]
    assert min(found) > compiled
    assert np.quantile(found, 0.95) <= min(BLOCKS, compiled + max(FEWEST_BLOCKS, 0.4 * compiled) + 20)


@pytest.mark.parametrize("tau", [10, 25])
def test_a_ratio_that_still_falls_is_waited_for(tau: float) -> None:
    """Of the ratio that falls from e to 1, little is left by the time that it is called flat."""
    falling = np.exp(-np.arange(BLOCKS) / tau)
    found = [first_warm(falling + noise(seed), np.full(BLOCKS, 0.002)) for seed in range(STARTS)]
    left = [np.exp(-each / tau) for each in found]
    assert np.median(left) < 0.1
    assert np.quantile(left, 0.95) < 0.2


def test_compilers_that_never_end_are_never_warm() -> None:
    assert first_warm(noise(1), np.full(BLOCKS, 0.1)) > BLOCKS


def test_compilers_that_rest_are_not_done() -> None:
    place = np.arange(BLOCKS)
    resting = np.where((place >= 60) & (place < 80), 0.0, 0.2)
    assert first_warm(noise(1), resting) > BLOCKS


def test_a_collector_that_works_now_and_then_is_no_compiler() -> None:
    idle = np.where(np.arange(BLOCKS) % 10 == 0, 0.5, 0.002)
    assert first_warm(noise(1), idle) < 2 * FEWEST_BLOCKS


def warm_up(idle: float, blocks: int = FEWEST_BLOCKS) -> tuple[DuetBlock, ...]:
    found = [each.traffic for each in (simulated_duet(1, idle=idle), simulated_duet(2, idle=idle))]
    return tuple(block for traffic in found if traffic is not None for block in traffic.blocks)[:blocks]


def test_blocks_say_it() -> None:
    assert are_warm(warm_up(idle=0.0))
    assert not are_warm(warm_up(idle=0.1))
    assert not are_warm(warm_up(idle=0.0, blocks=FEWEST_BLOCKS - 1))
    assert not are_warm(())


def test_without_clocks_the_time_of_a_request_is_compared() -> None:
    warmth = DuetWarmth()
    blocks = warm_up(idle=0.0)
    blind = [
        block.model_copy(update={"slices": tuple(each.model_copy(update={"cpu_ns": ()}) for each in block.slices)})
        for block in blocks
    ]
    assert [warmth.is_warm(block) for block in blind].index(True) == FEWEST_BLOCKS - 1


def test_a_block_without_answers_says_nothing() -> None:
    warmth = DuetWarmth()
    silent = warm_up(idle=0.0)[0]
    silent = silent.model_copy(
        update={"slices": tuple(each.model_copy(update={"completed": 0}) for each in silent.slices)}
    )
    assert not any(warmth.is_warm(silent) for _ in range(2 * FEWEST_BLOCKS))
