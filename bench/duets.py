"""What `redline ab` finds of a known difference: `python -m bench.duets [--runs N] [--for 60s] [PERCENT...]`.

A is a server with some work for each answer, and B the same with more: by so many percent of A's CPU time per
request. The server is the oracle, or with `--jvm` that of the JDK, which needs `java` and `javac`. The truth comes from
loads of one server at a time, by the kernel's account of it: what an answer of A costs, and what much more work costs.
0 is A against itself, and so is the control of every run. The runs of all differences take turns, in random order.
With `--beside` two runs are made at a time, of which each is the other's neighbour, with slices as long.
"""

import argparse
import json
import math
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
METRICS = ("cpu-per-request", "throughput", "p50", "p99")
HEADS = (
    "planted              truth  metric           runs      mean  half width  not 1  wrong way  holds truth  A/A not 1"
    "  not known  failed"
)
JVM = ("java", "-Dsun.net.httpserver.nodelay=true", "-XX:+UseSerialGC", "-Xmx256m", "-cp")
JVM_WARM_NS = 15_000_000_000
"""Before a server on a JVM costs what it costs from then on; measured, it is loaded for longer."""


@dataclass
class Found:
    """What the runs of one difference say of a metric: value, low and high of each ratio that they know."""

    metric: str
    ratios: list[tuple[float, float, float]] = field(default_factory=list)
    controls: int = 0
    unknown: int = 0
    failed: int = 0

    def add(self, answer: dict[str, Any] | None) -> None:
        """What one run found; None where it failed."""
        if answer is None:
            self.failed += 1
            return
        ratio, control = (ratio_of(answer, self.metric, control=control) for control in (False, True))
        if not ratio or ratio["low"] is None:
            self.unknown += 1
            return
        self.ratios.append((ratio["value"], ratio["low"], ratio["high"]))
        self.controls += control is not None and not control["low"] <= 1 <= control["high"]

    def row(self, planted: float, truth: Sequence[float]) -> str:
        """A line of the table.

        The truth of the CPU time per request is between these two. Of other metrics only the side is known: a server
        that works more for each answer is not faster.
        """
        widths = [(high - low) / 2 for _, low, high in self.ratios] or [math.nan]
        excluded = sum(not low <= 1 <= high for _, low, high in self.ratios)
        mean = statistics.mean([value for value, _, _ in self.ratios] or [math.nan]) - 1
        better = [low > 1 if self.metric == "throughput" else high < 1 for _, low, high in self.ratios]
        wrong = sum(better) if planted else excluded
        known = self.metric == "cpu-per-request" or not planted
        held = sum(low <= truth[-1] and truth[0] <= high for _, low, high in self.ratios) if known else "-"
        said = f"{truth[0] - 1:.2%} to {truth[-1] - 1:.2%}" if known else "-"
        return (
            f"{planted:6}% {said:>18}  {self.metric:15} {len(self.ratios):5} {mean:9.2%}"
            f" {statistics.median(widths):11.2%} {excluded:6} {wrong:10} {held:>12} {self.controls:10}"
            f" {self.unknown:10} {self.failed:7}"
        )


def ratio_of(report: dict[str, Any], metric: str, *, control: bool = False) -> dict[str, Any] | None:
    """The ratio of the only comparison by this metric in a report, or of A with itself; None if it is not known."""
    (found,) = (each for each in report["comparisons"] if each["metric"] == metric)
    ratio: dict[str, Any] | None = (found.get("duet") or {}).get("control") if control else found.get("ratio")
    return ratio


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


@dataclass(frozen=True)
class Comparing:
    """A run of `redline ab` under way."""

    process: "subprocess.Popen[str]"

    @classmethod
    def start(cls, command: Command, steps: int, lasts: str, seed: int) -> "Comparing":
        """Compare A with a server that does so many steps of work more."""
        a, b = (f"{' '.join(command)} --port {{port}} --work {work}" for work in (BASE, BASE + steps))
        asked = [str(REDLINE), "ab", a, b, "--for", lasts, "--seed", str(seed), "--json"]
        return cls(subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def answer(self) -> dict[str, Any] | None:
        """Its report once it has ended; None where it failed."""
        out, errors = self.process.communicate(timeout=900)
        if self.process.returncode:
            print(errors, file=sys.stderr)
            return None
        report: dict[str, Any] = json.loads(out)
        return report


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
    parser.add_argument("--beside", action="store_true", help="two runs at a time, each the other's neighbour")
    parser.add_argument("--jvm", action="store_true", help="servers on a JVM; give them `--for 5m`")
    given = parser.parse_args()
    with serving(jvm=given.jvm) as command:
        bench(command, given)


def bench(command: Command, given: argparse.Namespace) -> None:
    """Calibrate, run, and print a table."""
    base_ns, step = calibrate(command, jvm=given.jvm)
    print(f"{machine()}; {engine_version()}\nan answer takes {base_ns:.0f} ns of CPU, a step of work {step:.5%} more")
    steps = {percent: round(percent / 100 / step) for percent in given.percent}
    found = {percent: [Found(metric) for metric in METRICS] for percent in given.percent}
    plan = [percent for percent in given.percent for _ in range(given.runs)]
    random.Random(1).shuffle(plan)
    began, at_once = stolen(), 2 if given.beside else 1
    for number in range(0, len(plan), at_once):
        together = plan[number : number + at_once]
        runs = [Comparing.start(command, steps[percent], given.lasts, number) for percent in together]
        for percent, run in zip(together, runs, strict=True):
            answer = run.answer()
            for metric in found[percent]:
                metric.add(answer)
            said = answer and {name: _said(ratio_of(answer, name)) for name in METRICS}
            print(f"{number + 1}/{len(plan)}  planted {percent}%: {said}", file=sys.stderr, flush=True)
    steal, total = (after - before for after, before in zip(stolen(), began, strict=True))
    again_ns, again = calibrate(command, jvm=given.jvm)
    print(f"afterwards an answer takes {again_ns:.0f} ns, a step of work {again:.5%} more: the truth is in between")
    print(f"{given.lasts} each, {steal / total:.1%} steal")
    print(HEADS)
    for percent, metrics in found.items():
        for metric in metrics:
            print(metric.row(percent, sorted(1 + steps[percent] * share for share in (step, again))))


def _said(ratio: dict[str, Any] | None) -> str:
    if ratio is None or ratio["low"] is None:
        return "not known"
    return f"{ratio['value'] - 1:+.2%} [{ratio['low'] - 1:+.2%}, {ratio['high'] - 1:+.2%}]"


if __name__ == "__main__":
    main()
