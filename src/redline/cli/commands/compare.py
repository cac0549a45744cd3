"""`redline compare`: two runs, or one run's variants with their baseline."""

import sys
from pathlib import Path

import typer

from redline.analysis.compare import unwanted
from redline.analysis.comparing import ComparedRun, compare_two, compare_within
from redline.cli import exits
from redline.cli.command_line import CompareFlags
from redline.cli.commands.report import read_run
from redline.cli.show import show, write_json
from redline.document.format import slug_of
from redline.errors import RedlineError, UsageError
from redline.findings import gathered, merged_by_text, named
from redline.model import Grade, Verdict
from redline.model.compared import CompareResult
from redline.report.comparison import pair_sections
from redline.running.judging import judging_of
from redline.storage.runs import RunStore
from redline.wording import as_argument


def execute(flags: CompareFlags) -> None:
    """Compare two runs, or the variants of one run with its baseline: ratios with 95% intervals, and verdicts."""
    for path in filter(None, (flags.run, flags.other)):
        if path.is_file():
            raise UsageError(
                f"{path} is a file: runs are compared by their trials, which only their folders have",
                hint=f"name folders of runs, or see results of other tools: redline history {as_argument(path)} …",
            )
    if flags.anyway and not flags.other:
        raise UsageError("--anyway is about two runs", hint="leave it out, or name the other run")
    if flags.other and flags.other.resolve() == flags.run.resolve():
        hint = f"name two runs; this one against its own baseline: redline compare {as_argument(flags.run)}"
        raise UsageError(f"{flags.run} is there twice", hint=hint)
    base = _compared(flags.run)
    result = compare_two(base, _compared(flags.other), anyway=flags.anyway) if flags.other else compare_within(base)
    if flags.json:
        write_json(result)
    else:
        show(pair_sections(result.comparisons, base=result.base, other=result.other, by_ratios=result.by_ratios))
    _warn(result)
    for folder in (flags.run, flags.other):
        if folder and RunStore(folder).is_being_written:
            sys.stderr.write(f"{Grade.WARN}: {folder} is still being measured: only what it has so far was compared\n")
    if flags.fail_on:
        gate(result, {Verdict(verdict) for verdict in flags.fail_on})


def _compared(folder: Path) -> ComparedRun:
    """The run of a directory, with the cells that were judged before. Raises StoreError."""
    return ComparedRun(read_run(folder), judging_of(RunStore(folder)))


def _warn(result: CompareResult) -> None:
    """Print findings, and differences between the environments, on stderr."""
    for line in filter(None, (result.same, *result.notices)):
        sys.stderr.write(f"{Grade.WARN if line in result.notices else Grade.NOTE}: {line}\n")
    for line in (*result.unmatched, *result.environment_differs):
        grade = Grade.WARN if line in result.environment_grave else Grade.NOTE
        sys.stderr.write(f"{grade}: {line}\n")
    for run, findings in result.findings_by_run:
        for group in gathered(finding for finding in findings if finding.grade is not Grade.NOTE):
            where = f"{f'{run}: ' if run else ''}{named(map(slug_of, group.cell_ids))}"
            sys.stderr.write(f"{group.first.grade}: {where}: {group.text}\n")


def gate(result: CompareResult, fail_on: set[Verdict]) -> None:
    """Exit with 3 for an unwanted verdict, and with 1 if there is none: a cell without a verdict has not passed.

    Only primary comparisons have verdicts; a described comparison fails nothing.
    """
    if result.same:
        return
    primary = [comparison for comparison in result.comparisons if comparison.primary]
    if unwanted(primary, fail_on):
        raise typer.Exit(exits.MISSED)
    if not primary:
        missing = "; ".join(result.unmatched) or "no cell of the run has its baseline in it"
        raise RedlineError(f"nothing could be compared: {missing}", hint="measure a cell and its baseline in one run")
    reasons = sorted((slug_of(c.cell_id), reason) for c in primary if (reason := c.why_no_verdict))
    refused = merged_by_text(reasons)
    if refused or result.unmatched:
        missing = "; ".join((*refused, *result.unmatched))
        raise RedlineError(
            f"not everything could be compared: {missing}", hint="fix these cells and measure them again"
        )
