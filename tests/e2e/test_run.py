"""`redline run` as a user meets it: from suite to report, with bad servers and wrong arguments."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from redline.model import COMPARED, Grade, Metric, Recording, Report, Run, Verdict
from redline.storage.runs import RunStore
from tests.e2e.conftest import Done, Redline
from tests.e2e.lab import Lab
from tests.e2e.recorded import answered

pytestmark = pytest.mark.e2e


@pytest.fixture
def lab(redline: Redline, oracle: Path) -> Lab:
    return Lab(redline.folder, oracle)


def run(redline: Redline, suite: Path, *more: str | Path) -> tuple[Done, Report]:
    """Run it. Whether a cell is valid depends on the machine too; the exit code agrees with the report."""
    done = redline("run", suite, "-o", redline.folder / "out", "--json", *more)
    assert "Traceback" not in done.err
    report = Report.model_validate_json(done.out)
    if not any(cell.valid for cell in report.cells):
        assert done.code == 1, done.err
    return done, report


def measured(redline: Redline, report: Report) -> list[str]:
    """The servers in whose cells every trial was made, with answers, valid or not."""
    trials = Counter(answered(redline.folder / "out"))
    return [cell.server for cell in report.cells if trials[cell.server] == cell.trials_planned]


def stored(redline: Redline) -> Run:
    return RunStore(redline.folder / "out").run()


def test_a_token_that_expires_in_the_middle_of_a_trial(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("bad.expires", scenario="WithToken", trials=1)
    suite.write_text(suite.read_text().replace("for: 300ms", "for: 4s"))
    done, report = run(redline, suite)
    assert done.code == 1
    (finding,) = (each for each in report.cells[0].findings if each.kind == "wrong-answers")
    assert finding.grade is Grade.INVALID
    assert "; 4xx, the first after 1." in finding.message
    assert "a token that expired" in finding.advice


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, oracle: Path) -> tuple[Redline, Report]:
    """Two servers that were compared in five rounds."""
    redline = Redline(tmp_path_factory.mktemp("compared"))
    lab = Lab(redline.folder, oracle)
    _, report = run(redline, lab.suite("good.one, good.two", trials=5, more="baseline: good.one"))
    return redline, report


def test_a_suite_becomes_a_report(compared: tuple[Redline, Report]) -> None:
    redline, report = compared
    assert report.run.complete
    assert measured(redline, report) == ["good.one", "good.two"]
    assert [comparison.metric for comparison in report.comparisons] == list(COMPARED)
    primary = [comparison for comparison in report.comparisons if comparison.primary]
    assert [comparison.metric for comparison in primary] == [Metric.THROUGHPUT, Metric.CPU_PER_REQUEST]
    assert all((comparison.verdict in set(Verdict)) != bool(comparison.refused) for comparison in primary)
    for cell in report.cells:
        used = sum(trial.used for trial in cell.trials)
        assert cell.counts.outcomes.total == cell.counts.due
        assert cell.response.count == (0 if cell.hides(Metric.P50) else cell.counts.due)
        assert {estimate.n for estimate in cell.estimates.values()} <= {used}
    out = redline.folder / "out"
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    assert Report.model_validate_json((out / "results.json").read_bytes()) == report
    assert len(list(csv.reader((out / "results.csv").read_text().splitlines()))) > 2


def test_each_trial_has_a_fresh_server_in_interleaved_order(compared: tuple[Redline, Report]) -> None:
    recordings = stored(compared[0]).recordings
    assert len({recording.server.pid for recording in recordings if recording.server}) == 10
    rounds = [recording.round for recording in recordings]
    assert rounds == sorted(rounds)
    for index in range(5):
        assert len({recording.cell_id for recording in recordings if recording.round == index}) == 2


def test_what_the_lab_adds_to_a_trial_is_recorded(compared: tuple[Redline, Report]) -> None:
    recordings = stored(compared[0]).recordings
    assert recordings
    for recording in recordings:
        assert set(recording.stages_ns) == {"launch", "verify", "load", "stop"}
        assert recording.find("cpu_ns", "server") is not None
        assert recording.find("cpu_ns", "engine") is not None
        assert recording.find("busy_ns", "machine") is not None


def test_recordings_of_this_version_can_be_read(compared: tuple[Redline, Report]) -> None:
    files = list((compared[0].folder / "out" / "recordings").glob("*.json"))
    assert len(files) == 10
    for file in files:
        assert Recording.model_validate_json(file.read_bytes()).format == "redline.recording/1"


def test_flags_select_and_override(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one, good.two")
    _, report = run(redline, suite, "-s", "*.two", "-m", "SimpleGet", "-u", "2", "-d", "200ms", "--trials", "1")
    (cell,) = report.cells
    assert cell.server == "good.two"
    assert "2 users" in cell.load_text
    assert report.run.trials_planned == 1


@pytest.mark.parametrize(
    ("server", "scenario", "words"),
    [
        ("bad.exits", "Ok", ["no configuration found"]),
        ("bad.crashes", "Ok", ["SIGSEGV"]),
        ("bad.silent", "Ok", ["ready"]),
        ("bad.wrong", "Ok", ["404"]),
        ("bad.taken", "Ok", ["port"]),
        ("good.one", "Wrong", ["something else", "path0"]),
    ],
)
def test_a_bad_server_costs_only_its_own_cells(
    redline: Redline, lab: Lab, server: str, scenario: str, words: list[str]
) -> None:
    done, report = run(redline, lab.suite(server, scenario=scenario, trials=1))
    assert done.code == 1, done.err
    (cell,) = report.cells
    assert not cell.valid
    messages = " ".join(finding.message for finding in cell.findings)
    for word in words:
        assert word in messages + done.err


def test_a_server_that_dies_under_load_is_a_finding_with_its_last_words(redline: Redline, lab: Lab) -> None:
    done, report = run(redline, lab.suite("bad.dying", scenario="Ok", trials=1))
    assert done.code == 1
    assert "server-died" in {finding.kind for finding in report.cells[0].findings}
    (recording,) = stored(redline).recordings
    assert recording.failure is not None
    assert "out of patience" in recording.failure.log_tail


def test_good_cells_stand_beside_bad_ones(redline: Redline, lab: Lab) -> None:
    done, report = run(redline, lab.suite("good.one, good.unbuildable, good.toolless"))
    assert [cell.server for cell in report.cells] == measured(redline, report) == ["good.one"]
    reasons = {skipped.slug: skipped.reason for skipped in report.skipped}
    assert len(reasons) == 2
    assert "no-such-tool" in reasons["good.toolless.SimpleGet.saturate"]
    assert "no such compiler" in done.err


def test_a_flood_of_output_does_not_fill_the_disk(redline: Redline, lab: Lab) -> None:
    run(redline, lab.suite("bad.flooding", scenario="Ok", trials=1))
    logs = sum(file.stat().st_size for file in (redline.folder / "out" / "logs").rglob("*") if file.is_file())
    assert logs < 40 * 1024 * 1024


def test_nothing_to_run_is_reported(redline: Redline, lab: Lab) -> None:
    redline("run", lab.suite("good.unbuildable")).refused(1, "nothing is left to run")


def test_a_missed_objective_is_exit_code_3(redline: Redline, lab: Lab) -> None:
    done, report = run(redline, lab.suite("good.one", more="objective: p50 < 1ns"))
    assert done.code == (3 if report.cells[0].valid else 1)
    assert [result.met for result in report.cells[0].objectives] == [False]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("servers:", "serverz:"), ["suite.yaml:1:1", "servers"]),
        (("good.one", "good.on"), ["suite.yaml:1", "good.one"]),
        (("users: 4", "users: 0"), ["suite.yaml:5", "users"]),
        (("closed: {users: 4}", "open: {rate: 0, connections: 4}"), ["suite.yaml:5", "rate"]),
        (("300ms", "300mz"), ["suite.yaml:5", "300mz"]),
        (("SimpleGet", "SimpelGet"), ["suite.yaml:3", "SimpleGet"]),
        (("good.one", "{use: good.one, with: {colour: red}}"), ["suite.yaml:1", "colour"]),
    ],
)
def test_a_wrong_suite_is_reported_by_line(
    redline: Redline, lab: Lab, change: tuple[str, str], words: list[str]
) -> None:
    suite = lab.suite("good.one")
    suite.write_text(suite.read_text().replace(*change))
    for command in ("check", "run"):
        redline(command, suite).refused(2, *words)
    assert not (redline.folder / "runs").exists()


def test_every_problem_is_reported_at_once(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one, good.none", scenario="Missing")
    done = redline("check", suite)
    done.refused(2, "good.none", "Missing")
    assert done.err.count("hint:") == 2


def test_a_place_that_cannot_be_written_is_reported_before_anything_is_built(redline: Redline, lab: Lab) -> None:
    (redline.folder / "file").write_text("")
    redline("run", lab.suite("good.one"), "-o", "file/run").refused(1, "file", "-o DIR")


def test_a_read_only_place_is_reported(redline: Redline, lab: Lab) -> None:
    suite = lab.suite("good.one")
    place = redline.folder / "sealed"
    place.mkdir()
    command = f"mount -t tmpfs -o ro tmpfs {place} && exec redline run {suite} -o {place}/run"
    done = redline.in_own_mounts(command)
    done.refused(1, "-o DIR")


@pytest.mark.long
def test_servers_of_a_comparison_are_alive_at_once_in_a_duet(redline: Redline, lab: Lab) -> None:
    done, report = run(redline, lab.suite("good.one, good.two", trials=3, more="baseline: good.one\ndesign: duet"))
    duets = RunStore(redline.folder / "out").duets()
    assert [duet.round for duet in duets] == [0, 1, 2]
    assert all(duet.failure is None for duet in duets)
    for duet in duets:
        pids = {server.pid for server in duet.servers if server}
        assert len(pids) == 3
        assert duet.traffic is not None
        assert all(target.counts.completed for target in duet.traffic.targets)
    assert report.run.trials_done == 2 * 3 + 3
    found = {each.metric: each for each in report.comparisons if not each.refused}
    if Metric.CPU_PER_REQUEST in found:  # a busy machine alone may make trials invalid
        about = found[Metric.CPU_PER_REQUEST].duet
        assert about is not None
        assert about.starts == 3
        assert about.control is not None
    assert "Comparisons" in redline("report", "out").out or not found, done.err


def test_each_round_runs_the_next_build(redline: Redline, lab: Lab) -> None:
    _, report = run(redline, lab.suite("good.one", trials=3, more="builds: 2"))
    recordings = sorted(RunStore(redline.folder / "out").recordings(), key=lambda each: each.round)
    servers = [each.server for each in recordings if each.server]
    assert [server.build_number for server in servers] == [0, 1, 0]
    assert len({server.build for server in servers}) == 1
    assert len({server.outputs for server in servers}) == 1
    (cell,) = report.cells
    found = {finding.message for finding in cell.findings}
    assert "All 2 builds are identical." in found or not cell.valid  # trials that a busy machine made invalid
