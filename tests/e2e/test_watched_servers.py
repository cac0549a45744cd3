"""What a server that runs already keeps, and its quota, are seen in `load`, `ab` and `limit`: its socket is a proof."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.model import Finding, Report
from redline.model.limits import LimitReport
from redline.model.load_result import LoadResult
from tests.e2e.compared import LENGTHS, duet
from tests.e2e.conftest import Redline
from tests.fakes.quota import group_with_a_quota
from tests.fakes.servers.entries import eventually
from tests.fakes.servers.keeping import LEAKED_BYTES
from tests.fakes.servers.owned import free_port

pytestmark = pytest.mark.e2e

KEEPING = Path(__file__).parents[1] / "fakes" / "servers" / "keeping.py"
SLOW = ("-R", "100", "-c", "8", "--warmup", "1s")


@contextlib.contextmanager
def keeping(habit: str, group: Path | None = None) -> Iterator[str]:
    """The URL of such a server while the block runs; it may belong to a control group."""
    port = free_port("127.0.0.1")
    with subprocess.Popen([sys.executable, KEEPING, str(port), habit]) as process:
        try:
            if group is not None:
                (group / "cgroup.procs").write_text(str(process.pid))
            assert eventually(lambda: _answers(port))
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.kill()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def loaded(redline: Redline, url: str, *flags: str) -> LoadResult:
    done = redline("load", url, *flags, "--json")
    assert "Traceback" not in done.err
    return LoadResult.model_validate(done.json)


def about(findings: tuple[Finding, ...], kind: str) -> list[str]:
    return [one.message for one in findings if one.kind == kind]


@pytest.mark.parametrize(
    ("habit", "kind"),
    [
        ("memory", "memory-grows"),
        pytest.param("descriptors", "descriptors-grow", marks=pytest.mark.long),
        pytest.param("threads", "threads-grow", marks=pytest.mark.long),
        ("nothing", None),
    ],
)
def test_a_load_of_some_seconds_says_what_a_server_keeps_of_each_request(
    redline: Redline, habit: str, kind: str | None
) -> None:
    with keeping(habit) as url:
        result = loaded(redline, url, *SLOW, "-d", "6s")
    kinds = {one.kind for one in result.findings}
    assert kinds & {"descriptors-grow", "threads-grow"} == {kind} - {None, "memory-grows"}
    assert kind is None or kind in kinds
    assert result.server is not None
    assert result.server.cpu_per_request_ns
    assert result.server.descriptors
    if habit == "memory":
        (message,) = about(result.findings, "memory-grows")
        kib = float(message.partition(", by ")[2].partition(" KiB")[0])
        assert kib == pytest.approx(LEAKED_BYTES / 1024, rel=0.2)
    if habit == "nothing":
        assert "memory-grows" not in kinds


def test_connections_that_a_server_never_closes_are_counted(redline: Redline) -> None:
    with keeping("half_closed") as url:
        result = loaded(redline, url, "-R", "100", "-c", "24", "-d", "1s", "--warmup", "200ms")
    assert about(result.findings, "half-closed")
    assert result.server is not None
    assert (result.server.half_closed or 0) >= 24
    with keeping("nothing") as url:
        result = loaded(redline, url, "-R", "100", "-c", "24", "-d", "1s", "--warmup", "200ms")
    assert not about(result.findings, "half-closed")


def test_users_whom_a_server_never_answers_are_counted_and_no_engine_is_blamed(redline: Redline) -> None:
    with keeping("deaf") as url:
        result = loaded(redline, url, "-c", "64", "-d", "1s", "--warmup", "300ms", "--timeout", "400ms")
    assert result.reach is not None
    assert (result.reach.opened, result.reach.asked) == (64, 64)
    assert 0 < result.reach.answered <= 16
    (message,) = about(result.findings, "users-unanswered")
    assert f"{64 - result.reach.answered} of 64 users" in message
    assert "it accepted their connections, and did not answer on them" in message
    assert not about(result.findings, "littles-law")
    assert not any("fault of the engine" in one.advice for one in result.findings)


@pytest.mark.long
def test_a_quota_is_said_by_every_command_that_loads_a_url(redline: Redline) -> None:
    with group_with_a_quota(0.03) as group, keeping("nothing", group) as url, keeping("nothing") as other:
        (message,) = about(loaded(redline, url, "-c", "4", "-d", "1s", "--warmup", "200ms").findings, "throttled")
        assert message.startswith("The server had used up its CPU quota of 0.03")
        for length in LENGTHS:  # on a busy machine the server of a short comparison has no time to use it up
            done = redline("ab", url, other, "--for", length, "--load", "closed:4", "--json")
            throttled = about(duet(Report.model_validate(done.json)).findings, "throttled")
            if throttled:
                break
        assert any(it.startswith("A had used up its CPU quota") for it in throttled), done.out
        few = ("--start", "400", "--probes", "2", "-d", "1s", "--warmup", "200ms")
        searched = redline("limit", url, "--objective", "p99 < 50ms", *few, "--json")
        report = LimitReport.model_validate(searched.json)
        assert any(about(cell.findings, "throttled") for cell in report.cells)
