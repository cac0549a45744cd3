"""Read the commits between two revisions of a git repository, and which files each of them changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from redline.errors import UsageError
from redline.launching.revisions import Repository
from redline.model.catalogue import WORK_TREE, Revision

_COMMIT, _FIELD = "\x01", "\x02"
_FORMAT = f"--format={_COMMIT}%H{_FIELD}%P{_FIELD}%s{_FIELD}"
_NO_CODE_ENDINGS = (".md", ".rst", ".adoc", ".gitignore", ".gitattributes", ".editorconfig")
_NO_CODE_FOLDERS = {"doc", "docs", "test", "tests", ".github", ".gitlab"}
_NO_CODE_NAMES = ("LICENSE", "README", "CHANGELOG", "AUTHORS", "CONTRIBUTING")


@dataclass(frozen=True)
class HistoryCommit:
    """A commit: its hash, those of its parents, its subject, and whether it touches what may change the server.

    `has_oldest`: it contains the oldest commit; on a branch that began before, it does not.
    """

    commit: str
    parents: tuple[str, ...]
    subject: str
    touches_code: bool
    has_oldest: bool


@dataclass(frozen=True)
class CommitHistory:
    """The commits after `oldest` up to `newest`, parents first. `is_fix`: the good revision is the newest."""

    oldest: Revision
    newest: Revision
    is_fix: bool
    commits: tuple[HistoryCommit, ...]


def history_between(
    repository: Repository, good: str, bad: str, paths: Sequence[str] = (), *, first_parent: bool = False
) -> CommitHistory:
    """Return the commits between a good and a bad revision, either of which is an ancestor of the other.

    With `paths`, commits that touch none of them count as such that change nothing; otherwise documents and tests do.
    Raises UsageError.
    """
    if WORK_TREE in (good, bad):
        raise UsageError("the work tree is no commit", hint="commit what is to be searched")
    first, second = repository.revision(good), repository.revision(bad)
    if first.commit == second.commit:
        message = f"{first.name} and {second.name} are the same commit {first.commit[:9]}"
        raise UsageError(message, hint="name a good commit and a bad one, such as v1.2 HEAD")
    is_fix = False
    if not repository.is_ancestor(first, second):
        if not repository.is_ancestor(second, first):
            raise _apart(repository, first, second)
        first, second, is_fix = second, first, True
    way = ("--first-parent", "-m") if first_parent else ()
    listing = ("log", "--topo-order", "--reverse", *way, f"{first.commit}..{second.commit}")
    named = repository.read("-c", "core.quotePath=false", *listing, _FORMAT, "--name-only")
    touching = None
    if paths:
        touched = repository.read(*listing, "--format=%H", "--full-history", "--", *paths)
        touching = set(touched.split())
        if not touching:
            said = " ".join(paths)
            hint = "paths count from the current folder; leave them out to search all commits"
            raise UsageError(f"no commit between {first.name} and {second.name} touches {said}", hint=hint)
    later = {*repository.read("rev-list", "--ancestry-path", f"{first.commit}..{second.commit}").split()}
    commits = tuple(_commit(text, touching, later) for text in named.split(_COMMIT)[1:])
    return CommitHistory(first, second, is_fix, commits)


def _commit(text: str, touching: set[str] | None, later: set[str]) -> HistoryCommit:
    commit, parents, subject, files = text.split(_FIELD, 3)
    changed = [line for line in files.splitlines() if line]
    touches = any(map(_may_be_code, changed)) if touching is None else commit in touching
    return HistoryCommit(commit, tuple(parents.split()), subject, touches, commit in later)


def _may_be_code(file: str) -> bool:
    path = PurePath(file)
    is_none = file.endswith(_NO_CODE_ENDINGS) or path.name.startswith(_NO_CODE_NAMES)
    return not is_none and not _NO_CODE_FOLDERS & {*path.parts[:-1]}


def _apart(repository: Repository, good: Revision, bad: Revision) -> UsageError:
    """The error where neither of two revisions is an ancestor of the other."""
    base = repository.merge_base(good, bad)
    if base is None:
        return UsageError(f"{good.name} and {bad.name} have no common commit", hint=repository.shallow_hint())
    message = f"{good.name} is no ancestor of {bad.name}: they parted at {base[:9]}"
    hint = f"if that commit is good too, search from there: redline bisect {base[:9]} {bad.name}"
    return UsageError(message, hint=hint)
