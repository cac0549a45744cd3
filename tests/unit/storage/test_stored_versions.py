"""Runs stored by every version of the format are still read, and give the same report.

A stored run is never made again: it stands for users' runs. Only a run whose folder is gone is made.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.errors import NotStoredError
from redline.model import (
    Body,
    Closed,
    Expected,
    Load,
    LoadStage,
    Open,
    Recording,
    Request,
    Run,
    Scenario,
    StoredRecordings,
    Timestamp,
)
from redline.model.limits import LimitReport
from redline.render import RENDERERS
from redline.running.views import search_report
from redline.storage.earlier import todays_manifest
from redline.storage.reports import read_report
from redline.storage.runs import RunStore, stored_json
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import MEASURE_NS, simulated_run
from tests.fakes.searched import bench_in
from tests.golden import FOLDER, check

EXCHANGE = Scenario(
    name="Mixed",
    request=Request(
        weight=3,
        path="/items/{pick:ids.txt}?n={seq}",
        headers={"Cookie": ("a=1", "b={rand:1..9}")},
        expect=Expected(json_values={"/total": 3}),
        timestamp=Timestamp(pointer="/now", unit="ms"),
    ),
    others=(Request(method="POST", body=Body(text='{"n": {seq}}'), timestamp=Timestamp(pointer="/now", unit="us")),),
    picks={"ids.txt": ("1", "2")},
)
STAGED = Closed(users=1, depth=2, requests_per_connection=100, stages=(LoadStage(to=3, over_ns=MEASURE_NS),))
REPLAYED = Open(rate_per_s=200, connections=4, connections_at_start=2, stages=(LoadStage(to=100, over_ns=0),))
LOADS = (
    Load(name="staged", shape=STAGED, duration_ns=MEASURE_NS, count=100_000),
    Load(name="stepped", shape=REPLAYED, duration_ns=MEASURE_NS),
)


def test_a_run_of_version_1_is_read() -> None:
    folder = FOLDER / "run-1"
    if not folder.exists():
        _store(folder)
    run = RunStore(folder).run()
    assert run.complete
    assert {recording.format for recording in run.recordings} == {"redline.recording/1"}
    for recording in run.recordings:
        assert recording.traffic is not None
        assert recording.traffic.response.count == recording.traffic.counts.outcomes.total
    assert all(cell.scenario == EXCHANGE for cell in run.manifest.plan.cells.values())
    assert {cell.load for cell in run.manifest.plan.cells.values()} == set(LOADS)
    assert all(cell_id == cell.id for cell_id, cell in run.manifest.plan.cells.items())
    (staged, *_) = build_report(run).cells
    assert [time.name for time in staged.other_times] == ["handshake", "to server", "from server"]
    check("run-1.csv", RENDERERS["csv"](build_report(run)))


def test_what_they_were_stored_with_is_in_the_checkout() -> None:
    """Without their directories the tests of this module could not fail."""
    assert len(list((FOLDER / "run-1" / "recordings").glob("*.json"))) == 4
    assert len(list((FOLDER / "search-1" / "probes").rglob("*.json"))) >= 10


def test_a_search_of_version_1_is_read(tmp_path: Path) -> None:
    folder = FOLDER / "search-1"
    if not folder.exists():
        _store_search(folder)
    store = RunStore(folder)
    (cell,) = store.manifest().plan.cells.values()
    made = store.probes(cell)
    assert {each.phase for each in made} == {"warmup", "approach", "search", "confirm", "curve", "overload"}
    assert sum(each.again for each in made) == 0
    report = search_report(store)
    assert [found.ended for found in report.cells] == ["converged"]
    check("search-1.json", stored_json(report))
    resumed = tmp_path / "resumed"
    shutil.copytree(folder, resumed)
    for file in sorted((resumed / "probes" / cell.slug).iterdir())[5:]:
        file.unlink()
    rest = search_report(RunStore(resumed))
    assert [(found.ended, len(found.probes)) for found in rest.cells] == [("interrupted", 3)]


def _store_search(folder: Path) -> None:
    bench = bench_in(folder, beyond=True)
    bench.run()
    shutil.rmtree(folder / "logs")


def _store(folder: Path) -> None:
    behaviour = replace(GOOD, rate_per_s=500.0, handshake_ns=1.5e6, clock_ahead_ns=2e6)
    servers = {"rust.hyper": behaviour}
    run = simulated_run(servers, trials=2, scenarios=(EXCHANGE,), loads=LOADS, ceiling=None)
    store = RunStore(folder)
    store.create(run.manifest)
    for recording in run.recordings:
        store.save(recording, run.manifest.plan.cells[recording.cell_id])


def test_recordings_are_read_when_they_are_looked_at() -> None:
    read = list[int]()

    def look(position: int) -> Recording:
        read.append(position)
        return RunStore(FOLDER / "run-1").recordings()[position]

    run = Run(manifest=RunStore(FOLDER / "run-1").manifest(), recordings=StoredRecordings(range(4), look))
    assert run.complete
    assert read == []
    assert run.recordings[2].position == 2
    assert read == [2]


EARLIER = FOLDER / "earlier"
"""Written by the code of November 2026 before 0.1.0 (the commits of the first two days), and never made again."""


def test_a_run_of_before_0_1_0_is_read_and_marked() -> None:
    report = build_report(RunStore(EARLIER / "run").run())
    assert report.run.complete
    assert all(cell.valid for cell in report.cells)
    assert report.unrecorded == (
        "which build of the engine measured",
        "how much servers logged",
        "how fast the cores were",
        "the CPU time of servers at both ends of a measurement",
    )
    for form in ("html", "md"):
        assert "What a version before 0.1.0 did not record" in RENDERERS[form](report).decode()
    assert build_report(RunStore(FOLDER / "run-1").run()).unrecorded == ()


def test_a_search_of_before_0_1_0_is_read_and_marked() -> None:
    store = RunStore(EARLIER / "search")
    assert (store.exists, store.kind) == (True, "search")
    report = search_report(store)
    assert [(cell.ended, len(cell.probes)) for cell in report.cells] == [("interrupted", 3)]
    assert "how fast the cores were" in report.unrecorded
    assert "What a version before 0.1.0 did not record" in RENDERERS["md"](report).decode()


def test_the_report_of_a_search_of_before_0_1_0_is_read() -> None:
    assert isinstance(read_report(EARLIER / "limit.json"), LimitReport)


@pytest.mark.parametrize("path", ["comparison", "comparison/ab.json"])
def test_a_comparison_of_before_0_1_0_is_refused_by_its_version(path: str) -> None:
    with pytest.raises(NotStoredError, match=r"a comparison by a version before 0\.1\.0") as refused:
        read_report(EARLIER / path) if path.endswith("json") else RunStore(EARLIER / path).manifest()
    assert "results.md" in refused.value.hint


@pytest.mark.parametrize("stored", [{}, {"plan": 1}, {"plan": {"cells": [1]}}, {"plan": {"cells": {"a": 1}}}])
def test_what_no_version_stored_stays_as_it_is(stored: dict[str, object]) -> None:
    assert todays_manifest(stored) == stored


def test_a_run_of_a_later_version_is_not_taken_for_an_earlier_one(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "run-1", tmp_path / "run")
    file = tmp_path / "run" / "run.json"
    file.write_text(file.read_text().replace('"name": "', '"later": 1, "name": "', 1))
    with pytest.raises(NotStoredError, match="later: Extra inputs are not permitted"):
        RunStore(tmp_path / "run").manifest()
