"""What `redline report` writes for other tools: distributions, intervals and profiles of recordings, and plots."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from redline.analysis.distributions import distributions, recorded_profiles
from redline.analysis.intervals import IntervalRow, search_rows
from redline.cli.streams import write_document
from redline.errors import StoreError, UsageError
from redline.files import as_store_error, write_atomically
from redline.model import Run
from redline.model.limits import AnyReport
from redline.plugins.pictures import png_maker
from redline.plugins.profilers.texts import collapsed, speedscope
from redline.report.format import count
from redline.report.render.hdr_files import interval_log, percentile_distribution
from redline.report.render.interval_files import interval_lines, interval_sheet
from redline.report.render.svg import svg_files
from redline.storage.runs import RunStore

INTERVALS = {"intervals-csv": interval_sheet, "intervals-ndjson": interval_lines}
"""Formats that have a line for each interval."""
_OF_RECORDINGS = {"hgrm": "distribution", "collapsed": "profile", "speedscope": "profile"}
PICTURES = ("svg", "png")
FILES = {**_OF_RECORDINGS, **dict.fromkeys(PICTURES, "plot")}
"""What a file holds in the formats that have several files."""
RECORDED = (*INTERVALS, *_OF_RECORDINGS, "hlog")
"""Formats that are made of recordings."""


def write_log(run: Run, folder: Path, *, full: bool = False) -> None:
    """Write all distributions of the run in a folder to stdout, as a log. Raises StoreError where there are none.

    `full`: cells are named by their full slugs.
    """
    if next(distributions(run), None) is None:
        raise _nothing(folder, "measured request")
    for content in interval_log(distributions(run, full=full), f"{run.manifest.name}: {run.manifest.command}"):
        write_document(content)


def write_intervals(rows: Iterator[IntervalRow], folder: Path, form: str) -> None:
    """Write the rows of what a folder holds to stdout. Raises StoreError where there are none."""
    first = next(rows, None)
    if first is None:
        raise _nothing(folder, "interval of a load")

    def every() -> Iterator[IntervalRow]:
        yield first
        yield from rows

    for content in INTERVALS[form](every()):
        write_document(content)


def rows_of_search(store: RunStore) -> Iterator[IntervalRow]:
    """The rows of a stored search. Raises StoreError."""
    store.check_parts()
    manifest = store.manifest()
    for cell in manifest.plan.cells.values():
        yield from search_rows(manifest, cell, store.probes(cell))


def write_recorded(run: Run, folder: Path, form: str, output: Path | None, *, full: bool = False) -> None:
    """Write a file for each distribution or profile of the run in a folder. Raises errors as `write_files`.

    `full`: the files of distributions are named by the full slugs of their cells.
    """
    if form == "hgrm":
        files = {f"{part.name}.hgrm": percentile_distribution(part.times) for part in distributions(run, full=full)}
        if not files:
            raise _nothing(folder, "measured request")
        responses = {name: content for name, content in files.items() if name.endswith(".response.hgrm")}
        write_files(files if output else responses, folder, form, output)
        return
    files = _profile_files(run, form)
    if not files:
        if run.profiled:
            raise _nothing(folder, "profile with stacks")
        hint = "make a run with profiles: redline run SUITE --profile cpu"
        raise StoreError(f"{folder} has no profile", hint=hint)
    write_files(files, folder, form, output)


def write_plots(report: AnyReport, folder: Path, form: str, output: Path | None) -> None:
    """Write a file for each plot of a report. Raises errors as `write_files`, and StoreError where there is none.

    PNG raises UsageError where it cannot be made.
    """
    files = svg_files(report)
    if not files:
        raise _nothing(folder, "valid result to draw")
    if form == "png":
        as_png = png_maker()
        made = ((f"{name.removesuffix('.svg')}.png", content) for name, content in files.items())
        files = {name: as_png(content) for name, content in made} if output or len(files) == 1 else dict(made)
    write_files(files, folder, form, output)


def write_files(files: Mapping[str, bytes], folder: Path, form: str, output: Path | None) -> None:
    """Write what was made of a folder to files in the `output`, which is made, and say so on stderr.

    Without an output the only file goes to stdout. Raises UsageError where there are several, and StoreError.
    """
    if output is None and len(files) == 1:
        write_document(*files.values())
        return
    if output is None:
        times, log = (" of response times", "; or all to one log: --format hlog") if form == "hgrm" else ("", "")
        raise UsageError(
            f"{folder} has {len(files)} {FILES[form]}s{times}, and a {form} file holds a single {FILES[form]}",
            hint=f"write them to files: redline report {folder} --format {form} -o DIR{log}",
        )
    with as_store_error(output, begun=False):
        output.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with as_store_error(output / name, begun=False):
                write_atomically(output / name, content)
    sys.stderr.write(f"{count(len(files), 'file')} in {output}\n")


def _profile_files(run: Run, form: str) -> dict[str, bytes]:
    if form == "collapsed":
        return {f"{part.name}.collapsed": collapsed(part.stacks) for part in recorded_profiles(run)}
    return {
        f"{part.name}.speedscope.json": speedscope(part.stacks, part.name, part.unit) for part in recorded_profiles(run)
    }


def _nothing(folder: Path, what: str) -> StoreError:
    return StoreError(f"{folder} has no {what}", hint=f"see why: redline report {folder}")
