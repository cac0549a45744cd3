"""`redline limit SUITE` from flags to the directory, with fakes behind the ports; nothing is started."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from redline.cli.command_line import app
from redline.cli.contracts import SearchJudgeResult
from redline.errors import RedlineError, StoreError, UsageError
from redline.model.limits import LimitReport
from redline.model.search import ProbeRecording
from redline.ports import BuildOutcome, Placement
from redline.running import assembly
from redline.running.assembly import Workbench
from redline.running.record import Tools
from redline.running.views import search_report
from redline.storage.runs import RunStore
from tests.e2e.lab import Lab
from tests.fakes.plugins import FakeLauncher, FakeServer
from tests.fakes.published import published
from tests.fakes.recordings import simulated_environment
from tests.fakes.searched import CAPACITY, Driver

SUITE = """\
servers: [good.one, good.two]
scenarios: [SimpleGet]
loads:
  saturate: {closed: {users: 4}, for: 1s}
  probe: {open: {rate: 1000, connections: 64}, for: 1s}
objective: p99 < 20ms
warmup: 2s
"""


class Bench:
    """The command in a project of its own, and its driver."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.run_folder = folder, folder / "run"
        Lab(folder, Path("no-oracle"))
        self.suite = folder / "it.yaml"
        self.suite.write_text(SUITE)
        self.driver, self.server = Driver(), FakeServer()
        launcher = FakeLauncher(self.driver.events, self.server)
        tools = Tools(launcher, self.driver, lambda _server: (), Placement())
        made = Workbench(tools, simulated_environment())
        monkeypatch.setattr(assembly, "workbench", lambda *_: made)

    def __call__(self, *flags: str | Path) -> Result:
        return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["limit", *map(str, flags)])

    def begin(self, *flags: str | Path) -> Result:
        trials = () if "--trials" in flags else ("--trials", "2")
        return self(self.suite, "-o", self.run_folder, *trials, "--no-beyond", *flags)

    @property
    def report(self) -> LimitReport:
        return self.report_in(self.run_folder)

    def report_in(self, folder: Path) -> LimitReport:
        return published(search_report(RunStore(folder)))

    def copy(self, finished: "Finished") -> None:
        """Copy the result of another search into its directory."""
        shutil.copytree(finished.folder, self.run_folder)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


@dataclass(frozen=True)
class Finished:
    """A search that several tests read, and none changes."""

    result: Result
    folder: Path
    report: LimitReport
    loads: int
    """The number of loads, including warm-ups."""


def finish(folder: Path, *flags: str, more: str = "") -> Finished:
    with pytest.MonkeyPatch.context() as monkeypatch:
        bench = Bench(folder, monkeypatch)
        bench.suite.write_text(SUITE + more)
        result = bench.begin(*flags)
        return Finished(result, bench.run_folder, bench.report, len(bench.driver.drives))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A finished search of both servers; the suite wants profiles."""
    return finish(tmp_path_factory.mktemp("both"), more="profile: [cpu, engine]\n")


@pytest.fixture(scope="module")
def finished_one(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A finished search of one server, printed as JSON."""
    return finish(tmp_path_factory.mktemp("one"), "-s", "good.one", "--json")


def interrupt_at(number: int) -> Callable[[int], None]:
    def interrupt(drive: int) -> None:
        if drive == number:
            raise KeyboardInterrupt

    return interrupt


def test_every_cell_is_searched_and_kept(finished: Finished) -> None:
    assert finished.result.exit_code == 0, finished.result.stderr
    report, folder = finished.report, finished.folder
    assert [cell.slug for cell in report.cells] == ["good.one.SimpleGet.probe", "good.two.SimpleGet.probe"]
    for cell in report.cells:
        (limit,) = cell.limits
        assert (cell.ended, limit.conditions) == ("converged", ("p99 < 20ms", "errors < 1%"))
        assert limit.passed_per_s is not None
        assert limit.failed_per_s is not None
        assert limit.passed_per_s <= CAPACITY <= limit.failed_per_s
        assert cell.build == "abc"
        assert sum(probe.phase == "confirm" for probe in cell.probes) == 4
    assert {file.name for file in folder.iterdir()} >= {"results.json", "report.html", "suite.yaml"}
    assert LimitReport.model_validate_json((folder / "results.json").read_text()) == report
    for probe in (probe for cell in report.cells for probe in cell.probes):
        recording = ProbeRecording.model_validate_json((folder / probe.recording).read_text()).recording
        assert recording.traffic is not None
    assert (folder / "logs" / "good.one.SimpleGet.probe" / "start-2").is_dir()


def test_json_is_the_report_that_is_kept(finished_one: Finished) -> None:
    assert LimitReport.model_validate_json(finished_one.result.stdout) == finished_one.report


def test_the_plan_is_printed_first_and_names_a_closed_load_once(finished: Finished) -> None:
    printed = " ".join(finished.result.stderr.split())
    assert printed.count("not searched, since it is closed: saturate") == 1
    assert "2 cells, at most 23 probes per cell on 3 starts of its server: at most about" in printed
    assert "open, poisson, 64 connections, 1.00 s after 1.00 s" in printed


def test_profiles_that_a_suite_wants_are_said_not_to_be_made(finished: Finished, finished_one: Finished) -> None:
    printed = " ".join(finished.result.stderr.split())
    assert printed.count("not profiled, since `redline run` alone profiles: cpu, engine") == 1
    assert "profile" not in finished_one.result.stderr


def test_the_answer_is_printed_for_each_cell(finished: Finished) -> None:
    assert "good.one.SimpleGet.probe" in finished.result.stdout
    assert "meets p99 < 20ms up to" in " ".join(finished.result.stdout.split())


WARM_UP = 2
"""Loads before the first probe of a start."""


def first_turn(finished: "Finished") -> int:
    """Loads on the first start of the first cell."""
    return WARM_UP + sum(probe.start == 0 for probe in finished.report.cells[0].probes)


def test_cells_take_turns_and_each_turn_says_whose_it_is(finished: Finished) -> None:
    headings = [line for line in finished.result.stderr.splitlines() if line.startswith("[")]
    first, second = headings[:2]
    assert {first[6:], second[6:]} == {cell.slug for cell in finished.report.cells}
    assert headings == [first, second] * 3, "a turn for each start"


def test_ctrl_c_keeps_what_is_known_and_resume_continues(bench: Bench, finished: Finished) -> None:
    """The second cell is interrupted after two probes: those stay, and the rest is done on a fresh start."""
    loads, (uninterrupted, _) = first_turn(finished), finished.report.cells
    again = bench.folder / "again"
    bench.driver.on_drive = interrupt_at(loads + 5)
    done = bench(bench.suite, "-o", again, "--trials", "2", "--no-beyond", "--json")
    assert done.exit_code == 130
    assert "limit --resume" in done.stderr
    kept = bench.report_in(again)
    assert kept == LimitReport.model_validate_json(done.stdout)
    assert [cell.ended for cell in kept.cells] == ["interrupted", "interrupted"]
    interrupted, waiting = sorted(kept.cells, key=lambda cell: len(cell.probes))
    assert (len(interrupted.probes), len(waiting.probes)) == (2, loads - WARM_UP)
    bench.driver.on_drive, before = (lambda _number: None), len(bench.driver.drives)
    done = bench("--resume", again, "--json")
    assert done.exit_code == 0, done.stderr
    report = bench.report_in(again)
    assert report == LimitReport.model_validate_json(done.stdout)
    assert [cell.ended for cell in report.cells] == ["converged", "converged"]
    by_slug = {cell.slug: cell for cell in report.cells}
    resumed, waited = by_slug[interrupted.slug], by_slug[waiting.slug]
    assert resumed.probes[:2] == interrupted.probes
    assert [probe.start for probe in resumed.probes[:3]] == [0, 0, 1]
    assert len(resumed.starts) == len(uninterrupted.starts) + 1
    assert waited.probes[: len(waiting.probes)] == waiting.probes
    assert len(waited.starts) == len(uninterrupted.starts), "it was to have a fresh start anyway"
    assert len(bench.driver.drives) - before == finished.loads - loads - 2, "without the two probes"
    assert len(interrupted.starts) * WARM_UP == 2


def test_a_search_that_ctrl_c_ended_before_its_first_probe_can_be_resumed(bench: Bench) -> None:
    bench.driver.on_drive = interrupt_at(1)
    done = bench.begin("-s", "good.one")
    assert done.exit_code == 130
    assert [(cell.ended, cell.probes) for cell in bench.report.cells] == [("interrupted", ())]
    bench.driver.on_drive = lambda _number: None
    done = bench("--resume", bench.run_folder, "--fail-on", "slower")
    assert not isinstance(done.exception, UsageError), "a search compares without a baseline"
    assert done.exit_code != 2
    assert [cell.ended for cell in bench.report.cells] == ["converged"]


def test_what_has_been_probed_is_kept_before_the_next_turn_begins(bench: Bench, finished: Finished) -> None:
    """An error that ends the command without a message, such as a full disk, costs only its turn."""
    loads = first_turn(finished)

    def fail(drive: int) -> None:
        if drive == loads + 1:
            raise StoreError("no room", hint="none")

    bench.driver.on_drive, again = fail, bench.folder / "again"
    done = bench(bench.suite, "-o", again, "--trials", "2", "--no-beyond")
    assert isinstance(done.exception, StoreError)
    kept = bench.report_in(again)
    assert [len(cell.probes) for cell in kept.cells] == [loads - WARM_UP], "the other one has nothing yet"


def test_a_server_that_cannot_be_searched_costs_its_own_cell(bench: Bench) -> None:
    bench.driver.wrong = "GET /path0: status 500, not 200"
    done = bench.begin()
    assert done.exit_code == 1
    assert [cell.ended for cell in bench.report.cells] == ["broken", "broken"]
    assert "answered SimpleGet wrongly" in bench.report.cells[0].reason
    assert bench.driver.drives == []


def test_objectives_and_selection_may_come_from_flags(bench: Bench) -> None:
    done = bench.begin("-s", "good.two", "--objective", "good: p99 < 30ms", "--objective", "fine: p99 < 40ms")
    assert done.exit_code == 0, done.stderr
    (cell,) = bench.report.cells
    assert (cell.server, [limit.name for limit in cell.limits]) == ("good.two", ["good", "fine"])


def test_named_sets_of_the_suite_are_searched_for(bench: Bench) -> None:
    bench.suite.write_text(SUITE.replace("p99 < 20ms", "{good: p99 < 20ms, fine: p99 < 1s}"))
    bench.begin("-s", "good.one", "--probes", "2")
    assert [limit.name for limit in bench.report.cells[0].limits] == ["good", "fine"]


@pytest.mark.parametrize(
    ("change", "flags", "says"),
    [
        (("objective: p99 < 20ms\n", ""), (), "nothing says what is to be met"),
        (
            ("  saturate: {closed: {users: 4}, for: 1s}\n", ""),
            ("--by-users",),
            "has no closed load, and these have users",
        ),
        (("users: 4", "users: 4, ramp: {to: 9, over: 1s}"), ("--by-users",), "no constant number of users"),
        (("", ""), ("--by-users", "--start", "2x"), "begins with a whole number of them"),
        (("", ""), ("--by-users", "--objective", "achieved > 99%"), "`achieved` is a share of a rate"),
        (("rate: 1000", "rate: 50% of saturate"), (), "share of a capacity"),
        (("64}, for: 1s", "64}, for: 500ms"), (), "too short for a probe"),
        (("rate: 1000,", "rate: 1000, stages: [{to: 2000, over: 1s}],"), (), "no constant rate"),
        (("p99 < 20ms", "p99 < 6s"), (), "is not below `timeout` 5.00 s"),
        (("", ""), ("--trials", "1"), "how starts differ"),
        (("", ""), ("-c", "8"), "takes no -c"),
        (("", ""), ("--status", "201", "-X", "POST"), "takes no -X, --status"),
        (("", ""), ("--resume", "runs/there"), "takes no TARGET…, --trials, --no-beyond, -o"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    bench: Bench, change: tuple[str, str], flags: tuple[str, ...], says: str
) -> None:
    bench.suite.write_text(SUITE.replace(*change) if change[0] else SUITE)
    done = bench.begin(*flags)
    assert isinstance(done.exception, UsageError), done.exception
    assert says in str(done.exception)
    assert "hint:" in str(done.exception)
    assert bench.driver.events == []
    assert not bench.run_folder.exists()


@pytest.mark.parametrize("flags", [("-s", "x"), ("--trials", "3"), ("--no-beyond",), ("--quick",)])
def test_a_url_takes_no_flags_of_suites(bench: Bench, flags: tuple[str, ...]) -> None:
    done = bench("http://127.0.0.1:1/", "--objective", "p99 < 1s", *flags)
    assert isinstance(done.exception, UsageError)
    assert f"takes no {flags[0]}" in str(done.exception)


def test_a_directory_holds_one_search(bench: Bench, finished_one: Finished) -> None:
    bench.copy(finished_one)
    done = bench.begin("-s", "good.one")
    assert isinstance(done.exception, StoreError)
    assert "limit --resume" in done.exception.hint
    done = bench("--resume", bench.folder / "nowhere")
    assert isinstance(done.exception, StoreError)
    with pytest.raises(StoreError, match="holds a search"):
        RunStore(bench.run_folder).check_free()


def test_a_search_is_not_resumed_on_another_build(
    bench: Bench, finished_one: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.copy(finished_one)
    monkeypatch.setattr(FakeLauncher, "build", other_build)
    done = bench("--resume", bench.run_folder)
    assert isinstance(done.exception, RedlineError)
    assert "good.one has changed since this run began" in str(done.exception)


def other_build(_self: FakeLauncher, variants: object, progress: object, builds: int = 1) -> object:
    return BuildOutcome(hashes={"good.one": "another"})


def test_report_shows_a_search_and_compare_says_what_it_is(bench: Bench, finished_one: Finished) -> None:
    bench.copy(finished_one)
    shown = CliRunner().invoke(app, ["report", str(bench.run_folder)])
    assert shown.exit_code == 0
    assert "misses it from" in shown.stdout
    as_json = CliRunner().invoke(app, ["report", str(bench.run_folder), "--json"])
    assert LimitReport.model_validate_json(as_json.stdout) == bench.report
    for form, says in (("md", "good.one"), ("html", "<html"), ("csv", "limit,good.one")):
        assert says in CliRunner().invoke(app, ["report", str(bench.run_folder), "-f", form]).stdout
    compared = CliRunner().invoke(app, ["compare", str(bench.run_folder)])
    assert isinstance(compared.exception, StoreError)
    assert "holds a search" in str(compared.exception)


def test_a_search_is_judged_again_by_todays_rules(bench: Bench, finished_one: Finished) -> None:
    """A stored answer that today's rules would not give is shown beside today's; `--write` renews the views."""
    bench.copy(finished_one)

    def judge(*flags: str) -> Result:
        return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["judge", str(bench.run_folder), *flags])

    assert "results.json has the same answers" in judge().stdout
    report = bench.report
    (cell,) = report.cells
    (limit,) = cell.limits
    other = cell.model_copy(update={"limits": (limit.model_copy(update={"passed_per_s": 1.0}),), "confirmed": False})
    view = bench.run_folder / "results.json"
    view.write_text(report.model_copy(update={"cells": (other,)}).model_dump_json())
    judged = judge()
    assert f"{cell.slug}: p99 < 20ms: was met up to 1/s" in judged.stdout
    result = SearchJudgeResult.model_validate_json(judge("--json", "--write").stdout)
    (changed,) = result.answers_changed
    assert (changed.before, changed.after) == (other.limits[0], limit)
    assert [ending.after for ending in result.endings_changed] == [f"converged{', confirmed' * cell.confirmed}"]
    assert "results.json has the same answers" in judge().stdout
    view.unlink()
    assert "not compared" in judge().stdout
