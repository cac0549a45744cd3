"""A run is created, resumed and extended: what is built, what is refused, and what its listener hears."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, count, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redline.analysis import undecided
from redline.analysis.undecided import Undecided
from redline.errors import BuildError, DriveError, RedlineError, StoreError, UsageError
from redline.model import AutoTrials, Enough, Plan, Skipped, Suite, TouchedFunction, UsedHost, Variant
from redline.model.run import Kind, SameBuilds
from redline.ports import Building, BuildOutcome, Placement
from redline.running import session
from redline.running.assembly import Workbench
from redline.running.manifests import Source
from redline.running.quiet import Quiet
from redline.running.record import Tools
from redline.running.session import (
    RunSession,
    build_all,
    check_left,
    extend_budget,
    leave_cores,
    refuse_other_hosts,
    refuse_other_machine,
    stored_suite,
)
from redline.storage.reading import stored_json
from redline.storage.runs import RunStore, capacity_store
from redline.suite import make_plan
from tests.fakes.catalogues import SUITE as SUITE_TEXT
from tests.fakes.catalogues import suite_of
from tests.fakes.compared import compared_run
from tests.fakes.plugins import FakeDriver, FakeLauncher, QuietListener
from tests.fakes.recordings import simulated_environment, simulated_run, simulated_variant

RUN = simulated_run(trials=2)
SUITE = RUN.manifest.plan.suite
SECOND = 1_000_000_000


@dataclass
class Listener:
    """Keeps what a session told."""

    outcomes: list[BuildOutcome] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    lacking: list[Path] = field(default_factory=list)
    skips: list[Skipped] = field(default_factory=list)
    trial: QuietListener = field(default_factory=QuietListener)
    knew: list[tuple[Undecided, int]] = field(default_factory=list)

    def known(self, known: Undecided, left_ns: int) -> None:
        self.knew.append((known, left_ns))

    @contextmanager
    def building(self) -> Iterator[Callable[[Building], None]]:
        yield lambda _building: None

    def built(self, outcome: BuildOutcome) -> None:
        self.outcomes.append(outcome)

    def part(self, number: int, store: RunStore) -> None:
        self.parts.append(number)

    def lacks(self, first: RunStore) -> None:
        self.lacking.append(first.folder)

    def skipped(self, skipped: Skipped) -> None:
        self.skips.append(skipped)

    @contextmanager
    def trials(self, plan: Plan, done: int) -> Iterator[QuietListener]:
        self.done.append(done)
        yield self.trial


@dataclass
class Launcher(FakeLauncher):
    """Fails to build these servers, and notes what it was asked for."""

    lacks: dict[str, BuildError] = field(default_factory=dict)
    asked: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        slugs = tuple(variant.slug for variant in variants)
        self.asked.append((slugs, builds))
        failures = {slug: self.lacks[slug] for slug in slugs if slug in self.lacks}
        return BuildOutcome(hashes={slug: "abc" for slug in slugs if slug not in failures}, failures=failures)


def bench_of(launcher: Launcher) -> Workbench:
    return Workbench(Tools(launcher, FakeDriver([]), lambda _server: (), Placement()), simulated_environment())


SOURCE = Source("redline run suite.yaml", "suite.yaml", "name: x", "run")


def created(folder: Path, listener: Listener, launcher: Launcher, suite: Suite = SUITE) -> RunSession:
    return RunSession.create(suite, SOURCE, folder, bench_of(launcher), listener)  # type: ignore[arg-type]


def names(suite: Suite = SUITE) -> list[str]:
    variants = suite.variants if suite.ceiling is None else (*suite.variants, suite.ceiling)
    return [variant.slug for variant in variants]


def test_every_server_and_the_ceiling_is_built_once() -> None:
    listener, launcher = Listener(), Launcher([])
    assert SUITE.ceiling is not None
    outcome = build_all(SUITE, launcher, listener)  # type: ignore[arg-type]
    assert launcher.asked == [(tuple(names()), 1)]
    assert listener.outcomes == [outcome]
    assert [*outcome.hashes] == names()
    build_all(SUITE, launcher, listener, tells=False)  # type: ignore[arg-type]
    assert listener.outcomes == [outcome]


def test_only_wanted_servers_are_built_and_the_ceiling_once_of_several_builds() -> None:
    listener, launcher = Listener(), Launcher([])
    first, *_, ceiling = names()
    build_all(SUITE, launcher, listener, {first})  # type: ignore[arg-type]
    assert launcher.asked == [((first,), 1)]
    launcher.asked.clear()
    outcome = build_all(SUITE.model_copy(update={"builds": 3}), launcher, listener)  # type: ignore[arg-type]
    assert launcher.asked == [(tuple(names()[:-1]), 3), ((ceiling,), 1)]
    assert [*outcome.hashes] == [ceiling, *names()[:-1]]
    launcher.asked.clear()
    alone = SUITE.model_copy(update={"builds": 3, "ceiling": None})
    build_all(alone, launcher, listener)  # type: ignore[arg-type]
    assert launcher.asked == [(tuple(names(alone)), 3)]


def test_a_new_run_has_a_manifest_and_tells_what_was_built(tmp_path: Path) -> None:
    listener = Listener()
    made = created(tmp_path / "run", listener, Launcher([]))
    manifest = made.store.manifest()
    assert manifest.plan.suite == SUITE
    assert manifest.plan.steps
    assert len(listener.outcomes) == 1
    assert made.unavailable == {}
    with pytest.raises(StoreError):
        created(tmp_path / "run", listener, Launcher([]))


def test_a_server_that_cannot_be_built_is_skipped_with_its_reason(tmp_path: Path) -> None:
    lost = names()[0]
    launcher = Launcher([], lacks={lost: BuildError("there is no compiler", hint="")})
    made = created(tmp_path / "run", Listener(), launcher)
    assert made.unavailable == {lost: "there is no compiler"}
    plan = made.store.manifest().plan
    assert lost not in {cell.variant.slug for cell in plan.cells.values() if cell.role == "subject"}
    assert "there is no compiler" in {skipped.reason for skipped in plan.skipped}


def test_where_no_server_can_be_built_nothing_is_left(tmp_path: Path) -> None:
    launcher = Launcher([], lacks={slug: BuildError("there is no compiler", hint="") for slug in names()})
    with pytest.raises(RedlineError) as raised:
        created(tmp_path / "run", Listener(), launcher)
    assert raised.value.message == "nothing is left to run: there is no compiler"
    assert not (tmp_path / "run").exists()


def test_a_folder_with_a_capacity_is_not_begun_again(tmp_path: Path) -> None:
    capacity_store(tmp_path / "run").create(RUN.manifest)
    with pytest.raises(StoreError) as raised:
        created(tmp_path / "run", Listener(), Launcher([]))
    assert raised.value.exit_code == 2
    assert f"resume it with: redline run --resume {tmp_path / 'run'};" in str(raised.value.hint)
    assert stored_suite(tmp_path / "run") == RUN.manifest.plan.suite


def resumed(store: RunStore, listener: Listener, launcher: Launcher, **more: int) -> RunSession:
    return RunSession.resume(store.folder, lambda _manifest: bench_of(launcher), listener, **more)  # type: ignore[arg-type]


def stored(folder: Path) -> RunStore:
    store = RunStore(folder)
    store.create(RUN.manifest)
    return store


def test_a_resumed_run_builds_what_it_planned(tmp_path: Path) -> None:
    listener, launcher = Listener(), Launcher([])
    store = stored(tmp_path / "run")
    made = resumed(store, listener, launcher)
    planned = {cell.variant.slug for cell in RUN.manifest.plan.cells.values()}
    ((built, _),) = launcher.asked
    assert set(built) == planned
    assert made.store.folder == store.folder
    assert store.manifest().plan == RUN.manifest.plan


def test_a_run_is_resumed_with_more_trials(tmp_path: Path) -> None:
    store = stored(tmp_path / "run")
    resumed(store, Listener(), Launcher([]), trials=4)
    assert store.manifest().plan.suite.trials == 4
    for trials, hint in ((4, "8"), (1, "8")):
        with pytest.raises(UsageError, match="adds nothing") as raised:
            resumed(store, Listener(), Launcher([]), trials=trials)
        assert hint in raised.value.hint


def test_a_run_that_was_not_planned_yet_takes_no_more_trials(tmp_path: Path) -> None:
    capacity_store(tmp_path / "run").create(RUN.manifest)
    launcher = Launcher([])
    with pytest.raises(UsageError, match="no further than its capacity"):
        resumed(RunStore(tmp_path / "run"), Listener(), launcher, trials=4)
    with pytest.raises(UsageError, match="no further than its capacity") as raised:
        resumed(RunStore(tmp_path / "run"), Listener(), Launcher([]), budget_ns=SECOND)
    assert raised.value.hint == "resume it without --for first"
    ((built, _),) = launcher.asked
    assert list(built) == names(), "its second part may need all of them"


def timed(**changed: object) -> Plan:
    plan = compared_run(starts=2).manifest.plan
    auto = AutoTrials.model_validate({"at_least": 1, "budget_ns": 60 * SECOND, **changed})
    return plan.model_copy(update={"suite": plan.suite.model_copy(update={"auto": auto})})


def comparison(folder: Path, plan: Plan) -> RunStore:
    store = RunStore(folder)
    store.create(compared_run(starts=2).manifest.with_plan(plan))
    return store


@pytest.mark.parametrize(("seconds", "longer"), [(60, False), (61, True), (59, False)])
def test_a_comparison_takes_a_longer_budget(tmp_path: Path, seconds: int, *, longer: bool) -> None:
    store = comparison(tmp_path / "run", timed())
    store.save_enough(Enough(rounds=2, why="budget"))
    if longer:
        extend_budget(store, seconds * SECOND)
        auto = store.manifest().plan.suite.auto
        assert auto is not None
        assert auto.budget_ns == seconds * SECOND
        assert store.enough() is None
        return
    with pytest.raises(UsageError, match="adds nothing to the 1 min") as raised:
        extend_budget(store, seconds * SECOND)
    assert "120s" in raised.value.hint
    assert store.enough() is not None


@pytest.mark.parametrize("changed", [{"budget_ns": None, "precision": 0.05}, {"precision": 0.05}])
def test_what_has_no_time_to_fill_takes_no_budget(tmp_path: Path, changed: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="has no time to fill"):
        extend_budget(comparison(tmp_path / "run", timed(**changed)), 90 * SECOND)


def test_a_run_of_fixed_trials_takes_no_budget(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no time to fill") as raised:
        extend_budget(stored(tmp_path / "a run"), 90 * SECOND)
    assert raised.value.hint == f"add rounds with: redline run --resume '{tmp_path}/a run' --trials 4"


def test_a_comparison_that_fills_a_time_takes_no_trials(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ends by itself when its time is over") as raised:
        resumed(comparison(tmp_path / "run", timed()), Listener(), Launcher([]), trials=80)
    assert raised.value.hint == f"give it more: redline ab --resume {tmp_path / 'run'} --for TIME"


def test_a_run_without_a_valid_capacity_says_how_it_gets_more_trials(tmp_path: Path) -> None:
    made = created(tmp_path / "run", Listener(), Launcher([]), suite_of(tmp_path, TWO_PARTS))
    refusing = FakeDriver([], error=DriveError("it refuses", hint=""))
    with pytest.raises(RedlineError, match="nothing is left to run") as raised:
        replace(made, bench=replace(made.bench, tools=replace(made.bench.tools, driver=refusing))).execute()
    assert raised.value.hint.endswith(f"redline run --resume {tmp_path / 'run' / 'capacity'} --trials 4")


def test_servers_behind_urls_have_one_start(tmp_path: Path) -> None:
    plan = timed()
    once = plan.model_copy(update={"duets": tuple(duet for duet in plan.duets if duet.round == 0)})
    with pytest.raises(UsageError, match="have one start"):
        extend_budget(comparison(tmp_path / "run", once), 90 * SECOND)
    twice = timed(at_least=2)
    again = twice.model_copy(update={"duets": tuple(duet for duet in twice.duets if duet.round == 0)})
    extend_budget(comparison(tmp_path / "other", again), 90 * SECOND)


def test_another_engine_or_machine_is_refused() -> None:
    here = simulated_environment()
    refuse_other_machine(here, here, "this run")
    for name in ("engine_sha256", "hostname", "cores", "server_cpus", "engine_cpus"):
        other = here.model_copy(update={name: (1, 2, 3) if "cpus" in name else 99 if name == "cores" else "another"})
        with pytest.raises(RedlineError, match=f"this run was begun with another {name.replace('_', ' ')}: "):
            refuse_other_machine(here, other, "this run")


def used(role: str, name: str) -> UsedHost:
    facts = {"role": role, "name": name, "address": "10.0.0.1", "environment": simulated_environment()}
    return UsedHost.model_validate(facts)


def test_other_hosts_are_refused_by_name() -> None:
    a, b, c = used("server", "a"), used("load", "b"), used("load", "c")
    refuse_other_hosts((a, b), (b, a))
    refuse_other_hosts((), ())
    with pytest.raises(RedlineError, match="was begun on hosts of a cluster"):
        refuse_other_hosts((a, b), ())
    with pytest.raises(RedlineError, match="was begun on other hosts: b, c differ"):
        refuse_other_hosts((a, b), (a, c))
    with pytest.raises(RedlineError, match="other hosts: a differ"):
        refuse_other_hosts((a,), (used("load", "a"),))


def test_a_plan_with_nothing_to_run_gives_each_reason_once() -> None:
    plan = RUN.manifest.plan
    check_left(plan, "run", "h")
    skipped = tuple(Skipped(slug=slug, reason=reason) for slug, reason in (("a", "y"), ("b", "x"), ("c", "y")))
    with pytest.raises(RedlineError) as raised:
        check_left(plan.model_copy(update={"trials": (), "duets": (), "skipped": skipped}), "search", "do that")
    assert (raised.value.message, raised.value.hint) == ("nothing is left to search: x; y", "do that")


def test_the_lab_leaves_the_cores_of_server_and_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = list[tuple[int, object]]()
    monkeypatch.setattr(session.os, "sched_setaffinity", lambda pid, cpus: moved.append((pid, cpus)))
    bench = bench_of(Launcher([]))
    leave_cores(bench)
    assert moved == []
    placed = replace(bench.tools, placement=replace(bench.tools.placement, lab_cpus=(3,)))
    leave_cores(replace(bench, tools=placed))
    assert moved == [(0, (3,))]


def test_a_run_is_executed_and_its_report_written(tmp_path: Path) -> None:
    listener = Listener()
    made = created(tmp_path / "run", listener, Launcher([]))
    end = made.execute()
    assert not end.interrupted
    ((store, report),) = end.parts
    assert store.folder == tmp_path / "run"
    assert len(report.cells) == len(store.manifest().plan.cells)
    planned = [trial.position for trial in store.manifest().plan.trials]
    assert listener.trial.ended == planned
    assert (listener.done, listener.parts) == ([0], [])
    again = resumed(store, listener, Launcher([])).execute()
    assert not again.interrupted
    assert listener.done == [0, len(planned)]
    assert listener.trial.ended == planned, "nothing is run twice"


def test_an_interrupt_ends_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    made = created(tmp_path / "run", Listener(), Launcher([]))
    driver = FakeDriver([], error=KeyboardInterrupt())
    end = replace(made, bench=replace(made.bench, tools=replace(made.bench.tools, driver=driver))).execute()
    assert end.interrupted
    assert made.store.positions() == set()
    assert simulated_variant().slug in names()


TWO_PARTS = f"{SUITE_TEXT}  half: {{open: {{rate: 50% of saturate}}, for: 1s}}\ntrials: 2\n"


def test_a_run_with_shares_of_a_capacity_has_two_parts(tmp_path: Path) -> None:
    suite, listener = suite_of(tmp_path, TWO_PARTS), Listener()
    made = created(tmp_path / "run", listener, Launcher([]), suite)
    first = capacity_store(tmp_path / "run")
    assert (first.exists, made.store.exists) == (True, False)
    assert {cell.load.name for cell in first.manifest().plan.cells.values()} == {"saturate"}
    assert first.manifest().name == f"run/{first.folder.name}"
    interrupted = FakeDriver([], error=KeyboardInterrupt())
    end = replace(made, bench=replace(made.bench, tools=replace(made.bench.tools, driver=interrupted))).execute()
    assert (end.interrupted, listener.parts, made.store.exists) == (True, [1], False)
    assert [store.folder for store, _ in end.parts] == [first.folder]
    end = made.execute()
    assert not end.interrupted
    assert listener.parts == [1, 1, 2]
    assert [store.folder for store, _ in end.parts] == [first.folder, made.store.folder]
    assert made.store.run().complete
    assert listener.skips == []
    again = made.execute()
    assert listener.parts == [1, 1, 2, 2], "the capacity is not measured again"
    assert (again.interrupted, len(again.parts), listener.lacking) == (False, 2, [])
    next((first.folder / "recordings").iterdir()).unlink()
    made.execute()
    assert (listener.parts[-2:], listener.lacking) == ([2, 2], [first.folder])
    assert (
        RunSession.resume(
            made.store.folder,
            lambda _manifest: made.bench,
            listener,  # type: ignore[arg-type]
        ).store.folder
        == made.store.folder
    )


def test_the_second_part_of_a_run_knows_what_its_range_of_commits_touches(tmp_path: Path) -> None:
    made = created(tmp_path / "run", Listener(), Launcher([]), suite_of(tmp_path, TWO_PARTS))
    first, touched = capacity_store(tmp_path / "run"), (TouchedFunction(name="read", file="read.py"),)
    first.write("run.json", stored_json(first.manifest().of_range(touched)))
    made.execute()
    assert made.store.manifest().touched == touched


def test_logs_of_a_run_can_be_read_unless_its_directory_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, executor = list[bool](), Workbench.executor

    def noted(bench: Workbench, *of: Any, log_is_kept: bool, **others: Any) -> Any:
        asked.append(log_is_kept)
        return executor(bench, *of, log_is_kept=log_is_kept, **others)

    monkeypatch.setattr(Workbench, "executor", noted)
    created(tmp_path / "one", Listener(), Launcher([])).execute()
    created(tmp_path / "other", Listener(), Launcher([])).execute(is_kept=False)
    assert asked == [True, False]


def test_each_profile_that_cannot_be_made_is_looked_for_once(tmp_path: Path) -> None:
    looked = list[str]()

    class Profilers:
        def missing(self, variant: Variant, profile: str, tell: Callable[[str], None]) -> str:
            looked.append(f"{variant.slug} {profile}")
            tell("fetching it")
            return "" if profile == "engine" else "there is no perf"

    suite = suite_of(tmp_path, f"{SUITE_TEXT}  more: {{closed: {{users: 2}}, for: 1s}}\nprofile: [cpu, engine]\n")
    plan, listener = make_plan(suite), Listener()
    bench = bench_of(Launcher([]))
    assert session._profilable(plan, bench, listener) is plan  # type: ignore[arg-type]
    bench = replace(bench, tools=replace(bench.tools, profilers=Profilers()))  # type: ignore[arg-type]
    made = session._profilable(plan, bench, listener)  # type: ignore[arg-type]
    slugs = sorted({cell.variant.slug for cell in plan.cells.values()})
    assert sorted(looked) == [f"{slug} {kind}" for slug in slugs for kind in ("cpu", "engine")]
    assert {trial.profile for trial in made.profiled} == {"engine"}
    assert [skipped.reason for skipped in listener.skips] == ["there is no perf"] * 2
    plain = make_plan(suite_of(tmp_path, SUITE_TEXT))
    assert session._profilable(plain, bench, listener) is plain  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "pairs", "looks"), [("comparison", 0, True), ("run", 0, False), ("comparison", 2, False)]
)
def test_revisions_of_a_comparison_on_this_machine_may_be_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, pairs: int, *, looks: bool
) -> None:
    looked = list[Plan]()
    monkeypatch.setattr(session, "same_builds", lambda plan, _built, _tools: looked.append(plan))
    source = replace(SOURCE, kind=kind)
    bench = replace(bench_of(Launcher([])), pairs=(SimpleNamespace(used=()),) * pairs)
    made = RunSession.create(SUITE, source, tmp_path / "run", bench, Listener())  # type: ignore[arg-type]
    assert bool(looked) is looks
    assert made.store.manifest().kind == kind


def test_revisions_of_the_same_bytes_are_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same = SameBuilds(servers=("a", "b"), files=3)
    monkeypatch.setattr(session, "same_builds", lambda _plan, _built, _tools: same)
    source, listener = replace(SOURCE, kind="comparison"), Listener()
    made = RunSession.create(SUITE, source, tmp_path / "run", bench_of(Launcher([])), listener)  # type: ignore[arg-type]
    written = list[tuple[RunStore, bool]]()
    monkeypatch.setattr("redline.running.write_run_views", lambda store, *, is_kept: written.append((store, is_kept)))
    assert not made.execute().interrupted
    assert written == [(made.store, True)]
    assert made.store.manifest().same == same
    assert not made.store.positions()


def started(monkeypatch: pytest.MonkeyPatch, folder: Path, seconds_each: int = 100) -> tuple[RunSession, Listener]:
    """A session of a suite with a baseline, by a clock that shows so much more at each look."""
    clock = count(0, seconds_each * SECOND)
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic_ns=lambda: next(clock)))
    listener = Listener()
    return created(folder, listener, Launcher([])), listener


def test_a_run_goes_on_with_what_is_not_sure_until_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undecided, "SURE_P", -1.0)
    run, listener = started(monkeypatch, tmp_path / "run")
    planned = run.store.manifest().plan
    end = run.execute(more_ns=260 * SECOND)
    lefts = [left_ns // SECOND for _, left_ns in listener.knew]
    assert lefts == [260, 160, 60, -40]
    plan = run.store.manifest().plan
    first, second, third, _ = [known.groups for known, _ in listener.knew]
    made = Counter(step.round for step in plan.steps if step not in planned.steps)
    assert [made[SUITE.trials], made[SUITE.trials + 1]] == [len(first), len(second)]
    assert 0 < made[SUITE.trials + 2] < len(third), "there is time for a pair of trials, and not for two"
    assert run.store.run().complete, "each round is planned when it begins"
    assert end.undecided == listener.knew[-1][0]
    assert not end.interrupted


def test_a_run_in_which_all_is_sure_leaves_the_rest_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, listener = started(monkeypatch, tmp_path / "run")
    run.execute(more_ns=10_000 * SECOND)
    assert [(known.groups == (), left_ns // SECOND) for known, left_ns in listener.knew] == [
        (False, 10_000),
        (True, 9_900),
    ]


def test_a_run_whose_time_is_not_enough_for_a_start_ends_as_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, listener = started(monkeypatch, tmp_path / "run")
    planned = run.store.manifest().plan
    run.execute(more_ns=1)
    assert len(listener.knew) == 1
    assert run.store.manifest().plan == planned


def test_time_spent_on_waiting_for_a_quiet_machine_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, listener = started(monkeypatch, tmp_path / "run")
    looks = chain([(0.0, 0.9)], repeat((0.0, 0.0)))
    clock = count(0.0, 10.0)
    quiet = Quiet(3600.0, lambda _seconds: next(looks), lambda: next(clock))
    run.execute(more_ns=150 * SECOND, quiet=quiet)
    assert quiet.waited_s > 0
    assert [left_ns // SECOND for _, left_ns in listener.knew] == [150, 50]
    assert listener.trial.waits


def test_an_interrupted_round_ends_the_further_starts_and_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, listener = started(monkeypatch, tmp_path / "run")
    run.execute()
    made, executor = len(run.store.positions()), Workbench.executor

    def interrupted(bench: Workbench, *of: Any, **others: Any) -> Any:
        def stops() -> None:
            if len(run.store.positions()) > made:
                raise KeyboardInterrupt

        return executor(bench, *of, **others | {"before": stops})

    with monkeypatch.context() as patched:
        patched.setattr(Workbench, "executor", interrupted)
        assert run.execute(more_ns=1000 * SECOND).interrupted
    assert len(run.store.positions()) == made + 1
    assert not run.store.run().complete
    assert not run.execute().interrupted
    assert run.store.run().complete
    assert len(listener.knew) == 2
