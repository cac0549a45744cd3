"""`redline ab --why` names the function in which a cost was planted, and none of equal servers."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from redline.extras.profiling import commands
from redline.model import Report
from tests.e2e.conftest import Redline

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SOURCE = Path(__file__).parents[1] / "fakes" / "servers" / "burning.c"
PLANTED = 15
"""Percent that `seldom`, which does 30 units of work of 100, does more."""


@pytest.fixture
def perf() -> None:
    if reason := commands.missing(commands.PERF):
        pytest.skip(reason)
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")


def built(folder: Path, name: str, units: int) -> str:
    """The command of a server whose function `seldom` does this many units of work."""
    source = SOURCE.read_text().replace("seldom(30 * 4000)", f"seldom({units} * 4000)")
    (folder / f"{name}.c").write_text(source)
    flags = ["-O1", "-fno-omit-frame-pointer", "-pthread"]
    subprocess.run(["cc", *flags, "-o", str(folder / name), str(folder / f"{name}.c")], check=True)
    return f"{folder / name} {{port}}"


def compared(redline: Redline, folder: Path, *commands: str) -> dict[str, Any]:
    """The account of the difference of two commands, which is short of time: three starts, and those with profilers."""
    done = redline("ab", *commands, "--why", "--for", "6s", "--load", "closed:2", "-o", folder / "run")
    assert done.code == 0, done.err
    assert "Why" in done.out
    text = (folder / "run" / "results.json").read_bytes()
    Report.model_validate_json(text)
    (why,) = json.loads(text)["why"]
    assert why.get("problem", "") == "", why
    assert why["starts"] == 8, why.get("lost_because")
    counted = {counter["name"].partition(" ")[0] for counter in why["counters"]}
    assert {"waits", "preemptions", "bytes", "memory", "threads"} <= counted
    parts = sum(cost["difference_ns"]["value"] for cost in why.get("functions", ()))
    assert parts + why["others_ns"]["value"] + why["rest_ns"]["value"] == pytest.approx(why["whole_ns"]["value"])
    return dict(why)


@pytest.mark.usefixtures("perf")
def test_a_planted_cost_is_named_first_with_its_size(redline: Redline, tmp_path: Path) -> None:
    base, more = built(tmp_path, "base", 30), built(tmp_path, "more", 30 + PLANTED)
    why = compared(redline, tmp_path, base, more)
    first = why["functions"][0]
    assert first["name"] == "seldom"
    grown = first["difference_ns"]["value"] / first["before_ns"]
    assert grown == pytest.approx(PLANTED / 30, rel=0.3)
    changed = {counter["name"].partition(" ")[0]: counter["changed"] for counter in why["counters"]}
    assert (changed["bytes"], changed["threads"]) == ("surely not", "surely not")


@pytest.mark.usefixtures("perf")
@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go")
def test_a_planted_cost_of_a_go_server_is_named_first(redline: Redline, tmp_path: Path) -> None:
    """On one core nearly all requests are of one thread, which perf must not have missed."""
    source, commands = SOURCE.with_suffix(".go").read_text(), list[str]()
    for name, units in (("base", 30), ("more", 30 + PLANTED)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.go").write_text(source.replace("30*4000", f"{units}*4000"))
        subprocess.run(["go", "build", "-o", "serve", "main.go"], cwd=tmp_path / name, check=True)
        commands.append(f"{tmp_path / name / 'serve'} {{port}}")
    assert source.count("30*4000") == 1
    why = compared(redline, tmp_path, *commands)
    first = why["functions"][0]
    assert first["name"] == "main.seldom"
    assert first["difference_ns"]["value"] / first["before_ns"] == pytest.approx(PLANTED / 30, rel=0.3)


@pytest.mark.usefixtures("perf")
def test_of_two_revisions_the_touched_function_is_tested_first_and_marked(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]

    def commit(source: str, message: str) -> None:
        (work / "serve.c").write_text(source)
        subprocess.run(["git", "add", "-A"], cwd=work, check=True)
        subprocess.run(["git", *who, "commit", "-qm", message], cwd=work, check=True)

    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    build = "cc -O1 -fno-omit-frame-pointer -pthread -o serve serve.c"
    (work / "redline.yaml").write_text(f"build: {build}\nstart: ./serve {{port}}\n")
    often, seldom, rest = SOURCE.read_text().split("__attribute__")
    commit(f"{often}__attribute__{seldom}__attribute__{rest}", "Serve")
    longer = rest.replace("at < units;", f"at < units * {30 + PLANTED} / 30;")
    commit(f"{often}__attribute__{seldom}__attribute__{longer}", "Do more")
    options: list[str | Path] = ["--why", "--for", "6s", "--load", "closed:2", "-o", tmp_path / "run"]
    done = Redline(work)("ab", "--git", "HEAD~1..HEAD", *options)
    assert done.code == 0, done.err
    (why,) = json.loads((tmp_path / "run" / "results.json").read_bytes())["why"]
    assert [(one["name"], one["file"]) for one in why["touched"]] == [("seldom", "serve.c")]
    first = why["functions"][0]
    assert (first["name"], first["touched"]) == ("seldom", True)
    assert "in seldom (touched in this range)" in " ".join(done.out.split())


@pytest.mark.usefixtures("perf")
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_functions_of_javascript_are_named_by_their_file(redline: Redline, tmp_path: Path) -> None:
    source, servers = SOURCE.with_suffix(".js").read_text(), list[str]()
    for name, units in (("base", 30), ("more", 30 + PLANTED)):
        (tmp_path / name).mkdir()
        script = tmp_path / name / "serve.js"
        script.write_text(source.replace("30 * 4000", f"{units} * 4000"))
        servers.append(f"node --no-turbo-inlining {script} {{port}}")  # an inlined function counts as its caller
    assert source.count("30 * 4000") == 1
    why = compared(redline, tmp_path, *servers)
    first = why["functions"][0]
    assert first["name"] == "JS:seldom serve.js"
    assert first["difference_ns"]["value"] / first["before_ns"] == pytest.approx(PLANTED / 30, rel=0.5)
    assert not list(tmp_path.glob("isolate-*"))


@pytest.mark.usefixtures("perf")
def test_of_equal_servers_no_function_is_named(redline: Redline, tmp_path: Path) -> None:
    why = compared(redline, tmp_path, built(tmp_path, "one", 30), built(tmp_path, "other", 30))
    assert why.get("functions", []) == []
