"""Monitors of the network, of links and of quotas: they read the kernel's counters, which count what happened."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.linux import sockets
from redline.linux.cgroup import Throttling, quotas, throttling
from redline.linux.host import Host, cpu_times
from redline.linux.network import Link, Namespace, TcpCounts, link, towards
from redline.watching.listening import Listening
from redline.watching.process_tree import MachineShare, ProcessTreeMonitor, Surroundings
from tests.fakes.quota import group_with_a_quota
from tests.unit.watching.test_machine import write

SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Tcp: RtoAlgorithm RtoMin OutSegs RetransSegs InErrs
Tcp: 1 200 5000 7 0
Udp: InDatagrams
Udp: 3
"""
NETSTAT = """\
TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPReqQFullDoCookies TCPReqQFullDrop
TcpExt: 9 2 3 4 1
IpExt: InNoRoutes
IpExt: 0
"""
ASKED = """
import sys
from redline.linux import network
for host in sys.argv[1:]: print(network._device_towards(host), network.towards(host))
"""
SOCKSTAT = "sockets: used 22\nTCP: inuse 2 orphan 0 tw 260 alloc 4 mem 42\nUDP: inuse 0 mem 0\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine whose network and links are described by files."""
    device = "sys/class/net/eth9"
    return write(
        tmp_path,
        {
            "proc/7/net/snmp": SNMP,
            "proc/7/net/netstat": NETSTAT,
            "proc/7/net/sockstat": SOCKSTAT,
            f"{device}/speed": "1000\n",
            f"{device}/device/vendor": "0x1af4\n",
            f"{device}/statistics/tx_bytes": "300\n",
            f"{device}/statistics/rx_bytes": "700\n",
        },
    )


def test_counters_are_found_by_their_names(root: Path) -> None:
    namespace = Namespace(7, root)
    assert namespace.tcp() == TcpCounts(5000, 7, 2, 3, 4)
    assert namespace.time_wait() == 260


@pytest.mark.parametrize("file", ["snmp", "netstat"])
@pytest.mark.parametrize("text", ["", "Tcp: OutSegs\n", "TcpExt: ListenDrops\nTcpExt: many\n"])
def test_what_a_kernel_does_not_report_is_not_known(root: Path, file: str, text: str) -> None:
    (root / "proc/7/net" / file).write_text(text)
    assert Namespace(7, root).tcp() is None
    assert Namespace(8, root).time_wait() is None


def test_ones_own_network_is_read_by_way_of_oneself() -> None:
    with sleeping() as child:
        assert Namespace.of(child) == Namespace("self")
        assert Namespace.of(child).ours
    assert not Namespace.of(child, Path("/nowhere")).ours


def test_the_network_of_a_process_elsewhere_is_its_own() -> None:
    with sleeping("unshare", "--net") as child:
        namespace = Namespace.of(child)
        assert not namespace.ours
        counts = namespace.tcp()
        assert counts is not None
        assert counts.tcp_segments_sent == 0, "nothing was ever sent in a new one"
        assert all("local_ports" not in one for one in Surroundings.of(Host(), child, None).constants())


@contextmanager
def sleeping(*within: str) -> Iterator[int]:
    if within and shutil.which(within[0]) is None:
        pytest.skip(f"{within[0]} is not installed")
    code = "import sys; print(flush=True); sys.stdin.read()"
    command = [*within, sys.executable, "-I", "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if not process.stdout.readline():
            pytest.skip(f"{' '.join(within)} is not allowed here")
        try:
            yield process.pid
        finally:
            process.kill()


def test_what_is_sent_is_counted() -> None:
    before = Namespace("self").tcp()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        server, _ = listener.accept()
        with server:
            for _ in range(20):
                client.sendall(b"x")
                assert server.recv(1) == b"x"
    after = Namespace("self").tcp()
    assert before is not None
    assert after is not None
    assert after.tcp_segments_sent - before.tcp_segments_sent >= 20


def test_a_connection_that_its_closer_leaves_rests() -> None:
    for _ in range(50):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            server, _ = listener.accept()
            client.close()
            assert server.recv(1) == b""
            server.close()
    resting = Namespace("self").time_wait()
    assert resting is not None
    assert resting >= 50


def test_a_full_listen_queue_is_counted() -> None:
    before = Namespace("self").tcp()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        waiting = [socket.socket() for _ in range(8)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        after = Namespace("self").tcp()
        for one in waiting:
            one.close()
    assert before is not None
    assert after is not None
    assert after.listen_drops - before.listen_drops >= 4
    assert after.listen_overflows > before.listen_overflows


def test_a_link_has_the_speed_and_the_bytes_of_its_device(root: Path) -> None:
    found = link("eth9", root)
    assert found == Link("eth9", 1_000_000_000, root)
    assert found is not None
    gone = found.counted()
    assert gone is not None
    assert (gone.sent, gone.received) == (300, 700)
    (root / "sys/class/net/eth9/statistics/rx_bytes").unlink()
    assert found.counted() is None


@pytest.mark.parametrize("speed", ["-1", "0", ""])
def test_a_speed_that_is_unknown_is_none(root: Path, speed: str) -> None:
    (root / "sys/class/net/eth9/speed").write_text(speed)
    assert link("eth9", root) is None


def test_devices_of_software_have_no_speed_that_limits(root: Path) -> None:
    write(root, {"sys/class/net/veth0/speed": "10000\n", "sys/class/net/bond0/speed": "20000\n"})
    write(root, {"sys/class/net/bond0/bonding/mode": "802.3ad 4\n"})
    assert link("veth0", root) is None
    assert link("lo", root) is None
    assert link("bond0", root) == Link("bond0", 20_000_000_000, root)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "localhost", "::1", "ü..invalid", ""])
def test_there_is_no_link_to_this_machine_or_to_nowhere(host: str) -> None:
    assert towards(host) is None


def test_the_device_towards_another_machine_is_the_one_it_is_sent_from() -> None:
    """In a network of its own, with a single software device: it is listed, but its speed is not believed."""
    script = (
        "ip link add left type veth peer name right && ip addr add 10.9.0.1/24 dev left"
        " && ip link set left up && ip link set right up && ip link set lo up"
        f' && exec {sys.executable} -c "{ASKED}" 10.9.0.2 10.9.0.1 127.0.0.1 10.8.0.1'
    )
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    if not done.stdout:
        pytest.skip(f"no network of one's own here: {done.stderr.strip()[-200:]}")
    assert done.stdout.splitlines() == ["left None", "None None", "None None", "None None"]


def test_counters_of_version_2_are_in_microseconds(tmp_path: Path) -> None:
    v1, v2 = tmp_path / "v1", tmp_path / "v2"
    write(v1, {"cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 5000000\nnr_bursts 0\n"})
    write(v2, {"cpu.stat": "usage_usec 7\nnr_periods 20\nnr_throttled 1\nthrottled_usec 3000\n"})
    assert throttling([v1]) == Throttling(10, 4, 5_000_000)
    assert throttling([v2]) == Throttling(20, 1, 3_000_000)
    assert throttling([v1, v2]) == Throttling(30, 5, 8_000_000)
    write(tmp_path / "root", {"cpu.stat": "usage_usec 7\n"})
    assert throttling([tmp_path / "root", tmp_path / "gone"]) is None
    assert throttling([]) is None


def test_quotas_are_those_of_the_group_and_of_all_above_it(tmp_path: Path) -> None:
    proc, unified, cpu = tmp_path / "proc", tmp_path / "unified", tmp_path / "cpu"
    mounts = f"1 0 0:1 / {unified} rw - cgroup2 cgroup2 rw\n2 0 0:2 / {cpu} rw - cgroup cgroup rw,cpu\n"
    write(proc, {"self/mountinfo": mounts, "7/cgroup": "1:cpu:/a/b\n0::/pod/box\n"})
    write(unified, {"pod/cpu.max": "150000 100000\n", "pod/box/cpu.max": "max 100000\n"})
    write(cpu, {"a/b/cpu.cfs_quota_us": "50000\n", "a/b/cpu.cfs_period_us": "100000\n"})
    write(cpu, {"a/cpu.cfs_quota_us": "-1\n", "a/cpu.cfs_period_us": "100000\n"})
    assert quotas(7, proc) == {unified / "pod": 1.5, cpu / "a/b": 0.5}
    assert quotas(8, proc) == {}


def test_a_process_that_uses_up_its_quota_is_seen() -> None:
    code = "import time; input(); end = time.process_time() + 0.03\nwhile time.process_time() < end: pass"
    with group_with_a_quota(0.1) as group:
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdin=subprocess.PIPE) as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            monitor = ProcessTreeMonitor(period_s=60)
            monitor.follow("server", process.pid)
            share = MachineShare.of(process.pid)
            process.communicate(b"\n")
        series = {one.name: one for one in monitor.finish() if one.subject == "server"}
    assert group in share.groups
    for name in ("quota_periods", "throttled_periods", "throttled_ns"):
        assert series[name].kind == "counter"
        assert series[name].values[-1] > series[name].values[0], name


def test_who_has_no_quota_is_not_watched_for_it() -> None:
    share = MachineShare((), ())
    assert share.sample("cpu0 1 2 3 4\n") == {}


def test_the_time_of_the_cores_that_a_process_began_on() -> None:
    stat = "cpu  40 0 0 60 0 0 0 0\ncpu0 10 0 0 5 0 0 0 1\ncpu1 20 0 5 5 0 0 0 0\ncpu10 99 0 0 0 0 0 0 0\n"
    one = cpu_times(stat, 1)
    assert one is not None
    assert MachineShare((0, 1), ()).sample(stat) == {"cores_busy_ns": 35 * one.busy_ns // 25}
    assert MachineShare((7,), ()).sample(stat) == {}


def test_interrupts_are_read_where_the_kernel_keeps_them_apart(tmp_path: Path) -> None:
    stat = "cpu  40 0 0 60 0 {irq} 9 0\ncpu0 10 0 0 5 0 0 2 1\ncpu1 20 0 0 5 0 {irq} 7 0\n"
    surroundings = Surroundings(Host(tmp_path), Namespace(7, tmp_path))
    tick = 10**9 // os.sysconf("SC_CLK_TCK")
    by_ticks, apart = stat.format(irq=0), stat.format(irq=3)
    assert "cores_interrupts_ns" not in MachineShare((1,), ()).sample(by_ticks)
    assert "interrupts_ns" not in surroundings.busy(by_ticks)
    assert MachineShare((0, 1), ()).sample(apart)["cores_interrupts_ns"] == (2 + 7 + 3) * tick
    assert surroundings.busy(apart)["interrupts_ns"] == (3 + 9) * tick


def test_a_pinned_process_has_cores_and_another_has_not() -> None:
    core = min(os.sched_getaffinity(0))
    if (os.cpu_count() or 1) < 2:
        pytest.skip("there is one core only")
    with sleeping("taskset", "-c", str(core)) as child:
        assert MachineShare.of(child).cores == (core,)
    assert MachineShare.of(child).cores == ()


def fill(listener: socket.socket) -> list[socket.socket]:
    """More attempts to connect than its queue holds: nobody accepts them."""
    attempts = [socket.socket(listener.family) for _ in range(8)]
    for one in attempts:
        one.setblocking(False)
        one.connect_ex(listener.getsockname())
    return attempts


@pytest.mark.parametrize("attached", [True, False], ids=["somebody else's", "started"])
def test_only_what_the_servers_own_listener_dropped_is_counted(attached: bool) -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=1) as own,
        socket.create_server(("127.0.0.2", own.getsockname()[1]), backlog=1) as other,
    ):
        monitor = ProcessTreeMonitor(listens_at=("localhost", own.getsockname()[1]) if attached else None)
        if attached:
            monitor.follow("engine", os.getpid())
        else:
            monitor.follow("server", os.getpid())
            monitor._watched["server"].listening = Listening(sockets.listening_for("127.0.0.1", own.getsockname()[1]))
        attempts = fill(other)
        time.sleep(0.1)
        assert drops(monitor) == 0
        attempts += fill(own)
        time.sleep(0.1)
        seen = drops(monitor)
        monitor.finish()
        for one in attempts:
            one.close()
    assert seen >= 4


def drops(monitor: ProcessTreeMonitor) -> float:
    """Its count until now."""
    monitor._sample_all(whole=True)
    kept = monitor._kept["server", "listen_drops"].values
    return kept[-1] - kept[0]


def test_the_listeners_of_a_process_are_found_among_its_sockets() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=1) as own:
        found = Listening.of([os.getpid()])
        assert found is not None
        before = found.sample()["listen_drops"]
        attempts = fill(own)
        time.sleep(0.1)
        assert found.sample()["listen_drops"] - before >= 4
        for one in attempts:
            one.close()
    assert Listening.of([]) is None
