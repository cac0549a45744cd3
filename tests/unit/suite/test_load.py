"""A suite file becomes exactly the intended suite."""

from pathlib import Path

import pytest

from redline.model import AutoTrials, Body, Closed, EngineMode, Expected, Load, Objective, Open, Request, Scenario
from redline.suite import Overrides, load_catalogue, load_suite, make_plan
from tests.fakes.catalogues import SUITE, problems_of, small_catalogue, suite_of

WHOLE = """\
about: everything that can be said
servers: [fam.plain, {use: fam.layered, with: {log: [off, server-log], routes: 1}}]
baseline: fam.plain
ceiling: top.null
scenarios:
  - Get
  - name: Mine
    about: a scenario of the suite's own
    put: /x?y=1
    headers: {Accept: text/plain}
    body: hello
    expect: {status: 201, length: 3, under_load: status}
    requires: {routes: 1}
loads:
  saturate: {closed: {users: 8}, for: 250ms}
  steady: {open: {rate: 300/min, arrivals: uniform, connections: 3}, for: 1m}
warmup: 0s
trials: 7
seed: 9
timeout: 30s
engine: {backend: epoll, spin: true}
threshold: 0.5%
objective: [p99 < 200ms, errors < 0.1%]
"""


def test_everything_that_can_be_written(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, WHOLE)
    assert suite.name == "some"
    assert suite.about == "everything that can be said"
    assert [variant.slug for variant in suite.variants] == [
        "fam.plain",
        "fam.layered+routes=1",
        "fam.layered+log=server-log+routes=1",
    ]
    assert suite.variants[1].options == {"routes": 1, "log": "off"}
    assert suite.baseline == "fam.plain"
    assert suite.ceiling is not None
    assert suite.ceiling.slug == "top.null"
    assert [scenario.name for scenario in suite.scenarios] == ["Get", "Mine"]
    assert suite.scenarios[1] == Scenario(
        name="Mine",
        about="a scenario of the suite's own",
        request=Request(
            method="PUT",
            path="/x?y=1",
            headers={"Accept": "text/plain"},
            body=Body(text="hello"),
            expect=Expected(status=201, length=3, under_load="status"),
        ),
        requires={"routes": 1},
    )
    assert suite.loads == (
        Load(name="saturate", shape=Closed(users=8), duration_ns=250_000_000),
        Load(name="steady", shape=Open(rate_per_s=5, arrivals="uniform", connections=3), duration_ns=60_000_000_000),
    )
    assert (suite.warmup_ns, suite.trials, suite.seed) == (0, 7, 9)
    assert (suite.timeout_ns, suite.threshold) == (30_000_000_000, 0.005)
    assert suite.engine == EngineMode(backend="epoll", spin=True)
    assert {cell.engine for cell in make_plan(suite).cells.values()} == {suite.engine}
    assert suite.objectives == (
        Objective(metric="p99", below=True, limit=200_000_000, text="p99 < 200ms"),
        Objective(metric="errors", below=True, limit=0.001, text="errors < 0.1%"),
    )


def test_defaults(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, "servers: [fam.plain]\nscenarios: [Get]\nloads: {a: {open: {rate: 10}, for: 1s}}\n")
    assert suite.loads[0].shape == Open(rate_per_s=10, arrivals="poisson", connections=64)
    assert (suite.warmup_ns, suite.trials, suite.seed) == (1_000_000_000, 5, 1)
    assert (suite.timeout_ns, suite.threshold) == (5_000_000_000, 0.02)
    assert (suite.baseline, suite.ceiling, suite.objectives, suite.about) == (None, None, (), "")
    assert suite.engine == EngineMode()


def test_the_first_value_of_an_axis_varies_slowest_and_names_are_stable(tmp_path: Path) -> None:
    text = SUITE.replace(
        "fam.plain, fam.layered", "{use: fam.layered, with: {routes: [1, 128], log: [server-log, off]}}"
    )
    assert [variant.slug for variant in suite_of(tmp_path, text).variants] == [
        "fam.layered+log=server-log+routes=1",
        "fam.layered+routes=1",
        "fam.layered+log=server-log",
        "fam.layered",
    ]


@pytest.mark.parametrize(
    ("servers", "named", "baseline"),
    [
        ("[fam.plain, fam.layered]", "fam.layered", "fam.layered"),
        ("[{use: fam.plain, with: {routes: 1}}]", "fam.plain", "fam.plain+routes=1"),
        ("[{use: fam.plain, with: {routes: [1, 128]}}]", "fam.plain", "fam.plain"),
        ("[{use: fam.plain, with: {routes: [1, 128]}}]", "fam.plain+routes=1", "fam.plain+routes=1"),
    ],
)
def test_a_baseline_is_a_slug_or_a_server_with_one_variant(
    tmp_path: Path, servers: str, named: str, baseline: str
) -> None:
    text = SUITE.replace("[fam.plain, fam.layered]", servers) + f"baseline: {named}\n"
    assert suite_of(tmp_path, text).baseline == baseline


def test_the_same_file_gives_the_same_suite(tmp_path: Path) -> None:
    assert suite_of(tmp_path, WHOLE) == suite_of(tmp_path, WHOLE)


def test_a_suite_survives_its_own_json(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, WHOLE)
    assert type(suite).model_validate_json(suite.model_dump_json()) == suite


@pytest.mark.parametrize(("file", "name"), [("my suite.yaml", "my-suite"), ("ä.yml", "suite"), ("a.b.yaml", "a-b")])
def test_the_name_is_safe_in_a_folder(tmp_path: Path, file: str, name: str) -> None:
    path = tmp_path / file
    path.write_text(SUITE, encoding="utf-8")
    assert load_suite(path, small_catalogue(tmp_path)).name == name


def test_a_byte_order_mark_is_no_hindrance(tmp_path: Path) -> None:
    assert suite_of(tmp_path, "\ufeff" + SUITE).variants


def test_the_shipped_suites_are_right() -> None:
    root = Path(__file__).parents[3]
    catalogue = load_catalogue(root / "catalogue")
    suites = sorted((root / "suites").glob("*.yaml"))
    assert suites
    for path in suites:
        assert load_suite(path, catalogue).about


def test_named_objective_sets(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, SUITE + "objective: {good: 'p99 < 200ms, errors < 1%', fine: [p99 < 1s, errors < 1%]}\n")
    named = {name: [each.text for each in one] for name, one in suite.objective_sets.items()}
    assert named == {"good": ["p99 < 200ms", "errors < 1%"], "fine": ["p99 < 1s", "errors < 1%"]}
    assert [each.text for each in suite.objectives] == ["p99 < 200ms", "errors < 1%", "p99 < 1s"]


def test_conditions_without_a_name_are_no_set(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, SUITE + "objective: p99 < 200ms\n")
    assert suite.objective_sets == {}
    assert [each.text for each in suite.objectives] == ["p99 < 200ms"]
    assert "objective_sets" not in suite.model_dump_json()


@pytest.mark.parametrize("written", ["{}", "{good: p98 < 1s}", "{good: {p99: 1s}}", "{' ': p99 < 1s}"])
def test_what_is_no_set_is_refused(tmp_path: Path, written: str) -> None:
    (problem,) = problems_of(tmp_path, SUITE + f"objective: {written}\n")
    assert "objective" in str(problem.place)
    assert problem.hint


@pytest.mark.parametrize(
    ("written", "meant", "most"),
    [
        ("{auto: {precision: 2%}}", AutoTrials(precision=0.02, at_least=5), 30),
        ("{auto: {precision: 0.5%, at_least: 3, at_most: 15}}", AutoTrials(precision=0.005, at_least=3), 15),
        (
            "{auto: {precision: 1%, at_most: 5, budget: 30m}}",
            AutoTrials(precision=0.01, at_least=5, budget_ns=1_800_000_000_000),
            5,
        ),
    ],
)
def test_automatic_trials(tmp_path: Path, written: str, meant: AutoTrials, most: int) -> None:
    suite = suite_of(tmp_path, SUITE + f"trials: {written}\n")
    assert (suite.auto, suite.trials) == (meant, most)
    assert {trial.round for trial in make_plan(suite).trials} == set(range(most))


def test_a_number_of_trials_overrides_automatic_ones(tmp_path: Path) -> None:
    text = SUITE + "trials: {auto: {precision: 2%}}\nquick: {trials: 2}\n"
    assert suite_of(tmp_path, text, Overrides(trials=3)).auto is None
    assert suite_of(tmp_path, text, Overrides(trials=3)).trials == 3
    quick = suite_of(tmp_path, text, Overrides(quick=True))
    assert (quick.auto, quick.trials) == (None, 2)


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("{auto: {precision: 0%}}", "more than 0%", "2%"),
        ("{auto: {}}", "`precision` is missing", "2%"),
        ("{auto: {precision: 2%, at_least: 9, at_most: 8}}", "at least 9 and at most 8 rounds", "raise `at_most`"),
        ("{auto: {precision: 2%, at_least: 1}}", "at least 2", "rounds"),
        ("{auto: {precision: 2%, budget: 30}}", "`30` has no unit", "write `30s`"),
        ("{auto: {precision: 2%, rounds: 3}}", "unknown key `rounds`", "precision"),
        ("{atuo: {precision: 2%}}", "unknown key `atuo`", "did you mean `auto`?"),
        ("many", "must be a whole number, not `many`", "how often"),
    ],
)
def test_wrong_automatic_trials(tmp_path: Path, written: str, message: str, hint: str) -> None:
    problems = problems_of(tmp_path, SUITE + f"trials: {written}\n")
    assert any(message in problem.message and hint in (problem.hint or "") for problem in problems), problems
    assert all(problem.place for problem in problems)
