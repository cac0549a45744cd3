"""`redline limit A.yaml B.yaml …`: several suites, also beside other targets, in one search with their ratios."""

from pathlib import Path

import pytest
from typer.testing import Result

from redline.asking.searching import is_suite
from redline.errors import UsageError
from redline.model import Manifest
from redline.model.limits import LimitReport
from redline.storage.runs import RunStore
from tests.e2e.lab import Lab
from tests.unit.cli.test_limit_suite import SUITE, Bench

ONE, TWO = SUITE.replace(", good.two", ""), SUITE.replace("good.one, ", "")
URL = "http://127.0.0.1:1"


class Suites(Bench):
    """The command with two suites, `one.yaml` and `two.yaml`."""

    def write(self, one: str, two: str) -> None:
        for name, text in (("one.yaml", one), ("two.yaml", two)):
            (self.folder / name).write_text(text)

    def search(self, *more: str) -> Result:
        return self("one.yaml", "two.yaml", *more, "-o", self.run_folder, "--trials", "2", "--no-beyond")

    @property
    def manifest(self) -> Manifest:
        return RunStore(self.run_folder).manifest()


@pytest.fixture
def suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suites:
    made = Suites(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    made.write(ONE, TWO)
    return made


def pairs(report: LimitReport) -> list[tuple[str, str, str]]:
    return [(pair.slug.split(".Simple")[0], pair.baseline, pair.objective) for pair in report.comparisons]


def test_cells_that_share_a_workload_are_compared_with_the_first_suite(suites: Suites) -> None:
    done = suites.search()
    assert done.exit_code == 0, (done.stderr, done.exception)
    report = suites.report
    assert report.suite == "one and two"
    assert [cell.server for cell in report.cells] == ["good.one", "good.two"]
    assert pairs(report) == [("good.two", "good.one.SimpleGet.probe", "p99 < 20ms")]
    seeds = {trial.seed for trial in suites.manifest.plan.trials if trial.round == 0}
    assert len(seeds) == 1, "compared cells have the same arrivals"
    text = (suites.run_folder / "suite.yaml").read_text()
    assert "# one.yaml" in text
    assert text.index(ONE) < text.index(TWO)
    before = len(suites.driver.drives)
    assert suites("--resume", suites.run_folder).exit_code == 0
    assert len(suites.driver.drives) == before, "nothing was left to search"


@pytest.mark.long
def test_each_suite_keeps_its_objectives_and_warm_up(suites: Suites) -> None:
    good = "objective: {good: p99 < 20ms, fine: p99 < 30ms}"
    suites.write(
        ONE.replace("objective: p99 < 20ms", good),
        TWO.replace("objective: p99 < 20ms", "objective: {good: p99 < 25ms, fair: p99 < 30ms}").replace("2s", "3s"),
    )
    done = suites.search()
    assert done.exit_code == 0, (done.stderr, done.exception)
    one, two = suites.report.cells
    assert [limit.name for limit in one.limits] == ["good", "fine"]
    assert [limit.name for limit in two.limits] == ["fine", "good (two.yaml)"]
    assert pairs(suites.report) == [("good.two", "good.one.SimpleGet.probe", "fine")]
    assert [cell.warmup_ns for cell in suites.manifest.plan.cells.values()] == [2_000_000_000, 3_000_000_000]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("p99 < 20ms", "p99 < 30ms"), "they have no objective in common"),
        (("probe:", "other:"), "they have no scenario and load in common"),
    ],
)
def test_a_suite_without_a_ratio_is_named_before_the_search(suites: Suites, change: tuple[str, str], says: str) -> None:
    suites.write(ONE, TWO.replace(*change))
    done = suites.search("--probes", "2")
    assert f"two.yaml is not compared with one.yaml: {says}" in " ".join(done.stderr.split())
    assert suites.report.comparisons == ()


def test_a_baseline_of_a_suite_stays_and_is_compared_with_the_first_suite(suites: Suites) -> None:
    suites.write(ONE, SUITE.replace("servers", "baseline: good.two\nservers"))
    suites.search("--probes", "2")
    suite = suites.manifest.plan.suite
    assert [variant.slug for variant in suite.variants] == ["good.one", "good.two"]
    assert (suite.baseline_of("good.one"), suite.baseline_of("good.two")) == (None, "good.one")
    assert len(suites.manifest.plan.cells) == 2, "a cell of both suites is searched once"


def test_other_targets_are_searched_as_the_first_suite_says(suites: Suites) -> None:
    done = suites("one.yaml", URL, "-o", suites.run_folder, "--trials", "2", "--no-beyond")
    assert done.exit_code == 0, (done.stderr, done.exception)
    plan = suites.manifest.plan
    assert [cell.slug for cell in plan.cells.values()] == [
        "good.one.SimpleGet.probe",
        "127.0.0.1:1.SimpleGet.probe",
    ]
    assert pairs(suites.report) == [("127.0.0.1:1", "good.one.SimpleGet.probe", "p99 < 20ms")]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("connections: 64", "connections: 65"), "the load `probe` of two.yaml is not that of one.yaml"),
        (("warmup", "threshold: 5%\nwarmup"), "`threshold` of two.yaml is not that of one.yaml"),
    ],
)
def test_suites_that_contradict_each_other_are_refused(suites: Suites, change: tuple[str, str], says: str) -> None:
    suites.write(ONE, TWO.replace(*change))
    refused(suites.search(), says)


def test_a_cell_that_two_suites_measure_otherwise_is_refused(suites: Suites) -> None:
    suites.write(ONE, ONE.replace("warmup: 2s", "warmup: 3s"))
    refused(suites.search(), "two.yaml and one.yaml measure good.one.SimpleGet.probe differently")


def test_servers_and_scenarios_of_one_name_are_the_same(suites: Suites) -> None:
    own = "servers:\n  - {name: A, command: './%s --port {port}'}\n"
    one, two = (ONE.replace("servers: [good.one]\n", own % name) for name in ("old", "new"))
    suites.write(one, two)
    refused(suites.search(), "the server `A` of two.yaml is not that of one.yaml")
    own = "scenarios:\n  - {name: Own, get: /%s}"
    suites.write(*(text.replace("scenarios: [SimpleGet]", own % path) for text, path in ((ONE, "x"), (TWO, "y"))))
    refused(suites.search(), "the scenario `Own` of two.yaml is not that of one.yaml")


def test_suites_beside_different_catalogues_have_servers_of_both(suites: Suites) -> None:
    Lab(suites.folder / "other", Path("no-oracle"))
    other = suites.folder / "other" / "two.yaml"
    other.write_text(ONE)
    refused(suites("one.yaml", other, "--trials", "2"), f"the server `good.one` of {other} is not that of one.yaml")
    other.write_text(ONE.replace("[good.one]", "[good.two, {name: A, command: './server --port {port}'}]"))
    suites("one.yaml", other, "-o", suites.run_folder, "--trials", "2", "--no-beyond", "--probes", "2")
    variants = suites.manifest.plan.suite.variants
    assert [variant.slug for variant in variants] == ["good.one", "good.two", "A"]
    folders = [Path(variant.catalogued.family_folder) for variant in variants]
    assert folders == [suites.folder / "catalogue/good", other.parent / "catalogue/good", other.parent]


def test_a_url_beside_a_suite_has_no_path(suites: Suites) -> None:
    done = suites("one.yaml", f"{URL}/x", "--trials", "2")
    refused(done, f"{URL}/x: one.yaml says what is requested")


def refused(done: Result, says: str) -> None:
    assert isinstance(done.exception, UsageError), (done.exception, done.stderr)
    assert says in str(done.exception)
    assert "hint:" in str(done.exception)


@pytest.mark.parametrize(
    ("target", "is_file"),
    [
        ("two.yaml", True),
        ("suites/limit.yml", True),
        ("./server --port {port} -c conf.yaml", False),
        ("./server{port}.yaml", False),
        ("http://127.0.0.1/openapi.yaml", False),
    ],
)
def test_a_suite_is_a_file_and_no_command_or_url(target: str, *, is_file: bool) -> None:
    assert is_suite(target) is is_file


def test_a_suite_of_several_that_asks_for_nothing_is_named(suites: Suites) -> None:
    suites.write(ONE, TWO.replace("objective: p99 < 20ms\n", ""))
    done = suites.search()
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == "two.yaml: nothing says what is to be met"


def test_too_many_targets_are_refused(suites: Suites) -> None:
    done = suites("one.yaml", *(f"http://127.0.0.1:{port}" for port in range(1, 27)))
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == "27 targets are too many"
