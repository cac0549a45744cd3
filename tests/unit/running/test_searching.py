"""The same resume for all that is stored: the manifest says what continues."""

from pathlib import Path

import pytest

from redline.errors import TakenError, UsageError
from redline.model import Manifest
from redline.running.searching import SearchSession, resume
from redline.running.session import RunSession
from redline.storage.runs import RunStore
from tests.fakes.compared import compared_run
from tests.fakes.recordings import simulated_run
from tests.fakes.searched import bench_in
from tests.fakes.stored import kept


@pytest.fixture(params=["run", "comparison", "search"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RunStore:
    if request.param == "search":
        bench_in(tmp_path / "kept")
        return RunStore(tmp_path / "kept")
    return kept(tmp_path / "kept", compared_run() if request.param == "comparison" else simulated_run(trials=1))


def test_the_manifest_says_which_session_goes_on(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[tuple[str, Path]]()

    def open_as(name: str) -> object:
        def opening(_cls: object, folder: Path, *_more: object) -> str:
            opened.append((name, folder))
            return name

        return classmethod(opening)

    monkeypatch.setattr(RunSession, "resume", open_as("run"))
    monkeypatch.setattr(SearchSession, "resume", open_as("search"))
    resume(store.folder, no_bench, None)  # type: ignore[arg-type]
    assert opened == [("search" if store.kind == "search" else "run", store.folder)]


def test_a_search_gets_neither_trials_nor_time(tmp_path: Path) -> None:
    bench_in(tmp_path / "kept")
    with pytest.raises(UsageError, match="holds a search, which takes no --trials"):
        resume(tmp_path / "kept", no_bench, None, trials=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="holds a search, which takes no --for"):
        resume(tmp_path / "kept", no_bench, None, budget_ns=5)  # type: ignore[arg-type]


def test_a_directory_names_its_kind_and_the_command_that_goes_on(store: RunStore) -> None:
    command = {"run": "run", "comparison": "ab", "search": "limit"}[store.kind]
    with pytest.raises(TakenError, match=f"redline {command} --resume {store.folder};"):
        store.check_free()


def no_bench(_manifest: Manifest) -> object:
    raise AssertionError("nothing is started here")
