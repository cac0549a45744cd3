"""`redline ab --git` on a small repository: what it builds and reports, and that it leaves nothing behind."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

from redline.model import Metric, Report, Verdict
from tests.e2e.compared import answer, compared, duet
from tests.e2e.conftest import CHECKOUT, Redline
from tests.e2e.leftovers import left_of, wait_for_the_second_start
from tests.fakes.servers.entries import eventually

pytestmark = pytest.mark.e2e

USERS = ("--load", "closed:16")
"""A slice of fewer has too few requests to show that servers are warm."""
SHORT = ("--for", "4s", *USERS)
PROJECT = """\
# yaml-language-server: $schema=../docs/reference/project.schema.json
build: |
  echo "compiling 'all' of it"
  sh "make it.sh"
start: sh run.sh {port}
check: {get: /path0, expect: {body: path0}}
"""


class Project:
    """A repository with a server that answers ever later: `v1`, `v2`, and `broken`, which does not build."""

    def __init__(self, folder: Path, oracle: Path) -> None:
        self.folder, self._oracle = folder, oracle
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        (folder / "redline.yaml").write_text(PROJECT)
        for tag, delay in (("v1", "1ms"), ("v2", "6ms"), ("broken", "")):
            self.write(delay)
            self.git("add", "--all")
            self.git("commit", "--quiet", "--message", tag)
            self.git("tag", tag)
        self.git("checkout", "--quiet", "v2")

    def write(self, delay: str) -> None:
        """The build makes a file that the start needs, so that the start fails without a build."""
        made = f'printf "fixed --delay {delay}" > mode' if delay else "echo undefined reference to main; exit 7"
        (self.folder / "make it.sh").write_text(f"{made}\n")
        (self.folder / "run.sh").write_text(f'exec "{self._oracle}" $(cat mode) --port "$1"\n')

    def git(self, *args: str) -> str:
        names = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", *args], cwd=self.folder, env={**os.environ, **names}, check=True, capture_output=True, text=True
        )
        return done.stdout


@pytest.fixture
def project(redline: Redline, tmp_path: Path, oracle: Path) -> Project:
    (tmp_path / "tmp").mkdir()
    redline.environment["TMPDIR"] = str(tmp_path / "tmp")
    made = Project(tmp_path / "project", oracle)
    redline.folder = made.folder
    return made


def wait_for_a_build(running: "subprocess.Popen[str]") -> None:
    assert running.stderr is not None
    assert any(line.startswith("building v1") for line in running.stderr)


def nothing_is_left(redline: Redline, project: Project) -> bool:
    deadline = time.monotonic() + 30  # a killed process exists until its new parent has reaped it
    while left_of(redline) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left_of(redline) and len(project.git("worktree", "list").splitlines()) == 1


def test_two_revisions_are_built_and_compared(redline: Redline, project: Project) -> None:
    schema = json.loads((CHECKOUT / "docs" / "reference" / "report.schema.json").read_text())
    done = compared(redline, "--git", "v1..v2", *USERS, "--metric", "p50", "--fail-on", "slower", decided=True)
    assert done.code == 3, done.err
    jsonschema.validate(done.json, schema)
    report = Report.model_validate(done.json)
    assert (answer(report).metric, answer(report).verdict) == (Metric.P50, Verdict.SLOWER)
    names = [f"{name} ({project.git('rev-parse', name)[:9]})" for name in ("v1", "v2")]
    assert [line for line in done.err.splitlines() if line.startswith("building")] == [
        f"building {name}" for name in names
    ]
    assert project.git("status", "--porcelain") == ""
    assert nothing_is_left(redline, project)


@pytest.mark.long
def test_each_revision_is_built_several_times(redline: Redline, project: Project, tmp_path: Path) -> None:
    """A start has a build of each revision, in turn; the layouts of all of them are in the interval."""
    folder = tmp_path / "run"
    done = redline("ab", "--git", "v1..v2", "--builds", "2", "--for", "8s", *USERS, "-o", str(folder), "--json")
    assert done.code == 0, done.err
    stored = [json.loads(file.read_bytes()) for file in sorted(folder.glob("duets/*.json"))]
    built = [{server.get("build_number", 0) for server in one["servers"]} for one in stored]
    assert len(built) >= 3
    assert sorted({number for numbers in built for number in numbers}) == [0, 1]
    assert all(len(numbers) == 1 for numbers in built), "all servers of a start have the same number"
    assert nothing_is_left(redline, project)


def test_commands_are_not_built_several_times(redline: Redline, project: Project) -> None:
    done = redline("ab", "./a {port}", "./b {port}", "--builds", "2")
    assert done.code == 2
    assert "only servers of the catalogue and revisions are built several times" in done.err
    assert "--builds 2" in done.err


@pytest.mark.long
def test_commits_of_documents_build_the_same_bytes_and_are_not_measured(redline: Redline, project: Project) -> None:
    """The server reads `mode`, which the build makes, and no document; the one that it serves is measured."""
    (project.folder / "README.md").write_text("read me")
    (project.folder / "served.md").write_text("v3")
    project.git("add", "--all")
    project.git("commit", "--quiet", "--message", "documents")
    folder = project.folder.parent / "kept"
    gates = ("--fail-on", "slower", "--fail-on", "inconclusive")
    done = redline("ab", "--git", "v2..HEAD", "--names", "v2,docs/new", "--json", *gates, "-o", str(folder))
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert report.run.same is not None
    assert report.run.same.text == "v2 and docs-new build the same bytes: nothing to compare"
    assert report.run.same.named == ("README.md", "served.md")
    assert report.run.starts == 0
    again = redline("ab", "--resume", str(folder), "--for", "4m")
    assert again.code == 0, again.err
    assert "v2 and docs-new build the same bytes: nothing to compare" in again.out
    for form in ("junit", "bmf", "benchmark", "annotations", "md", "csv", "html"):
        assert redline("report", str(folder), "--format", form).code == 0, form
    run = (project.folder / "run.sh").read_text()
    (project.folder / "run.sh").write_text(f"cat served.md\n{run}")
    project.git("commit", "--quiet", "--all", "--message", "serve a document")
    (project.folder / "served.md").write_text("v4")
    project.git("commit", "--quiet", "--all", "--message", "change it")
    measured = redline("ab", "--git", "HEAD^..HEAD", *SHORT, "--metric", "p50", "--json")
    assert Report.model_validate(measured.json).run.same is None
    assert nothing_is_left(redline, project)


@pytest.mark.long
def test_the_work_tree_is_compared_where_one_revision_is_named(redline: Redline, project: Project) -> None:
    project.write("15ms")
    before = project.git("status", "--porcelain")
    done = compared(redline, "--git", "v2", *USERS, "--metric", "p50", decided=True)
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert "building the work tree (" in done.err
    assert answer(report).verdict is Verdict.SLOWER
    assert project.git("status", "--porcelain") == before
    assert nothing_is_left(redline, project)
    redline("ab", "--git", "HEAD..v2", *SHORT).refused(2, "are the same commit", "measures what is not committed yet")
    redline("ab", "--git", "v2..broken", *SHORT).refused(1, "changes that are not committed are not measured")
    project.git("checkout", "--", ".")
    redline("ab", "--git", "HEAD", *SHORT).refused(
        2, "the work tree has no change of a tracked file since HEAD", "`git add`"
    )


@pytest.mark.long
def test_a_comparison_is_resumed_with_the_same_commits(redline: Redline, project: Project, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    done = compared(redline, "--git", "v1..v2", "--load", "closed:4", keep=str(kept))
    assert done.code == 0, done.err
    starts = len(list((kept / "duets").iterdir()))
    next((kept / "duets").glob("0001-*.json")).unlink()
    for tag in ("v1", "v2"):
        project.git("tag", "--force", tag, "broken")
    redline.folder = tmp_path
    again = redline("ab", "--resume", kept, "--metric", "p50")
    again.refused(2, "takes no --metric")
    again = redline("ab", "--resume", kept)
    assert again.code == 0, again.err
    built, anew = ([line for line in run.err.splitlines() if line.startswith("building ")] for run in (done, again))
    assert len(built) == 2
    assert anew == built
    assert len(list((kept / "duets").iterdir())) >= starts
    assert nothing_is_left(redline, project)


def test_a_revision_that_does_not_build_is_reported_with_its_output(redline: Redline, project: Project) -> None:
    done = redline("ab", "--git", "v1..broken", *SHORT)
    done.refused(1, "broken (", "does not build: `build` ended with code 7", "compiling 'all' of it", "undefined")
    assert nothing_is_left(redline, project)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("v1..nothing", "the revision nothing does not exist"),
        ("--help..v1", "the revision --help does not exist"),
        ("v1..HEAD^{tree}", "the revision HEAD^{tree} does not exist"),
        ("main...v2", "merge base of main and v2 and v2 are the same commit"),
    ],
)
def test_revisions_that_mean_nothing(redline: Redline, project: Project, given: str, says: str) -> None:
    redline("ab", f"--git={given}").refused(2, says)
    assert nothing_is_left(redline, project)


def test_where_there_is_nothing_to_build(redline: Redline, project: Project) -> None:
    (project.folder / "redline.yaml").unlink()
    redline("ab", "--git", "v1..v2").refused(2, "there is no redline.yaml")
    redline.folder = redline.folder.parent
    redline("ab", "--git", "v1..v2").refused(2, "is not in a git repository")


def test_a_revision_that_does_not_start_is_named(redline: Redline, project: Project) -> None:
    (project.folder / "run.sh").write_text("echo no configuration; exit 4\n")
    done = redline("ab", "--git", "v1", *SHORT)
    done.refused(1, "B exited with code 4", "no configuration", "A: v1 (", "B: the work tree (")
    assert nothing_is_left(redline, project)


def test_a_project_below_the_repository_is_built_there(redline: Redline, project: Project) -> None:
    below = project.folder / "services" / "items"
    below.mkdir(parents=True)
    (below / "redline.yaml").write_text("build: pwd >&2; exit 1\nstart: ./server {port}\n")
    redline.folder = below
    redline("ab", "--git", "v1..v2").refused(1, "v1 (", "has no folder services/items")
    project.git("add", "--all")
    done = redline("ab", "--git", "v2")
    done.refused(1, "v2 (", "has no folder services/items")
    project.git("commit", "--quiet", "--message", "a service")
    redline("ab", "--git", "HEAD..v2").refused(1, "does not build: `build` ended with code 1", "/services/items")
    assert nothing_is_left(redline, project)


@pytest.mark.parametrize("while_", ["building", "measuring"])
def test_an_interrupt_leaves_nothing(redline: Redline, project: Project, while_: str) -> None:
    if while_ == "building":
        (project.folder / "redline.yaml").write_text(f"{PROJECT}".replace('sh "make it.sh"', "sleep 300"))
    running = redline.start("ab", "--git", "v1..v2", "--for", "300s", "--load", "closed:2")
    wait_for_a_build(running)
    if while_ == "measuring":
        wait_for_the_second_start(Path(redline.environment["TMPDIR"]))
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert ("interrupted" in out) == (while_ == "measuring"), (out, err)
    assert nothing_is_left(redline, project)


@pytest.mark.long
def test_a_virtual_machine_is_measured_when_it_is_warm(redline: Redline, project: Project) -> None:
    (project.folder / "redline.yaml").write_text(f"{PROJECT}runtime: jvm\n")
    done = redline("ab", "--git", "v1..v2", "--for", "60s", "--load", "closed:4", "--metric", "p50", "--json")
    assert done.code == 0, done.err
    report = Report.model_validate(done.json)
    assert duet(report).starts >= 3
    assert answer(report).verdict is Verdict.SLOWER


def test_what_a_killed_command_left_is_removed_by_the_next(redline: Redline, project: Project) -> None:
    """Its build ends immediately; its worktrees exist until then."""
    (project.folder / "redline.yaml").write_text("build: sleep 300\nstart: sh run.sh {port}\n")
    killed = redline.start("ab", "--git", "v1..v2")
    wait_for_a_build(killed)
    assert eventually(lambda: len(project.git("worktree", "list").splitlines()) > 1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert eventually(lambda: not [left for left in left_of(redline) if left.startswith("/proc/")])
    assert len(project.git("worktree", "list").splitlines()) > 1
    (project.folder / "redline.yaml").write_text("build: exit 1\nstart: sh run.sh {port}\n")
    redline("ab", "--git", "v1..v2").refused(1, "does not build")
    assert len(project.git("worktree", "list").splitlines()) == 1
    assert [left for left in left_of(redline) if "worktrees" in left] == []


def test_a_checkout_of_a_killed_command_ends_with_it(redline: Redline, project: Project, tmp_path: Path) -> None:
    """A filter that fetches large files may take long."""
    project.git("config", "filter.slow.smudge", f"echo begun >> {tmp_path / 'log'}; sleep 300")
    project.git("config", "filter.slow.clean", "cat")
    (project.folder / ".git/info/attributes").write_text("run.sh filter=slow\n")
    killed = redline.start("ab", "--git", "v1..v2")
    assert eventually((tmp_path / "log").exists)
    killed.kill()
    killed.communicate()
    assert eventually(lambda: not [left for left in left_of(redline) if left.startswith("/proc/")])
    (project.folder / ".git/info/attributes").unlink()
    (project.folder / "redline.yaml").write_text("build: exit 1\nstart: sh run.sh {port}\n")
    redline("ab", "--git", "v1..v2").refused(1, "does not build")
    assert len(project.git("worktree", "list").splitlines()) == 1
    assert [left for left in left_of(redline) if "worktrees" in left] == []


def test_a_build_without_its_network_is_said_once_for_each_revision_and_leaves_nothing(
    project: Project, redline: Redline
) -> None:
    file = project.folder / "redline.yaml"
    file.write_text("build: 'echo curl 6 Could not resolve host; exit 6'\nstart: sh run.sh {port}\n")
    done = redline("ab", "--git", "v1..v2")
    done.refused(1, "redline: v1 (", "a network that does not answer", "cannot build B: v2 (")
    assert done.err.count("does not build") == 2
    assert len(project.git("worktree", "list").splitlines()) == 1
    assert left_of(redline) == []
    file.unlink()
    done = redline("ab", "--git", "v1..v2")
    done.refused(2, "there is no redline.yaml in")
    assert done.err.count("there is no redline.yaml in") == 1
    assert left_of(redline) == []
