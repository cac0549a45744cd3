"""A session of searches: who searches what, in which turns, for how long, and what ends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redline.errors import DriveError, LaunchError, StoreError
from redline.limits.search_state import search_state
from redline.model import AttachedServer, Cell, Manifest, Plan, PlannedTrial, Variant
from redline.running import searching
from redline.running.assembly import Workbench
from redline.running.manifests import Source
from redline.running.searching import SearchSession, _resumed, _SiteSearch
from redline.storage.runs import RunStore
from tests.fakes.recordings import simulated_environment
from tests.fakes.searched import CELL, SECOND, bench_in, plan_of


@dataclass
class Listener:
    """Keeps the turns of a session."""

    turns: list[tuple[int, int, bool, int]] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    @contextmanager
    def cell(self, cell: Cell, number: int, cells: int, *, alone: bool = True, left_ns: int = 0) -> Iterator[str]:
        self.turns.append((number, cells, alone, left_ns))
        yield f"listener of {number}"

    def broken(self, error: Exception) -> None:
        self.errors.append(error)


@dataclass
class FakeSearch:
    """A search that takes so many turns, and may fail in one of them."""

    turns_left: int
    fails: dict[int, BaseException] = field(default_factory=dict)
    stops: BaseException | None = None
    listener: object = None
    heard: list[object] = field(default_factory=list)
    stopped: int = 0

    def turn(self) -> bool:
        self.heard.append(self.listener)
        if (error := self.fails.get(len(self.heard))) is not None:
            raise error
        self.turns_left -= 1
        return self.turns_left > 0

    def stop(self) -> None:
        self.stopped += 1
        if self.stops is not None:
            raise self.stops

    check = turn


def cells(*names: str, scenarios: tuple[str, ...] = ("home",)) -> list[Cell]:
    """A cell for each name and scenario."""
    made = []
    for scenario in scenarios:
        for name in names:
            variant = Variant(entry=AttachedServer(host="127.0.0.1", port=80, label=name))
            of = CELL.scenario.model_copy(update={"name": scenario})
            made.append(CELL.model_copy(update={"variant": variant, "scenario": of}))
    return made


def session_of(tmp_path: Path, made: list[Cell], *, by_probe: bool = False, **changed: Any) -> SearchSession:
    manifest = plan_of(made[0])
    trials = tuple(
        PlannedTrial(cell_id=cell.id, round=round_, position=position, seed=7)
        for position, (round_, cell) in enumerate((round_, cell) for round_ in range(2) for cell in made)
    )
    plan = Plan(suite=manifest.plan.suite, cells={cell.id: cell for cell in made}, trials=trials)
    terms = manifest.terms.model_copy(update={"by_probe": by_probe, **changed.pop("terms", {})})
    manifest = manifest.model_copy(update={"plan": plan, "search": terms, "suite_file": changed.pop("file", "")})
    store = RunStore(tmp_path / "search")
    store.create(manifest)
    bench = Workbench(bench_in(tmp_path / "other").made.tools, simulated_environment(), changed.pop("pairs", ()))
    return SearchSession(store, manifest, bench, Listener(), **changed)  # type: ignore[arg-type]


def site_of(session: SearchSession, searches: list[FakeSearch], **changed: Any) -> _SiteSearch:
    """The searches of a session on this machine, which are fakes."""
    states = [search_state(session.manifest, cell, ()) for cell in session.manifest.plan.cells.values()]
    site = _SiteSearch(session, session.bench.tools, len(states), share=list(enumerate(states, 1)), **changed)
    queue = dict(enumerate(searches, 1))
    numbers = {id(state): number for number, state in site.share}

    def search_on(_self: object, state: object, listener: object) -> FakeSearch:
        made = queue[numbers[id(state)]]
        made.listener = listener
        return made

    object.__setattr__(site, "_search_on", search_on.__get__(site))
    return site


def turns(session: SearchSession) -> list[int]:
    assert isinstance(session.listener, Listener)
    return [number for number, *_ in session.listener.turns]


def errors(session: SearchSession) -> list[Exception]:
    assert isinstance(session.listener, Listener)
    return session.listener.errors


class Clock:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(searching, "time", made)
    return made


def test_the_time_of_a_search_begins_when_it_is_first_asked_for(tmp_path: Path, clock: Clock) -> None:
    session = session_of(tmp_path, cells("a"), terms={"lasts_ns": 60 * SECOND})
    assert session.left_s() == 60
    clock.now_s += 25
    assert session.left_s() == 35
    with session.uncounted():
        clock.now_s += 10
    assert session.left_s() == 35
    assert replace(session, began_s=[90.0]).left_s() == 15


def test_a_search_without_a_limit_has_all_the_time(tmp_path: Path, clock: Clock) -> None:
    session = session_of(tmp_path, cells("a"))
    assert session.left_s() == inf
    clock.now_s += 1e9
    assert session.left_s() == inf


def test_cells_of_a_scenario_and_load_share_a_pair_of_hosts(tmp_path: Path) -> None:
    pairs = tuple(SimpleNamespace(tools=name) for name in ("one", "two"))
    made = cells("a", "b", scenarios=("home", "cart", "list"))
    session = session_of(tmp_path, made, pairs=pairs)
    states = [search_state(session.manifest, cell, ()) for cell in made]
    sites = session._sites(list(enumerate(states, 1)), 6)
    assert [str(site.tools) for site in sites] == ["one", "two"]
    assert [[number for number, _ in site.share] for site in sites] == [[1, 2, 5, 6], [3, 4]]
    assert [site.cells for site in sites] == [6, 6]
    (here,) = replace(session, bench=replace(session.bench, pairs=()))._sites(list(enumerate(states, 1)), 6)
    assert [number for number, _ in here.share] == [1, 2, 3, 4, 5, 6]
    assert here.pair is None


def test_servers_take_turns_until_each_is_done(tmp_path: Path) -> None:
    session = session_of(tmp_path, cells("a", "b"), file="suite.yaml")
    searches = [FakeSearch(1), FakeSearch(3)]
    assert site_of(session, searches).search() is False
    assert turns(session) == [1, 2, 2, 2]
    assert [search.heard for search in searches] == [["listener of 1"], ["listener of 2"] * 3]
    assert [search.stopped for search in searches] == [1, 1]
    assert isinstance(session.listener, Listener)
    assert {(of, alone) for _, of, alone, _ in session.listener.turns} == {(2, True)}
    assert all(left_ns > 0 for *_, left_ns in session.listener.turns)


def test_by_probe_only_cells_of_a_scenario_take_turns(tmp_path: Path) -> None:
    made = cells("a", "b", scenarios=("home", "cart"))
    session = session_of(tmp_path, made, by_probe=True, file="suite.yaml")
    assert site_of(session, [FakeSearch(2) for _ in made]).search() is False
    assert turns(session) == [1, 2, 1, 2, 3, 4, 3, 4]
    other = session_of(tmp_path / "other", made, file="suite.yaml")
    site_of(other, [FakeSearch(2) for _ in made]).search()
    assert turns(other) == [1, 2, 3, 4] * 2


def test_an_interrupt_ends_all_searches_and_stops_their_servers(tmp_path: Path) -> None:
    made = cells("a", "b", scenarios=("home", "cart"))
    session = session_of(tmp_path, made, by_probe=True, file="suite.yaml")
    searches = [FakeSearch(2), FakeSearch(2, {1: KeyboardInterrupt()}), FakeSearch(2), FakeSearch(2)]
    assert site_of(session, searches).search() is True
    assert turns(session) == [1, 2]
    assert [search.stopped for search in searches] == [1, 1, 0, 0]


@pytest.mark.parametrize("error", [DriveError("it broke", hint=""), LaunchError("it ended", hint="", kind="start")])
def test_a_search_that_breaks_leaves_the_others(tmp_path: Path, error: Exception) -> None:
    session = session_of(tmp_path, cells("a", "b"), file="suite.yaml")
    assert site_of(session, [FakeSearch(3, {1: error}), FakeSearch(2)]).search() is False
    assert turns(session) == [1, 2, 2]
    assert errors(session) == [error]


def test_by_probe_a_first_probe_that_fails_leaves_nothing_to_compare(tmp_path: Path) -> None:
    session = session_of(tmp_path, cells("a", "b"), by_probe=True, file="suite.yaml")
    error = DriveError("it broke", hint="")
    assert site_of(session, [FakeSearch(3, {1: error}), FakeSearch(2)]).search() is False
    assert turns(session) == [1]


@pytest.mark.parametrize("lost", [True, False])
def test_a_lost_host_ends_its_share(tmp_path: Path, *, lost: bool) -> None:
    pair = SimpleNamespace(is_lost=lost)
    session = session_of(tmp_path, cells("a", "b"), file="suite.yaml", pairs=(pair, pair))
    error = DriveError("the host is gone", hint="")
    assert site_of(session, [FakeSearch(3, {1: error}), FakeSearch(1)], pair=pair).search() is False
    assert turns(session) == ([1] if lost else [1, 2])
    assert isinstance(session.listener, Listener)
    assert session.listener.turns[0][2] is False, "others are searched beside it"


def test_an_error_after_a_search_is_shown(tmp_path: Path) -> None:
    session = session_of(tmp_path, cells("a"), file="suite.yaml")
    error = LaunchError("it did not stop", hint="", kind="start")
    assert site_of(session, [FakeSearch(1, stops=error)]).search() is False
    assert errors(session) == [error]


def test_running_servers_are_all_asked_before_any_load(tmp_path: Path) -> None:
    session = session_of(tmp_path, cells("a", "b"))
    site = site_of(session, [FakeSearch(9), FakeSearch(9)])
    assert site._are_right()
    assert turns(session) == [1, 2]
    assert isinstance(session.listener, Listener)
    assert [(alone, left_ns) for *_, alone, left_ns in session.listener.turns] == [(True, 0)] * 2


def test_a_wrong_answer_of_one_ends_a_command(tmp_path: Path) -> None:
    session = session_of(tmp_path, cells("a", "b"))
    error = DriveError("it answers wrongly", hint="")
    assert site_of(session, [FakeSearch(9, {1: error}), FakeSearch(9)]).search() is False
    assert turns(session) == [1]
    assert errors(session) == [error]


def test_a_suite_or_a_single_server_is_asked_by_its_search(tmp_path: Path) -> None:
    suite = session_of(tmp_path / "suite", cells("a", "b"), file="suite.yaml")
    assert site_of(suite, [FakeSearch(9), FakeSearch(9)])._are_right()
    one = session_of(tmp_path / "one", cells("a"))
    assert site_of(one, [FakeSearch(9)])._are_right()
    assert turns(suite) == turns(one) == []


def test_a_search_of_its_own_has_what_the_session_has(tmp_path: Path) -> None:
    session = session_of(tmp_path, cells("a"), is_kept=False)
    state = search_state(session.manifest, cells("a")[0], ())
    site = _SiteSearch(session, session.bench.tools, 1)
    made = site._search_on(state, "listener")  # type: ignore[arg-type]
    assert (made.tools, made.state, made.store) == (site.tools, state, session.store)
    assert str(made.listener) == "listener"
    assert made.log_is_kept is False
    assert made.left_s == session.left_s
    assert made.is_over() is False
    site.is_over.set()
    assert made.is_over() is True


def test_recordings_that_cannot_be_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest: Manifest = session_of(tmp_path, cells("a")).manifest
    judged = SimpleNamespace(unused=(), state="state")
    monkeypatch.setattr(searching, "judged_search", lambda *_: judged)
    assert str(_resumed(manifest, CELL, (), ())) == "state"
    judged.unused = ("start-1 is damaged",)
    with pytest.raises(StoreError) as raised:
        _resumed(manifest, CELL, (), ())
    assert raised.value.message == "start-1 is damaged"
    assert "--resume" in raised.value.hint


def test_a_search_is_made_with_its_plan_and_the_time_that_builds_take(tmp_path: Path, clock: Clock) -> None:
    session = session_of(tmp_path, cells("a"))
    built, compared = list[object](), list[object]()

    def build(*_: object) -> object:
        clock.now_s += 30
        built.append("built")
        return SimpleNamespace(unavailable={})

    asked: Any = SimpleNamespace(
        suite=session.manifest.plan.suite,
        terms=session.manifest.terms.model_copy(update={"lasts_ns": 60 * SECOND}),
        plan=lambda _unavailable: session.manifest.plan,
    )

    def create(folder: str, *, file: str = "", pairs: tuple[Any, ...] = (), began_s: float | None = None) -> Any:
        source = Source("redline limit", file, "", "search")
        bench = replace(session.bench, pairs=pairs)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(searching, "build_all", build)
            patched.setattr(searching, "same_builds", lambda *_: compared.append(folder))
            patched.setattr(searching, "new_manifest", lambda *_: session.manifest.with_plan(session.manifest.plan))
            listener: Any = Listener()
            return SearchSession.create(
                asked, source, tmp_path / folder, bench, listener, is_kept=True, began_s=began_s
            )

    made = create("url")
    assert built == ["built"]
    assert compared == ["url"], "servers of a command may be the same bytes"
    assert made.store.manifest().plan == session.manifest.plan
    assert made.began_s == [clock.now_s], "its time begins when all is built"
    before = clock.now_s
    assert create("later", began_s=before - 10).began_s == [before - 10 + 30], "builds take none of it"
    create("suite", file="suite.yaml")
    create("hosts", pairs=(SimpleNamespace(used=()),))
    assert compared == ["url", "later"]


def test_the_directory_of_a_search_is_kept_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    session = session_of(tmp_path, cells("a"))
    state = search_state(session.manifest, cells("a")[0], ())
    site = _SiteSearch(session, session.bench.tools, 1)
    assert site._search_on(state, "listener").log_is_kept is True  # type: ignore[arg-type]
