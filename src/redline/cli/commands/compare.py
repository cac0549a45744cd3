"""`redline compare`: two runs, or one run's variants with their baseline."""

import sys

import typer

from redline.analysis import build_report, compare_runs
from redline.analysis.compare import not_run, unwanted, why_no_verdict
from redline.analysis.environments import grave
from redline.cli import exits
from redline.cli.command_line import CompareFlags
from redline.cli.commands.report import read_run
from redline.cli.contracts import CompareResult
from redline.cli.show import show, write_json
from redline.errors import RedlineError, UsageError
from redline.findings import gathered, named, said_once
from redline.model import Finding, Grade, Report, Run, Verdict
from redline.report.sections.comparison import comparison_sections
from redline.storage.runs import RunStore


def execute(flags: CompareFlags) -> None:
    """Compare two runs, or the variants of one run with its baseline: ratios with 95% intervals, and verdicts."""
    for path in filter(None, (flags.run, flags.other)):
        if path.is_file():
            raise UsageError(
                f"{path} is a file: runs are compared by their trials, which only their folders have",
                hint=f"name folders of runs, or see results of other tools side by side: redline history {path} …",
            )
    base = read_run(flags.run)
    result = _between(base, read_run(flags.other), anyway=flags.anyway) if flags.other else _within(base)
    if flags.json:
        write_json(result)
    else:
        show(comparison_sections(result.comparisons, base=result.base, other=result.other))
    _warn(result)
    for folder in (flags.run, flags.other):
        if folder and RunStore(folder).is_being_written:
            sys.stderr.write(f"{Grade.WARN}: {folder} is still being measured: only what it has so far was compared\n")
    if flags.fail_on:
        gate(result, {Verdict(verdict) for verdict in flags.fail_on})


def _warn(result: CompareResult) -> None:
    """Print findings, and differences between the environments, on stderr."""
    for line in (*result.unmatched, *result.environment_differs):
        grade = Grade.WARN if line in result.environment_grave else Grade.NOTE
        sys.stderr.write(f"{grade}: {line}\n")
    for group in gathered(finding for finding in result.findings if finding.grade is not Grade.NOTE):
        where = named(cell_id.rpartition("-")[0] for cell_id in group.cell_ids)
        sys.stderr.write(f"{group.worst.grade}: {where}: {group.text}\n")


def gate(result: CompareResult, fail_on: set[Verdict]) -> None:
    """Exit with 3 for an unwanted verdict, and with 1 if there is none: a cell without a verdict has not passed.

    Only primary comparisons have verdicts; a described comparison fails nothing.
    """
    primary = [comparison for comparison in result.comparisons if comparison.primary]
    if unwanted(primary, fail_on):
        raise typer.Exit(exits.MISSED)
    if not primary:
        missing = "; ".join(result.unmatched) or "no cell of the run has its baseline in it"
        raise RedlineError(f"nothing could be compared: {missing}", hint="measure a cell and its baseline in one run")
    reasons = sorted((c.cell_id.rpartition("-")[0], reason) for c in primary if (reason := why_no_verdict(c)))
    refused = said_once(reasons)
    if refused or result.unmatched:
        missing = "; ".join((*refused, *result.unmatched))
        raise RedlineError(
            f"not everything could be compared: {missing}", hint="fix these cells and measure them again"
        )


def _within(run: Run) -> CompareResult:
    suite = run.manifest.plan.suite
    if not any(suite.baseline_of(variant.slug) for variant in suite.variants):
        raise UsageError(
            f"run {run.manifest.name} has no baseline to compare with",
            hint="name it in the suite (`baseline: rust.hyper`), or compare two runs: redline compare RUN_A RUN_B",
        )
    name, made = run.manifest.name, build_report(run)
    return CompareResult(
        base=name,
        other=name,
        comparisons=made.comparisons,
        unmatched=not_run(run),
        environment_differs=(),
        findings=_findings(made),
    )


def _between(base: Run, other: Run, *, anyway: bool) -> CompareResult:
    between = f"{base.manifest.name} and {other.manifest.name}"
    differing = grave(base.manifest.environment, other.manifest.environment)
    if differing and not anyway:
        raise UsageError(
            f"{between} come from environments that differ gravely: {'; '.join(map(str, differing))}",
            hint="measure both in one run, or both here and now; --anyway compares them nevertheless",
        )
    compared = compare_runs(base, other)
    if not compared.comparisons:
        raise UsageError(
            f"{between} have no cell in common",
            hint="cells match when server, options, scenario, load, warm-up and timeout are the same",
        )
    return CompareResult(
        base=base.manifest.name,
        other=other.manifest.name,
        comparisons=compared.comparisons,
        unmatched=compared.unmatched,
        environment_differs=tuple(map(str, compared.environment_differs)),
        environment_grave=tuple(map(str, differing)),
        findings=(*_findings(build_report(base)), *_findings(build_report(other))),
    )


def _findings(report: Report) -> tuple[Finding, ...]:
    return tuple(finding for cell in report.cells if cell.role == "subject" for finding in cell.findings)
