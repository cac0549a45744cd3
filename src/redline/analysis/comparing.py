"""Compare two runs, or a run with its own baselines, and refuse what would say nothing. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from redline.analysis.build import Built, build
from redline.analysis.compare import compare_runs, not_run
from redline.analysis.environments import grave
from redline.analysis.judging import Judging, judge_in_turn
from redline.analysis.ratios_of_runs import compare_ratios
from redline.errors import UsageError
from redline.model import Finding, Report, Run
from redline.model.compared import CompareResult


@dataclass(frozen=True)
class ComparedRun:
    """A run, and what judges its cells."""

    run: Run
    judging: Judging = judge_in_turn

    def built(self) -> Built:
        """Its report and its judged cells."""
        return build(self.run, judging=self.judging)


def compare_within(compared: ComparedRun) -> CompareResult:
    """Compare the variants of a run with their baselines. Raises UsageError if it has none."""
    run = compared.run
    suite = run.manifest.plan.suite
    if not any(suite.baseline_of(variant.slug) for variant in suite.variants):
        raise UsageError(
            f"run {run.manifest.name} has no baseline to compare with",
            hint="name it in the suite (`baseline: rust.hyper`), or compare two runs: redline compare RUN_A RUN_B",
        )
    built = compared.built()
    name, made = run.manifest.name, built.report
    return CompareResult(
        base=name,
        other=name,
        comparisons=made.comparisons,
        unmatched=not_run(run.manifest.plan),
        environment_differs=(),
        findings=_findings(made),
        same="" if made.run.same is None else made.run.same.text,
        notices=_notices(built),
    )


def compare_two(first: ComparedRun, second: ComparedRun, *, anyway: bool) -> CompareResult:
    """Compare the cells that two runs have in common, the second over the first.

    Runs with duets alone are compared by their ratios to the same baseline. Raises UsageError where that says nothing;
    also if their environments differ gravely, unless `anyway`.
    """
    base, other = first.run, second.run
    between = f"{base.manifest.name} and {other.manifest.name}"
    if same := next((run.manifest.same for run in (base, other) if run.manifest.same is not None), None):
        hint = "there is no ratio in it: compare runs that measured"
        raise UsageError(f"{between}: in one of them nothing was measured, since {same.text}", hint=hint)
    alone = [run for run in (base, other) if not run.manifest.plan.trials]
    if len(alone) == 1:
        raise UsageError(
            f"{alone[0].manifest.name} has duets alone, which give ratios and no levels to compare with another run",
            hint="compare it with another run that has duets, against the same baseline",
        )
    differing = grave(base.manifest.environment, other.manifest.environment)
    if differing and not anyway:
        raise UsageError(
            f"{between} come from environments that differ gravely: {'; '.join(map(str, differing))}",
            hint="measure both in one run, or both here and now; --anyway compares them nevertheless",
        )
    theirs, ours = first.built(), second.built()
    compared = compare_ratios(base, other) if alone else compare_runs(base, other, theirs.results, ours.results)
    if not compared.comparisons:
        raise UsageError(
            f"{between} have no cell in common",
            hint="cells match when server, options, scenario, load, warm-up and timeout are the same; those of duets "
            "by the names of server, scenario and load",
        )
    of_base = _findings(theirs.report)
    return CompareResult(
        base=base.manifest.name,
        other=other.manifest.name,
        comparisons=compared.comparisons,
        unmatched=compared.unmatched,
        environment_differs=tuple(map(str, compared.environment_differs)),
        environment_grave=tuple(map(str, differing)),
        by_ratios=bool(alone),
        findings=(*of_base, *_findings(ours.report)),
        of_base=len(of_base),
        notices=_notices(theirs, ours),
    )


def lacks(report: Report) -> Iterator[str]:
    """Yield what a run lacks of what was planned, or why not all of it is shown."""
    if report.run.aborted_by:
        yield f"it was aborted by {report.run.aborted_by}"
    elif not report.run.complete:
        yield "it is not complete"
    for lost in report.lost_starts:
        yield f"{lost.lost} of {lost.made} starts of {lost.cell_ids[-1]} are lost: {lost.reason}"
    for unread in report.unread:
        yield f"it cannot be read whole: {unread}"


def _notices(*built: Built) -> tuple[str, ...]:
    return tuple(f"{made.report.run.name}: {text}" for made in built for text in lacks(made.report))


def _findings(report: Report) -> tuple[Finding, ...]:
    findings = report.findings
    return tuple(finding for cell in report.cells if cell.role == "subject" for finding in findings[cell.cell_id])
