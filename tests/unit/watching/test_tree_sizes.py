"""Sizes, descriptors and scheduling of a tree whose processes are made up."""

from types import SimpleNamespace
from typing import Any

import pytest

from redline.linux import procfs
from redline.watching import tree as trees
from redline.watching.tree import Descriptors, ProcessTree, Tally


def tree_of(*members: int) -> ProcessTree:
    made = object.__new__(ProcessTree)
    made._members, made._group = members, None
    made._cpu, made._scheduling = Tally(), (Tally(), Tally(), Tally(), Tally())
    made._faults = (Tally(), Tally())
    made._first, made._alive, made._started, made._ended = None, frozenset(), 0, 0
    made._memory_files = {}
    return made


@pytest.mark.parametrize(
    ("files", "limits", "found"),
    [
        ({1: 3, 2: 4}, {1: 100, 2: 50}, Descriptors(7, 50)),
        ({1: 3, 2: 4}, {1: 100, 2: None}, Descriptors(7, 100)),
        ({1: 3, 2: 4}, {1: None, 2: None}, Descriptors(7, 0)),
        ({1: 3, 2: None}, {1: 100, 2: 50}, None),
        ({1: None, 2: None}, {1: 100, 2: 50}, None),
    ],
)
def test_descriptors_are_known_where_those_of_all_processes_are(
    files: dict[int, int | None],
    limits: dict[int, int | None],
    found: Descriptors | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(procfs, "open_files", files.get)
    monkeypatch.setattr(procfs, "open_files_limit", limits.get)
    assert tree_of(1, 2).descriptors() == found
    assert tree_of().descriptors() is None


def test_a_tally_counts_what_is_gone_or_was_reused() -> None:
    tally = Tally()
    assert tally.total({1: 5, 2: 7}) == 12
    assert tally.total({1: 5, 2: 7}) == 12, "an equal value is the same part"
    assert tally.total({1: 6}) == 13
    assert tally.total({1: 2}) == 15, "its id was reused"
    assert tally.total({3: 0}) == 15
    assert tally.total({}) == 15


def stat(name: str, state: str = "S", rss: int = 10, threads: int = 2) -> Any:
    faults = {"minor_faults": 100, "major_faults": 1}
    return SimpleNamespace(name=name.encode(), state=state, rss_bytes=rss, threads=threads, **faults)


def test_a_size_counts_processes_that_began_ended_and_were_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[int, Any] = {1: stat("main"), 2: stat("worker"), 3: stat("worker")}
    monkeypatch.setattr(procfs, "read_stat", known.get)
    monkeypatch.setattr(procfs, "memory_files", lambda pid: ("f",) if pid == 1 else ())
    monkeypatch.setattr(procfs, "missing_rss_bytes", lambda _pid, _files: 5)
    tree = tree_of(1, 2, 3)
    first = tree.size()
    assert first is not None
    assert tuple(first) == (35, 6, 3, 0, 0, 0, 300, 3)
    known.pop(2)
    known[4], known[3] = stat("worker"), stat("worker", "Z")
    tree._members = (1, 2, 3, 4)
    later = tree.size()
    assert later is not None
    assert tuple(later) == (25, 4, 2, 1, 2, 1, 400, 4), "two workers ended, and one began"
    tree._members = (9,)
    assert tree.size() is None
    known[9] = stat("gone", "Z")
    assert tree.size() is None


def test_cpu_time_is_that_of_processes_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {1: 100, 2: 30}
    monkeypatch.setattr(trees, "process_cpu_ns", clocks.get)
    tree = tree_of(1, 2, 3)
    assert tree.cpu_ns() == 130
    del clocks[2]
    clocks[1] = 150
    assert tree.cpu_ns() == 180
    clocks.clear()
    assert tree.cpu_ns() is None
    clocks[1] = 0
    assert tree_of(1).cpu_ns() == 0


def test_threads_that_run_when_idle_wait_by_design(monkeypatch: pytest.MonkeyPatch) -> None:
    content = {
        "/proc/1/task/1/status": b"voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n",
        "/proc/1/task/2/status": b"voluntary_ctxt_switches:\t50\nnonvoluntary_ctxt_switches:\t70\n",
        "/proc/1/task/1/schedstat": b"1 900 3",
        "/proc/1/task/2/schedstat": b"1 9000 3",
    }
    monkeypatch.setattr(procfs, "threads_of", lambda _pid: (1, 2, 3))
    monkeypatch.setattr(procfs, "read_bytes", lambda file: content.get(file, b""))
    monkeypatch.setattr(trees, "runs_when_idle", lambda thread: thread == 2)
    found = tree_of(1).scheduling()
    assert found is not None
    assert sorted(found) == sorted((55, 77, 7, 900))
    content.clear()
    assert tree_of(1).scheduling() is None
