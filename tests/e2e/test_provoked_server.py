"""What servers do under load, as the report tells it: each habit of a real server is a finding, a good one has none.

How busy this machine is decides what else is found; so each test looks for its own finding.
"""

import sys
from pathlib import Path

import pytest

from redline.model import FindingKind, Report
from tests.e2e.conftest import Redline

pytestmark = pytest.mark.e2e

SERVER = Path(__file__).parents[1] / "fakes" / "servers" / "provoking.py"
HABITS = {
    "waiting": FindingKind.LOCK_LIMITED,
    "chatty": FindingKind.DEBUG_LOGGING,
    "shrinking": FindingKind.SHRINKING_ANSWERS,
    "mortal": FindingKind.SERVER_RESTARTED,
    "healthy": None,
}
BUILD = "build: {run: ['true'], inputs: [server.yaml], outputs: [server.yaml]}"
SUITE = """\
servers: [{servers}]
scenarios: [Status]
loads:
  {load}
warmup: 50ms
timeout: 2s
trials: 1
"""


def lab(folder: Path, oracle: Path) -> None:
    """A catalogue of the servers with habits, and of one that answers after 5 ms however many ask."""
    servers = "\n".join(
        f"  {habit}: {{about: {habit}, start: {{command: ['{sys.executable}', '{SERVER}', '{{port}}', {habit}]}}}}"
        for habit in HABITS
    )
    family = folder / "catalogue" / "real"
    family.mkdir(parents=True)
    (folder / "catalogue" / "scenarios.yaml").write_text("scenarios: {Status: {get: /, expect: {status: 200}}}\n")
    (family / "server.yaml").write_text(
        f"about: real ones\nruntime: native\n{BUILD}\nready: {{path: /, within: 5s}}\nstop: {{within: 1s}}\n"
        f"servers:\n{servers}\n"
        f"  slow: {{about: slow, start: {{command: ['{oracle}', fixed, --delay, 5ms, --port, '{{port}}']}}}}\n"
    )


def found(redline: Redline, servers: list[str], load: str) -> dict[str, set[FindingKind]]:
    """The findings about each of these servers."""
    suite = redline.folder / "suite.yaml"
    suite.write_text(SUITE.format(servers=", ".join(f"real.{server}" for server in servers), load=load))
    done = redline("run", suite, "-o", redline.folder / "out", "--json")
    assert "Traceback" not in done.err
    report = Report.model_validate_json(done.out)
    return {cell.server.removeprefix("real."): {one.kind for one in cell.findings} for cell in report.cells}


def test_habits_of_servers_are_told_by_name(redline: Redline, oracle: Path) -> None:
    lab(redline.folder, oracle)
    kinds = found(redline, list(HABITS), "saturate: {closed: {users: 16}, for: 800ms}")
    for habit, kind in HABITS.items():
        told = kinds[habit] & set(filter(None, HABITS.values()))
        if habit == "waiting" and kind not in told:
            continue  # server and engine share their cores here, or others are on them
        assert kind is None or kind in told, (habit, kinds[habit])
        assert told <= {kind, FindingKind.LOCK_LIMITED}, (habit, kinds[habit])


@pytest.mark.parametrize(("connections", "queues"), [(3, True), (64, False)])
def test_too_few_connections_are_a_queue_in_the_client(
    redline: Redline, oracle: Path, connections: int, queues: bool
) -> None:
    lab(redline.folder, oracle)
    load = f"steady: {{open: {{rate: 400, arrivals: poisson, connections: {connections}}}, for: 500ms}}"
    (kinds,) = found(redline, ["slow"], load).values()
    assert FindingKind.ARRIVALS not in kinds
    if queues:
        assert FindingKind.CLIENT_QUEUEING in kinds
