"""What is read of a machine, of shares of it, and of neighbours: counted by hand."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from redline.linux import procfs
from redline.model import OTHERS
from redline.ports import ServerUsage
from redline.watching import process_tree
from redline.watching.process_tree import (
    MOST_SAMPLES,
    KeptSamples,
    MachineShare,
    Neighbours,
    ProcessTreeMonitor,
    Surroundings,
    _timed,
)

STAT = "the text of /proc/stat"


def times(busy: int, interrupts: int | None = None, steal: int = 0) -> Any:
    return SimpleNamespace(busy_ns=busy, interrupts_ns=interrupts, steal_ns=steal)


def of_cpus(monkeypatch: pytest.MonkeyPatch, known: dict[int | None, Any]) -> None:
    monkeypatch.setattr(process_tree, "cpu_times", lambda stat, cpu=None: known.get(cpu) if stat is STAT else None)


def test_the_cores_of_a_share_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    of_cpus(monkeypatch, {0: times(5, 1), 1: times(7, 2), 3: times(9)})
    assert MachineShare((0, 1), ()).sample(STAT) == {"cores_busy_ns": 12, "cores_interrupts_ns": 3}
    assert MachineShare((0, 2, 3), ()).sample(STAT) == {"cores_busy_ns": 14, "cores_interrupts_ns": 1}
    assert MachineShare((3,), ()).sample(STAT) == {"cores_busy_ns": 9}
    assert MachineShare((2,), ()).sample(STAT) == {}


class Quota:
    """What the kernel counts of a quota."""

    def _asdict(self) -> dict[str, int]:
        return {"quota_periods": 10, "throttled_periods": 2}


def test_a_quota_is_read_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(process_tree, "throttling", lambda groups: Quota() if groups == (tmp_path,) else None)
    found = MachineShare((), (tmp_path,), 1500).sample(STAT)
    assert found == {"quota_periods": 10, "throttled_periods": 2, "quota_millicores": 1500}
    assert MachineShare((), (tmp_path / "gone",), 1500).sample(STAT) == {}


@pytest.mark.parametrize(("usable", "cores"), [({0, 1}, ()), ({1}, (1,)), (None, ())])
def test_a_process_that_may_use_all_cores_has_none_of_its_own(
    usable: set[int] | None, cores: tuple[int, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    def affinity(_pid: int) -> set[int]:
        if usable is None:
            raise ProcessLookupError
        return usable

    monkeypatch.setattr(os, "sched_getaffinity", affinity)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(process_tree, "quotas", lambda pid: {tmp_path / str(pid): pid / 2})
    share = MachineShare.of(3, 5)
    assert share.cores == (cores if usable is not None else ())
    assert share.groups == (tmp_path / "3", tmp_path / "5")
    assert share.quota_millicores == 1500, "the tightest counts"
    monkeypatch.setattr(process_tree, "quotas", lambda _pid: {})
    assert MachineShare.of(3).quota_millicores == 0


def surroundings(*, ours: bool = True, link: Any = None, pressure: int | None = 7) -> Surroundings:
    host = SimpleNamespace(port_range=lambda: (100, 199), cpu_pressure_ns=lambda: pressure)
    namespace = SimpleNamespace(ours=ours, tcp=lambda: None, time_wait=lambda: 0)
    return Surroundings(host, namespace, link)  # type: ignore[arg-type]


def test_the_ports_of_a_machine_are_both_ends_and_those_between() -> None:
    assert [*surroundings().constants()] == [{"local_ports": 100}]
    assert [*surroundings(ours=False).constants()] == []
    link = SimpleNamespace(bits_per_s=10**9, counted=lambda: SimpleNamespace(sent=1, received=2))
    linked = surroundings(ours=False, link=link)
    assert [*linked.constants()] == [{"link_bits_per_s": 10**9}]
    assert [*linked.sample()] == [
        {"cpu_pressure_ns": 7},
        {"time_wait": 0},
        {"link_sent_bytes": 1, "link_received_bytes": 2},
    ]
    assert [*surroundings(pressure=None).sample()] == [{"time_wait": 0}]
    silent = SimpleNamespace(bits_per_s=1, counted=lambda: None)
    assert [*surroundings(link=silent).sample()] == [{"cpu_pressure_ns": 7}, {"time_wait": 0}]


def test_busy_time_has_interrupts_apart_where_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    of_cpus(monkeypatch, {None: times(9, 2, 1)})
    assert surroundings().busy(STAT) == {"busy_ns": 9, "steal_ns": 1, "interrupts_ns": 2}
    of_cpus(monkeypatch, {None: times(9, None, 1)})
    assert surroundings().busy(STAT) == {"busy_ns": 9, "steal_ns": 1}
    of_cpus(monkeypatch, {})
    assert surroundings().busy(STAT) == {}


@pytest.mark.parametrize("kind", ["counter", "gauge"])
def test_of_merged_samples_a_counter_keeps_the_last_and_a_gauge_the_largest(kind: Any) -> None:
    kept = KeptSamples(kind)
    for at in range(MOST_SAMPLES):
        kept.add(at, float(at % 4))
    kept.add(MOST_SAMPLES, 9.0)
    assert len(kept.values) == MOST_SAMPLES // 2 + 2
    assert kept.times_unix_ns[0] == 0
    # Of samples 1 and 2 it is 2; of 3 and 4, which are 3 and 0, a gauge keeps 3.
    assert [*kept.values[:3]] == ([0.0, 2.0, 0.0] if kind == "counter" else [0.0, 2.0, 3.0])
    assert [*kept.times_unix_ns[:3]] == ([0, 2, 4] if kind == "counter" else [0, 2, 3])
    kept.add(MOST_SAMPLES + 1, 9.0)
    assert (kept.times_unix_ns[-1], kept.values[-1]) == (MOST_SAMPLES + 1, 9.0), "of equal ones the later counts"
    kept.add(MOST_SAMPLES + 2, 1.0)
    assert len(kept.values) == MOST_SAMPLES // 2 + 3


def stat(name: str, cpu_ns: int) -> Any:
    return SimpleNamespace(name=name.encode(), cpu_ns=cpu_ns)


def test_neighbours_are_summed_by_name_from_the_first_look_on(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = {1: stat("a", 100), 2: stat("b", 500), os.getpid(): stat("lab", 0)}
    clock = [10_000]
    monkeypatch.setattr(process_tree, "_processes", lambda: dict(processes))
    monkeypatch.setattr(process_tree.time, "time_ns", lambda: clock[0])
    seen = Neighbours()
    clock[0] += 1_000
    least = process_tree._LEAST_OF_NEIGHBOUR * 1_000
    processes |= {1: stat("a", 100 + 400), 3: stat("a", 50), 2: stat("b", 900), 4: stat("c", int(least))}
    processes |= {os.getpid(): stat("lab", 999), 5: stat("d", int(least) + 1)}
    found = {line.name: line for line in seen.series({2})}
    assert {name: line.values for name, line in found.items()} == {
        f"{OTHERS}a": (0.0, 450.0),
        f"{OTHERS}d": (0.0, float(int(least) + 1)),
    }
    assert found[f"{OTHERS}a"].times_unix_ns == (10_000, 11_000)
    processes[1] = stat("a", 5)
    assert {line.name: line.values[1] for line in seen.series({2})}[f"{OTHERS}a"] == 50.0, "its id was reused"


def test_usage_is_the_growth_of_cpu_time_and_the_latest_memory() -> None:
    monitor = ProcessTreeMonitor(machine=False)
    assert monitor.usage() == ServerUsage(0, None, None)
    monitor._keep("server", 5, cpu_ns=100, rss_bytes=7)
    monitor._keep("server", 6, cpu_ns=140, rss_bytes=6)
    monitor._keep("engine", 4, cpu_ns=900)
    assert monitor.usage() == ServerUsage(5, 40, 6)


def test_a_reading_that_took_too_long_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    long_ns = process_tree._LONGEST_READING_NS
    clock = iter([0, long_ns, 100, 100 + long_ns - 2])
    monkeypatch.setattr(process_tree.time, "time_ns", lambda: next(clock))
    reads = list[int]()
    assert _timed(lambda: reads.append(1)) == ((100 + 100 + long_ns - 2) // 2, None)
    assert len(reads) == 2


def test_processes_that_end_meanwhile_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs, "process_ids", lambda: [1, 2])
    monkeypatch.setattr(procfs, "read_stat", lambda pid: stat("a", 1) if pid == 1 else None)
    assert [*process_tree._processes()] == [1]
