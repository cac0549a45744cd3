"""`rest`: a machine on which nothing runs before each start but the first."""

from pathlib import Path
from typing import Any

import pytest

from redline.errors import UsageError
from redline.model import Run
from redline.ports import Placement
from redline.running import executors
from redline.running.executors import LocalExecutor
from redline.running.record import Tools
from redline.storage.runs import RunStore
from redline.suite import expected_length_ns, make_plan
from tests.fakes.catalogues import suite_of
from tests.fakes.plugins import FakeDriver, FakeLauncher, QuietListener
from tests.fakes.recordings import simulated_run

SUITE = """\
servers: [fam.plain, fam.layered]
baseline: fam.plain
scenarios: [Get]
loads: {steady: {open: {rate: 10/s}, for: 1s}}
trials: 3
design: interleaved
"""


def test_nothing_runs_before_each_start_but_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(executors.time, "sleep", lambda seconds: done.append(f"rest {seconds:g} s"))
    run = rested(simulated_run(trials=2, ceiling=None), 2_500_000_000)
    store = RunStore(tmp_path / "run")
    store.create(run.manifest)
    tools = Tools(FakeLauncher(done), FakeDriver([]), lambda _server: (), Placement())
    trials = run.manifest.plan.trials
    list(LocalExecutor(run.manifest.plan, tools, store, QuietListener()).execute(trials))
    starts = [step for step in done if step == "rest 2.5 s" or "start" in step]
    assert starts.count("rest 2.5 s") == len(trials) - 1
    assert starts[0] != "rest 2.5 s"


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_trial_is_told_whether_its_log_can_be_read_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    run, seen = simulated_run(trials=1, ceiling=None), list[bool]()
    monkeypatch.setattr(executors, "run_trial", lambda *args: seen.append(args[-1].log_is_kept))
    tools = Tools(FakeLauncher([]), FakeDriver([]), lambda _server: (), Placement())
    executor = LocalExecutor(run.manifest.plan, tools, RunStore(tmp_path), QuietListener(), is_kept)
    list(executor.execute(run.manifest.plan.trials))
    assert set(seen) == {is_kept}


def test_a_trial_whose_load_was_complete_at_ctrl_c_is_stored_before_the_run_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, stored = simulated_run(trials=2, ceiling=None), list[object]()

    def interrupted(*args: Any) -> Any:
        args[-1].on_stopped()
        return "recording"

    monkeypatch.setattr(executors, "run_trial", interrupted)
    tools = Tools(FakeLauncher([]), FakeDriver([]), lambda _server: (), Placement())
    executor = LocalExecutor(run.manifest.plan, tools, RunStore(tmp_path), QuietListener())
    with pytest.raises(KeyboardInterrupt):
        stored.extend(executor.execute(run.manifest.plan.trials))
    assert stored == ["recording"]


def test_a_suite_says_how_long_and_its_length_has_it(tmp_path: Path) -> None:
    plain, resting = (suite_of(tmp_path, f"{SUITE}{line}") for line in ("", "rest: 5s\n"))
    assert (plain.rest_ns, resting.rest_ns) == (0, 5_000_000_000)
    lengths = [expected_length_ns(make_plan(suite)) for suite in (plain, resting)]
    assert lengths[1] - lengths[0] == 5_000_000_000 * (len(make_plan(resting).trials) - 1)
    assert resting.for_search(2).rest_ns == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [("rest: 2h\n", "rest"), ("rest: soon\n", "rest"), ("budget: 60s\nrest: 5s\n", "a budget is spent by measuring")],
)
def test_a_rest_that_cannot_be_is_refused(tmp_path: Path, line: str, message: str) -> None:
    text = SUITE.replace("trials: 3\n", "") if "budget" in line else SUITE
    with pytest.raises(UsageError, match=message):
        suite_of(tmp_path, f"{text}{line}")


def rested(run: Run, rest_ns: int) -> Run:
    plan = run.manifest.plan
    plan = plan.model_copy(update={"suite": plan.suite.model_copy(update={"rest_ns": rest_ns})})
    return run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": plan})})
