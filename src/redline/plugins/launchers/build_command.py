"""One run of a build command: for one server, or for all the targets of several."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from redline.errors import BuildError
from redline.plugins.commands import started
from redline.plugins.launchers.files import cache_writes

_KEPT_LINES = 15
_LONGEST_LINE = 500
_TICK_NS = 10_000_000
"""The kernel stamps files with a clock that is behind by up to one tick."""
_READ_AT_MOST = 65_536
"""Of a line that does not end, such as a bar of progress."""


@dataclass(frozen=True)
class BuildOrder:
    """What is to be run and where; `servers` names in messages what it is for. All output goes to `log`."""

    servers: str
    run: tuple[str, ...]
    targets: tuple[str, ...]
    folder: Path
    log: Path


@dataclass(frozen=True)
class Ended:
    """How the command ended, how long it ran, and what it said of each target that failed: its lines `TARGET: ...`.

    Files that are written from `began_unix_ns` on have that time or a later one.
    """

    code: int
    began_unix_ns: int
    took_ns: int
    told: dict[str, list[str]]

    @property
    def ending(self) -> str:
        """`with code 3`, `by SIGKILL`."""
        return f"with code {self.code}" if self.code >= 0 else f"by {signal.Signals(-self.code).name}"


def run_build(order: BuildOrder, progress: Callable[[str], None]) -> Ended:
    """Run it to its end, and tell each line. Raises BuildError when it cannot be run or its output not be kept.

    An exception, Ctrl-C too, ends the command and all of its process group.
    """
    told: dict[str, list[str]] = {target: [] for target in order.targets}
    cache = order.log.parent.parent
    with cache_writes(cache, order.servers):
        order.log.parent.mkdir(parents=True, exist_ok=True)
        log = order.log.open("wb", buffering=0)  # what cannot be written is then known at once, not when it is closed
    began_unix_ns, began_ns = time.time_ns() - _TICK_NS, time.monotonic_ns()
    with log, _started(order) as process:
        while process.stdout and (raw := process.stdout.readline(_READ_AT_MOST)):
            with cache_writes(cache, order.servers):
                log.write(raw)
            line = raw.decode(errors="replace").strip()
            target, colon, reason = line.partition(": ")
            if colon and target in told and len(told[target]) < _KEPT_LINES:
                told[target].append("".join(filter(str.isprintable, reason))[:_LONGEST_LINE])
            progress(line)
        code = process.wait()
    return Ended(code, began_unix_ns, time.monotonic_ns() - began_ns, told)


@contextmanager
def _started(order: BuildOrder) -> Iterator["subprocess.Popen[bytes]"]:
    with ExitStack() as stack:
        try:
            process = stack.enter_context(started([*order.run, *order.targets], order.folder))
        except OSError as error:
            raise BuildError(
                f"{order.servers}: its build command {order.run[0]} could not be run: {error.strerror}",
                hint="mend `build.run` in its server.yaml, or install the command",
            ) from error
        yield process
