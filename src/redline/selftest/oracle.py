"""The server with known answers: built by the catalogue's own builder, started in any of its modes."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from redline.errors import UsageError
from redline.model import Variant
from redline.plugins.launchers.process import ProcessLauncher, ProcessServer
from redline.ports import Placement
from redline.selftest.results import Quantile
from redline.suite import load_catalogue

_ENTRY = "oracle.null"
_KEYS = {0.5: "late_p50_ns", 0.9: "late_p90_ns", 0.99: "late_p99_ns", 0.999: "late_p999_ns", 1.0: "late_max_ns"}


@dataclass(frozen=True)
class Oracle:
    """The built oracle. Raises what the catalogue's launcher raises."""

    launcher: ProcessLauncher
    null: Variant
    placement: Placement

    @contextmanager
    def running(self, arguments: tuple[str, ...], log: Path) -> Iterator[ProcessServer]:
        """A fresh one in that mode; its output goes to `log`."""
        entry = self.null.catalogued
        command = (entry.start.command[0], *arguments, "--port", "{port}")
        start = entry.start.model_copy(update={"command": command})
        variant = Variant(entry=entry.model_copy(update={"start": start}))
        with self.launcher.running(variant, self.placement, log) as server:
            yield server


def build_oracle(catalogue: Path, cache: Path, placement: Placement, progress: Callable[[str], None]) -> Oracle:
    """The oracle of this catalogue, built when it has to be. Raises BuildError, and UsageError when it has none."""
    entry = load_catalogue(catalogue).servers.get(_ENTRY)
    if entry is None:
        raise UsageError(
            f"{catalogue} has no {_ENTRY}, the server with known answers",
            hint="run it inside a checkout of Redline",
        )
    launcher, null = ProcessLauncher(catalogue, cache), Variant(entry=entry)
    launcher.build((null,), lambda building: progress(building.line)).hash_of(null.slug)
    return Oracle(launcher, null, placement)


def own_lateness(log: Path) -> tuple[Quantile, ...]:
    """What an oracle that has ended said of its own lateness; nothing for one that answers at once."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        if line.startswith("{"):
            lateness = json.loads(line)
            return tuple(Quantile(q=q, ns=lateness[name]) for q, name in _KEYS.items() if name in lateness)
    return ()
