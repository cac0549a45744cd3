"""A directory whose disk was full, or of which a part is gone: what it has, and that a gone part begins again."""

import errno
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redline.cli.command_line import app
from redline.errors import NotStoredError, StoreError
from redline.storage import runs
from redline.storage.runs import RunStore
from tests.fakes.compared import compared_run
from tests.fakes.recordings import simulated_run
from tests.fakes.searched import bench_in
from tests.fakes.stored import kept

RUN = simulated_run(trials=2)


def run_in(folder: Path) -> RunStore:
    return kept(folder, RUN)


def search_in(folder: Path) -> RunStore:
    bench_in(folder).run()
    return RunStore(folder)


def comparison_in(folder: Path) -> RunStore:
    return kept(folder, compared_run(starts=2))


KINDS = [("run", run_in, "recordings"), ("limit", search_in, "probes"), ("ab", comparison_in, "duets")]
Make = Callable[[Path], RunStore]


def files(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refused(*args: str | Path) -> NotStoredError:
    """The error that the command raises, which becomes exit code 2."""
    raised = CliRunner().invoke(app, [str(arg) for arg in args]).exception
    assert isinstance(raised, NotStoredError), raised
    assert raised.exit_code == 2
    return raised


@pytest.fixture(params=KINDS, ids=lambda kind: kind[0])
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, RunStore, str]:
    """The command, a file that it made, and the folder of measurements."""
    command, make, measured = request.param
    return command, make(tmp_path / "kept"), measured


@pytest.mark.parametrize("asks", ["--resume", "report"])
@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "is empty"), (b'{"format": "redl', "is cut off"), (b"\xff{}", "is damaged"), (b"{}", ":")],
)
def test_a_manifest_that_cannot_be_read_means_to_begin_again(
    broken: tuple[str, RunStore, str], content: bytes, says: str, asks: str
) -> None:
    command, store, _ = broken
    (store.folder / store.manifest_file).write_bytes(content)
    before = files(store.folder)
    error = refused(command, "--resume", store.folder) if asks == "--resume" else refused("report", store.folder)
    assert f"{store.manifest_file}{'' if says == ':' else ' '}{says}" in error.message
    assert "begin again with another -o DIR" in error.hint
    assert files(store.folder) == before


def test_recordings_without_a_manifest_are_counted_and_not_taken_over(broken: tuple[str, RunStore, str]) -> None:
    command, store, measured = broken
    (store.folder / store.manifest_file).unlink()
    before = files(store.folder)
    error = refused(command, "--resume", store.folder)
    number = len([*(store.folder / measured).rglob("*.json")])
    assert f"it has {number} recordings, but no {store.manifest_file}" in error.message
    assert "begin again" in error.hint
    with pytest.raises(StoreError, match=f"already holds {number} recordings"):
        store.check_free()
    assert files(store.folder) == before


@pytest.mark.parametrize("asks", ["--resume", "report"])
def test_without_its_recordings_it_is_begun_again(broken: tuple[str, RunStore, str], asks: str) -> None:
    command, store, measured = broken
    shutil.rmtree(store.folder / measured)
    before = files(store.folder)
    error = refused(command, "--resume", store.folder) if asks == "--resume" else refused("report", store.folder)
    assert f"{store.folder / measured}" in error.message
    assert "is gone" in error.message
    assert "begin again" in error.hint
    assert files(store.folder) == before


@pytest.mark.parametrize("command", [command for command, _, _ in KINDS])
def test_what_was_never_there_is_named(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, why in (("nowhere", "does not exist"), ("file", "is a file, and holds no"), (".", "holds no")):
        assert why in refused(command, "--resume", tmp_path / name).message


def test_the_manifest_is_not_its_directory(broken: tuple[str, RunStore, str]) -> None:
    command, store, _ = broken
    error = refused(command, "--resume", store.folder / store.manifest_file)
    assert error.hint == f"name its directory: {store.folder}"


def test_a_disk_that_is_full_at_the_manifest_leaves_nothing_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = runs.write_pieces_atomically

    def full(file: Path, pieces: Iterable[bytes]) -> None:
        if file.name == "run.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(file, pieces)

    store = RunStore(tmp_path / "kept")
    with monkeypatch.context() as patch:
        patch.setattr(runs, "write_pieces_atomically", full)
        with pytest.raises(StoreError, match="No space left") as caught:
            store.create(RUN.manifest)
    assert "begin again" in caught.value.hint
    assert "--resume" not in caught.value.hint
    error = refused("run", "--resume", store.folder)
    assert "nothing was measured" in error.message
    assert "begin again" in error.hint
    store.create(RUN.manifest)  # in the same place
