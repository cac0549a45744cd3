"""`redline history` on stored runs: its output, what it leaves out, and when it fails."""

import json
import shutil
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner, Result

from redline.cli.command_line import app
from redline.cli.commands.history import gate
from redline.errors import RedlineError, StoreError, UsageError
from redline.history.over_runs import SeenRun, build_history, overlooked
from redline.model import Metric
from redline.model.history import History, LeftOut
from redline.storage.archive import open_archive
from redline.storage.runs import RunStore
from tests.fakes.histories import comparison, level_series, seen, stored_run
from tests.fakes.recordings import STEADY, simulated_environment
from tests.fakes.stored import kept
from tests.golden import FOLDER

SCHEMA = Path(__file__).parents[3] / "docs" / "reference" / "cli.schema.json"
SPEEDS = [2000.0] * 5 + [1700.0] * 2


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven runs, the last two slower, a link to the last, a damaged run, and something else."""
    folder = tmp_path_factory.mktemp("nights")
    for place, speed in enumerate(SPEEDS):
        stored_run(folder, place, speed=speed)
    (folder / "latest").symlink_to(folder / "run-06")
    (folder / "damaged").mkdir()
    (folder / "damaged" / "run.json").write_text("{")
    (folder / "notes" / "deep").mkdir(parents=True)
    return folder


def redline(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["history", *map(str, args)])


def test_a_regression_fails_and_is_reported(nights: Path) -> None:
    done = redline(nights, "--fail-on", "regression")
    assert done.exit_code == 3, done.output
    assert "2 metrics followed: 2 changed for the worse, 0 for the better, 0 did not change" in done.stdout
    assert "since run 6 of 7, run-05" in done.stdout
    assert "regression: rust.hyper.SimpleGet.saturate: throughput, since run-05\n" in done.stderr
    assert f"warn: left out: {nights / 'damaged'}: " in done.stderr
    assert "note: no run is in notes\n" in done.stderr
    assert "latest" not in done.output
    assert redline(nights).exit_code == 0


def test_an_older_change_is_accepted(tmp_path: Path) -> None:
    for place, speed in enumerate(SPEEDS):
        stored_run(tmp_path, place, speed=speed)
    assert redline(tmp_path, "--fail-on", "regression").exit_code == 3
    assert redline(tmp_path, "--fail-on", "regression", "--recent", "1").exit_code == 0


def test_a_regression_is_reported_once_and_again_when_it_grows(tmp_path: Path) -> None:
    for place, speed in enumerate(SPEEDS):
        stored_run(tmp_path, place, speed=speed)
    first = redline(tmp_path, "--fail-on", "new-regression")
    assert (first.exit_code, first.stderr.count("\nregression: ") + first.stderr.startswith("regression: ")) == (3, 2)
    stored_run(tmp_path, len(SPEEDS), speed=SPEEDS[-1])
    again = redline(tmp_path, "--fail-on", "new-regression")
    assert again.exit_code == 0, again.output
    assert "note: reported before: rust.hyper.SimpleGet.saturate: throughput, since run-05\n" in again.stderr
    assert redline(tmp_path, "--fail-on", "regression").exit_code == 3, "this remembers nothing"
    for place in range(len(SPEEDS) + 1, len(SPEEDS) + 4):
        stored_run(tmp_path, place, speed=SPEEDS[-1] * 0.8)
    assert redline(tmp_path, "--fail-on", "new-regression").exit_code == 3
    assert redline(tmp_path, "--fail-on", "new-regression").exit_code == 0


def test_without_a_regression_nothing_is_remembered(tmp_path: Path) -> None:
    for place in range(5):
        stored_run(tmp_path, place)
    assert redline(tmp_path, "--fail-on", "new-regression").exit_code == 0
    assert not (tmp_path / "reported.json").exists()


def test_damaged_memory_of_what_was_reported_is_an_error(nights: Path, tmp_path: Path) -> None:
    folder = tmp_path / "nights"
    shutil.copytree(nights, folder, symlinks=True)
    (folder / "reported.json").write_text("{")
    done = redline(folder, "--fail-on", "new-regression")
    assert isinstance(done.exception, RedlineError)
    assert "reported.json is cut off" in str(done.exception)
    assert "remove it: then all regressions are new" in str(done.exception)


def test_json_is_of_the_published_schema(nights: Path) -> None:
    done = redline(nights, "--json")
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    result = History.model_validate(document)
    assert [run.name for run in result.runs] == [f"run-{place:02}" for place in range(7)]
    assert result.foreign == ("notes",)
    assert [cell.metric.value for cell in result.cells if cell.regressed] == ["throughput", "cpu-per-request"]


def test_markdown_for_a_pull_request(nights: Path) -> None:
    done = redline(nights, "--format", "md")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("## History\n")
    assert "since run 6 of 7, run-05" in done.stdout


def test_cells_are_selected(nights: Path) -> None:
    assert len(History.model_validate_json(redline(nights, "-s", "rust.*", "--json").stdout).cells) == 2
    done = redline(nights, "-m", "Post*")
    assert isinstance(done.exception, UsageError)
    assert "no cell of the runs below" in str(done.exception)


def test_a_run_is_a_history_of_one(nights: Path) -> None:
    done = redline(nights / "run-00", "--fail-on", "regression")
    assert done.exit_code == 0, done.output
    assert "there is nothing to compare it with yet" in " ".join(done.stdout.split())
    assert "note: nothing is judged yet: the era has 1 of the 4 runs that it takes\n" in done.stderr


def test_an_empty_directory_says_so_and_is_no_pass(tmp_path: Path) -> None:
    assert "no run below" in redline(tmp_path).stdout
    done = redline(tmp_path, "--fail-on", "regression")
    assert isinstance(done.exception, RedlineError)
    assert (done.exception.exit_code, "nothing could be judged" in str(done.exception)) == (1, True)


def test_no_directory_is_reported(tmp_path: Path) -> None:
    done = redline(tmp_path / "nowhere")
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2
    assert str(done.exception).startswith(f"there is no directory {tmp_path / 'nowhere'}\n")


def test_what_the_last_run_lacks_is_no_pass() -> None:
    runs = [seen(place, one) for place, one in enumerate(level_series([1000.0] * 5, 1))]
    with pytest.raises(RedlineError, match=r"the last run does not show everything: .*the cell is invalid"):
        gate(build_history("runs", [*runs, seen(5, "the cell is invalid")]), None)


NO_NUMBER = "not measured"


def of_two_suites(*says: tuple[str, bool]) -> History:
    """Consecutive runs of these suites, with or without a number for the cell."""
    levels = level_series([1000.0] * len(says), 1)
    return build_history(
        "runs",
        [seen(place, levels[place] if shows else NO_NUMBER, suite=suite) for place, (suite, shows) in enumerate(says)],
    )


def another(history: History, place: int) -> History:
    """With a run of something else, which does not have the cell, as the last run."""
    last = seen(place, "", suite="else")
    run = build_history("runs", [SeenRun(**{**vars(last), "cells": {}})]).runs[0]
    return history.model_copy(update={"runs": (*history.runs, run)})


@pytest.mark.parametrize(
    "says",
    [
        [("a", True)] * 4 + [("b", False)],  # another suite without a number for a cell of this one
        [("b", False)],  # nothing to compare it with
        [("b", False), ("a", True)],
    ],
)
def test_a_run_of_something_else_does_not_fail_the_gate(says: list[tuple[str, bool]]) -> None:
    gate(another(of_two_suites(*says), len(says)), None)


@pytest.mark.parametrize(
    "says", [[("a", True)] * 4 + [("a", False)], [("a", True), ("b", True), ("b", False)], [("a", True), ("b", False)]]
)
def test_the_last_run_of_a_suite_has_to_show_what_it_showed(says: list[tuple[str, bool]]) -> None:
    found = of_two_suites(*says)
    with pytest.raises(RedlineError, match=f"run-{len(says) - 1:02}: .*{NO_NUMBER}"):
        gate(found, None)
    if says[-1][0] == says[-2][0]:
        with pytest.raises(RedlineError, match=f"run-{len(says) - 1:02}: .*{NO_NUMBER}"):
            gate(another(found, len(says)), None)


def test_a_run_that_is_still_going_is_left_out(tmp_path: Path) -> None:
    for place in range(5):
        stored_run(tmp_path, place)
    (tmp_path / "started" / "capacity").mkdir(parents=True)
    stored_run(tmp_path, 5)
    (tmp_path / "run-05").rename(tmp_path / "started" / "run-05")
    shutil.move(tmp_path / "started" / "run-05" / "run.json", tmp_path / "started" / "capacity" / "run.json")
    shutil.rmtree(tmp_path / "started" / "run-05")
    for file in (tmp_path / "run-04" / "recordings").iterdir():
        file.unlink()
    with RunStore(tmp_path / "run-04").locked(), RunStore(tmp_path / "started").locked():
        done = redline(tmp_path, "--fail-on", "regression")
        assert done.exit_code == 0, done.output
        for name in ("run-04", "started"):
            assert f"note: left out: {tmp_path / name}: is still being measured\n" in done.stderr
    done = redline(tmp_path, "--fail-on", "regression")  # it was broken off
    assert isinstance(done.exception, RedlineError)
    assert done.exception.exit_code == 1


def test_a_new_era_is_reported_and_fails_nothing(tmp_path: Path) -> None:
    other = simulated_environment().model_copy(update={"cpu_model": "Another CPU"})
    for place in range(5):
        stored_run(tmp_path, place, speed=2000.0 if place < 4 else 1000.0, environment=other if place == 4 else None)
    done = redline(tmp_path, "--fail-on", "regression")
    assert done.exit_code == 0, done.output
    assert "a new era" in done.stdout
    assert "the era has 1 of the 4 runs" in done.stderr


def test_a_capacity_is_no_run_by_itself(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    stored_run(tmp_path, 0)
    shutil.copytree(tmp_path / "run-00", whole / "capacity")
    shutil.copytree(tmp_path / "run-00" / "recordings", whole / "recordings")
    shutil.copy(tmp_path / "run-00" / "run.json", whole / "run.json")
    shutil.copytree(tmp_path / "run-00", part / "capacity")
    found = open_archive(tmp_path)
    assert [store.folder.name for store in found.runs] == ["run-00", "whole"]
    assert [(Path(one.folder).name, one.reason, one.suite) for one in found.left_out] == [
        ("part", "has been measured no further than its capacity", "simulated")
    ]


def test_a_folder_that_may_not_be_looked_into_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored_run(tmp_path, 0)
    (tmp_path / "private").mkdir()
    is_file = Path.is_file

    def refused(file: Path) -> bool:
        if file.parent.name == "private":
            raise PermissionError(13, "Permission denied", str(file))
        return is_file(file)

    monkeypatch.setattr(Path, "is_file", refused)
    found = open_archive(tmp_path)
    assert [store.folder.name for store in found.runs] == ["run-00"]
    assert [(Path(one.folder).name, one.reason) for one in found.left_out] == [("private", "Permission denied")]
    with pytest.raises(StoreError, match="Permission denied"):
        open_archive(tmp_path / "private")


def test_runs_are_found_in_folders_of_folders(tmp_path: Path) -> None:
    stored_run(tmp_path / "2026" / "11", 0)
    (tmp_path / ".hidden").mkdir()
    found = open_archive(tmp_path)
    assert [store.folder.name for store in found.runs] == ["run-00"]
    assert found.foreign == ()


def test_a_damaged_histogram_leaves_its_cell_out(tmp_path: Path) -> None:
    for place in range(2):
        stored_run(tmp_path, place)
    file = min((tmp_path / "run-01" / "recordings").iterdir())
    recording = json.loads(file.read_text())
    text = recording["traffic"]["response"]
    recording["traffic"]["response"] = text[:40] + "AAAA" + text[44:]
    file.write_text(json.dumps(recording))
    done = redline(tmp_path)
    assert done.exit_code == 0, done.output
    assert done.output.count("the cell is invalid") == 2


def broken(folder: Path) -> None:
    """One recording of the run is cut off."""
    file = min((folder / "recordings").iterdir())
    file.write_text(file.read_text()[:100])


@pytest.mark.parametrize("place", [0, 4])
def test_a_gate_does_not_pass_on_an_older_run_than_the_one_that_cannot_be_read(tmp_path: Path, place: int) -> None:
    for day in range(5):
        stored_run(tmp_path, day)
    broken(tmp_path / f"run-{place:02}")
    assert redline(tmp_path).exit_code == 0
    done = redline(tmp_path, "--fail-on", "regression")
    if place == 0:
        assert done.exit_code == 0, done.output
    else:
        assert isinstance(done.exception, RedlineError)
        assert done.exception.exit_code == 1
        assert "the last run does not show everything: run-04" in str(done.exception)
        assert f"redline report {tmp_path / 'run-04'}" in str(done.exception)


def test_a_gate_does_not_pass_where_nobody_knows_when_the_damaged_run_was_made(nights: Path) -> None:
    done = redline(nights, "--fail-on", "regression", "--recent", "1")
    assert isinstance(done.exception, RedlineError)
    assert (done.exception.exit_code, str(nights / "damaged") in str(done.exception)) == (1, True)


def test_a_gate_does_not_pass_on_a_run_that_came_no_further_than_its_capacity(tmp_path: Path) -> None:
    for day in range(3):
        stored_run(tmp_path, day)
    (tmp_path / "broken-off").mkdir()
    stored_run(tmp_path, 3)
    (tmp_path / "run-03").rename(tmp_path / "broken-off" / "capacity")
    done = redline(tmp_path, "--fail-on", "regression")
    assert isinstance(done.exception, RedlineError)
    assert "has been measured no further than its capacity" in str(done.exception)


def test_the_newest_run_is_the_newest_of_its_suite() -> None:
    def day(place: int, suite: str) -> LeftOut:
        return LeftOut(folder="runs/bad", reason="cut off", suite=suite, started_unix_ns=started[place])

    runs = [seen(0, "no", suite="a"), seen(2, "no", suite="a"), seen(4, "no", suite="b")]
    started = {place: run.started_unix_ns for place, run in zip((0, 2, 4), runs, strict=True)}
    assert overlooked(build_history("runs", runs, [day(4, "a")]))
    assert overlooked(build_history("runs", runs, [day(0, "c")]))
    assert not overlooked(build_history("runs", runs, [day(0, "a"), day(2, "b")]))


def test_an_open_load_is_followed_by_its_p99(tmp_path: Path) -> None:
    for place in range(2):
        stored_run(tmp_path, place, loads=(STEADY,))
    result = History.model_validate_json(redline(tmp_path, "--json").stdout)
    assert [cell.metric.value for cell in result.cells] == ["p99", "cpu-per-request"]


def test_a_comparison_says_that_a_run_is_still_going(tmp_path: Path) -> None:
    for place in range(2):
        stored_run(tmp_path, place)
    runs = [str(tmp_path / f"run-{place:02}") for place in range(2)]
    with RunStore(tmp_path / "run-01").locked():
        done = CliRunner().invoke(app, ["compare", *runs])
    assert done.exit_code == 0, done.output
    assert f"warn: {runs[1]} is still being measured: only what it has so far was compared\n" in done.stderr
    assert "is still being measured" not in CliRunner().invoke(app, ["compare", *runs]).output


def test_searches_are_no_runs(nights: Path, tmp_path: Path) -> None:
    shutil.copytree(nights, tmp_path / "nights")
    shutil.copytree(FOLDER / "search-1", tmp_path / "nights" / "search")
    result = History.model_validate_json(redline(tmp_path / "nights", "--json").stdout)
    assert result.foreign == ("notes", "search")


def test_steps_of_a_bisection_are_no_runs_to_follow(tmp_path: Path) -> None:
    """Also of one that was interrupted before its first measurement was over."""
    for name, step in (("done", "0001-aaaaaaaaa"), ("interrupted", "0001-bbbbbbbbb")):
        steps = tmp_path / name / "steps"
        steps.mkdir(parents=True)
        stored_run(steps, 0, speed=1000.0)
        (steps / "run-00").rename(steps / step)
    (tmp_path / "done" / "bisect.json").write_text("{}")
    stored_run(tmp_path, 0, speed=1000.0)
    found = open_archive(tmp_path)
    assert ([run.folder.name for run in found.runs], found.left_out, found.foreign) == (["run-00"], (), ())
    assert open_archive(tmp_path / "done").runs == ()


def test_ratios_of_comparisons_are_followed(tmp_path: Path) -> None:
    for place, factor in enumerate([1.0] * 5 + [1.05] * 2):
        kept(tmp_path / f"run-{place:02}", comparison(place, factor))
    done = redline(tmp_path, "--fail-on", "regression")
    assert done.exit_code == 3, done.output
    assert "B.home.load against A" in done.stdout
    assert "since run 6 of 7, run-05" in done.stdout
    assert "regression: B.home.load against A: cpu-per-request, since run-05\n" in done.stderr
    history = History.model_validate_json(redline(tmp_path, "--json").stdout)
    ratio = next(cell for cell in history.cells if cell.metric is Metric.CPU_PER_REQUEST)
    assert ratio.last is not None
    assert (ratio.baseline, ratio.last.unit, ratio.last.n) == ("A", "ratio", 6)
    assert redline(tmp_path, "-s", "A").exit_code != 0, "B is compared, not A"
