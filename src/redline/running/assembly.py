"""Puts the built-in plugins together: what trials on this machine are made with."""

from dataclasses import dataclass
from pathlib import Path

from redline.model import AttachedServer, Environment, Variant
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.plugins.launchers.attached import AttachedLauncher
from redline.plugins.launchers.process import ProcessLauncher
from redline.plugins.machine import plan_placement, read_environment
from redline.plugins.probes.process_tree import ProcessTreeProbe
from redline.ports import Placement
from redline.running.record import Tools


@dataclass(frozen=True)
class Workbench:
    """The tools of a run and the environment that they were read in."""

    tools: Tools
    environment: Environment


def workbench(catalogue: Path, cache: Path) -> Workbench:
    """Launcher, driver, probes and placement for this machine. Raises DriveError when there is no engine."""
    driver = EngineDriver(find_engine())
    placement = plan_placement()
    tools = Tools(
        launcher=ProcessLauncher(catalogue, cache),
        driver=driver,
        probes=lambda: (ProcessTreeProbe(),),
        placement=placement,
    )
    return Workbench(tools, read_environment(driver.version(), driver.sha256(), placement))


def attached(variant: Variant) -> Tools:
    """The tools for a server that is already running. Raises DriveError when there is no engine."""
    host = variant.entry.host if isinstance(variant.entry, AttachedServer) else None
    return Tools(
        launcher=AttachedLauncher(),
        driver=EngineDriver(find_engine()),
        probes=lambda: (ProcessTreeProbe(peer=host),),
        placement=Placement(),
    )
