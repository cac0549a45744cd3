"""Doubts about trials on several hosts: clocks that disagree, and load hosts that saw different servers."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from redline.analysis import build_report
from redline.document.format import other_time
from redline.findings import hosts as findings_of_hosts
from redline.findings import judge
from redline.findings.hosts import clock_stepped, observe_clocks, pairs_differ
from redline.findings.machine import server_share
from redline.model import (
    ClockReading,
    Estimate,
    Finding,
    FindingKind,
    Grade,
    Histogram,
    HostFacts,
    LoadShare,
    PairSpeed,
    Recording,
    Role,
)
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording, simulated_run
from tests.unit.report.test_handshake_and_one_way_times import CLOCK
from tests.unit.report.test_routes_reported import routed

CELL = simulated_cell(scenario=CLOCK)
ONE_WAY = replace(GOOD, clock_ahead_ns=0.0)
BEFORE = frozenset(finding.kind for finding in judge(CELL, simulated_recording(CELL, ONE_WAY)))


def clock(bound_ns: int) -> ClockReading:
    return ClockReading(reference="10.0.0.1", stratum=2, offset_ns=-bound_ns, root_delay_ns=0, root_dispersion_ns=0)


def host(name: str, role: Role, bound_ns: int | None, share: LoadShare | None = None) -> HostFacts:
    reading = None if bound_ns is None else clock(bound_ns)
    return HostFacts(name=name, role=role, address="10.0.0.7", clock_before=reading, clock_after=reading, share=share)


def share(response_ms: float, requests: int = 1000, late_ms: float = 0.1) -> LoadShare:
    traffic = simulated_recording(CELL).traffic
    assert traffic is not None
    return LoadShare(
        workers=1,
        connections=8,
        epoch_unix_ns=0,
        counts=traffic.counts,
        response=Histogram.of([response_ms * 1e6] * requests),
        service=Histogram(),
        lateness=Histogram.of([late_ms * 1e6] * requests),
        engine_cpu_ns=1,
    )


def recorded(*hosts: HostFacts) -> Recording:
    return simulated_recording(CELL, ONE_WAY).model_copy(update={"hosts": hosts})


def raised(*hosts: HostFacts) -> dict[FindingKind, Finding]:
    return {finding.kind: finding for finding in judge(CELL, recorded(*hosts)) if finding.kind not in BEFORE}


def test_clocks_that_agree_are_left_alone() -> None:
    assert raised(host("server", "server", 5_000), host("load", "load", 5_000)) == {}
    assert raised() == {}


@pytest.mark.parametrize(
    ("bounds", "grade"),
    [
        ((30_000, 20_000), Grade.NOTE),
        ((100_000, 200_000), Grade.WARN),
        ((None, 10), Grade.WARN),
        ((10, None), Grade.WARN),
    ],
)
def test_clocks_that_disagree_are_reported(bounds: tuple[int | None, int | None], grade: Grade) -> None:
    found = raised(host("server", "server", bounds[0]), host("load", "load", bounds[1]))
    assert found.keys() == {"clock-bound"}
    assert found["clock-bound"].grade is grade


def test_without_timestamps_clocks_do_not_matter() -> None:
    recording = simulated_recording(CELL).model_copy(update={"hosts": (host("server", "server", None),)})
    assert "clock-bound" not in {finding.kind for finding in judge(CELL, recording)}


def test_a_server_whose_clock_is_ahead_by_more_than_the_way_takes_is_reported() -> None:
    ahead = simulated_recording(CELL, replace(GOOD, clock_ahead_ns=5e6))
    hosts = (host("server", "server", 10), host("load", "load", 10))
    found = [each for each in judge(CELL, ahead.model_copy(update={"hosts": hosts})) if each.kind == "clock-bound"]
    assert [each.grade for each in found] == [Grade.WARN]
    assert "not above 0" in found[0].message


@pytest.mark.parametrize(
    ("shares", "grade"),
    [
        ((1.0, 1.05), None),
        ((1.0, 1.2), Grade.NOTE),
        ((1.0, 1.4), Grade.WARN),
    ],
)
def test_load_hosts_that_saw_another_server_are_reported(shares: tuple[float, float], grade: Grade | None) -> None:
    loads = [host(f"load-{n}", "load", 5_000, share(ms)) for n, ms in enumerate(shares)]
    found = raised(host("server", "server", 5_000), *loads)
    assert {kind: each.grade for kind, each in found.items()} == ({"load-hosts-differ": grade} if grade else {})
    if grade:
        message = found["load-hosts-differ"].message
        assert message.startswith("load-1 saw")
        assert "ways to the server may differ" in message


def test_a_host_whose_engine_was_late_is_named() -> None:
    loads = [host("a", "load", 5_000, share(1.0)), host("b", "load", 5_000, share(2.0, late_ms=5.0))]
    assert "its engine was later" in raised(host("s", "server", 5_000), *loads)["load-hosts-differ"].message


def test_few_requests_say_nothing_of_a_host() -> None:
    loads = [host("a", "load", 5_000, share(1.0)), host("b", "load", 5_000, share(9.0, requests=99))]
    assert raised(host("s", "server", 5_000), *loads) == {}


@pytest.mark.parametrize(("bound_ns", "shown"), [(10_000, True), (200_000, False), (None, False)])
def test_one_way_times_are_shown_with_their_error_or_not_at_all(bound_ns: int | None, shown: bool) -> None:
    run = simulated_run({"rust.hyper": ONE_WAY}, trials=2, scenarios=(CLOCK,), loads=(SATURATE,), ceiling=None)
    hosts = (host("server", "server", bound_ns), host("load", "load", bound_ns))
    placed = tuple(each.model_copy(update={"hosts": hosts}) for each in run.recordings)
    (cell,) = build_report(run.model_copy(update={"recordings": placed})).cells
    names = [time.name for time in cell.other_times]
    assert names == (["to server", "from server"] if shown else [])
    if shown:
        assert {time.clock_bound_ns for time in cell.other_times} == {20_000}
        assert "the two up to 20.0 µs apart" in other_time(cell.other_times[0])


@pytest.mark.parametrize(
    ("step_ns", "grade"), [(0, None), (100_000, None), (3_000_000, Grade.WARN), (-3_000_000_000, Grade.INVALID)]
)
def test_a_clock_that_is_set_during_the_trial_is_reported(step_ns: int, grade: Grade | None) -> None:
    stepped = host("load-1", "load", 100).model_copy(update={"clock_step_ns": step_ns})
    found = raised(host("server", "server", 100), stepped)
    assert (found.get("clock-stepped") and found["clock-stepped"].grade) == grade
    if grade:
        way = "forwards" if step_ns > 0 else "back"
        assert (
            f"The clock of load-1 was set 3.00 {'ms' if step_ns > 0 else 's'} {way}" in found["clock-stepped"].message
        )
        assert "clock-bound" in found, "one-way times are off by the step"


def test_a_proxy_on_its_own_host_is_no_work_of_the_servers_cores() -> None:
    """Both together used more than the cores of either host."""
    recording = routed(simulated_recording(simulated_cell(), GOOD))
    assert recording.server is not None
    recording = recording.model_copy(update={"server": recording.server.model_copy(update={"cpus": (0,)})})
    apart = (host("s", "server", 10), host("l", "load", 10), host("p", "proxy", 10))
    together, alone = (
        server_share(Trial(recording.model_copy(update={"hosts": hosts}))) for hosts in (apart[:2], apart)
    )
    assert together is not None
    assert alone is not None
    assert 0 < alone < together


@pytest.mark.parametrize(
    ("bound_ns", "ways_ms", "share", "words"),
    [
        (20_000, (2.0, 1.0), 0.02, "may be 20.0"),
        (0, (1.0, 2.0), 0.0, "may be 0"),
        (None, (1.0, 1.0), math.inf, "Nobody says how far the clock of b is off"),
        (10, (0.0, 1.0), math.inf, "not above 0"),
        (0, (0.0, 1.0), 0.0, "not above 0"),
    ],
)
def test_clocks_are_apart_by_a_share_of_the_shorter_way(
    monkeypatch: pytest.MonkeyPatch, bound_ns: int | None, ways_ms: tuple[float, float], share: float, words: str
) -> None:
    monkeypatch.setattr(findings_of_hosts, "one_way_bound_ns", lambda _hosts: bound_ns)
    hosts = (SimpleNamespace(name="a", clock_bound_ns=3), SimpleNamespace(name="b", clock_bound_ns=None))
    ways = SimpleNamespace(shortest_ns=min(ways_ms) * 1e6)
    found = observe_clocks(ways, hosts)  # type: ignore[arg-type]
    assert found is not None
    assert found.value == pytest.approx(share)
    assert words in found.message
    assert observe_clocks(ways, ()) is None  # type: ignore[arg-type]
    ways.shortest_ns = None
    assert observe_clocks(ways, hosts) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps_ns", "said"),
    [
        ((None, 0), None),
        ((5_000_000, -20_000_000), ("b was set 20.0 ms back", 0.002)),
        ((30_000_000, None), ("a was set 30.0 ms forwards", 0.003)),
    ],
)
def test_the_largest_step_of_a_clock_is_a_share_of_the_measurement(
    steps_ns: tuple[int | None, ...], said: tuple[str, float] | None
) -> None:
    hosts = [SimpleNamespace(name=name, clock_step_ns=step) for name, step in zip("ab", steps_ns, strict=True)]
    trial, traffic = SimpleNamespace(recording=SimpleNamespace(hosts=hosts)), SimpleNamespace(seconds=10.0)
    judged: Any = clock_stepped.function
    found = judged(trial, traffic)
    assert (found is None) is (said is None)
    if said is not None:
        assert said[0] in found.message
        assert "measured for 10.0 s" in found.message
        assert found.value == pytest.approx(said[1])


def pair(name: str, value: float, low: float | None, high: float | None) -> PairSpeed:
    ratio = Estimate(value=value, low=low, high=high, unit="ratio", n=3, method="")
    return PairSpeed(host=name, cpu_per_request_ns=1.0, ratio=ratio)


def test_the_pair_that_surely_differs_most_is_said() -> None:
    even, quick, slow = pair("a", 1.3, 1.0, 1.6), pair("b", 0.88, 0.8, 0.99), pair("c", 1.15, 1.01, 1.3)
    (found,) = pairs_differ(CELL, [even, quick, slow, pair("d", 1.9, None, None)])
    assert "15% more CPU time for a request on c" in found.message
    assert found.grade is Grade.WARN
    (found,) = pairs_differ(CELL, [even, quick])
    assert "12% less CPU time for a request on b" in found.message
    (found,) = pairs_differ(CELL, [pair("b", 0.95, 0.9, 0.99)])
    assert found.grade is Grade.NOTE
    assert pairs_differ(CELL, [even, pair("e", 1.01, 1.005, 1.02)]) == ()


@pytest.mark.parametrize(("requests", "said"), [(99, False), (100, True)])
def test_the_median_of_a_hundred_requests_says_something(requests: int, *, said: bool) -> None:
    loads = [host("a", "load", 5_000, share(1.0)), host("b", "load", 5_000, share(2.0, requests))]
    assert ("load-hosts-differ" in raised(host("s", "server", 5_000), *loads)) is said


@pytest.mark.parametrize(
    ("late_ms", "later"), [((0.5, 0.9), False), ((0.3, 0.9), False), ((1.0, 1.9), False), ((1.0, 2.2), True)]
)
def test_an_engine_is_later_by_twice_and_more_than_a_millisecond(late_ms: tuple[float, float], *, later: bool) -> None:
    fast, slow = share(1.0, late_ms=late_ms[0]), share(2.0, late_ms=late_ms[1])
    loads = [host("a", "load", 5_000, fast), host("b", "load", 5_000, slow)]
    message = raised(host("s", "server", 5_000), *loads)["load-hosts-differ"].message
    assert ("its engine was later" in message) is later
