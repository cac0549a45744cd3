"""`redline.yaml` as a suite: what `run`, `ab`, `limit` and `load` measure without naming a server."""

import io
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from redline.analysis.own_servers import own_server
from redline.asking.comparison import comparison_document
from redline.asking.load import load_suite
from redline.asking.origins import FromRepository, find_project, project_here, project_name
from redline.asking.project import run_document
from redline.asking.search import search_document
from redline.asking.searching import read_servers_search
from redline.asking.suites import read_suite_file, suite_or_project
from redline.asking.written import plain
from redline.cli.command_line import AbFlags, CheckFlags, ProfileFlags, RunFlags, app
from redline.cli.commands import ab as compares
from redline.cli.commands import check, profile, run
from redline.cli.project_builds import commands_of
from redline.cli.search_view import show_search_plan
from redline.errors import UsageError
from redline.model import AttachedServer, Suite
from redline.model.catalogue import ComposeService, OwnImage
from redline.suite.planning import cannot_profile
from redline.suite.project import read_project
from tests.fakes import asks

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
    return read_suite_file(suite_or_project(None), asks.of_suite(**flags))[0]


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
    assert read_suite_file(Path("redline.yaml"), asks.of_suite())[0].variants[2].slug == "old"


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
        (
            "servers:\n  - {name: go}\n",
            "redline.yaml:2:5: servers[0]: this server has none of start, image, compose, url",
        ),
        (
            "servers:\n  - {name: go, image: 'shop:1', url: 'http://127.0.0.1:1'}\n",
            "redline.yaml:2:5: servers[0]: this server has both `image` and `url`",
        ),
        (
            "servers:\n  - {name: go, compose: compose.yaml, service: web}\n",
            "redline.yaml:2:5: servers[0]: `port` is missing: a server with `compose` needs it",
        ),
        (
            "servers:\n  - {name: go, compose: compose.yaml, service: web, port: 80, env: {A: '1'}}\n",
            "servers[0].env: a server with `compose` cannot have `env`",
        ),
        (
            "servers:\n  - {name: go, compose: compose.yaml, service: web, port: 80, env_file: .env}\n",
            "cannot have `env_file`\n  hint: write it as `env_file` of the service, in the compose file",
        ),
        (
            "servers:\n  - {name: go, image: 'shop:1', service: web}\n",
            "redline.yaml:2:42: servers[0].service: a server with `image` cannot have `service`",
        ),
        (
            "servers:\n  - {name: go, compose: compose.yaml, service: web, port: 80, memory: 64MiB}\n",
            "cannot have `memory`\n  hint: write it as `mem_limit` of the service, in the compose file",
        ),
        (
            "servers:\n  - {name: go, start: './go {port}', cpus: 2}\n",
            "servers[0].cpus: a server with `start` cannot have `cpus`",
        ),
        (f"servers:\n{GO}{GO}", "the server `go` is given twice"),
        ("servers:\n  - {name: a, url: 'http://h:1', env: {A: b}}\n", "is not started, so it cannot have `env`"),
        ("servers:\n  - {start: './go {port}'}\n", "servers[0].name: `name` is missing"),
        ("servers:\n  - {name: go, command: './go {port}'}\n", "servers[0].command: unknown key `command`"),
        (f"{TWO}objective: 'itms: p99 < 5ms'\n", "objective: there is no"),
        (TWO + "objective: p99 < 0ms\n", "redline.yaml:4:12: objective: "),
        (
            "servers:\n  - {name: a, url: 'http://h:1/x'}\n",
            "redline.yaml:2:20: servers[0].url: a server has no path, and this URL has /x\n  hint: move it to",
        ),
        (f"{TWO}loads: {{few: {{closed: {{users: 0}}}}}}\n", "redline.yaml:4:"),
    ],
)
def test_what_is_wrong_is_named_by_its_place_in_the_file(folder: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        suite_of(folder, text)
    assert says in str(refused.value)
    assert refused.value.hint


def test_servers_in_containers_are_those_of_the_suite_with_files_of_the_folder(folder: Path) -> None:
    image = "  - {name: shop, image: 'shop:1', env: {A: '1'}, cpus: 2, memory: 64MiB}\n"
    service = "  - {name: whole, compose: deploy/compose.yaml, service: web, port: 8080, fresh: service, build: make}\n"
    suite = suite_of(folder, f"servers:\n{image}{service}")
    shop, whole = (variant.catalogued for variant in suite.variants)
    limited = OwnImage(name="shop:1", cpus=2.0, memory_bytes=64 << 20)
    assert (shop.image, shop.compose, shop.start.command) == (limited, None, ())
    assert shop.start.env == {"A": "1"}
    file = str(folder / "deploy/compose.yaml")
    assert (whole.image, whole.compose) == (
        None,
        ComposeService(file=file, service="web", port=8080, fresh="service"),
    )
    assert [variant.place for variant in suite.variants] == ["container", "container"]
    assert [own_server(variant) for variant in suite.variants] == [
        "a container of shop:1, with 2 CPUs and 64.0 MiB of memory",
        f"the service web of {file}, in containers",
    ]
    assert "container" in cannot_profile(suite.variants[0], "cpu")


@pytest.mark.parametrize("place", [".", "below"])
def test_commands_and_files_of_containers_are_in_the_folder_of_the_file(
    folder: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from a folder below it, and for a suite there that names them."""
    text = (
        "servers:\n  - {name: shop, image: 'shop:1', env_file: .env, before: ./fill, build: one}\n"
        "  - {name: whole, compose: deploy/compose.yaml, service: web, port: 8080, after: ./empty, build: two}\n"
    )
    (folder / "below").mkdir()
    (folder / "redline.yaml").write_text(text)
    suite_file = folder / "below/suite.yaml"
    suite_file.write_text(
        "servers: [shop, whole]\nscenarios: [{name: root, get: /}]\nloads: {few: {closed: {users: 2}, for: 1s}}\n"
    )
    monkeypatch.chdir(folder / place)
    project = read_project(text, str(folder / "redline.yaml"))
    for suite in (
        read_suite_file(suite_or_project(None), asks.of_suite())[0],
        read_suite_file(suite_file, asks.of_suite())[0],
    ):
        shop, whole = (variant.catalogued for variant in suite.variants)
        assert {Path(entry.family_folder).resolve() for entry in (shop, whole)} == {folder}
        assert shop.start.env_file is not None
        assert Path(shop.start.env_file).resolve() == folder / ".env"
        assert whole.compose is not None
        assert Path(whole.compose.file).resolve() == folder / "deploy/compose.yaml"
        assert (shop.start.before, whole.start.after) == ("./fill", "./empty")
        assert commands_of(project, suite) == {"one": "shop", "two": "whole"}


def ab(text: str, **flags: Any) -> Any:
    return plain(
        comparison_document(asks.comparison(**flags), lambda _: ("", ""), str, read_project(text, "redline.yaml"))
    )


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
    flags, project = asks.search(), read_project(f"{TWO}{REQUESTS}objective: p99 < 50ms\n", "redline.yaml")
    made = plain(search_document(flags, lambda _: ("", ""), str, project))
    assert (made["baseline"], made["warmup"], made["objective"]) == ("go", {"detect": {}}, "p99 < 50ms")
    search = read_servers_search(asks.search(scenarios=["items"]), FromRepository(folder), project).request
    assert [scenario.name for scenario in search.suite.scenarios] == ["items"]
    assert [len(conditions) for conditions in search.terms.sets.values()] == [2]  # and few errors
    given = read_servers_search(asks.search(objective=["p95 < 9ms"]), FromRepository(folder), project).request
    assert list(given.terms.sets) == ["p95 < 9ms"]
    with pytest.raises(UsageError, match="nothing says what is to be met") as refused:
        read_servers_search(asks.search(), FromRepository(folder), read_project(TWO, "redline.yaml"))
    assert "in redline.yaml" in refused.value.hint


def test_a_load_starts_the_only_server_of_the_file_and_sends_all_its_requests(folder: Path) -> None:
    suite, _ = load_suite(asks.load(duration="1s"), read_project(f"start: ./go {{port}}\n{REQUESTS}", "redline.yaml"))
    assert [scenario.name for scenario in suite.scenarios] == ["mix"]
    assert suite.variants[0].catalogued.family_folder == str(folder)
    made = read_project(f"start: ./go {{port}}\n{REQUESTS}", "redline.yaml")
    assert [scenario.name for scenario in load_suite(asks.load(scenarios=["it*s"]), made)[0].scenarios] == ["items"]
    with pytest.raises(UsageError, match=r"-X: .* says what is requested"):
        load_suite(asks.load(method="put"), made)
    with pytest.raises(UsageError, match="-m none: there is no such request"):
        load_suite(asks.load(scenarios=["none"]), made)
    running, _ = load_suite(asks.load(), read_project(f"servers:\n{OLD}", "redline.yaml"))
    assert isinstance(running.variants[0].entry, AttachedServer)
    with pytest.raises(UsageError, match="names 2 servers, and a load takes one"):
        load_suite(asks.load(), read_project(TWO, "redline.yaml"))


@pytest.mark.parametrize("key", ["build: 'true'", "env: {A: '1'}", "runtime: jvm", "ready: {path: /up}"])
def test_what_revisions_alone_have_is_refused_beside_servers(key: str) -> None:
    with pytest.raises(UsageError, match="is for revisions, and there is no `start` beside it"):
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


def test_ab_says_that_a_file_has_a_single_server(folder: Path) -> None:
    assert project_here() is None
    (folder / "redline.yaml").write_text("start: ./go {port}\n")
    with pytest.raises(UsageError, match=r"redline.yaml names one server, and ab compares two") as refused:
        compares.execute(AbFlags())
    assert "`redline ab main`" in refused.value.hint


def test_a_revision_needs_a_start(folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    (folder / "redline.yaml").write_text(TWO)
    with pytest.raises(UsageError, match=r"redline.yaml does not say how a revision is started"):
        _ = FromRepository(folder).project


def test_the_only_server_is_that_of_revisions(folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    (folder / "redline.yaml").write_text(
        "servers:\n  - {name: go, build: make, start: './go {port}', env: {GOGC: '50'}, stop: {within: 1s}}\n"
    )
    project = FromRepository(folder).project
    assert project.own is not None
    assert (project.build, project.own.command, project.own.setup.env) == (
        "make",
        "./go {port}",
        {"GOGC": "50"},
    )
    assert project.own.stop is not None


@pytest.mark.parametrize(
    ("server", "names"),
    [("compose: compose.yaml, service: web, port: 80", "compose file"), ("image: shop:1", "image")],
)
def test_revisions_in_containers_are_compared_by_worktrees(folder: Path, server: str, names: str) -> None:
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    (folder / "redline.yaml").write_text(f"servers:\n  - {{name: go, {server}}}\n")
    with pytest.raises(UsageError, match=r"redline.yaml does not say how a revision is started") as refused:
        _ = FromRepository(folder).project
    assert "git worktree add" in refused.value.hint
    assert f"its {names}" in refused.value.hint


def test_without_suite_and_file_every_advice_can_be_followed(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"no suite is named, and there is no redline.yaml here") as refused:
        suite_or_project(None)
    hint = refused.value.hint
    assert "redline init './server --port {port}'" in hint
    assert "redline ab './old --port {port}' './new --port {port}'" in hint
    assert "`redline run quickstart`" in hint
    assert suite_or_project(Path("quickstart")).is_file()
    (folder / "catalogue").mkdir()  # one of the user's, without suites
    with pytest.raises(UsageError, match="`redline run quickstart`"):
        suite_or_project(None)
    assert suite_or_project(Path("quickstart")).is_file()


NGINX = "servers:\n  - {name: go, start: './go --port {port}', route: [direct, nginx]}\n"
ONE_WORKER = "routes:\n  one: [h1, {use: proxy.light-proxy, with: {heap: 1g}}, h1]\n"


def test_a_server_behind_a_proxy_is_compared_with_itself(folder: Path) -> None:
    suite = suite_of(folder, NGINX)
    assert [variant.slug for variant in suite.variants] == ["go", "go+via=nginx"]
    assert (suite.baseline, suite.auto is not None) == ("go", True)
    suite = suite_of(folder, NGINX + RUST + OLD.replace("8080'", "8080', route: one") + ONE_WORKER)
    assert [variant.slug for variant in suite.variants] == ["go", "go+via=nginx", "rust", "old+via=one"]
    assert {suite.baseline_of(variant.slug) for variant in suite.variants[1:]} == {"go"}
    assert written(NGINX + RUST + GO.replace("go", "c"))["budget"] == "60s"
    assert written(NGINX + RUST + GO.replace("go", "c") + OLD)["budget"] == "120s"  # four beside the baseline


def test_ab_compares_the_routes_to_an_only_server(folder: Path) -> None:
    (folder / "redline.yaml").write_text(NGINX)
    project = project_here()
    assert project is not None
    (server,) = plain(comparison_document(asks.comparison(), FromRepository(folder).ends, str, project))["servers"]
    assert server["route"] == ["direct", "nginx"]
    with pytest.raises(UsageError, match="says how its server is reached, and so does --route"):
        comparison_document(asks.comparison(route="haproxy"), FromRepository(folder).ends, str, project)


def test_ab_puts_a_proxy_before_the_only_server(folder: Path) -> None:
    project = read_project(f"servers:\n{GO}", "redline.yaml")
    (server,) = plain(comparison_document(asks.comparison(route="nginx"), FromRepository(folder).ends, str, project))[
        "servers"
    ]
    assert server["route"] == ["direct", "nginx"]
    with pytest.raises(UsageError, match=r"redline.yaml names 2 servers, and --route takes a single server") as refused:
        comparison_document(
            asks.comparison(route="nginx"), FromRepository(folder).ends, str, read_project(TWO, "redline.yaml")
        )
    assert "`route: [direct, nginx]`" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NGINX.replace("nginx", "ngnix"), "redline.yaml:2:61: servers[0].route[1]: there is no route and no proxy"),
        (NGINX + "routes: {one: [h1, proxy.none, h1]}\n", "redline.yaml:3:20: routes.one[1]: there is no proxy"),
    ],
)
def test_a_wrong_route_is_named_by_its_place(folder: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        suite_of(folder, text)
    assert says in str(refused.value)


def test_a_load_is_for_one_route(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"redline.yaml has 2 routes, and a load takes one"):
        load_suite(asks.load(), read_project(NGINX, "redline.yaml"))


def test_write_suite_knows_the_servers_of_redline_yaml(folder: Path) -> None:
    (folder / "redline.yaml").write_text(TWO.replace("port}'}", "port}', build: make go}", 1) + REQUESTS)
    done = CliRunner().invoke(app, ["ab", "--write-suite", "below.yaml"])
    assert done.exit_code == 0, done.exception
    assert "below.yaml does not build its servers, as redline.yaml does" in done.stderr
    assert "# Built by: make go" in Path("below.yaml").read_text()
    suite, _ = read_suite_file(Path("below.yaml"), asks.of_suite())
    assert [variant.slug for variant in suite.variants] == ["go", "rust"]
    assert [scenario.name for scenario in suite.scenarios] == ["items", "item", "mix"]
    assert suite.variants[0].catalogued.family_folder == str(folder)


def test_paths_of_an_image_are_those_of_its_file_wherever_it_is_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "redline.yaml").write_text("servers: [{name: shop, image: 'shop:1', env_file: .env, before: make}]\n")
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    (variant,) = read_suite_file(folder / "redline.yaml", asks.of_suite())[0].variants
    assert variant.catalogued.start.env_file == str(folder / ".env")
    assert variant.catalogued.family_folder == str(folder)
    (folder / "below" / "some.yaml").write_text(
        "servers: [shop]\nscenarios: [{name: root, get: /}]\nloads: {load: {closed: {users: 1}, for: 1s}}\n"
    )
    (variant,) = read_suite_file(Path("some.yaml"), asks.of_suite())[0].variants
    assert variant.catalogued.start.env_file == str(folder / ".env")
    assert variant.catalogued.family_folder == str(folder)


def test_images_and_services_are_built_as_commands_are(folder: Path) -> None:
    text = """
servers:
  - {name: go, start: './go --port {port}', build: make go}
  - {name: shop, image: 'shop:1', build: make image}
  - {name: whole, compose: deploy/compose.yaml, service: web, port: 8080, build: make base}
"""
    suite, project = suite_of(folder, text), read_project(text, "redline.yaml")
    assert commands_of(project, suite) == {"make go": "go", "make image": "shop", "make base": "whole"}
    (folder / "some.yaml").write_text(
        "servers: [{name: shop, image: 'other:1'}, {name: go, command: './mine {port}'}, whole]\n"
        "scenarios: [{name: root, get: /}]\nloads: {load: {closed: {users: 1}, for: 1s}}\n"
    )
    others, _ = read_suite_file(Path("some.yaml"), asks.of_suite())
    assert commands_of(project, others) == {"make base": "whole"}


@pytest.mark.parametrize(
    ("flags", "seconds"),
    [({}, 360), ({"scenarios": ["items"]}, 120), ({"scenarios": ["i*,mix"], "loads": ["few"]}, 180)],
)
def test_what_is_selected_takes_less_than_all(folder: Path, flags: dict[str, Any], seconds: int) -> None:
    loads = "loads: {few: {closed: {users: 2}}, many: {closed: {users: 64}}}\n"
    suite = suite_of(folder, TWO + REQUESTS + loads, **flags)
    assert suite.auto is not None
    assert suite.auto.budget_ns == seconds * SECOND
    suite = suite_of(folder, TWO + REQUESTS + loads + "budget: 5m\n", **flags)
    assert suite.auto is not None
    assert suite.auto.budget_ns == 300 * SECOND


@pytest.mark.parametrize(
    ("flags", "budget"),
    [({}, "360s"), ({"scenarios": ["item"]}, "120s"), ({"load": "closed:4"}, "180s"), ({"path": "/x"}, "120s")],
)
def test_ab_counts_what_it_measures(folder: Path, flags: dict[str, Any], budget: str) -> None:
    loads = "loads: {few: {closed: {users: 2}}, many: {closed: {users: 64}}}\n"
    project = read_project(TWO + REQUESTS + loads, "redline.yaml")
    assert (
        plain(comparison_document(asks.comparison(**flags), FromRepository(folder).ends, str, project))["budget"]
        == budget
    )


def searched(text: str) -> Any:
    return plain(search_document(asks.search(), FromRepository(Path()).ends, str, read_project(text, "redline.yaml")))


def test_a_search_of_some_servers_compares_them_with_the_first_of_them(folder: Path) -> None:
    project = read_project(THREE + "objective: p99 < 50ms\n", "redline.yaml")

    def suite(*globs: str) -> Suite:
        return read_servers_search(asks.search(servers=list(globs)), FromRepository(folder), project).request.suite

    assert ([variant.slug for variant in suite("rust,old").variants], suite("rust,old").baseline) == (
        ["rust", "old"],
        "rust",
    )
    assert ([variant.slug for variant in suite("r*").variants], suite("r*").baseline) == (["rust"], None)
    with pytest.raises(UsageError, match="none"):
        suite("none")


@pytest.mark.parametrize(("start", "says"), [(None, "what the warm-up shows"), ("500/s", "500 /s")])
def test_the_plan_of_a_search_says_what_sets_its_first_rate(folder: Path, start: str | None, says: str) -> None:
    project = read_project("start: ./go {port}\nobjective: p99 < 50ms\n", "redline.yaml")
    asked = read_servers_search(asks.search(start=start), FromRepository(folder), project)
    console = Console(file=io.StringIO(), width=120)
    show_search_plan(asked.request.plan(), asked.most_probes, (), (), asked.request.terms, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert says in shown
    assert "1.00 k/s" not in shown


def test_a_search_leaves_out_what_is_for_a_load_of_the_file(folder: Path) -> None:
    head = f"{TWO}{REQUESTS}loads: {{few: {{closed: {{users: 2}}}}}}\n"
    text = f"{head}objective: [p99 < 50ms, 'few: p95 < 9ms', 'few/items: p75 < 5ms']\n"
    assert searched(text)["objective"] == ["p99 < 50ms"]
    assert searched(f"{head}objective: {{good: 'p99 < 50ms', fast: 'few: p95 < 9ms, errors < 1%'}}\n")["objective"] == {
        "good": ["p99 < 50ms"]
    }
    asked = read_servers_search(asks.search(), FromRepository(folder), read_project(text, "redline.yaml"))
    (conditions,) = asked.request.terms.sets.values()
    assert conditions[0].text == "p99 < 50ms"
    with pytest.raises(UsageError, match=r"redline.yaml:8:12: objective: each condition is for a load of") as refused:
        searched(f"{head}objective: 'few: p95 < 9ms'\n")
    assert "give --objective" in refused.value.hint
    project = read_project(f"{head}objective: 'items: p50 < 1s'\n", "redline.yaml")
    with pytest.raises(UsageError, match=r"^`items: p50 < 1s` is for one load or scenario"):
        read_servers_search(asks.search(), FromRepository(folder), project)


@pytest.mark.parametrize(
    ("text", "flags", "says", "hint"),
    [
        (TWO, {"quick": True}, "--quick: redline.yaml does not say what is quick", "give -d and --trials"),
        (
            "servers:\n  - {name: a, url: 'http://h:1/x'}\n",
            {},
            "a server has no path",
            "move it to `check`, such as `get: /x`",
        ),
        (
            f"{TWO}loads: {{few: {{closed: {{users: 2}}, count: 9}}}}\nbudget: 1m\n",
            {},
            "ends by `count`",
            "remove `budget`",
        ),
        (
            "start: './go {port}'\nloads: {up: {closed: {users: 1, ramp: {to: 8, over: 3s}}}}\n",
            {"warmup": "auto"},
            "up",
            "give a time, such as --warmup 30s",
        ),
    ],
)
def test_hints_name_what_redline_yaml_has(folder: Path, text: str, flags: dict[str, Any], says: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        suite_of(folder, text, **flags)
    assert says in str(refused.value)
    assert hint in refused.value.hint


def test_reports_call_it_by_the_name_of_its_folder(folder: Path) -> None:
    assert suite_of(folder, TWO).name == folder.name
    project = project_here()
    assert project is not None
    assert project_name(project) == folder.name
    asked = read_servers_search(asks.search(objective=["p99 < 1s"]), FromRepository(folder), project)
    assert asked.request.suite.name == folder.name
    alone = read_project("start: './go {port}'\n", str(folder / "redline.yaml"))
    assert load_suite(asks.load(), alone)[0].name == folder.name


@pytest.mark.parametrize(
    ("named", "says", "hint"),
    [
        ("./server --port {port}", "server --port {port} is not a suite; is it a command?", "`redline init 'server "),
        ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x is a server, and not a suite", "`redline load http://127"),
        ("api/compose.yaml", "api/compose.yaml is a compose file, not a suite", "`redline init api/compose.yaml`"),
        ("Procfile", "Procfile is a Procfile, not a suite", "`redline init Procfile`"),
        ("shop.har", "shop.har is a recording of a browser, not a suite", "`redline init shop.har`"),
        ("quickstrat", "there is no file quickstrat", "did you mean `quickstart`?"),
        ("mine.yaml", "there is no file mine.yaml", "check the path"),
    ],
)
def test_what_is_no_suite_is_told_what_it_is(folder: Path, named: str, says: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        suite_or_project(Path(named))
    assert refused.value.message == says
    assert hint in refused.value.hint


def test_profile_is_run_with_a_profiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[RunFlags]()
    monkeypatch.setattr(run, "execute", asked.append)
    profile.execute(ProfileFlags(servers=["go"], trials=2))
    profile.execute(ProfileFlags(profile=["wall"]))
    profile.execute(ProfileFlags(resume=Path("runs/mine")))
    assert [flags.profile for flags in asked] == [["cpu"], ["wall"], []]
    assert asked[0].given() == RunFlags(servers=["go"], trials=2, profile=["cpu"]).given()


def test_the_plan_of_several_servers_says_what_is_profiled(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "redline.yaml").write_text(TWO)
    check.execute(CheckFlags(profile=["cpu"]))
    assert "starts of duets, 2 trials with a profiler (cpu), seed 1" in capsys.readouterr().out


def test_a_route_that_no_server_uses_may_name_a_proxy(folder: Path) -> None:
    suite = suite_of(folder, f"{TWO}routes: {{front: [h1, proxy.nginx, h1]}}\n")
    assert len(suite.variants) == 2
