"""Profilers that are commands: `perf` for any process, `py-spy` for Python. Neither is part of the lab."""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from redline.extras.profiling.sampler import ProfilerError, Sampled
from redline.extras.profiling.texts import perf_stacks, py_spy_stacks
from redline.launching import error_lines
from redline.linux import procfs
from redline.model import ProfileKind, ProfileUnit, Slice

PERF, PY_SPY = "perf", "py-spy"
_PERF_HZ, _PY_SPY_HZ = 997, 250
_ENV = {"NODE_OPTIONS": "--perf-basic-prof --interpreted-frames-native-stack"}
"""Settings that make Node write where it put which compiled function, in /tmp/perf-PID.map; others ignore them."""
_PARANOIA = Path("/proc/sys/kernel/perf_event_paranoid")
_STATUS = Path("/proc/self/status")
_DEEPEST = Path("/proc/sys/kernel/perf_event_max_stack")
_DEEPEST_BY_DEFAULT = 127
_MAY_SAMPLE = (38, 21)
"""The numbers of CAP_PERFMON and CAP_SYS_ADMIN, either of which permits to sample."""
_HIGHEST_PARANOIA = 2
"""The highest value with which users may sample their own processes."""
_END_WITHIN_S = 20.0
_ANSWERS_WITHIN_S = 30.0
"""With three busy programs for each core, perf takes three to six seconds to attach itself."""
_ATTEMPTS = 5
_GONE = "No such process"
_SILENT_WITHIN_S = 120.0
_LOOKS_EVERY_S = 0.01
_SAMPLES = b"Sampling process"
"""What py-spy writes when it is attached."""


class _Command:
    """A command that samples a process until it gets SIGINT, and then writes a file."""

    unit: ProfileUnit = "samples"

    def __init__(self, command: str, env: dict[str, str] | None = None) -> None:
        self.env = env or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._log = Path()
        self.name = version(command)

    def prepare(self, pid: int, folder: Path) -> None:
        """Do nothing."""

    def _run(self, command: Sequence[str], log: Path, pass_fds: Sequence[int] = ()) -> None:
        self._log = log
        with log.open("wb") as out:
            self._process = _started(command, stdout=out, stderr=out, pass_fds=pass_fds)

    def stop(self) -> None:
        """Interrupt the command, and wait until its file is written."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.send_signal(signal.SIGINT)
            process.wait(_END_WITHIN_S)
        except subprocess.TimeoutExpired:
            raise ProfilerError(f"{self.name} did not end within {_END_WITHIN_S:g} s") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode not in (0, -signal.SIGINT):
            raise ProfilerError(f"{self.name} ended with {process.returncode}: {_last_words(self._log)}")


class Perf(_Command):
    """Samples CPU time, the kernel's too if permitted. Stacks end where frame pointers do.

    It takes half a second to attach itself, on a busy machine seconds, and misses the threads that begin meanwhile. So
    it attaches itself to an idle server, and begins to sample when the measurement begins.
    """

    event = "cpu-clock"
    interval = round(1e9 / _PERF_HZ)

    def __init__(self) -> None:
        super().__init__(PERF, _ENV)
        self._offset_ns = 0
        self._pids: tuple[int, ...] = ()
        self._folders: dict[int, str] = {}
        self._orders = self._answers = -1
        self._data = Path()

    def prepare(self, pid: int, folder: Path) -> None:
        """Attach perf to the process, its descendants, and those that they start later. It does not sample yet.

        perf ends where a thread ends before it is attached to it, and misses those that begin meanwhile, with all that
        they start: of a Go server on one core, every request. So it is started again.
        """
        for _ in range(_ATTEMPTS - 1):
            known = procfs.threads(pid)
            try:
                self._attach(pid, folder)
                if procfs.threads(pid) <= known:
                    return
                self._end()
                continue
            except ProfilerError as error:
                if _GONE not in str(error):
                    raise
            self._close()
        self._attach(pid, folder)

    def _attach(self, pid: int, folder: Path) -> None:
        self._pids = procfs.tree(pid)
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        waits = ["--delay", "-1", f"--control=fd:{orders},{answers}"]
        ordered = self._ordered(folder)
        attached = ["-o", str(self._data), "-p", ",".join(map(str, self._pids))]
        try:
            self._run([*ordered, *waits, *attached], self._log, (orders, answers))
        finally:
            os.close(orders)
            os.close(answers)
        self._order("disable")

    def _ordered(self, folder: Path) -> list[str]:
        """What perf does, and the files that it writes."""
        self._data, self._log = folder / "perf.data", folder / "perf.log"
        how = ["-e", self.event, "-F", str(_PERF_HZ), "-g", "-k", "CLOCK_MONOTONIC", "--no-buildid"]
        return [PERF, "record", *how]

    def start(self, pid: int, folder: Path) -> None:
        """Sample, and return when perf does."""
        if self._process is None:
            self.prepare(pid, folder)
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        self._pids = tuple(dict.fromkeys((*self._pids, *procfs.tree(pid))))
        self._folders = {own: where for own in self._pids if (where := procfs.working_folder(own))}
        self._order("enable")

    def _order(self, order: str) -> None:
        """Have perf do something, and return when it is done. It does nothing before it is attached."""
        with suppress(BrokenPipeError):  # it has ended, which is seen below
            os.write(self._orders, f"{order}\n".encode())
        if not select.select([self._answers], [], [], _ANSWERS_WITHIN_S)[0]:
            raise ProfilerError(f"{self.name} did not attach itself within {_ANSWERS_WITHIN_S:g} s: other programs run")
        if not os.read(self._answers, 64).startswith(b"ack"):
            raise ProfilerError(f"{self.name} ended before it sampled: {_last_words(self._log)}")

    def _close(self) -> None:
        """Close the pipes to perf, and wait for one that has ended."""
        for pipe in (self._orders, self._answers) if self._orders >= 0 else ():
            os.close(pipe)
        self._orders = self._answers = -1
        process, self._process = self._process, None
        if process is not None:
            process.wait(_END_WITHIN_S)

    def _end(self) -> None:
        try:
            _Command.stop(self)
        finally:
            self._close()

    def stop(self) -> None:
        """Interrupt perf, and wait until its file is written."""
        self._end()
        if not self._offset_ns:  # the measurement did not begin
            for file in (self._data, self._log) if self._data.name else ():
                file.unlink(missing_ok=True)

    def read(self, folder: Path, slices: Sequence[Slice]) -> Sampled:
        """Read the stacks, and delete perf's large file, which has nothing else."""
        fields = ["-F", "comm,tid,time,ip,sym,dso", "--ns", "--no-inline"]
        lines = _lines_of([PERF, "script", "-i", str(folder / "perf.data"), *fields], folder / "perf.log")
        stacks, lost = perf_stacks(lines, slices, self._offset_ns, deepest := deepest_stack(_DEEPEST))
        (folder / "perf.data").unlink()
        (folder / "perf.log").unlink()
        for pid in self._pids if self.env else ():
            Path(f"/tmp/perf-{pid}.map").unlink(missing_ok=True)  # noqa: S108 - where such a runtime puts it
            for log in Path(self._folders[pid]).glob(f"isolate-*-{pid}-v8.log") if pid in self._folders else ():
                log.unlink(missing_ok=True)  # V8 writes it beside the names
        return Sampled(stacks, stacks.total + lost, lost, deepest=deepest)


def deepest_stack(setting: Path) -> int:
    """Return how many frames of a stack perf follows, of kernel and program together."""
    try:
        return int(setting.read_text())
    except (OSError, ValueError):
        return _DEEPEST_BY_DEFAULT


def _started(
    command: Sequence[str], *, stdout: "BinaryIO | int", stderr: BinaryIO, pass_fds: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    group = 0  # of its own: Ctrl-C is for the lab
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, process_group=group, pass_fds=pass_fds
    )


def _lines_of(command: Sequence[str], log: Path) -> Iterator[str]:
    """Yield the lines of `perf script`, while it writes them. Raises ProfilerError if it fails or hangs."""
    with log.open("wb") as said:
        process = _started(command, stdout=subprocess.PIPE, stderr=said)
    try:
        assert process.stdout is not None
        rest = b""
        while read := _more(process.stdout.fileno()):
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
        if rest:
            yield rest.decode(errors="replace")
        code = process.wait(_SILENT_WITHIN_S)
    except subprocess.TimeoutExpired:
        raise ProfilerError(f"perf script did not end within {_SILENT_WITHIN_S:g} s") from None
    finally:
        process.kill()
        process.communicate()
    if code:
        raise ProfilerError(f"perf script ended with {code}: {_last_words(log)}")


def _more(pipe: int) -> bytes:
    """Return the next bytes of output; empty at the end. The time limit is for a pause in the output."""
    if not select.select([pipe], [], [], _SILENT_WITHIN_S)[0]:
        raise ProfilerError(f"perf script wrote nothing for {_SILENT_WITHIN_S:g} s")
    return os.read(pipe, 1 << 16)


class PySpy(_Command):
    """Samples Python, with Python's own frames; without times."""

    interval = round(1e9 / _PY_SPY_HZ)

    def __init__(self, kind: ProfileKind) -> None:
        super().__init__(PY_SPY)
        self._idle = ["--idle"] if kind == "wall" else []
        self.event = "all threads" if self._idle else "running threads"

    def start(self, pid: int, folder: Path) -> None:
        """Sample the process and its descendants, and return when py-spy says that it does."""
        how = ["--subprocesses", "--threads", "--nolineno", "--rate", str(_PY_SPY_HZ), "--format", "raw", *self._idle]
        self._run([PY_SPY, "record", *how, "-o", str(folder / "py-spy.txt"), "-p", str(pid)], folder / "py-spy.log")
        deadline = time.monotonic() + _ANSWERS_WITHIN_S
        while _SAMPLES not in self._log.read_bytes():
            if self._process is None or self._process.poll() is not None:
                raise ProfilerError(f"{self.name} ended before it sampled: {_last_words(self._log)}")
            if time.monotonic() > deadline:
                raise ProfilerError(f"{self.name} did not sample within {_ANSWERS_WITHIN_S:g} s: other programs run")
            time.sleep(_LOOKS_EVERY_S)

    def read(self, folder: Path, slices: Sequence[Slice]) -> Sampled:
        """The stacks between start and stop."""
        del slices
        stacks = py_spy_stacks((folder / "py-spy.txt").read_text(errors="replace"))
        (folder / "py-spy.txt").unlink()
        (folder / "py-spy.log").unlink()
        return Sampled(stacks, stacks.total)


@cache
def missing(command: str) -> str:
    """Say why a profiler cannot be used here, with a hint; empty if it can."""
    if shutil.which(command) is None:
        how = "`pip install py-spy`" if command == PY_SPY else "`apt install linux-perf`"
        return f"{command} is not installed: try {how}"
    if command == PERF:
        tried = _answer([PERF, "record", "-e", Perf.event, "--control=fd:0", "-o", "/dev/null", "true"])
        if tried is None or tried.returncode:
            said = _reason(tried.stdout) if tried else "it could not be run, or did not end"
            user = os.geteuid()
            return f"perf does not sample: {said}{by_paranoia(_PARANOIA, user) or by_capabilities(_STATUS, user)}"
    return ""


def by_paranoia(setting: Path, user: int) -> str:
    """Say what to change if this setting forbids users to sample; root always may."""
    try:
        level = int(setting.read_text())
    except (OSError, ValueError):
        return ""
    if level <= _HIGHEST_PARANOIA or user == 0:
        return ""
    return f"; {setting} is {level}: lower it to {_HIGHEST_PARANOIA}, or run as root"


def by_capabilities(status: Path, user: int) -> str:
    """Say what to change if root may not sample, as in most containers; users do not need the capabilities."""
    try:
        effective = next(line for line in status.read_text().splitlines() if line.startswith("CapEff:"))
    except (OSError, StopIteration):
        return ""
    if user != 0 or any(int(effective.split()[1], 16) >> number & 1 for number in _MAY_SAMPLE):
        return ""
    return "; this root has neither CAP_PERFMON nor CAP_SYS_ADMIN: start the container with --cap-add PERFMON"


@cache
def version(command: str) -> str:
    """Return the command's name and version: `perf 6.1`."""
    done = _answer([command, "--version"])
    words = done.stdout.decode(errors="replace").split() if done else []
    return f"{command} {words[-1]}" if words else command


def _answer(command: Sequence[str]) -> "subprocess.CompletedProcess[bytes] | None":
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_END_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _last_words(log: Path) -> str:
    try:
        return _reason(log.read_bytes())
    except OSError:
        return "nothing"


def _reason(said: bytes) -> str:
    return error_lines.reason(said.decode(errors="replace")) or "nothing"
