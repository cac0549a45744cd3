"""Build a report from a run. Pure: the same run gives the same report. Runs that were cut short have reports too."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from redline.analysis.across import findings_across
from redline.analysis.capacity import with_stage
from redline.analysis.claims import claim_results
from redline.analysis.compare import compare_with_baseline
from redline.analysis.cpu_by_request import cpu_by_request
from redline.analysis.curves import shares_compared
from redline.analysis.duet import Duet, duets_of, failures_of
from redline.analysis.duet_timelines import duet_timelines
from redline.analysis.effects import effects
from redline.analysis.judging import Judging, judge_in_turn, judged_cells
from redline.analysis.layers import waterfalls
from redline.analysis.levels import sliced_cells
from redline.analysis.lost_starts import lost_starts
from redline.analysis.main_effects import main_effects, next_command
from redline.analysis.own_servers import servers_said
from redline.analysis.precision import precision
from redline.analysis.ranking import rankings
from redline.analysis.resolution import resolutions
from redline.analysis.results import CellResult, Results, judge_run
from redline.analysis.speeds import core_speeds, differing_pairs, pair_speeds
from redline.analysis.unrecorded import unrecorded
from redline.findings import host_mode
from redline.model import (
    CellReport,
    Comparison,
    DuetRecording,
    Effect,
    Finding,
    Plan,
    ProfileReport,
    Recording,
    Report,
    RequestRatio,
    Run,
    RunReport,
    Waterfall,
)
from redline.profiles.profiles import profile_reports
from redline.profiles.why import why_reports

_BY_REQUEST = (0.5, 0.99)
"""The quantiles of ratios by request."""


class Built(NamedTuple):
    """A report, and the judged cells of its run."""

    report: Report
    results: Results


def build_report(run: Run, folder: str | None = "", judging: Judging = judge_in_turn) -> Report:
    """The report of a run. `folder` is where the run is stored, for the commands that the report suggests.

    It is empty if it is not known, and None if the run is not kept. `judging` judges cells: it may share the work.
    """
    return build(run, folder, judging).report


def build(run: Run, folder: str | None = "", judging: Judging = judge_in_turn) -> Built:
    """The report of a run as `build_report` makes it, with its judged cells."""
    plan = run.manifest.plan
    if run.manifest.same is not None:
        report = Report(
            run=_run_report(run, {}), environment=run.manifest.environment, cells=(), comparisons=(), skipped=()
        )
        return Built(report, judge_run(run))
    judged = judged_cells(run, {} if plan.suite.alone else sliced_cells(run), judging)
    results = {cell_id: cell.result for cell_id, cell in judged.items()}
    reports = {cell_id: cell.report for cell_id, cell in judged.items()}
    duets = duets_of(run)
    comparisons = compare_with_baseline(results, plan.suite, duets, failures_of(run))
    layers = waterfalls(results, plan, comparisons)
    steps = () if plan.suite.screened else effects(results, plan.suite, comparisons)
    by_axis = main_effects(results, plan.suite)
    doubts, speeds = resolutions(results, comparisons, plan, folder), core_speeds(results)
    pairs = pair_speeds(run.calibration)
    differing = differing_pairs(results, pairs)
    across = findings_across(results, reports)
    cells = tuple(
        _in_run(
            reports[cell_id],
            cell,
            speeds,
            (*across.get(cell_id, ()), *differing.get(cell_id, ()), *doubts.get(cell_id, ())),
        )
        for cell_id, cell in results.items()
    )
    profiles: tuple[ProfileReport, ...] = ()
    if run.profiles and run.profiled:
        libraries = run.profiles.libraries()
        profiles = profile_reports(run.profiled, run.profiles.stacks, libraries, cells, comparisons)
    report = Report(
        run=_run_report(run, results),
        environment=run.manifest.environment,
        hosts=run.manifest.hosts,
        pairs=pairs,
        cells=cells,
        comparisons=comparisons,
        claims=claim_results(plan, results, cells, comparisons),
        request_ratios=tuple(_request_ratios(duets, plan)),
        cpu_by_request=tuple(cpu_by_request(duets, plan)),
        shares=tuple(shares_compared(results, comparisons, duets, alone=plan.suite.alone)),
        layers=layers,
        effects=steps,
        rankings=rankings(results, cells, plan.suite, comparisons, _of_other_pairs(layers, steps)),
        main_effects=by_axis,
        next_command=next_command(plan.suite, by_axis, run.manifest.command) if plan.suite.screened else "",
        profiles=profiles,
        unprofiled=plan.unprofiled,
        why=why_reports(run, cells, comparisons),
        skipped=plan.skipped,
        lost_starts=lost_starts(run),
        duet_timelines=duet_timelines(duets),
        unrecorded=unrecorded(run),
        unread=(*run.unread, *_unread_recordings(run)),
    )
    return Built(report, results)


def _unread_recordings(run: Run) -> Iterator[str]:
    """Yield why starts and profiled trials cannot be used; findings say it of the trials of cells."""
    stored: list[DuetRecording | Recording] = [*run.duets, *run.profiled, *run.sampled]
    for made in stored:
        if made.failure is not None and made.failure.kind == "unread":
            yield made.failure.message


def _of_other_pairs(layers: Iterable[Waterfall], steps: Iterable[Effect]) -> Iterator[Comparison]:
    """The comparisons of cells that are not each other's baselines."""
    for fall in layers:
        yield from filter(None, (fall.whole.throughput, fall.whole.cpu))
    yield from (step.comparison for step in steps)


def _in_run(
    cell: CellReport, result: CellResult, speeds: Mapping[int, float], doubts: tuple[Finding, ...]
) -> CellReport:
    """The cell with the facts that only the whole run shows."""
    known = [speed for trial in cell.trials if (speed := speeds.get(trial.position)) is not None]
    return cell.in_run(speeds, (*host_mode(result.cell, known), *doubts))


def _run_report(run: Run, results: Mapping[str, CellResult]) -> RunReport:
    manifest = run.manifest
    suite = manifest.plan.suite
    aborted_by = next(filter(None, (duet.aborted_by for duet in run.duets)), "")
    return RunReport(
        kind=manifest.kind,
        alone=suite.alone,
        name=manifest.name,
        suite=suite.name,
        about=with_stage(suite.about, run),
        started_unix_ns=manifest.created_unix_ns,
        command=manifest.command,
        seed=suite.seed,
        complete=run.complete or manifest.same is not None,
        same=manifest.same,
        trials_done=len(run.done),
        trials_planned=len(run.wanted) + len(manifest.plan.profiled) + len(manifest.plan.sampled),
        threshold=suite.threshold,
        suite_text=manifest.suite_text,
        trials_repeated=len(run.repeated),
        trials_moved=run.lost,
        precision=precision(run, results),
        starts=starts_of(run),
        seconds=sum(duet.took_ns for duet in run.duets) / 1e9,
        launch_seconds=sum(duet.launch_ns for duet in run.duets) / 1e9,
        setup_seconds=sum(_setups_ns(run, results)) / 1e9,
        interrupted=not suite.alone
        and not aborted_by
        and manifest.same is None
        and (not run.complete or any(duet.is_interrupted for duet in (*run.duets, *run.sampled))),
        aborted_by=aborted_by,
        servers=servers_said(suite.variants),
    )


def _setups_ns(run: Run, results: Mapping[str, CellResult]) -> Iterator[int]:
    """The times of commands around starts; those of trials without reading their recordings again."""
    yield from (trial.setup_ns for cell in results.values() for trial in cell.trials)
    yield from (made.setup_ns for made in run.profiled)
    yield from (duet.setup_ns for duet in run.duets)


def starts_of(run: Run) -> int:
    """The number of starts of duets; a start may serve several scenarios and loads in turn."""
    cells = run.manifest.plan.cells
    return len({(duet.round, tuple(cells[cell_id].variant.slug for cell_id in duet.cell_ids)) for duet in run.duets})


def _request_ratios(duets: Mapping[tuple[str, str], Duet], plan: Plan) -> Iterator[RequestRatio]:
    """Yield the ratios of every request of a scenario with several, at the median and p99, where starts can tell.

    They describe where a difference comes from, and are no verdicts: a mix has one primary metric.
    """
    for (cell_id, baseline_id), duet in duets.items():
        cell = plan.cells[cell_id]
        labels = cell.scenario.several_labels if duet.failing is None else ()
        for at, label in enumerate(labels):
            for q in _BY_REQUEST:
                if (ratio := duet.of_request(at, q)) is not None:
                    yield RequestRatio(
                        cell_id=cell_id,
                        baseline_id=baseline_id,
                        request=label,
                        quantile=q,
                        ratio=ratio.contrast.ratio,
                    )
