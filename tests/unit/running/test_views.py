"""The report of a stored session and its views: who judges it, which files it has, and who makes a long page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.model import Report
from redline.model.limits import AnyReport, LimitReport
from redline.render import renderers
from redline.render.formats import FORMATS
from redline.running import judging, views
from redline.running.views import report_of, run_report, search_report, write_run_views, write_views
from redline.storage import judged
from redline.storage.runs import RunStore
from tests.fakes.recordings import simulated_run
from tests.fakes.searched import bench_in
from tests.fakes.stored import kept


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return kept(tmp_path / "run", simulated_run(trials=1))


@pytest.fixture
def searched(tmp_path: Path) -> RunStore:
    bench_in(tmp_path / "search")
    return RunStore(tmp_path / "search")


def test_a_directory_is_judged_by_its_kind(store: RunStore, searched: RunStore) -> None:
    run, search = report_of(store), report_of(searched)
    assert isinstance(run, Report)
    assert run == run_report(store)
    assert isinstance(search, LimitReport)
    assert search == search_report(searched)


def test_judged_cells_are_kept_unless_told_not_to(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "KEPT_FROM", 1)
    folder = store.folder / judged.FOLDER
    run_report(store, keeps=False)
    report_of(store, keeps=False)
    assert not folder.exists()
    report_of(store)
    made = {file.name for file in folder.iterdir()}
    assert made == {f"{cell_id}.json" for cell_id in store.manifest().plan.cells}
    for file in folder.iterdir():
        file.unlink()
    run_report(store)
    assert {file.name for file in folder.iterdir()} == made


def test_every_format_that_is_a_view_is_a_file_of_the_run(store: RunStore) -> None:
    before = {file.name for file in store.folder.iterdir()}
    report = write_run_views(store)
    written = {file.name for file in store.folder.iterdir()} - before
    assert written - {judged.FOLDER} == {form.view for form in FORMATS.values() if form.view}
    assert {"report.html", "results.json", "results.csv"} <= written
    for form in FORMATS.values():
        if form.view and form.name not in ("html", "json"):
            assert (store.folder / form.view).read_bytes() == form.load()(report), form.name


@pytest.mark.parametrize("is_kept", [True, False])
def test_advice_names_the_directory_if_it_is_kept(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, *, is_kept: bool
) -> None:
    named = list[str | None]()

    def build(run: object, folder: str | None, judging: object) -> Report:
        named.append(folder)
        return report

    report = run_report(store)
    monkeypatch.setattr(views, "build_report", build)
    assert write_run_views(store, is_kept=is_kept) is report
    assert named == [str(store.folder) if is_kept else None]


@pytest.mark.parametrize(("cells", "copied"), [(49, False), (50, True)])
def test_a_copy_of_the_process_makes_the_page_of_fifty_cells(
    store: RunStore, searched: RunStore, monkeypatch: pytest.MonkeyPatch, cells: int, *, copied: bool
) -> None:
    asked = list[bool]()

    @contextmanager
    def beside(make: Callable[[], bytes], *, copies: bool) -> Iterator[Callable[[], bytes]]:
        asked.append(copies)
        yield make

    def page(_report: AnyReport, _beside: object) -> bytes:
        return b"the page"

    monkeypatch.setattr(views, "made_beside", beside)
    monkeypatch.setattr(renderers, "as_html", page)
    monkeypatch.setattr(views, "FORMATS", {name: FORMATS[name] for name in ("html", "json")})
    report = run_report(store)
    (*_, one) = report.cells
    write_views(store, report.model_copy(update={"cells": (one,) * cells}))
    assert asked == [copied]
    assert (store.folder / "report.html").read_bytes() == b"the page"
    search = search_report(searched)
    write_views(searched, search.model_copy(update={"cells": search.cells * cells}))
    assert asked == [copied, False], "the page of a search is short"
