"""When the servers of a duet are warm: on simulated courses with a known answer."""

import numpy as np
import pytest

from redline.findings.warm_duet import FEWEST_AFTER_MIX, FEWEST_BLOCKS, DuetWarmth, are_warm, warm
from redline.model import DuetBlock, DuetSlice
from redline.stats.duets import Floats
from tests.fakes.duets import simulated_duet

BLOCKS = 200
STARTS = 100


def noise(seed: int, sd: float = 0.1, memory: float = 0.3) -> Floats:
    """Blocks whose neighbours are alike, of which one in twenty is an outlier by steal."""
    rng = np.random.default_rng(seed)
    values = rng.normal(0, sd, BLOCKS)
    for place in range(1, BLOCKS):
        values[place] += memory * values[place - 1]
    return values + np.where(rng.random(BLOCKS) < 0.05, rng.normal(0, 10 * sd, BLOCKS), 0)


def first_warm(ratios: Floats, idle: Floats) -> int:
    """After how many blocks two servers are called warm, the first being steady; one more than there are if never."""
    return first_warm_of(np.column_stack((np.zeros(BLOCKS), ratios)), idle)


def first_warm_of(costs: Floats, idle: Floats) -> int:
    return next((n for n in range(1, BLOCKS + 1) if warm(costs[:n], idle[:n])), BLOCKS + 1)


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
    """The ratio falls from e to 1; little of the fall is left when it is called flat."""
    falling = np.exp(-np.arange(BLOCKS) / tau)
    found = [first_warm(falling + noise(seed, sd=0.05), np.full(BLOCKS, 0.002)) for seed in range(STARTS)]
    left = [np.exp(-each / tau) for each in found]
    assert np.median(left) < 0.1
    assert np.quantile(left, 0.95) < 0.2


@pytest.mark.parametrize("compiled", [15, 40, 100])
def test_servers_that_get_faster_together_are_waited_for(compiled: int) -> None:
    """A flat ratio of servers that are still slow does not tell the ratio of warm servers."""
    cost = np.linspace(1.6, 0.0, compiled)
    cost = np.concatenate((cost, np.zeros(BLOCKS - compiled)))
    found = [
        first_warm_of(
            np.column_stack([cost + noise(3 * seed + server, sd=0.03) for server in range(3)]), np.zeros(BLOCKS)
        )
        for seed in range(STARTS)
    ]
    assert min(found) > compiled
    assert np.median(found) <= compiled + max(FEWEST_BLOCKS, 0.5 * compiled)


def test_the_order_in_which_servers_are_compiled_is_not_their_ratio() -> None:
    """The course of two servers on Node: the server with more work is compiled first."""
    place = np.arange(BLOCKS)
    one = np.where(place < 12, 1.6, np.where(place < 25, 0.1, 0.0))
    other = np.where(place < 7, 1.75, np.where(place < 12, 1.2, np.where(place < 25, 0.27, 0.18)))
    costs = np.column_stack((one, other, one))
    for seed in range(STARTS):
        noisy = costs + np.column_stack([noise(3 * seed + server, sd=0.03) for server in range(3)])
        assert first_warm_of(noisy, np.zeros(BLOCKS)) > 12 + FEWEST_BLOCKS * 0.9  # a mean is trimmed


def test_servers_that_get_slower_are_as_warm_as_they_get() -> None:
    """As the machine does; the ratio is what is compared."""
    slower = np.linspace(0, 1, BLOCKS)
    assert first_warm_of(np.column_stack((slower, slower + 0.2, slower)), np.zeros(BLOCKS)) == FEWEST_BLOCKS


def test_compilers_that_never_end_are_never_warm() -> None:
    assert first_warm(noise(1), np.full(BLOCKS, 0.1)) > BLOCKS


def test_compilers_that_rest_are_not_done() -> None:
    place = np.arange(BLOCKS)
    resting = np.where((place >= 60) & (place < 72), 0.0, 0.2)
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


def test_a_request_of_a_warm_mix_needs_a_shorter_stretch() -> None:
    assert are_warm(warm_up(idle=0.0, blocks=FEWEST_AFTER_MIX), after_mix=True)
    assert not are_warm(warm_up(idle=0.0, blocks=FEWEST_AFTER_MIX - 1), after_mix=True)
    assert not are_warm(warm_up(idle=0.2, blocks=FEWEST_AFTER_MIX), after_mix=True)
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
        update={"slices": tuple(each.model_copy(update={"completed": 0, "measured": 0}) for each in silent.slices)}
    )
    assert not any(warmth.is_warm(silent) for _ in range(2 * FEWEST_BLOCKS))


def test_servers_of_one_process_are_not_work_while_they_are_not_loaded() -> None:
    """A running server is its own control: its work for one role is no idle work of the other."""

    def as_one(each: DuetSlice) -> DuetSlice:
        own = max(each.cpu_ns[0] or 0, each.cpu_ns[2] or 0)
        return each.model_copy(update={"cpu_ns": (own, each.cpu_ns[1], own)})

    blocks = [block.model_copy(update={"slices": tuple(map(as_one, block.slices))}) for block in warm_up(idle=0.0)]
    assert not are_warm(blocks)
    assert are_warm(blocks, apart=False)
