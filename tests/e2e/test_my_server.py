"""`redline.yaml` on real servers: every command of its guide, builds, and what `redline init` writes."""

import shlex
from functools import reduce
from pathlib import Path

import pytest

from redline.model import Report
from redline.suite.urls import base_of
from tests.e2e.conftest import Redline
from tests.e2e.test_documented_commands import OWN_PROJECT, SHORT_AB, SHORT_LIMIT, SHORT_LOAD, replaced, yaml_of
from tests.fakes import targets

pytestmark = pytest.mark.e2e

GUIDE = "my-server.md"
API = """\
openapi: 3.1.0
servers: [{{url: {url}}}]
paths: {{/items: {{get: {{responses: {{'200': {{description: items}}}}}}}}}}
"""
SHORT_TRIALS = ["-d", "200ms", "--warmup", "50ms", "--trials", "1"]


def server(oracle: Path) -> str:
    return f"{oracle} null --port {{port}}"


def write_project(folder: Path, oracle: Path, servers: int, more: str = "") -> None:
    """A file of so many servers."""
    names = ("go", "node", "python")[:servers]
    lines = "".join(f"  - {{name: {name}, start: '{server(oracle)}'}}\n" for name in names)
    (folder / "redline.yaml").write_text(f"servers:\n{lines}{more}")


@pytest.mark.long
@pytest.mark.parametrize("command", OWN_PROJECT)
def test_a_command_of_the_guide_works(command: str, redline: Redline, oracle: Path, tmp_path: Path) -> None:
    args = shlex.split(command)
    servers = {"run": 3, "profile": 1, "check": 3, "load": 1, "limit": 1, "ab": 2}.get(args[0])
    requests = "requests: [{name: items, get: /items}, {name: item, get: '/items/{rand:1..9}'}]\n"
    if servers is not None:
        write_project(tmp_path, oracle, servers, f"{requests}budget: 4s\nobjective: p99 < 1s\n")
    if args[0] == "profile":
        args = [*args, *SHORT_TRIALS]
    if args[0] == "load":
        args = replaced(args, SHORT_LOAD)
    if args[0] == "limit":
        args = [*replaced(args, SHORT_LIMIT), "-m", "items", "--trials", "2", "--no-beyond"]
    if args[0] == "ab":
        args = replaced(args, SHORT_AB)
    with targets.target(targets.healthy) as url:
        (tmp_path / "Procfile").write_text(f"web: {oracle} null --port $PORT\n")
        (tmp_path / "openapi.yaml").write_text(API.format(url=base_of(url)))
        own = {"./shop-go": f"{oracle} null", "go build -o shop-go .": "true"}
        args = [url if arg.startswith("http://") else arg for arg in args]
        args = [reduce(lambda text, known: text.replace(*known), own.items(), arg) for arg in args]
        done = redline(*args)
    assert done.code in ({0, 1, 3} if args[0] in {"run", "profile", "load", "limit", "ab"} else {0}), done.err
    assert "Traceback" not in done.err
    assert done.out


@pytest.mark.long
def test_the_first_file_of_the_guide_is_compared_in_one_try(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    text = yaml_of(GUIDE, "check: {get: /items}")
    for program in ("./shop-go", "node shop.js", "python3 shop.py"):
        assert program in text
        text = text.replace(program, f"{oracle} null")
    below = tmp_path / "below"
    below.mkdir()
    (tmp_path / "redline.yaml").write_text(f"{text}budget: 4s\n")
    redline = Redline(below)
    done = redline("run", "-o", "kept", "--json")
    report = Report.model_validate(done.json)
    servers = {cell.cell_id: cell.server for cell in report.cells}
    compared = {(servers[each.baseline_id], servers[each.cell_id]) for each in report.comparisons}
    assert compared >= {("go", "node"), ("go", "python")}
    assert "report:" in done.err
    assert redline("report", "kept").code == 0


def test_a_server_alone_is_built_and_loaded(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    (tmp_path / "redline.yaml").write_text(
        f"build: |\n  mkdir bin\n  ln -s {oracle} bin/shop\nstart: bin/shop null --port {{port}}\n"
    )
    done = redline("run", *SHORT_TRIALS, "--json")
    assert "building shop" in done.err
    (cell,) = Report.model_validate(done.json).cells
    assert cell.server == "shop"
    again = redline("load", *SHORT_LOAD)
    again.refused(1, "shop does not build", "File exists", "run `build` of redline.yaml by hand")


def test_a_load_starts_the_server_of_the_file(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    write_project(tmp_path, oracle, 1)
    done = redline("load", *SHORT_LOAD, "--json")
    assert done.json["url"] == server(oracle)
    assert done.json["counts"]["outcomes"]["ok"] > 0
    write_project(tmp_path, oracle, 3)
    redline("load").refused(2, "redline.yaml names 3 servers", "`redline run` compares them")
    redline("ab").refused(2, "redline.yaml names 3 servers, and ab compares two")


def test_init_shows_the_answer_and_writes_a_file_that_runs(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    done = redline("init", "--path", "/items", str(oracle), "null", "--port", "{port}")
    assert done.code == 0, done.err
    assert done.out.startswith("GET /items: status 200, ")
    assert "redline run" in done.out
    text = (tmp_path / "redline.yaml").read_text()
    assert "get: /items" in text
    assert redline("check").code == 0
    redline("init", server(oracle)).refused(2, "redline.yaml exists already")
    assert (tmp_path / "redline.yaml").read_text() == text


def test_init_asks_a_running_server_as_curl_does(redline: Redline, tmp_path: Path) -> None:
    with targets.target(targets.echoes) as url:
        done = redline("init", f"curl -s {url} -H 'X-Mine: 1' -d '{{\"name\": \"pen\"}}'")
        assert done.code == 0, done.err
        text = (tmp_path / "redline.yaml").read_text()
        assert "X-Mine" in text
        assert "post: /" in text
        loaded = redline("load", *SHORT_LOAD, "--json")
    assert loaded.json["counts"]["outcomes"]["ok"] > 0


def test_init_writes_what_a_file_of_requests_asks(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    (tmp_path / "Procfile").write_text(f"worker: none\nweb: {oracle} null --port $PORT\n")
    (tmp_path / "openapi.yaml").write_text(API.format(url="http://shop.example"))
    redline("init", "openapi.yaml").refused(2, "openapi.yaml names http://shop.example, which is not on this machine")
    done = redline("init", "--requests", "openapi.yaml", "Procfile")
    assert done.code == 0, done.err
    assert "web of Procfile" in done.err
    assert "not started: worker" in done.err
    assert "http://shop.example is not contacted" in done.err
    assert "GET /items: status 200" in done.out
    loaded = redline("load", *SHORT_LOAD, "--json")
    assert loaded.json["counts"]["outcomes"]["ok"] > 0


def test_init_writes_nothing_for_a_server_that_does_not_answer(redline: Redline, tmp_path: Path) -> None:
    with targets.target(targets.fails) as url:
        redline("init", url).refused(2, "is answered with status 500")
    redline("init", url).refused(1, "has no answer: ")
    redline("init", "./none --port {port}").refused(1, "none")
    assert not (tmp_path / "redline.yaml").exists()


def test_an_empty_folder_is_told_what_to_do(redline: Redline) -> None:
    redline("run").refused(2, "no suite is named, and there is no redline.yaml here or above", "redline init")
    redline("limit").refused(2, "no server and no suite is named", "redline init")
    redline("check").refused(2, "redline init")
