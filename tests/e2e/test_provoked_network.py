"""Problems of the network, a quota or a neighbour, provoked for real: each is reported, and a clean load has none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from redline.model import Report
from redline.model.load_result import LoadResult
from redline.watching.machine import plan_placement
from tests.e2e.conftest import REDLINE, Redline
from tests.e2e.lab import Lab
from tests.fakes.quota import group_with_a_quota
from tests.fakes.servers import beside

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

PORT = 8080
NETWORK = {
    "retransmits",
    "listen-overflow",
    "port-pressure",
    "network-limited",
    "sent-again",
    "delayed-ack",
}
LIMITED = """\
about: what answers well, with less of a core than it wants
runtime: native
build: {{run: ['true'], inputs: [server.yaml], outputs: [server.yaml]}}
ready: {{path: /path0, within: 10s}}
servers:
  one:
    about: one
    start: {{command: [sh, -c, 'echo $$ > {group}/cgroup.procs && exec {oracle} null --port "$1"', sh, '{{port}}']}}
"""


def alone(redline: Redline, habit: str, *flags: str, ports: str = "32768 60999") -> set[str]:
    """The kinds of findings of a load on a server with this habit, in a network without anybody else."""
    done = loaded_alone(redline, habit, *flags, ports=ports)
    return {finding.kind for finding in LoadResult.model_validate_json(done.stdout).findings}


def loaded_alone(redline: Redline, habit: str, *flags: str, ports: str) -> "subprocess.CompletedProcess[str]":
    """The load of `alone`, as it ended."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    command = [str(REDLINE), "load", f"http://127.0.0.1:{PORT}/", "--json", *flags]
    script = (
        f"ip link set lo up && echo {ports} > /proc/sys/net/ipv4/ip_local_port_range"
        f' && exec {sys.executable} {beside.__file__} {habit} {PORT} "$@"'
    )
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script, "sh", *command],
        cwd=redline.folder,
        env=redline.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if not done.stdout and any(
        word in done.stderr for word in ("unshare:", "ip:", "RTNETLINK", "/ip_local_port_range")
    ):
        pytest.skip(f"no network of one's own here: {done.stderr.strip()}")
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_clean_network_is_left_alone(redline: Redline) -> None:
    assert not alone(redline, "healthy", "-c", "8", "-d", "800ms", "--warmup", "100ms") & NETWORK


def test_a_listener_with_a_full_queue_is_reported(redline: Redline) -> None:
    found = alone(redline, "turns_away", "-c", "16", "-d", "2500ms", "--warmup", "0s", "--timeout", "2s")
    assert {"listen-overflow", "retransmits"} <= found  # refused connections were tried again


@pytest.mark.parametrize("habit", ["lossy", "deaf"])
def test_lost_segments_that_are_sent_again_are_reported(redline: Redline, habit: str) -> None:
    """Those of a connection come again after 200 ms, and attempts to connect after a second."""
    assert "sent-again" in alone(redline, habit, "-c", "24", "-d", "3s", "--warmup", "100ms")


def test_ports_that_rest_are_reported(redline: Redline) -> None:
    found = alone(redline, "dials", "-c", "4", "-d", "2s", "--warmup", "100ms", ports="40000 40063")
    assert "port-pressure" in found


def test_a_server_that_has_used_up_its_quota_is_reported(redline: Redline, oracle: Path) -> None:
    lab = Lab(redline.folder, oracle)
    with group_with_a_quota(0.02) as group:
        family = lab.folder / "catalogue" / "limited"
        family.mkdir()
        (family / "server.yaml").write_text(LIMITED.format(group=group, oracle=oracle))
        found = run(redline, lab.suite("limited.one", trials=1))
    assert "throttled" in found


def test_a_neighbour_on_the_servers_core_is_reported(redline: Redline, oracle: Path) -> None:
    # Not on the engine's core: if cores are few, the lab runs there too, and would be slowed down.
    server_cpus = plan_placement().server_cpus
    if not server_cpus or os.sched_getscheduler(0) == os.SCHED_IDLE:
        pytest.skip("server and engine have no cores of their own here, or give way to everybody")
    lab = Lab(redline.folder, oracle)
    busy = (
        f"import os, time\nos.sched_setaffinity(0, {list(server_cpus)})\nend = time.time() + 60\n"
        "while time.time() < end: pass"
    )
    crowd = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2 * len(server_cpus))]
    try:
        found = run(redline, lab.suite("good.one", trials=1), "-d", "1s")
    finally:
        for process in crowd:
            process.kill()
            process.wait()
    assert "noisy-neighbour" in found


def run(redline: Redline, suite: Path, *more: str) -> set[str]:
    """The kinds of findings of the trials of a suite."""
    done = redline("run", suite, "-o", "out", "--json", *more)
    assert "Traceback" not in done.err
    (cell,) = Report.model_validate(done.json).cells
    return {finding.kind for finding in cell.findings}
