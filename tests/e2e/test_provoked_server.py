"""Servers with bad habits under load, as the report shows them: every habit is a finding, a good server has none.

How busy this machine is decides which other findings there are; so a test looks only for its own finding.
"""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from redline.model import FindingKind, Grade, Report
from redline.model.limits import LimitReport
from redline.storage.runs import RunStore
from tests.e2e.conftest import Redline

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

SERVER = Path(__file__).parents[1] / "fakes" / "servers" / "provoking.py"
STEALING = SERVER.parents[1] / "stealing.py"
HABITS = {
    "waiting": "lock-limited",
    "chatty": "debug-logging",
    "shrinking": "shrinking-answers",
    "mortal": "server-restarted",
    "in_parts": "delayed-ack",
    "healthy": None,
}
PATTERNS = {"polling": "timer-multiples"}
"""Habits that take longer to be seen."""
BUSY = ("burning", "heavy", "restless")
MEGABYTE = hashlib.sha256(b"x" * 1_000_000).hexdigest()
OTHERS_ARE_HERE = {"cpu-pressure", "cpu-steal", "noisy-neighbour"}
"""If others use the cores of server and engine, it cannot be known that these were idle."""

CORES = max(len(os.sched_getaffinity(0)), 2)
MOST_CORES = 16
"""Whether a server waits is judged with 8 users per core; more of them would be too many for these servers."""

BUILD = "build: {run: ['true'], inputs: [server.yaml], outputs: [server.yaml]}"
SUITE = """\
servers: [{servers}]
scenarios: [{scenario}]
loads:
  {load}
warmup: 50ms
timeout: 2s
trials: 1
"""


def lab(folder: Path, oracle: Path) -> None:
    """A catalogue of the servers with habits, and of a server that answers after 5 ms under any load."""
    servers = "\n".join(
        f"  {habit}: {{about: {habit}, start: {{command: ['{sys.executable}', '{SERVER}', '{{port}}', {habit}]}}}}"
        for habit in (*HABITS, *PATTERNS, *BUSY)
    )
    family = folder / "catalogue" / "real"
    family.mkdir(parents=True)
    (folder / "catalogue" / "scenarios.yaml").write_text(
        "scenarios:\n  Status: {get: /, expect: {status: 200}}\n"
        f"  Checked: {{get: /, expect: {{sha256: '{MEGABYTE}'}}}}\n"
    )
    (family / "server.yaml").write_text(
        f"about: real ones\nruntime: native\n{BUILD}\nready: {{path: /, within: 5s}}\nstop: {{within: 1s}}\n"
        f"servers:\n{servers}\n"
        f"  slow: {{about: slow, start: {{command: ['{oracle}', fixed, --delay, 5ms, --port, '{{port}}']}}}}\n"
    )


def found(redline: Redline, servers: list[str], load: str, scenario: str = "Status") -> dict[str, set[FindingKind]]:
    """The findings about each of these servers."""
    suite = redline.folder / "suite.yaml"
    suite.write_text(
        SUITE.format(servers=", ".join(f"real.{server}" for server in servers), load=load, scenario=scenario)
    )
    done = redline("run", suite, "-o", redline.folder / "out", "--json")
    assert "Traceback" not in done.err
    report = Report.model_validate_json(done.out)
    return {cell.server.removeprefix("real."): {one.kind for one in cell.findings} for cell in report.cells}


def all_pinned(redline: Redline) -> bool:
    """Whether server and engine had cores of their own, which takes a machine with two or more."""
    servers = [recording.server for recording in RunStore(redline.folder / "out").run().recordings]
    return all(server is not None and server.cpus for server in servers)


def test_habits_of_servers_are_reported_by_name(redline: Redline, oracle: Path) -> None:
    lab(redline.folder, oracle)
    kinds = found(redline, list(HABITS), f"saturate: {{closed: {{users: {8 * min(CORES, MOST_CORES)}}}, for: 800ms}}")
    for habit, kind in HABITS.items():
        seen = kinds[habit] & set(filter(None, HABITS.values()))
        judgeable = CORES <= MOST_CORES and all_pinned(redline) and not kinds[habit] & OTHERS_ARE_HERE
        if kind is not None and (kind != "lock-limited" or judgeable):
            assert kind in seen, (habit, kinds[habit])
        assert seen <= {kind, "lock-limited"}, (habit, kinds[habit])


def test_patterns_of_times_are_named_where_they_are(redline: Redline, oracle: Path) -> None:
    lab(redline.folder, oracle)
    server = "polling"
    kinds = found(redline, [server, "healthy"], "saturate: {closed: {users: 48}, for: 3s}")
    named = {name: seen & set(PATTERNS.values()) for name, seen in kinds.items()}
    if not named[server] and kinds[server] & OTHERS_ARE_HERE:
        pytest.skip(f"others took turns with the server: {', '.join(sorted(kinds[server] & OTHERS_ARE_HERE))}")
    assert named == {server: {PATTERNS[server]}, "healthy": set()}


@pytest.mark.parametrize(
    ("server", "scenario", "kind", "other"),
    [
        ("burning", "Status", "server-limited", "client-saturated"),
        ("heavy", "Checked", "client-saturated", "server-limited"),
    ],
)
def test_whose_cores_are_full_is_reported(
    redline: Redline, oracle: Path, server: str, scenario: str, kind: FindingKind, other: FindingKind
) -> None:
    lab(redline.folder, oracle)
    load = f"saturate: {{closed: {{users: {8 * min(CORES, MOST_CORES)}}}, for: 800ms}}"
    (kinds,) = found(redline, [server], load, scenario).values()
    assert other not in kinds
    if kind not in kinds and (not all_pinned(redline) or kinds & OTHERS_ARE_HERE):
        pytest.skip(f"server and engine did not have their cores to themselves: {', '.join(sorted(kinds)) or 'shared'}")
    assert kind in kinds


def test_a_pool_of_workers_is_counted(redline: Redline) -> None:
    command = f"{sys.executable} {SERVER} {{port}} pooled"
    done = redline(
        "limit",
        command,
        "--objective",
        "p99 < 50ms",
        "-d",
        "1s",
        "--warmup",
        "1s",
        "--trials",
        "2",
        "--no-beyond",
        "--json",
    )
    (cell,) = LimitReport.model_validate_json(done.out).cells
    kinds = {finding.kind for finding in cell.findings}
    pools = [finding.message for finding in cell.findings if finding.kind == "pool-of-workers"]
    if not pools and kinds & OTHERS_ARE_HERE:
        pytest.skip(f"others took turns with the server: {', '.join(sorted(kinds & OTHERS_ARE_HERE))}")
    assert "a pool of 4 workers" in pools[0]


def test_a_server_that_works_without_requests_is_told_from_their_cost(redline: Redline, oracle: Path) -> None:
    lab(redline.folder, oracle)
    kinds = found(redline, ["restless", "healthy"], "quiet: {open: {rate: 50}, for: 1s}")
    assert {name: "standing-cost" in seen for name, seen in kinds.items()} == {"restless": True, "healthy": False}


def test_a_host_that_takes_cpu_time_is_reported(redline: Redline, oracle: Path) -> None:
    lab(redline.folder, oracle)
    suite = redline.folder / "suite.yaml"
    load = "steady: {open: {rate: 500, connections: 16}, for: 500ms}"
    suite.write_text(SUITE.format(servers="real.healthy", load=load, scenario="Status"))
    under = f"{sys.executable} {STEALING} {redline.folder / 'stat'}"
    done = redline.in_own_mounts(f"exec {under} redline run {suite} -o {redline.folder / 'out'} --json")
    assert "Traceback" not in done.err, done.err
    (cell,) = Report.model_validate_json(done.out).cells
    (steal,) = [one for one in cell.findings if one.kind == "cpu-steal"]
    assert steal.grade is Grade.WARN


@pytest.mark.parametrize(("connections", "queues"), [(3, True), (64, False)])
def test_too_few_connections_are_a_queue_in_the_client(
    redline: Redline, oracle: Path, connections: int, queues: bool
) -> None:
    lab(redline.folder, oracle)
    load = f"steady: {{open: {{rate: 400, arrivals: poisson, connections: {connections}}}, for: 500ms}}"
    (kinds,) = found(redline, ["slow"], load).values()
    assert "arrivals" not in kinds
    if queues:
        assert "client-queueing" in kinds


SCHEDULES = """\
uniform: {open: {rate: 1500, arrivals: uniform, connections: 64}, for: 400ms}
  poisson: {open: {rate: 1500, connections: 64}, for: 400ms}
  jump: {open: {rate: 500, arrivals: uniform, connections: 64, stages: [{to: 2000, over: 0s}]}, for: 400ms}
  ramp: {open: {rate: 0, connections: 64, stages: [{to: 3000, over: 200ms}, {to: 300, over: 100ms}]}, for: 400ms}
  recorded: {open: {arrivals: {replay: times.txt}, connections: 64}, for: 400ms}
  two-deep: {open: {rate: 1500, arrivals: uniform, connections: 8, depth: 2, requests_per_connection: 50}, for: 400ms}\
"""


def test_the_engine_keeps_every_kind_of_schedule(redline: Redline, oracle: Path) -> None:
    lab(redline.folder, oracle)
    (redline.folder / "times.txt").write_text("".join(f"{at * at}us\n" for at in range(600)))
    suite = redline.folder / "suite.yaml"
    suite.write_text(SUITE.format(servers="real.slow", load=SCHEDULES, scenario="Status"))
    done = redline("run", suite, "-o", redline.folder / "out", "--json")
    assert "Traceback" not in done.err, done.err
    report = Report.model_validate_json(done.out)
    assert len(report.cells) == 6
    for cell in report.cells:
        assert cell.trials[0].rate_per_s, cell.load
        assert "arrivals" not in {one.kind for one in cell.findings}, cell.findings
