"""The directory of a search: its question is written once, and so is the recording of every load."""

from pathlib import Path

import pytest

from redline.errors import StoreError
from redline.limits.report import limit_report
from redline.model import ServerFacts
from redline.running.views import search_report
from redline.storage.runs import RunStore
from tests.fakes.searched import CELL, bench_in
from tests.golden import FOLDER


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


@pytest.mark.parametrize("kept", [True, False])
def test_services_that_ran_through_all_starts_of_a_search_are_said(kept: bool) -> None:
    store = RunStore(FOLDER / "search-1")
    (cell,) = store.manifest().plan.cells.values()
    facts = ServerFacts(pid=1, command=(), port=1, build="", ready_ns=0, beside=("db",))
    probes = [
        made.model_copy(
            update={
                "recording": made.recording.model_copy(
                    update={"server": facts.model_copy(update={"kept": ("db",) if kept and made.start else ()})}
                )
            }
        )
        for made in store.probes(cell)
    ]
    starts = {made.start for made in probes}
    (found,) = limit_report(store.manifest(), {cell.id: probes}).cells
    said = [finding.message for finding in found.findings if finding.kind == "kept-services"]
    assert len(said) == kept
    assert not kept or f"started once for {len(starts)} starts of it" in said[0]
