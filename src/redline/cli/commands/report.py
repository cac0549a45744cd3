"""`redline report`: show a stored run, search or load, or a results.json, again."""

import sys
from pathlib import Path

from redline.analysis.distributions import RecordedTimes, distributions
from redline.analysis.other_results import lines_of
from redline.cli import places
from redline.cli.command_line import ReportFlags
from redline.cli.show import show
from redline.cli.streams import write_document
from redline.errors import NotStoredError, StoreError, UsageError
from redline.files import as_store_error, write_atomically
from redline.model import Run
from redline.model.limits import AnyReport
from redline.peers.outputs.formats import read_results
from redline.report.format import count
from redline.report.render import summary
from redline.report.render.hdr_files import interval_log, percentile_distribution
from redline.report.sections.other_results import other_sections
from redline.running.renderers import renderer_of
from redline.running.views import run_report, search_report
from redline.storage.reports import read_report
from redline.storage.runs import RunStore, capacity_store


def execute(flags: ReportFlags) -> None:
    """Show what a directory or a results.json holds: a summary in the terminal, or a format of it on stdout."""
    form = "json" if flags.json else flags.form
    if flags.output is not None and form != "hgrm":
        raise UsageError(
            "-o DIR is for --format hgrm", hint="redirect others to a file: redline report RUN -f csv >FILE"
        )
    if form in ("hgrm", "hlog"):
        _write_distributions(flags, form)
        return
    render = None if form is None else renderer_of(form, ("hgrm", "hlog"))
    if flags.run.is_file() and flags.run.name != RunStore.manifest_file:
        try:
            report = read_report(flags.run)
        except NotStoredError as error:
            _show_other(flags.run, form, error)
            return
    else:
        report = report_in(flags.run)
    if render is None:
        show(summary(report))
        return
    write_document(render(report))


def _write_distributions(flags: ReportFlags, form: str) -> None:
    """Write the distributions of a directory: a log to stdout, or a file for each distribution.

    Raises UsageError if there are no recordings, or several distributions and no folder for them.
    """
    if flags.run.is_file():
        hint = f"name the directory of the run: redline report DIR --format {form}"
        raise UsageError(f"{flags.run} has no recordings to make {form} from", hint=hint)
    run = read_run(flags.run)
    if next(distributions(run), None) is None:
        raise StoreError(f"{flags.run} has no measured request", hint=f"see why: redline report {flags.run}")
    if form == "hlog":
        for content in interval_log(distributions(run), f"{run.manifest.name}: {run.manifest.command}"):
            write_document(content)
        return
    if flags.output is None:
        (shown,) = _only_response(flags.run, run)
        write_document(percentile_distribution(shown.times))
        return
    with as_store_error(flags.output, begun=False):
        flags.output.mkdir(parents=True, exist_ok=True)
        names = []
        for part in distributions(run):
            names.append(f"{part.name}.hgrm")
            write_atomically(flags.output / names[-1], percentile_distribution(part.times))
    sys.stderr.write(f"{count(len(names), 'file')} in {flags.output}\n")


def _only_response(folder: Path, run: Run) -> list[RecordedTimes]:
    """Return the response times of a run with a single trial. Raises UsageError if there are none, or several."""
    parts = [part for part in distributions(run) if part.kind == "response"]
    if len(parts) != 1:
        raise UsageError(
            f"{folder} has {len(parts)} distributions of response times, and a hgrm file holds a single distribution",
            hint=f"write them to files: redline report {folder} --format hgrm -o DIR; or all to one log: --format hlog",
        )
    return parts


def _show_other(file: Path, form: str | None, error: NotStoredError) -> None:
    """Show the result of another tool. Raises `error` if the file is no such result."""
    try:
        results = read_results(file)
    except NotStoredError:
        raise error from None
    if any(result.tool == "redline" for result in results):
        raise error
    if form is not None:
        raise UsageError(
            f"{file} is a result of {results[0].tool}, which has no report as {form}",
            hint=f"leave that out to see it, or have its numbers as JSON: redline history {file} --json",
        )
    show(other_sections(lines_of(results)))


def report_in(folder: Path) -> AnyReport:
    """Judge a directory by today's rules, and return the report. Raises StoreError."""
    store = RunStore(folder)
    if store.kind == "search":
        return search_report(store)
    _check_measured(folder)
    return run_report(store)


def read_run(folder: Path) -> Run:
    """Read a stored run. Raises StoreError if there is none, which says what the folder holds instead."""
    see = f"see it with: {places.own_name()} report {folder}"
    if RunStore(folder).kind == "search":
        raise StoreError(f"{folder} holds a search for limits, and no run", hint=see)
    _check_measured(folder)
    return RunStore(folder).run()


def _check_measured(folder: Path) -> None:
    """Raise StoreError if only the capacity of a run was measured."""
    first = capacity_store(folder)
    if first.exists and not RunStore(folder).exists:
        raise StoreError(
            f"{folder} has been measured no further than its capacity",
            hint=f"resume it with: {places.own_name()} run --resume {folder}; or see: redline report {first.folder}",
        )
