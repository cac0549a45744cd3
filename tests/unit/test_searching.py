"""A cell is searched on fresh servers, each verified and warm before it is probed; with fakes, in no time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from redline.errors import DriveError, LaunchError
from redline.model import Closed, Finding, FindingKind, Grade, Open, Variant
from redline.model.limits import LimitStart
from redline.ports import Placement
from redline.running.probing import SETTLE_NS, WARM_SHARE
from redline.running.recording_driver import WatchedDriver
from redline.search import Converged, Search
from tests.fakes.plugins import DEATH, FakeServer
from tests.fakes.searched import CELL, SECOND, Bench, bench_in


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return bench_in(tmp_path)


def test_every_start_is_verified_and_warmed_before_its_probes(bench: Bench) -> None:
    end = bench.made.run()
    assert isinstance(end, Converged)
    events = bench.driver.events
    assert bench.watcher.starts == [0, 1, 2]
    starts = [index for index, event in enumerate(events) if event == "start"]
    assert len(starts) == 3
    for index in starts:
        assert events[index : index + 5] == ["start", "verify", "warm", "warm", "probe"]
    assert events.count("warm") == 6
    assert events[-1] == "stop"
    assert bench.server.stopped


def test_the_ends_of_the_answer_are_probed_on_fresh_starts(bench: Bench) -> None:
    end = bench.made.run()
    (limit,) = end.limits
    confirming = [each for each in bench.made.probes if each.phase == "confirm"]
    assert [each.start for each in confirming] == [1, 1, 2, 2]
    assert all(each.fresh for each in confirming)
    assert not any(each.fresh for each in bench.made.probes if each.phase == "search")
    assert {each.rate_per_s for each in confirming[-2:]} == {limit.low_per_s, limit.high_per_s}
    assert [each.start for each in bench.made.search.evidence][-4:] == [1, 1, 2, 2]


def test_what_the_search_leaves_out_of_the_curve_comes_last_and_is_no_evidence(bench: Bench) -> None:
    bench.made.run()
    drawn = [each for each in bench.made.probes if each.phase == "curve"]
    assert drawn == bench.made.probes[len(bench.made.search.evidence) :]
    assert all(each.start == 2 for each in drawn)


def test_the_warm_up_is_the_suites_by_as_many_users_as_connections_and_each_probe_settles(bench: Bench) -> None:
    bench.made.run()
    first, calm, probe = bench.driver.drives[:3]
    assert first.cell.load.duration_ns == 20 * SECOND
    assert first.cell.load.shape == Closed(users=64)
    assert isinstance(calm.cell.load.shape, Open)
    assert (calm.cell.load.shape.most_per_s, calm.cell.load.duration_ns) == (WARM_SHARE * 1000, SECOND)
    assert probe.cell.warmup_ns == SETTLE_NS
    assert {drive.cpus for drive in bench.driver.drives} == {(1,)}
    seeds = [drive.seed for drive in bench.driver.drives if isinstance(drive.cell.load.shape, Open)]
    assert seeds == list(range(7, 7 + len(seeds)))
    assert bench.made.warm_ups == bench.watcher.warmed_up == [LimitStart(warmed_ns=20 * SECOND)] * 3


@pytest.mark.parametrize(("at_most", "steady"), [(20 * SECOND, True), (SECOND, False)])
def test_a_warm_up_that_is_watched_ends_when_the_server_is_steady(bench: Bench, at_most: int, steady: bool) -> None:
    bench.made.cell = bench.made.cell.model_copy(update={"warmup_ns": at_most, "warmup_detect": True})
    bench.driver.warm_after_ns = SECOND
    bench.made.run()
    watched = [drive for drive in bench.driver.drives if drive.is_warm]
    assert len(watched) == 3
    assert {drive.cell.warmup_ns for drive in watched} == {at_most}
    assert bench.made.warm_ups == bench.watcher.warmed_up == [LimitStart(warmed_ns=SECOND, steady=steady)] * 3
    assert not any(drive.cell.warmup_detect for drive in bench.driver.drives if drive not in watched)


def test_without_a_warm_up_there_is_none(bench: Bench) -> None:
    bench.made.cell = bench.made.cell.model_copy(update={"warmup_ns": 0})
    bench.made.run()
    assert bench.driver.drives[0].cell.load.duration_ns == SECOND


def test_a_wrong_answer_ends_it_before_any_load(bench: Bench) -> None:
    bench.driver.wrong = "GET /path0: status 500, not 200"
    with pytest.raises(DriveError, match=r"rust\.hyper answered SimpleGet wrongly before any load: GET"):
        bench.made.run()
    assert bench.driver.events == ["start", "verify", "stop"]


def test_a_server_that_dies_of_a_probe_is_said_to_and_what_was_seen_stays(bench: Bench) -> None:
    def kill(number: int) -> None:
        bench.server.dead = DEATH if number == 5 else None

    bench.driver.on_drive = kill
    with pytest.raises(DriveError, match=r"rust\.hyper died at 4.*/s: killed by SIGKILL"):
        bench.made.run()
    assert len(bench.made.search.evidence) == 2
    assert len(bench.made.probes) == 3
    assert bench.driver.events[-1] == "stop"


def test_a_server_that_lives_and_answers_no_more_ends_the_search(bench: Bench) -> None:
    def hang(number: int) -> None:
        bench.driver.silent = number >= 5
        bench.driver.wrong = "GET /path0: timed out" if number >= 5 else None

    bench.driver.on_drive = hang
    with pytest.raises(DriveError, match=r"rust\.hyper gives no right answer any more after 4.*/s: GET /path0: timed"):
        bench.made.run()
    assert len(bench.made.probes) == 3
    assert bench.driver.events[-1] == "stop"


def test_a_server_that_loses_connections_is_given_a_moment_to_be_seen_dead(bench: Bench) -> None:
    bench.driver.losing = True
    bench.server.dead, bench.server.slow_to_die = DEATH, 3
    with pytest.raises(DriveError, match="killed by SIGKILL"):
        bench.made.run()


def test_an_interrupt_stops_the_server_and_goes_out(bench: Bench) -> None:
    def interrupt(number: int) -> None:
        if number == 4:
            raise KeyboardInterrupt

    bench.driver.on_drive = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.made.run()
    assert bench.driver.events[-1] == "stop"
    assert len(bench.made.search.evidence) == 1


def test_a_server_that_does_not_start_is_a_launch_error(bench: Bench, tmp_path: Path) -> None:
    @contextmanager
    def refusing(variant: Variant, placement: Placement, log: Path) -> Iterator[FakeServer]:
        assert log == tmp_path / "start-0" / "server.log"
        raise LaunchError("it exited with code 1", hint="see its log")
        yield

    bench.made.tools.launcher.running = refusing  # type: ignore[method-assign]
    with pytest.raises(LaunchError):
        bench.made.run()


def test_what_was_done_to_a_probe_is_told_by_its_place(bench: Bench) -> None:
    bench.driver.late = 5
    bench.made.run()
    (found,) = bench.made.findings
    assert (found.kind, found.position, found.cell_id) == (FindingKind.SEND_LATENESS, 2, CELL.id)


def test_a_probe_that_the_host_disturbs_is_made_again_on_the_same_start_and_the_search_hears_of_the_last(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Finding(kind=FindingKind.CPU_STEAL, grade=Grade.WARN, message="M.", advice="A.", cell_id=CELL.id)

    def findings(_self: WatchedDriver, _cell_id: str, position: int) -> tuple[Finding, ...]:
        return (taken,) if position == 2 else ()

    quiet = bench.made.run()
    monkeypatch.setattr(WatchedDriver, "findings", findings)
    paused: list[float] = []
    search = Search(bench.made.search.sets, bench.made.search.settings)
    made = replace(bench.made, search=search, probes=[], warm_ups=[], findings=[], pause=paused.append)
    assert made.run() == quiet
    assert made.probes[2].client == "m"
    assert made.probes[3].rate_per_s == made.probes[2].rate_per_s
    assert made.probes[3].start == made.probes[2].start
    assert sum(each.phase != "curve" for each in made.probes) == len(search.evidence) + 1
    assert bench.watcher.waited == [5.0]
    assert 5.0 in paused
