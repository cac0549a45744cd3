"""An experiment is resumed: what is refused, and that nothing of it changes what is stored."""

from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from redline.cli import exits, experiment
from redline.cli.experiment import Output, finish, finish_resumed
from redline.errors import UsageError
from redline.model import Verdict
from redline.ports import Placement
from redline.running.assembly import Workbench
from redline.running.record import Tools
from redline.running.session import RunSession, SessionEnd
from redline.storage.runs import RunStore, capacity_store
from tests.fakes import reports
from tests.fakes.plugins import FakeDriver, FakeLauncher
from tests.fakes.recordings import simulated_environment, simulated_run
from tests.fakes.searched import bench_in


class Place:
    """A workplace where nobody else measures."""

    def take_turn(self) -> None: ...

    def bench_for(self, _manifest: object) -> Workbench:
        tools = Tools(FakeLauncher([]), FakeDriver([]), lambda _server: (), Placement())
        return Workbench(tools, simulated_environment())


def resumed(folder: Path, output: Output, **more: Any) -> None:
    finish_resumed(folder, Place(), output, Console(quiet=True), **more)  # type: ignore[arg-type]


def test_a_gate_that_could_never_fail_leaves_the_stored_plan_as_it_was(tmp_path: Path) -> None:
    store, manifest = RunStore(tmp_path / "run"), simulated_run(trials=1).manifest
    suite = manifest.plan.suite.model_copy(update={"baseline": None, "baselines": {}})
    store.create(manifest.with_plan(manifest.plan.of_suite(suite)))
    before = store.manifest()
    with pytest.raises(UsageError, match="no baseline, so nothing is compared"):
        resumed(store.folder, Output("run", fail_on=(Verdict.SLOWER,)), trials=10)
    assert store.manifest() == before


def test_a_search_takes_no_further_starts(tmp_path: Path) -> None:
    bench_in(tmp_path / "kept")
    with pytest.raises(UsageError, match="holds a search, which takes no --more") as raised:
        resumed(tmp_path / "kept", Output("run", more_ns=1))
    assert raised.value.hint == "leave out --more"


def test_the_page_of_a_run_that_ends_at_its_capacity_is_that_of_the_capacity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, opened = capacity_store(tmp_path), list[Path]()
    monkeypatch.setattr(experiment, "open_page", lambda page, _console: opened.append(page))
    end = SessionEnd(((first, reports.healthy()),), interrupted=True)
    monkeypatch.setattr(RunSession, "execute", lambda *_of, **_how: end)
    session = RunSession(RunStore(tmp_path), Place().bench_for(None), {}, None)  # type: ignore[arg-type]
    with pytest.raises(typer.Exit) as raised:
        finish(session, Output("run", opens=True, is_brief=True), Console(width=500))
    assert raised.value.exit_code == exits.INTERRUPTED
    said = capsys.readouterr().out
    assert f"report {first.folder}\n" in said
    assert f"run --resume {tmp_path}\n" in said
    assert opened == [first.folder / "report.html"]
