"""Puts the built-in plugins together: what trials on this machine are made with."""

from dataclasses import dataclass
from pathlib import Path

from redline.model import AttachedServer, Cell, DuetRecording, Environment, Plan, UsedHost, Variant
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.plugins.hosts.launcher import RemoteLauncher, Sender
from redline.plugins.hosts.remote import Pair
from redline.plugins.launchers.attached import AttachedLauncher, processes_of
from redline.plugins.launchers.builds import Builds
from redline.plugins.launchers.command import CommandLauncher
from redline.plugins.launchers.process import ProcessLauncher
from redline.plugins.launchers.route import RouteLauncher
from redline.plugins.machine import plan_placement, read_environment
from redline.plugins.probes.jvm import compilers_of
from redline.plugins.probes.process_tree import ProcessTreeProbe
from redline.plugins.profilers.machine import MachineProfilers
from redline.ports import Executor, Placement
from redline.running.duet import DuetTools
from redline.running.executors import HostsExecutor, LocalExecutor
from redline.running.host_pairs import PairTools, calibrate
from redline.running.record import Tools
from redline.running.trial import TrialListener
from redline.storage.runs import RunStore


@dataclass(frozen=True)
class Workbench:
    """The tools of a run, and the environment that they were read in. With `pairs`, its trials run on other hosts."""

    tools: Tools
    environment: Environment
    pairs: tuple[PairTools, ...] = ()

    def executor(self, plan: Plan, store: RunStore, listener: TrialListener) -> Executor:
        """What runs the trials of a plan."""
        if self.pairs:
            return HostsExecutor(plan, self.pairs, store, listener)
        return LocalExecutor(plan, self.tools, store, listener)

    def calibration(self, plan: Plan, logs: Path) -> tuple[DuetRecording, ...]:
        """How pairs of hosts compare, by duets of one server of the plan with itself."""
        return calibrate(self.pairs, plan, logs)

    def interrupt(self) -> None:
        """End the loads that run on other hosts early."""
        for pair in self.pairs:
            pair.interrupt()

    @property
    def hosts(self) -> tuple[UsedHost, ...]:
        """The other hosts."""
        return tuple(
            UsedHost(
                name=each.report.name, role=each.role, address=each.report.address, environment=each.report.environment
            )
            for pair in self.pairs
            for each in pair.pair.hosts
        )


def workbench(catalogue: Path, cache: Path) -> Workbench:
    """For servers of a catalogue, on this machine. Raises DriveError when there is no engine."""
    driver, placement = EngineDriver(find_engine()), plan_placement()
    launcher, probes = RouteLauncher(ProcessLauncher(catalogue, cache)), lambda: (ProcessTreeProbe(),)
    profilers = MachineProfilers(cache)
    tools = Tools(launcher, driver, probes, placement, processes_of, driver.fixed_work_ns, profilers, compilers_of)
    return _with_environment(tools, driver)


def on_hosts(pairs: tuple[Pair, ...], catalogue: Path, cache: Path) -> Workbench:
    """For servers of a catalogue, on other hosts. Raises DriveError when there is no engine, and HostLostError."""
    driver, here = EngineDriver(find_engine()), RouteLauncher(ProcessLauncher(catalogue, cache))
    servers = tuple(pair.server for pair in pairs)
    proxies = tuple(pair.proxy for pair in pairs if pair.proxy)
    sender = Sender(Builds(catalogue, cache).find, catalogue.absolute().parent)
    launcher = RemoteLauncher(here, sender, servers, proxies)
    tools = tuple(PairTools.of(pair, launcher) for pair in pairs)
    environment = read_environment(driver.version(), driver.sha256(), Placement())
    return Workbench(tools[0].tools, environment, tools)


def attached(variant: Variant) -> Workbench:
    """For a server that is already running. Raises DriveError when there is no engine."""
    host = variant.entry.host if isinstance(variant.entry, AttachedServer) else None
    driver = EngineDriver(find_engine())
    tools = Tools(AttachedLauncher(), driver, lambda: (ProcessTreeProbe(peer=host),), Placement())
    return _with_environment(tools, driver)


def commands() -> Workbench:
    """For commands of the user's. Raises DriveError when there is no engine."""
    driver = EngineDriver(find_engine())
    launcher, probes = CommandLauncher(), lambda: (ProcessTreeProbe(),)
    tools = Tools(launcher, driver, probes, plan_placement(), processes_of, compilers_of=compilers_of)
    return _with_environment(tools, driver)


def duet_tools(cells: tuple[Cell, ...]) -> DuetTools:
    """For commands, or servers that are running already. Raises DriveError without an engine."""
    launchers = tuple(
        AttachedLauncher() if isinstance(cell.variant.entry, AttachedServer) else CommandLauncher() for cell in cells
    )
    return DuetTools(launchers, processes_of, EngineDriver(find_engine()), plan_placement())


def duet_environment() -> Environment:
    """This machine and its engine, as a duet finds them. Raises DriveError without an engine."""
    driver = EngineDriver(find_engine())
    return read_environment(driver.version(), driver.sha256(), plan_placement())


def _with_environment(tools: Tools, driver: EngineDriver) -> Workbench:
    return Workbench(tools, read_environment(driver.version(), driver.sha256(), tools.placement))
