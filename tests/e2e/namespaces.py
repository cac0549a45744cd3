"""Hosts made of namespaces: every host has its own network, processes, name and folder of Ray; all share a bridge."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NEEDED = ("ip", "unshare", "nsenter", "mount")
RAY = Path(sys.executable).with_name("ray")
FOLDER = Path("/tmp/ray")
TOKEN = "redline-test-token-of-32-characters"
UP_WITHIN_S = 60.0
_CLUSTERS = itertools.count()
"""The kernel removes a deleted namespace, and its ends of links, some time later."""


def skip_unless_possible() -> None:
    """Skip, with the reason, where such hosts cannot be made or Ray is missing."""
    skip_without_namespaces()
    if not RAY.exists():
        pytest.skip("Ray is not installed: uv sync --extra ray")


def skip_without_namespaces() -> None:
    """Skip, with the reason, where such hosts cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    for command in NEEDED:
        if shutil.which(command) is None:
            pytest.skip(f"{command} is not installed")
    done = _ip("netns", "add", "redline-try")
    if done.returncode != 0:
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
    _ip("netns", "delete", "redline-try")


def _ip(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["ip", *words], capture_output=True, text=True, timeout=20, check=False)


def _must(*words: str) -> None:
    done = _ip(*words)
    assert done.returncode == 0, (words, done.stderr)


@dataclass
class NetHost:
    """A host: its name, its address, its cores, and its processes.

    `before` is a command that prepares the host and then runs the first process, which is appended to it.
    """

    name: str
    address: str
    cpus: str
    folder: Path
    before: tuple[str, ...] = ()
    processes: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the lab and of Ray on this host."""
        return {
            **os.environ,
            "HOME": str(self.folder),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
            "RAY_health_check_period_ms": "1000",
            "RAY_health_check_timeout_ms": "1000",
            "RAY_health_check_failure_threshold": "3",
            "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }

    def command(self, *words: str) -> list[str]:
        """The command line that runs a command on this host, beside what it runs first."""
        inner = self._first_process()
        spaces = ("--net", "--mount", "--uts", "--ipc", "--pid")
        return ["nsenter", "--target", inner, *spaces, "--wd=.", "taskset", "-c", self.cpus, *words]

    def _first_process(self) -> str:
        """The id of its first process, once that exists."""
        unshare = self.processes[0].pid
        deadline = time.monotonic() + UP_WITHIN_S
        while not (children := Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()):
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)
        return children[0]

    def run_chrony(self, head: "NetHost") -> None:
        """Run chronyd here, beside what is started first, and let it follow the chronyd of the head."""
        follows = (
            ["local stratum 8", "allow"] if self is head else [f"server {head.address} iburst minpoll 0 maxpoll 0"]
        )
        file = self.folder / "chrony.conf"
        file.write_text("\n".join([*follows, f"pidfile {self.folder}/chronyd.pid", ""]))
        # `-x`: it does not set the clock, which is the machine's. chronyc reaches it by a socket in /run/chrony.
        start = 'mkdir -p /run/chrony && mount -t tmpfs tmpfs /run/chrony && chronyd -x -u root -f "$0" && exec "$@"'
        self.before = ("sh", "-c", start, str(file))

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command as the first process of this host; all processes of the host end with it."""
        script = f'mount --bind {self.folder}/ray {FOLDER} && hostname {self.name} && exec "$@"'
        log = (self.folder / f"{len(list(self.folder.glob('*.log')))}.log").open("wb")
        pinned = ("taskset", "-c", self.cpus)
        isolated = ("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
        with log:
            process = subprocess.Popen(
                [
                    "nsenter",
                    f"--net=/run/netns/{self.name}",
                    *pinned,
                    *isolated,
                    "sh",
                    "-c",
                    script,
                    "host",
                    *self.before,
                    *words,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def said(self) -> str:
        """The output of its processes."""
        return "\n".join(file.read_text(errors="replace")[-2000:] for file in sorted(self.folder.glob("*.log")))

    def end(self) -> None:
        """Kill all its processes."""
        while self.processes:
            process = self.processes.pop()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def running(self, *words: str) -> list[str]:
        """The processes in this host's network whose command line has one of these words, by their ids here."""
        found, own = [], Path(f"/run/netns/{self.name}").stat().st_ino
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            with suppress(OSError):
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                entered = line.startswith("nsenter")  # it waits for the processes that it started
                if (folder / "ns/net").stat().st_ino == own and not entered and any(word in line for word in words):
                    found.append(folder.name)
        return found

    def slow(self, rate: str) -> None:
        """Limit the rate at which it sends."""
        words = ("qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "4kb", "latency", "500ms")
        done = subprocess.run(["tc", "-n", self.name, *words], capture_output=True, text=True, timeout=20, check=False)
        if done.returncode != 0:
            pytest.skip(f"no token bucket here: {done.stderr.strip()}")

    def cut(self) -> None:
        """Disconnect its network."""
        _must("link", "set", f"to-{self.name}", "down")

    def mend(self) -> None:
        """Connect its network again."""
        _must("link", "set", f"to-{self.name}", "up")


@contextmanager
def hosts(folder: Path, cpus: dict[str, str]) -> Iterator[dict[str, NetHost]]:
    """Hosts by name, each on its cores, connected with each other and with nothing else."""
    number = (os.getpid() + next(_CLUSTERS)) % 250
    FOLDER.mkdir(exist_ok=True)
    bridge = f"rl{number}"
    with ExitStack() as stack:
        _must("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "delete", bridge)
        _must("link", "set", bridge, "up")
        found = {}
        for place, (name, cores) in enumerate(cpus.items(), 1):
            inner = f"{name}-{number}"
            host = NetHost(inner, f"10.{200 + number % 50}.{number}.{place}", cores, folder / name)
            (host.folder / "ray").mkdir(parents=True)
            _must("netns", "add", inner)
            stack.callback(_ip, "netns", "delete", inner)
            stack.callback(host.end)
            _must("link", "add", f"to-{inner}", "type", "veth", "peer", "name", "eth0", "netns", inner)
            stack.callback(_ip, "link", "delete", f"to-{inner}")
            _must("link", "set", f"to-{inner}", "master", bridge, "up")
            for words in (
                ("address", "add", f"{host.address}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("link", "set", "lo", "up"),
            ):
                _must("-n", inner, *words)
            found[name] = host
        yield found


@contextmanager
def cluster(folder: Path, cpus: dict[str, str]) -> Iterator[dict[str, NetHost]]:
    """The same hosts as a Ray cluster: `head` has no role, the others have the role with which their names begin."""
    with hosts(folder, cpus) as found:
        start_cluster(found)
        yield found


def start_cluster(hosts: dict[str, NetHost]) -> None:
    """Start Ray on hosts, the head first."""
    head = hosts["head"]
    for name, host in hosts.items():
        role = name.partition("-")[0]
        words = [str(RAY), "start", "--block", f"--node-ip-address={host.address}", "--num-cpus=1"]
        words += ["--object-store-memory=100000000", "--disable-usage-stats"]
        if name == "head":
            words += ["--head", "--port=6379", "--include-dashboard=false"]
        else:
            words += [f"--address={head.address}:6379", f'--resources={{"{role}": 1}}']
        host.start(*words)
        if name == "head":
            _wait_for_port(head, 6379)
    _wait_for_hosts(head, len(hosts))


def _wait_for_port(host: NetHost, port: int) -> None:
    deadline = time.monotonic() + UP_WITHIN_S
    script = f"import socket; socket.create_connection(('{host.address}', {port}), 1).close()"
    while time.monotonic() < deadline:
        done = subprocess.run(host.command(sys.executable, "-c", script), capture_output=True, timeout=20, check=False)
        if done.returncode == 0:
            return
        time.sleep(0.3)
    raise AssertionError(f"Ray did not start: {host.said()}")


def _wait_for_hosts(head: NetHost, number: int) -> None:
    script = f"""
import ray, time
deadline = time.monotonic() + {UP_WITHIN_S}
def alive():
    try:
        ray.init(address='auto', log_to_driver=False, logging_level='ERROR', ignore_reinit_error=True)
        return sum(node['Alive'] for node in ray.nodes())
    except ConnectionError:
        return 0
while alive() < {number} and time.monotonic() < deadline:
    time.sleep(0.2)
print(alive())
"""
    done = subprocess.run(
        head.command(sys.executable, "-c", script),
        env=head.environment,
        capture_output=True,
        text=True,
        timeout=2 * UP_WITHIN_S,
        check=False,
    )
    assert done.stdout.split() == [str(number)], (done.stdout, done.stderr, head.said())
