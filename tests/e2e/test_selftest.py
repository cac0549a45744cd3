"""The command as a user runs it. Its findings depend on the machine, so only the form of the output is checked."""

import json
from pathlib import Path

import jsonschema
import pytest

from redline.extras.selftest.judge import worst
from redline.extras.selftest.results import QUANTILES, SelftestResult
from tests.e2e.conftest import CHECKOUT, Redline

pytestmark = pytest.mark.e2e

SCHEMA = CHECKOUT / "docs" / "reference" / "cli.schema.json"
NOISE_MAY_BE_OFF = {0, 1}


@pytest.mark.long
def test_a_short_case_as_json(redline: Redline, oracle: Path) -> None:
    done = redline("selftest", "--seconds", "1", "--case", "fixed", "--json")
    jsonschema.validate(done.json, json.loads(SCHEMA.read_text()))
    result = SelftestResult.model_validate(done.json)
    (case,) = result.cases
    assert case.name == "fixed"
    assert tuple(point.q for point in case.points) == QUANTILES
    assert case.requests == 10_000
    for point in case.points:
        assert point.error_ns == pytest.approx(point.answer_ns - point.truth_ns)
        assert point.low_ns <= point.truth_ns <= point.high_ns
        assert point.truth_ns > 5_000_000
        assert (point.judgement == "ok") == (point.reason == "")
    assert case.points[0].answer_ns >= 5_000_000
    assert case.checks[0].value == 0
    assert result.judgement == worst(
        [found.judgement for found in case.points] + [each.judgement for each in case.checks]
    )
    assert done.code == (1 if result.judgement == "off" else 0)
    assert "about" in done.err


@pytest.mark.long
def test_the_table_fits_a_terminal(redline: Redline, oracle: Path) -> None:
    redline.environment["COLUMNS"] = "100"
    done = redline("selftest", "--seconds", "0.5", "--case", "stop", "--case", "arrivals", "--case", "mm1-50")
    assert done.code in NOISE_MAY_BE_OFF, done.err
    assert all(len(line) <= 100 for line in done.out.splitlines())
    words = ("round trip", "at rest", "sleeper", "mm1-50", "stop", "arrivals-poisson", "p99.9", "truth", "gaps between")
    for word in words:
        assert word in done.out, done.out
    assert "\x1b" not in done.out


@pytest.mark.long
def test_peers_are_asked_where_there_are_any(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    """A fake wrk, which reports the same of every server."""
    fake = tmp_path / "bin" / "wrk"
    fake.parent.mkdir()
    golden = CHECKOUT / "tests" / "golden" / "peers" / "wrk.txt"
    fake.write_text(f'#!/bin/sh\ncase "$1" in -v) echo "wrk 9.8.7"; exit 1;; esac\ncat {golden}\n')
    fake.chmod(0o755)
    redline.environment["PATH"] = f"{fake.parent}:{redline.environment['PATH']}"
    done = redline("selftest", "--peers", "--seconds", "0.5", "--case", "fixed", "--case", "mm1-50", "--json")
    assert done.code in NOISE_MAY_BE_OFF, done.err
    fixed, queue = SelftestResult.model_validate(done.json).cases
    (wrk,) = (peer for peer in fixed.peers if peer.peer == "wrk")
    assert (wrk.version, wrk.loop) == ("9.8.7", "closed")
    assert {point.q: round(point.ns) for point in wrk.points}[0.99] == 5_150_000
    assert queue.peers == ()  # only Redline supports Poisson arrivals


def test_what_there_is_not_is_refused(redline: Redline) -> None:
    redline("selftest", "--case", "nothing").refused(2, "nothing", "mm1-80")
    redline("selftest", "--seconds", "0").refused(2, "--seconds")
