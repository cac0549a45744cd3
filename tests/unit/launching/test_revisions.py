"""Messages about a repository that cannot be compared: git's own reason, and only what was checked."""

import os
import subprocess
from pathlib import Path

import pytest

from redline.errors import BuildError, UsageError
from redline.launching import revisions
from redline.launching.revisions import Repository, build
from redline.model.catalogue import WORK_TREE, Revision


def git(folder: Path, *args: str) -> None:
    names = {f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", *args], cwd=folder, env={**os.environ, **names}, check=True, capture_output=True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return folder


def refused(folder: Path, *words: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        Repository.around(folder)
    for word in words:
        assert word in caught.value.message, caught.value.message
    return caught.value


def test_a_folder_outside_of_any_repository(tmp_path: Path) -> None:
    error = refused(tmp_path, f"{tmp_path} is not in a git repository: not a git repository (or any")
    assert "change to a folder of the repository" in error.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_user_has_gits_reason_and_advice(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    for each in (work, work / ".git"):
        os.chown(each, 65534, 65534)
    error = refused(work, "git does not trust the repository", f"detected dubious ownership in repository at '{work}'")
    assert error.hint == f"git config --global --add safe.directory {work}"


def test_a_bare_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "bare.git")
    refused(tmp_path / "bare.git", "is in a bare repository, which has no work tree")


def test_the_inside_of_a_git_folder(work: Path) -> None:
    refused(work / ".git", "is inside of a .git folder")


def test_a_broken_repository_is_named(work: Path) -> None:
    below = work / "below"
    below.mkdir()
    (work / ".git/HEAD").unlink()
    refused(below, f"git cannot use {work / '.git'}: not a git repository")


def test_a_broken_configuration_is_gits_reason(work: Path) -> None:
    (work / ".git/config").write_text("garbage\n[")
    refused(work, f"git cannot use {work / '.git'}: ", "config")


def test_a_repository_without_a_commit(work: Path) -> None:
    with pytest.raises(UsageError, match="has no commit yet"):
        Repository.around(work).range("HEAD")


def test_a_revision_that_is_not_there_where_others_are(work: Path) -> None:
    git(work, "commit", "--quiet", "--allow-empty", "--message", "one")
    with pytest.raises(UsageError, match="the revision nothing does not exist"):
        Repository.around(work).range("nothing..HEAD")


def test_a_corrupt_commit_is_gits_reason(work: Path) -> None:
    git(work, "commit", "--quiet", "--allow-empty", "--message", "one")
    for file in (work / ".git/objects").rglob("??????????????????????????????????????"):
        file.chmod(0o600)
        file.write_bytes(b"")
    with pytest.raises(UsageError, match=r"cannot be read: object file .* is empty"):
        Repository.around(work).range("HEAD~1..HEAD")


def test_git_speaks_english(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANGUAGE", "de")
    refused(work.parent, "not a git repository")


def test_no_git(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(work))
    refused(work, "git is not installed")
    (work / "git").write_text("")
    refused(work, "git cannot be run: Permission denied")


def test_what_cannot_be_checked_out_has_the_decisive_line_and_no_guess(work: Path) -> None:
    git(work, "commit", "--quiet", "--allow-empty", "--message", "one")
    gone = Revision(name="gone", commit="0" * 40)
    with pytest.raises(BuildError) as caught, Repository.around(work).checked_out(gone):
        pass
    assert "git cannot check out gone (000000000): invalid reference: 000" in caught.value.message
    assert "room" not in caught.value.hint


def test_a_build_in_a_folder_from_which_nothing_may_be_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/some/tmp")
    (tmp_path / "it.sh").write_text("")

    def failed() -> BuildError:
        with pytest.raises(BuildError) as caught:
            build("./it.sh", tmp_path, "main", tmp_path / "log", lambda _building: None)
        return caught.value

    error = failed()
    assert "Permission denied" in error.message
    assert "noexec" not in str(error)
    monkeypatch.setattr(revisions, "noexec_mount", lambda _path: "/some is mounted noexec")
    error = failed()
    assert "ended with code 126, and /some is mounted noexec" in error.message
    assert error.hint == "TMPDIR names /some/tmp: let it name another folder"


@pytest.mark.parametrize(
    "said",
    [
        "curl: (6) Could not resolve host: example.org",
        "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server",
        "npm error code EAI_AGAIN",
        "go: example.org/x@v1: Get https://example.org: dial tcp: lookup example.org: no such host",
        "error: failed to lookup address information: Temporary failure in name resolution",
        "Could not transfer artifact: java.net.UnknownHostException: example.org",
        "WARNING: Retrying: Failed to establish a new connection: [Errno 111] Connection refused",
    ],
)
def test_a_build_that_needs_a_network_says_so(said: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError) as refusal:
        build(f'echo "{said}"; exit 6', tmp_path, "A", tmp_path / "log", lambda _building: None)
    assert said in refusal.value.message
    assert refusal.value.hint.startswith("it used a network that does not answer")


def test_another_failure_of_a_build_does_not_blame_the_network(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as refusal:
        build("echo connection pool: undefined reference; exit 1", tmp_path, "A", tmp_path / "log", lambda _b: None)
    assert "network" not in refusal.value.hint


@pytest.fixture
def changed(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose work tree has a changed, a new, a removed, and an executable file since its only commit."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("changed", "removed", "same"):
        (work / name).write_text(name)
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "one")
    (work / "changed").write_text("not committed")
    (work / "new").write_text("new")
    (work / "new").chmod(0o755)
    (work / "removed").unlink()
    git(work, "add", "new")
    return work


def said(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, check=True, capture_output=True, text=True).stdout


def objects(work: Path) -> set[Path]:
    return {file for file in (work / ".git/objects").rglob("*") if file.is_file()}


def test_the_work_tree_is_checked_out_and_the_repository_gets_no_object(changed: Path) -> None:
    before, status = objects(changed), said(changed, "status", "--porcelain")
    repository = Repository.around(changed)
    revision = repository.revision(WORK_TREE)
    (changed / "changed").write_text("later")
    for again in (repository, Repository.around(changed)):
        with again.checked_out(revision) as folder:
            assert (folder / "changed").read_text() == "not committed"
            assert os.access(folder / "new", os.X_OK)
            assert not (folder / "removed").exists()
            # What a build may ask git, as in the user's own folder.
            assert said(folder, "rev-parse", "HEAD") == said(changed, "rev-parse", "HEAD")
            assert said(folder, "describe", "--always", "--dirty").endswith("-dirty\n")
            assert said(folder, "status", "--porcelain") == " M changed\n A new\n D removed\n"
            said(folder, "diff", "HEAD")
    assert objects(changed) == before
    assert "dangling" not in said(changed, "fsck")
    assert said(changed, "status", "--porcelain") == status


def test_the_work_tree_of_a_repository_that_borrows_objects(changed: Path, tmp_path: Path) -> None:
    clone = tmp_path / 'a "clone": with\nodd name'
    said(tmp_path, "clone", "--quiet", "--shared", str(changed), str(clone))
    (clone / "same").write_text("other")
    repository = Repository.around(clone)
    with repository.checked_out(repository.revision(WORK_TREE)) as folder:
        assert (folder / "same").read_text() == "other"
        assert (folder / "changed").read_text() == "changed"


def test_a_work_tree_of_long_ago_is_no_longer_there(changed: Path, tmp_path: Path) -> None:
    revision = Repository.around(changed).revision(WORK_TREE)
    for file in (tmp_path / "cache").rglob("*"):
        os.utime(file, (0, 0))
    (changed / "changed").write_text("of today")
    today = Repository.around(changed).revision(WORK_TREE)
    with pytest.raises(BuildError) as caught, Repository.around(changed).checked_out(revision):
        pass
    assert caught.value.message == f"{revision} is no longer there"
    assert "two weeks" in caught.value.hint
    with Repository.around(changed).checked_out(today) as folder:
        assert (folder / "changed").read_text() == "of today"


def test_a_cache_that_cannot_be_written_is_named(changed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc")
    with pytest.raises(UsageError, match="the work tree cannot be kept in /proc/") as caught:
        Repository.around(changed).revision(WORK_TREE)
    assert "XDG_CACHE_HOME" in caught.value.hint
