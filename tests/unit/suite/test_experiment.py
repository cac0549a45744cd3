"""Suites that compare a user's servers within a budget: how they are read and planned, and what is refused."""

import io
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from redline.cli.commands.check import show_plans
from redline.errors import UsageError
from redline.model import AttachedServer, Body, Metric, Plan, Suite
from redline.model.catalogue import Checkout, Revision
from redline.suite import (
    Catalogue,
    Overrides,
    expected_length_ns,
    least_length_ns,
    load_catalogue,
    make_plan,
    to_search,
    with_budget,
)
from redline.suite.budget import StartTimes, start_times
from redline.suite.project import Origins, Project, read_project
from redline.suite.validate.referenced_files import Files
from redline.suite.validate.resolve import read_suite
from tests.fakes.catalogues import small_catalogue

A, B = "{name: A, command: './old --port {port}'}", "{name: B, command: './new --port {port}'}"
ROUTES = "[{name: root, get: /}, {name: items, get: /items, headers: {X: '1'}}]"
LOADS = "loads: {load: {closed: {users: 64}}}\n"
TEXT = f"servers: [{A}, {B}]\nscenarios: {ROUTES}\n{LOADS}budget: 60s\n"
START = "start: ./server {port}\n"
PROJECT = (
    "build: make\nstart: java -jar a.jar {port}\nrequests: [{name: one, get: /1, weight: 3}, {name: two, get: /2}]\n"
)
S = 1_000_000_000
NOTHING = Overrides()


def project() -> Project:
    return read_project(PROJECT, "redline.yaml")


def checkout(name: str) -> Checkout:
    return Checkout(repository="/r", revision=Revision(name=name, commit=f"c-{name}"), build="make", below=".")


ORIGINS = Origins(checkout, project, folder="/suites")


def read(text: str, overrides: Overrides = NOTHING, catalogue: Catalogue | None = None) -> Suite:
    return read_suite(text, "mine.yaml", catalogue or Catalogue(), overrides, origins=ORIGINS)


def problems(text: str, catalogue: Catalogue | None = None) -> list[str]:
    with pytest.raises(UsageError) as caught:
        read(text, catalogue=catalogue)
    return [problem.message for problem in caught.value.problems]


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return small_catalogue(tmp_path)


def test_two_commands_and_a_budget_are_a_comparison() -> None:
    suite = read(TEXT)
    assert [variant.slug for variant in suite.variants] == ["A", "B"]
    assert (suite.baseline, suite.design, suite.alone, suite.same_answers) == ("A", "duet", False, False)
    assert suite.auto is not None
    assert (suite.auto.precision, suite.auto.at_least, suite.auto.budget_ns) == (None, 3, 60 * S)
    assert suite.warmup_detect
    old = suite.variants[0].catalogued
    assert (old.start.command, old.ready.path, old.build) == (("./old", "--port", "{port}"), "/", None)
    plan = make_plan(suite)
    assert plan.trials == ()
    assert len(plan.duets) == 2 * suite.trials
    assert expected_length_ns(plan) == 60 * S


def test_a_server_of_ones_own_has_all_that_is_written() -> None:
    server = (
        "{command: 'bin/java -jar a.jar {port}', folder: sub, env: {N: '1'}, ready: {path: /health, status: 204}, "
        "stop: {within: 1s}, runtime: native, http: 2, tls: {insecure: true}}"
    )
    (variant, _) = read(TEXT.replace(A, server)).variants
    entry = variant.catalogued
    assert (variant.slug, variant.http, variant.tls and variant.tls.insecure) == ("java", "2", True)
    assert (entry.family_folder, entry.start.env, entry.runtime) == ("/suites/sub", {"N": "1"}, "native")
    assert (entry.ready.path, entry.ready.status, entry.stop.within_ns) == ("/health", 204, S)
    assert entry.serves == ("h2+tls",)


def test_a_server_of_ones_own_stands_behind_a_proxy() -> None:
    catalogue = load_catalogue(Path(__file__).parents[3] / "catalogue")
    routed = A.replace("}'}", "}', route: [direct, nginx]}")
    text = f"servers: [{routed}]\nscenarios: {ROUTES}\nloads: {{load: {{closed: {{users: 1}}, for: 1s}}}}\n"
    suite = read(f"{text}routes: {{nginx: [h1, proxy.nginx, h1]}}\nbaseline: {{A+via=nginx: A}}\n", catalogue=catalogue)
    assert [variant.slug for variant in suite.variants] == ["A", "A+via=nginx"]
    assert suite.variants[1].catalogued.serves == ("h1",)


def test_the_first_request_says_when_a_server_is_ready() -> None:
    suite = read(TEXT.replace("{name: root, get: /}, ", ""))
    assert (suite.variants[0].catalogued.ready.path, suite.variants[0].catalogued.ready.headers) == (
        "/items",
        {"X": "1"},
    )


def test_urls_have_one_round_that_takes_the_whole_budget() -> None:
    suite = read(TEXT.replace(A, "{url: 'http://127.0.0.1:1'}").replace(B, "{name: B, url: 'https://[::1]:2'}"))
    assert [variant.slug for variant in suite.variants] == ["127.0.0.1:1", "B"]
    assert suite.variants[1].entry == AttachedServer(host="::1", port=2, label="B")
    assert [variant.tls is not None for variant in suite.variants] == [False, True]
    assert suite.auto is not None
    assert (suite.trials, suite.auto.at_least) == (1, 1)
    assert suite.loads[0].duration_ns * 6 == pytest.approx(45 * S, rel=0.001)


def test_revisions_are_those_of_the_project_with_its_requests() -> None:
    suite = read(f"servers: [{{name: A, revision: main}}, {{revision: HEAD~1}}]\n{LOADS}budget: 60s\nmetric: p95\n")
    assert [variant.slug for variant in suite.variants] == ["A", "HEAD~1"]
    entry = suite.variants[0].catalogued
    assert entry.checkout == checkout("main")
    assert (entry.runtime, entry.ready.path, entry.ready.within_ns) == ("jvm", "/1", 60 * S)
    assert [scenario.name for scenario in suite.scenarios] == ["one", "two", "mix"]
    assert [request.weight for request in suite.scenarios[2].requests] == [3, 1]
    assert suite.metric is Metric.P95


def test_several_servers_are_compared_with_the_first_by_default() -> None:
    suite = read(TEXT.replace(B, f"{B}, {B.replace('B', 'C')}"))
    assert [suite.baseline_of(variant.slug) for variant in suite.variants] == [None, "A", "A"]
    assert {len(duet.cell_ids) for duet in make_plan(suite).duets} == {3}


def test_what_is_written_takes_precedence_over_the_budget() -> None:
    suite = read(TEXT.replace("{users: 64}", "{users: 64}, for: 7s") + "warmup: 3s\nbaseline: B\n")
    assert (suite.loads[0].duration_ns, suite.warmup_ns, suite.warmup_detect) == (7 * S, 3 * S, False)
    assert suite.warmup_again_ns is None
    assert suite.baseline == "B"
    assert suite.trials == 3  # a start takes a minute


def test_a_selection_has_the_whole_budget() -> None:
    whole, one = read(TEXT), read(TEXT, replace(NOTHING, scenarios=("items",)))
    assert one.loads[0].duration_ns == pytest.approx(2 * whole.loads[0].duration_ns, abs=1)
    assert one == read(TEXT.replace("{name: root, get: /}, ", "")).model_copy(update={"variants": one.variants})
    with pytest.raises(UsageError, match="no comparison of this suite is left"):
        read(TEXT, replace(NOTHING, servers=("A",)))


def starts(plan: Plan) -> list[list[str]]:
    """The scenarios of all starts, in the order of positions."""

    def key(position: int) -> tuple[int, tuple[str, ...]]:
        duet = duets[position]
        return duet.round, tuple(plan.cells[cell_id].variant.slug for cell_id in duet.cell_ids)

    duets = {duet.position: duet for duet in plan.duets}
    return [
        [plan.cells[duets[position].cell_ids[0]].scenario.name for position in positions]
        for _, positions in groupby(sorted(duets), key=key)
    ]


@given(seed=st.integers(0, 2**53 - 1), alone=st.booleans())
def test_a_start_serves_all_scenarios_in_an_order_of_its_own(seed: int, alone: bool) -> None:
    text = TEXT.replace("budget: 60s", "baseline: A\ntrials: 8\nwarmup: 0s").replace("}}}", "}, for: 1s}}")
    suite = read((text if alone else TEXT) + f"seed: {seed}\n")
    assert suite.alone == alone
    plan = make_plan(suite)
    assert [step.position for step in plan.steps] == list(range(plan.length))
    found = starts(plan)
    assert len(found) == suite.trials
    assert all(sorted(each) == ["items", "root"] for each in found)
    assert {tuple(each) for each in found} <= {("items", "root"), ("root", "items")}
    again = [duet.warmup_ns for duet in plan.duets]
    assert set(again) == ({None} if alone else {None, suite.warmup_again_ns})


def test_orders_differ_from_start_to_start() -> None:
    assert len({tuple(each) for each in starts(make_plan(read(TEXT)))}) == 2


def test_a_start_begins_with_the_mix_of_its_requests() -> None:
    mix = "{name: mix, requests: [{get: /, weight: 2}, {get: /items, headers: {X: '1'}}]}"
    found = starts(make_plan(read(TEXT.replace("}]\nloads", f"}}, {mix}]\nloads"))))
    assert {scenarios[0] for scenarios in found} == {"mix"}
    assert {tuple(scenarios[1:]) for scenarios in found} == {("items", "root"), ("root", "items")}


def test_parallel_duets_of_a_start_have_the_same_cores() -> None:
    duets = make_plan(read(TEXT + "design: parallel-duet\n")).duets
    assert all(one.places == other.places for one, other in zip(duets[::2], duets[1::2], strict=True))
    assert len({duet.places for duet in duets}) > 1


@pytest.mark.parametrize(
    ("budget_s", "servers", "parts", "longest_s"),
    [
        (10, 3, 1, 4),
        (60, 3, 1, 20),
        (300, 3, 1, 60),
        (600, 3, 1, 120),
        (3600, 3, 1, 180),
        (300, 3, 12, 101),
        (720, 3, 12, 240),
        (60, 3, 12, 45),
        (60, 5, 3, 21),
    ],
)
def test_three_starts_at_their_longest_nearly_fit(budget_s: int, servers: int, parts: int, longest_s: int) -> None:
    times = start_times(budget_s * S, servers, parts, once=False)
    warmup_ns = times.warmup_ns + (parts - 1) * times.warmup_again_ns
    assert servers * (warmup_ns + parts * times.measure_ns) <= longest_s * S


def routes(number: int, budget: str, more: str = "") -> Plan:
    scenarios = ", ".join(f"{{name: r{index}, get: /{index}}}" for index in range(number))
    return make_plan(read(f"servers: [{A}, {B}]\nscenarios: [{scenarios}]\n{LOADS}budget: {budget}\n{more}"))


@pytest.mark.parametrize(
    ("number", "budget", "more", "least_s", "said"),
    [
        (1, "60s", "", 3 * (3 + 2 + 20 / 6), ""),
        (12, "60s", "", 3 * (3 + 12 * 2 + 20 / 6), "1 min 31 s, more than the 1 min of the budget"),
        (2, "10s", "warmup: 4s\n", 3 * (3 + 2 * 3 * 4 + 5 / 9), "1 min 23 s, more than the 10.0 s of the budget"),
    ],
)
def test_three_starts_take_some_time_whatever_the_budget(
    number: int, budget: str, more: str, least_s: float, said: str
) -> None:
    plan = routes(number, budget, more)
    assert least_length_ns(plan) == pytest.approx(least_s * S, rel=0.01)
    console = Console(file=io.StringIO(), width=200)
    show_plans(plan, plan, console)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert (f"3 starts take at least {said}; this many are always made\n" in printed) == bool(said)
    assert (least_length_ns(plan) == expected_length_ns(plan)) == bool(said)


def test_twelve_routes_of_a_native_server_in_five_minutes() -> None:
    """A start is warm after 2 s, so there are at least six starts; of a JVM in twelve minutes, five."""
    native, jvm = (start_times(minutes * 60 * S, 3, 12, once=False) for minutes in (5, 12))
    assert 300 / (12 * (2 + 3 * native.measure_ns / S)) > 6
    assert 3 * native.warmup_again_ns > 2 * S
    assert 720 / (40 + 11 * 7 + 36 * jvm.measure_ns / S) > 4.5
    assert 3 * jvm.warmup_again_ns > 7 * S


def test_a_long_budget_lets_cold_servers_warm_up_and_measures_warm_ones_no_longer() -> None:
    minute, ten, hour = (start_times(minutes * 60 * S, 3, once=False) for minutes in (5, 10, 60))
    assert minute.measure_ns == ten.measure_ns == hour.measure_ns
    assert [round(3 * times.warmup_ns / S) for times in (minute, ten, hour)] == [50, 110, 170]
    several = start_times(720 * S, 3, 3, once=False)
    assert round(3 * several.warmup_ns / S) == 90
    assert round(3 * several.warmup_again_ns / S) == 50


def test_one_scenario_is_warmed_up_once() -> None:
    assert start_times(60 * S, 3, once=False) == StartTimes(5_555_555_555, 0, 1_111_111_111)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace(A, "{name: A}"), "this server has none of use, command, image, compose, url, revision"),
        (TEXT.replace(A, "{command: './a {port}', url: 'http://x'}"), "both `command` and `url`"),
        (TEXT.replace(A, "{url: 'http://x', env: {A: b}}"), "a server with `url` cannot have `env`"),
        (TEXT.replace(A, "{revision: HEAD, with: {a: 1}}"), "a server with `revision` cannot have `with`"),
        (TEXT.replace(A, "{command: './old'}"), "'./old' has no {port}"),
        (TEXT.replace(A, "{url: 'http://x/path'}"), "a server has no path"),
        (TEXT.replace(A, "{url: 'localhost:80'}"), "localhost:80 is not a URL of http:// or https://"),
        (TEXT.replace(A, "{url: 'http://x', tls: {insecure: true}}"), "http://x does not serve TLS"),
        (TEXT.replace("name: B", "name: A"), "`A` is given twice"),
        (TEXT + "trials: 5\n", "a suite has `trials` or a `budget`, not both"),
        (TEXT + "quick: {trials: 1}\n", "`quick` has nothing to shorten"),
        (TEXT + "design: interleaved\n", "a budget is for comparing servers by duets"),
        (TEXT + "builds: 2\n", "only servers of the catalogue and revisions are built several times"),
        (TEXT + "warmup_by: {users: 2}\n", "steadiness is detected under the measured load"),
        (TEXT.replace(f", {B}", ""), "a budget is for comparing servers, and there is only one"),
        (TEXT.replace(A, "{url: 'http://x'}") + "design: parallel-duet\n", "so Redline cannot assign cores to them"),
        (TEXT.replace("users: 64}", "users: 64, ramp: {to: 9, over: 1s}}"), "the load `load` changes"),
        (TEXT.replace("users: 64}", "users: 64}, count: 5"), "the load `load` ends by `count`"),
        (TEXT.replace("{closed: {users: 64}}", "{open: {rate: 5}}") + "metric: throughput\n", "`load` sets the rate"),
        (TEXT.replace("budget: 60s\n", ""), "`for` is missing"),
        (TEXT.replace(f"scenarios: {ROUTES}\n", ""), "`scenarios` is missing"),
        (TEXT.replace("budget: 60s", "budget: 1s"), "must be at least 3s"),
        (TEXT + "baseline: {B: A}\nsame_answers: 1\n", "must be true or false, not `1`"),
    ],
)
def test_what_cannot_be_is_refused(text: str, message: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert message in found[0]


def test_a_revision_needs_a_repository() -> None:
    with pytest.raises(UsageError, match="there is no git repository here") as caught:
        read_suite(TEXT.replace(A, "{revision: HEAD}"), "mine.yaml", Catalogue(), NOTHING)
    place = caught.value.problems[0].place
    assert place is not None
    assert place.field == "servers[0].revision"


def test_a_revision_without_a_repository_is_reported_once_where_its_project_has_the_scenarios() -> None:
    with pytest.raises(UsageError) as caught:
        read_suite(f"servers: [{{revision: HEAD}}]\n{LOADS}", "mine.yaml", Catalogue(), NOTHING)
    messages = [problem.message for problem in caught.value.problems]
    assert messages.count("there is no git repository here") == 1


@pytest.mark.parametrize(
    ("lines", "design"),
    [
        ("baseline: fam.plain", "duet"),
        ("", "interleaved"),
        ("baseline: fam.plain\ndesign: interleaved", "interleaved"),
        ("baseline: fam.plain\ndesign: parallel-duet", "parallel-duet"),
    ],
)
def test_servers_that_are_compared_are_in_duets_by_default(catalogue: Catalogue, lines: str, design: str) -> None:
    loads = "loads: {a: {closed: {users: 1}, for: 1s}}"
    text = f"servers: [fam.plain, fam.layered]\nscenarios: [Get]\n{loads}\n{lines}\n"
    suite = read(text, catalogue=catalogue)
    assert (suite.design, suite.alone) == (design, True)
    assert bool(make_plan(suite).duets) == (design != "interleaved")


@pytest.mark.parametrize("baseline", ["A", "B"])
def test_a_started_server_and_a_running_one_are_in_duets_of_several_starts(baseline: str) -> None:
    suite = read(TEXT.replace(B, "{name: B, url: 'http://x'}") + f"baseline: {baseline}\n")
    assert suite.design == "duet"
    assert suite.trials > 3
    trials = TEXT.replace(B, "{name: B, url: 'http://x'}").replace("budget: 60s", f"trials: 3\nbaseline: {baseline}")
    assert read(trials.replace("{users: 64}", "{users: 64}, for: 1s")).design == "duet"


def test_loads_of_which_none_fits_a_duet_stay_interleaved(catalogue: Catalogue) -> None:
    load = "{closed: {users: 1, ramp: {to: 9, over: 1s}}, for: 1s}"
    text = f"servers: [fam.plain, fam.layered]\nscenarios: [Get]\nloads: {{a: {load}}}\nbaseline: fam.plain\n"
    assert read(text, catalogue=catalogue).design == "interleaved"


def names(scenarios: Iterable[object]) -> list[str]:
    return [str(getattr(scenario, "name")) for scenario in scenarios]  # noqa: B009


def test_requests_are_scenarios_and_their_mix() -> None:
    text = "[{name: a, get: '/{pick:f}', weight: 2}, {name: b, post: /b, body: {file: b.bin}}]"
    files = Files(lambda _: "1\n", lambda name: f"\xff{name}".encode("latin-1"))
    made = read_project(f"{START}requests: {text}\n", "redline.yaml", files).scenarios
    assert names(made) == ["a", "b", "mix"]
    assert [(request.method, request.weight) for request in made[2].requests] == [("GET", 2), ("POST", 1)]
    assert made[2].picks == {"f": ("1",)}
    assert [scenario.requests[-1].body for scenario in made[1:]] == [Body(raw=b"\xffb.bin")] * 2
    assert names(read_project(f"{START}requests: [{{name: only, get: /}}]\n", "redline.yaml").scenarios) == ["only"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{name: a, get: /}, {name: a, get: /b}]", "the request `a` is given twice"),
        ("[{name: mix, get: /}, {name: a, get: /b}]", "`mix` is the name of all requests by weight"),
        ("[{get: /}]", "`name` is missing"),
        ("[]", "must have at least 1, not 0"),
        ("{name: a}", "must be a list, or name a file that has one"),
        ("{file: r.yaml, name: a}", "must be a list, or name a file that has one"),
        ("{file: 1}", "must be a list, or name a file that has one"),
        ("{file: list.yaml}", "list.yaml cannot be read from here"),
        ("[{name: a, get: '/{pick:f}'}]", "f cannot be read from here"),
        ("[{name: a, post: /, body: {file: f}}]", "f cannot be read from here"),
    ],
)
def test_wrong_requests_are_named_with_their_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_project(f"requests: {text}\n{START}", "r.yaml")
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.place is not None
    assert (problem.place.file, problem.place.line) == ("r.yaml", 1)


def of_file(text: str, name: str = "r/list.yaml") -> Project:
    files = Files(
        lambda asked: text if asked == name else {"r/ids": "7\n"}[asked], lambda asked: {"r/body": b"b"}[asked]
    )
    return read_project(f"{START}requests: {{file: {name}}}\n", "/shop/redline.yaml", files)


def test_requests_may_stand_in_a_file_whose_own_files_are_beside_it() -> None:
    project = of_file("- {name: a, get: '/{pick:ids}', weight: 2}\n- {name: b, post: /b, body: {file: body}}\n")
    assert names(project.scenarios) == ["a", "b", "mix"]
    assert project.scenarios[0].picks == {"r/ids": ("7",)}
    assert project.scenarios[1].request.body == Body(raw=b"b")
    assert project.written.requests is not None
    assert [request.weight for request in project.written.requests] == [2, 1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- {name: a, get: /}\n- {name: b, gets: /}\n", "/shop/r/list.yaml:2:13: [1].gets: unknown key `gets`"),
        ("- {name: a, get: /}\n- {get: /}\n", "/shop/r/list.yaml:2:3: [1].name: `name` is missing"),
        ("- {name: a, get: /}\n- {name: a, get: /}\n", "the request `a` is given twice"),
        ("[", "/shop/r/list.yaml:1:2: this is not YAML"),
        ("{name: a}", "/shop/r/list.yaml:1:1: this is not a list of requests"),
        ("[]", "/shop/r/list.yaml:1:1"),
        ("- {name: a, get: '/{pick:ids}', weight: 0}\n", "/shop/r/list.yaml:1:41: [0].weight"),
    ],
)
def test_what_is_wrong_in_a_file_of_requests_is_placed_there(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        of_file(text)
    assert says in str(caught.value)
    assert caught.value.hint


def test_a_project_has_one_check_or_requests() -> None:
    with pytest.raises(UsageError, match="`check` is the only request, and there are `requests`"):
        read_project(PROJECT + "check: {get: /}\n", "redline.yaml")


TWO = f"""\
servers: [{A}]
scenarios: {ROUTES}
loads: {{steady: {{open: {{rate: 5}}, for: 1s}}, full: {{closed: {{users: 1}}, for: 1s}}}}
"""


def test_objectives_are_for_a_load_a_scenario_or_both() -> None:
    text = '[p75 < 1s, "items: p99 < 20ms, errors < 1%", "steady/root: p95 < 50ms", "full: p95 < 1s"]'
    suite = read(f"{TWO}objective: {text}\n")
    assert [(one.text, one.load, one.scenario) for one in suite.objectives] == [
        ("p75 < 1s", None, None),
        ("items: p99 < 20ms", None, "items"),
        ("items: errors < 1%", None, "items"),
        ("steady/root: p95 < 50ms", "steady", "root"),
        ("full: p95 < 1s", "full", None),
    ]
    cells = make_plan(suite).cells.values()
    found = {cell.slug: [one.text for one in suite.objectives if one.applies_to(cell)] for cell in cells}
    assert found["A.root.steady"] == ["p75 < 1s", "steady/root: p95 < 50ms"]
    assert found["A.items.full"] == ["p75 < 1s", "items: p99 < 20ms", "items: errors < 1%", "full: p95 < 1s"]


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ("itms: p99 < 1s", "there is no scenario or load `itms`", "did you mean `items`?"),
        ("steady/full: p99 < 1s", "there is no scenario `full`", "there is: root, items"),
        ("root/steady: p99 < 1s", "there is no load `root`", "there is: steady, full"),
        ("items: p99 < 1s, p99 < 2s", "`p99` has more than one condition", "keep the stricter one"),
        ("items: p98 < 1s", "`p98` is not a metric that an objective can bound", "did you mean `p99`?"),
    ],
)
def test_what_an_objective_is_for_has_to_be_there(written: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(f'{TWO}objective: "{written}"\n')
    (problem,) = caught.value.problems
    assert message in problem.message
    assert hint in problem.hint
    assert problem.place is not None
    assert problem.place.field == "objective"


def test_a_load_and_a_scenario_of_one_name_are_told_apart() -> None:
    text = TWO.replace("steady:", "items:")
    with pytest.raises(UsageError, match="`items` is both a load and a scenario"):
        read(f'{text}objective: "items: p99 < 1s"\n')
    assert read(f'{text}objective: "items/items: p99 < 1s"\n').objectives[0].load == "items"


def test_a_search_is_about_all_loads_and_scenarios() -> None:
    with pytest.raises(UsageError, match="is for one load or scenario, and a search is about all"):
        to_search(read(f'{TWO}objective: "items: p99 < 1s"\n'), 3)


def test_a_longer_budget_adds_rounds_of_the_same_starts() -> None:
    short = make_plan(read(TEXT))
    longer = with_budget(short, 150 * S)
    assert longer.duets[: len(short.duets)] == short.duets
    assert len(starts(longer)) == longer.suite.trials == -(-short.suite.trials * 150 // 60)
    assert expected_length_ns(longer) == 150 * S
    assert [duet.position for duet in longer.duets] == list(range(len(longer.duets)))
