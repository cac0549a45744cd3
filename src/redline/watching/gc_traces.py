"""Read garbage collection traces of Node (`--trace-gc`) and Go (`GODEBUG=gctrace=1`).

They are part of a server's output, and their times count from its start. Other lines are skipped.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from redline.linux import procfs
from redline.model.runtime import Collection, CollectionKind, Pause, RuntimeFacts, RuntimeName
from redline.watching.jvm_log import Allocated, Event, Named
from redline.watching.runtime_tally import RuntimeTally

_MS, _MIB = 1_000_000, 1 << 20
_N = r"\d{1,9}(?:\.\d{1,6})?"
_V8 = re.compile(
    rf"\[(?P<pid>\d{{1,9}}):0x[0-9a-f]+\] +(?P<at>{_N}) ms: (?P<name>Scavenge|(?:Minor )?Mark-Compact|Mark-sweep)"
    rf"[^0-9]{{0,40}} (?P<before>{_N}) \({_N}\) -> (?P<after>{_N}) \((?P<capacity>{_N})\) MB,(?: pooled: {_N} MB,)?"
    rf" (?P<took>{_N}) / {_N} ms .*"
)
_OF_A_TRACE = re.compile(r"\[\d+:0x|gc \d+ @")
_CAUSE = re.compile(r"mu = [\d.]+\) ([A-Za-z][A-Za-z ]{0,40});")
_GO = re.compile(
    rf"gc \d{{1,9}} @(?P<at>{_N})s \d+%: (?P<first>{_N})\+(?P<marking>{_N})\+(?P<last>{_N}) ms clock, .* cpu, "
    rf"(?P<before>\d{{1,9}})->(?P<end>\d{{1,9}})->(?P<live>\d{{1,9}}) MB, .*"
)


class Traced:
    """A process that traces its collections to its output, because its environment or command says so."""

    def __init__(self, pid: int, runtime: RuntimeName) -> None:
        self._pid, self._runtime = pid, runtime
        self._began_unix_ns = {pid: _began_unix_ns(pid)}

    @classmethod
    def among(cls, pids: Iterable[int], proc: str = "/proc") -> "Traced | None":
        """Return the first of these processes that writes such a trace, or None."""
        return next(filter(None, (cls.of(pid, proc) for pid in pids)), None)

    @classmethod
    def of(cls, pid: int, proc: str = "/proc") -> "Traced | None":
        """The trace of a process; None if it writes none."""
        if b"--trace-gc" in procfs.read_bytes(f"{proc}/{pid}/cmdline").split(b"\0"):
            return cls(pid, "node")
        variables = procfs.read_bytes(f"{proc}/{pid}/environ").split(b"\0")
        traced = any(variable.startswith(b"GODEBUG=") and b"gctrace=1" in variable for variable in variables)
        return cls(pid, "go") if traced else None

    def facts(self, window_unix_ns: tuple[int, int], log: Path | None) -> RuntimeFacts | None:
        """Return facts about a window from the server's output, as far as it was kept; None without output."""
        if log is None:
            return None
        tally, traced_bytes = RuntimeTally(window_unix_ns), 0

        def counted(lines: Iterable[str]) -> Iterator[str]:
            nonlocal traced_bytes
            for line in lines:
                traced_bytes += len(line) if _OF_A_TRACE.match(line) else 0
                yield line

        try:
            with log.open(encoding="utf-8", errors="replace") as lines:
                for heap, event in self._read(counted(lines)):
                    tally.add(event, heap)
        except OSError:
            return None
        return tally.facts(self._runtime, traced_bytes=traced_bytes)

    def _read(self, lines: Iterable[str]) -> Iterator[tuple[int, Event]]:
        if self._runtime == "node":
            return read_node(lines, self._began)
        return ((self._pid, event) for event in read_go(lines, self._began(self._pid)))

    def _began(self, pid: int) -> int:
        """Return when a process began; for an unknown process id, when the first process did."""
        if pid not in self._began_unix_ns:
            self._began_unix_ns[pid] = _began_unix_ns(pid) or self._began(self._pid)
        return self._began_unix_ns[pid]


def _began_unix_ns(pid: int) -> int:
    """Return a process's start, to the kernel's 10 ms; 0 for a missing process."""
    import psutil  # noqa: PLC0415 - it is slow to import, and only Node and Go leave traces

    try:
        return round(psutil.Process(pid).create_time() * 1e9)
    except psutil.Error:
        return 0


def read_node(lines: Iterable[str], began_unix_ns: Callable[[int], int]) -> Iterator[tuple[int, Event]]:
    """Yield events of V8's collections, with their processes. `began_unix_ns` maps a process to its start.

    Each worker of a cluster has its own heap, and pauses alone. A line is written when a collection ends.
    """
    yield 0, Named(collector="V8")
    used: dict[int, tuple[int, int]] = {}
    for line in lines:
        match = _V8.fullmatch(line.strip())
        if match is None:
            continue
        pid, took_ns = int(match["pid"]), round(float(match["took"]) * _MS)
        end_ns = began_unix_ns(pid) + round(float(match["at"]) * _MS)
        before, after = (round(float(match[name]) * _MIB) for name in ("before", "after"))
        kind: CollectionKind = "young" if match["name"] in ("Scavenge", "Minor Mark-Compact") else "full"
        yield pid, Pause(start_unix_ns=end_ns - took_ns, duration_ns=took_ns, cause=match["name"])
        collection = Collection(
            start_unix_ns=end_ns - took_ns,
            duration_ns=took_ns,
            kind=kind,
            cause=cause[1] if (cause := _CAUSE.search(line)) else "",
            before_bytes=before,
            after_bytes=after,
            capacity_bytes=round(float(match["capacity"]) * _MIB),
            live_bytes=after if kind == "full" else None,
        )
        yield pid, collection
        since_ns, left = used.get(pid, (end_ns, before))
        if end_ns > since_ns and before >= left:
            yield pid, Allocated(end_ns, before - left, end_ns - since_ns)
        used[pid] = end_ns, after


def read_go(lines: Iterable[str], began_unix_ns: int) -> Iterator[Event]:
    """Yield events of Go's collections: cycles with a short pause at either end."""
    yield Named(collector="Go")
    used: tuple[int, int] | None = None
    for line in lines:
        match = _GO.fullmatch(line.strip())
        if match is None:
            continue
        start_ns = began_unix_ns + round(float(match["at"]) * 1e9)
        first, marking, last = (round(float(match[name]) * _MS) for name in ("first", "marking", "last"))
        end_ns = start_ns + first + marking + last
        before, end, live = (int(match[name]) * _MIB for name in ("before", "end", "live"))
        yield Pause(start_unix_ns=start_ns, duration_ns=first, cause="sweep termination")
        yield Pause(start_unix_ns=end_ns - last, duration_ns=last, cause="mark termination")
        yield Collection(
            start_unix_ns=start_ns,
            duration_ns=end_ns - start_ns,
            kind="cycle",
            cause="forced" if line.rstrip().endswith("(forced)") else "",
            concurrent=True,
            before_bytes=before,
            after_bytes=live,
            live_bytes=live,
        )
        if used is not None and start_ns > used[0] and before >= used[1]:
            yield Allocated(start_ns, before - used[1], start_ns - used[0])
        if end_ns > start_ns and end >= before:
            yield Allocated(end_ns, end - before, end_ns - start_ns)
        used = end_ns, live
