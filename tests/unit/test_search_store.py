"""The directory of a search: its question is written once, and so is the recording of every load."""

from pathlib import Path

import pytest

from redline.analysis.search_state import limit_report
from redline.errors import StoreError
from redline.running.views import search_report
from redline.storage.runs import RunStore
from tests.fakes.searched import CELL, bench_in


def test_what_was_asked_and_recorded_reads_back(tmp_path: Path) -> None:
    folder = tmp_path / "found"
    assert not RunStore(folder).exists
    bench = bench_in(folder)
    store, asked = RunStore(folder), bench.state.manifest
    assert (store.exists, store.kind) == (True, "search")
    assert (store.manifest(), store.probes(CELL)) == (asked, ())
    bench.run()
    made = store.probes(CELL)
    assert [each.recording.position for each in made] == list(range(len(bench.driver.drives)))
    report = search_report(store)
    assert report == limit_report(asked, {CELL.id: made})
    assert report.cells == (bench.state.limit(),)
    with pytest.raises(StoreError, match="already holds a search"):
        store.create(asked)


def test_a_probe_that_is_damaged_is_named(tmp_path: Path) -> None:
    (tmp_path / "probes" / CELL.slug).mkdir(parents=True)
    (tmp_path / "probes" / CELL.slug / "0003.json").write_text("{}")
    with pytest.raises(StoreError, match=r"0003\.json"):
        RunStore(tmp_path).probes(CELL)
