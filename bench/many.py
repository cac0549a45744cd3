"""A quarter of a million connections: how long they take to open, what they cost, and whether all of them answer.

Prints a section for results.md. Not part of `make bench`: it needs some 12 KiB of memory for each connection.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.cost.engine import Exchange
from bench.cost.pairs import progress
from bench.cost.place import look
from bench.cost.table import heads, line
from bench.rig import build_oracle, engine_binary, engine_version, machine, running
from redline.driving.protocol import JOB_FORMAT
from redline.errors import DriveError, RedlineError, UsageError
from redline.model import Histogram

SERVER_PROCESSES = 16
CONNECT_GOAL_S, MEMORY_GOAL_BYTES = 60.0, 2048
_NEEDED_BYTES_EACH = 12 * 1024
_NEEDED_BYTES = 1 << 30
_SECOND_NS = 1_000_000_000
_CONNECT_S, _WARMUP_S, _DRAIN_S = 120, 10, 10
_LOOK_EVERY_S = 1.0


@dataclass
class Memory:
    """Memory of all engine processes, in bytes: the largest sum of Pss, and the VmHWM per process."""

    pss: int = 0
    high_water: dict[int, int] = field(default_factory=dict)

    @property
    def processes(self) -> int:
        """That were seen."""
        return len(self.high_water)

    def look(self, pids: list[int]) -> None:
        """Read /proc once."""
        sums = 0
        for pid in pids:
            try:
                sums += _kib(Path(f"/proc/{pid}/smaps_rollup").read_text(), "Pss:")
                self.high_water[pid] = _kib(Path(f"/proc/{pid}/status").read_text(), "VmHWM:")
            except OSError:
                continue
        self.pss = max(self.pss, sums)


def _kib(text: str, name: str) -> int:
    """A line of /proc, as bytes; 0 where there is none."""
    found = [row.split()[1] for row in text.splitlines() if row.startswith(name)]
    return int(found[0]) * 1024 if found else 0


def job(port: int, users: int, pace_per_s: float, seconds: int, workers: int) -> dict[str, Any]:
    """A job of users with a pace of their own; they may take `timeout_ns` to connect, so that is long."""
    around_s = _CONNECT_S + _WARMUP_S + _DRAIN_S + 60
    return {
        "format": JOB_FORMAT,
        **Exchange(port).job(),
        "load": {"closed": {"users": users, "pace_per_s": pace_per_s}},
        "warmup_ns": _WARMUP_S * _SECOND_NS,
        "measure_ns": seconds * _SECOND_NS,
        "drain_ns": _DRAIN_S * _SECOND_NS,
        "timeout_ns": _CONNECT_S * _SECOND_NS,
        "interval_ns": _SECOND_NS,
        "deadline_ns": (seconds + around_s) * _SECOND_NS,
        "seed": 1,
        "workers": workers,
        "cpus": [],
    }


def drive(wanted: dict[str, Any]) -> tuple[list[dict[str, Any]], Memory]:
    """The engine's events, and its memory while it ran. Raises DriveError when there is no result."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [engine_binary()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        with _watched(process.pid) as memory:
            output = _ended(process, json.dumps(wanted), wanted["deadline_ns"] / 1e9 + 30)
        log.seek(0)
        said = log.read()[-500:]
    events = [json.loads(row) for row in output.splitlines() if row.startswith("{")]
    for event in events:
        if event["event"] == "error":
            raise DriveError(event["message"], hint=event.get("hint", ""))
    if not events or events[-1]["event"] != "result":
        raise DriveError(f"the engine ended with {process.returncode} and no result: {said}", hint="a fault of it")
    return events, memory


def _ended(process: "subprocess.Popen[str]", text: str, at_most_s: float) -> str:
    try:
        return process.communicate(text, timeout=at_most_s)[0]
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@contextmanager
def _watched(pid: int) -> Iterator[Memory]:
    """The memory of that process and all its children, looked at every second."""
    memory, over = Memory(), threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_EVERY_S):
            try:
                memory.look([pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))])
            except psutil.Error:
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield memory
    finally:
        over.set()
        watcher.join()


def section(users: int, events: list[dict[str, Any]], memory: Memory) -> str:
    """The Markdown of the result."""
    started = next(event for event in events if event["event"] == "started")
    result, counts = events[-1], events[-1]["counts"]
    connect_s, open_then = started["connect_ns"] / 1e9, started["connections"]
    each = memory.pss / max(open_then, 1)
    outcomes = ", ".join(f"{n:,} {kind}" for kind, n in counts["outcomes"].items() if n)
    wrong = sum(n for kind, n in counts["outcomes"].items() if kind != "ok")
    rows = (
        ("connections open at the start", f"{open_then:,}", f"{users:,}", open_then >= users),
        ("time to connect", f"{connect_s:.1f} s", f"≤ {CONNECT_GOAL_S:.0f} s", connect_s <= CONNECT_GOAL_S),
        ("outcomes", outcomes, "all ok", wrong == 0),
        (
            "engine memory per connection (Pss)",
            f"{each:,.0f} B",
            f"≤ {MEMORY_GOAL_BYTES:,} B",
            each <= MEMORY_GOAL_BYTES,
        ),
    )
    return "\n".join(
        [
            *heads(("", "found", "goal", "")),
            *(line((name, found, goal, "met" if met else "missed")) for name, found, goal, met in rows),
            "",
            *_besides(started, result, memory),
        ]
    )


def _besides(started: dict[str, Any], result: dict[str, Any], memory: Memory) -> list[str]:
    """What has no goal."""
    response, counts, who = Histogram.decode(result["response"]), result["counts"], started["engine"]
    window_s = (result["measure_end_ns"] - result["measure_start_ns"]) / 1e9
    quantiles = " / ".join(f"{response.quantile_ns(q) / 1e6:.2f}" for q in (0.5, 0.99, 0.999))
    cpu_us = result["engine_cpu_ns"] / 1000 / max(counts["completed"], 1)
    return [
        f"Ended: {result['ended']}. {counts['completed'] / window_s:,.0f} answers per second over {window_s:.0f} s,",
        f"{cpu_us:.1f} us of the engine's CPU each; response p50 / p99 / p99.9: {quantiles} ms.",
        f"{counts['reconnects']:,} reconnects, {counts['exhausted']:,} exhausted.",
        (
            f"The engine reported {who.get('processes', 1)} processes ({memory.processes} were seen),"
            f" {who['workers']} workers, {who.get('backend')};"
        ),
        (
            f"Pss of all at most {memory.pss / 1e6:,.0f} MB, the sum of their VmHWM"
            f" {sum(memory.high_water.values()) / 1e6:,.0f} MB."
        ),
    ]


def main() -> None:
    """Run it once and print the section."""
    parser = argparse.ArgumentParser(prog="python -m bench.many", description=__doc__)
    parser.add_argument("--connections", type=int, default=250_000, help="how many (250000)")
    parser.add_argument("--pace", type=float, default=0.1, help="requests per second of each (0.1)")
    parser.add_argument("--seconds", type=int, default=20, help="of the measurement (20)")
    parser.add_argument("--workers", type=int, default=1, help="of the engine, all its processes together (1)")
    flags = parser.parse_args()
    needed = flags.connections * _NEEDED_BYTES_EACH + _NEEDED_BYTES
    available = psutil.virtual_memory().available
    if available < needed:
        raise UsageError(
            f"{flags.connections:,} connections need about {needed / 1e9:.1f} GB, {available / 1e9:.1f} GB are free",
            hint="--connections with fewer of them",
        )
    first = look()
    progress(first)
    with running(build_oracle(), "null", "--processes", str(SERVER_PROCESSES), ends_within_s=120) as oracle:
        wanted = job(oracle.endpoint.port, flags.connections, flags.pace, flags.seconds, flags.workers)
        events, memory = drive(wanted)
    print(f"## {flags.connections:,} connections\n")
    print(
        f"Each sends {flags.pace:g} requests a second; the server has {SERVER_PROCESSES} processes, nothing is pinned."
    )
    print(f"{machine()}; {engine_version()}. Before: {first}\n")
    print(section(flags.connections, events, memory))


if __name__ == "__main__":
    try:
        main()
    except RedlineError as error:
        sys.exit(str(error))
