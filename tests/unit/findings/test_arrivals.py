"""Findings about the schedule: arrivals that do not follow it, and none if they do."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.findings import judge
from redline.findings.arrivals import DueSlice, due_by, poisson_fault
from redline.model import (
    Cell,
    FindingKind,
    Grade,
    Histogram,
    Load,
    LoadStage,
    Open,
)
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import MEASURE_NS, simulated_cell, simulated_recording

Raised = dict[FindingKind, Grade]


def opened(**fields: object) -> Cell:
    shape = Open.model_validate({"rate_per_s": 5000, "connections": 64, **fields})
    return simulated_cell(load=Load(name="open", shape=shape, duration_ns=MEASURE_NS))


POISSON = opened(arrivals="poisson")


UNIFORM = opened(arrivals="uniform")


REPLAYED = opened(arrivals="replayed", rate_per_s=None, replayed_ns=tuple(range(0, MEASURE_NS, 250_000)))


RAMPED = opened(arrivals="poisson", stages=[{"to": 20_000, "over_ns": MEASURE_NS // 2}])


STEPPED = opened(arrivals="uniform", stages=[{"to": 3_000, "over_ns": 0}, {"to": 9_000, "over_ns": MEASURE_NS}])


def raised(cell: Cell, behaviour: Behaviour = GOOD, seed: int = 1) -> Raised:
    return {finding.kind: finding.grade for finding in judge(cell, simulated_recording(cell, behaviour, seed=seed))}


@pytest.mark.parametrize("cell", [POISSON, UNIFORM, RAMPED, STEPPED], ids=["poisson", "uniform", "ramped", "stepped"])
@pytest.mark.parametrize("seed", range(10))
def test_a_schedule_that_is_kept_raises_nothing(cell: Cell, seed: int) -> None:
    assert raised(cell, GOOD, seed) == {}


@pytest.mark.parametrize("cell", [POISSON, UNIFORM, RAMPED, STEPPED], ids=["poisson", "uniform", "ramped", "stepped"])
@pytest.mark.parametrize("change", [{"offered": 0.9}, {"offered": 1.1}, {"clumps": 0.5}], ids=str)
def test_a_schedule_that_is_not_kept_is_a_fault_of_the_engine(cell: Cell, change: dict[str, float]) -> None:
    assert raised(cell, replace(GOOD, **change))["arrivals"] is Grade.INVALID  # type: ignore[arg-type]


def test_poisson_arrivals_that_are_too_even_are_no_poisson_arrivals() -> None:
    (found,) = judge(POISSON, simulated_recording(POISSON, replace(GOOD, even=True)))
    assert found.kind == "arrivals"
    assert "too evenly" in found.message


def test_a_load_whose_window_is_not_known_to_its_schedule_is_not_judged_by_it() -> None:
    counted = UNIFORM.model_copy(update={"load": UNIFORM.load.model_copy(update={"count": 4000})})
    assert "arrivals" not in raised(counted, replace(GOOD, offered=0.8))
    cut = replace(GOOD, ended="interrupted", measured=0.7, offered=0.8)
    assert "arrivals" not in raised(UNIFORM, cut)


def test_what_a_stall_moves_over_the_end_of_an_interval_is_no_fault_of_the_schedule() -> None:
    recording = simulated_recording(UNIFORM)
    assert recording.traffic is not None
    intervals, stall_ns = list(recording.traffic.intervals), 60_000_000
    at = next(i for i, one in enumerate(intervals) if one.phase == "measure") + 3
    moved = 5000 * stall_ns // 10**9
    for index, more in ((at, -moved), (at + 1, moved)):
        counts = intervals[index].counts
        intervals[index] = intervals[index].model_copy(
            update={"counts": counts.model_copy(update={"due": counts.due + more})}
        )
    blamed = recording.model_copy(
        update={"traffic": recording.traffic.model_copy(update={"intervals": tuple(intervals)})}
    )
    assert "arrivals" in {finding.kind for finding in judge(UNIFORM, blamed)}
    late = Histogram.of(np.linspace(1_000, stall_ns, 400))
    intervals[at + 1] = intervals[at + 1].model_copy(update={"lateness": late})
    excused = recording.model_copy(
        update={"traffic": recording.traffic.model_copy(update={"intervals": tuple(intervals)})}
    )
    assert "arrivals" not in {finding.kind for finding in judge(UNIFORM, excused)}


def test_a_stall_of_several_intervals_is_no_fault_of_the_schedule() -> None:
    """Requests due while the engine stood still are taken up, and counted, in the interval in which it continues."""
    recording = simulated_recording(UNIFORM)
    assert recording.traffic is not None
    intervals = list(recording.traffic.intervals)
    at = next(i for i, one in enumerate(intervals) if one.phase == "measure") + 2
    stall, resumed = intervals[at : at + 3], intervals[at + 3]
    for index, one in enumerate(stall, at):
        counts = one.counts.model_copy(update={"due": 0})
        intervals[index] = one.model_copy(update={"counts": counts, "lateness": Histogram()})
    due = resumed.counts.due + sum(one.counts.due for one in stall)
    late = Histogram.of(np.linspace(1_000, resumed.start_ns - stall[0].start_ns, due))
    counts = resumed.counts.model_copy(update={"due": due})
    intervals[at + 3] = resumed.model_copy(update={"counts": counts, "lateness": late})
    traffic = recording.traffic.model_copy(update={"intervals": tuple(intervals)})
    found = judge(UNIFORM, recording.model_copy(update={"traffic": traffic}))
    assert "arrivals" not in {finding.kind for finding in found}


def test_good_poisson_arrivals_are_seldom_blamed() -> None:
    """At most a few in 10,000, here of 400; the study behind the figure had 24,000, of which one was blamed."""
    rng = np.random.default_rng(2)
    faults = 0
    for _ in range(400):
        counts = rng.poisson(50, 10)
        faults += bool(poisson_fault(int(counts.sum()), 500, [DueSlice(int(count), 50.0, 0.0) for count in counts]))
    assert faults <= 1


@given(st.lists(st.tuples(st.floats(0, 1e5), st.integers(0, 10**9)), max_size=4), st.integers(0, 10**9))
def test_what_is_due_by_a_time_never_falls_and_is_the_area_under_the_rate(
    stages: list[tuple[float, int]], ns: int
) -> None:
    shape = Open(rate_per_s=100, connections=1, stages=tuple(LoadStage(to=to, over_ns=over) for to, over in stages))
    assert 0 <= due_by(shape, ns) <= due_by(shape, ns + 1_000)
    most = max([100.0, *(to for to, _ in stages)])
    assert due_by(shape, ns) <= most * ns / 1e9 * (1 + 1e-9)


def test_what_is_due_of_replayed_times_and_of_a_ramp() -> None:
    shape = REPLAYED.load.shape
    assert isinstance(shape, Open)
    assert [due_by(shape, ns) for ns in (0, 1, 250_000, 250_001)] == [0, 1, 1, 2]
    ramp = Open(rate_per_s=0, connections=1, stages=(LoadStage(to=100, over_ns=10**9),))
    assert due_by(ramp, 10**9) == pytest.approx(50)
    assert due_by(ramp, 2 * 10**9) == pytest.approx(150)


@pytest.mark.parametrize(
    ("lateness_ns", "grade"), [(3_000, None), (500_000, None), (1_200_000, Grade.NOTE), (12_000_000, Grade.WARN)]
)
def test_lateness_that_differs_sends_in_bunches(lateness_ns: float, grade: Grade | None) -> None:
    assert raised(UNIFORM, replace(GOOD, lateness_ns=lateness_ns)).get("bunched-sends") is grade
