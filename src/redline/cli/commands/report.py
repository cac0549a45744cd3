"""`redline report`: show a stored run, search or load, or a results.json, again."""

from pathlib import Path

from redline.analysis.intervals import run_rows
from redline.analysis.other_results import lines_of
from redline.asking import places
from redline.cli.command_line import ReportFlags
from redline.cli.flags import form_of
from redline.cli.recorded_files import (
    FILES,
    INTERVALS,
    PICTURES,
    RECORDED,
    rows_of_search,
    write_intervals,
    write_log,
    write_plots,
    write_recorded,
)
from redline.cli.show import show
from redline.cli.streams import write_document
from redline.errors import NotStoredError, StoreError, UsageError
from redline.model import Report, Run
from redline.model.limits import AnyReport, LimitReport
from redline.peers.outputs.formats import read_results
from redline.report.render import csvfile, summary
from redline.report.sections.other_results import other_sections
from redline.running.renderers import renderer_of
from redline.running.views import report_of
from redline.storage.reports import NotJsonError, read_report
from redline.storage.runs import RunStore, capacity_store

_WITH_SLUGS = ("csv", "hgrm", "hlog")


def execute(flags: ReportFlags) -> None:
    """Show what a directory or a results.json holds: a summary in the terminal, or a format of it on stdout."""
    form = form_of(flags)
    if flags.output is not None and form not in FILES:
        raise UsageError(
            f"-o DIR is for --format {', '.join(FILES)}",
            hint="redirect others to a file: redline report RUN -f csv >FILE",
        )
    if flags.slug == "full" and form not in _WITH_SLUGS:
        raise UsageError(
            "--slug full is for --format csv, hgrm and hlog",
            hint="the JSON has both: `slug` and `full_slug` of each cell",
        )
    if form in RECORDED:
        _write_recorded(flags, form)
        return
    render = None if form in (None, *PICTURES) else renderer_of(form, (*RECORDED, *PICTURES))
    if flags.run.is_file() and flags.run.name != RunStore.manifest_file:
        try:
            report = read_report(flags.run)
        except NotStoredError as error:
            _show_other(flags.run, form, error)
            return
    else:
        report = report_in(flags.run)
    if flags.slug == "full":
        write_document(csvfile.render(_fully_named(flags.run, report)))
    elif form in PICTURES:
        write_plots(report, flags.run, form, flags.output)
    elif render is None:
        show(summary(report))
    else:
        write_document(render(report))


def _fully_named(path: Path, report: AnyReport) -> Report:
    """The report whose cells have their full slugs. Raises UsageError for a search, or where they are not known."""
    if isinstance(report, LimitReport):
        raise UsageError(
            f"{path} is a search, whose rates vary: its cells have no full slugs", hint="leave --slug full out"
        )
    if any(not cell.full_slug for cell in report.cells):
        raise UsageError(
            f"{path} is of an earlier version, which wrote no full slugs",
            hint="name the directory of the run, if it was kept: redline report DIR --format csv --slug full",
        )
    return report.with_full_slugs()


def _write_recorded(flags: ReportFlags, form: str) -> None:
    """Write what the recordings of a directory hold, in a format of them. Raises UsageError where there are none."""
    if flags.run.is_file():
        hint = f"name the directory of the run: redline report DIR --format {form}"
        raise UsageError(f"{flags.run} has no recordings to make {form} from", hint=hint)
    store = RunStore(flags.run)
    if form in INTERVALS:
        is_search = store.kind == "search"
        rows = rows_of_search(store) if is_search else run_rows(read_run(flags.run))
        write_intervals(rows, flags.run, form)
    elif form == "hlog":
        write_log(read_run(flags.run), flags.run, full=flags.slug == "full")
    else:
        write_recorded(read_run(flags.run), flags.run, form, flags.output, full=flags.slug == "full")


def _show_other(file: Path, form: str | None, error: NotStoredError) -> None:
    """Show the result of another tool. Raises NotStoredError if the file is no such result: `error`, if it is JSON."""
    try:
        results = read_results(file)
    except NotStoredError as other:
        raise (other if isinstance(error, NotJsonError) else error) from None
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
    if store.kind != "search":
        _check_measured(folder)
    return report_of(store)


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
