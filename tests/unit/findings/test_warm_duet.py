"""When the servers of a duet are warm: on simulated courses with a known answer."""

import math
from typing import Any

import numpy as np
import pytest

from redline.findings.warm_duet import (
    FEWEST_AFTER_MIX,
    FEWEST_BLOCKS,
    Course,
    DuetWarmth,
    are_warm,
    cost_of,
    course,
    fewest_blocks,
    reach,
    still_to_come,
    warm,
)
from redline.model import DuetBlock, DuetSlice
from redline.stats.distributions import t_quantile
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


@pytest.mark.parametrize("compiled", [40, 100, pytest.param(140, marks=pytest.mark.long)])
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


@pytest.mark.parametrize("compiled", [15, 40, pytest.param(100, marks=pytest.mark.long)])
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


@pytest.mark.parametrize(("slice_ms", "fewest"), [(50, 20), (100, 20), (200, 12), (300, 8), (400, 6), (5_000, 6)])
def test_long_slices_need_fewer_blocks(slice_ms: int, fewest: int) -> None:
    """A conversation lasts longer than a request: two slices of a server in a block."""
    ends_ns = slice_ms * MS // 2
    blocks = [block_of(*(slice_of(target, end_ns=ends_ns) for target in (0, 1, 2, 2, 1, 0)))] * 20
    assert fewest_blocks(blocks) == fewest
    assert fewest_blocks(blocks, after_mix=True) == min(fewest, FEWEST_AFTER_MIX)
    assert are_warm(blocks[:fewest])
    assert not are_warm(blocks[: fewest - 1])


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


def block_of(*slices: DuetSlice) -> DuetBlock:
    return DuetBlock(index=0, phase="measure", slices=slices)


def slice_of(target: int, **changed: Any) -> DuetSlice:
    """A slice of 100 ms in which a request to server 0, 1, 2 costs 1, 2, 3 ms of CPU and 10, 20, 30 ms of wall time."""
    facts: dict[str, Any] = {
        "target": target,
        "start_ns": 0,
        "end_ns": 100 * MS,
        "measured_ns": 100 * (target + 1) * MS,
        "measured": 10,
        "completed": 20,
        "failed": 0,
        "cpu_ns": tuple(20 * (target + 1) * MS if at == target else 0 for at in range(3)),
        "engine_cpu_ns": 1,
    }
    return DuetSlice.model_validate({**facts, **changed})


MS = 1_000_000
CLEAR = block_of(*map(slice_of, (0, 1, 2, 2, 1, 0)))
BLIND = block_of(*(slice_of(target, cpu_ns=()) for target in (0, 1, 2)))
CONTRAST = np.array([-0.5, 1.0, -0.5])


def test_the_cost_of_a_block_is_cpu_time_or_else_wall_time() -> None:
    by_cpu = cost_of([CLEAR], saturates=True)
    assert by_cpu is not None
    assert by_cpu(CLEAR) == [1 * MS, 2 * MS, 3 * MS]
    assert by_cpu(block_of(slice_of(0), slice_of(1), slice_of(2, completed=0))) is None
    assert by_cpu(block_of(slice_of(0), slice_of(1), slice_of(1, cpu_ns=(0, None, 0)), slice_of(2))) is None
    assert by_cpu(block_of(slice_of(0), slice_of(1), slice_of(2, cpu_ns=(0, 0, 0)))) is None
    by_wall = cost_of([BLIND], saturates=True)
    assert by_wall is not None
    assert by_wall(BLIND) == [10 * MS, 20 * MS, 30 * MS]
    assert by_wall(block_of(slice_of(0), slice_of(1, measured=0), slice_of(2))) is None


@pytest.mark.parametrize(("clear", "blind", "known"), [(1, 0, True), (1, 1, True), (1, 2, False), (0, 1, False)])
def test_half_of_the_blocks_must_know_their_cpu_time(clear: int, blind: int, *, known: bool) -> None:
    blocks = [*[CLEAR] * clear, *[BLIND] * blind]
    cost = cost_of(blocks, saturates=True)
    assert cost is not None
    assert cost(CLEAR) == ([1 * MS, 2 * MS, 3 * MS] if known else [10 * MS, 20 * MS, 30 * MS])
    assert (cost_of(blocks, saturates=False) is not None) is known


def at_costs(*costs: tuple[float, float, float]) -> list[DuetBlock]:
    """A block for each of these costs of the three servers, in ms of CPU time."""
    return [
        block_of(
            *(
                slice_of(at, cpu_ns=tuple(round(20 * cost * MS) if own == at else 0 for own in range(3)))
                for at, cost in enumerate(of_block)
            )
        )
        for of_block in costs
    ]


STEADY_BLOCKS = at_costs(*[(1.0, 2.0, 1.0)] * 4)


def test_a_course_is_the_change_between_its_halves() -> None:
    blocks = at_costs(*[(1.0, 2.0, 1.0)] * 2, *[(1.0, 2.2, 1.0)] * 2)
    seen = course(blocks, 4, CONTRAST, are_cold=False)
    assert seen.moved == pytest.approx(np.log(1.1))
    assert seen.error == pytest.approx(0.0, abs=1e-9)
    assert seen.cold is None
    few = course(blocks, 3, CONTRAST, are_cold=False)
    assert (few.moved, few.error) == (0.0, math.inf), "three measured blocks show no course"


def test_the_error_of_a_course_is_that_of_both_halves() -> None:
    """Each half has two values that lie as far from their median, 1.4826 of which is a standard deviation."""
    blocks = at_costs(*((1.0, cost, 1.0) for cost in (1.0, np.exp(0.2), 1.0, np.exp(0.2))))
    seen = course(blocks, 4, CONTRAST, are_cold=False)
    assert seen.moved == pytest.approx(0.0, abs=1e-6)
    assert seen.error == pytest.approx(np.sqrt(2 * (0.1 * 1.4826) ** 2 / 2), rel=1e-3)


def test_where_costs_are_unknown_nothing_is_known_of_a_course() -> None:
    assert course([BLIND] * 8, 4, CONTRAST, are_cold=True, saturates=False) == Course(0.0, math.inf, None)
    assert course([BLIND] * 8, 4, CONTRAST, are_cold=False).moved == 0.0


@pytest.mark.parametrize(("blocks", "counted", "known"), [(6, 4, True), (6, 6, True), (5, 4, False), (5, 2, False)])
def test_cold_servers_need_six_blocks_to_show_where_they_go(blocks: int, counted: int, *, known: bool) -> None:
    seen = course((STEADY_BLOCKS * 2)[:blocks], counted, CONTRAST, are_cold=True)
    assert seen.cold is not None
    assert math.isfinite(seen.cold) is known
    if known:
        assert seen.cold == pytest.approx(0.0, abs=1e-9)


def test_a_server_that_gets_faster_has_the_rest_of_its_way_to_come() -> None:
    """Costs fall by a half of what is left from one third to the next: 4, 2, 1 tenths of a logarithm above the end."""
    logs = np.repeat([0.4, 0.2, 0.1], 20)
    blocks = at_costs(*((1.0, float(np.exp(log)), 1.0) for log in logs))
    seen = course(blocks, 20, CONTRAST, are_cold=True)
    assert seen.cold == pytest.approx(0.1 / (1 - 0.5), rel=1e-3)
    half = course(blocks, 40, CONTRAST, are_cold=True)
    assert half.cold == pytest.approx(0.05 + 0.1 / (1 - 0.5), rel=1e-3)


def test_a_course_that_slows_its_fall_little_has_farther_to_go() -> None:
    logs = np.repeat([0.58, 0.30, 0.09], 20)
    blocks = at_costs(*((1.0, float(np.exp(log)), 1.0) for log in logs))
    seen = course(blocks, 20, CONTRAST, are_cold=True)
    assert seen.cold == pytest.approx(0.21 / (1 - 0.75), rel=1e-3)
    steeper = np.repeat([0.2, 0.19, 0.0], 20)
    blocks = at_costs(*((1.0, float(np.exp(log)), 1.0) for log in steeper))
    assert course(blocks, 20, CONTRAST, are_cold=True).cold == pytest.approx(0.19 / (1 - 0.9), rel=1e-3)


def test_a_server_that_gets_slower_is_not_getting_warm() -> None:
    blocks = at_costs(*((float(np.exp(log)),) * 3 for log in np.repeat([0.0, 0.1, 0.2], 20)))
    assert course(blocks, 20, CONTRAST, are_cold=True).cold == pytest.approx(0.0, abs=1e-6)
    falling = at_costs(*((float(np.exp(-log)),) * 3 for log in np.repeat([0.0, 0.1, 0.15], 20)))
    assert course(falling, 20, CONTRAST, are_cold=True).cold == pytest.approx(0.05 / 0.5, rel=1e-3)


def test_the_control_shows_what_is_left_at_least() -> None:
    blocks = at_costs(*[(1.0, 2.0, float(np.exp(0.3)))] * 12)
    assert course(blocks, 6, CONTRAST, are_cold=True).cold == pytest.approx(0.3, rel=1e-3)


def test_a_few_outliers_move_no_course() -> None:
    costs = [(1.0, 2.0, 1.0)] * 20
    costs[3] = costs[14] = (1.0, 20.0, 1.0)
    assert course(at_costs(*costs), 20, CONTRAST, are_cold=False).moved == pytest.approx(0.0, abs=1e-9)


def test_cold_starts_move_by_what_is_left_of_them() -> None:
    assert still_to_come([Course(0.0, 0.1, 0.4), Course(0.0, 0.1, 0.2)]) == pytest.approx(0.3)
    mixed = [Course(0.0, 0.1, 0.4), Course(0.0, 0.1, None), Course(0.0, math.inf, None)]
    assert still_to_come(mixed) == pytest.approx(0.4 / 3)
    assert still_to_come([Course(9.0, math.inf, None)]) == 0.0


@pytest.mark.parametrize(("moved", "to_come"), [(0.399, 0.0), (0.401, 3 * 0.401)])
def test_a_warm_start_moves_by_more_than_four_errors(moved: float, to_come: float) -> None:
    assert still_to_come([Course(moved, 0.1, None)]) == pytest.approx(to_come)
    assert still_to_come([Course(-moved, 0.1, None)]) == pytest.approx(to_come)


def test_of_several_starts_the_errors_and_the_scatter_both_count() -> None:
    two = [Course(0.29, 0.1, None), Course(0.29, 0.1, None)]
    assert still_to_come(two) == pytest.approx(3 * 0.29), "0.28 is four times 0.1 / sqrt(2)"
    assert still_to_come([Course(0.27, 0.1, None)] * 2) == 0.0
    four = [Course(at, 0.001, None) for at in (0.1, 0.2, 0.3, 0.4)]
    between = float(np.std([0.1, 0.2, 0.3, 0.4], ddof=1)) / 2
    assert t_quantile(0.995, 3) * between > 0.25
    assert still_to_come(four) == 0.0
    close = [Course(at, 0.001, None) for at in (0.2, 0.25, 0.25, 0.3)]
    assert still_to_come(close) == pytest.approx(3 * 0.25)
    one_cold = [*close, Course(0.0, 0.1, 0.5)]
    assert still_to_come(one_cold) == pytest.approx((0.5 + 3 * 0.25 * 4) / 5)


def test_what_moves_by_rounding_has_not_moved() -> None:
    assert still_to_come([Course(0.9e-6, 0.0, None)]) == 0.0
    assert still_to_come([Course(1.1e-6, 0.0, None)]) > 0


def test_how_far_a_ratio_may_move_is_said_in_percent() -> None:
    assert reach(math.log(1.25)) == "the ratio may yet move by 25%, which the interval allows for"
    assert reach(math.inf) == "how far the ratio may yet move is not known, so it has no interval"


@pytest.mark.parametrize(("idle", "known"), [(0.029, True), (0.031, False)])
def test_idle_servers_use_less_than_three_hundredths_of_a_core(idle: float, *, known: bool) -> None:
    costs = np.zeros((FEWEST_BLOCKS, 3))
    assert warm(costs, np.full(FEWEST_BLOCKS, idle)) is known
    often = np.where(np.arange(FEWEST_BLOCKS) % 5 == 0, 1.0, 0.0)
    assert warm(costs, often)
    assert not warm(costs, np.where(np.arange(FEWEST_BLOCKS) % 3 == 0, 1.0, 0.0))


@pytest.mark.parametrize(("fell", "is_warm"), [(0.049, True), (0.051, False), (-0.9, True)])
def test_servers_that_get_faster_together_by_a_twentieth_are_not_warm(fell: float, *, is_warm: bool) -> None:
    costs = np.repeat([[fell] * 3, [0.0] * 3], 10, axis=0)
    assert warm(costs, np.zeros(20)) is is_warm


@pytest.mark.parametrize(("moved", "is_warm"), [(0.029, True), (0.031, False), (-0.029, True), (-0.031, False)])
def test_a_ratio_that_moves_by_three_hundredths_is_not_flat(moved: float, *, is_warm: bool) -> None:
    costs = np.repeat([[0.0, 0.0, 0.0], [0.0, moved, 0.0]], 10, axis=0)
    assert warm(costs, np.zeros(20)) is is_warm


@pytest.mark.parametrize(("blocks", "is_warm"), [(84, True), (100, False)])
def test_a_quarter_of_all_blocks_has_to_be_warm(blocks: int, *, is_warm: bool) -> None:
    """The cost fell 22 blocks ago: that is before the last quarter of 84, and within that of 100."""
    costs = np.concatenate((np.ones((blocks - 22, 3)), np.zeros((22, 3))))
    assert warm(costs, np.zeros(blocks)) is is_warm


def test_what_idle_servers_used_is_a_share_of_the_loaded_time() -> None:
    warmth = DuetWarmth()
    busy = [slice_of(at, cpu_ns=tuple(20 * MS if own == at else 5 * MS for own in range(3))) for at in (0, 1, 2)]
    assert not any(warmth.is_warm(block_of(*busy)) for _ in range(FEWEST_BLOCKS))
    calm = [slice_of(at, cpu_ns=tuple(20 * MS if own == at else 1 * MS for own in range(3))) for at in (0, 1, 2)]
    assert are_warm([block_of(*calm)] * FEWEST_BLOCKS)
    warm_for_others = [slice_of(0, cpu_ns=(20 * MS, 0, 9 * MS)), slice_of(1), slice_of(2, cpu_ns=(9 * MS, 0, 20 * MS))]
    assert not are_warm([block_of(*warm_for_others)] * FEWEST_BLOCKS)
    assert are_warm([block_of(*warm_for_others)] * FEWEST_BLOCKS, apart=False)
    unread = [slice_of(at, cpu_ns=(None, None, None), end_ns=0) for at in (0, 1, 2)]
    assert are_warm([block_of(*unread)] * FEWEST_BLOCKS), "by wall time"


@pytest.mark.parametrize(("clear", "is_warm"), [(20, True), (9, False)])
def test_cpu_time_counts_where_half_of_the_blocks_know_it(clear: int, *, is_warm: bool) -> None:
    assert are_warm([*[BLIND] * 20, *[CLEAR] * clear], saturates=False) is is_warm
    assert not are_warm([BLIND] * 40, saturates=False)
