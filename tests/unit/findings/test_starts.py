"""Facts about a start of a duet: which server failed, whose CPU time is not known, which blocks count."""

import pytest

from redline.findings.starts import (
    _lasted_ns,
    block_ns,
    counted,
    cpu_of_all,
    cpu_unknown,
    failing,
    is_whole,
    measured,
    traffic_of,
    why_lost,
)
from redline.model import DuetBlock, DuetRecording, DuetSlice, DuetTraffic, Outcomes
from redline.quantities import duration
from tests.fakes.duets import MEASURED, NS_PER_REQUEST, SLICE_NS, simulated_duet


def slices(start: DuetRecording, **changed: object) -> DuetTraffic:
    """The traffic with changed slices of the second server."""
    traffic = traffic_of(start)
    blocks = tuple(
        block.with_slices(one.model_copy(update=changed) if one.target == 1 else one for one in block.slices)
        for block in traffic.blocks
    )
    return traffic.model_copy(update={"blocks": blocks})


def with_cpu(unknown: int, zero: int) -> DuetTraffic:
    """A start in which the second server's CPU time is not known, or 0, in the first of its slices."""
    traffic, seen = traffic_of(simulated_duet(1)), 0

    def changed(one: DuetSlice) -> DuetSlice:
        nonlocal seen
        if one.target != 1:
            return one
        seen += 1
        if seen <= unknown + zero:
            used = None if seen <= unknown else 0
            return one.model_copy(update={"cpu_ns": (one.cpu_ns[0], used, one.cpu_ns[2])})
        return one

    blocks = tuple(block.with_slices(map(changed, block.slices)) for block in traffic.blocks)
    return traffic.model_copy(update={"blocks": blocks})


OWN = 2 * MEASURED
"""The slices of each server."""


def test_the_cpu_time_of_most_slices_must_be_known() -> None:
    assert cpu_unknown(with_cpu(0, 0), 1) == ""
    assert cpu_unknown(with_cpu(OWN // 2, 0), 1) == ""
    assert "could not be read" in cpu_unknown(with_cpu(OWN // 2 + 1, 0), 1)
    assert cpu_unknown(with_cpu(OWN // 4, OWN // 4), 1) == ""
    assert "could not be read" in cpu_unknown(with_cpu(OWN // 4 + 1, OWN // 4), 1)
    assert "others answer" in cpu_unknown(with_cpu(0, OWN // 2 + 1), 1)
    assert "could not be read" in cpu_unknown(slices(simulated_duet(1), cpu_ns=()), 1)
    assert cpu_unknown(slices(simulated_duet(1), completed=0, cpu_ns=()), 1) == "", "it answered nothing"


def test_the_cost_of_a_request_is_that_of_all_slices() -> None:
    costs = cpu_of_all(traffic_of(simulated_duet(1, (1.0, 2.0), noise=0.0)))
    assert costs is not None
    assert costs.tolist() == pytest.approx([NS_PER_REQUEST, 2 * NS_PER_REQUEST, NS_PER_REQUEST], rel=0.02)
    assert cpu_of_all(with_cpu(1, 0)) is None
    assert cpu_of_all(slices(simulated_duet(1), completed=0)) is None
    assert cpu_of_all(slices(simulated_duet(1), cpu_ns=(0, 0, 0))) is None


@pytest.mark.parametrize(("failed", "found"), [(9, False), (11, True)])
def test_a_server_that_fails_more_than_a_hundredth_is_not_compared(failed: int, *, found: bool) -> None:
    start = simulated_duet(1)
    made = start.model_copy(update={"traffic": slices(start, completed=1000 - failed, failed=failed)})
    said = failing([made], ("a", "b"))
    assert (said is not None) is found
    assert said is None or said == f"{failed * OWN:,} of {1000 * OWN:,} requests to b failed"


def test_a_block_lasts_from_its_first_slice_to_its_last() -> None:
    assert block_ns(simulated_duet(1)) == 6 * SLICE_NS
    assert block_ns(simulated_duet(1).model_copy(update={"traffic": None})) == 0


def lengths(blocks: list[DuetBlock], factor: float) -> list[DuetBlock]:
    return [
        block.with_slices(
            one.model_copy(update={"end_ns": one.start_ns + round(factor * (one.end_ns - one.start_ns))})
            for one in block.slices
        )
        for block in blocks
    ]


def test_the_last_ten_warm_blocks_count_where_slices_are_as_long() -> None:
    traffic = traffic_of(simulated_duet(1, warmup=30))
    warm = [block for block in traffic.blocks if block.phase == "warmup"]
    after = measured(traffic)
    assert [block.index for block in counted(traffic)] == [*range(20, 50)]
    assert [block.index for block in counted(traffic, after_mix=True)] == [*range(25, 50)]
    for factor, alike in ((0.81, True), (0.79, False), (1.19, True), (1.21, False)):
        other = traffic.model_copy(update={"blocks": (*lengths(warm, factor), *after)})
        assert (len(counted(other)) == 30) is alike, factor


def test_a_start_is_whole_with_a_measured_block_and_no_failure() -> None:
    start = simulated_duet(1)
    assert is_whole(start)
    assert not is_whole(start.model_copy(update={"traffic": None}))
    only_warm = tuple(block.model_copy(update={"phase": "warmup"}) for block in traffic_of(start).blocks)
    assert not is_whole(
        start.model_copy(update={"traffic": traffic_of(start).model_copy(update={"blocks": only_warm})})
    )


def test_a_start_that_measured_nothing_says_how_long_its_slices_took() -> None:
    start = simulated_duet(1)
    traffic = traffic_of(start)
    blocks = tuple(block.model_copy(update={"phase": "warmup"}) for block in traffic.blocks)
    cold = start.model_copy(update={"traffic": traffic.model_copy(update={"blocks": blocks})})
    first = blocks[0].slices
    block_s = block_ns(cold)
    assert block_s == pytest.approx(first[-1].end_ns - first[0].start_ns, rel=0.2)
    lasted = [duration(_lasted_ns([one for one in first if one.target == at])) for at in (0, 1)]
    assert why_lost(cold, ("A", "B")) == (
        f"answers take too long: until all were there, a slice lasted A {lasted[0]}, B {lasted[1]}, "
        f"and a block {duration(block_s)}"
    )
    assert why_lost(start, ("A", "B")) == ""
    empty = cold.model_copy(update={"traffic": traffic.model_copy(update={"blocks": ()})})
    assert why_lost(empty, ("A", "B")) == "no block of slices was completed"
    assert block_ns(empty) == block_ns(start.model_copy(update={"traffic": None})) == 0


def test_what_failed_too_often_has_precedence_over_slow_answers() -> None:
    start = simulated_duet(1)
    cold = start.model_copy(update={"traffic": slices(start, failed=9, completed=1)})
    assert why_lost(cold, ("A", "B")) == ""
    warm = tuple(block.model_copy(update={"phase": "warmup"}) for block in traffic_of(cold).blocks)
    targets = [
        target.model_copy(update={"counts": target.counts.model_copy(update={"outcomes": Outcomes()})})
        for target in traffic_of(cold).targets
    ]
    changed = traffic_of(cold).model_copy(update={"blocks": warm, "targets": tuple(targets)})
    assert "requests to B failed" in why_lost(cold.model_copy(update={"traffic": changed}), ("A", "B"))
