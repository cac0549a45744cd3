"""Journeys and secrets in loads from several hosts, counted by the oracle: by agents without a network between them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.rig import SeenByOracle, running
from redline.extras.hosts.agent import Brought
from redline.extras.hosts.remote import Pair
from redline.model import Cell, Recording, Suite, Traffic
from redline.model.journey_traffic import JourneyTraffic
from redline.ports import Endpoint
from redline.suite.planning import make_plan
from tests.e2e.lab import Lab
from tests.e2e.test_hosts import run, suite_of
from tests.fakes.hosts import NearHost, end, near_pair

pytestmark = pytest.mark.e2e

ROWS = 60
SUITE = """\
servers: [{{name: mine, url: "http://{at}", http: {http}}}]
scenarios:
  - name: walk
    journey: {journey}
loads: {{some: {load}}}
warmup: 0s
trials: 1
seed: 3
hosts: {{load: 2}}
"""
CLOSED = "{closed: {users: 5}, for: 10s, count: 40}"
LOGIN = """{rows: {file: users.csv, use: user},
      once: [{name: login, post: /login, body: "{row:name}", take: {token: {json: /token}}, expect: {
        under_load: status}}],
      steps: [{get: /a, headers: {X-Token: "{take:token}"}, expect: {body: a}}]}"""
VISITS = """{{rows: {{file: users.csv, use: {use}}},
      steps: [{{get: "/{{row:name}}", expect: {{under_load: status}}}}, {{get: /b, expect: {{body: b}}}}]}}"""


@pytest.fixture
def lab(tmp_path: Path, oracle: Path) -> Lab:
    made = Lab(tmp_path / "lab", oracle)
    (made.folder / "users.csv").write_text("name\n" + "".join(f"user{number}\n" for number in range(ROWS)))
    return made


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = near_pair(tmp_path / "hosts", 2)
    yield found
    end(found)


def loaded(lab: Lab, pair: Pair, oracle: Path, text: str, **keys: str) -> tuple[Recording, SeenByOracle]:
    with running(oracle, "null", "--report", *keys.pop("arguments", "").split()) as server:
        at = f"{server.endpoint.host}:{server.endpoint.port}"
        (recording,) = run(SUITE.format(at=at, journey=text, **{"http": "1.1", "load": CLOSED} | keys), lab, pair)
    assert recording.failure is None, recording.failure
    assert server.seen is not None
    return recording, server.seen


def both(recording: Recording) -> tuple[Traffic, JourneyTraffic]:
    assert recording.traffic is not None
    assert recording.traffic.journeys is not None
    shares = [host.share for host in recording.hosts if host.share]
    assert len(shares) == 2
    assert all(share.counts.due for share in shares)
    return recording.traffic, recording.traffic.journeys


@pytest.mark.parametrize("http", ["1.1", "2"])
def test_every_user_of_all_hosts_has_a_row_of_its_own(lab: Lab, pair: Pair, oracle: Path, http: str) -> None:
    recording, seen = loaded(lab, pair, oracle, LOGIN, arguments="--sessions", http=http)
    traffic, journeys = both(recording)
    assert (journeys.due, journeys.completed) == (40, 40)
    assert {*seen.users} == {f"user{number}" for number in range(5)}
    # The check before the load logs in and takes the step once.
    assert seen.targets == {"login": 5 + 1, "a": traffic.counts.outcomes.ok + 1}


@pytest.mark.parametrize("load", ["{closed: {users: 5}, for: 10s}", "{open: {rate: 500, connections: 5}, for: 10s}"])
def test_hosts_take_every_unique_row_once(lab: Lab, pair: Pair, oracle: Path, load: str) -> None:
    recording, seen = loaded(lab, pair, oracle, VISITS.format(use="unique"), load=load)
    traffic, journeys = both(recording)
    assert journeys.rows_used_up
    assert (journeys.due, journeys.completed) == (ROWS - 1, ROWS - 1)
    assert {name: seen.targets[name] for name in seen.targets if name != "b"} == {
        f"user{number}": 1 for number in range(ROWS)
    }
    assert traffic.measure_end_ns - traffic.measure_start_ns < 5_000_000_000


def test_hosts_take_rows_in_turn(lab: Lab, pair: Pair, oracle: Path) -> None:
    recording, seen = loaded(lab, pair, oracle, VISITS.format(use="turn"))
    _, journeys = both(recording)
    assert journeys.completed == 40
    # The first row is that of the check too.
    assert seen.targets.pop("user0") == 2
    assert all(count == 1 for name, count in seen.targets.items() if name != "b")


def test_a_host_checks_with_rows_and_secrets_that_only_the_lab_has(lab: Lab, pair: Pair, oracle: Path) -> None:
    text = LOGIN.replace("X-Token:", "X-Key: 'k ${ONLY_OF_THE_LAB}', X-Token:")
    with running(oracle, "null", "--sessions") as server:
        written = SUITE.format(at=f"127.0.0.1:{server.endpoint.port}", journey=text, http="1.1", load=CLOSED)
        cell = cell_of(suite_of(written, lab))
        (lab.folder / "users.csv").unlink()
        host = pair.loads[0]
        assert isinstance(host, NearHost)
        brought = Brought({"ONLY_OF_THE_LAB": "{x}"}, {"columns": ["name"], "values": [["ann"]], "use": "user"})
        assert host.submit("verify", brought, cell, Endpoint("127.0.0.1", server.endpoint.port)).result(20) is None


def cell_of(suite: Suite) -> Cell:
    return next(iter(make_plan(suite).cells.values()))
