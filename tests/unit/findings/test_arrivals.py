"""Findings about the schedule: arrivals that do not follow it, and none if they do."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.findings import judge
from redline.findings.arrivals import (
    DueSlice,
    _exact_fault,
    _journeys_due,
    _slices,
    bunched_sends,
    due_by,
    poisson_fault,
)
from redline.model import (
    Cell,
    Counts,
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


@pytest.mark.parametrize(
    ("cell", "due", "faulty"),
    [
        (UNIFORM, 10_003, False),
        (UNIFORM, 9_997, False),
        (UNIFORM, 10_004, True),
        (UNIFORM, 9_996, True),
        (POISSON, 10_400, False),
        (POISSON, 10_500, True),
        (POISSON, 9_500, True),
    ],
)
def test_journeys_fall_due_as_often_as_the_schedule_says(cell: Cell, due: int, *, faulty: bool) -> None:
    """Over 2 s at 5,000/s, by two processes: each may round one journey to either side, and so may the window."""
    said = _journeys_due(_shape(cell), _journeys(due))
    assert said is not None
    assert bool(said.value) is faulty
    assert ("10,000" in said.message) is faulty


def test_journeys_whose_rows_were_used_up_or_that_were_not_counted_are_not_judged() -> None:
    assert _journeys_due(_shape(UNIFORM), _journeys(1, used_up=True)) is None
    assert _journeys_due(_shape(UNIFORM), _journeys(None)) is None


def _shape(cell: Cell) -> Open:
    assert isinstance(cell.load.shape, Open)
    return cell.load.shape


def _journeys(due: int | None, *, used_up: bool = False) -> Any:
    made = None if due is None else SimpleNamespace(due=due, rows_used_up=used_up)
    window = {"measure_start_ns": 3 * 10**9, "measure_end_ns": 5 * 10**9}
    return SimpleNamespace(journeys=made, engine=SimpleNamespace(processes=2), **window)


@pytest.mark.parametrize(
    ("due", "slices", "said"),
    [
        (102, (), ""),
        (98, (), ""),
        (103, (), "103 requests fell due where 100 should have"),
        (97, (), "97 requests fell due where 100 should have"),
        (100, (DueSlice(12, 10.0, 0.0), DueSlice(8, 10.0, 0.0)), ""),
        (100, (DueSlice(10, 10.0, 0.0), DueSlice(13, 10.0, 0.0)), "in one interval 13 requests fell due where 10"),
        (100, (DueSlice(13, 10.0, 1.0),), ""),
    ],
)
def test_an_exact_schedule_may_be_off_by_its_rounding(due: int, slices: tuple[DueSlice, ...], said: str) -> None:
    found = _exact_fault(due, 100.0, slices, 2)
    assert found.startswith(said)
    assert bool(found) is bool(said)


@pytest.mark.parametrize(
    ("counts", "expected", "shifted", "said"),
    [
        ([125, 75, 125, 75, 125], 100.0, 0.0, "in clumps: the index of dispersion over 5 intervals is 6.2"),
        ([124, 76, 124, 76, 124], 100.0, 0.0, ""),
        ([125, 75, 125, 75, 125], 100.0, 1.0, ""),
        ([200, 10, 200, 10], 100.0, 0.0, ""),
        ([80, 0, 80, 0, 80], 20.0, 0.0, "in clumps"),
        ([80, 0, 80, 0, 80], 19.9, 0.0, ""),
        ([101, 99, 100, 100, 100], 100.0, 0.0, "too evenly: the index of dispersion over 5 intervals is 0.004"),
        ([101, 99, 101, 99, 100], 100.0, 0.0, ""),
        ([101, 99, 100, 100, 100], 100.0, 2.0, "too evenly: the index of dispersion over 5 intervals is 0.004"),
    ],
)
def test_poisson_counts_of_five_intervals_scatter_as_their_mean(
    counts: list[int], expected: float, shifted: float, said: str
) -> None:
    """Chi-square with five degrees of freedom is below 0.0325 or above 30.86 once in 100,000."""
    found = poisson_fault(500, 500.0, [DueSlice(count, expected, shifted) for count in counts])
    assert said in found
    assert bool(found) is bool(said)


def test_a_count_is_off_only_beyond_what_lateness_explains() -> None:
    assert [DueSlice(due, 10.0, 2.0).off for due in (7, 8, 10, 12, 13)] == [1, 0, 0, 0, 1]


def test_what_later_intervals_took_up_late_may_be_due_in_each_before_them() -> None:
    """At 1,000/s: the third interval reaches back to 1.5 s, and the drain to 2.9 s."""
    shape = Open(rate_per_s=1000, connections=1)
    second = 10**9
    spans = [(0, 1), (1, 2), (2, 2), (2, 3)]
    intervals: list[Any] = [_interval("measure", a * second, b * second) for a, b in spans]
    intervals.append(_interval("drain", 3 * second, 4 * second))
    traffic: Any = SimpleNamespace(measure_start_ns=0, measure_end_ns=3 * second)
    late_ns = [0, 0, 0, second // 2, second // 10]
    found = _slices(shape, traffic, intervals, late_ns)
    assert [slice_.expected for slice_ in found] == [1000, 1000, 1000]
    assert [slice_.shifted for slice_ in found] == pytest.approx([0, 500, 600])
    assert [slice_.due for slice_ in found] == [1, 2, 3]


def _interval(phase: str, start_ns: int, end_ns: int) -> Any:
    counts = SimpleNamespace(due=end_ns // 10**9)
    own = {"start_ns": start_ns, "end_ns": end_ns, "lasts_ns": end_ns - start_ns}
    return SimpleNamespace(phase=phase, counts=counts, **own)


@pytest.mark.parametrize(("late_ms", "grade"), [(2.0, None), (2.1, Grade.NOTE), (20.0, Grade.NOTE), (20.1, Grade.WARN)])
def test_a_bunch_is_what_falls_due_while_lateness_differs(late_ms: float, grade: Grade | None) -> None:
    """At 5,000/s, requests between its p10 of 10 ms and a p90 that is later by so much."""
    lateness = SimpleNamespace(quantiles_ns=lambda _: (10_000_000, 10_000_000 + round(late_ms * 1e6)))
    traffic: Any = SimpleNamespace(counts=Counts(due=20_000), seconds=4.0, lateness=lateness)
    assert bunched_sends.function is not None
    said: Any = bunched_sends.function(UNIFORM, traffic)
    if grade is not None:
        assert said.value == pytest.approx(5 * late_ms)
    assert (said and bunched_sends.grade(round(said.value, 6))) is grade
