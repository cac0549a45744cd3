"""`redline doctor`: how this machine affects measurements, with advice."""

import os
import tempfile
from pathlib import Path

from rich.table import Table
from rich.text import Text

from redline.analysis.doctor import Advice, cache_advice, clock_advice, container_advice, examine
from redline.cli.cached import kept
from redline.cli.command_line import DoctorFlags
from redline.cli.contracts import DoctorResult, HostResult
from redline.cli.show import Terminal, write_json
from redline.driving.engine import EngineDriver
from redline.driving.engine_process import find_engine
from redline.entry_points import extra
from redline.errors import DriveError, StoreError, UsageError
from redline.files import user_cache
from redline.launching.container_engine import ContainerEngineError
from redline.launching.containers import Containers
from redline.model import Environment
from redline.quantities import size
from redline.watching.machine import plan_placement, read_environment

_MARKS = {"ok": ("✓", "green"), "note": ("i", "blue"), "warn": ("!", "yellow")}


def execute(flags: DoctorFlags) -> None:
    """Examine this machine, and print advice on its cores, clocks, limits and other load."""
    try:
        driver = EngineDriver(find_engine())
        version, sha256 = driver.version(), driver.sha256()
    except DriveError:
        version, sha256 = "not installed", ""
    environment = read_environment(version, sha256, plan_placement())
    hosts = _hosts(flags.hosts) if flags.hosts else ()
    advice = () if flags.hosts else (*examine(environment), _containers(), _cache())
    if flags.json:
        result = DoctorResult(environment=environment, advice=advice, hosts=hosts)
        write_json(result)
        return
    for host in hosts:
        Terminal().print(f"{host.name}  {host.role}  {host.address}", style="bold", highlight=False)
        _print(host.advice)
    if advice:
        _print(advice)


def _hosts(address: str) -> tuple[HostResult, ...]:
    """The advice for each host of a cluster. Raises UsageError."""
    cluster = extra("cluster", "--hosts")
    with cluster.everyone(address) as hosts:
        if not hosts:
            raise UsageError(
                f"the cluster at {address} has no host with a role",
                hint="start Ray on every host with its role; docs/guide/many-machines.md says how",
            )
        cluster.check(hosts)
        return tuple(
            HostResult(
                name=host.report.name,
                role=host.role,
                address=host.report.address,
                environment=host.report.environment,
                clock=host.report.clock,
                advice=(clock_advice(host.report.clock), *_of_one_role(host.report.environment)),
            )
            for host in sorted(hosts, key=lambda host: (host.role, host.report.name))
        )


def _of_one_role(environment: Environment) -> list[Advice]:
    """Return the advice for a host that has only the server or the engine, so that they share no cores."""
    return [advice for advice in examine(environment) if advice.topic != "cores"]


def _print(advice: tuple[Advice, ...]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for item in advice:
        mark, colour = _MARKS[item.grade]
        says = Text(item.says)
        if item.do:
            says.append(f"\n→ {item.do}", style="dim")
        table.add_row(Text(mark, style=colour), Text(item.topic, style="bold"), says)
    Terminal().print(table)


def _cache() -> Advice:
    """Check the user's cache."""
    try:
        folder = user_cache()
    except UsageError as error:
        return cache_advice("the cache", "", error.message)
    above = next(parent for parent in (folder, *folder.parents) if os.path.exists(parent))  # noqa: PTH110
    reason = "" if os.access(above, os.W_OK | os.X_OK) else "permission denied"
    try:
        total = size(sum(item.size for item in kept(folder)))
    except StoreError as error:
        return cache_advice(str(folder), "", error.message)
    return cache_advice(str(folder), total, reason)


def _containers() -> Advice:
    """Run a container, and remove it with its image."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Containers(Path(folder))
        try:
            return container_advice(lab.engine().version)
        except ContainerEngineError as error:
            return container_advice("", str(error), error.hint)
        finally:
            lab.close()
