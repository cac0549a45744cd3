"""How far pushes are off their server's own schedule, of which every second one is sent so much later."""

import statistics
from pathlib import Path

import pytest

from bench.rig import AskedOf, drive, running
from redline.model import Closed, Load, Request, Scenario, Stream, StreamTraffic, WebSocket
from tests.e2e.conftest import Redline

pytestmark = pytest.mark.e2e

MS = 1_000_000
PUSHES, USERS = 41, 6
PLANTED = ["null", "--pushes", str(PUSHES), "--push-every", "20ms", "--push-jitter", "5ms"]


def pushed(oracle: Path, every_ns: int | None) -> StreamTraffic:
    """What users saw who took all pushes of a conversation each."""
    stream = Stream(events="messages", until=PUSHES, every_ns=every_ns)
    ticks = Request(path="/ticks", websocket=WebSocket(answer="listen"), stream=stream)
    load = Load(name="ticks", shape=Closed(users=USERS), duration_ns=20_000 * MS, count=USERS)
    with running(oracle, *PLANTED) as server:
        traffic = drive(server, load, AskedOf(Scenario(name="Ticks", request=ticks)), warmup_ns=0)
    assert traffic.streams is not None
    assert traffic.streams.counted == USERS * PUSHES
    return traffic.streams


def test_each_push_but_the_first_is_counted_where_a_schedule_is_given(oracle: Path) -> None:
    jitter = pushed(oracle, 20 * MS).jitter
    assert jitter is not None
    assert jitter.count == USERS * (PUSHES - 1)
    without = pushed(oracle, None).jitter
    assert without is not None
    assert without.count == 0


@pytest.mark.truth
@pytest.mark.upper_bound
def test_planted_jitter_is_found(oracle: Path) -> None:
    """Half of the pushes are 5 ms late. The medians of three tries: the machine may do something else during one."""
    tries = [pushed(oracle, 20 * MS).jitter for _ in range(3)]
    calm, late = (statistics.median(one.quantile_ns(q) for one in tries if one) for q in (0.25, 0.6))
    assert calm <= 0.5 * MS
    assert abs(late - 5 * MS) <= 0.5 * MS


def test_jitter_decides_and_is_shown(redline: Redline, oracle: Path) -> None:
    events = ["--events", f"messages until {PUSHES} every 20ms", "-c", "4", "-d", "1s", "--warmup", "0s"]
    with running(oracle, *PLANTED) as server:
        url = server.url.replace("http://", "ws://", 1)
        done = redline("load", url, *events, "--objective", "jitter p50 < 2s", "-o", "out", "-v").measured()
        assert "jitter" in done.out
        (objective,) = redline("load", url, *events, "--objective", "jitter max < 1ms", "--json").json["objectives"]
    assert not objective["met"], objective
    page = (redline.folder / "out" / "report.html").read_text()
    assert "jitter" in page
    assert "jitter-p50" in redline("report", "out", "--format", "csv").out
