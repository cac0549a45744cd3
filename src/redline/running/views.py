"""The report of a stored session, and its views: made from the recordings, and made again by later rules."""

from functools import partial

from redline.analysis import build_report
from redline.copies import made_beside
from redline.model import Report
from redline.model.limits import AnyReport, LimitReport
from redline.render.formats import FORMATS
from redline.running.judging import judging_of
from redline.storage.runs import RunStore

COPIED_FROM = 50
"""Cells from which on a copy of the process makes the page: that of fewer is made in less than half a second."""


def run_report(store: RunStore, *, keeps: bool = True) -> Report:
    """Judge a stored run, comparison or load, and keep judged cells unless told not to. Raises StoreError."""
    return build_report(store.run(), str(store.folder), judging_of(store, keeps=keeps))


def search_report(store: RunStore) -> LimitReport:
    """Judge a stored search. Raises StoreError, also where a folder of its probes is gone."""
    from redline.limits.report import limit_report  # noqa: PLC0415 - runs need nothing of searches

    store.check_parts()
    manifest, made, unread = store.manifest(), {}, list[str]()
    for cell in manifest.plan.cells.values():
        made[cell.id], damaged = store.probes_said(cell)
        unread += damaged
    return limit_report(manifest, made, unread)


def report_of(store: RunStore, *, keeps: bool = True) -> AnyReport:
    """Judge what is stored in a directory of any kind, and keep judged cells unless told not to. Raises StoreError."""
    return search_report(store) if store.kind == "search" else run_report(store, keeps=keeps)


def write_run_views(store: RunStore, *, is_kept: bool = True) -> Report:
    """Judge a stored run. If it `is_kept`, write its views; its advice then names the directory. Raises StoreError."""
    report = build_report(store.run(), str(store.folder) if is_kept else None, judging_of(store))
    if is_kept:
        write_views(store, report)
    return report


def write_views(store: RunStore, report: AnyReport) -> None:
    """Write every view of a report, of which copies of the process make the page if it is long. Raises StoreError."""
    from redline.render.renderers import as_html, json_pieces  # noqa: PLC0415 - templates are for who writes

    is_long = isinstance(report, Report) and len(report.cells) >= COPIED_FROM
    beside = partial(made_beside, copies=is_long)
    with beside(lambda: as_html(report, beside)) as html:
        for form in FORMATS.values():
            if form.view and form.name not in ("html", "json"):
                store.write(form.view, form.load()(report))
        store.write_pieces(FORMATS["json"].view, json_pieces(report))
        store.write(FORMATS["html"].view, html())
