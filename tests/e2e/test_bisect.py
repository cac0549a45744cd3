"""`redline bisect` on small repositories: what it finds, what it skips, and that it leaves nothing behind."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import jsonschema
import pytest

from redline.model.bisection import Bisection
from redline.storage.runs import RunStore
from tests.e2e.conftest import CHECKOUT, Redline
from tests.e2e.leftovers import left_of
from tests.e2e.preloaded import BRIEF
from tests.e2e.test_documented_commands import BISECTED
from tests.fakes.servers.entries import eventually

pytestmark = pytest.mark.e2e

SHORT = ("--for", "3s", "--load", "closed:2", "--metric", "throughput")
MEASURED = ("--measure", "sleep 0.3; grep -o '[0-9]*ms' run.sh | tr -d ms", "--for", "1ms")
"""The delay, of the text of the start: without a server."""
PROJECT = "start: sh run.sh {port}\ncheck: {get: /path0, expect: {body: path0}}\n"
FAST, SLOW, BROKEN = "1ms", "6ms", ""


class History:
    """A repository with a commit for each delay of its server; without a delay it does not start."""

    def __init__(self, folder: Path, oracle: Path) -> None:
        self.folder, self._oracle = folder, oracle
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")
        (folder / "redline.yaml").write_text(PROJECT)
        (folder / ".gitignore").write_text("runs/\n")

    def commit(self, delay: str, subject: str) -> str:
        """A commit of a server with a delay, even if nothing else changes."""
        start = f'exec "{self._oracle}" fixed --delay {delay} --port "$1"' if delay else "echo no configuration; exit 4"
        (self.folder / "run.sh").write_text(f"# {subject}\n{start}\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", subject)
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *args: str) -> str:
        names = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", *args], cwd=self.folder, env={**os.environ, **names}, check=True, capture_output=True, text=True
        )
        return done.stdout


@pytest.fixture
def history(redline: Redline, tmp_path: Path, oracle: Path) -> History:
    (tmp_path / "tmp").mkdir()
    redline.environment |= {"TMPDIR": str(tmp_path / "tmp"), BRIEF: "1"}
    made = History(tmp_path / "project", oracle)
    redline.folder = made.folder
    return made


def nothing_is_left(redline: Redline, history: History) -> bool:
    deadline = time.monotonic() + 30  # a killed process exists until its new parent has reaped it
    while left_of(redline) and time.monotonic() < deadline:
        time.sleep(0.05)
    alone = len(history.git("worktree", "list").splitlines()) == 1
    return alone and not left_of(redline) and history.git("status", "--porcelain") == ""


def test_the_commit_is_found_and_one_that_does_not_start_is_skipped(redline: Redline, history: History) -> None:
    delays = (FAST, FAST, BROKEN, SLOW, SLOW)
    commits = [history.commit(delay, f"commit {number}") for number, delay in enumerate(delays)]
    done = redline("bisect", commits[0], "HEAD", *SHORT, "--json", "-o", "runs/found")
    assert done.code == 0, done.err
    schema = json.loads((CHECKOUT / "docs" / "reference" / "cli.schema.json").read_text())
    jsonschema.validate(done.json, schema)
    told = Bisection.model_validate(done.json)
    assert told.ending == "found"
    assert told.culprits == (commits[2], commits[3])
    assert told.probability >= 0.95
    assert told.change is not None
    assert told.change[0] < -0.5
    broken = [commit for commit in told.commits if commit.broken]
    assert [commit.commit for commit in broken] == [commits[2]]
    assert "exited with code 4" in broken[0].broken
    assert f"git bisect skip {commits[2]}" in told.log
    assert f"git bisect good {commits[1]}" in told.log
    replayed = subprocess.run(
        ["git", "bisect", "replay", "runs/found/bisect.log"],
        cwd=history.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    history.git("bisect", "reset")
    assert "could be any of" in replayed.stdout
    assert {*told.culprits} <= {*replayed.stdout.split()}
    again = redline("bisect", "--resume", "runs/found")
    assert again.code == 0, again.err
    assert "one of 2 commits, of which 1 cannot be measured, made throughput" in " ".join(again.out.split())
    assert "building" not in again.err
    assert nothing_is_left(redline, history)


@pytest.mark.parametrize("how", [MEASURED, pytest.param(SHORT, marks=pytest.mark.long)], ids=["command", "servers"])
def test_a_killed_search_goes_on(redline: Redline, history: History, how: tuple[str, ...]) -> None:
    commits = [history.commit(SLOW if number > 2 else FAST, f"commit {number}") for number in range(5)]
    kept = history.folder / "runs" / "killed"
    killed = redline.start("bisect", commits[0], "HEAD", *how, "-o", str(kept))
    try:
        assert eventually((kept / "bisect.json").exists, within_s=120)
    finally:
        os.killpg(killed.pid, signal.SIGKILL)
        killed.communicate()
    before = Bisection.model_validate_json((kept / "bisect.json").read_bytes())
    redline("bisect", "--resume", kept, "--metric", "p99").refused(2, "takes no --metric")
    redline("bisect", commits[0], "HEAD", *how, "-o", kept).refused(2, "already holds a bisection")
    done = redline("bisect", "--resume", kept, "--json")
    assert done.code == 0, done.err
    told = Bisection.model_validate(done.json)
    assert told.culprits == (commits[3],)
    assert told.order[: len(before.order)] == before.order
    assert told.commits[-1].duets[0] == before.commits[-1].duets[0]
    assert nothing_is_left(redline, history)


@pytest.mark.long
def test_the_commit_is_accounted_for_against_its_parent(redline: Redline, history: History) -> None:
    commits = [history.commit(delay, f"commit {number}") for number, delay in enumerate((FAST, FAST, SLOW))]
    done = redline("bisect", commits[0], "HEAD", *SHORT, "--why", "-o", "runs/found")
    assert done.code == 0, done.err
    assert f"why: {commits[2][:9]} against its parent" in done.err
    pair = [
        RunStore(history.folder / "runs/found" / part).manifest().plan
        for part in ("why", "steps/0001-" + commits[2][:9])
    ]
    compared = [[one.catalogued.checkout.revision.commit for one in plan.suite.variants] for plan in pair]  # type: ignore[union-attr]
    assert compared == [[commits[1], commits[2]], [commits[0], commits[2]]]
    assert [plan.suite.why for plan in pair] == [True, False]
    assert "more CPU per request" in done.out or "not accounted for" in done.out or "no function is named" in done.out
    assert nothing_is_left(redline, history)


def test_the_same_bytes_are_no_difference(redline: Redline, history: History) -> None:
    fast = history.commit(FAST, f"commit of {FAST}")
    (history.folder / "README.md").write_text("read me")
    history.git("add", "--all")
    history.git("commit", "--quiet", "--message", "a document")
    done = redline("bisect", fast, "HEAD", *SHORT)
    assert done.code == 1, done.err
    assert "no difference in throughput" in done.out
    assert nothing_is_left(redline, history)


def test_a_command_that_prints_a_number(redline: Redline, history: History) -> None:
    """It needs no server, and so no engine's time; one commit prints nothing."""
    (history.folder / "redline.yaml").write_text(f"build: cp size built\n{PROJECT}")
    commits = []
    for number, size in enumerate((100, 100, 100, None, 110, 110, 110)):
        (history.folder / "size").write_text("nothing" if size is None else f"{size}\n")
        commits.append(history.commit(FAST, f"commit {number}"))
    command = ("--measure", "echo 7; cat built", "--for", "1ms")
    done = redline("bisect", commits[0], "HEAD", *command, "--json")
    assert done.code == 0, done.err
    told = Bisection.model_validate(done.json)
    assert told.culprits == (commits[3], commits[4])
    assert told.change is not None
    assert told.change[0] == pytest.approx(0.1, abs=0.01)
    assert "printed no number" in next(commit.broken for commit in told.commits if commit.broken)
    done = redline("bisect", commits[0], "HEAD", *command, "--higher-is-better")
    assert done.code == 1
    assert "HEAD is the better one in the number" in done.out
    swapped = f"to find the commit that made it so: redline bisect HEAD {commits[0]}"
    assert swapped in " ".join(done.out.split())
    redline("bisect", commits[0], "HEAD", "--measure", "exit 3").refused(1, "ended with code 3")
    redline("bisect", commits[0], "HEAD", *command, "--load", "closed:2").refused(2, "takes no --load")
    assert nothing_is_left(redline, history)


def test_revisions_between_which_there_is_nothing_to_search(redline: Redline, history: History) -> None:
    first, second = history.commit(FAST, "first"), history.commit(FAST, "second")
    history.git("checkout", "--quiet", "-b", "side", first)
    side = history.commit(SLOW, "side")
    history.git("checkout", "--quiet", "--orphan", "other")
    other = history.commit(SLOW, "other")
    redline("bisect", "HEAD").refused(2, "there are no two revisions")
    redline("bisect", first, "nothing").refused(2, "the revision nothing does not exist")
    redline("bisect", first, first).refused(2, "are the same commit")
    redline("bisect", second, side).refused(2, f"they parted at {first[:9]}", f"redline bisect {first[:9]}")
    redline("bisect", first, other).refused(2, "have no common commit")
    redline("bisect", first, second, "--", "absent").refused(2, "touches absent")
    redline("bisect", first, second, "--higher-is-better").refused(2, "is about --measure")
    redline("bisect", "--resume", "runs/none").refused(2, "holds no bisection")
    shallow = history.folder.parent / "shallow"
    clone = ("clone", "--quiet", "--depth", "1", "--branch", "main", f"file://{history.folder}", str(shallow))
    history.git(*clone)
    redline.folder = shallow
    redline("bisect", first, "HEAD").refused(2, f"the revision {first} does not exist", "this clone is shallow")
    redline.folder = history.folder.parent
    redline("bisect", "a", "b").refused(2, "is not in a git repository")
    assert nothing_is_left(redline, history)


def test_an_interrupt_says_how_to_go_on(redline: Redline, history: History) -> None:
    commits = [history.commit(SLOW if number > 1 else FAST, f"commit {number}") for number in range(4)]
    kept = history.folder / "runs" / "stopped"
    running = redline.start("bisect", commits[0], "HEAD", *MEASURED, "-o", str(kept))
    assert eventually((kept / "bisect.json").exists, within_s=120)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, (out, err)
    assert f"bisect --resume {kept}" in err
    assert nothing_is_left(redline, history)


@pytest.mark.parametrize(
    "command", [c if "--measure" in c else pytest.param(c, marks=pytest.mark.long) for c in BISECTED]
)
def test_a_documented_search_finds_its_commit(redline: Redline, history: History, command: str) -> None:
    (history.folder / "src").mkdir()
    for number, delay in enumerate((FAST, SLOW)):
        (history.folder / "src" / "code").write_text(delay)
        (history.folder / "Cargo.lock").write_text(delay)
        (history.folder / "Makefile").write_text(f"bench:\n\t@echo {delay} {number + 1}\n")
        commit = history.commit(delay, delay)
        if delay == FAST:
            history.git("tag", "v1.2")
    given = shlex.split(command)
    if "--measure" in given:
        given[given.index("--for") + 1] = "1ms"
    else:
        given[1:1] = SHORT
    done = redline(*given)
    assert done.code == 0, done.err
    assert f"{commit[:9]} {SLOW} made" in " ".join(done.out.split())
