"""`redline report`: a stored run, search or comparison, shown again."""

from pathlib import Path

from redline.analysis import build_report
from redline.cli import places
from redline.cli.command_line import ReportFlags
from redline.cli.show import show
from redline.cli.streams import write_document
from redline.errors import StoreError, UsageError
from redline.model import Run
from redline.report.render import AB_RENDERERS, LIMIT_RENDERERS, RENDERERS
from redline.report.sections.limit import limit_summary
from redline.report.sections.run import run_summary
from redline.storage.comparisons import ComparisonStore
from redline.storage.runs import RunStore, capacity_store


def execute(flags: ReportFlags) -> None:
    """Show a stored run again: a summary in the terminal, or html, csv, json or md on stdout."""
    form = "json" if flags.json else flags.form
    if (store := RunStore(flags.run)).kind == "search":
        _show_search(store, form)
        return
    if (compared := ComparisonStore(flags.run)).exists:
        _show_comparison(compared, form)
        return
    made = build_report(read_run(flags.run), str(flags.run))
    if form is None:
        show(run_summary(made))
        return
    write_document(RENDERERS[form](made))


def _show_search(store: RunStore, form: str | None) -> None:
    """The report of a search, as that of a run. Raises UsageError for csv."""
    from redline.running.searching import search_report  # noqa: PLC0415 - imports all that runs a search

    found = search_report(store)
    if form is None:
        show(limit_summary(found))
        return
    if form not in LIMIT_RENDERERS:
        raise UsageError(f"{store.folder} holds a search, which has no {form}", hint="take html, json or md")
    write_document(LIMIT_RENDERERS[form](found))


def _show_comparison(store: ComparisonStore, form: str | None) -> None:
    """The answer of `redline ab`, as that of a run. Raises UsageError for html and csv."""
    from redline.cli.ab_view import print_report, read_report  # noqa: PLC0415 - imports all that runs a duet

    if form is not None and form not in AB_RENDERERS:
        raise UsageError(f"{store.folder} holds a comparison, which has no {form}", hint="take json or md")
    print_report(read_report(store), form)


def read_run(folder: Path) -> Run:
    """A stored run. Raises StoreError when there is none, and says so where only its capacity was measured."""
    if RunStore(folder).kind == "search":
        hint = f"see it with: {places.own_name()} report {folder}"
        raise StoreError(f"{folder} holds a search for limits, and no run", hint=hint)
    if ComparisonStore(folder).exists:
        hint = f"see it with: {places.own_name()} report {folder}"
        raise StoreError(f"{folder} holds a comparison of two servers, and no run", hint=hint)
    first = capacity_store(folder)
    if first.exists and not RunStore(folder).exists:
        raise StoreError(
            f"{folder} has been measured no further than its capacity",
            hint=f"resume it with: {places.own_name()} run --resume {folder}; or see: redline report {first.folder}",
        )
    return RunStore(folder).run()
