"""Whatever happens, the content of a run directory is complete."""

import errno
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from redline.errors import StoreError, TakenError, UsageError
from redline.storage.runs import RunStore, capacity_store
from tests.fakes.recordings import simulated_run

RUN = simulated_run(trials=2)
MANIFEST = RUN.manifest
CELLS = MANIFEST.plan.cells


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    made = RunStore(tmp_path / "runs" / "one")
    made.create(MANIFEST)
    return made


def test_a_run_is_read_back_as_it_was_saved(store: RunStore) -> None:
    for recording in reversed(RUN.recordings):
        store.save(recording, CELLS[recording.cell_id])
    assert store.run() == RUN
    assert store.positions() == {recording.position for recording in RUN.recordings}
    assert (store.folder / "suite.yaml").read_text() == MANIFEST.suite_text


def test_an_incomplete_run_is_a_run(store: RunStore) -> None:
    store.save(RUN.recordings[0], CELLS[RUN.recordings[0].cell_id])
    assert len(store.run().recordings) == 1
    assert not store.run().complete


def test_a_directory_that_holds_a_run_is_not_overwritten(store: RunStore) -> None:
    with pytest.raises(StoreError, match="already holds a run") as caught:
        RunStore(store.folder).create(MANIFEST)
    assert "--resume" in caught.value.hint


def test_a_directory_of_which_only_the_capacity_is_measured_is_not_free(tmp_path: Path) -> None:
    capacity_store(tmp_path / "run").create(MANIFEST)
    with pytest.raises(TakenError, match="already holds a run") as caught:
        RunStore(tmp_path / "run").check_free()
    assert f"redline run --resume {tmp_path / 'run'};" in caught.value.hint
    RunStore(tmp_path / "run").create(MANIFEST)


def test_a_directory_of_a_bisection_is_not_free(tmp_path: Path) -> None:
    (tmp_path / "bisect.json").write_text("{}")
    with pytest.raises(TakenError, match="already holds a bisection") as caught:
        RunStore(tmp_path).create(MANIFEST)
    assert f"redline bisect --resume {tmp_path};" in caught.value.hint


def test_checking_a_free_place_leaves_nothing_behind(tmp_path: Path) -> None:
    RunStore(tmp_path / "deep" / "er").check_free()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["report.html", "x.JSON", "it's.csv"])
def test_a_name_of_a_file_is_refused_with_the_command_that_writes_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        RunStore(tmp_path / name).check_free()
    assert caught.value.message.startswith(f"-o {tmp_path / name}: results are kept in a directory")
    assert shlex.split(str(caught.value.hint).partition(": ")[2])[3:] == ["-o", str(tmp_path / name)]
    assert list(tmp_path.iterdir()) == []
    (tmp_path / name).mkdir()
    RunStore(tmp_path / name).check_free()
    RunStore(tmp_path / "run-1.2").check_free()


def test_a_file_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        RunStore(tmp_path / "file" / "run").check_free()
    assert "-o DIR" in caught.value.hint


@pytest.mark.parametrize(
    ("number", "is_kept", "words"),
    [
        (errno.ENOSPC, True, "what was measured is kept, and --resume goes on"),
        (errno.ENOSPC, False, "the disk is full: make room, and begin again"),
        (errno.EROFS, True, "make it writable, and try again"),
        (errno.EROFS, False, "-o DIR"),
    ],
)
def test_a_disk_that_refuses_loses_nothing(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, number: int, words: str, *, is_kept: bool
) -> None:
    store.is_kept = is_kept
    first, second = RUN.recordings[:2]
    store.save(first, CELLS[first.cell_id])

    def refuse(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(StoreError) as caught:
            store.save(second, CELLS[second.cell_id])
    assert words in caught.value.hint
    assert store.recordings() == (first,)
    assert [file.name for file in (store.folder / "recordings").iterdir() if file.name.endswith(".part")] == []


def test_a_really_full_disk_loses_nothing(tmp_path: Path) -> None:
    """On a file system of 1 MiB of its own, in a mount namespace of its own."""
    script = f"""
import pathlib, sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from redline.errors import StoreError, UsageError
from redline.storage.runs import RunStore
from tests.fakes.recordings import simulated_run
run = simulated_run(trials=2)
store = RunStore(pathlib.Path(sys.argv[1]) / "run")
store.create(run.manifest)
saved = 0
try:
    while True:
        for recording in run.recordings:
            planned = recording.model_copy(update={{"position": saved}})
            store.save(planned, run.manifest.plan.cells[recording.cell_id])
            saved += 1
except StoreError as error:
    assert "the disk is full" in error.hint, error
assert saved >= 1
assert len(store.recordings()) == saved
print("kept", saved)
"""
    mounted = f"mount -t tmpfs -o size=1m tmpfs {tmp_path} && exec {sys.executable} - {tmp_path}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted],
        input=script,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    assert done.stdout.startswith("kept"), done.stderr


def test_a_damaged_recording_is_named(store: RunStore) -> None:
    for recording in RUN.recordings[:2]:
        store.save(recording, CELLS[recording.cell_id])
    damaged = min((store.folder / "recordings").iterdir())
    damaged.write_text(damaged.read_text()[:500])
    with pytest.raises(StoreError) as caught:
        store.recordings()
    assert damaged.name in str(caught.value)
    assert "--resume" in caught.value.hint


def test_a_later_version_is_refused_by_name(store: RunStore) -> None:
    file = store.folder / "run.json"
    document = json.loads(file.read_text())
    document["format"] = "redline.run/99"
    file.write_text(json.dumps(document))
    with pytest.raises(StoreError, match="format"):
        store.manifest()


def test_scratch_files_of_a_killed_lab_are_no_recordings(store: RunStore) -> None:
    (store.folder / "recordings" / ".0000-x.json.123.part").write_text("{half")
    assert store.recordings() == ()
    assert store.positions() == frozenset()


def test_a_directory_without_a_run_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no run"):
        RunStore(tmp_path).manifest()
    with pytest.raises(StoreError, match="nowhere does not exist"):
        RunStore(tmp_path / "nowhere").run()


def test_only_one_process_writes(store: RunStore) -> None:
    with store.locked(), pytest.raises(StoreError, match="another redline"), RunStore(store.folder).locked():
        pass
    with store.locked():
        pass


def test_a_run_edited_by_hand_names_no_file_outside_of_its_folder(store: RunStore) -> None:
    cell = next(iter(CELLS.values()))
    entry = cell.variant.catalogued.model_copy(update={"name": "../../\0/evil"})
    hostile = cell.model_copy(update={"variant": cell.variant.model_copy(update={"entry": entry})})
    assert not {"/", "\0"} & set(hostile.slug)
    store.save(RUN.recordings[0], hostile)
    assert not list(store.folder.parent.parent.rglob("evil*"))
    (store.folder.parent / "secret").write_text("tell nobody")
    (store.folder / "link").symlink_to("../secret")
    for name in ("../secret", "link", "/etc/passwd"):
        with pytest.raises(StoreError, match="leads out of the folder"):
            store.stacks(name)


def test_a_command_names_a_directory_as_a_shell_reads_it(tmp_path: Path) -> None:
    RunStore(tmp_path / "my run").create(MANIFEST)
    with pytest.raises(TakenError) as caught:
        RunStore(tmp_path / "my run").check_free()
    assert f"redline run --resume '{tmp_path}/my run';" in caught.value.hint
