"""The servers of a run that goes on: what is compared after a trial is what the report would say."""

from dataclasses import replace

from redline.analysis import build_report
from redline.analysis.so_far import TrialsSoFar
from redline.findings import judge
from redline.model import Comparison, Metric, Run
from tests.fakes.behaviour import GOOD
from tests.fakes.profiles import profiled
from tests.fakes.recordings import SATURATE, STEADY, simulated_run

SLOWER = replace(GOOD, rate_per_s=GOOD.rate_per_s * 0.8)


def run_of(trials: int = 4) -> Run:
    servers = {"fake.base": GOOD, "fake.slower": SLOWER}
    return simulated_run(servers, trials=trials, loads=(SATURATE, STEADY), baseline="fake.base")


def after_all(run: Run) -> TrialsSoFar:
    so_far = TrialsSoFar(run.manifest.plan)
    for recording in run.recordings:
        so_far.add(run.manifest.plan.cells[recording.cell_id], recording)
    return so_far


def cells_of(run: Run, server: str) -> list[str]:
    return [cell_id for cell_id, cell in run.manifest.plan.cells.items() if cell.variant.slug == server]


def test_after_all_trials_the_ratio_is_that_of_the_report() -> None:
    run = run_of()
    so_far, reported = after_all(run), build_report(run).comparisons
    for cell_id in cells_of(run, "fake.slower"):
        (known,) = so_far.compared(cell_id)
        metric = run.manifest.plan.cells[cell_id].load.primary_metric
        (same,) = [one for one in reported if one.cell_id == cell_id and one.metric is metric]
        assert (known.metric, known.ratio, known.verdict) == (metric, same.ratio, None)


def test_findings_are_those_of_the_trial() -> None:
    run = run_of(trials=1)
    cells, so_far = run.manifest.plan.cells, TrialsSoFar(run.manifest.plan)
    for recording in run.recordings:
        cell = cells[recording.cell_id]
        assert so_far.add(cell, recording) == judge(cell, recording)


def test_after_a_trial_of_a_baseline_the_others_are_compared_with_it() -> None:
    run = run_of()
    so_far = after_all(run)
    of_servers = [so_far.compared(cell_id) for cell_id in cells_of(run, "fake.slower")]
    assert [so_far.compared(cell_id) for cell_id in cells_of(run, "fake.base")] == of_servers
    assert all(len(known) == 1 for known in of_servers)


def test_servers_without_a_baseline_are_not_compared() -> None:
    alone = simulated_run({"fake.base": GOOD}, trials=2)
    so_far = after_all(alone)
    assert {so_far.compared(cell_id) for cell_id in alone.manifest.plan.cells} == {()}


def test_only_rounds_of_both_are_compared() -> None:
    run = run_of()
    (cell_id, *_), plan = cells_of(run, "fake.slower"), run.manifest.plan
    so_far = TrialsSoFar(plan)
    for recording in run.recordings:
        if recording.cell_id == cell_id or recording.round < 2:
            so_far.add(plan.cells[recording.cell_id], recording)
    assert rounds(so_far.compared(cell_id)) == 2


def test_a_trial_that_is_repeated_no_longer_counts() -> None:
    run = run_of()
    (cell_id, *_), so_far = cells_of(run, "fake.slower"), after_all(run)
    (last,) = [trial for trial in run.manifest.plan.trials if trial.cell_id == cell_id and trial.round == 3]
    so_far.forget([last])
    assert rounds(so_far.compared(cell_id)) == 3


def test_a_profiled_trial_counts_for_no_comparison() -> None:
    run = run_of()
    (cell_id, *_), so_far = cells_of(run, "fake.slower"), after_all(run)
    before = so_far.compared(cell_id)
    first = next(recording for recording in run.recordings if recording.cell_id == cell_id)
    so_far.add(run.manifest.plan.cells[cell_id], profiled(first.model_copy(update={"round": 1})))
    so_far.add(run.manifest.plan.cells[cell_id], profiled(first))
    assert so_far.compared(cell_id) == before


def rounds(compared: tuple[Comparison, ...]) -> int:
    (known,) = compared
    assert known.metric is Metric.THROUGHPUT
    assert known.ratio is not None
    return known.ratio.n
