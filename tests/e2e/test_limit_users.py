"""`redline limit --by-users` on servers that hold a known number of users: answers wait for one worker, 5 ms each."""

from pathlib import Path

import pytest

from bench.rig import running
from redline.model.limits import CellLimit, LimitReport
from tests.e2e.conftest import Redline
from tests.e2e.preloaded import PATIENT

pytestmark = [pytest.mark.e2e, pytest.mark.alone]

QUEUE = ("deterministic", "--service", "5ms")
SHORT = ("-d", "1s", "--warmup", "200ms", "--probes", "12", "--json")


def searched(redline: Redline, url: str, *asked: str) -> CellLimit:
    redline.environment[PATIENT] = "1"
    done = redline("limit", url, "--by-users", *asked, *SHORT)
    assert done.code in {0, 1}, done.err
    (cell,) = LimitReport.model_validate(done.json).cells
    assert [limit.by_users for limit in cell.limits] == [True]
    assert all(probe.users and not probe.overloaded for probe in cell.probes)
    return cell


@pytest.mark.parametrize("scheme", ["http", "ws"])
def test_the_most_users_of_a_queue_are_found(redline: Redline, oracle: Path, scheme: str) -> None:
    """With n users each answer takes n times 5 ms, so that 10 meet it, and 11 cannot. A busy machine holds fewer."""
    with running(oracle, *QUEUE) as server:
        url = server.url.replace("http://", f"{scheme}://", 1)
        cell = searched(redline, url, "--objective", "p50 < 52ms", "--start", "8")
    (limit,) = cell.limits
    assert limit.passed_users is not None, cell.reason
    assert limit.failed_users is not None, cell.reason
    assert limit.passed_users <= 10, "11 users take 55 ms"
    assert limit.failed_users - limit.passed_users >= 1
    assert [probe.users for probe in cell.probes][:2] == [8, 16]
    assert "missed" in {state.state for probe in cell.probes if probe.users == 16 for state in probe.counts}


@pytest.mark.long
def test_users_of_streams_are_found_by_their_messages(redline: Redline, oracle: Path) -> None:
    """A stream takes 120 ms after its wait: with n users that is 5n - 120 ms, so that 44 meet it, and 45 do not."""
    with running(oracle, *QUEUE, "--events", "12", "--tokens", "--event-gap", "10ms") as server:
        asked = ("--events", "openai", "--objective", "first-message p50 < 108ms", "--start", "20")
        cell = searched(redline, server.url, *asked)
    (limit,) = cell.limits
    assert limit.passed_users is not None, cell.reason
    assert 20 <= limit.passed_users <= 46
