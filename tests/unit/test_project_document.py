"""`redline.yaml` as a suite: what `run`, `ab`, `limit` and `load` measure without naming a server."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from redline.cli.ab_document import ab_document
from redline.cli.command_line import AbFlags, LimitFlags, LoadFlags, RunFlags
from redline.cli.flags import read_suite_file, suite_or_project
from redline.cli.limit_document import limit_document
from redline.cli.limit_flags import read_servers_search
from redline.cli.load_flags import load_suite
from redline.cli.origins import FromRepository, find_project, project_here
from redline.cli.project_document import run_document
from redline.cli.written import plain
from redline.errors import UsageError
from redline.model import AttachedServer, Suite
from redline.suite.project import read_project

GO = "  - {name: go, start: './go --port {port}'}\n"
RUST = "  - {name: rust, start: './rust {port}', env: {N: '1'}, ready: {path: /up}}\n"
OLD = "  - {name: old, url: 'http://127.0.0.1:8080'}\n"
TWO = f"servers:\n{GO}{RUST}"
THREE = f"{TWO}{OLD}check: {{get: /items}}\n"
REQUESTS = "requests:\n  - {name: items, get: /items, weight: 3}\n  - {name: item, get: /items/1}\n"
SECOND = 1_000_000_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(text: str) -> Any:
    return plain(run_document(read_project(text, "redline.yaml")))


def suite_of(folder: Path, text: str, **flags: Any) -> Suite:
    (folder / "redline.yaml").write_text(text)
    return read_suite_file(suite_or_project(None), RunFlags(**flags))[0]


def test_several_servers_are_a_duet_with_the_first_for_a_minute() -> None:
    assert written(THREE) == {
        "servers": [
            {"name": "go", "command": "./go --port {port}", "folder": "."},
            {"name": "rust", "command": "./rust {port}", "env": {"N": "1"}, "ready": {"path": "/up"}, "folder": "."},
            {"name": "old", "url": "http://127.0.0.1:8080"},
        ],
        "scenarios": [{"name": "check", "get": "/items"}],
        "baseline": "go",
        "loads": {"load": {"closed": {"users": 64}}},
        "budget": "60s",
    }


@pytest.mark.parametrize(
    ("more", "budget"),
    [
        (REQUESTS, "180s"),  # each request, and the mix
        ("loads: {few: {closed: {users: 2}}, many: {closed: {users: 64}}}\n", "120s"),
        ("budget: 5m\n", "5m"),
        ("".join(f"  - {{name: s{at}, start: './s {{port}}'}}\n" for at in range(3)), "120s"),  # two duets
    ],
)
def test_there_is_a_minute_for_each_request_load_and_duet(more: str, budget: str) -> None:
    assert written(TWO + more)["budget"] == budget


def test_a_server_alone_is_loaded_by_trials_and_has_to_meet_the_objective(folder: Path) -> None:
    suite = suite_of(folder, "start: './go --port {port}'\nobjective: p99 < 50ms\n")
    assert [variant.slug for variant in suite.variants] == ["go"]
    assert (suite.design, suite.trials, suite.warmup_detect) == ("interleaved", 5, True)
    assert [load.duration_ns for load in suite.loads] == [5 * SECOND]
    assert [objective.metric for objective in suite.objectives] == ["p99"]
    assert suite.variants[0].catalogued.family_folder == str(folder)
    assert suite.name == folder.name


def test_loads_that_no_duet_can_have_are_measured_by_trials(folder: Path) -> None:
    ramp = "loads: {ramp: {closed: {users: 1, ramp: {to: 8, over: 3s}}}}\n"
    suite = suite_of(folder, TWO + ramp)
    assert (suite.auto, suite.trials, suite.baseline) == (None, 5, "go")
    assert (suite.warmup_detect, suite.loads[0].duration_ns) == (False, 5 * SECOND)


def test_flags_change_it_as_they_change_a_suite(folder: Path) -> None:
    suite = suite_of(folder, THREE, seed=7, servers=["go,rust"])
    assert (suite.seed, [variant.slug for variant in suite.variants]) == (7, ["go", "rust"])
    assert read_suite_file(Path("redline.yaml"), RunFlags())[0].variants[2].slug == "old"


def test_of_the_servers_that_are_selected_the_first_is_the_baseline_and_one_is_loaded_alone(folder: Path) -> None:
    suite = suite_of(folder, THREE, servers=["rust", "old"])
    assert (suite.baseline, suite.auto is not None) == ("rust", True)
    suite = suite_of(folder, THREE, servers=["ol*"])
    assert ([variant.slug for variant in suite.variants], suite.baseline, suite.auto) == (["old"], None, None)
    with pytest.raises(UsageError, match="no server of this suite matches `none`"):
        suite_of(folder, THREE, servers=["none"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("servers:\n  - {name: go}\n", "redline.yaml:2:5: servers[0]: this server has neither a `start` nor a `url`"),
        (f"servers:\n{GO}{GO}", "the server `go` is given twice"),
        ("servers:\n  - {name: a, url: 'http://h:1', env: {A: b}}\n", "is not started, and has no `env`"),
        ("servers:\n  - {start: './go {port}'}\n", "servers[0].name: `name` is missing"),
        ("servers:\n  - {name: go, command: './go {port}'}\n", "servers[0].command: unknown key `command`"),
        (f"{TWO}objective: 'itms: p99 < 5ms'\n", "objective: there is no"),
        (TWO + "objective: p99 < 0ms\n", "redline.yaml:4:12: objective: "),
        (
            "servers:\n  - {name: a, url: 'http://h:1/x'}\n",
            "redline.yaml:2:20: servers[0].url: a server has no path, and this URL has /x\n  hint: request",
        ),
        (f"{TWO}loads: {{few: {{closed: {{users: 0}}}}}}\n", "redline.yaml:4:"),
    ],
)
def test_what_is_wrong_is_named_by_its_place_in_the_file(folder: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        suite_of(folder, text)
    assert says in str(refused.value)
    assert refused.value.hint


def ab(text: str, **flags: Any) -> Any:
    return plain(ab_document(AbFlags(**flags), lambda _: ("", ""), str, read_project(text, "redline.yaml")))


def test_ab_compares_the_two_servers_of_the_file_by_its_own_flags() -> None:
    made = ab(TWO + REQUESTS)
    assert (made["baseline"], made["budget"], made["metric"]) == ("go", "180s", "cpu")
    assert [scenario["name"] for scenario in made["scenarios"]] == ["items", "item", "mix"]
    made = ab(f"{TWO}loads: {{few: {{closed: {{users: 2}}}}}}\n", lasts="9s", path="/x", http2=True)
    assert (made["budget"], made["loads"]) == ("9s", {"few": {"closed": {"users": 2}}})
    assert made["scenarios"] == [{"name": "requests", "get": "/x"}]
    assert [server["http"] for server in made["servers"]] == [2, 2]
    assert ab(f"{TWO}loads: {{few: {{closed: {{users: 2}}}}}}\n", load="closed:3")["loads"] == {
        "load": {"closed": {"users": 3}}
    }
    with pytest.raises(UsageError, match="names 3 servers, and ab compares two"):
        ab(THREE)
    with pytest.raises(UsageError, match="--insecure means nothing without TLS"):
        ab(TWO, insecure=True)


def test_a_limit_is_that_of_the_servers_of_the_file_and_its_objective(folder: Path) -> None:
    flags, project = LimitFlags(), read_project(f"{TWO}{REQUESTS}objective: p99 < 50ms\n", "redline.yaml")
    made = plain(limit_document(flags, lambda _: ("", ""), str, project))
    assert (made["baseline"], made["warmup"], made["objective"]) == ("go", {"detect": {}}, "p99 < 50ms")
    search = read_servers_search(LimitFlags(scenarios=["items"]), FromRepository(folder), project).request
    assert [scenario.name for scenario in search.suite.scenarios] == ["items"]
    assert [len(conditions) for conditions in search.terms.sets.values()] == [2]  # and few errors
    given = read_servers_search(LimitFlags(objective=["p95 < 9ms"]), FromRepository(folder), project).request
    assert list(given.terms.sets) == ["p95 < 9ms"]
    with pytest.raises(UsageError, match="nothing says what is to be met") as refused:
        read_servers_search(LimitFlags(), FromRepository(folder), read_project(TWO, "redline.yaml"))
    assert "in redline.yaml" in refused.value.hint


def test_a_load_starts_the_only_server_of_the_file_and_sends_all_its_requests(folder: Path) -> None:
    suite, _ = load_suite(LoadFlags(duration="1s"), read_project(f"start: ./go {{port}}\n{REQUESTS}", "redline.yaml"))
    assert [scenario.name for scenario in suite.scenarios] == ["mix"]
    assert suite.variants[0].catalogued.family_folder == str(folder)
    made = read_project(f"start: ./go {{port}}\n{REQUESTS}", "redline.yaml")
    assert [scenario.name for scenario in load_suite(LoadFlags(scenarios=["it*s"]), made)[0].scenarios] == ["items"]
    with pytest.raises(UsageError, match=r"-X: .* says what is requested"):
        load_suite(LoadFlags(method="put"), made)
    with pytest.raises(UsageError, match="-m none: there is no such request"):
        load_suite(LoadFlags(scenarios=["none"]), made)
    running, _ = load_suite(LoadFlags(), read_project(f"servers:\n{OLD}", "redline.yaml"))
    assert isinstance(running.variants[0].entry, AttachedServer)
    with pytest.raises(UsageError, match="names 2 servers, and a load is for one"):
        load_suite(LoadFlags(), read_project(TWO, "redline.yaml"))


@pytest.mark.parametrize("key", ["build: 'true'", "env: {A: '1'}", "runtime: jvm", "ready: {path: /up}"])
def test_what_revisions_alone_have_is_refused_beside_servers(key: str) -> None:
    with pytest.raises(UsageError, match="is that of revisions, and there is no `start` beside it"):
        read_project(f"{key}\n{TWO}", "redline.yaml")
    read_project(f"{key}\nstart: ./go {{port}}\n{TWO}", "redline.yaml")


def test_a_budget_is_never_left_out() -> None:
    text = f"{TWO}loads: {{l: {{closed: {{users: 4}}, count: 1000}}}}\n"
    assert "budget" not in run_document(read_project(text, "redline.yaml"))
    assert "budget" in run_document(read_project(f"{text}budget: 5m\n", "redline.yaml"))


def test_the_file_is_looked_for_up_to_the_root_of_the_repository(tmp_path: Path) -> None:
    below = tmp_path / "repository" / "below"
    below.mkdir(parents=True)
    (tmp_path / "redline.yaml").write_text(TWO)
    assert find_project(below) == tmp_path / "redline.yaml"  # no repository, no end
    (tmp_path / "repository" / ".git").mkdir()
    assert find_project(below) is None
    (tmp_path / "repository" / "redline.yaml").write_text(TWO)
    assert find_project(below) == tmp_path / "repository" / "redline.yaml"


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "redline.yaml").symlink_to("nowhere")
    with pytest.raises(UsageError, match=r"redline\.yaml is not a file that can be read"):
        find_project(tmp_path)
    (tmp_path / "redline.yaml").unlink()
    (tmp_path / "redline.yaml").mkdir()
    with pytest.raises(UsageError, match=r"redline\.yaml is a folder"):
        find_project(tmp_path)
    (tmp_path / "below" / ".git").mkdir(parents=True)
    assert find_project(tmp_path / "below") is None


def test_the_file_of_somebody_else_above_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "redline.yaml").write_text(TWO)
    if os.geteuid() == 0:
        os.chown(tmp_path / "redline.yaml", 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert find_project(tmp_path / "below") != tmp_path / "redline.yaml"
    assert find_project(tmp_path) == tmp_path / "redline.yaml"


def test_a_project_of_fewer_servers_than_are_needed_is_none(folder: Path) -> None:
    assert project_here() is None
    (folder / "redline.yaml").write_text("start: ./go {port}\n")
    assert project_here() is not None
    assert project_here(servers=2) is None


def test_a_revision_needs_a_start(folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    (folder / "redline.yaml").write_text(TWO)
    with pytest.raises(UsageError, match=r"redline.yaml does not say how a revision is started"):
        _ = FromRepository(folder).project


def test_without_suite_and_file_every_advice_can_be_followed(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"no suite is named, and there is no redline.yaml here") as refused:
        suite_or_project(None)
    hint = refused.value.hint
    assert "redline init './server --port {port}'" in hint
    assert "redline ab './old --port {port}' './new --port {port}'" in hint
    assert "`redline run quickstart`" in hint
    assert suite_or_project(Path("quickstart")).is_file()
    (folder / "catalogue").mkdir()  # one of the user's, without suites
    with pytest.raises(UsageError) as refused:
        suite_or_project(None)
    assert "quickstart" not in refused.value.hint
