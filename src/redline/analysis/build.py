"""Run -> Report: pure, and the same run gives the same report. A run that was cut short gives one of what is there."""

from redline.analysis.capacity import with_stage
from redline.analysis.cells import (
    agreed_tls,
    objective_results,
    percentiles,
    summed,
    timeline,
    told_by_servers,
    too_few,
    trial_report,
)
from redline.analysis.compare import compare_with_baseline, is_baseline
from redline.analysis.effects import effects
from redline.analysis.judged import JudgedCell, judge_run
from redline.analysis.layers import waterfalls
from redline.analysis.other_times import other_times
from redline.analysis.precision import precision
from redline.analysis.ranking import rankings
from redline.model import CellReport, Estimate, Histogram, Metric, Report, Run, RunReport, Suite
from redline.stats import SHARES, enough_beyond, estimate, sample_of, tells
from redline.suite.load_text import load_text


def build_report(run: Run) -> Report:
    """Everything that is shown of a run."""
    plan = run.manifest.plan
    judged = judge_run(run)
    cells = tuple(_cell_report(one, plan.suite) for one in judged.values())
    comparisons = compare_with_baseline(judged, plan.suite)
    return Report(
        run=_run_report(run),
        environment=run.manifest.environment,
        cells=cells,
        comparisons=comparisons,
        layers=waterfalls(judged, plan, comparisons),
        effects=effects(judged, plan.suite, comparisons),
        rankings=rankings(judged, cells, plan.suite),
        skipped=plan.skipped,
    )


def _run_report(run: Run) -> RunReport:
    manifest = run.manifest
    suite = manifest.plan.suite
    return RunReport(
        name=manifest.name,
        suite=suite.name,
        about=with_stage(suite.about, run),
        started_unix_ns=manifest.created_unix_ns,
        command=manifest.command,
        seed=suite.seed,
        complete=run.complete,
        trials_done=len(run.recordings),
        trials_planned=len(run.wanted),
        threshold=suite.threshold,
        suite_text=manifest.suite_text,
        precision=precision(run),
    )


def _cell_report(judged: JudgedCell, suite: Suite) -> CellReport:
    cell = judged.cell
    used = [recording.traffic for recording in judged.used if recording.traffic]
    counts = summed([traffic.counts for traffic in used])
    response = Histogram.merged(traffic.response for traffic in used)
    return CellReport(
        cell_id=cell.id,
        slug=cell.slug,
        server=cell.variant.slug,
        build=told_by_servers(judged, "build"),
        runtime_version=told_by_servers(judged, "runtime_version"),
        scenario=cell.scenario.name,
        load=cell.load.name,
        load_text=load_text(cell.load),
        role=cell.role,
        is_baseline=is_baseline(cell, suite),
        valid=judged.valid,
        trials_planned=judged.planned,
        trials=tuple(trial_report(cell, trial) for trial in judged.trials),
        estimates=_estimates(judged, response.count),
        counts=counts,
        response=response,
        response_percentiles=percentiles(response),
        service_percentiles=percentiles(Histogram.merged(traffic.service for traffic in used)),
        too_few=too_few(response),
        other_times=other_times(used, cell.scenario.clock_resolution_ns),
        tls=agreed_tls(judged),
        timeline=timeline(judged.used),
        findings=judged.findings,
        objectives=objective_results(judged, suite.objectives, response),
    )


def _estimates(judged: JudgedCell, count: int) -> dict[Metric, Estimate]:
    """Every metric that the usable trials tell; a percentile only when enough requests lie beyond it."""
    estimates = {}
    for metric in Metric:
        told = [recording for recording in judged.used if tells(recording, metric)]
        if told and (metric not in SHARES or enough_beyond(count, SHARES[metric])):
            estimates[metric] = estimate(sample_of(told, metric), metric)
    return estimates
