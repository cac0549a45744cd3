"""What the requests of earlier duets changed in the same start, counted by hand on servers that slow down by writes."""

import math

import pytest

from redline.findings.inherited import Inherited, inherited
from redline.findings.served import growths, served
from redline.findings.starts import traffic_of
from redline.model import DuetRecording, Run
from tests.fakes.growing import Growing, growing_duet
from tests.unit.findings.test_growth import MIX, READ, STEEP, run_of

SLOWER = growing_duet(1, (Growing(1.0, STEEP), Growing(2.0, STEEP)))
"""Its second server is half as fast, and serves half as many requests."""
READS = growing_duet(2, (Growing(1.0), Growing(0.9)))


def only(run: Run) -> Inherited:
    (found,) = inherited(run).values()
    return found


def answers(start: DuetRecording, *places: int) -> int:
    slices = [slice_ for block in traffic_of(start).blocks for slice_ in block.slices if slice_.target in places]
    return sum(slice_.completed + slice_.failed for slice_ in slices)


def cost_ns(start: DuetRecording, place: int, *, by_cpu: bool = True) -> float:
    blocks = [block for block in traffic_of(start).blocks if block.phase == "measure"]
    own = [slice_ for block in blocks for slice_ in block.slices if slice_.target == place]
    spent = sum((slice_.cpu_ns[place] or 0) if by_cpu else slice_.measured_ns for slice_ in own)
    return spent / sum(slice_.completed if by_cpu else slice_.measured for slice_ in own)


def expected_bias(mix: DuetRecording, reads: DuetRecording, *, by_cpu: bool = True) -> float:
    """A write makes a read dearer by what a request of the mix grew by, of which 1/4 write and 3/4 are such reads."""
    lines = [growths([mix], served([mix]), places) for places in ((0, 2), (1,))]
    per_request = max(line.any.per_request for line in lines if line.any is not None)
    apart = abs(answers(mix, 0, 2) - answers(mix, 1)) / 4
    return math.log1p(per_request / (3 / 4) / (1 / 4) * apart / cost_ns(reads, 1, by_cpu=by_cpu))


def test_writes_are_a_share_of_what_each_process_served_before() -> None:
    run = run_of(SLOWER, READS)
    cells = run.manifest.plan.cells
    ((ids, found),) = inherited(run).items()
    assert [cells[id_].scenario.name for id_ in ids] == ["list", "list"]
    assert [cells[id_].variant.slug for id_ in ids] == ["B", "A"]
    assert found.scenario == "mix"
    assert found.writes == pytest.approx((answers(SLOWER, 0, 2) / 4, answers(SLOWER, 1) / 4))
    assert found.bias == pytest.approx(expected_bias(SLOWER, READS))
    assert found.bias > 0


def test_it_is_said_with_the_writes_of_both() -> None:
    assert Inherited("mix", (4005.6, 5750.7), 0.1).said(("A", "B")) == (
        "mix had changed the servers before: A by 4,006 writes, B by 5,751"
    )


def test_failed_requests_may_have_written_too() -> None:
    failing = [
        block.with_slices(slice_.model_copy(update={"failed": 10}) for slice_ in block.slices)
        for block in traffic_of(SLOWER).blocks
    ]
    mix = SLOWER.with_blocks(failing)
    assert only(run_of(mix, READS)).writes == pytest.approx((answers(mix, 0, 2) / 4, answers(mix, 1) / 4))


def test_without_cpu_time_the_wall_time_of_a_request_is_taken() -> None:
    mix = growing_duet(1, (Growing(1.0, STEEP), Growing(2.0, STEEP)), cpu=False)
    assert only(run_of(mix, READS)).bias == pytest.approx(expected_bias(mix, READS, by_cpu=False))


def test_cpu_times_that_are_not_known_of_the_reads_leave_them_alone() -> None:
    blind = growing_duet(2, (Growing(1.0), Growing(0.9)), cpu=False)
    assert inherited(run_of(SLOWER, blind)) == {}


def test_what_comes_later_or_in_another_start_was_not_inherited() -> None:
    run = run_of(SLOWER, READS)
    mix, reads = run.duets
    swapped = (mix.model_copy(update={"position": 1}), reads.model_copy(update={"position": 0}))
    assert inherited(run.model_copy(update={"duets": swapped})) == {}
    apart = (mix, reads.model_copy(update={"round": 1}))
    assert inherited(run.model_copy(update={"duets": apart})) == {}


def test_a_mix_that_does_not_write_or_has_no_such_request_changes_nothing() -> None:
    run = run_of(SLOWER, READS)

    def with_mix(**changed: object) -> Run:
        plan = run.manifest.plan
        cells = {
            id_: cell.model_copy(update={"scenario": cell.scenario.model_copy(update=changed)})
            if cell.scenario.name == "mix"
            else cell
            for id_, cell in plan.cells.items()
        }
        manifest = run.manifest.with_plan(plan.model_copy(update={"cells": cells}))
        return run.model_copy(update={"manifest": manifest})

    assert inherited(with_mix(others=())) == {}
    elsewhere = READ.model_copy(update={"path": "/other", "weight": 3})
    assert inherited(with_mix(request=elsewhere)) == {}
    assert len(inherited(with_mix(request=READ.model_copy(update={"name": "rows", "weight": 3})))) == 1


def test_starts_that_failed_are_left_out() -> None:
    run = run_of(SLOWER, READS)
    mix, reads = run.duets
    lost = reads.model_copy(update={"traffic": None})
    assert inherited(run.model_copy(update={"duets": (mix, lost)})) == {}
    assert inherited(run.model_copy(update={"duets": (mix.model_copy(update={"traffic": None}), reads)})) == {}
    assert inherited(run.model_copy(update={"duets": (reads,)})) == {}, "only duets of the same servers tell"


def test_a_steep_line_of_either_server_counts() -> None:
    """The baseline alone gets slower: the line is its own."""
    mix = growing_duet(1, (Growing(1.0, STEEP), Growing(2.0)))
    assert only(run_of(mix, READS)).bias == pytest.approx(expected_bias(mix, READS))
    flat = growing_duet(1, (Growing(1.0), Growing(2.0)))
    assert inherited(run_of(flat, READS)) == {}


def test_several_starts_count_by_their_means() -> None:
    one = run_of(SLOWER, READS)
    mix, reads = one.duets
    again = growing_duet(3, (Growing(1.0, STEEP), Growing(1.0, STEEP)))
    second = again.model_copy(update={"cell_ids": mix.cell_ids, "round": 1, "position": 2})
    later = reads.model_copy(update={"round": 1, "position": 3})
    found = only(one.model_copy(update={"duets": (mix, reads, second, later)}))
    means = [(answers(mix, *places) + answers(second, *places)) / 8 for places in ((0, 2), (1,))]
    assert found.writes == pytest.approx(means)


def test_a_duet_that_writes_and_grows_inherits_as_well() -> None:
    run = run_of(SLOWER, READS)
    plan = run.manifest.plan
    both = MIX.model_copy(update={"name": "list"})
    cells = {
        id_: cell.model_copy(update={"scenario": both}) if cell.scenario.name == "list" else cell
        for id_, cell in plan.cells.items()
    }
    manifest = run.manifest.with_plan(plan.model_copy(update={"cells": cells}))
    assert inherited(run.model_copy(update={"manifest": manifest})) == {}, "its own writes make it no dearer"
    mix, _ = run.duets
    grows = mix.model_copy(update={"cell_ids": run.duets[1].cell_ids, "position": 1})
    found = inherited(run.model_copy(update={"manifest": manifest, "duets": (mix, grows)}))
    assert [each.scenario for each in found.values()] == ["mix"]
