"""`--for` holds the whole search, by a clock that is a fake: no load begins that would not end in its time."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from redline.limits.search_state import SearchState
from redline.model import AttachedServer, Variant
from redline.ports import Drive
from redline.report.answer import limit_sentence
from redline.report.limit import facts_of
from redline.running.views import search_report
from redline.search.search import LOOKS_AGAIN
from redline.search.times import SHORTEST_NS, least_ns, probe_times
from tests.fakes.searched import CELL, SECOND, Bench, bench_in

AROUND_S = 0.3


@dataclass
class Clock:
    """A clock that only what is done moves on."""

    now_s: float = 0.0

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


def timed(
    folder: Path,
    lasts_s: float,
    clock: Clock,
    *,
    starts: bool,
    servers: int = 1,
    start_s: float = 0.5,
    around_s: Callable[[], float] = lambda: AROUND_S,
) -> Bench:
    """A search whose loads and starts take their time by the clock, planned for a time."""
    times = probe_times(round(lasts_s * SECOND), servers, 12, 2 if starts else 0)
    variant = CELL.variant if starts else Variant(entry=AttachedServer(host="127.0.0.1", port=1))
    load = CELL.load.lasting(times.probe_ns)
    changes = {"warmup_ns": times.warmup_ns, "warmup_detect": times.detects, "load": load, "variant": variant}
    bench = bench_in(folder, beyond=starts, **changes)
    drive, running = bench.driver.drive, bench.launcher.running

    def driven(asked: Drive) -> Any:
        clock.wait(around_s() + (asked.cell.load.duration_ns + asked.cell.warmup_ns) / SECOND)
        return drive(asked)

    def launched(launch: Any) -> Any:
        clock.wait(start_s)
        return running(launch)

    bench.driver.drive = driven  # type: ignore[method-assign, assignment]
    bench.launcher.running = launched  # type: ignore[method-assign]
    bench.made = replace(bench.made, left_s=lambda: lasts_s - clock.now_s, now=lambda: clock.now_s, pause=clock.wait)
    return bench


@pytest.mark.parametrize("start_s", [0.1, 4.0])
@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("lasts_s", [30.0, 60.0, 240.0])
def test_a_search_takes_no_longer_than_it_was_given(
    tmp_path: Path, lasts_s: float, starts: bool, start_s: float
) -> None:
    clock = Clock()
    bench = timed(tmp_path, lasts_s, clock, starts=starts, start_s=start_s)
    while bench.made.turn():
        pass
    assert clock.now_s <= lasts_s
    assert bench.state.probes
    assert bench.state.ended


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("starts", [False, True])
def test_loads_that_take_long_on_a_busy_machine_leave_time_for_the_report(
    tmp_path: Path, starts: bool, seed: int
) -> None:
    """What is around loads is three times what was planned, and differs from load to load."""
    clock, rng = Clock(), random.Random(seed)
    bench = timed(tmp_path, 60.0, clock, starts=starts, around_s=lambda: rng.uniform(0.6, 1.2))
    while bench.made.turn():
        pass
    assert clock.now_s + 1.2 <= 60.0
    assert bench.state.left_out
    assert bench.state.probes


def test_judging_takes_its_time_again_for_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for each load: the report then takes as many seconds as there were loads."""
    clock, add = Clock(), SearchState.add

    def slowly(state: SearchState, made: Any) -> Any:
        clock.wait(1.0)
        return add(state, made)

    monkeypatch.setattr(SearchState, "add", slowly)
    bench = timed(tmp_path, 60.0, clock, starts=False)
    while bench.made.turn():
        pass
    assert bench.state.left_out
    assert clock.now_s + bench.state.loads <= 60.0 + 1.0, "all but the note that the time is over"


@pytest.mark.parametrize("starts", [False, True])
def test_two_servers_that_take_turns_share_the_time(tmp_path: Path, starts: bool) -> None:
    clock = Clock()
    both = [timed(tmp_path / name, 60.0, clock, starts=starts, servers=2) for name in "AB"]
    for bench in both:
        manifest, cell = bench.state.manifest, bench.state.cell
        terms = bench.state.terms.model_copy(update={"by_probe": True})
        bench.made.state = SearchState(manifest.model_copy(update={"search": terms}), cell)
    left = list(both)
    while left:
        left = [bench for bench in left if bench.made.turn()]
    assert clock.now_s <= 60.0
    assert abs(len(both[0].state.probes) - len(both[1].state.probes)) <= 1


def test_a_machine_that_is_busy_takes_no_time_beyond_what_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every probe is disturbed: without a limit the waits alone take four minutes."""
    clock = Clock()
    bench = timed(tmp_path, 30.0, clock, starts=False)
    monkeypatch.setattr(
        "redline.search.client.stolen", lambda _findings, some=False: "the host took 20% of the CPU time"
    )
    while bench.made.turn():
        pass
    assert clock.now_s <= 30.0


def test_what_was_left_out_is_said_and_stored(tmp_path: Path) -> None:
    clock = Clock()
    bench = timed(tmp_path, 30.0, clock, starts=True, start_s=4.0)
    while bench.made.turn():
        pass
    (cell,) = search_report(bench.made.store).cells
    assert cell.left_out
    assert bench.state.limit().left_out == cell.left_out
    assert ("time", f"over before {cell.left_out}") in list(facts_of(cell))
    assert all(f"the time was over before {cell.left_out}" in limit_sentence(cell, limit) for limit in cell.limits)
    assert bench.again(left_s=lambda: inf).state.ended, "a search whose time is over is not resumed"


@pytest.mark.parametrize(("searches", "trials"), [(1, 0), (2, 0), (1, 3), (2, 3)])
def test_the_least_time_has_room_for_some_probes(searches: int, trials: int) -> None:
    least = least_ns(searches, trials)
    assert probe_times(least, searches, 12, trials).probe_ns >= SHORTEST_NS
    assert probe_times(least - SECOND, searches, 12, trials).probe_ns < SHORTEST_NS


def test_a_server_that_starts_longer_than_there_is_time_gets_no_probe(tmp_path: Path) -> None:
    """Its start alone can exceed the time, since nobody knows before how long it takes: no load follows."""
    clock = Clock()
    bench = timed(tmp_path, 30.0, clock, starts=True, start_s=29.0)
    assert not bench.made.turn()
    assert clock.now_s <= 30.0
    assert not bench.state.probes
    assert bench.state.ended
    (cell,) = search_report(bench.made.store).cells
    assert cell.left_out == "its first probe: it took 29.0 s to start"
    assert "the time was over" in dict(facts_of(cell))["search"]


def test_no_server_is_started_when_the_time_is_over(tmp_path: Path) -> None:
    clock = Clock(now_s=31.0)
    bench = timed(tmp_path, 30.0, clock, starts=True)
    assert not bench.made.turn()
    assert not bench.launcher.launches
    assert bench.state.left_out


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("lasts_s", [30.0, 60.0])
def test_time_is_left_to_look_again_at_an_early_rate(tmp_path: Path, lasts_s: float, starts: bool) -> None:
    clock = Clock()
    bench = timed(tmp_path, lasts_s, clock, starts=starts, around_s=lambda: 0.9)
    manifest, cell = bench.state.manifest, bench.state.cell
    terms = bench.state.terms.model_copy(update={"looks": True})
    bench.made.state = SearchState(manifest.model_copy(update={"search": terms}), cell)
    while bench.made.turn():
        pass
    assert clock.now_s <= lasts_s
    if len(bench.state.probes) > 4:
        assert LOOKS_AGAIN in bench.listener.whys


def test_the_least_time_holds_six_probes_and_two_at_each_end() -> None:
    # Without starts: 8 loads of 1 s with a fifth of warm-up, one start of two short loads, and 0.3 s around each.
    assert least_ns(1, 0) == pytest.approx(8 * 1.2e9 + 0.4e9 + 0.3e9 * (8 + 2))
    # With three starts at both ends: 12 loads and 4 starts.
    assert least_ns(2, 3) == pytest.approx(2 * (12 * 1.2e9 + 4 * 0.4e9 + 0.3e9 * (12 + 8)))


def test_the_lengths_of_probes_fill_the_time() -> None:
    # 20 + 2 probes, one start: 0.3 s around each of 24 loads; 22 * 1.2 + 0.4 lengths of a probe.
    found = probe_times(100_000_000_000, 1, 20, 0)
    assert found.probe_ns == pytest.approx((100e9 - 24 * 0.3e9) / 26.8, abs=2)
    assert found.warmup_ns == pytest.approx(0.2 * found.probe_ns, abs=2)
    assert not found.detects
    longer = probe_times(1_000_000_000_000, 1, 20, 0)
    assert longer.warmup_ns == 1_000_000_000


def test_half_of_the_time_warms_up_starts_where_that_is_ten_seconds_each() -> None:
    # 3 starts at both ends are 4 starts: 80 s leave 10 s for each.
    assert probe_times(80_000_000_000, 1, 5, 3).detects
    assert probe_times(80_000_000_000, 1, 5, 3).warmup_ns == 10_000_000_000
    assert not probe_times(79_000_000_000, 1, 5, 3).detects
