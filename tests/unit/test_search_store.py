"""The directory of a search: what was asked is written once, and so is the recording of each load."""

from pathlib import Path

import pytest

from redline.analysis.search_state import limit_report
from redline.errors import StoreError
from redline.model.limits import LimitReport
from redline.model.search import SearchPlan
from redline.running.searching import SearchSession, search_report
from redline.storage.runs import stored_json
from redline.storage.searches import SearchStore
from redline.suite import parse_objectives
from tests import golden
from tests.fakes import limits
from tests.fakes.recordings import STEADY, simulated_run
from tests.fakes.searched import CELL, bench_in


def plan() -> SearchPlan:
    """The plan of a simulated suite, in the form of version 1."""
    return SearchPlan(
        format="redline.search/1",
        manifest=simulated_run(loads=(STEADY,), trials=2, ceiling=None).manifest,
        sets={"good": parse_objectives("p99 < 200ms, errors < 1%")},
        start_per_s=None,
        probes=12,
        precision=0.03,
        trials=2,
        beyond=True,
    )


def test_the_stored_form_stays_readable() -> None:
    golden.check("search.json", stored_json(plan()))
    assert SearchPlan.model_validate_json((golden.FOLDER / "search.json").read_bytes()) == plan()


def test_a_search_of_version_1_is_shown_by_its_report_and_not_resumed(tmp_path: Path) -> None:
    store = SearchStore(tmp_path / "found")
    store.create(plan())
    assert search_report(store) is None
    report = LimitReport.model_validate_json((golden.FOLDER / "limit.json").read_bytes())
    store.write("limit.json", stored_json(report))
    assert search_report(store) == report == limits.by_hand()
    with pytest.raises(StoreError, match="earlier version"):
        SearchSession.resume(store.folder, None, None)  # type: ignore[arg-type]


def test_what_was_asked_and_recorded_reads_back(tmp_path: Path) -> None:
    folder = tmp_path / "found"
    assert not SearchStore(folder).exists
    bench = bench_in(folder)
    store, asked = SearchStore(folder), bench.state.plan
    assert store.exists
    assert (store.plan(), store.probes(CELL)) == (asked, ())
    assert not (folder / "limit.json").exists()
    bench.run()
    made = store.probes(CELL)
    assert [each.recording.position for each in made] == list(range(len(bench.driver.drives)))
    report = search_report(store)
    assert report == limit_report(asked, {CELL.id: made})
    assert report is not None
    assert report.cells == (bench.state.limit(),)
    with pytest.raises(StoreError, match="already holds a search"):
        store.create(asked)


def test_what_is_no_search_or_damaged_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no search"):
        SearchStore(tmp_path).plan()
    (tmp_path / "search.json").write_text('{"format": "redline.search/2"')
    with pytest.raises(StoreError, match=r"search\.json"):
        SearchStore(tmp_path).plan()
    (tmp_path / "probes" / CELL.slug).mkdir(parents=True)
    (tmp_path / "probes" / CELL.slug / "0003.json").write_text("{}")
    with pytest.raises(StoreError, match=r"0003\.json"):
        SearchStore(tmp_path).probes(CELL)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    store = SearchStore(tmp_path / "found")
    store.create(plan())
    with store.locked(), pytest.raises(StoreError, match="another redline"), SearchStore(store.folder).locked():
        pass
