"""Trials whose server and load are on other hosts, by agents without a network between them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from redline.cli.session_view import SessionView
from redline.model import Histogram, Recording, Suite
from redline.plugins.hosts.executor import Pair
from redline.running.assembly import on_hosts
from redline.running.session import RunSession, Source
from redline.storage.runs import RunStore
from redline.suite import Overrides, load_catalogue, read_suite
from tests.e2e.lab import Lab
from tests.fakes.hosts import NearHost, end, near_pair

pytestmark = pytest.mark.e2e

SUITE = """\
servers: [good.one]
scenarios: [SimpleGet]
loads:
  saturate: {closed: {users: 8}, for: 500ms}
  steady: {open: {rate: 1000, arrivals: poisson, connections: 9}, for: 500ms}
warmup: 100ms
trials: 2
hosts: {load: 2}
"""


@pytest.fixture
def lab(tmp_path: Path, oracle: Path) -> Lab:
    return Lab(tmp_path / "lab", oracle)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = near_pair(tmp_path / "hosts", 2)
    yield found
    end(found)


def suite_of(text: str, lab: Lab) -> Suite:
    return read_suite(text, "hosts.yaml", load_catalogue(lab.folder / "catalogue"), Overrides())


def run(text: str, lab: Lab, *pairs: Pair) -> tuple[Recording, ...]:
    bench = on_hosts(pairs, lab.folder / "catalogue", lab.folder / ".cache")
    view = SessionView(Console(stderr=True, quiet=True))
    folder = lab.folder / "run"
    RunSession.create(suite_of(text, lab), Source("test"), folder, bench, view).execute()
    return RunStore(folder).recordings()


def test_two_hosts_load_a_third_with_one_load(lab: Lab, pair: Pair) -> None:
    recordings = run(SUITE, lab, pair)
    assert len(recordings) == 4
    for recording in recordings:
        assert recording.failure is None, recording.failure
        assert recording.traffic is not None
        traffic, hosts = recording.traffic, recording.hosts
        assert [(host.role, host.name) for host in hosts] == [
            ("server", "server-0"),
            ("load", "load-0"),
            ("load", "load-1"),
        ]
        shares = [host.share for host in hosts if host.share is not None]
        assert len(shares) == 2
        assert all(share.counts.due > 0 for share in shares)
        assert traffic.counts.due == sum(share.counts.due for share in shares)
        assert traffic.response == Histogram.merged(share.response for share in shares)
        assert traffic.counts.outcomes.ok == traffic.counts.due
        assert abs(shares[0].epoch_unix_ns - shares[1].epoch_unix_ns) < 5_000_000
        assert traffic.clocks is not None
        assert traffic.clocks.server_cpu_ns
        assert recording.find("cpu_ns", "server") is not None
        assert {each.host for each in recording.series if each.subject == "engine"} == {"load-0", "load-1"}
    assert sorted(recording.traffic.connections for recording in recordings if recording.traffic) == [8, 8, 9, 9]


def test_hosts_are_left_alone_while_they_measure(lab: Lab, pair: Pair) -> None:
    run(SUITE.replace("trials: 2", "trials: 1"), lab, pair)
    load = pair.loads[0]
    assert isinstance(load, NearHost)
    after_start = "".join(f"{name} " for name in load.calls).split("order ")[1:]
    # Once the schedule is set nothing is asked but to wait for its end.
    assert all(calls.startswith("finish ") for calls in after_start), load.calls


def test_an_open_load_is_the_same_from_one_host_and_from_two(lab: Lab, pair: Pair, tmp_path: Path) -> None:
    text = SUITE.replace("arrivals: poisson", "arrivals: uniform").replace("trials: 2", "trials: 1")
    both = {each.cell_id: each for each in run(text, lab, pair)}
    alone = near_pair(tmp_path / "alone")
    try:
        (lab.folder / "run").rename(lab.folder / "before")
        one = {each.cell_id: each for each in run(text.replace("hosts: {load: 2}", ""), lab, alone)}
    finally:
        end(alone)
    due = [{id_: each.traffic.counts.due for id_, each in of.items() if each.traffic} for of in (both, one)]
    assert both.keys() == one.keys()
    steady = [min(of.values()) for of in due]
    assert steady == [500, 500]


def test_a_load_host_that_is_lost_fails_the_trial_and_nothing_else(lab: Lab, pair: Pair) -> None:
    lost = pair.loads[1]
    assert isinstance(lost, NearHost)
    assert lost.report.name == "load-1"
    lost.is_lost = True
    for recording in run(SUITE, lab, pair):
        assert recording.traffic is None
        assert recording.failure is not None
        assert "load-1 is lost" in recording.failure.message
    server = pair.server
    assert isinstance(server, NearHost)
    assert not server.agent._running


def test_a_server_that_cannot_be_reached_is_a_failure_of_its_trial(lab: Lab, pair: Pair) -> None:
    text = SUITE.replace("good.one", "bad.exits")
    for recording in run(text, lab, pair):
        assert recording.failure is not None
        assert recording.failure.stage == "launch"


def test_a_run_of_two_pairs_gives_each_round_of_a_load_another_pair(lab: Lab, tmp_path: Path) -> None:
    pairs = [near_pair(tmp_path / f"pair-{number}") for number in range(2)]
    for number, pair in enumerate(pairs):
        for host in pair.hosts:
            assert isinstance(host, NearHost)
            host.name = f"{host.name}-of-{number}"
    try:
        recordings = run(SUITE.replace("hosts: {load: 2}", ""), lab, *pairs)
    finally:
        for pair in pairs:
            end(pair)
    where = {(each.cell_id, each.round): each.hosts[0].name for each in recordings}
    assert len(where) == 4
    for cell_id in {cell_id for cell_id, _ in where}:
        assert {where[cell_id, 0], where[cell_id, 1]} == {"server-0-of-0", "server-0-of-1"}


def test_what_hosts_saw_is_stored(lab: Lab, pair: Pair) -> None:
    run(SUITE.replace("trials: 2", "trials: 1"), lab, pair)
    manifest = json.loads((lab.folder / "run/run.json").read_text())
    assert [(host["name"], host["role"]) for host in manifest["hosts"]] == [
        ("server-0", "server"),
        ("load-0", "load"),
        ("load-1", "load"),
    ]
    logs = {file.name for file in (lab.folder / "run/logs").rglob("*")}
    assert "server.log" in logs


def test_a_duet_reads_the_clocks_of_both_servers_on_their_host(lab: Lab, tmp_path: Path) -> None:
    text = SUITE.replace("[good.one]", "[good.one, good.two]").replace("hosts: {load: 2}", "baseline: good.one")
    pair = near_pair(tmp_path / "hosts")
    try:
        run(f"{text}design: duet\n".replace("trials: 2", "trials: 1"), lab, pair)
    finally:
        end(pair)
    duets = RunStore(lab.folder / "run").duets()
    assert len(duets) == 2
    for duet in duets:
        assert duet.failure is None
        assert duet.traffic is not None
        slices = [each for block in duet.traffic.blocks for each in block.slices]
        # A clock is that of the host: the servers' CPU time of some slice is more than nothing.
        assert any(each.cpu_ns[each.target] for each in slices), slices[:3]
