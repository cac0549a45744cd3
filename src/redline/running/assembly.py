"""Puts the built-in plugins together: what trials on this machine are made with."""

from dataclasses import dataclass
from pathlib import Path

from redline.model import AttachedServer, Cell, Environment, Variant
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.plugins.launchers.attached import AttachedLauncher, processes_of
from redline.plugins.launchers.command import CommandLauncher
from redline.plugins.launchers.process import ProcessLauncher
from redline.plugins.launchers.route import RouteLauncher
from redline.plugins.linux.procfs import tree
from redline.plugins.machine import plan_placement, read_environment
from redline.plugins.probes.jvm import compilers_of
from redline.plugins.probes.process_tree import ProcessTreeProbe
from redline.plugins.profilers.machine import MachineProfilers
from redline.ports import Placement
from redline.running.duet import DuetTools
from redline.running.record import Tools


@dataclass(frozen=True)
class Workbench:
    """The tools of a run and the environment that they were read in."""

    tools: Tools
    environment: Environment


def workbench(catalogue: Path, cache: Path) -> Workbench:
    """For servers of a catalogue, on this machine. Raises DriveError when there is no engine."""
    driver, placement = EngineDriver(find_engine()), plan_placement()
    launcher, probes = RouteLauncher(ProcessLauncher(catalogue, cache)), lambda: (ProcessTreeProbe(),)
    profilers = MachineProfilers(cache)
    tools = Tools(launcher, driver, probes, placement, tree, driver.fixed_work_ns, profilers, compilers_of)
    return _with_environment(tools, driver)


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
    tools = Tools(launcher, driver, probes, plan_placement(), tree, compilers_of=compilers_of)
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
