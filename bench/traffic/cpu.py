"""CPU time of a tool for a request: that of a long load less that of a short one, so that its start is not in it."""

import os
import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace

from bench.cost.pairs import Ran, Sample
from bench.cost.peers import ran
from bench.traffic.tools import Tool, Wanted
from redline.errors import DriveError

SHORT = 0.25
"""The length of the short load, as a share of the long one's."""
_AROUND_S = 60


@dataclass(frozen=True)
class Used:
    """What a process and those of its children that have ended used, in seconds."""

    user_s: float
    system_s: float

    @property
    def all_s(self) -> float:
        """In user space and in the kernel."""
        return self.user_s + self.system_s


def cost(tool: Tool, wanted: Wanted, core: int) -> Sample:
    """A long load and a short one on that core. Raises DriveError if either fails or the difference makes no sense."""
    (long, used), (short, less) = (
        _load(tool, replace(wanted, seconds=s), core) for s in (wanted.seconds, wanted.seconds * SHORT)
    )
    requests, cpu_s = long.requests - short.requests, used.all_s - less.all_s
    if requests <= 0 or cpu_s <= 0:
        raise DriveError(
            f"{tool.name} answers no more in {wanted.seconds} s than in a part of it", hint="longer runs: --seconds"
        )
    user_share = min(1.0, max(0.0, (used.user_s - less.user_s) / cpu_s))
    faults = "; ".join(sorted({each.faults for each in (long, short) if each.faults}))
    return Sample(replace(long, faults=faults), cpu_s * 1e6 / requests, user_share)


def run(tool: Tool, wanted: Wanted, core: int) -> Ran:
    """One load on that core. Raises DriveError."""
    return _load(tool, wanted, core)[0]


def _load(tool: Tool, wanted: Wanted, core: int) -> tuple[Ran, Used]:
    called = tool.call(wanted)
    output, used = _ended(["taskset", "--cpu-list", str(core), *called.command], wanted.seconds + _AROUND_S)
    return ran(tool.name, called.read(output)), used


def _ended(command: list[str], within_s: float) -> tuple[str, Used]:
    """Its standard output and what it used. Raises DriveError if it fails or does not end in time."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        try:
            status, usage = _wait(process.pid, within_s)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            said = (errors.read() or output.read()).decode(errors="replace").strip()
            raise DriveError(f"{command[3]} ended with {process.returncode}: {said[-300:]}", hint="run it by hand")
        return output.read().decode(errors="replace"), Used(usage.ru_utime, usage.ru_stime)


def _wait(pid: int, within_s: float) -> tuple[int, resource.struct_rusage]:
    """Its status and what it used; `wait4` alone says that of one child."""
    until = time.monotonic() + within_s
    while True:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return status, usage
        if time.monotonic() > until:
            raise DriveError(f"had not ended after {within_s:.0f} s", hint="run it by hand")
        time.sleep(0.05)
