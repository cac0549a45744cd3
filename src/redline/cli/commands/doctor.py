"""`redline doctor`: what this machine will do to the numbers, and what to do about it."""

import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.cli.command_line import DoctorFlags
from redline.cli.contracts import DoctorResult
from redline.doctor import Advice, container_advice, examine
from redline.errors import DriveError
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.plugins.launchers.container_engine import ContainerEngineError
from redline.plugins.launchers.containers import Containers
from redline.plugins.machine import plan_placement, read_environment

_MARKS = {"ok": ("✓", "green"), "note": ("i", "blue"), "warn": ("!", "yellow")}


def execute(flags: DoctorFlags) -> None:
    """Examine this machine: cores, clocks, limits, other load; each with what to do about it."""
    try:
        driver = EngineDriver(find_engine())
        version, sha256 = driver.version(), driver.sha256()
    except DriveError:
        version, sha256 = "not installed", ""
    environment = read_environment(version, sha256, plan_placement())
    advice = (*examine(environment), _containers())
    if flags.json:
        result = DoctorResult(environment=environment, advice=advice)
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
        return
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
    Console().print(table)


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
