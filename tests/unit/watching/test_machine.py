"""Placement on machines of every shape, and reading machines that reveal much, little or nothing."""

import os
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.launching.observed import listens
from redline.linux import cgroup, procfs
from redline.linux.cgroup import Limits, read_limits
from redline.linux.host import CpuTimes, Host
from redline.linux.mounts import read_mounts
from redline.ports import Placement
from redline.watching import machine
from redline.watching.machine import MachineGlance, place, plan_placement, read_environment, shares


@pytest.mark.parametrize(
    ("cores", "server", "engine", "lab"),
    [
        (((0,),), (), (), ()),
        (((5,),), (), (), ()),
        (((0, 1),), (0,), (1,), (1,)),
        (((0,), (1,)), (0,), (1,), (1,)),
        (((0, 2), (1, 3)), (0, 2), (1, 3), (1, 3)),
        (((0,), (1,), (2,)), (0,), (2,), (1,)),
        (((0, 3), (1, 4), (2, 5)), (0, 3), (2, 5), (1, 4)),
        (((0,), (1,), (2,), (3,)), (1, 2), (3,), (0,)),
        (((2,), (4,), (6,), (8,), (10,)), (4, 6), (8, 10), (2,)),
        (((0, 4), (1, 5), (2, 6), (3, 7)), (1, 2, 5, 6), (3, 7), (0, 4)),
    ],
)
def test_server_and_engine_get_cores_of_their_own(
    cores: tuple[tuple[int, ...], ...], server: tuple[int, ...], engine: tuple[int, ...], lab: tuple[int, ...]
) -> None:
    assert place(cores) == Placement(server_cpus=server, engine_cpus=engine, lab_cpus=lab)


@given(st.integers(2, 64), st.integers(1, 4))
def test_no_core_is_ever_shared_or_split(count: int, threads: int) -> None:
    cores = tuple(tuple(core + count * thread for thread in range(threads)) for core in range(count))
    placement = place(cores)
    server, engine = set(placement.server_cpus), set(placement.engine_cpus)
    assert server
    assert engine
    assert not server & engine
    for core in cores:
        assert len({cpu in server for cpu in core}) == 1
        assert len({cpu in engine for cpu in core}) == 1
    if count >= 4:
        assert not (server | engine) & set(cores[0])
        assert 0 <= len(server) - len(engine) <= threads


def test_this_machine_gets_a_placement_within_its_cores() -> None:
    placement = plan_placement()
    assert {*placement.server_cpus, *placement.engine_cpus} <= os.sched_getaffinity(0)


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_threads_of_a_core_are_grouped_and_forbidden_ones_left_out(tmp_path: Path) -> None:
    topology = {
        f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": siblings
        for cpu, siblings in enumerate(["0,4\n", "1,5\n", "2,6\n", "3,7\n", "0,4\n", "1,5\n", "2,6\n", "3,7\n"])
    }
    host = Host(write(tmp_path, topology))
    assert host.physical_cores(range(8)) == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert host.physical_cores({7, 1, 5}) == ((1, 5), (7,))


def test_without_topology_every_cpu_is_a_core(tmp_path: Path) -> None:
    assert Host(tmp_path).physical_cores({3, 1}) == ((1,), (3,))


def test_a_machine_that_reveals_nothing(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert (host.cpu_model(), host.virtual(), host.governor()) == ("", "", "")
    assert (host.turbo(), host.smt(), host.port_range()) == (None, None, None)
    assert (host.frequency_mhz(), host.numa_nodes(), host.aslr()) == (None, None, None)
    assert (host.huge_pages(), host.mitigations()) == ("", "")
    assert (host.cpu_times(), host.cpu_pressure_ns()) == (None, None)
    assert host.load_average_1m() == 0.0


def test_a_machine_that_reveals_all(tmp_path: Path) -> None:
    host = Host(
        write(
            tmp_path,
            {
                "proc/cpuinfo": "processor : 0\nmodel name\t: Fast CPU 9000\nflags\t\t: fpu hypervisor sse\n",
                "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq": "800000\n",
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "3000000\n",
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq": "400000\n",
                "sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq": "3600000\n",
                "sys/devices/system/node/node0/cpulist": "0\n",
                "sys/devices/system/node/node1/cpulist": "1\n",
                "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
                "sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n",
                "sys/devices/system/cpu/vulnerabilities/mds": "Not affected\n",
                "sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: IBRS; BHI: Vulnerable\n",
                "proc/sys/kernel/randomize_va_space": "2\n",
                "sys/devices/system/cpu/intel_pstate/no_turbo": "0\n",
                "sys/devices/system/cpu/smt/active": "1\n",
                "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
                "proc/loadavg": "1.25 0.50 0.10 2/300 4711\n",
                "proc/stat": "cpu  100 1 20 1000 50 3 4 7 60 0\ncpu0 1 1 1\n",
                "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=4711\nfull avg10=0 total=9\n",
            },
        )
    )
    assert host.cpu_model() == "Fast CPU 9000"
    assert host.virtual() == "Amazon EC2"
    assert host.governor() == "powersave"
    assert host.turbo() is True
    assert host.smt() is True
    assert (host.frequency_mhz(), host.numa_nodes(), host.aslr()) == ((400, 3600), 2, True)
    assert (host.huge_pages(), host.mitigations()) == ("madvise", "meltdown, spectre_v2")
    assert host.port_range() == (32768, 60999)
    assert host.load_average_1m() == 1.25
    tick = procfs.TICK_NS
    assert host.cpu_times() == CpuTimes(1185 * tick, busy_ns=128 * tick, steal_ns=7 * tick, interrupts_ns=7 * tick)
    assert host.cpu_pressure_ns() == 4_711_000


def test_boost_stands_for_turbo_where_intels_file_is_missing(tmp_path: Path) -> None:
    assert Host(write(tmp_path, {"sys/devices/system/cpu/cpufreq/boost": "0"})).turbo() is False


def test_hardware_of_a_cloud_without_its_hypervisor_is_not_virtual(tmp_path: Path) -> None:
    files = {"sys/class/dmi/id/sys_vendor": "Amazon EC2", "proc/cpuinfo": "flags : fpu sse"}
    assert Host(write(tmp_path, files)).virtual() == ""


def test_busy_time_of_the_lab_itself_is_not_that_of_others() -> None:
    before, after = CpuTimes(0, 0, 0), CpuTimes(1000, 400, 50)
    assert shares(before, after, own_ns=100) == (0.05, 0.3)
    assert shares(before, after, own_ns=500) == (0.05, 0.0)
    assert shares(before, before, own_ns=0) == (None, None)


def test_limits_of_version_2_are_the_narrowest_on_the_way_up(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    proc = write(
        tmp_path / "proc",
        {
            "self/mountinfo": f"30 1 0:26 / {mount} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
            "self/cgroup": "0::/outer/inner\n",
        },
    )
    write(
        mount,
        {
            "outer/cpu.max": "150000 100000\n",
            "outer/memory.max": "1073741824\n",
            "outer/inner/cpu.max": "max 100000\n",
            "outer/inner/memory.max": "2147483648\n",
        },
    )
    assert read_limits(proc) == Limits("v2", 1.5, 1 << 30)


def test_limits_of_version_1_beside_version_2(tmp_path: Path) -> None:
    proc = write(
        tmp_path / "proc",
        {
            "self/mountinfo": (
                f"31 1 0:27 / {tmp_path}/cpu\\040x rw - cgroup cgroup rw,cpu,cpuacct\n"
                f"32 1 0:28 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n"
                f"33 1 0:29 / {tmp_path}/unified rw - cgroup2 cgroup2 rw\n"
            ),
            "self/cgroup": "5:cpu,cpuacct:/box\n4:memory:/\n0::/\n",
        },
    )
    write(
        tmp_path,
        {
            "cpu x/box/cpu.cfs_quota_us": "50000",
            "cpu x/box/cpu.cfs_period_us": "100000",
            "cpu x/cpu.cfs_quota_us": "-1",
            "cpu x/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert read_limits(proc) == Limits("hybrid", 0.5, None)


def test_no_groups_no_limits(tmp_path: Path) -> None:
    assert read_limits(tmp_path) == Limits("", None, None)
    assert cgroup.group_of("self", tmp_path) is None
    assert read_mounts(tmp_path / "none") == []


def test_the_environment_of_this_machine_is_read_whole() -> None:
    environment = read_environment("1.2.3", "abcd", Placement(server_cpus=(0,), engine_cpus=(1,)))
    assert (environment.engine, environment.engine_sha256) == ("1.2.3", "abcd")
    assert environment.cores == len(os.sched_getaffinity(0))
    assert environment.memory_bytes > 0
    assert (environment.server_cpus, environment.engine_cpus) == ((0,), (1,))
    assert environment.busy_share is None or 0 <= environment.busy_share <= 1


def test_a_file_that_is_in_no_checkout_has_no_commit(tmp_path: Path) -> None:
    (tmp_path / "file.py").write_text("")
    assert machine._commit(tmp_path / "file.py") == ""


def test_where_a_port_listens_and_who_holds_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, subprocess.Popen(["sleep", "60"]) as another:
        port = listener.getsockname()[1]
        assert listens("127.0.0.1", port, os.getpid())
        assert not listens("127.0.0.1", port, another.pid)
        with socket.create_server(("127.0.0.2", port)):
            assert listens("127.0.0.2", port, os.getpid())
            assert not listens("127.0.0.2", port, another.pid)
        another.kill()
    assert listens("127.0.0.1", port, another.pid), "what nobody says is no reason for doubt"


@pytest.mark.parametrize(
    ("meanwhile_s", "slept_s", "busy"),
    [(0.05, 0.15, 0.25), (0.5, 0.0, 0.25), (30.0, 0.2, 0.0)],
    ids=["it waits for the rest", "it waits for nothing", "it began too long ago"],
)
def test_a_glance_sees_what_ran_since_it_began(meanwhile_s: float, slept_s: float, busy: float) -> None:
    """This process uses one of four cores all the time, and another process does for the first second."""
    now_s, slept = 0.0, list[float]()

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds
        slept.append(seconds)

    def cpu_times() -> CpuTimes:
        return CpuTimes(total_ns=round(now_s * 4e9), busy_ns=round((now_s + min(now_s, 1)) * 1e9), steal_ns=0)

    glance = MachineGlance(cpu_times, lambda: now_s, sleep, lambda: round(now_s * 1e9))
    now_s = meanwhile_s
    steal, others = glance.shares(0.2)
    assert (steal, others) == (0.0, busy)
    assert slept == [pytest.approx(slept_s)]


def cpu(total: int, busy: int, steal: int) -> Any:
    return SimpleNamespace(total_ns=total, busy_ns=busy, steal_ns=steal)


@pytest.mark.parametrize(
    ("after", "own", "expected"),
    [
        (cpu(200, 60, 15), 10, (0.1, 0.3)),
        (cpu(100, 60, 15), 10, (None, None)),
        (cpu(101, 20, 5), 10, (0.0, 0.0)),
        (cpu(200, 300, 5), 10, (0.0, 1.0)),
    ],
)
def test_shares_are_of_all_time_that_passed(after: Any, own: int, expected: tuple[float | None, float | None]) -> None:
    assert shares(cpu(100, 20, 5), after, own) == pytest.approx(expected)


def glance(clock: list[float], times: list[Any], slept: list[float]) -> MachineGlance:
    return MachineGlance(lambda: times.pop(0), lambda: clock[0], slept.append, own_ns=lambda: 0)


def test_a_glance_waits_for_what_is_missing() -> None:
    clock, slept = [10.0], list[float]()
    made = glance(clock, [cpu(0, 0, 0), cpu(100, 40, 10)], slept)
    clock[0] = 10.15
    assert made.shares(0.2) == pytest.approx((0.1, 0.4))
    assert slept == [pytest.approx(0.05)]
    late = glance(clock, [cpu(0, 0, 0), cpu(100, 40, 10)], slept)
    clock[0] += 0.9
    late.shares(0.2)
    assert slept[-1] == 0.0


def test_a_glance_of_long_ago_begins_anew() -> None:
    clock, slept = [10.0], list[float]()
    made = glance(clock, [cpu(0, 0, 0), cpu(1000, 0, 0), cpu(1100, 50, 0)], slept)
    clock[0] += 1.1
    assert made.shares(0.2) == pytest.approx((0.0, 0.5))
    assert slept == [pytest.approx(0.2)]


@pytest.mark.parametrize("known", [[None, None], [None, 1], [1, None]])
def test_where_the_kernel_does_not_tell_no_share_is_known(known: list[int | None]) -> None:
    times = [None if one is None else cpu(100, 50, 0) for one in known]
    assert glance([10.0], times, []).shares(0.2) == (None, None)
