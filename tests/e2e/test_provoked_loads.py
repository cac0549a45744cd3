"""Findings of a single load, provoked for real: failures, a missed rate, a cut, a close ceiling."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from redline.model import FindingKind, Report
from redline.model.load_result import LoadResult
from tests.e2e.conftest import Redline
from tests.e2e.lab import BUILD, Lab
from tests.e2e.test_provoked_network import alone, loaded_alone
from tests.fakes import targets
from tests.fakes.certificates import Certificate

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

FAULTS = {
    "errors",
    "trial-failed",
    "wrong-answers",
    "rate-missed",
    "cut-short",
    "tls-insecure",
    "steadiness-unknown",
    "exhausted",
}
WAITING = """\
about: what answers after a while, however many ask
runtime: native
{build}
ready: {{path: /, within: 10s}}
servers:
  one: {{about: one, {start}}}
  two: {{about: two, {start}}}
"""


def dawdles(connection: socket.socket) -> None:
    """Answers each request after 20 ms."""
    while connection.recv(65536):
        time.sleep(0.02)
        connection.sendall(targets.ANSWER)


def kinds(output: str) -> set[FindingKind]:
    """The findings in the output of `redline load --json`."""
    return {finding.kind for finding in LoadResult.model_validate(json.loads(output)).findings}


@pytest.mark.parametrize(
    ("habit", "flags", "expected"),
    [
        (targets.turning(targets.resets), "-c 4", {"errors", "trial-failed"}),
        (targets.turning(targets.fails), "-c 4", {"wrong-answers", "trial-failed"}),
        (dawdles, "-c 2 -R 400", {"rate-missed", "client-queueing"}),
        (dawdles, "-c 4", set()),
    ],
    ids=["resets", "fails", "overloaded", "good"],
)
def test_what_is_wrong_with_answers_is_reported(
    redline: Redline, habit: targets.Habit, flags: str, expected: set[FindingKind]
) -> None:
    with targets.target(habit) as url:
        done = redline("load", url, *flags.split(), "-d", "900ms", "--warmup", "100ms", "--timeout", "5s", "--json")
    found = kinds(done.out)
    assert expected <= found
    assert expected or not found & FAULTS


def test_a_short_load_of_a_server_that_nobody_vouches_for_is_reported(redline: Redline, tmp_path: Path) -> None:
    with targets.target(targets.speaks_http2, Certificate(tmp_path).context("h2")) as url:
        done = redline("load", url, "--http2", "--insecure", "-c", "2", "-d", "200ms", "--warmup", "50ms", "--json")
    assert {"tls-insecure", "steadiness-unknown"} <= kinds(done.out)


@pytest.mark.parametrize(("habit", "lacks"), [("crowded", True), ("healthy", False)])
def test_ports_that_others_hold_are_reported(redline: Redline, habit: str, lacks: bool) -> None:
    flags = ("-c", "8", "-d", "600ms", "--warmup", "50ms")
    assert ("exhausted" in alone(redline, habit, *flags, ports="40000 40017")) is lacks


def test_a_machine_without_a_free_port_is_told_from_a_server_that_does_not_listen(redline: Redline) -> None:
    done = loaded_alone(redline, "crowded", "-c", "8", "-d", "600ms", "--warmup", "50ms", ports="40000 40012")
    assert done.returncode == 1
    assert "Cannot assign requested address" in done.stderr
    assert "net.ipv4.ip_local_port_range" in done.stderr


def test_a_measurement_that_is_cut_is_reported(redline: Redline) -> None:
    asked: list[float] = []

    def dawdles_and_records(connection: socket.socket) -> None:
        while connection.recv(65536):
            asked.append(time.monotonic())
            time.sleep(0.02)
            connection.sendall(targets.ANSWER)

    with targets.target(dawdles_and_records) as url:
        lab = redline.start("load", url, "-c", "2", "-d", "60s", "--warmup", "0s", "--json")
        try:
            deadline = time.monotonic() + 60
            while len(asked) < 50 and time.monotonic() < deadline:
                time.sleep(0.01)
            lab.send_signal(signal.SIGINT)
            out, err = lab.communicate(timeout=60)
        finally:
            lab.kill()
            lab.wait()
    assert out, err
    assert "cut-short" in kinds(out)


def test_a_server_as_fast_as_the_ceiling_is_reported_and_that_one_short_trial_is_little(
    redline: Redline, oracle: Path
) -> None:
    lab = Lab(redline.folder, oracle)
    family = lab.folder / "catalogue" / "waiting"
    family.mkdir()
    start = f"start: {{command: ['{oracle}', fixed, --delay, 20ms, --port, '{{port}}']}}"
    (family / "server.yaml").write_text(WAITING.format(build=BUILD, start=start))
    suite = lab.suite("waiting.one", trials=1, more="ceiling: waiting.two")
    done = redline("run", suite, "-o", "out", "--json")
    assert "Traceback" not in done.err, done.err
    cells = {cell.server: cell for cell in Report.model_validate(done.json).cells}
    found = {one.kind for one in cells["waiting.one"].findings}
    assert {"near-ceiling", "too-few-trials", "too-few-samples"} <= found
    assert "near-ceiling" not in {one.kind for one in cells["waiting.two"].findings}


def test_others_on_all_cores_are_reported(redline: Redline, oracle: Path) -> None:
    if not Path("/proc/pressure/cpu").exists():
        pytest.skip("this kernel does not report how long tasks waited for a core (/proc/pressure/cpu)")
    if os.sched_getscheduler(0) == os.SCHED_IDLE:
        pytest.skip("what is run here gives way to everybody, and would not be heard of again")
    # They have low priority, so that the lab progresses; they are more than the cores, so some always wait.
    busy = "import os, time\nos.nice(15)\nend = time.time() + 120\nwhile time.time() < end: pass"
    crowd = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        # A suite, because of a server that the lab did not start it is not known which CPU time is its own.
        done = redline(
            "run", Lab(redline.folder, oracle).suite("good.one", trials=1), "-d", "1s", "-o", "out", "--json"
        )
    finally:
        for process in crowd:
            process.kill()
            process.wait()
    assert "Traceback" not in done.err, done.err
    (cell,) = Report.model_validate(done.json).cells
    assert "cpu-pressure" in {finding.kind for finding in cell.findings}
