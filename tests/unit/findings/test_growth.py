"""Servers that get slower as they serve: said with a number, and compared after equal counts."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redline.analysis.duet import Duet, duets_of
from redline.findings import judge
from redline.findings.growth import _because, _counts, explains, growth_of
from redline.findings.served import growths, processes, served
from redline.model import Cell, DuetRecording, Finding, Grade, Load, Metric, Open, Request, Run, Scenario, Verdict
from redline.model.duet import CpuOwner
from redline.stats import Trial
from redline.stats.growth import LEAST_GROWTH, CostGrowth, ServedCosts, growth
from tests.fakes.behaviour import GOOD
from tests.fakes.compared import ComparedStarts, Cost, compared_run, compared_starts
from tests.fakes.duets import simulated_duet
from tests.fakes.growing import Growing, growing_duet
from tests.fakes.plugins import FACTS
from tests.fakes.recordings import simulated_cell, simulated_recording

KIND = "slows-as-it-serves"
STEEP = 1e-6
"""30% more over the 300,000 requests of a start that are measured."""


def judged(seed: int, a: Growing, b: Growing, *, starts: int = 1, **kind: object) -> ComparedStarts:
    made = [growing_duet(100 * seed + start, (a, b), **kind) for start in range(starts)]  # type: ignore[arg-type]
    return compared_starts(made, detects=True)


@pytest.mark.parametrize("balanced", [True, False], ids=["shared slices", "as older versions measured"])
@pytest.mark.parametrize("seed", range(3))
def test_equal_servers_that_grow_do_not_differ(seed: int, *, balanced: bool) -> None:
    found = judged(seed, Growing(1.0, STEEP), Growing(1.0, STEEP), balanced=balanced)
    assert found.ratio.low is not None
    assert found.ratio.high is not None
    assert found.ratio.low < 1 < found.ratio.high
    assert found.said("cold") == []
    (message,) = found.said(KIND)
    assert message.startswith("A gets slower as it serves: +")
    assert ". B gets slower as it serves: +" in message


@pytest.mark.parametrize("seed", range(3))
def test_the_dearer_of_two_servers_that_grow_is_dearer(seed: int) -> None:
    """Its cost is that of the other and a tenth of what that was at first, after any number of requests."""
    found = judged(seed, Growing(1.0, STEEP), Growing(1.1, STEEP))
    assert found.verdict is Verdict.SLOWER
    assert found.ratio.value == pytest.approx(1 + 0.1 / 1.25, abs=0.015)


@pytest.mark.parametrize("seed", range(3))
def test_where_one_served_twice_as_much_the_sign_is_right_or_there_is_none(seed: int) -> None:
    found = judged(seed, Growing(1.0, STEEP), Growing(1.1, STEEP), balanced=False)
    assert found.ratio.value > 1
    assert found.verdict in (Verdict.SLOWER, Verdict.INCONCLUSIVE)
    assert "A had served " in found.said(KIND)[0]


def test_the_growth_has_its_planted_number() -> None:
    counts = served([made := growing_duet(0, (Growing(1.0, STEEP), Growing(1.0)))])
    first, second = growths([made], counts, (0, 2)), growths([made], counts, (1,))
    assert first.cpu is not None
    assert first.cpu.per_request == pytest.approx(20_000 * STEEP, rel=0.1)  # a request costs 20 µs at first
    assert first.cpu.first == pytest.approx(20_000, rel=0.05)
    assert second.cpu is None


def test_only_the_one_that_grows_is_named() -> None:
    (message,) = judged(1, Growing(1.0), Growing(1.0, STEEP)).said(KIND)
    assert message.startswith("B gets slower as it serves: +")
    assert "A gets" not in message


@pytest.mark.parametrize("alike", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_steady_servers_do_not_grow(seed: int, alike: float) -> None:
    found = judged(seed, Growing(), Growing(1.05), alike=alike)
    assert (found.said(KIND), found.unsettled) == ([], "")


def test_servers_that_get_faster_are_not_warm_and_do_not_grow() -> None:
    cold = [simulated_duet(n, warmup=30, cold=lambda block, _: 0.4 * math.exp(-block / 40)) for n in range(3)]
    found = compared_starts(cold, detects=True)
    assert found.said(KIND) == []
    assert len(found.said("cold")) == 1


def test_without_cpu_time_it_is_wall_time_that_grows() -> None:
    found = judged(1, Growing(1.0, STEEP), Growing(1.0, STEEP), cpu=False)
    assert found.metric is Metric.THROUGHPUT
    assert " of time per 1,000 requests, " in found.said(KIND)[0]
    assert found.verdict not in (Verdict.FASTER, Verdict.SLOWER)


def test_servers_that_are_started_anew_grow_again_in_each_start() -> None:
    found = judged(1, Growing(1.0, STEEP), Growing(1.1, STEEP), starts=4, running=False)
    assert found.verdict is Verdict.SLOWER
    assert len(found.said(KIND)) == 1


def test_a_running_server_serves_on_from_start_to_start() -> None:
    made = [growing_duet(n, (Growing(), Growing()), blocks=4, warmup=0) for n in range(2)]
    mixed = [start.model_copy(update={"servers": (None, FACTS, None)}) for start in made]
    second = served(mixed)[1]
    first_of = {
        slice_.target: at for slice_, at in zip(reversed(slices(mixed[1])), reversed(flat(second)), strict=True)
    }
    assert min(first_of[0], first_of[2]) > 10_000
    assert first_of[1] < 10_000


def slices(start: DuetRecording) -> list:  # type: ignore[type-arg]
    assert start.traffic is not None
    return [slice_ for block in start.traffic.blocks for slice_ in block.slices]


def flat(counts: list[list[float]]) -> list[float]:
    return [at for block in counts for at in block]


def test_targets_of_one_process_serve_together() -> None:
    start = growing_duet(0, (Growing(), Growing()), blocks=4, warmup=0)
    assert processes(start) == (0, 1, 0)
    assert processes(start.model_copy(update={"servers": (FACTS, FACTS, FACTS)})) == (0, 1, 2)
    owners = (CpuOwner(processes=("python (7)",)),) * 3
    assert processes(start.model_copy(update={"owners": owners})) == (0, 0, 0)


def test_slices_are_shared_fairly_by_a_server_and_its_copy() -> None:
    start = growing_duet(0, (Growing(), Growing()), blocks=4, warmup=0)
    by_target = [sum(slice_.target == target for slice_ in slices(start)) for target in range(3)]
    assert by_target == [4, 8, 4]


def test_what_may_be_chance_or_is_small_is_no_growth() -> None:
    at = np.linspace(0, 1e5, 10)

    def rises(by: float) -> ServedCosts:
        return ServedCosts(at, 1000 * (1 + by * at / 1e5))

    assert growth([rises(LEAST_GROWTH / 2)], 0.001) is None
    found = growth([rises(0.3)], 0.001)
    assert found is not None
    assert found.share == pytest.approx(0.3)
    assert found.requests == 100_000
    assert growth([ServedCosts(at, 1000 * np.exp(0.1 * np.sin(np.arange(10) * 2.0)))], 0.001) is None
    assert growth([rises(-0.3)], 0.001) is None
    assert growth([], 0.001) is None


def test_starts_that_rise_and_fall_are_a_machine_that_drifts() -> None:
    at = np.linspace(0, 1e5, 10)
    drifts = [ServedCosts(at, 1000 * (1 + by * at / 1e5)) for by in (0.3, -0.3, 0.3, -0.3)]
    assert growth(drifts, 0.001) is None


def test_the_line_is_not_extended_below_a_tenth_of_the_cost() -> None:
    at = np.linspace(1e5, 2e5, 10)
    found = growth([ServedCosts(at, at / 100 - 900)], 0.001)
    assert found is not None
    assert float(found.at(np.array([0.0]))[0]) == pytest.approx(0.1 * 600, rel=0.01)


CLOSED = simulated_cell(load=Load(name="l", shape=simulated_cell().load.shape, duration_ns=2_000_000_000))


def said(cell: Cell, **behaviour: float) -> dict[str, Finding]:
    found = judge(cell, simulated_recording(cell, replace(GOOD, **behaviour)))  # type: ignore[arg-type]
    return {finding.kind: finding for finding in found}


def test_a_trial_whose_requests_get_dearer_says_so_once_and_with_a_number() -> None:
    """Its CPU time is all of a core, and its rate falls from 11,500 to 8,500 a second."""
    found = said(CLOSED, rate_per_s=10_000.0, trend=-0.3)
    assert KIND in found
    assert found[KIND].grade is Grade.WARN
    assert found[KIND].message.startswith("It gets slower as it serves: +1.")
    assert " µs of CPU per 1,000 requests, 3" in found[KIND].message
    assert "unsteady" not in found


def test_a_trial_that_gets_faster_is_unsteady_and_does_not_grow() -> None:
    found = said(CLOSED, trend=0.3)
    assert KIND not in found
    assert "unsteady" in found


@pytest.mark.parametrize("behaviour", [{}, {"noise": 0.03}])
def test_a_steady_trial_does_not_grow(behaviour: dict[str, float]) -> None:
    assert KIND not in said(CLOSED, **behaviour)


def test_latency_that_rises_at_a_constant_cost_is_no_growth() -> None:
    shape = Open(rate_per_s=2000, connections=64, arrivals="uniform")
    cell = simulated_cell(load=Load(name="l", shape=shape, duration_ns=2_000_000_000))
    found = said(cell, trend=0.8)
    assert KIND not in found
    assert "unsteady" in found


def test_more_time_to_warm_up_is_not_the_advice_for_what_grows() -> None:
    cell = CLOSED.model_copy(update={"warmup_detect": True})
    found = said(cell, trend=-0.3)
    assert KIND in found
    assert not {"never-steady", "slowing-down"} & set(found)


READ, WRITE = Request(path="/rows", name="list"), Request(method="POST", path="/rows", name="add")
MIX = Scenario(name="mix", request=READ.model_copy(update={"weight": 3}), others=(WRITE,))


def test_requests_that_write_are_named() -> None:
    cell = CLOSED.model_copy(update={"scenario": MIX})
    assert MIX.writes == ("add",)
    assert "add may write what makes later ones dearer." in said(cell, trend=-0.3)[KIND].message
    made = growing_duet(1, (Growing(1.0, STEEP), Growing(1.0, STEEP)))
    (message,) = [f.message for f in Duet((made,), detects=True, writes=MIX.writes).findings if f.kind == KIND]
    assert "The requests seem to change it: add may write what makes later ones dearer." in message


def run_of(mix: DuetRecording, reads: DuetRecording) -> Run:
    """A start whose mix of reads and writes comes first, and then the reads by themselves."""
    run = compared_run({"mix": Cost(), "list": Cost()}, starts=1)
    scenarios = {"mix": MIX, "list": Scenario(name="list", request=READ)}
    cells = {
        ids: cell.model_copy(update={"scenario": scenarios[cell.scenario.name]})
        for ids, cell in run.manifest.plan.cells.items()
    }
    manifest = run.manifest.with_plan(run.manifest.plan.model_copy(update={"cells": cells}))
    made = tuple(
        new.model_copy(update={"cell_ids": old.cell_ids, "round": 0, "position": old.position})
        for old, new in zip(run.duets, (mix, reads), strict=True)
    )
    return run.model_copy(update={"manifest": manifest, "duets": made})


def test_reads_after_a_mix_that_wrote_less_to_one_server_get_no_verdict() -> None:
    """B is half as fast, so its mix wrote half as many rows, and reads of these are cheaper."""
    mix = growing_duet(1, (Growing(1.0, STEEP), Growing(2.0, STEEP)))
    reads = growing_duet(2, (Growing(1.0), Growing(0.9)))
    run = run_of(mix, reads)
    duets = {run.manifest.plan.cells[ids[0]].scenario.name: duet for ids, duet in duets_of(run).items()}
    inherited = duets["list"].inherited
    assert inherited is not None
    assert duets["mix"].inherited is None
    ratio = duets["list"].ratio(Metric.CPU_PER_REQUEST)
    assert ratio is not None
    assert ratio.interval[0] < 0 < ratio.interval[1]
    assert duets["list"].unsettled.startswith("mix had changed the servers before: A by ")
    (message,) = [found.message for found in duets["list"].findings if found.kind == KIND]
    assert message.startswith("Mix had changed the servers before: A by ")


def test_reads_after_a_mix_that_changes_nothing_are_judged() -> None:
    run = run_of(growing_duet(1, (Growing(), Growing(2.0))), growing_duet(2, (Growing(1.0), Growing(0.9))))
    assert all(duet.inherited is None for duet in duets_of(run).values())


@pytest.mark.parametrize(
    ("change", "explained"), [(0.2, True), (0.22, False), (-0.17, True), (-0.18, False), (0.0, True), (-1.0, False)]
)
def test_a_growth_of_the_cost_explains_twice_its_change_of_rates_and_times(change: float, *, explained: bool) -> None:
    """A tenth: from 1 / 1.21 to 1.21, since response times may rise by more than the cost."""
    assert explains(CostGrowth(1.0, 0.1, 0.1, 1000, 1.0), change) is explained
    assert not explains(None, change)


def test_three_requests_that_write_are_named_and_the_others_counted() -> None:
    assert _because(()) == ""
    assert _because("abc") == " The requests seem to change it: a, b, c may write what makes later ones dearer."
    assert ": a, b, c and 2 more may write" in _because("abcde")


@pytest.mark.parametrize(("theirs", "said"), [(1100.0, False), (1101.0, True)])
def test_servers_that_served_a_tenth_more_than_the_other_are_said_with_both_numbers(
    theirs: float, *, said: bool
) -> None:
    ratio = "he ratio is that after equal numbers of requests"
    both = f"A had served 1,000 requests at the end of a start, B {theirs:,.0f}: t{ratio}."
    duet: Any = SimpleNamespace(served=(1000.0, theirs), names=("A", "B"), unsettled="", to_come=0.1)
    assert _counts(duet) == (both if said else f"T{ratio}.")
    duet.unsettled = "it still moves"
    assert f"{ratio}, and still moved: " in _counts(duet)
    duet.to_come = 0.0
    assert _counts(duet) == (both if said else f"T{ratio}.")


@pytest.mark.parametrize(("completed", "known"), [(0.95, True), (0.949, False)])
def test_nothing_is_known_of_the_growth_of_a_server_that_does_not_keep_up(completed: float, *, known: bool) -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, rate_per_s=10_000.0, trend=-0.3))
    traffic = recording.traffic
    assert traffic is not None
    counts = traffic.counts.model_copy(update={"due": 10_000, "completed": round(10_000 * completed)})
    slow = recording.model_copy(update={"traffic": traffic.model_copy(update={"counts": counts})})
    assert (growth_of(Trial(slow)) is not None) is known
