"""Trials whose server and load are on other hosts, by agents without a network between them."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.cli.session_view import SessionView
from redline.extras.hosts import pairs as host_pairs
from redline.extras.hosts.remote import Pair
from redline.extras.hosts.workplace import on_hosts
from redline.model import Grade, Histogram, Recording, Suite
from redline.model.limits import LimitReport
from redline.model.search import SearchTerms
from redline.running.manifests import Source
from redline.running.searching import SearchRequest, SearchSession
from redline.running.session import RunSession
from redline.storage.runs import RunStore
from redline.suite import load_catalogue, load_suite, to_search
from tests.e2e.lab import ON_HOSTS, SATURATE_ON_HOSTS, STEADY_ON_HOSTS, Lab
from tests.e2e.test_routes import FRONT
from tests.fakes.hosts import NearHost, end, near_pair
from tests.fakes.targets import unused_port

pytestmark = pytest.mark.e2e


@pytest.fixture
def lab(tmp_path: Path, oracle: Path) -> Lab:
    return Lab(tmp_path / "lab", oracle)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    found = near_pair(tmp_path / "hosts", 2)
    yield found
    end(found)


def suite_of(text: str, lab: Lab) -> Suite:
    file = lab.folder / "hosts.yaml"
    file.write_text(text)
    return load_suite(file, load_catalogue(lab.folder / "catalogue"))


def run(text: str, lab: Lab, *pairs: Pair) -> tuple[Recording, ...]:
    bench = on_hosts(pairs, lab.folder / "catalogue", lab.folder / ".cache")
    view = SessionView(Console(stderr=True, quiet=True))
    folder = lab.folder / "run"
    RunSession.create(suite_of(text, lab), Source("test"), folder, bench, view).execute()
    return RunStore(folder).recordings()


@dataclass(frozen=True)
class Measured:
    """A run of a server on a host and of two load hosts, whose servers and agents have ended."""

    folder: Path
    pair: Pair
    recordings: tuple[Recording, ...]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, oracle: Path) -> Measured:
    """One run of the whole suite, for all tests that only read it."""
    folder = tmp_path_factory.mktemp("measured")
    lab, pair = Lab(folder / "lab", oracle), near_pair(folder / "hosts", 2)
    try:
        return Measured(lab.folder / "run", pair, run(ON_HOSTS, lab, pair))
    finally:
        end(pair)


@contextmanager
def two_pairs(folder: Path) -> Iterator[tuple[Pair, ...]]:
    """Two pairs, with a shorter calibration than users have."""
    pairs = tuple(near_pair(folder / f"pair-{number}", number=number) for number in range(2))
    short = host_pairs.LOAD.model_copy(update={"duration_ns": 500_000_000})
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(host_pairs, "LOAD", short)
            patched.setattr(host_pairs, "WARM_UP_NS", 200_000_000)
            yield pairs
    finally:
        for pair in pairs:
            end(pair)


def test_two_hosts_load_a_third_with_one_load(measured: Measured) -> None:
    recordings = measured.recordings
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
        # Zero if a busy machine made the readings so late that the server had nothing left to answer.
        assert traffic.clocks.server_cpu_ns is not None
        assert traffic.clock_increase("cpu_ns", "server") != 0, "such readings are not used"
        assert recording.find("cpu_ns", "server") is not None
        assert {each.host for each in recording.series if each.subject == "engine"} == {"load-0", "load-1"}
    assert any(each.traffic and each.traffic.clocks and each.traffic.clocks.server_cpu_ns for each in recordings)
    assert sorted(recording.traffic.connections for recording in recordings if recording.traffic) == [8, 8, 9, 9]


def test_hosts_are_left_alone_while_they_measure(measured: Measured) -> None:
    load = measured.pair.loads[0]
    assert isinstance(load, NearHost)
    after_start = "".join(f"{name} " for name in load.calls).split("order ")[1:]
    # Once the schedule is set, the only call is the wait for its end.
    assert len(after_start) == 4
    assert all(calls.startswith("finish ") for calls in after_start), load.calls


def test_two_hosts_load_a_server_behind_a_url(lab: Lab, pair: Pair, oracle: Path) -> None:
    port = unused_port()
    with subprocess.Popen([oracle, "null", "--host", "127.0.0.1", "--port", str(port)]) as server:
        try:
            text = ON_HOSTS.replace("good.one", f"{{url: 'http://127.0.0.1:{port}'}}").replace("trials: 2", "trials: 1")
            recordings = run(text, lab, pair)
        finally:
            server.kill()
    assert len(recordings) == 2
    for recording in recordings:
        assert recording.failure is None, recording.failure
        assert recording.traffic is not None
        assert recording.traffic.counts.outcomes.ok == recording.traffic.counts.due
        assert all(host.share and host.share.counts.due for host in recording.hosts if host.role == "load")


@pytest.mark.long
def test_an_open_load_is_the_same_from_one_host_and_from_two(lab: Lab, pair: Pair, tmp_path: Path) -> None:
    text = STEADY_ON_HOSTS.replace("arrivals: poisson", "arrivals: uniform").replace("trials: 2", "trials: 1")
    both = {each.cell_id: each for each in run(text, lab, pair)}
    alone = near_pair(tmp_path / "alone")
    try:
        (lab.folder / "run").rename(lab.folder / "before")
        one = {each.cell_id: each for each in run(text.replace("hosts: {load: 2}", ""), lab, alone)}
    finally:
        end(alone)
    assert both.keys() == one.keys()
    assert [[each.traffic.counts.due for each in of.values() if each.traffic] for of in (both, one)] == [[500], [500]]


@pytest.mark.long
def test_proxies_run_on_a_host_of_their_own(lab: Lab, tmp_path: Path) -> None:
    (lab.folder / "catalogue/front").mkdir()
    (lab.folder / "catalogue/front/server.yaml").write_text(FRONT)
    servers = "routes: {relay: [h1, front.relay, h1]}\nservers: [{use: good.one, route: [direct, relay]}]"
    text = (
        SATURATE_ON_HOSTS.replace("servers: [good.one]", servers)
        .replace("{load: 2}", "{load: 1}")
        .replace("trials: 2", "trials: 1")
    )
    pair = near_pair(tmp_path / "hosts", proxy=True)
    try:
        recordings = run(text, lab, pair)
    finally:
        end(pair)
    assert len(recordings) == 2
    routed = [each for each in recordings if each.server and each.server.hops]
    assert len(routed) == 1
    for recording in recordings:
        assert recording.failure is None, recording.failure
        assert [host.role for host in recording.hosts] == ["server", "load", "proxy"]
        assert recording.increase("cpu_ns", "server")
    for recording in routed:
        assert recording.server is not None
        assert recording.server.hops[0].upstream_seen == "h1"
        alone = recording.sampled_increase("cpu_ns", "server"), recording.sampled_increase("cpu_ns", "hop-1")
        assert recording.increase("cpu_ns", "server") == sum(part or 0 for part in alone)
        assert min(part or 0 for part in alone) > 0
    server, proxy = pair.server, pair.proxy
    assert isinstance(server, NearHost)
    assert isinstance(proxy, NearHost)
    assert (server.calls.count("start"), server.calls.count("start_hops")) == (2, 0)
    assert (proxy.calls.count("start"), proxy.calls.count("start_hops")) == (0, 1)
    logs = {file.name for file in (lab.folder / "run/logs").rglob("*")}
    assert "server-hop-1.log" in logs


def test_a_load_host_that_is_lost_fails_the_trial_and_nothing_else(lab: Lab, pair: Pair) -> None:
    lost = pair.loads[1]
    assert isinstance(lost, NearHost)
    assert lost.report.name == "load-1"
    lost.is_lost = True
    recordings = run(ON_HOSTS.replace("trials: 2", "trials: 1"), lab, pair)
    assert len(recordings) == 2
    for recording in recordings:
        assert recording.traffic is None
        assert recording.failure is not None
        assert "load-1 is lost" in recording.failure.message
    server = pair.server
    assert isinstance(server, NearHost)
    assert not server.agent._running


def test_a_server_that_cannot_be_reached_is_a_failure_of_its_trial(lab: Lab, pair: Pair) -> None:
    text = ON_HOSTS.replace("good.one", "bad.exits").replace("trials: 2", "trials: 1")
    recordings = run(text, lab, pair)
    assert len(recordings) == 2
    for recording in recordings:
        assert recording.failure is not None
        assert recording.failure.stage == "launch"


@pytest.mark.long
def test_a_run_of_two_pairs_gives_each_round_of_a_load_another_pair(lab: Lab, tmp_path: Path) -> None:
    with two_pairs(tmp_path) as pairs:
        recordings = run(ON_HOSTS.replace("hosts: {load: 2}", ""), lab, *pairs)
    where = {(each.cell_id, each.round): each.host for each in recordings}
    assert len(where) == 4
    for cell_id in {cell_id for cell_id, _ in where}:
        assert {where[cell_id, 0], where[cell_id, 1]} == {"server-0", "server-0-of-1"}
    calibration = RunStore(lab.folder / "run").calibration()
    assert Counter(each.host for each in calibration) == {"server-0": 3, "server-0-of-1": 3}
    for each in calibration:
        assert each.failure is None
        assert each.traffic is not None
        assert len(each.traffic.targets) == 2
    report = json.loads((lab.folder / "run/results.json").read_text())
    assert {pair["host"] for pair in report["pairs"]} == {"server-0", "server-0-of-1"}
    # A busy machine may make starts invalid, and the report says of how many pairs.
    assert all(
        pair["ratio"]["low"] < pair["ratio"]["high"] if pair["ratio"] else pair["failed"] for pair in report["pairs"]
    )


@pytest.mark.long
def test_what_a_lost_host_ends_is_made_again_on_another_pair(lab: Lab, tmp_path: Path) -> None:
    with two_pairs(tmp_path) as pairs:
        lost = pairs[1].loads[0]
        assert isinstance(lost, NearHost)
        assert lost.report.name == "load-0-of-1"
        lost.is_lost = True
        recordings = run(SATURATE_ON_HOSTS.replace("{load: 2}", "{load: 1, retries: 1}"), lab, *pairs)
    assert [each.failure for each in recordings] == [None] * 2
    assert {each.host for each in recordings} == {"server-0"}
    (kept,) = [json.loads(file.read_text()) for file in (lab.folder / "run/lost").iterdir()]
    assert "load-0-of-1 is lost" in kept["failure"]["message"]
    report = build_report(RunStore(lab.folder / "run").run())
    failed = {pair.host: pair.failed for pair in report.pairs}
    assert failed.keys() == {"server-0", "server-0-of-1"}
    # A busy machine may make some of the other pair's starts invalid.
    assert failed["server-0"] < failed["server-0-of-1"] == 3
    assert report.run.trials_moved == 1


def test_a_clock_that_is_set_in_the_middle_makes_the_trial_invalid(lab: Lab, tmp_path: Path) -> None:
    pair = near_pair(tmp_path / "hosts")
    load = pair.loads[0]
    assert isinstance(load, NearHost)
    read = iter(range(100))
    load.agent.clock = lambda: (None, 60_000_000_000 * next(read))  # type: ignore[method-assign]
    try:
        (recording,) = run(
            SATURATE_ON_HOSTS.replace("trials: 2", "trials: 1").replace("{load: 2}", "{load: 1}"), lab, pair
        )
    finally:
        end(pair)
    assert [host.clock_step_ns for host in recording.hosts] == [0, 60_000_000_000]
    cells = build_report(RunStore(lab.folder / "run").run()).cells
    assert not any(cell.valid for cell in cells)
    found = {each.kind: each for each in cells[0].findings}
    assert found["clock-stepped"].grade is Grade.INVALID
    assert found["clock-stepped"].message.startswith("The clock of load-0 was set 1 min forwards")


SEARCH = """\
servers: [good.one, good.two]
scenarios: [SimpleGet]
loads:
  few: {open: {rate: 2000, arrivals: poisson, connections: 8}, for: 1s}
  many: {open: {rate: 2000, arrivals: poisson, connections: 64}, for: 1s}
warmup: 200ms
objective: p99 < 50ms
"""


def search(lab: Lab, *pairs: Pair) -> LimitReport:
    bench = on_hosts(pairs, lab.folder / "catalogue", lab.folder / ".cache")
    suite, _ = to_search(suite_of(SEARCH, lab), trials=1)
    terms = SearchTerms(sets={"": suite.objectives}, start_per_s=None, probes=4, precision=0.5, trials=1, beyond=False)
    view, folder = SessionView(Console(stderr=True, quiet=True)), lab.folder / "search"
    session = SearchSession.create(SearchRequest(suite, terms), Source("test"), folder, bench, view, is_kept=True)
    report, interrupted = session.execute()
    assert not interrupted
    return report


@pytest.mark.long
def test_a_search_goes_to_pairs_in_parallel(lab: Lab, tmp_path: Path) -> None:
    with two_pairs(tmp_path) as pairs:
        report = search(lab, *pairs)
    store = RunStore(lab.folder / "search")
    hosts: dict[str, set[str]] = {}
    for cell in store.manifest().plan.cells.values():
        probes = store.probes(cell)
        assert len(probes) > 3
        assert all(each.recording.failure is None for each in probes)
        hosts.setdefault(cell.load.name, set()).update(each.recording.host for each in probes)
    # Servers that are measured side by side are searched on a single pair.
    assert sorted(hosts.values(), key=str) == [{"server-0"}, {"server-0-of-1"}]
    assert all(cell.probes for cell in report.cells)
    assert {cell.host for cell in report.cells} == {"server-0", "server-0-of-1"}
    assert {host.name for host in report.hosts if host.role == "server"} == {"server-0", "server-0-of-1"}


@pytest.mark.long
def test_a_search_that_is_interrupted_on_pairs_is_resumed_there(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = iter([True])

    def interrupted(searches: list[Future[bool]], timeout: float | None = None) -> object:
        if next(waits, False):
            while not list((lab.folder / "search/probes").glob("*/*.json")):
                time.sleep(0.01)
            raise KeyboardInterrupt
        return wait(searches, timeout)

    with two_pairs(tmp_path) as pairs:
        with monkeypatch.context() as patched:
            patched.setattr("redline.running.searching.wait", interrupted)
            bench = on_hosts(pairs, lab.folder / "catalogue", lab.folder / ".cache")
            with pytest.raises(AssertionError):
                search(lab, *pairs)
        for pair in pairs:
            assert isinstance(pair.server, NearHost)
            assert not pair.server.agent._running
        made = sum(1 for _ in (lab.folder / "search/probes").glob("*/*.json"))
        view = SessionView(Console(stderr=True, quiet=True))
        session = SearchSession.resume(lab.folder / "search", lambda _manifest: bench, view)
        _, was_interrupted = session.execute()
    assert not was_interrupted
    assert made < sum(1 for _ in (lab.folder / "search/probes").glob("*/*.json"))


def test_what_hosts_saw_is_stored(measured: Measured) -> None:
    manifest = json.loads((measured.folder / "run.json").read_text())
    assert [(host["name"], host["role"]) for host in manifest["hosts"]] == [
        ("server-0", "server"),
        ("load-0", "load"),
        ("load-1", "load"),
    ]
    logs = {file.name for file in (measured.folder / "logs").rglob("*")}
    assert "server.log" in logs


@pytest.mark.long
def test_a_duet_reads_the_clocks_of_both_servers_on_their_host(lab: Lab, tmp_path: Path) -> None:
    servers = SATURATE_ON_HOSTS.replace("[good.one]", "[good.one, good.two]")
    text = servers.replace("hosts: {load: 2}", "baseline: good.one")
    pair = near_pair(tmp_path / "hosts")
    try:
        run(f"{text}design: duet\n".replace("trials: 2", "trials: 1"), lab, pair)
    finally:
        end(pair)
    duets = RunStore(lab.folder / "run").duets()
    assert len(duets) == 1
    for duet in duets:
        assert duet.failure is None
        assert duet.traffic is not None
        slices = [each for block in duet.traffic.blocks for each in block.slices]
        # The clocks are the host's: in some slice the servers' CPU time is more than nothing.
        assert any(each.cpu_ns[each.target] for each in slices), slices[:3]
        assert [(host.name, host.role) for host in duet.hosts] == [("server-0", "server"), ("load-0", "load")]
        assert [host.clock_step_ns for host in duet.hosts] == [0, 0]
