"""A cell is searched on fresh servers, each verified and warm before its probes; with fakes, in no time."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pytest

from redline.errors import DriveError, LaunchError
from redline.limits import search_state
from redline.limits.probe_loads import SETTLE_NS
from redline.model import AttachedServer, Cell, Closed, Finding, Grade, Open, Recording, Variant
from redline.model.limits import LimitStart
from redline.ports import Launch
from redline.report.limit import ending_text
from redline.running.cell_search import AGAIN, MOST_OF_ONE, WAITS_S
from redline.search import Converged
from redline.suite import parse_objectives
from tests.fakes.plugins import DEATH, FakeServer
from tests.fakes.recordings import simulated_run
from tests.fakes.searched import CELL, SECOND, Bench, Seen, bench_in, plan_of


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return bench_in(tmp_path)


def test_every_start_is_verified_and_warmed_before_its_probes(bench: Bench) -> None:
    end = bench.run()
    assert isinstance(end, Converged)
    events = bench.driver.events
    assert bench.listener.starts == [0, 1, 2]
    assert [launch.seed for launch in bench.launcher.launches] == [7, 8, 9], "each has an environment of another size"
    starts = [index for index, event in enumerate(events) if event == "start"]
    assert len(starts) == 3
    for index in starts:
        assert events[index : index + 5] == ["start", "verify", "warm", "warm", "probe"]
    assert events.count("warm") == 6
    assert events[-1] == "stop"
    assert bench.server.stopped


def test_the_ends_of_the_answer_are_probed_on_fresh_starts(bench: Bench) -> None:
    end = bench.run()
    (limit,) = end.limits
    confirming = [each for each in bench.state.probes if each.phase == "confirm"]
    assert [each.start for each in confirming] == [1, 1, 2, 2]
    assert all(each.fresh for each in confirming)
    assert not any(each.fresh for each in bench.state.probes if each.phase == "search")
    assert {each.rate_per_s for each in confirming[-2:]} == {limit.low_per_s, limit.high_per_s}
    assert [each.start for each in bench.state.search.evidence][-4:] == [1, 1, 2, 2]


def test_what_the_search_leaves_out_of_the_curve_comes_last_and_is_no_evidence(bench: Bench) -> None:
    bench.run()
    drawn = [each for each in bench.state.probes if each.phase == "curve"]
    assert drawn == bench.state.probes[len(bench.state.search.evidence) :]
    assert all(each.start == 2 for each in drawn)


def test_the_warm_up_is_the_suites_by_as_many_users_as_connections_and_each_probe_settles(bench: Bench) -> None:
    bench.run()
    first, calm, probe = bench.driver.drives[:3]
    assert first.cell.load.duration_ns == 20 * SECOND
    assert first.cell.load.shape == Closed(users=64)
    assert isinstance(calm.cell.load.shape, Open)
    assert (calm.cell.load.shape.most_per_s, calm.cell.load.duration_ns) == (700, SECOND)
    assert probe.cell.warmup_ns == SETTLE_NS
    assert {drive.cpus for drive in bench.driver.drives} == {(1,)}
    seeds = [drive.seed for drive in bench.driver.drives]
    assert seeds == list(range(7, 7 + len(seeds))), "no two loads have the same arrivals"
    assert bench.state.starts == bench.listener.warmed_up == [LimitStart(warmed_ns=20 * SECOND)] * 3


def test_the_suites_own_users_warm_up_in_place_of_as_many_as_connections(tmp_path: Path) -> None:
    by = CELL.load.model_copy(update={"name": "users2", "shape": Closed(users=2)})
    bench = bench_in(tmp_path, warmup_by=by)
    bench.run()
    loads = [drive.cell.load for drive in bench.driver.drives]
    assert (loads[0].shape, loads[0].duration_ns) == (Closed(users=2), 20 * SECOND)
    assert all(isinstance(load.shape, Open) for load in loads[1:4])
    assert {drive.cell.warmup_by for drive in bench.driver.drives} == {None}, "it would warm up once more"


@pytest.mark.parametrize(("at_most", "steady"), [(20 * SECOND, True), (SECOND, False)])
def test_a_warm_up_that_is_watched_ends_when_the_server_is_steady(tmp_path: Path, at_most: int, steady: bool) -> None:
    bench = bench_in(tmp_path, warmup_ns=at_most, warmup_detect=True)
    bench.driver.warm_after_ns = SECOND
    bench.run()
    watched = [drive for drive in bench.driver.drives if drive.is_warm]
    assert len(watched) == 3
    assert {drive.cell.warmup_ns for drive in watched} == {at_most}
    assert bench.state.starts == bench.listener.warmed_up == [LimitStart(warmed_ns=SECOND, steady=steady)] * 3
    assert not any(drive.cell.warmup_detect for drive in bench.driver.drives if drive not in watched)


def test_the_first_rate_is_by_what_users_got_in_the_warm_up(tmp_path: Path) -> None:
    """The fake answers users 20,000 a second, so the search begins at 14,000, 70% of that."""
    bench = bench_in(tmp_path)
    terms = bench.state.terms.model_copy(update={"start_per_s": None, "by_warm_up": True})
    manifest = bench.state.manifest.model_copy(update={"search": terms})
    bench.made.state = search_state.search_state(manifest, bench.state.cell, ())
    bench.run()
    users, calm, first = bench.driver.drives[:3]
    assert isinstance(users.cell.load.shape, Closed)
    assert [each.cell.load.shape.most_per_s for each in (calm, first) if isinstance(each.cell.load.shape, Open)] == [
        pytest.approx(9_800),
        14_000,
    ]
    found = bench.state.limit()
    bench.made.store.folder.joinpath("run.json").write_text(manifest.model_dump_json())
    assert bench.again().state.limit() == found


def test_without_a_warm_up_there_is_none(tmp_path: Path) -> None:
    bench = bench_in(tmp_path, warmup_ns=0)
    bench.run()
    assert bench.driver.drives[0].cell.load.duration_ns == SECOND


def test_a_wrong_answer_ends_it_before_any_load(bench: Bench) -> None:
    bench.driver.wrong = "GET /path0: status 500, not 200"
    with pytest.raises(DriveError, match=r"rust\.hyper answered SimpleGet wrongly before any load: GET"):
        bench.run()
    assert bench.driver.events == ["start", "verify", "stop"]


def test_a_server_that_dies_of_a_probe_is_reported_and_what_was_seen_stays(bench: Bench) -> None:
    def kill(number: int) -> None:
        bench.server.dead = DEATH if number == 5 else None

    bench.driver.on_drive = kill
    with pytest.raises(DriveError, match=r"rust\.hyper died at 4.*/s: killed by SIGKILL"):
        bench.run()
    assert len(bench.state.search.evidence) == 2
    assert len(bench.state.probes) == 3
    assert bench.driver.events[-1] == "stop"


def test_a_server_that_lives_and_answers_no_more_ends_the_search(bench: Bench) -> None:
    def hang(number: int) -> None:
        bench.driver.silent = number >= 5
        bench.driver.wrong = "GET /path0: timed out" if number >= 5 else None

    bench.driver.on_drive = hang
    with pytest.raises(DriveError, match=r"rust\.hyper gives no right answer any more after 4.*/s: GET /path0: timed"):
        bench.run()
    assert len(bench.state.probes) == 3
    assert bench.driver.events[-1] == "stop"


def test_a_server_that_loses_connections_is_given_a_moment_to_be_seen_dead(bench: Bench) -> None:
    bench.driver.losing = True
    bench.server.dead, bench.server.slow_to_die = DEATH, 3
    with pytest.raises(DriveError, match="killed by SIGKILL"):
        bench.run()


def test_an_interrupt_stops_the_server_and_goes_out(bench: Bench) -> None:
    def interrupt(number: int) -> None:
        if number == 4:
            raise KeyboardInterrupt

    bench.driver.on_drive = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.driver.events[-1] == "stop"
    assert len(bench.state.search.evidence) == 1


def test_a_server_that_does_not_start_is_a_launch_error(bench: Bench, tmp_path: Path) -> None:
    @contextmanager
    def refusing(launch: Launch) -> Iterator[FakeServer]:
        assert launch.log == tmp_path / "logs" / CELL.slug / "start-0" / "server.log"
        raise LaunchError("it exited with code 1", hint="see its log")
        yield

    bench.made.tools.launcher.running = refusing  # type: ignore[method-assign]
    with pytest.raises(LaunchError):
        bench.run()


AFTER = LaunchError("rust.hyper: `after` ended with exit code 3; it wrote nothing", hint="run it by hand")


@pytest.mark.parametrize("good_stops", [0, 2])
def test_a_command_after_a_server_that_fails_ends_the_search_and_is_its_reason(bench: Bench, good_stops: int) -> None:
    bench.launcher.stop_errors = [*[None] * good_stops, AFTER]
    with pytest.raises(LaunchError, match="`after` ended with exit code 3"):
        bench.run()
    limit = bench.again().state.limit()
    assert (limit.ended, limit.reason) == ("broken", AFTER.message)
    assert limit.probes
    assert ending_text(limit) == f"broken: {AFTER.message}; this is what was known by then"
    (failure,) = [made.recording.failure for made in bench.made.store.probes(CELL) if made.recording.failure]
    assert (failure.stage, failure.hint) == ("stop", AFTER.hint)
    assert bench.driver.events.count("stop") == good_stops + 1


def test_an_interrupt_has_precedence_over_a_command_after_the_server(bench: Bench) -> None:
    def interrupt(number: int) -> None:
        if number == 4:
            raise KeyboardInterrupt

    bench.driver.on_drive, bench.launcher.stop_errors = interrupt, [AFTER]
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.again().state.limit().ended == "interrupted"


def test_what_was_done_to_a_probe_is_reported_by_its_place(bench: Bench) -> None:
    bench.driver.late = 5
    bench.run()
    (found,) = bench.state.findings
    assert (found.kind, found.position, found.cell_id) == ("send-lateness", 2, CELL.id)
    assert bench.listener.waited == [], "that does not pass by itself"


def test_a_probe_that_the_host_disturbs_is_made_again_on_the_same_start_and_the_search_hears_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = Finding(kind="cpu-steal", grade=Grade.WARN, message="M.", advice="A.", cell_id=CELL.id)

    def findings(_cell: Cell, recording: Recording) -> tuple[Finding, ...]:
        return (taken,) if recording.position == THIRD_PROBE else ()

    quiet = bench_in(tmp_path / "quiet").run()
    monkeypatch.setattr(search_state, "judge_probe", findings)
    paused: list[float] = []
    bench = bench_in(tmp_path / "disturbed").again(pause=paused.append)
    assert bench.run() == quiet
    probes = bench.state.probes
    assert probes[2].client == "m"
    assert probes[3].rate_per_s == probes[2].rate_per_s
    assert probes[3].start == probes[2].start
    assert sum(each.phase != "curve" for each in probes) == len(bench.state.search.evidence) + 1
    assert bench.listener.waited == [5.0]
    assert 5.0 in paused
    assert bench.again().state.retries == 1
    assert bench.state.limit() == bench.made.state.limit()


@pytest.mark.parametrize("disturbs", [2, 3, 4])
def test_a_probe_is_made_again_until_it_is_not_disturbed_or_may_not_be(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, disturbs: int
) -> None:
    taken = Finding(kind="cpu-steal", grade=Grade.WARN, message="M.", advice="A.", cell_id=CELL.id)

    def findings(_cell: Cell, recording: Recording) -> tuple[Finding, ...]:
        return (taken,) if THIRD_PROBE <= recording.position < THIRD_PROBE + disturbs else ()

    monkeypatch.setattr(search_state, "judge_probe", findings)
    paused: list[float] = []
    bench.again(pause=paused.append).run()
    assert bench.listener.waited == list(WAITS_S[: min(disturbs, MOST_OF_ONE)])
    made = bench.state.probes[2 : 3 + len(bench.listener.waited)]
    assert {each.rate_per_s for each in made} == {made[0].rate_per_s}
    assert [each.why for each in made[1:]] == [AGAIN] * len(bench.listener.waited)
    heard = bench.state.search.evidence[2]
    assert heard.client == made[-1].client == ("m" if disturbs > MOST_OF_ONE else ""), (
        "the search hears of the last one"
    )
    stored = bench.made.store.probes(CELL)[THIRD_PROBE : THIRD_PROBE + len(made)]
    assert [each.retries_left for each in stored] == list(range(MOST_OF_ONE, MOST_OF_ONE - len(made), -1))


def test_one_probe_leaves_repetitions_for_the_others(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Finding(kind="cpu-steal", grade=Grade.WARN, message="M.", advice="A.", cell_id=CELL.id)
    monkeypatch.setattr(search_state, "judge_probe", lambda _cell, _recording: (taken,))
    bench.again().run()
    assert len(bench.listener.waited) > MOST_OF_ONE
    again = [each.why == AGAIN for each in bench.state.probes]
    most = max(len(list(group)) for is_again, group in groupby(again) if is_again)
    assert most == MOST_OF_ONE


THIRD_PROBE = 4
"""The number of its load: two loads warm the server up."""


def test_what_is_stored_is_the_state_of_the_search(bench: Bench) -> None:
    """The same search, rebuilt from its recordings alone."""
    bench.run()
    found = bench.state.limit()
    assert found.ended == "converged"
    again = bench.again().state
    assert again.ended
    assert again.limit() == found
    assert [each.recording for each in found.probes[:2]] == [f"probes/{CELL.slug}/000{n}.json" for n in (2, 3)]
    files = [bench.made.store.folder / each.recording for each in found.probes]
    assert all(file.is_file() for file in files)


@pytest.mark.parametrize("loads", [1, 3, 5, 9, 12])
def test_a_search_is_resumed_where_it_was_interrupted_on_a_fresh_start(bench: Bench, loads: int) -> None:
    def interrupt(number: int) -> None:
        if number == loads:
            raise KeyboardInterrupt

    bench.driver.on_drive = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    before = list(bench.state.probes)
    assert bench.state.limit().ended == "interrupted"
    starts = bench.listener.starts
    bench.driver.on_drive = lambda _number: None
    bench.again()
    assert bench.state.probes == before
    assert isinstance(bench.run(), Converged)
    assert bench.state.probes[: len(before)] == before
    assert bench.listener.starts[0] >= starts[-1], "what was probed before was on another start"
    assert all(each.start >= bench.listener.starts[0] for each in bench.state.probes[len(before) :])
    seeds = [made.recording.seed for made in bench.made.store.probes(CELL)]
    assert seeds == list(range(7, 7 + len(seeds)))


def test_intervals_go_to_the_listener_of_their_turn(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[object]()
    monkeypatch.setattr(Seen, "seen", lambda listener, _interval: seen.append(listener))
    prober = bench.made._start_fresh()
    bench.made.listener = Seen()
    traffic = simulated_run().recordings[0].traffic
    assert traffic is not None
    prober.on_interval(traffic.intervals[0])
    assert seen == [bench.made.listener]


def test_a_search_of_a_running_server_is_resumed_on_its_only_start(tmp_path: Path) -> None:
    bench = bench_in(tmp_path, variant=Variant(entry=AttachedServer(host="127.0.0.1", port=8080)))

    def interrupt(number: int) -> None:
        if number == 5:
            raise KeyboardInterrupt

    bench.driver.on_drive = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    bench.driver.on_drive = lambda _number: None
    assert isinstance(bench.again().run(), Converged)
    assert {each.start for each in bench.state.probes} == {0}
    assert bench.state.limit().starts == (LimitStart(warmed_ns=20 * SECOND),)


def test_a_server_that_could_not_be_searched_is_not_searched_again(bench: Bench) -> None:
    bench.driver.wrong = "GET /path0: status 500, not 200"
    with pytest.raises(DriveError):
        bench.run()
    state = bench.again().state
    assert state.ended
    limit = state.limit()
    assert (limit.ended, "answered SimpleGet wrongly" in limit.reason, limit.probes) == ("broken", True, ())


def test_a_cell_is_searched_for_the_objectives_that_are_for_it() -> None:
    other, own = (parse_objectives("p99 < 20ms")[0].model_copy(update={"load": name}) for name in ("other", "probe"))
    manifest = plan_of(CELL, objectives=(other, own))
    assert search_state.search_state(manifest, CELL, ()).sets == {"good": (own,)}
    assert search_state.search_state(plan_of(CELL, objectives=(other,)), CELL, ()).sets == {}


def test_each_start_is_a_turn_and_the_limits_are_told_from_the_first_probe_on(bench: Bench) -> None:
    turns = [bench.made.turn()]
    while turns[-1]:
        turns.append(bench.made.turn())
    assert turns == [True, True, False]
    assert bench.listener.starts == [0, 1, 2]
    assert all(bench.listener.known)
    end = bench.state.next()
    assert isinstance(end, Converged)
    assert bench.listener.known[-1] == end.limits


def test_servers_that_take_turns_by_probe_are_started_afresh_for_the_ends_too(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    terms = bench.state.terms.model_copy(update={"by_probe": True})
    manifest = bench.state.manifest.model_copy(update={"search": terms})
    bench.made.state = search_state.search_state(manifest, bench.state.cell, ())
    while bench.made.turn():
        pass
    bench.made.stop()
    assert bench.listener.starts == [0, 1, 2]
    assert [each.start for each in bench.state.probes if each.phase == "confirm"] == [1, 1, 2, 2]


def test_a_cell_has_the_seed_of_its_own_first_trial(bench: Bench) -> None:
    manifest = bench.state.manifest
    (first, *_), own = manifest.plan.trials, bench.state.cell.id
    trials = [
        first.model_copy(update=facts)
        for facts in (
            {"cell_id": "another", "round": 0, "seed": 5},
            {"cell_id": own, "round": 1, "seed": 6},
            {"cell_id": own, "round": 0, "seed": 7},
            {"cell_id": own, "round": 0, "seed": 8},
        )
    ]
    plan = manifest.plan.model_copy(update={"trials": tuple(trials)})
    bench.made.state = search_state.search_state(manifest.model_copy(update={"plan": plan}), bench.state.cell, ())
    assert bench.made._seed == 7
