"""What was judged stays judged: cells kept beside their recordings, and cells judged by several processes."""

import ctypes
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from redline import copies
from redline.analysis import build_report
from redline.analysis.judging import CellTask, JudgedCell, judge_task
from redline.analysis.stored_cell import is_as_fine
from redline.model import Recording, Report, Run
from redline.render import RENDERERS, renderers
from redline.running import judging, views
from redline.running.views import run_report, write_run_views
from redline.storage import judged
from redline.storage.runs import RunStore
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_run
from tests.fakes.stored import kept

BEHAVIOURS = {
    "rust.hyper": GOOD,
    "rust.axum": replace(GOOD, rate_per_s=18_000.0, lateness_ns=90_000_000.0),
    "jvm.slow": replace(GOOD, rate_per_s=9_000.0, achieved=0.7, outcomes={"timeout": 2_000}, trend=0.3),
}


@pytest.fixture(scope="module")
def run() -> Run:
    """A run of 16 trials, some of them invalid."""
    return simulated_run(BEHAVIOURS, trials=2)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """The run in a directory with its judged cells, of which tests get copies."""
    made = kept(tmp_path_factory.mktemp("whole") / "run", run)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(judging, "KEPT_FROM", 1)
        run_report(made)
    return made.folder


@pytest.fixture
def store(tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """The run in a directory; its cells are kept although they are few."""
    monkeypatch.setattr(judging, "KEPT_FROM", 1)
    return RunStore(Path(shutil.copytree(whole, tmp_path / "run", ignore=shutil.ignore_patterns(judged.FOLDER))))


@pytest.fixture
def judged_before(store: RunStore, whole: Path) -> None:
    """The cells of the run are judged and kept."""
    shutil.copytree(whole / judged.FOLDER, store.folder / judged.FOLDER)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the cells that are judged, as it happens."""
    made: list[str] = []

    def noted(task: CellTask, recordings: list[Recording]) -> JudgedCell:
        made.append(task.cell_id)
        return judge_task(task, recordings)

    monkeypatch.setattr(judging.cells, "judge_task", noted)
    return made


def alone(store: RunStore) -> Report:
    """The report, judged anew and kept nowhere."""
    return build_report(store.run(), str(store.folder))


def test_what_was_judged_once_is_read(store: RunStore, tasks: list[str]) -> None:
    wanted = alone(store)
    assert run_report(store) == wanted
    assert sorted(tasks) == sorted(store.manifest().plan.cells)
    tasks.clear()
    read = run_report(store)
    assert tasks == []
    assert read == wanted
    for form, render in RENDERERS.items():
        assert render(read) == render(wanted), form


def test_another_trial_has_its_cell_alone_judged_anew(
    tmp_path: Path, run: Run, tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = run.manifest.plan.cells
    monkeypatch.setattr(judging, "KEPT_FROM", 1)
    last = next(made for made in reversed(run.recordings) if cells[made.cell_id].role == "subject")
    others = tuple(made for made in run.recordings if made.position != last.position)
    store = kept(tmp_path / "run", run.model_copy(update={"recordings": others}))
    run_report(store)
    tasks.clear()
    store.save(last, cells[last.cell_id])
    assert run_report(store) == alone(store)
    assert tasks == [last.cell_id]


def test_a_changed_recording_has_its_cell_judged_anew(store: RunStore, run: Run, tasks: list[str]) -> None:
    run_report(store)
    tasks.clear()
    changed = run.recordings[7].model_copy(update={"perturbed": True})
    store.save(changed, run.manifest.plan.cells[changed.cell_id])
    assert run_report(store) == alone(store)
    assert changed.cell_id in tasks


def test_cells_of_other_rules_are_not_used(store: RunStore, tasks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = run_report(store)
    tasks.clear()
    monkeypatch.setattr(judged, "rules_version", lambda: "later")
    assert run_report(store) == wanted
    assert len(tasks) == len(store.manifest().plan.cells)


def test_another_version_of_a_library_that_computes_makes_other_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    known = judged.rules_version.__wrapped__()
    monkeypatch.setattr("redline.storage.judged.np.__version__", "0")
    assert judged.rules_version.__wrapped__() not in (known, "")


def test_nothing_is_kept_where_the_version_of_the_rules_is_not_known(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged, "rules_version", lambda: "")
    assert run_report(store) == alone(store)
    assert not (store.folder / judged.FOLDER).exists()


def _cut(file: Path, to: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * to)])


def _turned(file: Path) -> None:
    head, body = file.read_bytes().split(b"\n", 1)
    file.write_bytes(head + b"\n" + body.replace(b'"position":', b'"position" :', 1))


def _foreign(file: Path) -> None:
    """A whole file of another cell."""
    file.write_bytes(max(file.parent.iterdir()).read_bytes() if file != max(file.parent.iterdir()) else b"{}\n")


def _of_another_form(file: Path) -> None:
    """A body that is no cell, with a head that fits it."""
    head = json.loads(file.read_bytes().split(b"\n", 1)[0])
    body = b'{"trials": []}'
    head["hash"] = judged._hash(body)
    file.write_bytes(json.dumps(head).encode() + b"\n" + body)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"\xff\x00 no JSON"),
        lambda file: file.write_bytes(b"[]\n{}"),
        lambda file: _cut(file, 0.0005),
        lambda file: _cut(file, 0.5),
        lambda file: _cut(file, 0.9999),
        _turned,
        _foreign,
        _of_another_form,
        _folder,
        _pipe,
    ],
    ids=["empty", "no-json", "list", "cut-head", "cut-half", "cut-end", "turned", "foreign", "form", "folder", "pipe"],
)
@pytest.mark.usefixtures("judged_before")
def test_a_damaged_file_changes_nothing(store: RunStore, damage: Callable[[Path], object], tasks: list[str]) -> None:
    wanted = run_report(store)
    assert tasks == []
    file = min((store.folder / judged.FOLDER).iterdir())
    damage(file)
    assert run_report(store) == wanted
    assert len(tasks) == 1
    tasks.clear()
    assert run_report(store) == wanted
    assert len(tasks) == (damage is _folder)  # anything else is replaced


@pytest.mark.parametrize("way", ["a file", "a link"])
def test_a_folder_that_cannot_be_written_changes_nothing(store: RunStore, tmp_path: Path, way: str) -> None:
    folder, outside = store.folder / judged.FOLDER, tmp_path / "outside"
    outside.mkdir()
    folder.write_text("mine") if way == "a file" else folder.symlink_to(outside)
    assert run_report(store) == alone(store)
    assert run_report(store) == alone(store)
    assert [*outside.iterdir()] == []


def test_a_damaged_recording_is_said_and_its_cell_is_not_kept(store: RunStore, run: Run) -> None:
    file = store.recording_files()[3]
    _cut(file, 0.3)
    assert run_report(store) == alone(store)
    assert run_report(store) == alone(store)
    assert run.recordings[3].cell_id not in {file.stem for file in (store.folder / judged.FOLDER).iterdir()}


def test_who_only_looks_reads_what_was_kept_and_keeps_nothing(store: RunStore, tasks: list[str]) -> None:
    assert run_report(store, keeps=False) == alone(store)
    assert not (store.folder / judged.FOLDER).exists()
    run_report(store)
    tasks.clear()
    assert run_report(store, keeps=False) == alone(store)
    assert tasks == []


def test_few_trials_leave_nothing_behind(tmp_path: Path) -> None:
    store = kept(tmp_path / "run", simulated_run(BEHAVIOURS, trials=2))
    run_report(store)
    assert not (store.folder / judged.FOLDER).exists()


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "SHARED_FROM", 1)
    monkeypatch.setattr(copies.threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.mark.usefixtures("several")
def test_several_processes_judge_as_one_does(store: RunStore) -> None:
    wanted = alone(store)
    assert run_report(store) == wanted
    assert run_report(store) == wanted


@pytest.mark.usefixtures("several")
def test_a_process_that_is_ended_leaves_its_cells_to_the_others(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.getpid()

    def ended(task: CellTask, recordings: list[Recording]) -> JudgedCell:
        if os.getpid() != here and task.cell.variant.slug == "rust.axum":
            os.kill(os.getpid(), signal.SIGKILL)
        return judge_task(task, recordings)

    monkeypatch.setattr(judging.cells, "judge_task", ended)
    assert run_report(store) == alone(store)


@pytest.mark.usefixtures("several")
def test_an_error_in_another_process_is_raised_here(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(task: CellTask, recordings: list[Recording]) -> JudgedCell:
        if task.cell.variant.slug == "rust.axum":
            raise ZeroDivisionError("of this cell")
        return judge_task(task, recordings)

    monkeypatch.setattr(judging.cells, "judge_task", fails)
    with pytest.raises(ZeroDivisionError, match="of this cell"):
        run_report(store)


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize("copied_from", [1, 10_000])
def test_views_are_the_same_whether_a_copy_makes_the_page_or_not(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, copied_from: int
) -> None:
    by = []
    make = renderers.as_html

    def page(report: Report, beside: renderers.Beside = nullcontext) -> bytes:
        by.append(os.getpid())  # a copy's list is its own
        return make(report, beside)

    monkeypatch.setattr(renderers, "as_html", page)
    monkeypatch.setattr(views, "COPIED_FROM", copied_from)
    wanted = write_run_views(store)
    assert by == ([] if copied_from == 1 else [os.getpid()])
    for form, name in {"html": "report.html", "csv": "results.csv", "json": "results.json"}.items():
        assert (store.folder / name).read_bytes() == RENDERERS[form](wanted), form


def test_the_pieces_of_a_report_with_curves_are_the_whole(store: RunStore) -> None:
    made = alone(store)
    report = made.model_copy(update={"shares": made.shares * 3})
    assert len(report.shares) > 2
    assert b"".join(report.json_pieces()) == report.json_bytes(indent=2)


REPORT = """
import sys
from pathlib import Path
from redline.render import RENDERERS
from redline.running import judging
from redline.running.views import run_report
from redline.storage.runs import RunStore
judging.KEPT_FROM = 1
sys.stdout.buffer.write(RENDERERS["json"](run_report(RunStore(Path(sys.argv[1])))))
"""


@pytest.mark.long
def test_two_commands_may_judge_at_once(store: RunStore) -> None:
    command = [sys.executable, "-c", REPORT, str(store.folder)]
    made = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate()[0] for process in made]
    assert said == [RENDERERS["json"](alone(store))] * 2
    cells = store.manifest().plan.cells
    assert {file.name for file in (store.folder / judged.FOLDER).iterdir()} == {f"{cell_id}.json" for cell_id in cells}


def test_timelines_count_if_their_steps_are_as_long() -> None:
    assert is_as_fine(240, (75, 80), 100)
    assert not is_as_fine(240, (75, 110), 100)
    assert is_as_fine(30, (75,), 26)
    assert not is_as_fine(30, (75,), 24)
    assert is_as_fine(240, (), 12)


def measured_by(plan_store: RunStore, run: Run, order: list[int] | None = None) -> None:
    """Store the recordings of a run as a session does, which judges cells ahead."""
    plan, made = run.manifest.plan, {recording.position: recording for recording in run.recordings}
    ahead = judging.JudgedAhead(plan, plan_store)
    for position in order or sorted(made):
        cell = plan.cells[made[position].cell_id]
        plan_store.save(made[position], cell)
        ahead.add(made[position], cell)


@pytest.fixture
def empty(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A directory of the run that has no recording yet; its cells are kept although they are few."""
    monkeypatch.setattr(judging, "KEPT_FROM", 1)
    store = RunStore(tmp_path / "run")
    store.create(run.manifest)
    return store


def test_a_session_leaves_nothing_to_be_judged_at_its_end(empty: RunStore, run: Run, tasks: list[str]) -> None:
    measured_by(empty, run)
    assert sorted(tasks) == sorted(run.manifest.plan.cells)
    tasks.clear()
    assert run_report(empty) == alone(empty)
    assert tasks == []


@pytest.mark.parametrize("last", ["ceiling", "subject"])
def test_cells_are_judged_under_their_ceiling_whichever_ends_last(
    empty: RunStore, run: Run, tasks: list[str], last: str
) -> None:
    cells = run.manifest.plan.cells
    order = sorted((made.position for made in run.recordings), key=lambda at: cells[_cell(run, at)].role == last)
    measured_by(empty, run, order)
    tasks.clear()
    assert run_report(empty) == alone(empty)
    assert tasks == []


def _cell(run: Run, position: int) -> str:
    return next(made.cell_id for made in run.recordings if made.position == position)


def test_a_repeated_trial_has_its_cell_judged_again(empty: RunStore, run: Run, tasks: list[str]) -> None:
    plan = run.manifest.plan
    again = next(made for made in run.recordings if plan.cells[made.cell_id].role == "subject")
    ahead = judging.JudgedAhead(plan, empty)
    for made in (*run.recordings, again.model_copy(update={"log_bytes": (again.log_bytes or 0) + 1})):
        empty.save(made, plan.cells[made.cell_id])
        ahead.add(made, plan.cells[made.cell_id])
    assert tasks.count(again.cell_id) == 2
    tasks.clear()
    assert run_report(empty) == alone(empty)
    assert tasks == []


def test_a_resumed_session_judges_what_it_completes(empty: RunStore, run: Run, tasks: list[str]) -> None:
    plan, (*before, last) = run.manifest.plan, run.recordings
    for made in before:
        empty.save(made, plan.cells[made.cell_id])
    ahead = judging.JudgedAhead(plan, empty)
    empty.save(last, plan.cells[last.cell_id])
    ahead.add(last, plan.cells[last.cell_id])
    assert last.cell_id in tasks


def test_a_cell_that_cannot_be_judged_ends_no_session(
    empty: RunStore, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(task: CellTask, recordings: list[Recording]) -> JudgedCell:
        raise RuntimeError(task.cell_id)

    with monkeypatch.context() as patched:
        patched.setattr(judging.cells, "judge_task", failing)
        measured_by(empty, run)
    assert run_report(empty) == alone(empty)


def test_a_small_run_is_judged_at_its_end_alone(
    empty: RunStore, run: Run, tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "KEPT_FROM", len(run.recordings) + 1)
    measured_by(empty, run)
    assert tasks == []


def test_beside_another_thread_cells_are_judged_in_this_process(
    store: RunStore, tasks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "SHARED_FROM", 1)
    monkeypatch.setattr(judging.os, "sched_getaffinity", lambda _process: {0, 1})
    done = threading.Event()
    other = threading.Thread(target=done.wait, args=(60,))
    other.start()
    try:
        run_report(store)
    finally:
        done.set()
        other.join()
    assert sorted(tasks) == sorted(store.manifest().plan.cells)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of processes by which cells are judged, as it happens; all that allows several does."""
    made: list[int] = []

    def one(work: judging._Work, processes: int) -> Iterator[JudgedCell]:
        made.append(processes)
        return map(work.judged, work._tasks)

    monkeypatch.setattr(judging._Work, "shared", one)
    monkeypatch.setattr(judging, "SHARED_FROM", 12)  # those that are no ceilings
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    return made


def test_as_many_processes_judge_as_there_are_cores_and_eight_at_most(
    store: RunStore, shared: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_report(store)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(12)))
    run_report(store)
    assert shared == [2, 8]


@pytest.mark.parametrize("alone_by", ["few trials", "one core", "another thread"])
def test_one_process_judges_where_others_gain_nothing_or_may_hang(
    store: RunStore, shared: list[int], monkeypatch: pytest.MonkeyPatch, alone_by: str
) -> None:
    if alone_by == "few trials":
        monkeypatch.setattr(judging, "SHARED_FROM", 13)
    elif alone_by == "one core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    else:
        monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert run_report(store) == alone(store)
    assert shared == []


@pytest.mark.parametrize(("kept_from", "is_kept"), [(16, True), (17, False)])
def test_cells_are_kept_from_so_many_trials_on(
    empty: RunStore, run: Run, monkeypatch: pytest.MonkeyPatch, kept_from: int, *, is_kept: bool
) -> None:
    monkeypatch.setattr(judging, "KEPT_FROM", kept_from)
    measured_by(empty, run)
    assert (empty.folder / judged.FOLDER).exists() is is_kept
    run_report(empty)
    assert (empty.folder / judged.FOLDER).exists() is is_kept


def test_judged_cells_come_in_their_order_and_few_wait_to_be_taken() -> None:
    begun: list[int] = []

    class Pool:
        def submit(self, _work: object, at: int) -> Future[bytes | None]:
            begun.append(at)
            future: Future[bytes | None] = Future()
            future.set_result(str(at).encode())
            return future

    cells = judging._in_order(Pool(), range(7), 2)  # type: ignore[arg-type]
    assert next(cells) == b"0"
    assert begun == [0, 1, 2]
    assert [*cells] == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_a_copy_ends_with_the_process_that_it_is_a_copy_of(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    handled = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(prctl=lambda *words: asked.append(words)))
    monkeypatch.setattr(judging, "_work", None, raising=False)
    asked: list[tuple[int, ...]] = []
    try:
        judging._begin(SimpleNamespace(), os.getppid())  # type: ignore[arg-type]
        assert ended == []
        judging._begin(SimpleNamespace(), os.getppid() + 1)  # type: ignore[arg-type]
        assert ended == [1]
        assert asked == [(1, signal.SIGKILL, 0, 0, 0)] * 2, "PR_SET_PDEATHSIG of linux/prctl.h is 1"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
