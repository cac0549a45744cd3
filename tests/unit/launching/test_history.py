"""Commits between two revisions: their parents, what they touch, and revisions between which there are none."""

import os
import subprocess
from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.launching.history import CommitHistory, history_between
from redline.launching.revisions import Repository


class Work:
    """A repository whose commits change one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *args: str) -> str:
        names = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        command, env = ["git", "-C", str(self.folder), *args], {**os.environ, **names}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()

    def commit(self, file: str) -> str:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.read_text() + "more\n" if path.exists() else "first\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"change {file}")
        return self.git("rev-parse", "HEAD")

    def between(self, good: str, bad: str, *paths: str, first_parent: bool = False) -> CommitHistory:
        return history_between(Repository(self.folder), good, bad, paths, first_parent=first_parent)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path / "work")


def test_commits_come_after_their_parents_and_say_what_they_touch(work: Work) -> None:
    files = ["server.py", "naïve.py", "docs/guide.py", "README.md", "tests/test_it.py", "CMakeLists.txt"]
    commits = [work.commit(file) for file in files]
    history = work.between(commits[0], "HEAD")
    assert [commit.commit for commit in history.commits] == commits[1:]
    assert [commit.parents for commit in history.commits] == [(above,) for above in commits[:-1]]
    assert history.commits[0].subject == "change naïve.py"
    assert [commit.touches_code for commit in history.commits] == [True, False, False, False, True]
    assert (history.oldest.name, history.newest.name, history.is_fix) == (commits[0], "HEAD", False)


def test_with_paths_only_what_touches_them_counts(work: Work) -> None:
    first = work.commit("other.py")
    for file in ("src/a.py", "other.py", "README.md"):
        work.commit(file)
    assert [commit.touches_code for commit in work.between(first, "HEAD", "src").commits] == [True, False, False]
    assert [commit.touches_code for commit in work.between(first, "HEAD", "*.md").commits] == [False, False, True]
    with pytest.raises(UsageError, match=r"no commit between .* touches absent"):
        work.between(first, "HEAD", "absent")


def test_a_good_revision_that_is_newer_makes_it_a_search_for_what_made_it_better(work: Work) -> None:
    first, second = work.commit("a.py"), work.commit("a.py")
    history = work.between(second, first)
    assert (history.oldest.commit, history.newest.commit, history.is_fix) == (first, second, True)


def test_a_merge_is_one_commit_by_first_parents(work: Work) -> None:
    first = work.commit("a.py")
    work.git("checkout", "--quiet", "-b", "side")
    side = work.commit("side.py")
    work.git("checkout", "--quiet", "main")
    main = work.commit("main.py")
    work.git("merge", "--quiet", "--no-edit", "side")
    merge = work.git("rev-parse", "HEAD")
    every = work.between(first, "HEAD").commits
    assert {commit.commit for commit in every} == {side, main, merge}
    assert every[-1].commit == merge
    assert {*every[-1].parents} == {main, side}
    only = work.between(first, "HEAD", first_parent=True).commits
    assert [commit.commit for commit in only] == [main, merge]
    assert only[-1].touches_code
    assert all(commit.has_oldest for commit in (*every, *only))


def test_a_branch_that_began_before_the_oldest_commit_lacks_it(work: Work) -> None:
    work.commit("a.py")
    work.git("checkout", "--quiet", "-b", "side")
    side = work.commit("side.py")
    work.git("checkout", "--quiet", "main")
    oldest, main = work.commit("a.py"), work.commit("main.py")
    work.git("merge", "--quiet", "--no-edit", "side")
    has = {commit.commit: commit.has_oldest for commit in work.between(oldest, "HEAD").commits}
    assert has == {side: False, main: True, work.git("rev-parse", "HEAD"): True}


@pytest.mark.parametrize(("good", "bad", "says"), [("work tree", "HEAD", "no commit"), ("HEAD", "HEAD", "same commit")])
def test_revisions_between_which_nothing_is(work: Work, good: str, bad: str, says: str) -> None:
    work.commit("a.py")
    with pytest.raises(UsageError, match=says):
        work.between("the work tree" if good == "work tree" else good, bad)


def test_revisions_that_parted_name_where(work: Work) -> None:
    first = work.commit("a.py")
    main = work.commit("a.py")
    work.git("checkout", "--quiet", "-b", "side", first)
    work.commit("b.py")
    with pytest.raises(UsageError, match=f"they parted at {first[:9]}") as caught:
        work.between(main, "side")
    assert f"redline bisect {first[:9]} side" in caught.value.hint
