"""Other hosts as the core asks for them: connected, with their tools, compared, and examined."""

from contextlib import ExitStack
from pathlib import Path

from redline.driving.engine import EngineDriver
from redline.driving.engine_process import find_engine
from redline.extras.hosts.executor import HostsExecutor, check_for_hosts
from redline.extras.hosts.launcher import RemoteLauncher
from redline.extras.hosts.pairs import PairTools, calibrate
from redline.extras.hosts.remote import Pair
from redline.launching.builds import Builds
from redline.launching.process import ProcessLauncher
from redline.launching.route import RouteLauncher
from redline.model import Suite
from redline.ports import Placement
from redline.running.assembly import Workbench, environment_of

__all__ = ["HostsExecutor", "calibrate", "connect", "on_hosts"]


def connect(address: str, suite: Suite, stack: ExitStack) -> tuple[Pair, ...]:
    """Return the pairs of the cluster at an address, until `stack` ends. Raises UsageError and HostLostError."""
    check_for_hosts(suite)
    from redline.extras.hosts.ray_cluster import connected  # noqa: PLC0415 - only where there is a cluster

    proxies = any(variant.hops for variant in suite.variants)
    pairs = stack.enter_context(connected(address, suite.load_hosts, proxies=proxies))
    # All pairs would share a server behind a URL, which several must not load at once.
    return pairs[:1] if any(variant.is_attached for variant in suite.variants) else pairs


def on_hosts(pairs: tuple[Pair, ...], catalogue: Path, cache: Path) -> Workbench:
    """Return the tools on other hosts, for a catalogue. Raises DriveError without an engine, and HostLostError."""
    driver, here = EngineDriver(find_engine()), RouteLauncher(ProcessLauncher(catalogue, cache))
    servers = tuple(pair.server for pair in pairs)
    proxies = tuple(pair.proxy for pair in pairs if pair.proxy)
    launcher = RemoteLauncher(here, Builds(catalogue, cache).find, catalogue, servers, proxies)
    tools = tuple(PairTools(pair, launcher) for pair in pairs)
    environment = environment_of(driver, Placement())
    return Workbench(tools[0].tools, environment, tools)
