"""Loads from several hosts that a condition ends early: by agents without a network between them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from bench.rig import running
from redline.cli.session_view import SessionView
from redline.extras.hosts.remote import Pair
from redline.extras.hosts.workplace import on_hosts
from redline.model import Recording, Traffic
from redline.model.search import SearchTerms
from redline.running.manifests import Source
from redline.running.searching import SearchRequest, SearchSession
from redline.storage.runs import RunStore
from redline.suite import to_search
from tests.e2e.lab import Lab
from tests.e2e.test_hosts import run, suite_of
from tests.fakes.hosts import NearHost, end, near_pair

pytestmark = pytest.mark.e2e

SUITE = """\
servers: [{{name: mine, url: "http://{at}", http: {http}}}]
scenarios: [{{name: item, get: /item}}]
loads: {{some: {load}}}
abort_when: {rules}
warmup: 200ms
trials: 1
seed: 3
hosts: {{load: 2}}
"""
CLOSED, OPEN = "{closed: {users: 4}, for: 8s}", "{open: {rate: 400, connections: 4}, for: 8s}"


@pytest.fixture
def lab(tmp_path: Path, oracle: Path) -> Lab:
    return Lab(tmp_path / "lab", oracle)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = near_pair(tmp_path / "hosts", 2)
    yield found
    end(found)


def loaded(lab: Lab, pair: Pair, oracle: tuple[Path, str], rules: str, load: str, http: str = "1.1") -> Recording:
    program, mode = oracle
    with running(program, *mode.split()) as server:
        at = f"{server.endpoint.host}:{server.endpoint.port}"
        (recording,) = run(SUITE.format(at=at, rules=rules, load=load, http=http), lab, pair)
    return recording


def seconds_of(traffic: Traffic) -> float:
    return (traffic.measure_end_ns - traffic.measure_start_ns) / 1e9


@pytest.mark.parametrize(
    ("mode", "rule", "load", "http"),
    [
        ("null --reset-share 0.3 --seed 3", "errors > 5% for 1s", CLOSED, "1.1"),
        pytest.param("null --reset-share 0.3 --seed 3", "errors > 5% for 1s", OPEN, "2", marks=pytest.mark.long),
        pytest.param("fixed --delay 30ms", "p90 > 20ms for 1s", OPEN, "1.1", marks=pytest.mark.long),
    ],
)
def test_a_condition_ends_the_load_of_all_hosts(
    lab: Lab, pair: Pair, oracle: Path, mode: str, rule: str, load: str, http: str
) -> None:
    traffic = loaded(lab, pair, (oracle, mode), f'"{rule}"', load, http).traffic
    assert traffic is not None
    assert traffic.ended == "aborted"
    assert traffic.aborted_by.startswith(f"{rule}: ")
    assert 0.9 < seconds_of(traffic) < 5
    assert traffic.counts.due == traffic.counts.outcomes.total


def test_a_condition_that_does_not_hold_leaves_the_load_as_it_is(lab: Lab, pair: Pair, oracle: Path) -> None:
    load = "{open: {rate: 400, connections: 4}, for: 1s}"
    traffic = loaded(lab, pair, (oracle, "null"), '["errors > 5% for 500ms", "p99 > 2s for 500ms"]', load).traffic
    assert traffic is not None
    assert (traffic.ended, traffic.aborted_by) == ("complete", "")
    assert traffic.counts.outcomes.ok == traffic.counts.due
    host = pair.loads[0]
    assert isinstance(host, NearHost)
    assert "news_after" in host.calls


@pytest.mark.long
def test_a_condition_ends_a_probe_on_hosts(lab: Lab, pair: Pair, oracle: Path) -> None:
    load = "{open: {rate: 200, connections: 4}, for: 4s}"
    bench = on_hosts((pair,), lab.folder / "catalogue", lab.folder / ".cache")
    view = SessionView(Console(stderr=True, quiet=True))
    with running(oracle, "null", "--reset-share", "0.2", "--seed", "3") as server:
        at = f"{server.endpoint.host}:{server.endpoint.port}"
        written = SUITE.format(at=at, rules="errors > 5% for 1s", load=load, http="1.1")
        suite, _ = to_search(suite_of(f"{written}objective: p99 < 3s, errors < 90%\n", lab), trials=1)
        terms = SearchTerms(
            sets={"": suite.objectives}, start_per_s=200, probes=2, precision=0.5, trials=1, beyond=False
        )
        session = SearchSession.create(
            SearchRequest(suite, terms), Source("test"), lab.folder / "search", bench, view, is_kept=True
        )
        report, _ = session.execute()
    (cell,) = report.cells
    assert cell.probes
    for probe in cell.probes:
        assert probe.aborted_by.startswith("errors > 5% for 1s: ")
        assert probe.seconds < 4
    assert [limit.passed_per_s for limit in cell.limits] == [None]


@pytest.mark.long
def test_a_condition_ends_a_duet_on_hosts(lab: Lab, tmp_path: Path, oracle: Path) -> None:
    pair = near_pair(tmp_path / "one")
    with running(oracle, "null") as good, running(oracle, "null", "--reset-share", "0.3") as failing:
        servers = ", ".join(
            f'{{name: {name}, url: "http://{server.endpoint.host}:{server.endpoint.port}"}}'
            for name, server in (("good", good), ("failing", failing))
        )
        written = SUITE.format(at="", rules="errors > 5% for 1s", load=CLOSED, http="1.1").splitlines()[1:-1]
        try:
            run("\n".join([f"servers: [{servers}]", *written, "baseline: good", "design: duet", ""]), lab, pair)
        finally:
            end(pair)
    (duet,) = RunStore(lab.folder / "run").duets()
    assert duet.failure is None
    assert duet.aborted_by.startswith("errors > 5% for 1s: ")
    assert " requests to failing failed in " in duet.aborted_by
