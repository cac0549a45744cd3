"""Mixes, replays and streams in loads from several hosts, counted by the oracle: by agents without a network."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.rig import SeenByOracle, running
from redline.analysis import build_report
from redline.extras.hosts.remote import Pair
from redline.model import Recording
from redline.storage.runs import RunStore
from tests.e2e.lab import Lab
from tests.e2e.test_hosts import run
from tests.fakes.hosts import end, near_pair

pytestmark = pytest.mark.e2e

SUITE = """\
servers: [{{name: mine, url: "http://{at}", http: {http}}}]
scenarios:
  - name: sent
    {scenario}
loads: {{some: {load}}}
warmup: 0s
trials: 1
seed: 3
hosts: {{load: 2}}
objective: ["a: errors < 1%", "b: errors < 1%"]
"""
MIX = (
    "requests: [{name: a, get: /a, weight: 3}, {name: b, post: /b, body: 'hello {seq}', expect: {under_load: status}}]"
)
EVENTS = "requests: [{name: a, get: /a, stream: sse}, {name: b, post: /b, body: hello, stream: sse}]"
CLOSED = "{closed: {users: 4}, for: 10s, count: 40}"
OPEN = "{open: {rate: 100, connections: 4}, for: 500ms}"
REPLAY = "{open: {arrivals: {replay: times.txt}, connections: 4}, for: 400ms}"


@pytest.fixture
def lab(tmp_path: Path, oracle: Path) -> Lab:
    made = Lab(tmp_path / "lab", oracle)
    (made.folder / "times.txt").write_text("".join(f"{at / 100} {1 + at % 2}\n" for at in range(30)))
    return made


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = near_pair(tmp_path / "hosts", 2)
    yield found
    end(found)


def loaded(lab: Lab, pair: Pair, oracle: tuple[Path, str], **keys: str) -> tuple[Recording, SeenByOracle]:
    program, mode = oracle
    with running(program, *mode.split(), "--report") as server:
        at = f"{server.endpoint.host}:{server.endpoint.port}"
        (recording,) = run(SUITE.format(at=at, **keys), lab, pair)
    assert recording.failure is None, recording.failure
    assert server.seen is not None
    return recording, server.seen


@pytest.mark.parametrize(("load", "http"), [(CLOSED, "1.1"), (OPEN, "2"), (REPLAY, "1.1")])
def test_requests_of_all_hosts_are_counted_one_by_one(lab: Lab, pair: Pair, oracle: Path, load: str, http: str) -> None:
    recording, seen = loaded(lab, pair, (oracle, "null"), scenario=MIX, load=load, http=http)
    traffic = recording.traffic
    assert traffic is not None
    assert [host.share.counts.due > 0 for host in recording.hosts if host.share] == [True, True]
    # The check before the load sends each request once.
    counted = {"/a": traffic.requests[0].outcomes.ok + 1, "/b": traffic.requests[1].outcomes.ok + 1}
    assert {f"/{name}": count for name, count in seen.targets.items()} == counted
    assert traffic.counts.outcomes.ok == traffic.counts.due == sum(counted.values()) - 2
    assert traffic.first_byte is not None
    assert traffic.first_byte.count == traffic.counts.due
    if load == REPLAY:
        assert counted == {"/a": 16, "/b": 16}
    (cell,) = build_report(RunStore(lab.folder / "run").run()).cells
    # On a busy machine the load may be invalid; and answers after the measurement miss its rate, which meets nothing.
    assert [judged.objective.request for judged in cell.objectives] == ["a", "b"]
    assert {judged.actual for judged in cell.objectives if judged.state != "not known"} <= {0}
    missed = {judged.reason for judged in cell.objectives if judged.state == "missed"}
    assert missed <= {"the load is invalid by rate-missed"}


def test_events_to_all_hosts_are_counted(lab: Lab, pair: Pair, oracle: Path) -> None:
    mode = "null --events 5 --event-gap 2ms"
    recording, seen = loaded(lab, pair, (oracle, mode), scenario=EVENTS, load=OPEN, http="1.1")
    traffic = recording.traffic
    assert traffic is not None
    assert traffic.streams is not None
    assert traffic.counts.outcomes.ok == traffic.counts.due == seen.requests - 2
    assert traffic.streams.events_of_begun == 5 * traffic.counts.due
    assert sum(part.streams.events_of_begun for part in traffic.requests if part.streams) == 5 * traffic.counts.due
