"""The container engine of this machine, and what labs have left in it."""

import os
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest

from redline.launching.container_engine import ContainerEngine, ContainerEngineError
from redline.launching.containers import LABEL, Containers
from redline.linux.mounts import read_mounts

JANITOR_WITHIN_S = 180.0
"""A janitor calls the engine nine times, and after a SIGKILL once more every 10 s for a minute."""


def working_engine(folder: Path) -> ContainerEngine:
    """A container engine that works here; skips the test with the reason where there is none."""
    lab = Containers(folder)
    try:
        found = lab.engine()
    except ContainerEngineError as error:
        pytest.skip(f"{error}; {error.hint}")
    finally:
        lab.close()
    if found.name == "docker" and os.geteuid() != 0:
        pytest.skip("these tests look into processes that are root's")
    return found


def left_of_labs(engine: ContainerEngine) -> list[str]:
    """The leftovers of labs that have ended, or of this process, and the control groups whose containers are gone."""
    label = ("--filter", f"label={LABEL}")
    names = [
        *engine.call("ps", "--all", "--format", "{{.Names}}", *label).split(),
        *engine.call("network", "ls", "--format", "{{.Name}}", *label).split(),
        *engine.call("volume", "ls", "--format", "{{.Name}}", *label).split(),
        *re.findall("redline/.*", images_of(engine)),
    ]
    known = engine.call("ps", "--all", "--quiet", "--no-trunc").split()
    folders = [mount.point for mount in read_mounts() if mount.kind in ("cgroup", "cgroup2")]
    groups = [str(group) for folder in folders for group in folder.rglob("libpod-*")]
    gone = [group for group in groups if not any(container in group for container in known)]
    return [name for name in names if not is_of_another(name)] + gone


def images_of(engine: ContainerEngine) -> str:
    """Its images; podman fails where another lab is just removing some."""
    with suppress(ContainerEngineError):
        return engine.call("images", "--format", "{{.Repository}}")
    time.sleep(1)
    return engine.call("images", "--format", "{{.Repository}}")


def is_of_another(name: str) -> bool:
    """Whether a name has the process id of another lab that is running."""
    pid = int(re.split("[-/]", name)[1])
    return pid != os.getpid() and Path("/proc", str(pid)).exists()
