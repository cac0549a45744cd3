"""Detected warm-ups with the real engine: it obeys the command to measure, and the measurement has its length."""

import json
import socket
import time
from pathlib import Path

import pytest

from redline.model.load_result import LoadResult
from tests.e2e.conftest import Redline
from tests.e2e.lab import Lab
from tests.fakes import targets

pytestmark = pytest.mark.e2e

S = 1_000_000_000
COLD_S = 2.0


@pytest.mark.long
@pytest.mark.alone
def test_a_server_that_gets_faster_is_measured_afterwards(redline: Redline) -> None:
    begun = time.monotonic()

    def warms_up(connection: socket.socket) -> None:
        while connection.recv(65536):
            time.sleep(0.02 if time.monotonic() < begun + COLD_S else 0.002)
            connection.sendall(targets.ANSWER)

    with targets.target(warms_up) as url:
        done = redline("load", url, "-c", "4", "-d", "1s", "--warmup", "auto", "--json")
    result = LoadResult.model_validate(done.json)
    assert result.warm_up is not None
    # A busy machine may make it wait for longer, or never reach a steady state.
    assert 5 * S <= result.warm_up.measured_from_ns <= 60 * S
    assert result.measured_ns == S
    assert result.counts.outcomes.ok > 0


def test_a_suite_says_how_its_trials_warmed_up(redline: Redline, tmp_path: Path, oracle: Path) -> None:
    suite = Lab(tmp_path, oracle).suite("good.one", trials=1)
    suite.write_text(suite.read_text().replace("warmup: 50ms", "warmup: {detect: {at_most: 6s}}"))
    done = redline("run", suite, "-o", tmp_path / "run")
    assert "Warm-up of good.one: " in done.out, (done.out, done.err)
    report = json.loads((tmp_path / "run" / "results.json").read_text())
    (trial,) = report["cells"][0]["trials"]
    assert 5 * S <= trial["warm_up"]["measured_from_ns"] <= 6 * S
    assert trial["warm_up"]["kind"] in {"flat", "warmed up", "slowing down", "never steady"}


def test_a_load_that_changes_is_refused(redline: Redline) -> None:
    done = redline("load", "http://127.0.0.1:9/", "--stage", "8:1s", "-d", "2s", "--warmup", "auto")
    done.refused(2, "--warmup auto", "change by design")
