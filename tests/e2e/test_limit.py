"""`redline limit` on a queue whose limit is known: short here; the study has the figures."""

from collections.abc import Iterator
from math import log
from pathlib import Path

import pytest

from bench.rig import running
from redline.model.limits import LimitReport
from tests.e2e.conftest import Redline

pytestmark = pytest.mark.e2e

TRUTH_PER_S = 2000 - log(100) / 0.050
"""Of M/M/1 at 2000/s and p99 < 50 ms: 1908/s."""
SLACK = 0.03
"""One in twenty intervals misses by design; hardly one by as much again as it was asked to be narrow."""

SHORT = ("-d", "2s", "--warmup", "500ms", "--start", "500")


@pytest.fixture
def url(oracle: Path) -> Iterator[str]:
    with running(oracle, "exponential", "--rate", "2000", "--seed", "11") as server:
        yield f"http://{server.endpoint.host}:{server.endpoint.port}/path0"


def test_the_limit_of_a_queue_is_between_its_bounds(redline: Redline, url: str) -> None:
    done = redline("limit", url, "--objective", "p99 < 50ms", "--probes", "9", "--json", *SHORT)
    assert done.code == 0, done.err
    (cell,) = LimitReport.model_validate(done.json).cells
    (limit,) = cell.limits
    assert cell.ended == "converged"
    assert len(cell.probes) <= 9
    assert limit.conditions == ("p99 < 50ms", "errors < 1%")
    assert limit.passed_per_s is not None
    assert limit.failed_per_s is not None
    assert limit.passed_per_s < limit.failed_per_s
    if limit.decided:
        assert limit.passed_per_s <= TRUTH_PER_S * (1 + SLACK)
        assert limit.failed_per_s >= TRUTH_PER_S * (1 - SLACK)


def test_what_cannot_be_met_is_doomed_with_a_reason(redline: Redline, url: str) -> None:
    done = redline("limit", url, "--objective", "p50 < 1us", "--start", "200", "-d", "1s", "--warmup", "0s")
    assert done.code == 1
    assert "even 100/s does not meet" in done.out


def test_a_wrong_answer_is_not_measured(redline: Redline, url: str) -> None:
    redline("limit", url, "--objective", "p99 < 50ms", "--status", "201", *SHORT).refused(1, "answer is wrong", "201")


def test_a_wrong_objective_is_refused(redline: Redline) -> None:
    redline("limit", "http://127.0.0.1:1/", "--objective", "p98 < 1ms").refused(2, "--objective", "p98")
