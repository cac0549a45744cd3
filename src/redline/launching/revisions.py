"""Check out revisions of a git repository in temporary worktrees, and build them there."""

import errno
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from redline.errors import BuildError, UsageError
from redline.files import mend, open_anew, user_cache
from redline.git import git, git_command
from redline.launching.commands import lines_of, started
from redline.launching.error_lines import reason
from redline.launching.failures import tail
from redline.launching.guard import how_ended
from redline.launching.temporary import elsewhere, private_folder, temporary_folder
from redline.linux.mounts import noexec_mount
from redline.model.catalogue import WORK_TREE, Revision
from redline.ports import Building
from redline.wording import part

_WHOLE = "-U1000000"
"""As many lines around a change as a file has."""
_BARE, _INSIDE = "--is-bare-repository", "--is-inside-git-dir"
_FULL = re.compile(r"No space left|quota exceeded", re.IGNORECASE)
_DENIED = re.compile(r"Permission denied", re.IGNORECASE)
_NO_NETWORK = re.compile(
    r"could(?: not|n't) (?:resolve|connect)|failed to connect|connection refused|ECONNREFUSED|ENOTFOUND|EAI_AGAIN"
    r"|(?:name or service|host) not known|failure in name resolution|network is unreachable|no route to host"
    r"|dial tcp|UnknownHostException|failed to lookup address|connection timed out|max retries exceeded",
    re.IGNORECASE,
)
"""Messages of curl, pip, npm, Go, cargo, Maven and git if a server does not answer, or its name is unknown."""
_OFFLINE = "it used a network that does not answer: fetch what it needs before, or build on a network"
_SUBMODULE = re.compile(r"^\s*path\s*=\s*(.*\S)", re.MULTILINE)
_SHOWN_LINES = 20
_KEPT_S = 14 * 86_400
_BY_HAND = "check it out and build it by hand, with `build` of redline.yaml"
_NOBODY = {f"GIT_{role}_{what}": "redline" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@dataclass(frozen=True)
class Repository:
    """A git repository with a work tree, by its topmost folder."""

    folder: Path

    @classmethod
    def around(cls, folder: Path) -> "Repository":
        """Return the repository that contains a folder. Raises UsageError."""
        done = _git(folder, "rev-parse", "--show-toplevel")
        if done.returncode != 0:
            raise _no_work_tree(folder, done.stderr)
        return cls(Path(done.stdout.rstrip("\n")))

    def range(self, written: str) -> tuple[Revision, Revision]:
        """Return the two different ends of a range, as `git diff` reads it. Raises UsageError.

        `A..B`: both; `A...B`: the changes of B since it left A; `A`: A and the tracked files of the work tree.
        """
        left, dots, right = written.partition("...") if "..." in written else written.partition("..")
        first = self.revision(left or "HEAD")
        second = self.revision(right or "HEAD") if dots else self.revision(WORK_TREE)
        if dots == "...":
            base = self.merge_base(first, second)
            if base is None:
                raise UsageError(f"{first.name} and {second.name} have no common commit", hint=self.shallow_hint())
            first = Revision(name=f"merge base of {first.name} and {second.name}", commit=base)
        if first.commit == second.commit:
            if not dots:
                message = (
                    f"the work tree has no change of a tracked file since {first.name}, which is {first.commit[:9]}"
                )
                raise UsageError(
                    message, hint="name two commits, such as main..HEAD; a new file counts after `git add`"
                )
            hint = f"name two commits, such as main..HEAD; {part('git', 'HEAD')} measures what is not committed yet"
            raise UsageError(f"{first.name} and {second.name} are the same commit {first.commit[:9]}", hint=hint)
        return first, second

    def merge_base(self, first: Revision, second: Revision) -> str | None:
        """Return the commit at which two revisions parted; None if they have none in common. Raises UsageError."""
        done = _git(self.folder, "merge-base", first.commit, second.commit)
        if done.returncode not in (0, 1):
            raise self._unreadable(done)
        return done.stdout.strip() or None

    def is_ancestor(self, first: Revision, second: Revision) -> bool:
        """Whether the second revision contains the first. Raises UsageError."""
        done = _git(self.folder, "merge-base", "--is-ancestor", first.commit, second.commit)
        if done.returncode not in (0, 1):
            raise self._unreadable(done)
        return done.returncode == 0

    def _work_tree(self) -> Revision:
        """Return a commit of the tracked files as they are now; the last commit if they have not changed.

        The repository does not get it: its objects are in the cache. The index is a copy: the user's stays as it is,
        even if a `git commit` that waits for its hook has locked it. Raises UsageError.
        """
        with tempfile.TemporaryDirectory() as own:
            index = Path(own, "index")
            with suppress(FileNotFoundError):  # nothing was ever added
                # Keep its time, by which git knows which files may have changed unseen.
                shutil.copy2(Path(self.read("rev-parse", "--absolute-git-dir"), "index"), index)
            apart = self._apart()
            env = {"GIT_INDEX_FILE": str(index), **apart}
            self.read("add", "--update", env=env)
            tree = self.read("write-tree", env=env)
            commit = self._revision("HEAD").commit
            if tree != self.read("rev-parse", "HEAD^{tree}"):
                commit = self.read("commit-tree", tree, "-p", "HEAD", "-m", WORK_TREE, env={**apart, **_NOBODY})
        return Revision(name=WORK_TREE, commit=commit)

    def _apart(self) -> dict[str, str]:
        """Return the variables with which git writes objects into the cache, and reads those of the repository too.

        A resumed comparison needs them, for two weeks at most. Raises UsageError.
        """
        objects = Path(self.folder, self.read("rev-parse", "--git-path", "objects")).resolve()
        kept = user_cache() / "objects"
        own = kept / hashlib.sha256(os.fsencode(objects)).hexdigest()[:16]
        try:
            (own / "info").mkdir(mode=0o700, parents=True, exist_ok=True)
            (own / "info" / "alternates").write_bytes(_quoted(objects) + b"\n")
            _remove_old(kept)
        except OSError as error:
            hint = f"{mend(error)}, or set XDG_CACHE_HOME to another folder"
            raise UsageError(f"the work tree cannot be kept in {own}: {error.strerror}", hint=hint) from error
        return {"GIT_OBJECT_DIRECTORY": str(own)}

    def read(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        """Return the output of git. Raises UsageError if it fails."""
        done = _git(self.folder, *args, env=env)
        if done.returncode != 0:
            raise self._unreadable(done)
        return done.stdout.rstrip("\n")

    def whole_diff(self, first: Revision, second: Revision) -> str:
        """Return how two revisions differ, with all lines of every file that differs. Raises UsageError."""
        env = self._apart() if WORK_TREE in (first.name, second.name) else None
        plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")
        return self.read("diff", *plain, "--find-renames", _WHOLE, first.commit, second.commit, env=env)

    def _unreadable(self, done: "subprocess.CompletedProcess[str]") -> UsageError:
        said = reason(done.stderr) or f"git ended with code {done.returncode}"
        return UsageError(
            f"the repository {self.folder} cannot be read: {said}", hint="see `git status` and `git fsck`"
        )

    def revision(self, name: str) -> Revision:
        """Return the revision of a name; for `WORK_TREE`, a commit of the current tracked files. Raises UsageError."""
        return self._work_tree() if name == WORK_TREE else self._revision(name)

    def has_changes(self) -> bool:
        """Whether tracked files differ from the last commit."""
        return bool(_git(self.folder, "status", "--porcelain", "--untracked-files=no").stdout.strip())

    def _revision(self, name: str) -> Revision:
        parsed = _git(self.folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if parsed.returncode > 1:  # 1 is for what is not there, or is no commit
            raise self._unreadable(parsed)
        if parsed.returncode != 0 and not _git(self.folder, "rev-list", "--all", "--max-count=1").stdout:
            raise UsageError(f"the repository {self.folder} has no commit yet", hint="commit what is to be compared")
        if parsed.returncode != 0 or name.startswith("-"):
            raise UsageError(f"the revision {name} does not exist", hint=self.shallow_hint())
        return Revision(name=name, commit=parsed.stdout.strip())

    def shallow_hint(self) -> str:
        """What to do about a commit that is not there."""
        if _git(self.folder, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
            return "this clone is shallow: fetch more with `git fetch --unshallow`, in CI with `fetch-depth: 0`"
        return "`git log --oneline` and `git branch --all` show what there is"

    @contextmanager
    def checked_out(self, revision: Revision) -> Iterator[Path]:
        """Check a revision out in a folder, which is removed when the block ends. Raises BuildError and OSError."""
        parent = private_folder("worktrees")
        try:
            with temporary_folder(parent) as folder:
                self._forget(parent)
                # All names have the same length: paths take memory in a process, which changes the measurement.
                self._check_out(revision, folder / "worktree")
                yield folder / "worktree"
        finally:
            self._forget(parent)

    def _check_out(self, revision: Revision, folder: Path) -> None:
        """Check a commit out; the work tree as changes to the commit before it, which the repository has."""
        commit = revision.commit
        if revision.name != WORK_TREE or _git(self.folder, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0:
            self._add(revision, commit, folder)
            return
        apart = self._apart()
        parent = _git(self.folder, "rev-parse", "--verify", "--quiet", f"{commit}^", env=apart)
        if parent.returncode != 0:
            hint = "start a new comparison: the files of a work tree are kept for two weeks, in the cache"
            raise BuildError(f"{revision} is no longer there", hint=hint)
        self._add(revision, parent.stdout.strip(), folder)
        # The last step leaves an index as before `git add`: a build sees the changes as in the user's own folder.
        for args in (("read-tree", "-u", "--reset", commit), ("reset", "--quiet", "-N")):
            done = _git(folder, *args, env=apart)
            if done.returncode != 0:
                self._not_checked_out(revision, done.stderr.strip(), folder)

    def _add(self, revision: Revision, commit: str, folder: Path) -> None:
        how = ("worktree", "add", "--force", "--detach", str(folder), commit)
        with started(git_command(self.folder, *how)) as process:
            said = process.communicate()[0].decode(errors="replace").strip()
        if process.returncode != 0:
            self._not_checked_out(revision, said, folder)

    @staticmethod
    def _not_checked_out(revision: Revision, said: str, folder: Path) -> NoReturn:
        lines = "".join(f"\n    {line}" for line in said.splitlines()[-_SHOWN_LINES:])
        # Git removes what it has written, so only git can say whether the disk was full.
        hint = f"`git worktree add --detach DIR {revision.commit[:9]}` does the same by hand"
        if _FULL.search(said):
            hint = f"make room in {folder.parent}; {elsewhere()}"
        raise BuildError(f"git cannot check out {revision}: {reason(said)}:{lines}", hint=hint)

    def _forget(self, parent: Path) -> None:
        """Let git forget removed worktrees below this folder, also those of killed labs."""
        for line in _git(self.folder, "worktree", "list", "--porcelain").stdout.splitlines():
            key, _, path = line.partition(" ")
            if key == "worktree" and Path(path).is_relative_to(parent.resolve()) and not Path(path).exists():
                # Twice: git locks a worktree that it was making when it was killed.
                _git(self.folder, "worktree", "remove", "--force", "--force", path)


def _quoted(path: Path) -> bytes:
    """Return a path as git reads it, whatever characters it has."""
    raw = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + raw + b'"'


def _remove_old(folder: Path) -> None:
    """Remove files that nobody has written for two weeks; git touches an object when it would write it again."""
    for above, _, names in os.walk(folder, topdown=False):
        for path in (Path(above, name) for name in names):
            with suppress(FileNotFoundError):
                if path.lstat().st_mtime < time.time() - _KEPT_S:
                    path.unlink()


def missing_submodule(folder: Path) -> str | None:
    """Return the path of a submodule that a checkout in a folder lacks; None if it lacks none."""
    try:
        text = (folder / ".gitmodules").read_text(errors="replace")
    except OSError:
        return None
    paths = _SUBMODULE.findall(text)
    return next((path for path in paths if (folder / path).is_dir() and not any((folder / path).iterdir())), None)


def _no_work_tree(folder: Path, stderr: str) -> UsageError:
    """Return the error if git sees no work tree around a folder."""
    said = reason(stderr) or "git gives no reason"
    if trusting := next((line.strip() for line in stderr.splitlines() if "--add safe.directory" in line), None):
        return UsageError(f"git does not trust the repository of {folder}: {said}", hint=trusting)
    is_bare, is_inside = (*_git(folder, "rev-parse", _BARE, _INSIDE).stdout.split(), "", "")[:2]
    if is_bare == "true":
        hint = "clone it, or add a work tree with `git worktree add`, and run the command there"
        return UsageError(f"{folder} is in a bare repository, which has no work tree", hint=hint)
    if is_inside == "true":
        return UsageError(f"{folder} is inside of a .git folder: {said}", hint="change to the work tree beside it")
    there = next((above / ".git" for above in (folder, *folder.parents) if os.path.lexists(above / ".git")), None)
    if there is not None:
        hint = f"see `git -C {there.parent} status`; a fresh clone mends a repository"
        return UsageError(f"git cannot use {there}: {said}", hint=hint)
    hint = f"change to a folder of the repository; {part('git')} compares two of its revisions"
    return UsageError(f"{folder} is not in a git repository: {said}", hint=hint)


def build(  # noqa: PLR0913, PLR0917 - what, where, for whom, and where its output goes
    command: str, folder: Path, name: str, log: Path, progress: Callable[[Building], None], hint: str = _BY_HAND
) -> None:
    """Run shell commands in a folder, and keep their output in a log. Raises BuildError with its last lines."""
    progress(Building((name,)))
    with open_anew(log) as kept, started(["sh", "-e", "-c", command], folder) as process:
        for raw in lines_of(process):
            kept.write(raw)
            progress(Building((name,), raw.decode(errors="replace").strip()))
        code = process.wait()
    if code != 0:
        how = how_ended(code)
        said = "".join(f"\n    {line}" for line in tail(log, _SHOWN_LINES).splitlines())
        if _NO_NETWORK.search(said):
            hint = f"{_OFFLINE}; {hint}"
        if _DENIED.search(said) and (forbidden := noexec_mount(folder)):
            how, hint = f"{how}, and {forbidden}", elsewhere()
        raise BuildError(f"{name} does not build: `build` ended {how}:{said or ' it wrote nothing'}", hint=hint)


def _git(folder: Path, *args: str, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run git. Raises UsageError when it is not installed."""
    try:
        return git(folder, *args, env=env)
    except OSError as error:
        why = "is not installed" if error.errno == errno.ENOENT else f"cannot be run: {error.strerror}"
        raise UsageError(f"git {why}", hint=f"install it, or give two commands in place of {part('git')}") from error
