"""What `redline ab` finds of a known difference: `python -m bench.duets [--runs N] [--for 60s] [--jvm] [PERCENT...]`.

A is a server with some work for each answer, and B the same with more: by so many percent of A's CPU time per
request. The server is the oracle, or with `--jvm` that of the JDK, which needs `java` and `javac`. The truth comes from
loads of one server at a time, by the kernel's account of it: what an answer of A costs, and what much more work costs.
0 is A against itself, and so is the control of every run. The runs of all differences take turns, in random order.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.rig import Oracle, build_oracle, drive, engine_version, machine, running
from redline.model import Closed, Load

Command = tuple[str, ...]
"""A server's command without its port and its work."""
REDLINE = Path(sys.executable).with_name("redline")
SERVER_CPU, ENGINE_CPU = 0, 1
BASE = 8_000
"""Steps of work in A, so that the server is what limits the load, as a real one would."""
MUCH = 8_000
"""Further steps, about half of what an answer of A costs. Five times as many cost a fifth less each, on a core that
others used: a server that works longer for each answer takes more of them from the kernel at once."""
CALIBRATED, PAIRS = 3, 20
"""So many starts of both servers, and so many loads of each in turn."""
LOAD = Load(name="saturate", shape=Closed(users=64), duration_ns=300_000_000)
HEADS = "           truth  runs      mean  half width    not 1  holds truth    A/A not 1  failed"
JVM = ("java", "-Dsun.net.httpserver.nodelay=true", "-XX:+UseSerialGC", "-Xmx256m", "-cp")
JVM_WARM_NS = 15_000_000_000
"""Before a server on a JVM costs what it costs from then on; measured, it is loaded for longer."""


@dataclass
class Found:
    """The ratios that the runs of one difference found: value, low and high."""

    steps: int
    ratios: list[tuple[float, float, float]] = field(default_factory=list)
    controls: int = 0
    failed: int = 0

    def add(self, answer: dict[str, Any] | None) -> None:
        """What one run found; None where it failed."""
        if answer is None:
            self.failed += 1
            return
        ratio, control = answer["ratio"], answer["self_ratio"]
        self.ratios.append((ratio["value"], ratio["low"], ratio["high"]))
        self.controls += not control["low"] <= 1 <= control["high"]

    def row(self, truth: Sequence[float]) -> str:
        """A line of the table; the truth is between these."""
        widths = [(high - low) / 2 for _, low, high in self.ratios]
        excluded = sum(not low <= 1 <= high for _, low, high in self.ratios)
        held = sum(low <= truth[-1] and truth[0] <= high for _, low, high in self.ratios)
        mean = statistics.mean(value for value, _, _ in self.ratios) - 1
        return (
            f"{truth[0] - 1:6.2%} to {truth[-1] - 1:6.2%} {len(self.ratios):5} {mean:9.2%}"
            f" {statistics.median(widths):11.2%} {excluded:8} {held:12} {self.controls:12} {self.failed:7}"
        )


def calibrate(command: Command, *, jvm: bool) -> tuple[float, float]:
    """CPU time of an answer of A in nanoseconds, and by how much a step of work raises it, as a share of it.

    Loads of the two servers alternate, because the speed of a core changes; the median of all pairs counts.
    """
    binary, *arguments = command
    pairs = []
    for _ in range(CALIBRATED):
        with (
            running(Path(binary), *arguments, "--work", str(BASE), cpu=SERVER_CPU) as a,
            running(Path(binary), *arguments, "--work", str(BASE + MUCH), cpu=SERVER_CPU) as much,
        ):
            for each in (a, much):
                drive(each, LOAD, warmup_ns=JVM_WARM_NS if jvm else 0, cpu=ENGINE_CPU)
            pairs += [(cpu_per_request_ns(a), cpu_per_request_ns(much)) for _ in range(PAIRS)]
    return statistics.median(a for a, _ in pairs), statistics.median((b / a - 1) / MUCH for a, b in pairs)


def cpu_per_request_ns(server: Oracle) -> float:
    """Over one load."""
    clock = ~server.pid << 3 | 2  # as clock_getcpuclockid(3) has it
    before = time.clock_gettime_ns(clock)
    traffic = drive(server, LOAD, warmup_ns=0, cpu=ENGINE_CPU)
    return (time.clock_gettime_ns(clock) - before) / sum(each.counts.completed for each in traffic.intervals)


def ask(command: Command, steps: int, lasts: str, seed: int) -> dict[str, Any] | None:
    """The answer of one run of `redline ab`."""
    a, b = (f"{' '.join(command)} --port {{port}} --work {work}" for work in (BASE, BASE + steps))
    asked = [str(REDLINE), "ab", a, b, "--for", lasts, "--seed", str(seed), "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return None
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@contextmanager
def serving(*, jvm: bool) -> Iterator[Command]:
    """The command of a server whose work per answer can be set."""
    if not jvm:
        yield (str(build_oracle()), "null")
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["javac", "-d", folder, Path(__file__).with_name("Worker.java")], check=True)
        yield (*JVM, folder, "Worker")


def stolen() -> tuple[float, float]:
    """CPU time that the hypervisor took since boot, and all of it."""
    times = psutil.cpu_times()
    return times.steal, sum(times) - times.guest - times.guest_nice


def main() -> None:
    """Read the arguments, and bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("percent", nargs="*", type=float, default=[0.0, 2.0, 5.0], help="differences to plant")
    parser.add_argument("--runs", type=int, default=10, help="of each difference")
    parser.add_argument("--for", dest="lasts", default="60s", help="of each run")
    parser.add_argument("--jvm", action="store_true", help="servers on a JVM; give them `--for 5m`")
    given = parser.parse_args()
    with serving(jvm=given.jvm) as command:
        bench(command, given)


def bench(command: Command, given: argparse.Namespace) -> None:
    """Calibrate, run, and print a table."""
    base_ns, step = calibrate(command, jvm=given.jvm)
    print(f"{machine()}; {engine_version()}\nan answer takes {base_ns:.0f} ns of CPU, a step of work {step:.5%} more")
    found = {percent: Found(round(percent / 100 / step)) for percent in given.percent}
    plan = [percent for percent in given.percent for _ in range(given.runs)]
    random.Random(1).shuffle(plan)
    began = stolen()
    for number, percent in enumerate(plan):
        answer = ask(command, found[percent].steps, given.lasts, seed=number)
        found[percent].add(answer)
        said = answer and {key: answer[key] for key in ("ratio", "self_ratio", "starts")}
        print(f"{number + 1}/{len(plan)}  planted {percent}%: {said}", file=sys.stderr)
    steal, total = (after - before for after, before in zip(stolen(), began, strict=True))
    again_ns, again = calibrate(command, jvm=given.jvm)
    print(f"afterwards an answer takes {again_ns:.0f} ns, a step of work {again:.5%} more: the truth is in between")
    print(f"{given.lasts} each, {steal / total:.1%} steal")
    print(HEADS)
    for each in found.values():
        if each.ratios:
            print(each.row(sorted(1 + each.steps * share for share in (step, again))))


if __name__ == "__main__":
    main()
