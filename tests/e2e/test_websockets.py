"""WebSockets on the oracle: what both sides count, commands that load them, and what is refused before a load."""

import shlex
import sys
from pathlib import Path

import pytest

from bench.rig import AskedOf, drive, running
from redline.model import Body, Closed, Load, Open, Request, Scenario, Stream, Timestamp, WebSocket
from redline.model.limits import LimitReport
from redline.storage.runs import RunStore
from tests.e2e.conftest import Redline
from tests.e2e.recorded import traffic_of
from tests.e2e.test_documented_commands import LISTENED, SHORT_LIMIT, replaced
from tests.fakes import targets
from tests.fakes.certificates import Certificate

pytestmark = pytest.mark.e2e

SHORT = ["-d", "500ms", "--warmup", "50ms"]
SECOND = 1_000_000_000
ECHO = Request(path="/chat", body=Body(text="message {seq}"), websocket=WebSocket(message="text"))
TICKS = Stream(events="messages", until=25)
LISTENING = """\
servers: [{{name: own, url: "{url}"}}]
scenarios:
  - name: ticks
    websocket:
      path: /ticks
      receive: {{until: 20, good: "gap < 2s", timestamp: {{pointer: body, unit: ns}}}}
loads: {{users: {{closed: {{users: 4}}, for: 500ms}}}}
warmup: 50ms
trials: 1
"""
DUET = """\
servers: [{{name: a, url: "{a}"}}, {{name: b, url: "{b}"}}]
baseline: a
scenarios: [{{name: echo, websocket: {{path: /chat, subprotocols: chat, send: {{json: {{n: "{{seq}}"}}}}}}}}]
loads: {{users: {{closed: {{users: 4}}, for: 300ms}}}}
warmup: 100ms
trials: 1
"""

HYPERCORN = """\
servers:
  - name: hypercorn
    command: "{python} -m hypercorn tests.fakes.asgi:app --bind 127.0.0.1:{{port}} {flags}"
    env: {{PYTHONPATH: "{checkout}"}}
    http: 2
    ready: {{path: /}}
    {trusts}
scenarios:
  - {{name: echo, websocket: {{path: /chat, subprotocols: [chat, other], send: "message {{seq}}"}}}}
  - {{name: packed, websocket: {{path: /chat, compression: true, send: {{size: 20kB, fill: text}}}}}}
  - {{name: ticks, websocket: {{path: /ticks, receive: {{until: 20}}}}}}
loads: {{users: {{closed: {{users: 4}}, for: 2s}}}}
warmup: 50ms
trials: 1
"""


def of_websocket(url: str) -> str:
    return url.replace("http://", "ws://", 1)


@pytest.mark.parametrize("shape", [Closed(users=3), Closed(users=2, depth=4), Open(rate_per_s=2000.0, connections=8)])
def test_both_sides_count_the_same_messages(oracle: Path, shape: Closed | Open) -> None:
    load = Load(name="echo", shape=shape, duration_ns=20 * SECOND, count=1000)
    with running(oracle, "null", "--report") as server:
        traffic = drive(server, load, AskedOf(Scenario(name="Echo", request=ECHO)), warmup_ns=0)
    seen, counts = server.seen, traffic.counts
    assert seen is not None
    assert seen.messages == counts.due == counts.sent == counts.outcomes.ok == 1000
    assert seen.message_bytes == sum(len(f"message {number}") for number in range(1000))
    assert seen.targets == {"chat": seen.connections}
    assert seen.statuses == {"101": seen.connections}
    assert seen.closes == {"1000": seen.connections}


@pytest.mark.parametrize("load", [["-c", "4"], ["-R", "500", "-c", "8"]])
def test_a_url_of_a_websocket_is_loaded(redline: Redline, oracle: Path, load: list[str]) -> None:
    with running(oracle, "fixed", "--delay", "2ms") as server:
        done = redline("load", of_websocket(server.url), *load, *SHORT, "--json")
    assert done.code in {0, 1}, done.err
    assert not {"errors", "surplus-bytes", "reconnecting"} & {finding["kind"] for finding in done.json["findings"]}


@pytest.mark.long
@pytest.mark.parametrize("command", LISTENED)
def test_a_command_of_the_guides_finds_how_many_users_listen(redline: Redline, oracle: Path, command: str) -> None:
    short = command.replace("for 5s", "for 500ms").replace("body:ms", "body:ns")
    with running(oracle, "null", "--pushes", "100", "--push-every", "20ms") as server:
        there = of_websocket(server.url).removesuffix("/")
        args = [arg.replace("ws://127.0.0.1:8080", there) for arg in replaced(shlex.split(short), SHORT_LIMIT)]
        done = redline(*args)
    assert done.code in {0, 1, 3}, done.err
    assert "Traceback" not in done.err
    assert "100 users" in done.err, "the first probe"


@pytest.mark.parametrize("loaded", [("closed", 3), ("open", 50)])
def test_both_sides_count_the_same_pushes(oracle: Path, loaded: tuple[str, int]) -> None:
    """Each says a time that lies so long before the one at which it is sent, that a late client hides nothing."""
    kind, number = loaded
    shape = Closed(users=number) if kind == "closed" else Open(rate_per_s=float(number), connections=8)
    websocket = WebSocket(answer="listen")
    ticks = Request(path="/ticks", websocket=websocket, stream=TICKS, timestamp=Timestamp(unit="ns"))
    load = Load(name="ticks", shape=shape, duration_ns=20 * SECOND, count=24)
    pushes = ["--pushes", "25", "--push-every", "2ms", "--push-delay", "100ms", "--report"]
    with running(oracle, "null", *pushes) as server:
        traffic = drive(server, load, AskedOf(Scenario(name="Ticks", request=ticks)), warmup_ns=0)
    seen, streams, one_way = server.seen, traffic.streams, traffic.one_way
    assert seen is not None
    assert streams is not None
    assert one_way is not None
    assert traffic.counts.outcomes.ok == 24
    assert seen.answer.count == streams.counted == 24 * 25
    assert streams.push is not None
    assert streams.push.count == one_way.from_server.count == 24 * 25
    assert one_way.from_server.quantiles_ns((0.0,))[0] > 99_000_000
    assert not one_way.to_server.count
    assert seen.targets == {"ticks": 24}
    assert seen.closes == {"1000": 24}


def test_pushes_are_counted_and_decide(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    with running(oracle, "null", "--pushes", "20", "--push-every", "5ms", "--push-delay", "20ms") as server:
        (tmp_path / "ticks.yaml").write_text(LISTENING.format(url=server.url.rpartition("/")[0]))
        done = redline("run", "ticks.yaml", "-o", "out", "--json").measured()
        messages = done.json["cells"][0]["streams"]
        (recording,) = RunStore(tmp_path / "out").run().recordings
        ways = traffic_of(recording).one_way
        # Those of the four conversations that began in the warm-up belong to the time in which they came, too.
        assert 0 <= messages["events_of_begun"] - 20 * messages["begun"] <= 4 * 20
        assert ways is not None
        assert ways.from_server.quantiles_ns((0.5,))[0] > 19e6
        events = ["--events", "messages until 20 good gap<2s timestamp body:ns"]
        objective = ["--objective", "push p50 < 2s, goodput > 50%, errors < 5%"]
        done = redline("limit", of_websocket(server.url), *events, *objective, *SHORT_LIMIT, "--json")
    assert "Traceback" not in done.err
    assert done.code in {0, 1, 3}, done.err
    (cell,) = LimitReport.model_validate(done.json).cells
    assert "met" in [state.state for probe in cell.probes for state in probe.counts], done.out


def test_a_server_without_websockets_is_refused_before_the_load(redline: Redline) -> None:
    with targets.target(targets.streams) as url:
        done = redline("load", of_websocket(url), *SHORT)
    done.refused(1, "WebSocket /path0", "the WebSocket handshake failed: status 200 OK in place of 101")


def test_servers_are_compared_by_messages(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    with running(oracle, "null") as a, running(oracle, "null") as b:
        servers = {"a": a.url.rpartition("/")[0], "b": b.url.rpartition("/")[0]}
        (tmp_path / "suite.yaml").write_text(DUET.format(**servers))
        done = redline("run", "suite.yaml", "-o", "out")
    assert done.code in {0, 1}, done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("shape", [Closed(users=3), Open(rate_per_s=2000.0, connections=8)])
def test_both_sides_count_the_same_messages_over_http2(oracle: Path, shape: Closed | Open) -> None:
    load = Load(name="echo", shape=shape, duration_ns=20 * SECOND, count=1000)
    with running(oracle, "null", "--report") as server:
        traffic = drive(server, load, AskedOf(Scenario(name="Echo", request=ECHO), http="2"), warmup_ns=0)
    seen, counts = server.seen, traffic.counts
    assert seen is not None
    assert seen.messages == counts.due == counts.outcomes.ok == 1000
    assert seen.statuses == {"200": seen.connections}
    assert seen.closes == {"1000": seen.connections}


def test_a_comparison_of_http2_and_http1_is_one_of_messages(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    with running(oracle, "fixed", "--delay", "2ms") as one:
        url = one.url.rpartition("/")[0]
        duet = DUET.format(a=url, b=url).replace(f'name: b, url: "{url}"', f'name: b, url: "{url}", http: 2')
        (tmp_path / "suite.yaml").write_text(duet)
        done = redline("run", "suite.yaml", "-o", "out", "--json")
    assert done.code in {0, 1}, done.err
    assert not {"errors", "reconnecting"} & {
        finding["kind"] for cell in done.json["cells"] for finding in cell["findings"]
    }


@pytest.mark.parametrize("way", ["ws", pytest.param("wss", marks=pytest.mark.long)])
def test_a_server_of_another_maker_speaks_it_over_http2(redline: Redline, tmp_path: Path, way: str) -> None:
    """Hypercorn, by prior knowledge and by ALPN."""
    certificate, key = Certificate(tmp_path).files
    tls = f"--certfile {certificate} --keyfile {key}" if way == "wss" else ""
    text = HYPERCORN.format(
        python=sys.executable,
        checkout=Path(__file__).parents[2],
        flags=tls,
        trusts=f"tls: {{ca: {certificate}}}" if tls else "",
    )
    (tmp_path / "suite.yaml").write_text(text)
    redline("run", "suite.yaml", "-o", "out").measured()
    traffics = [traffic_of(recording) for recording in RunStore(tmp_path / "out").run().recordings]
    assert len(traffics) == 3
    for traffic in traffics:
        assert traffic.counts.outcomes.ok == traffic.counts.due > 0
    assert [bool(traffic.streams.counted) for traffic in traffics if traffic.streams] == [True]
    (tmp_path / "suite.yaml").write_text(text.replace("/chat", "/missing"))
    done = redline("run", "suite.yaml")
    assert done.code == 1
    assert "the WebSocket handshake failed: status 403 in place of 200" in done.err


def test_a_server_that_speaks_it_over_http1_alone_is_refused_over_http2(redline: Redline) -> None:
    with targets.target(targets.speaks_http2) as url:
        done = redline("load", of_websocket(url), "--http2", *SHORT)
    done.refused(1, "the server's SETTINGS do not enable it over HTTP/2")
