"""What is written of recordings for other tools: distributions, intervals and profiles; and plots as PNG."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NoReturn

from redline.analysis.distributions import distributions, recorded_profiles
from redline.analysis.intervals import IntervalRow, run_rows, search_rows
from redline.errors import StoreError
from redline.extras.exports.hdr_files import interval_log, percentile_distribution
from redline.extras.exports.interval_files import interval_lines, interval_sheet
from redline.extras.exports.pictures import png_maker
from redline.extras.profiling.texts import collapsed, speedscope
from redline.model.limits import AnyReport
from redline.render.svg import svg_files
from redline.running.formats import RecordedIn
from redline.storage.runs import RunStore
from redline.wording import as_argument


def hgrm(recorded: RecordedIn) -> dict[str, bytes]:
    """A file for each distribution. Raises StoreError where there are none, as all functions here."""
    parts = distributions(recorded.run(), full=recorded.full_slugs)
    files = {f"{part.name}.hgrm": percentile_distribution(part.times) for part in parts}
    return files or _nothing(recorded.folder, "measured request")


def hlog(recorded: RecordedIn) -> Iterable[bytes]:
    """All distributions as a log, piece by piece."""
    run = recorded.run()
    if next(distributions(run), None) is None:
        _nothing(recorded.folder, "measured request")
    about = f"{run.manifest.name}: {run.manifest.command}"
    return interval_log(distributions(run, full=recorded.full_slugs), about)


def intervals_csv(recorded: RecordedIn) -> Iterator[bytes]:
    """All intervals as a sheet, piece by piece."""
    return interval_sheet(_intervals(recorded))


def intervals_ndjson(recorded: RecordedIn) -> Iterator[bytes]:
    """All intervals as lines of JSON, piece by piece."""
    return interval_lines(_intervals(recorded))


def _intervals(recorded: RecordedIn) -> Iterator[IntervalRow]:
    """The intervals of all trials, or of all probes of a search."""
    store = recorded.store
    rows = _rows_of_search(store) if store.kind == "search" else run_rows(recorded.run())
    first = next(rows, None)
    if first is None:
        _nothing(recorded.folder, "interval of a load")

    return chain((first,), rows)


def _rows_of_search(store: RunStore) -> Iterator[IntervalRow]:
    store.check_parts()
    manifest = store.manifest()
    for cell in manifest.plan.cells.values():
        yield from search_rows(manifest, cell, store.probes(cell))


def collapsed_stacks(recorded: RecordedIn) -> dict[str, bytes]:
    """A file of collapsed stacks for each profile."""
    run = recorded.run()
    files = {f"{part.name}.collapsed": collapsed(part.stacks) for part in recorded_profiles(run)}
    return files or _no_profile(recorded.folder, is_profiled=bool(run.profiled or run.sampled))


def speedscope_files(recorded: RecordedIn) -> dict[str, bytes]:
    """A file for speedscope for each profile."""
    run = recorded.run()
    profiles = recorded_profiles(run)
    files = {f"{part.name}.speedscope.json": speedscope(part.stacks, part.name, part.unit) for part in profiles}
    return files or _no_profile(recorded.folder, is_profiled=bool(run.profiled or run.sampled))


def png_files(report: AnyReport) -> dict[str, bytes]:
    """A file for each plot; empty where there is none. Raises UsageError where PNG cannot be made."""
    files = svg_files(report)
    as_png = png_maker() if files else bytes
    return {f"{name.removesuffix('.svg')}.png": as_png(content) for name, content in files.items()}


def _no_profile(folder: Path, *, is_profiled: bool) -> dict[str, bytes]:
    if is_profiled:
        _nothing(folder, "profile with stacks")
    raise StoreError(f"{folder} has no profile", hint="make a run with profiles: redline run SUITE --profile cpu")


def _nothing(folder: Path, what: str) -> NoReturn:
    raise StoreError(f"{folder} has no {what}", hint=f"see why: redline report {as_argument(folder)}")
