"""A single start of servers serves all duets of a round: its failures, its interrupts, and the budget of starts."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from redline.analysis.precision import enough
from redline.errors import DriveError, LaunchError, UsageError
from redline.model import Cell, DuetTraffic, Enough, Plan, PlannedDuet, PlannedTrial
from redline.ports import DuetDrive, Endpoint, Launch, Placement
from redline.running.assembly import Workbench
from redline.running.duet import DuetStart, run_start
from redline.running.executors import LocalExecutor, starts_of
from redline.running.manifests import Source, new_manifest
from redline.running.record import Tools
from redline.running.rounds import run_trials
from redline.running.session import extend_budget
from redline.storage.runs import RunStore
from redline.suite import Catalogue, make_plan
from redline.suite.validate.overrides import Overrides
from redline.suite.validate.resolve import read_suite
from tests.fakes.plugins import DEATH, FakeDriver, FakeLauncher, FakeServer, QuietListener
from tests.fakes.recordings import simulated_environment

S = 1_000_000_000
TEXT = """
servers: [{name: A, command: './a {port}'}, {name: B, command: './b {port}'}]
scenarios: [{name: one, get: /1}, {name: two, get: /2}, {name: three, get: /3}]
loads: {load: {closed: {users: 2}}}
budget: 60s
"""


def plan_of(text: str = TEXT) -> Plan:
    return make_plan(read_suite(text, "mine.yaml", Catalogue(), Overrides()))


PLAN = plan_of()
FIRST = tuple(duet for duet in PLAN.duets if duet.round == 0)


@dataclass
class Servers(FakeDriver):
    """Answers wrongly, loses its server or is interrupted in the duets that the test names."""

    wrong_in: frozenset[str] = frozenset()
    wrong_after: frozenset[str] = frozenset()
    differs_in: frozenset[str] = frozenset()
    dies_in: frozenset[str] = frozenset()
    interrupted_in: frozenset[str] = frozenset()
    launcher: FakeLauncher | None = None
    served: list[tuple[str, int]] = field(default_factory=list)

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        name = cell.scenario.name
        later = name in self.wrong_after and any(served == name for served, _ in self.served)
        return "status 500" if later else "status 404" if name in self.wrong_in else None

    def differ(self, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
        twice = names[0] == "its first answer"
        return "status 200, and 404" if cell.scenario.name in self.differs_in and not twice else None

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        name = drive.drive.cell.scenario.name
        self.served.append((name, drive.drive.cell.warmup_ns))
        traffic = super().duet(drive)
        if name in self.dies_in and self.launcher is not None:
            self.launcher.server.dead = DEATH
            self.launcher.server = FakeServer()  # the next start has a new server
        return traffic.model_copy(update={"ended": "interrupted"}) if name in self.interrupted_in else traffic


def bench(**habits: frozenset[str]) -> tuple[FakeLauncher, Servers, Tools]:
    launcher = FakeLauncher([])
    driver = Servers(launcher.events, launcher=launcher, **habits)  # type: ignore[arg-type]
    return launcher, driver, Tools(launcher, driver, lambda _server: (), Placement())


def start_in(folder: Path, begun: list[int] | None = None) -> DuetStart:
    noted = [] if begun is None else begun
    return DuetStart(
        FIRST,
        PLAN.cells,
        logs=lambda _duet: folder,
        on_begin=lambda duet: noted.append(duet.position),
        keep_interrupted=True,
    )


def names(planned: tuple[PlannedDuet, ...] = FIRST) -> list[str]:
    return [PLAN.cells[duet.cell_ids[0]].scenario.name for duet in planned]


def test_servers_are_started_once_for_all_scenarios(tmp_path: Path) -> None:
    launcher, driver, tools = bench()
    begun = list[int]()
    made = list(run_start(start_in(tmp_path, begun), tools))
    assert [each.position for each in made] == begun == [duet.position for duet in FIRST]
    assert all(each.is_complete and each.servers for each in made)
    assert launcher.events.count("start") == 3  # A twice, as a control
    first, again = PLAN.cells[FIRST[0].cell_ids[0]].warmup_ns, FIRST[1].warmup_ns
    assert again is not None
    assert again < first
    assert driver.served == [(name, 3 * ns) for name, ns in zip(names(), (first, again, again), strict=True)]


def test_a_plan_has_a_start_for_each_round() -> None:
    assert [len(start) for start in starts_of(PLAN.steps[:9], PLAN)] == [3, 3, 3]
    trials = plan_of(TEXT.replace("budget: 60s", "trials: 2\nbaseline: A").replace("users: 2}}", "users: 2}, for: 1s}"))
    starts = list(starts_of(trials.steps, trials))
    assert [len(start) for start in starts if isinstance(start[0], PlannedDuet)] == [3, 3]
    assert [len(start) for start in starts if isinstance(start[0], PlannedTrial)] == [1] * 12
    assert len(trials.trials) == 12


def test_what_does_not_start_fails_for_all(tmp_path: Path) -> None:
    launcher, driver, tools = bench()
    launcher.error = LaunchError("B exited with code 1", hint="see why")
    made = list(run_start(start_in(tmp_path), tools))
    assert [each.failure and each.failure.message for each in made] == ["B exited with code 1"] * 3
    assert (launcher.events.count("start"), driver.served) == (1, [])


def test_the_other_servers_have_stopped_before_a_failed_start_is_stored(tmp_path: Path) -> None:
    launcher, _, tools = bench()

    class OneStarts(FakeLauncher):
        @contextmanager
        def running(self, launch: Launch) -> Iterator[FakeServer]:
            if launch.place:
                raise LaunchError("B exited with code 1", hint="see why")
            with super().running(launch) as server:
                yield server

    failing = OneStarts(launcher.events, stop_errors=[LaunchError("A did not stop", hint="see why")])
    made = run_start(start_in(tmp_path), replace(tools, launcher=failing))
    first = next(made)
    assert first.failure is not None
    assert first.failure.message == "B exited with code 1"
    assert launcher.events == ["start", "stop"]
    assert len([*made]) == 2


def test_a_wrong_answer_fails_its_scenario_alone(tmp_path: Path) -> None:
    launcher, driver, tools = bench(wrong_in=frozenset({"two"}))
    made = list(run_start(start_in(tmp_path), tools))
    assert [bool(each.failure) for each in made] == [name == "two" for name in names()]
    assert launcher.events.count("start") == 3
    assert [name for name, _ in driver.served] == [name for name in names() if name != "two"]


def test_servers_that_died_are_started_again_for_the_rest(tmp_path: Path) -> None:
    died = names()[0]
    launcher, driver, tools = bench(dies_in=frozenset({died}))
    made = list(run_start(start_in(tmp_path), tools))
    assert [each.failure and each.failure.kind for each in made] == ["died", None, None]
    assert launcher.events.count("start") == launcher.events.count("stop") == 6
    ns = PLAN.cells[FIRST[0].cell_ids[0]].warmup_ns
    assert driver.served[1] == (names()[1], 3 * ns), "new servers are cold again"


def test_an_interrupt_ends_a_start_and_keeps_what_there_is(tmp_path: Path) -> None:
    launcher, _, tools = bench(interrupted_in=frozenset({names()[1]}))
    made = list(run_start(start_in(tmp_path), tools))
    assert [each.is_interrupted for each in made] == [False, True]
    assert launcher.events[-1] == "stop"


A_START = 5
"""Seconds of a start of three duets by the clock of `_seconds`."""


@pytest.fixture
def _seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a second later."""
    ticks = itertools.count()
    monkeypatch.setattr("redline.running.duet.time.monotonic_ns", lambda: next(ticks) * S)


def session(folder: Path, tools: Tools, plan: Plan = PLAN) -> tuple[RunStore, LocalExecutor]:
    store = RunStore(folder / "run")
    if not store.exists:
        store.create(
            new_manifest(
                "mine", Source("redline ab", kind="comparison"), plan, Workbench(tools, simulated_environment())
            )
        )
    return store, LocalExecutor(store.manifest().plan, tools, store, QuietListener())


def carry_on(store: RunStore, executor: LocalExecutor) -> None:
    run_trials(store.manifest().plan, store, executor, QuietListener(), enough)


@pytest.mark.usefixtures("_seconds")
def test_rounds_fill_the_budget_and_a_longer_one_adds_more(tmp_path: Path) -> None:
    _, _, tools = bench()
    plan = plan_of(TEXT.replace("60s", "24s"))
    store, executor = session(tmp_path, tools, plan)
    carry_on(store, executor)
    took = sum(duet.took_ns for duet in store.duets())
    assert store.enough() == Enough(rounds=took // (A_START * S), why="budget")
    assert took <= 24 * S < took + A_START * S
    for seconds in (3, 24):
        with pytest.raises(UsageError, match="adds nothing to the 24"):
            extend_budget(store, seconds * S)
    extend_budget(store, 50 * S)
    carry_on(*session(tmp_path, tools))
    longer = sum(duet.took_ns for duet in store.duets())
    assert longer <= 50 * S < longer + A_START * S
    assert store.enough() == Enough(rounds=longer // (A_START * S), why="budget")


@pytest.mark.usefixtures("_seconds")
def test_there_are_three_rounds_however_little_time_there_is(tmp_path: Path) -> None:
    store, executor = session(tmp_path, bench()[2], plan_of(TEXT.replace("60s", "3s")))
    carry_on(store, executor)
    assert store.enough() == Enough(rounds=3, why="budget")


@pytest.mark.usefixtures("_seconds")
def test_the_first_failure_ends_a_comparison_and_is_made_again(tmp_path: Path) -> None:
    _, driver, tools = bench(dies_in=frozenset({names()[1]}))
    store, executor = session(tmp_path, tools)
    with pytest.raises(DriveError, match=r"killed by SIGKILL") as caught:
        carry_on(store, executor)
    assert caught.value.hint == "see its log", "what its launcher says of it"
    assert [bool(each.failure) for each in store.duets()] == [False, True]
    driver.dies_in = frozenset()
    carry_on(store, executor)
    assert not any(each.failure for each in store.duets())
    assert [each.position for each in store.duets()][:3] == [0, 1, 2]


@pytest.mark.usefixtures("_seconds")
def test_an_interrupt_keeps_what_there_is_and_it_is_made_again(tmp_path: Path) -> None:
    _, driver, tools = bench(interrupted_in=frozenset({names()[2]}))
    store, executor = session(tmp_path, tools)
    with pytest.raises(KeyboardInterrupt):
        carry_on(store, executor)
    assert [each.is_interrupted for each in store.duets()] == [False, False, True]
    driver.interrupted_in = frozenset()
    carry_on(store, executor)
    assert not any(each.is_interrupted for each in store.duets())
    assert driver.served.count(driver.served[2]) >= 2


def test_a_budget_of_servers_behind_urls_is_not_extended(tmp_path: Path) -> None:
    text = TEXT.replace("command: './a {port}'", "url: 'http://127.0.0.1:1'")
    plan = plan_of(text.replace("command: './b {port}'", "url: 'http://127.0.0.1:2'"))
    store, executor = session(tmp_path, bench()[2], plan)
    carry_on(store, executor)
    assert [duet.round for duet in store.duets()] == [0, 0, 0]
    with pytest.raises(UsageError, match="have one start"):
        extend_budget(store, 120 * S)


def test_the_first_scenario_that_is_loaded_has_the_long_warm_up(tmp_path: Path) -> None:
    _, driver, tools = bench(wrong_in=frozenset({names()[0]}))
    list(run_start(start_in(tmp_path), tools))
    first, again = PLAN.cells[FIRST[0].cell_ids[0]].warmup_ns, FIRST[1].warmup_ns
    assert again is not None
    assert driver.served == [(names()[1], 3 * first), (names()[2], 3 * again)]


@pytest.mark.usefixtures("_seconds")
def test_what_is_answered_wrongly_does_not_keep_others_from_being_compared(tmp_path: Path) -> None:
    _, driver, tools = bench(wrong_in=frozenset({"two"}))
    store, executor = session(tmp_path, tools, plan_of(TEXT.replace("60s", "14s")))
    carry_on(store, executor)
    enough_ = store.enough()
    assert enough_ is not None
    assert enough_.why == "budget"
    assert sorted({name for name, _ in driver.served}) == ["one", "three"]
    assert [made.is_complete for made in store.duets()].count(False) == enough_.rounds


@pytest.mark.usefixtures("_seconds")
def test_starts_of_a_request_that_was_given_up_are_not_made_again(tmp_path: Path) -> None:
    launcher, driver, tools = bench(wrong_in=frozenset({"two"}))
    carry_on(*session(tmp_path, tools, plan_of(TEXT.replace("60s", "14s"))))
    starts = launcher.events.count("start")
    store, executor = session(tmp_path, tools)
    carry_on(store, executor)
    assert launcher.events.count("start") == starts
    extend_budget(store, 30 * S)
    carry_on(*session(tmp_path, tools))
    assert launcher.events.count("start") > starts
    assert sorted({name for name, _ in driver.served}) == ["one", "three"]


@pytest.mark.usefixtures("_seconds")
def test_a_wrong_answer_hides_no_failure_to_stop(tmp_path: Path) -> None:
    launcher, _, tools = bench(wrong_in=frozenset({names()[-1]}))
    launcher.stop_errors = [LaunchError("`after` ended with code 3", hint="run it by hand")]
    store, executor = session(tmp_path, tools, plan_of())
    with pytest.raises(DriveError, match=f"answered {names()[-1]} wrongly before any load: status 404; `after` ended"):
        carry_on(store, executor)


@pytest.mark.usefixtures("_seconds")
def test_what_is_answered_wrongly_later_ends_a_comparison_with_its_own_failure(tmp_path: Path) -> None:
    _, _, tools = bench(wrong_in=frozenset({"two"}), wrong_after=frozenset({"three"}))
    store, executor = session(tmp_path, tools, plan_of())
    with pytest.raises(DriveError, match="A answered three wrongly before any load: status 500"):
        carry_on(store, executor)


@pytest.mark.usefixtures("_seconds")
@pytest.mark.parametrize("habit", ["wrong_in", "differs_in"])
def test_the_same_answers_are_asked_of_every_scenario(tmp_path: Path, habit: str) -> None:
    _, _, tools = bench(**{habit: frozenset({"two"})})
    store, executor = session(tmp_path, tools, plan_of(TEXT + "same_answers: true\n"))
    said = "A answered two wrongly" if habit == "wrong_in" else "A and B answer differently: status 200, and 404"
    with pytest.raises(DriveError, match=said):
        carry_on(store, executor)


@pytest.mark.usefixtures("_seconds")
def test_a_comparison_ends_if_nothing_is_answered_rightly(tmp_path: Path) -> None:
    _, driver, tools = bench(wrong_in=frozenset(names()))
    store, executor = session(tmp_path, tools, plan_of(TEXT.replace("60s", "14s")))
    with pytest.raises(DriveError, match=f"A answered {names()[0]} wrongly before any load: status 404"):
        carry_on(store, executor)
    assert driver.served == []
    assert len(tuple(store.duets())) == 3
