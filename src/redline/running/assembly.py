"""Put the tools for trials together, on this machine or other hosts."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from redline import driving, running, watching
from redline.driving.engine import EngineDriver
from redline.driving.engine_process import check_version, find_engine
from redline.entry_points import extra
from redline.errors import UsageError
from redline.files import user_cache
from redline.launching.attached import processes_of
from redline.launching.ownership import watch
from redline.launching.route import RouteLauncher
from redline.launching.servers import ServersLauncher
from redline.lazily import dataclass
from redline.model import Cell, Environment, Manifest, Plan, ServerEntry, Suite, UsedHost
from redline.model.traffic import Phase
from redline.ports import Executor, Placement, Profilers, RunningServer, ServerUsage
from redline.running.host_pair import HostPair
from redline.running.own_monitors import own_monitors
from redline.running.record import Tools
from redline.running.trial import TrialListener
from redline.storage.runs import RunStore
from redline.suite.fitting import Hosts, fitted
from redline.watching.machine import MachineGlance, plan_placement, read_environment
from redline.watching.process_tree import ProcessTreeMonitor
from redline.wording import part


@dataclass(frozen=True)
class Workbench:
    """The tools of a run, and the environment in which they were created. With `pairs`, trials run on other hosts."""

    tools: Tools
    environment: Environment
    pairs: tuple[HostPair, ...] = ()

    def executor(
        self,
        plan: Plan,
        store: RunStore,
        listener: TrialListener,
        *,
        log_is_kept: bool = True,
        before: Callable[[], None] = lambda: None,
    ) -> Executor:
        """Return the executor of a plan. `log_is_kept` says whether users can read the logs afterwards.

        It calls `before` each start on this machine.
        """
        if self.pairs:
            there: Executor = hosts_by_name().HostsExecutor(plan, self.pairs, store, listener)
            return there
        return running.LocalExecutor(plan, self.tools, store, listener, log_is_kept, before)

    def interrupt(self) -> None:
        """End the loads that run on other hosts early."""
        for pair in self.pairs:
            pair.interrupt()

    @property
    def hosts(self) -> tuple[UsedHost, ...]:
        """The other hosts."""
        return tuple(host for pair in self.pairs for host in pair.used)


def _launchers(suite: Suite) -> set[str]:
    """Return the names of the launchers of other packages that a suite needs."""
    servers = suite.variants if suite.ceiling is None else (*suite.variants, suite.ceiling)
    return {it.entry.launcher for it in servers if isinstance(it.entry, ServerEntry) and it.entry.launcher}


def builds_servers(suite: Suite) -> bool:
    """Whether a suite has servers or proxies of a catalogue."""
    servers = suite.variants if suite.ceiling is None else (*suite.variants, suite.ceiling)
    entries = (placed.entry for variant in servers for placed in (variant, *variant.hops))
    return any(isinstance(entry, ServerEntry) and entry.build is not None for entry in entries)


def _profilers(suite: Suite, cache: Path) -> Profilers | None:
    """Load the profilers that a suite needs, which are no core. Raises UsageError where they are absent."""
    if not suite.profile and not suite.why:
        return None
    profilers: Profilers = extra("profilers", part("profile") if suite.profile else part("why"))(cache)
    return profilers


def hosts_by_name() -> Any:
    """Load what knows other hosts, which is no core. Raises UsageError where it is absent."""
    return extra("hosts", part("on"))


def _tools(suite: Suite, catalogue: Path, cache: Path, stack: ExitStack) -> tuple[Tools, EngineDriver]:
    """Return the tools on this machine; `stack` removes worktrees of revisions, and services that stay up.

    Raises DriveError without an engine, and UsageError for what no package brings.
    """
    own, driver = own_monitors(suite.monitors), EngineDriver(find_engine())
    # If nothing is started, the load gets all cores; in a duet they are divided as usual.
    is_given = suite.has_duets or any(not variant.is_attached or variant.hops for variant in suite.variants)
    launcher = ServersLauncher(catalogue, cache, stack, _launchers(suite))
    tools = Tools(
        launcher=RouteLauncher(launcher),
        driver=driver if suite.driver is None else driving.own_driver(suite.driver, driver),
        monitors=lambda server: (*_monitors_of(server), *own(server)),
        placement=plan_placement() if is_given else Placement(),
        processes=processes_of,
        fixed_work_ns=driver.fixed_work_ns,
        profilers=_profilers(suite, cache),
        compilers_of=lambda server: watching.compilers_of(watch(server).pids),
        duet_monitors=_duet_monitors,
        watch=watch,
        takes_at_once=lambda cell, server: driver.takes_at_once(cell, server.endpoint),
    )
    return tools, driver


def workbench(
    suite: Suite, catalogue: Path, cache: Path, stack: ExitStack, glance: MachineGlance | None = None
) -> Workbench:
    """Return the tools on this machine with its environment. Raises as `_tools`."""
    tools, driver = _tools(suite, catalogue, cache, stack)
    return Workbench(tools, environment_of(driver, tools.placement, glance))


@dataclass(frozen=True)
class Workplace:
    """The place where sessions run: the cluster at an address, connected until `stack` ends, or else this machine.

    `places` gives the catalogue and the cache of a suite's file, and may raise UsageError. `on_usage` gets what servers
    on this machine use while they are loaded. `turn` is held while something is measured, with its builds. `glance` is
    a look at what else runs, which has begun.
    """

    address: str | None
    stack: ExitStack
    places: Callable[[Path], tuple[Path, Path]]
    on_usage: Callable[[Cell, Phase, ServerUsage], None] | None = None
    turn: Callable[[], AbstractContextManager[None]] = nullcontext
    glance: MachineGlance = field(default_factory=MachineGlance)

    def take_turn(self) -> None:
        """Measure from now on until `stack` ends, known to other measurements on this machine. Raises UsageError."""
        self.stack.enter_context(self.turn())

    def bench(self, file: Path, suite: Suite) -> Workbench:
        """Return the tools of a new session of a suite's file. Raises UsageError, DriveError and HostLostError."""
        pairs, (catalogue, cache) = self._pairs(suite), self._places(file, suite)
        if pairs:
            there: Workbench = hosts_by_name().on_hosts(pairs, catalogue, cache)
            return there
        here = workbench(suite, catalogue, cache, self.stack, self.glance)
        return replace(here, tools=replace(here.tools, on_usage=self.on_usage))

    def tools(self, file: Path, suite: Suite) -> Tools:
        """Return the tools on this machine for what stores no environment. Raises as `bench`."""
        tools, driver = _tools(suite, *self._places(file, suite), self.stack)
        check_version(find_engine(), driver.version())
        return replace(tools, on_usage=self.on_usage)

    def prepare(self, file: Path, suite: Suite) -> tuple[Workbench, Suite, tuple[str, ...]]:
        """Return a new session's tools, its suite as the hosts can hold it, and the changes. Raises as `bench`."""
        bench = self.bench(file, suite)
        pairs = [
            Hosts(
                next(host.environment for host in pair.used if host.role == "server"),
                tuple(host.environment for host in pair.used if host.role == "load"),
            )
            for pair in bench.pairs
        ]
        return bench, *fitted(suite, pairs or [Hosts(bench.environment)])

    def bench_for(self, manifest: Manifest) -> Workbench:
        """Return the tools to resume a stored session. Raises as `bench`."""
        suite, file = manifest.plan.suite, Path(manifest.suite_file)
        if self.address and not manifest.suite_file:
            raise UsageError("what runs behind a URL was searched from here", hint=f"resume it without {part('on')}")
        return self.bench(file, suite)

    def _places(self, file: Path, suite: Suite) -> tuple[Path, Path]:
        """Return the catalogue and the cache; a suite without a catalogue's servers needs neither."""
        if builds_servers(suite):
            return self.places(file)
        # Tools that are fetched for users' servers, such as a profiler, serve all of their projects.
        return Path("catalogue"), user_cache()

    def _pairs(self, suite: Suite) -> Sequence[object]:
        """Return pairs of hosts; empty to run on this machine."""
        if self.address is None:
            if suite.load_hosts > 1:
                raise UsageError(
                    f"{suite.name} is for {suite.load_hosts} load hosts",
                    hint=f"name a cluster that has them: {part('on', 'ADDRESS')}",
                )
            return ()
        pairs: Sequence[object] = hosts_by_name().connect(self.address, suite, self.stack)
        return pairs


def _monitors_of(server: RunningServer) -> tuple[ProcessTreeMonitor]:
    peer = server.endpoint.address if server.facts is None else None
    return (ProcessTreeMonitor(peer=peer, listens_at=peer),)


def _duet_monitors(servers: Sequence[RunningServer]) -> tuple[tuple[ProcessTreeMonitor, ...], ...]:
    at = [server.endpoint.address if server.facts is None else None for server in servers]
    known = tuple(pid for server in servers[1:] if server.facts is not None for pid in server.facts.pids)
    return (
        (ProcessTreeMonitor(peer=next(filter(None, at), None), listens_at=at[0], known=known),),
        *((ProcessTreeMonitor(machine=False, listens_at=own),) for own in at[1:]),
    )


def environment_of(driver: EngineDriver, placement: Placement, glance: MachineGlance | None = None) -> Environment:
    """Return this machine with the engine, which must have the lab's version. Raises DriveError and UsageError."""
    version = driver.version()
    check_version(find_engine(), version)
    return read_environment(version, driver.sha256(), placement, glance)
