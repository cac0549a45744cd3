"""Profiles as files for other tools: speedscope's published schema, and the lines that flamegraph.pl reads.

The schema is `file-format-schema.json` of the npm package speedscope 1.25 (MIT).
"""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from redline.cli.command_line import app
from redline.errors import UsageError
from redline.extras.profiling.texts import collapsed, speedscope
from redline.model import PlannedTrial, Run, Stack, Stacks, Thread
from redline.storage.runs import RunStore
from tests.fakes.behaviour import GOOD
from tests.fakes.profiles import TAPIR, VANILLA, profiled, profiled_start, stacks_of
from tests.fakes.recordings import SATURATE, simulated_recording, simulated_run
from tests.fakes.stored import kept
from tests.golden import FOLDER

FLAMEGRAPH_LINE = re.compile(r"^(.*)\s+?(\d+(?:\.\d*)?)$")
"""The pattern by which flamegraph.pl takes a line apart."""


def redline(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, args)])


def check_speedscope(content: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(content)
    jsonschema.validate(document, json.loads((FOLDER / "speedscope.schema.json").read_text()))
    return document


def with_profiled(run: Run, extra: list[PlannedTrial]) -> Run:
    """The run, with these profiled trials in its plan."""
    plan = run.manifest.plan.profiling(tuple(extra), ())
    return run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": plan})})


@pytest.fixture
def run(tmp_path: Path) -> RunStore:
    """Two servers with a profile of two trials each."""
    made = simulated_run({"http4s.vanilla": GOOD, "http4s.tapir": GOOD}, ceiling=None, loads=(SATURATE,), trials=1)
    cells = [*made.manifest.plan.cells.values()] * 2
    extra = [
        PlannedTrial(cell_id=cell.id, round=0, position=position, seed=position, profile="cpu")
        for position, cell in enumerate(cells, 100)
    ]
    store = kept(tmp_path / "run", with_profiled(made, extra))
    store.create_folder("profiles")
    for position, cell in enumerate(cells, 100):
        recording = profiled_start(cell, position=position, seed=position)
        store.save(recording, cell, profiled=True)
        assert recording.profile is not None
        assert recording.profile.sampled is not None
        assert recording.profile.stacks is not None
        mix = TAPIR if cell.variant.slug == "http4s.tapir" else VANILLA
        store.write(recording.profile.stacks, stacks_of(mix, recording.profile.sampled, seed=position).to_bytes())
    return store


def test_every_profile_fits_the_schema_of_speedscope(run: RunStore, tmp_path: Path) -> None:
    done = redline(run.folder, "--format", "speedscope", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [
        f"http4s.{name}.SimpleGet.saturate.cpu.speedscope.json" for name in ("tapir", "vanilla")
    ]
    for file in files:
        document = check_speedscope(file.read_text())
        assert document["profiles"][0]["endValue"] == sum(document["profiles"][0]["weights"]) > 30_000


def test_collapsed_stacks_have_all_samples_and_no_slices(run: RunStore, tmp_path: Path) -> None:
    done = redline(run.folder, "--format", "collapsed", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    for file in (tmp_path / "out").iterdir():
        tapir = "tapir" in file.name
        lines = [FLAMEGRAPH_LINE.match(line) for line in file.read_text().splitlines()]
        weights = {line[1]: int(line[2]) for line in lines if line}
        assert len(weights) == len(lines)
        recorded = [
            store_stacks
            for recording in run.profiled(run.manifest().plan)
            if recording.profile and recording.profile.stacks and ("tapir" in recording.cell_id) == tapir
            for store_stacks in [run.stacks(recording.profile.stacks)]
        ]
        assert sum(weights.values()) == sum(stacks.total for stacks in recorded)
        assert any("ServerInterpreter" in frames for frames in weights) == tapir


def test_several_profiles_need_a_folder(run: RunStore) -> None:
    refused = redline(run.folder, "--format", "collapsed").exception
    assert isinstance(refused, UsageError)
    assert "has 2 profiles, and a collapsed file holds a single profile" in refused.message
    assert "--format collapsed -o DIR" in refused.hint


def test_a_run_without_profiles_says_so(tmp_path: Path) -> None:
    made = simulated_run({"rust.hyper": GOOD}, trials=1)
    cell = next(iter(made.manifest.plan.cells.values()))
    extra = PlannedTrial(cell_id=cell.id, round=0, position=99, seed=1, profile="cpu")
    store = kept(tmp_path / "run", with_profiled(made, [extra]))
    assert "run has no profile\n" in str(redline(store.folder, "--format", "speedscope").exception)
    store.create_folder("profiles")
    store.save(profiled(simulated_recording(cell, position=99), samples=0), cell, profiled=True)
    assert "run has no profile with stacks" in str(redline(store.folder, "--format", "speedscope").exception)


def test_threads_are_together() -> None:
    stacks = Stacks({Stack(("a", "b c"), Thread("one", 1)): 2, Stack(("a", "b c"), Thread("two", 2)): 3, Stack(()): 9})
    assert collapsed(stacks) == b"a;b c 5\n"


def test_what_a_profiler_leaves_fits_the_schema_too() -> None:
    stacks = Stacks({Stack(("a", "b"), Thread("one", 1)): 2})
    for unit in ("samples", "bytes", "ns"):
        check_speedscope(speedscope(stacks, "name", unit).decode())
