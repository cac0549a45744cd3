"""The tools of a session: what a suite needs of this machine, or of a cluster."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redline import running
from redline.driving.engine import EngineDriver
from redline.errors import UsageError
from redline.files import user_cache
from redline.launching.attached import processes_of
from redline.model import AttachedServer, Suite, UsedHost, Variant
from redline.model.variant import Route
from redline.ports import Placement
from redline.running import assembly
from redline.running.assembly import Workbench, Workplace, builds_servers, workbench
from redline.running.record import Tools
from redline.watching.process_tree import ProcessTreeMonitor
from tests.fakes.compared import compared_run
from tests.fakes.plugins import FACTS, FakeDriver, FakeLauncher, FakeServer, QuietListener
from tests.fakes.recordings import simulated_environment, simulated_run, simulated_variant

RUN = simulated_run(trials=2)
PLAN = RUN.manifest.plan
ATTACHED = Variant(entry=AttachedServer(host="127.0.0.1", port=80))
HERE = Workbench(Tools(FakeLauncher([]), FakeDriver([]), lambda _server: (), Placement()), simulated_environment())


def suite(*variants: Variant, **changed: Any) -> Suite:
    return PLAN.suite.model_copy(update={"variants": variants, "ceiling": None, "baseline": None, **changed})


def own(launcher: str = "", *, built: bool = True) -> Variant:
    variant = simulated_variant()
    changed: dict[str, object] = {"launcher": launcher or None}
    if not built:
        changed["build"] = None
    return variant.model_copy(update={"entry": variant.entry.model_copy(update=changed)})


def test_a_suite_builds_servers_of_a_catalogue_proxies_and_ceiling_included() -> None:
    assert builds_servers(suite(own()))
    assert not builds_servers(suite(own(built=False)))
    assert not builds_servers(suite(ATTACHED))
    assert builds_servers(suite(ATTACHED, ceiling=own()))
    assert builds_servers(suite(ATTACHED, own()))
    assert builds_servers(suite(BEHIND))


def test_the_launchers_of_packages_are_those_that_servers_name() -> None:
    assert assembly._launchers(suite(own(), ATTACHED)) == set()
    assert assembly._launchers(suite(own("vm"), own("vm"), ATTACHED, ceiling=own("pod"))) == {"vm", "pod"}


ROUTE = Route(name="edge", hops=(own(),), legs=("h1", "h1"))
BEHIND = ATTACHED.model_copy(update={"route": ROUTE})
"""A server that runs already, behind a proxy of the catalogue."""


class Pair:
    """A pair of hosts that notes its interrupts."""

    def __init__(self, name: str) -> None:
        facts = {"address": "10.0.0.1", "environment": simulated_environment()}
        self.used = tuple(UsedHost.model_validate({"role": role, "name": name, **facts}) for role in ("server", "load"))
        self.interrupts = 0

    def interrupt(self) -> None:
        self.interrupts += 1


def with_pairs(*pairs: Pair) -> Workbench:
    return Workbench(HERE.tools, HERE.environment, pairs)  # type: ignore[arg-type]


def test_every_pair_of_hosts_is_interrupted() -> None:
    pairs = Pair("a"), Pair("b")
    bench = with_pairs(*pairs)
    bench.interrupt()
    assert [pair.interrupts for pair in pairs] == [1, 1]
    assert [host.name for host in bench.hosts] == ["a", "a", "b", "b"]
    assert HERE.hosts == ()


def test_trials_run_here_or_on_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = QuietListener()
    local = HERE.executor(PLAN, None, listener, log_is_kept=False)  # type: ignore[arg-type]
    assert isinstance(local, running.LocalExecutor)
    asked = list[tuple[object, ...]]()
    hosts = SimpleNamespace(HostsExecutor=lambda *arguments: asked.append(arguments))
    monkeypatch.setattr(assembly, "hosts_by_name", lambda: hosts)
    bench = with_pairs(Pair("a"))
    bench.executor(PLAN, None, listener)  # type: ignore[arg-type]
    assert asked == [(PLAN, bench.pairs, None, listener)]


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """What makes the tools of a suite, with an engine that is not asked."""
    monkeypatch.setattr(assembly, "find_engine", lambda: tmp_path / "engine")
    monkeypatch.setattr(assembly, "plan_placement", lambda: Placement(engine_cpus=(1,)))
    monkeypatch.setattr(assembly, "environment_of", lambda *_: simulated_environment())
    with ExitStack() as stack:
        yield lambda of: workbench(of, tmp_path / "catalogue", tmp_path / "cache", stack).tools


def test_cores_are_divided_where_anything_is_started_or_compared(tools: Any) -> None:
    assert tools(suite(own())).placement == Placement(engine_cpus=(1,))
    assert tools(suite(ATTACHED)).placement == Placement()
    assert tools(suite(own(), ATTACHED)).placement.engine_cpus == (1,)
    assert tools(suite(BEHIND)).placement.engine_cpus == (1,)
    duets = compared_run().manifest.plan.suite
    assert duets.has_duets
    assert tools(duets.model_copy(update={"variants": (ATTACHED,)})).placement.engine_cpus == (1,)


def test_a_suite_has_profilers_and_a_driver_of_its_own_where_it_names_them(
    tools: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = list[tuple[str, str]]()

    def extra(name: str, wanted: str) -> Any:
        asked.append((name, wanted))
        return lambda cache: (name, cache)

    monkeypatch.setattr(assembly, "extra", extra)
    plain = tools(suite(own()))
    assert plain.profilers is None
    assert isinstance(plain.driver, EngineDriver)
    assert plain.processes is processes_of
    assert tools(suite(own(), profile=("cpu",))).profilers == ("profilers", tmp_path / "cache")
    assert asked == [("profilers", "--profile")]
    monkeypatch.setattr(assembly.driving, "own_driver", lambda name, engine: (name, engine))
    name, engine = tools(suite(own(), driver="other")).driver
    assert name == "other"
    assert isinstance(engine, EngineDriver)


def place(address: str | None = None, **changed: Any) -> Workplace:
    def places(_file: Path) -> tuple[Path, Path]:
        return Path("of-the-suite"), Path("cache")

    return Workplace(address, ExitStack(), places, **changed)


def test_a_suite_on_this_machine_gets_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[object, ...]]()

    def made(*arguments: object) -> Workbench:
        asked.append(arguments)
        return HERE

    monkeypatch.setattr(assembly, "workbench", made)
    usage = lambda *_: None  # noqa: E731
    here = place(on_usage=usage)
    built, attached = suite(own()), suite(ATTACHED)
    assert here.bench(Path("s.yaml"), built).tools.on_usage is usage
    assert here.bench(Path("s.yaml"), attached).tools.on_usage is usage
    assert [arguments[:3] for arguments in asked] == [
        (built, Path("of-the-suite"), Path("cache")),
        (attached, Path("catalogue"), user_cache()),
    ]
    assert {arguments[4] for arguments in asked} == {here.glance}
    bench, fitted, changes = here.prepare(Path("s.yaml"), built)
    assert (bench.pairs, fitted, changes) == ((), built, ())


@pytest.mark.parametrize(("hosts", "refused"), [(1, False), (2, True)])
def test_several_load_hosts_need_a_cluster(hosts: int, monkeypatch: pytest.MonkeyPatch, *, refused: bool) -> None:
    monkeypatch.setattr(assembly, "workbench", lambda *_: HERE)
    wanted = suite(own(), load_hosts=hosts)
    if not refused:
        assert place().bench(Path("s.yaml"), wanted).pairs == ()
        return
    with pytest.raises(UsageError, match="is for 2 load hosts") as raised:
        place().bench(Path("s.yaml"), wanted)
    assert "--on ADDRESS" in raised.value.hint


def test_a_cluster_has_pairs_of_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = (Pair("a"), Pair("b"))
    there = with_pairs(*pairs)
    asked = list[tuple[object, ...]]()

    def connect(*arguments: object) -> tuple[Pair, ...]:
        asked.append(arguments)
        return pairs

    hosts = SimpleNamespace(connect=connect, on_hosts=lambda *arguments: there if arguments[0] is pairs else None)
    monkeypatch.setattr(assembly, "hosts_by_name", lambda: hosts)
    cluster, wanted = place("10.0.0.1:1"), suite(own(), load_hosts=1)
    bench, fitted, changes = cluster.prepare(Path("s.yaml"), wanted)
    assert bench is there
    assert (fitted, changes) == (wanted, ())
    assert asked == [("10.0.0.1:1", wanted, cluster.stack)]


def test_what_runs_behind_a_url_is_resumed_from_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "workbench", lambda *_: HERE)
    url = RUN.manifest.model_copy(update={"suite_file": ""})
    file = RUN.manifest.model_copy(update={"suite_file": "s.yaml"})
    assert place().bench_for(url).environment == HERE.environment
    assert place().bench_for(file).environment == HERE.environment
    with pytest.raises(UsageError, match="was searched from here"):
        place("10.0.0.1:1").bench_for(url)
    pairs = (Pair("a"),)
    hosts = SimpleNamespace(connect=lambda *_: pairs, on_hosts=lambda *_: with_pairs(*pairs))
    monkeypatch.setattr(assembly, "hosts_by_name", lambda: hosts)
    assert len(place("10.0.0.1:1").bench_for(file).pairs) == 1


def test_a_turn_is_held_until_the_end() -> None:
    held = list[str]()

    @contextmanager
    def turn() -> Iterator[None]:
        held.append("begun")
        yield
        held.append("ended")

    here = place(turn=turn)
    with here.stack:
        here.take_turn()
        assert held == ["begun"]
    assert held == ["begun", "ended"]


def monitors_of(made: list[dict[str, Any]], *servers: FakeServer) -> list[dict[str, Any]]:
    made.clear()
    assert len(assembly._duet_monitors(servers)) == len(servers)
    return list(made)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of monitors."""
    seen = list[dict[str, Any]]()
    monkeypatch.setattr(assembly, "ProcessTreeMonitor", lambda **arguments: seen.append(arguments))
    return seen


def test_the_first_monitor_of_a_duet_watches_the_machine(made: list[dict[str, Any]]) -> None:
    started = [FakeServer(facts=FACTS.model_copy(update={"pid": pid})) for pid in (1, 2, 3)]
    assert monitors_of(made, *started) == [
        {"peer": None, "listens_at": None, "known": (2, 3)},
        *[{"machine": False, "listens_at": None}] * 2,
    ]
    ran, own_one = FakeServer(facts=None), started[1]
    at = ran.endpoint.address
    assert monitors_of(made, own_one, ran, own_one) == [
        {"peer": at, "listens_at": None, "known": (2,)},
        {"machine": False, "listens_at": at},
        {"machine": False, "listens_at": None},
    ]


def test_a_server_that_runs_already_is_the_peer_of_its_monitor(made: list[dict[str, Any]]) -> None:
    ran = FakeServer(facts=None)
    assembly._monitors_of(ran)
    assembly._monitors_of(FakeServer())
    at = ran.endpoint.address
    assert made == [{"peer": at, "listens_at": at}, {"peer": None, "listens_at": None}]
    assert ProcessTreeMonitor is not assembly.ProcessTreeMonitor
