"""`redline ab --git` in git's hooks: commits, the index and files are the same as without them."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from redline.git import NAMES_A_REPOSITORY, leave_the_callers_repository
from tests.e2e.conftest import REDLINE, Redline
from tests.e2e.leftovers import left_of

pytestmark = pytest.mark.e2e

BUILD = """\
env | grep '^GIT_' >> "$SEEN" || true
git rev-parse --show-toplevel >> "$SEEN"
echo more >> tracked
git add --all
"""
EXEC = "exec"
FAILS = f"{BUILD}exit 1\n"


@dataclass(frozen=True)
class Work:
    """A folder that a user works in: the main worktree of a repository, or a linked worktree."""

    folder: Path
    environment: dict[str, str]

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.folder, env=self.environment, check=False, capture_output=True, text=True
        )
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def state(self) -> tuple[str, ...]:
        """The tree of the last commit, the index, and how the files differ from it."""
        asked = (("rev-parse", "HEAD^{tree}"), ("ls-files", "--stage"), ("status", "--porcelain"), ("diff",))
        return tuple(self.git(*words) for words in asked)


def made(folder: Path, *, linked: bool, build: str = FAILS, start: str = "false {port}") -> Work:
    """A repository with two commits, and files that are staged, changed and untracked."""
    names = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **names, "SEEN": str(folder / "seen"), "TMPDIR": str(folder / "tmp")}
    work = Work(folder / "project", environment)
    for each in (folder, folder / "tmp", work.folder):
        each.mkdir()
    work.git("init", "--quiet", "--initial-branch", "main")
    indented = build.replace("\n", "\n  ")
    work.write(**{"redline.yaml": f"build: |\n  {indented}\nstart: {start}\n", "tracked": "1", "other": "1"})
    work.git("add", "--all")
    work.git("commit", "--quiet", "--message", "one")
    work.git("commit", "--quiet", "--allow-empty", "--message", "two")
    if linked:
        work.git("worktree", "add", "--quiet", "-b", "linked", "../linked")
        work = Work(folder / "linked", environment)
    work.write(tracked="staged", other="staged", new="staged")
    work.git("add", "tracked", "other", "new")
    work.write(other="changed", untracked="untracked")
    return work


def hook(work: Work, name: str, command: str) -> None:
    """Let git run a command, as a hook or by `rebase --exec`; its exit code is ignored."""
    file = work.folder / work.git("rev-parse", "--git-path", f"hooks/{name}").strip()
    file = work.folder.parent / name if name == EXEC else file
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'#!/bin/sh\n{{ {command}; }} >> "$SEEN.ab" 2>&1 || true\n')
    file.chmod(0o755)


def ab(*args: str) -> str:
    return f"{REDLINE} ab --for 3s --load closed:2 --git {' '.join(args)}"


def push(work: Work) -> None:
    work.git("init", "--quiet", "--bare", "../remote")
    work.git("push", "--quiet", "../remote", "HEAD:pushed")


def rebase(work: Work) -> None:
    if not (work.folder.parent / EXEC).exists():
        hook(work, EXEC, "true")
    work.git("stash", "--quiet")
    work.git("rebase", "--quiet", "--exec", f"../{EXEC}", "HEAD^")
    work.git("stash", "pop", "--quiet", "--index")


SITUATIONS: dict[str, tuple[str, str, Callable[[Work], object]]] = {
    "all that is staged": ("pre-commit", "HEAD^..HEAD", lambda work: work.git("commit", "--quiet", "-m", "x")),
    "one file": ("pre-commit", "HEAD", lambda work: work.git("commit", "--quiet", "-m", "x", "--", "tracked")),
    "all that has changed": ("pre-commit", "HEAD", lambda work: work.git("commit", "--quiet", "-a", "-m", "x")),
    "with one file more": ("pre-commit", "HEAD", lambda w: w.git("commit", "-q", "-m", "x", "--include", "other")),
    "again": ("prepare-commit-msg", "HEAD", lambda work: work.git("commit", "--quiet", "--amend", "--no-edit")),
    "after it": ("post-commit", "HEAD^..HEAD", lambda work: work.git("commit", "--quiet", "-m", "x", "--", "tracked")),
    "push": ("pre-push", "HEAD^..HEAD", push),
    "rebase": (EXEC, "HEAD^..HEAD", rebase),
}


SITUATIONS_OF_LINKED = ("one file", "rebase")
"""The situations in which git's variables name the most; the others of a linked worktree are long tests."""
IN_WORKTREES = [
    pytest.param(
        name,
        linked,
        id=f"{name}-{'linked' if linked else 'main'}",
        marks=[pytest.mark.long] if linked and name not in SITUATIONS_OF_LINKED else [],
    )
    for name in SITUATIONS
    for linked in (False, True)
]


@pytest.mark.parametrize(("situation", "linked"), IN_WORKTREES)
def test_a_hook_changes_nothing_that_git_does(tmp_path: Path, situation: str, linked: bool) -> None:
    name, revisions, act = SITUATIONS[situation]
    with_hook, without = (made(tmp_path / each, linked=linked) for each in ("with", "without"))
    hook(with_hook, name, ab(revisions))
    for work in (with_hook, without):
        act(work)
    assert with_hook.state() == without.state()
    assert "does not build" in (tmp_path / "with/seen.ab").read_text()
    seen = (tmp_path / "with/seen").read_text().splitlines()
    assert [line for line in seen if line.partition("=")[0] in NAMES_A_REPOSITORY] == []
    tops = [line for line in seen if line.startswith("/")]
    assert tops
    assert all(Path(top).is_relative_to(tmp_path / "with/tmp") for top in tops), tops
    assert with_hook.git("worktree", "list").count("\n") == 1 + linked
    assert with_hook.git("fsck", "--no-dangling") == ""


def test_servers_in_a_hook_have_no_repository_either(redline: Redline, tmp_path: Path, oracle: Path) -> None:
    """A partial commit that waits for the hooks takes only the file that it names."""
    start = f"""sh -c 'env | grep ^GIT_ >> "$SEEN"; exec "{oracle}" fixed --delay 1ms --port "$0"' {{port}}"""
    with_hook, without = (
        made(tmp_path / each, linked=True, build=BUILD, start=f"|-\n  {start}") for each in ("with", "without")
    )
    hook(with_hook, "pre-commit", ab("HEAD"))
    redline.environment["TMPDIR"] = with_hook.environment["TMPDIR"]
    for work in (with_hook, without):
        work.git("commit", "--quiet", "--message", "x", "--", "tracked")
    said = (tmp_path / "with/seen.ab").read_text()
    assert "the work tree" in said, said
    assert with_hook.state() == without.state()
    seen = (tmp_path / "with/seen").read_text().splitlines()
    assert [line for line in seen if line.partition("=")[0] in NAMES_A_REPOSITORY] == []
    assert any(line.startswith("GIT_AUTHOR_NAME=") for line in seen)
    assert left_of(redline) == []


def test_the_work_tree_is_read_beside_the_index(redline: Redline, tmp_path: Path) -> None:
    """Staged files, a conflict, a file that is marked to be added, and a locked index make no difference."""
    work = made(tmp_path / "made", linked=False)
    work.git("commit", "--quiet", "--message", "ours", "--", "tracked")
    work.git("checkout", "--quiet", "-b", "theirs", "HEAD^")
    work.write(tracked="theirs")
    work.git("commit", "--quiet", "--message", "theirs", "--", "tracked")
    subprocess.run(["git", "stash"], cwd=work.folder, env=work.environment, check=True, capture_output=True)
    subprocess.run(["git", "merge", "main"], cwd=work.folder, env=work.environment, check=False, capture_output=True)
    work.write(later="to be added")
    work.git("add", "--intent-to-add", "later")
    work.write(untracked="not to be seen")
    index = work.folder / ".git/index"
    before = index.read_bytes(), index.stat().st_mtime_ns, work.git("--no-optional-locks", "status", "--porcelain")
    (work.folder / ".git/index.lock").write_text("")
    redline.folder, redline.environment["TMPDIR"] = work.folder, work.environment["TMPDIR"]
    redline.environment["SEEN"] = str(tmp_path / "seen")
    build = "[ ! -e later ] || { cat tracked later; ls -A; exit 1; } > $SEEN"
    work.write(**{"redline.yaml": f"build: '{build}'\nstart: false {{port}}\n"})
    redline("ab", "--git", "HEAD").refused(1, "the work tree (", "does not build")
    seen = (tmp_path / "seen").read_text()
    assert "<<<<<<<" in seen
    assert "to be added" in seen
    assert "untracked" not in seen
    (work.folder / ".git/index.lock").unlink()
    assert before[:2] == (index.read_bytes(), index.stat().st_mtime_ns)
    assert work.git("stash", "list").count("\n") == 1


def test_no_hook_of_the_users_runs(redline: Redline, tmp_path: Path) -> None:
    work = made(tmp_path / "made", linked=False, build="exit 1\n")
    hooks, ran = tmp_path / "hooks", tmp_path / "ran"
    hooks.mkdir()
    for name in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor"):
        (hooks / name).write_text(f'#!/bin/sh\necho {name} >> "{ran}"\n')
        (hooks / name).chmod(0o755)
    work.git("config", "core.hooksPath", str(hooks))
    work.git("config", "core.fsmonitor", str(hooks / "fsmonitor"))
    redline.folder, redline.environment = work.folder, {**redline.environment, **work.environment}
    redline("ab", "--git", "HEAD").refused(1, "does not build")
    assert not ran.exists(), ran.read_text()


@pytest.mark.parametrize("kind", ["a submodule", "a worktree of a bare repository"])
def test_repositories_without_a_folder_of_their_own(redline: Redline, tmp_path: Path, kind: str) -> None:
    origin = made(tmp_path / "origin", linked=False)
    work = Work(tmp_path / "work", origin.environment)
    if kind == "a submodule":
        origin.git("init", "--quiet", str(tmp_path / "around"))
        around = Work(tmp_path / "around", origin.environment)
        around.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin.folder), "below")
        work = Work(tmp_path / "around/below", origin.environment)
    else:
        origin.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
        origin.git("--git-dir", str(tmp_path / "bare.git"), "worktree", "add", "--quiet", str(work.folder))
    work.write(tracked="changed")
    before = work.state()
    redline.folder, redline.environment = work.folder, {**redline.environment, **work.environment}
    redline("ab", "--git", "HEAD").refused(1, "HEAD (", "does not build")
    assert work.state() == before
    assert len([line for line in work.git("worktree", "list").splitlines() if "redline-" in line]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_users_is_refused_with_gits_advice(redline: Redline, tmp_path: Path) -> None:
    work = made(tmp_path / "made", linked=False)
    for each in (work.folder, work.folder / ".git"):
        os.chown(each, 65534, 65534)
    redline.folder = work.folder
    redline.environment["GIT_CONFIG_GLOBAL"] = "/dev/null"
    redline("ab", "--git", "HEAD").refused(2, "does not trust", "detected dubious ownership", "--add safe.directory")


def test_a_worktree_that_git_was_making_is_forgotten(redline: Redline, tmp_path: Path) -> None:
    """Git locks the worktree until it is complete, and the lab and git may be killed meanwhile."""
    work = made(tmp_path / "made", linked=False)
    redline.folder, redline.environment = work.folder, {**redline.environment, **work.environment}
    redline("ab", "--git", "HEAD").refused(1, "does not build")
    parent = next((tmp_path / "made/tmp").glob("redline-worktrees-*"))
    work.git("worktree", "add", "--quiet", "--detach", "--lock", str(parent / "redline-1-abcdefgh" / "00"))
    (parent / "redline-1-abcdefgh.lock").write_text("")
    work.git("worktree", "add", "--quiet", "--detach", "--lock", str(tmp_path / "theirs"))
    redline("ab", "--git", "HEAD").refused(1, "does not build")
    assert [Path(line.split()[0]).name for line in work.git("worktree", "list").splitlines()] == ["project", "theirs"]


def test_all_that_git_lists_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    names = {*listed.stdout.split(), "GIT_PREFIX", "GIT_QUARANTINE_PATH"}
    for name in (*names, "GIT_SSH_COMMAND"):
        monkeypatch.setenv(name, "something")
    leave_the_callers_repository()
    assert names & os.environ.keys() == set()
    assert os.environ["GIT_SSH_COMMAND"] == "something"
