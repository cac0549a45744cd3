"""`redline judge`: an old run by today's rules, and the reported differences."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from redline.analysis import build_report
from redline.analysis.rejudged import rejudged, validity_changes
from redline.cli.command_line import app
from redline.cli.contracts import JudgeResult
from redline.errors import StoreError, UsageError
from redline.model import Finding, FindingKind, Grade, Report, Run
from redline.running.views import write_run_views
from redline.storage.runs import RunStore, capacity_store
from tests.fakes.behaviour import GOOD
from tests.fakes.compared import compared_run
from tests.fakes.compared_runs import two_compared
from tests.fakes.recordings import SATURATE, simulated_run
from tests.golden import FOLDER

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "cli.schema.json"
RUN = simulated_run({"rust.hyper": replace(GOOD, steal=0.3)}, trials=3, loads=(SATURATE,), ceiling=None)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    """A run with its views, as `redline run` leaves it."""
    made = RunStore(tmp_path / "run")
    made.create(RUN.manifest)
    for recording in RUN.recordings:
        made.save(recording, RUN.manifest.plan.cells[recording.cell_id])
    write_run_views(made)
    return made


def redline(store: RunStore | Path, *flags: str) -> Result:
    return CliRunner().invoke(app, ["judge", str(store.folder if isinstance(store, RunStore) else store), *flags])


def otherwise(store: RunStore) -> None:
    """As if it had been judged by rules without steal, which took its trials for wrong answers."""
    report = Report.model_validate_json((store.folder / "results.json").read_bytes())
    (cell,) = report.cells
    kept = [one for one in cell.findings if one.kind != "cpu-steal"]
    kept.append(finding("wrong-answers", Grade.INVALID, cell.cell_id))
    few = [one for one in kept if one.kind == "too-few-trials"]
    kept = [one for one in kept if one not in few] + [each.model_copy(update={"grade": Grade.INVALID}) for each in few]
    changed = cell.model_copy(update={"findings": tuple(kept), "valid": False})
    store.write("results.json", report.model_copy(update={"cells": (changed,)}).model_dump_json().encode())


def finding(kind: FindingKind, grade: Grade, cell_id: str, position: int | None = 0) -> Finding:
    return Finding(kind=kind, grade=grade, message="as it was", advice="none", cell_id=cell_id, position=position)


def test_the_same_rules_find_the_same(store: RunStore) -> None:
    done = redline(store)
    assert done.exit_code == 0, done.output
    assert "results.json has the same findings" in done.stdout
    assert "! warn  cpu-steal in 3 trials (0, 1, 2): " in done.stdout


def test_other_rules_are_reported(store: RunStore) -> None:
    otherwise(store)
    done = redline(store, "--json")
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    result = JudgeResult.model_validate(document)
    changes = {(one.kind, one.position): (one.change, one.before, one.after) for one in result.changes}
    steal = {position: changes["cpu-steal", position] for position in range(3)}
    assert steal == dict.fromkeys(range(3), ("new", None, Grade.WARN))
    assert changes["wrong-answers", 0] == ("gone", Grade.INVALID, None)
    assert [(one.valid_before, one.valid_after) for one in result.turned] == [(False, True)]
    assert not result.written
    said = redline(store).stdout
    assert "against results.json: 3 new, 1 gone" in said
    assert "rust.hyper.SimpleGet.saturate can be used again" in said
    assert "new: warn cpu-steal, rust.hyper.SimpleGet.saturate, trial 2: " in said


def test_writing_renews_the_views(store: RunStore) -> None:
    otherwise(store)
    done = redline(store, "--write")
    assert "3 new, 1 gone" in done.stdout
    assert "report.html, results.csv and results.json are renewed" in done.stdout
    assert "results.json has the same findings" in redline(store).stdout


def test_a_run_that_is_being_written_is_not_renewed(store: RunStore) -> None:
    with store.locked():
        assert redline(store).exit_code == 0
        assert isinstance(redline(store, "--write").exception, StoreError)


def test_old_runs_are_judged_though_nothing_says_how_they_were() -> None:
    name = "run-1"
    done = redline(FOLDER / name, "--json")
    assert done.exit_code == 0, done.output
    result = JudgeResult.model_validate_json(done.stdout)
    assert result.not_compared == "it has no results.json"
    assert not (FOLDER / name / "results.json").exists()
    assert "not compared with how it was judged: it has no results.json" in redline(FOLDER / name).stdout


def test_results_that_cannot_be_read_are_reported(store: RunStore) -> None:
    store.write("results.json", b'{"format": "redline.report/99"}')
    result = JudgeResult.model_validate_json(redline(store, "--json").stdout)
    assert result.not_compared.endswith("results.json has the format redline.report/99, and holds no report")
    assert result.changes == ()


def test_a_finding_is_the_same_when_only_its_words_differ() -> None:
    now = build_report(RUN)
    reworded = reported(RUN, lambda one: one.model_copy(update={"message": "in other words"}))
    assert rejudged(reworded, now) == ()
    assert validity_changes(reworded, now) == ()
    graver = reported(RUN, lambda one: one.model_copy(update={"grade": Grade.NOTE}))
    assert {one.change for one in rejudged(graver, now)} == {"graded otherwise"}
    assert {(one.before, one.after) for one in rejudged(graver, now) if one.kind == "cpu-steal"} == {
        (Grade.NOTE, Grade.WARN)
    }


def test_findings_of_duets_are_judged_like_those_of_trials() -> None:
    now = build_report(compared_run(starts=3))
    (compared,) = {known.cell_id for known in now.comparisons}
    assert [found.kind for found in now.findings[compared]] == ["few-starts"]
    duets = [known.duet.model_copy(update={"findings": ()}) if known.duet else None for known in now.comparisons]
    known = [known.model_copy(update={"duet": duet}) for known, duet in zip(now.comparisons, duets, strict=True)]
    before = now.model_copy(update={"comparisons": tuple(known)})
    assert [(change.change, change.kind) for change in rejudged(before, now)] == [("new", "few-starts")]


def test_levels_of_a_run_are_not_compared_with_the_ratios_of_another() -> None:
    with pytest.raises(UsageError, match="has duets alone, which give ratios and no levels to compare"):
        two_compared(compared_run(starts=3), RUN, anyway=False)


def reported(run: Run, change: Callable[[Finding], Finding]) -> Report:
    """The run's report, with every finding changed by this function."""
    made = build_report(run)
    cells = [cell.model_copy(update={"findings": tuple(map(change, cell.findings))}) for cell in made.cells]
    return made.model_copy(update={"cells": tuple(cells)})


@pytest.mark.parametrize("going", [True, False])
def test_a_run_whose_capacity_is_being_measured_is_not_resumed(tmp_path: Path, *, going: bool) -> None:
    first = capacity_store(tmp_path / "run")
    first.create(simulated_run(trials=1).manifest)
    with first.locked() if going else nullcontext():
        error = redline(tmp_path / "run").exception
    assert isinstance(error, StoreError)
    assert ("is being measured" in error.message) == going
    assert ("--resume" in error.hint) == (not going)
    assert f"report {first.folder}" in error.hint
