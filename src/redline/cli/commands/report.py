"""`redline report`: show a stored run, search or load, or a results.json, again."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from redline.analysis.other_results import lines_of
from redline.analysis.side_by_side import NamedReport, side_by_side
from redline.asking import places
from redline.cli.browser import open_page
from redline.cli.command_line import ReportFlags
from redline.cli.flags import form_of
from redline.cli.show import Terminal, show
from redline.cli.streams import write_bytes, write_document
from redline.document.blocks import Medium
from redline.entry_points import extra_if_installed
from redline.errors import NotStoredError, StoreError, UsageError
from redline.model import Report, Run
from redline.model.history import OtherResult
from redline.model.limits import AnyReport, LimitReport
from redline.render import SIDES, summary
from redline.render.formats import FILE_ENDINGS, FORMATS, Needs, ResultFormat
from redline.report.other_results import other_sections
from redline.report.side_by_side import OUTLINE
from redline.running.formats import (
    RecordedIn,
    Rendered,
    only_document,
    renderer_of,
    write_files,
    write_rendered,
)
from redline.running.views import report_of
from redline.storage.reports import NotJsonError, read_report
from redline.storage.runs import RunStore, capacity_store
from redline.version import VERSION
from redline.wording import as_argument


def execute(flags: ReportFlags) -> None:
    """Show what a directory or a results.json holds: a summary in the terminal, or a format of it on stdout."""
    if flags.output is not None:
        _check_is_no_source(flags.output, flags.runs)
    if len(flags.runs) > 1:
        _show_side_by_side(flags)
        return
    name = form_of(flags) or _by_ending(flags.output)
    form = FORMATS.get(name or "")
    _check_options(flags, form)
    opened = _page(flags, form) if flags.open else None
    _show(flags, name, form)
    if opened is not None:
        open_page(opened, Terminal(stderr=True))


def _check_is_no_source(output: Path, runs: Sequence[Path]) -> None:
    """Raise UsageError for a file of which the report is made; the reports of a run are made anew."""
    file = output.resolve()
    for run in map(Path.resolve, runs):
        is_of_run = run in file.parents and file.is_file() and not file.name.startswith("report.")
        if file.is_file() and (file == run or is_of_run):
            raise UsageError(f"{output} is what the report is made of", hint="give another name")


def _show_side_by_side(flags: ReportFlags) -> None:
    """Show what held from run to run. Raises UsageError for a run that is there twice or cannot be read."""
    form = form_of(flags) or _by_ending(flags.output)
    if form not in (None, *SIDES):
        hint = f"give one of {', '.join(SIDES)}, or name one run"
        raise UsageError(f"several runs side by side are not shown as {form}", hint=hint)
    if flags.slug == "full":
        raise UsageError("--slug full is for one run", hint="leave it out: runs of two machines match by short names")
    if flags.open and (flags.output is None or form != "html"):
        raise UsageError("--open shows a page, and there is none", hint="write one: give -o FILE.html")
    twice = next(
        (run for at, run in enumerate(flags.runs) for other in flags.runs[:at] if _same_place(run, other)), None
    )
    if twice is not None:
        hint = f"name runs of two machines or two days; this one alone: redline report {as_argument(twice)}"
        raise UsageError(f"{twice} is there twice", hint=hint)
    result = side_by_side([*map(_named_report, flags.runs)], VERSION)
    if form is None:
        show(OUTLINE.text(result, Medium.TERMINAL))
    else:
        _write_document([SIDES[form](result)], flags.output)
    if flags.open and flags.output is not None:
        open_page(flags.output, Terminal(stderr=True))


def _same_place(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _named_report(path: Path) -> NamedReport:
    """The report of a directory or a file. Raises UsageError."""
    is_file = path.is_file() and path.name != RunStore.manifest_file
    try:
        return NamedReport(str(path), read_report(path) if is_file else report_in(path), judged_now=not is_file)
    except StoreError as error:
        raise UsageError.of(error) from error


def _page(flags: ReportFlags, form: ResultFormat | None) -> Path:
    """The page that is opened: the file that is written, or that of the directory. Raises UsageError."""
    if flags.output is not None and form is FORMATS["html"]:
        return flags.output
    page = flags.runs[0] / "report.html"
    if flags.output is not None or not page.is_file():
        raise UsageError("--open shows a page, and there is none", hint="write one: give -o FILE.html")
    return page


def _show(flags: ReportFlags, name: str | None, form: ResultFormat | None) -> None:
    """Show a summary, or write a format."""
    if form is not None and form.needs is Needs.RECORDINGS:
        _write(form, form.load()(_recordings(flags, form)), flags)
        return
    render = renderer_of(name) if name and form is None else None
    if flags.runs[0].is_file() and flags.runs[0].name != RunStore.manifest_file:
        try:
            report = read_report(flags.runs[0])
        except NotStoredError as error:
            _show_other(flags.runs[0], name, error)
            return
    else:
        report = report_in(flags.runs[0])
    if render is not None:
        _write_document([render(report)], flags.output)
    elif form is None:
        show(summary(report))
    else:
        named = _fully_named(flags.runs[0], report) if flags.slug == "full" else report
        made: Rendered = form.load()(named)
        if isinstance(made, Mapping) and not made:
            raise StoreError(
                f"{flags.runs[0]} has no valid result to draw",
                hint=f"see why: redline report {as_argument(flags.runs[0])}",
            )
        _write(form, made, flags)


def _by_ending(output: Path | None) -> str | None:
    """The format of a file by its ending; None without a file. Raises UsageError where the ending names no format."""
    if output is None:
        return None
    form = FILE_ENDINGS.get(output.suffix.lower())
    if form is None:
        hint = f"give --format, or end the name with one of {', '.join(FILE_ENDINGS)}"
        raise UsageError(f"-o {output}: its ending names no format", hint=hint)
    return form.name


def _check_options(flags: ReportFlags, form: ResultFormat | None) -> None:
    """Raise UsageError for options that are not for a format."""
    if flags.slug == "full" and (form is None or not form.has_slugs):
        *names, last = (each.name for each in FORMATS.values() if each.has_slugs)
        raise UsageError(
            f"--slug full is for --format {', '.join(names)} and {last}",
            hint="the JSON has both: `slug` and `full_slug` of each cell",
        )


def _recordings(flags: ReportFlags, form: ResultFormat) -> RecordedIn:
    """The directory with the recordings. Raises UsageError for a file."""
    if flags.runs[0].is_file():
        hint = f"name the directory of the run: redline report DIR --format {form.name}"
        raise UsageError(f"{flags.runs[0]} has no recordings to make {form.name} from", hint=hint)
    return RecordedIn(RunStore(flags.runs[0]), lambda: read_run(flags.runs[0]), full_slugs=flags.slug == "full")


def _write(form: ResultFormat, made: Rendered, flags: ReportFlags) -> None:
    """Write what was made to the files of a directory, or to stdout."""
    if flags.output is not None and isinstance(made, Mapping):
        sys.stderr.write(f"{write_files(made, flags.output)}\n")
        return
    _write_document(only_document(form, made, flags.runs[0]), flags.output, is_binary=form.is_binary)


def _write_document(pieces: Iterable[bytes], file: Path | None, *, is_binary: bool = False) -> None:
    """Write a document to a file, or to stdout. Raises StoreError."""
    if file is not None:
        write_rendered(pieces, file)
        return
    for content in pieces:
        (write_bytes if is_binary else write_document)(content)


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


def _show_other(file: Path, form: str | None, error: NotStoredError) -> None:
    """Show the result of another tool. Raises NotStoredError if the file is no such result: `error`, if it is JSON."""
    read_results = extra_if_installed("results")
    if read_results is None:
        raise error
    try:
        results: tuple[OtherResult, ...] = read_results(file)
    except NotStoredError as other:
        raise (other if isinstance(error, NotJsonError) else error) from None
    if any(result.tool == "redline" for result in results):
        raise error
    if form is not None:
        raise UsageError(
            f"{file} is a result of {results[0].tool}, which has no report as {form}",
            hint=f"leave that out to see it, or have its numbers as JSON: redline history {as_argument(file)} --json",
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
    see = f"see it with: {places.own_name()} report {as_argument(folder)}"
    if RunStore(folder).kind == "search":
        raise StoreError(f"{folder} holds a search for limits, and no run", hint=see)
    _check_measured(folder)
    return RunStore(folder).run()


def _check_measured(folder: Path) -> None:
    """Raise StoreError if only the capacity of a run was measured."""
    first, own = capacity_store(folder), places.own_name()
    if first.exists and not RunStore(folder).exists:
        going, capacity = first.is_being_written, f"{own} report {as_argument(first.folder)}"
        resume = "wait for it" if going else f"resume it with: {own} run --resume {as_argument(folder)}"
        state = "is being measured, and" if going else "has been measured"
        raise StoreError(f"{folder} {state} no further than its capacity", hint=f"{resume}; or see: {capacity}")
