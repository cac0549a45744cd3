"""Revisions of a git repository: checked out in temporary worktrees, and built there."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from redline.errors import BuildError, UsageError
from redline.files import open_anew
from redline.model.duet import Revision
from redline.plugins.commands import started
from redline.plugins.git import git, git_command
from redline.plugins.launchers.failures import tail
from redline.plugins.launchers.guard import signal_name
from redline.plugins.temporary import private_folder, temporary_folder
from redline.ports import Building

WORK_TREE = "the work tree"
_SHOWN_LINES = 20
_READ_AT_MOST = 65_536
_NOBODY = {f"GIT_{role}_{what}": "redline" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@dataclass(frozen=True)
class Repository:
    """A git repository with a work tree, by its topmost folder."""

    folder: Path

    @classmethod
    def around(cls, folder: Path) -> "Repository":
        """The repository that a folder is in. Raises UsageError."""
        done = _git(folder, "rev-parse", "--show-toplevel")
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()[-1:] or ["it cannot be read"]
            if "safe.directory" in said[0]:
                raise UsageError(f"git does not trust the repository of {folder}: it is another user's", hint=said[0])
            hint = "change to a folder of the repository; --git compares two of its revisions"
            raise UsageError(f"{folder} is not in a git repository: {said[0]}", hint=hint)
        return cls(Path(done.stdout.rstrip("\n")))

    def range(self, written: str) -> tuple[Revision, Revision]:
        """The two ends, as `git diff` means them; they differ. Raises UsageError.

        `A..B`: both; `A...B`: what B has changed since it left A; `A`: A and the tracked files of the work tree.
        """
        one, dots, other = written.partition("...") if "..." in written else written.partition("..")
        first = self._revision(one or "HEAD")
        second = self._revision(other or "HEAD") if dots else self._work_tree()
        if dots == "...":
            base = _git(self.folder, "merge-base", first.commit, second.commit).stdout.strip()
            if not base:
                raise UsageError(f"{first.name} and {second.name} have no common commit", hint=self._shallow_hint())
            first = Revision(name=f"merge base of {first.name} and {second.name}", commit=base)
        if first.commit == second.commit:
            hint = "name two commits, such as main..HEAD; `--git HEAD` measures what is not committed yet"
            raise UsageError(f"{first.name} and {second.name} are the same commit {first.commit[:9]}", hint=hint)
        return first, second

    def _work_tree(self) -> Revision:
        """A commit of the tracked files as they are now; the last one where they have not changed.

        It has no name, so git removes it some day. The index is a copy: the user's stays as it is, also when a
        `git commit` that waits for its hook has locked it. Raises UsageError.
        """
        with tempfile.TemporaryDirectory() as own:
            index = Path(own, "index")
            with suppress(FileNotFoundError):  # nothing was ever added
                # With its time, by which git knows which files may have changed unseen.
                shutil.copy2(Path(self._said("rev-parse", "--absolute-git-dir"), "index"), index)
            env = {"GIT_INDEX_FILE": str(index), **_NOBODY}
            self._said("add", "--update", env=env)
            tree = self._said("write-tree", env=env)
            commit = self._revision("HEAD").commit
            if tree != self._said("rev-parse", "HEAD^{tree}"):
                commit = self._said("commit-tree", tree, "-p", "HEAD", "-m", WORK_TREE, env=env)
        return Revision(name=WORK_TREE, commit=commit)

    def _said(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        """What git prints. Raises UsageError where it fails."""
        done = _git(self.folder, *args, env=env)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()[-1:] or [f"`git {args[0]}` ended with code {done.returncode}"]
            raise UsageError(f"the work tree of {self.folder} cannot be read: {said[0]}", hint="see `git status`")
        return done.stdout.rstrip("\n")

    def has_changes(self) -> bool:
        """Whether tracked files differ from the last commit."""
        return bool(_git(self.folder, "status", "--porcelain", "--untracked-files=no").stdout.strip())

    def _revision(self, name: str) -> Revision:
        found = _git(self.folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if found.returncode != 0 or name.startswith("-"):
            raise UsageError(f"the revision {name} does not exist", hint=self._shallow_hint())
        return Revision(name=name, commit=found.stdout.strip())

    def _shallow_hint(self) -> str:
        if _git(self.folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
            return "this clone is shallow: fetch more with `git fetch --unshallow`, in CI with `fetch-depth: 0`"
        return "`git log --oneline` and `git branch --all` show what there is"

    @contextmanager
    def checked_out(self, revisions: Sequence[Revision]) -> Iterator[tuple[Path, ...]]:
        """Folders with the revisions, removed when the block is left. Raises BuildError, and OSError for no folder."""
        parent = private_folder("worktrees")
        try:
            with temporary_folder(parent) as folder:
                self._forget(parent)
                # Of equal length: paths take room in a process, and that moves what it measures.
                folders = tuple(folder / f"{number:02d}" for number in range(len(revisions)))
                for each, revision in zip(folders, revisions, strict=True):
                    self._check_out(revision, each)
                yield folders
        finally:
            self._forget(parent)

    def _check_out(self, revision: Revision, folder: Path) -> None:
        how = ("worktree", "add", "--force", "--detach", str(folder), revision.commit)
        with started(git_command(self.folder, *how)) as process:
            said = process.communicate()[0].decode(errors="replace").strip()
        if process.returncode != 0:
            lines = "".join(f"\n    {line}" for line in said.splitlines()[-_SHOWN_LINES:])
            hint = f"is there room in {folder.parent}? TMPDIR names another folder"
            raise BuildError(f"git cannot check out {revision}:{lines}", hint=hint)

    def _forget(self, parent: Path) -> None:
        """Let git forget the worktrees below this folder that are gone, also those of a lab that was killed."""
        for line in _git(self.folder, "worktree", "list", "--porcelain").stdout.splitlines():
            key, _, path = line.partition(" ")
            if key == "worktree" and Path(path).is_relative_to(parent.resolve()) and not Path(path).exists():
                # Twice: git locks one that it is making, and was killed then.
                _git(self.folder, "worktree", "remove", "--force", "--force", path)


def build(command: str, folder: Path, name: str, log: Path, progress: Callable[[Building], None]) -> None:
    """Run commands of a shell in a folder, and keep their output in a log. Raises BuildError with its last lines."""
    progress(Building((name,)))
    with open_anew(log) as kept, started(["sh", "-e", "-c", command], folder) as process:
        while process.stdout and (raw := process.stdout.readline(_READ_AT_MOST)):
            kept.write(raw)
            progress(Building((name,), raw.decode(errors="replace").strip()))
        code = process.wait()
    if code != 0:
        how = f"with code {code}" if code > 0 else f"by {signal_name(-code)}"
        said = "".join(f"\n    {line}" for line in tail(log, _SHOWN_LINES).splitlines())
        hint = "check it out and build it by hand, with `build` of redline.yaml"
        raise BuildError(f"{name} does not build: `build` ended {how}:{said or ' it wrote nothing'}", hint=hint)


def _git(folder: Path, *args: str, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Raises UsageError when there is no git."""
    with suppress(FileNotFoundError):
        return git(folder, *args, env=env)
    raise UsageError("git is not installed", hint="install it, or give two commands in place of --git")
