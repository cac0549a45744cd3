"""Engine against wrk: CPU per request and throughput, in alternating runs against `null`, one core each.

Prints a section for results.md. Needs two cores and wrk.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from bench.rig import PATH, Oracle, build_oracle, drive, engine_version, machine, running
from redline.errors import RedlineError, UsageError
from redline.model import Closed, Load

CONNECTIONS = 64
_REQUESTS = re.compile(r"(\d+) requests in")
_RATE = re.compile(r"Requests/sec:\s+([\d.]+)")


@dataclass(frozen=True)
class Sample:
    """One run of one client."""

    cpu_ns_per_request: float
    user_share: float
    requests_per_s: float


Client = Callable[[Oracle, int, int], tuple[int, float]]
"""(oracle, seconds, core) -> requests answered in all, requests per second."""


def wrk(oracle: Oracle, seconds: int, core: int) -> tuple[int, float]:
    """wrk with one thread, as its users run it."""
    url = f"http://{oracle.endpoint.host}:{oracle.endpoint.port}{PATH}"
    command = ["taskset", "--cpu-list", str(core), "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", url]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    requests, rate = _REQUESTS.search(told), _RATE.search(told)
    if requests is None or rate is None:
        raise UsageError(f"wrk said what this bench cannot read: {told[:200]!r}", hint="use wrk 4.1 or newer")
    return int(requests[1]), float(rate[1])


def engine(oracle: Oracle, seconds: int, core: int) -> tuple[int, float]:
    """The engine, every answer's status and length checked, every time of it recorded; a warm-up like the load."""
    warmup_ns = 200_000_000
    load = Load(name="closed", shape=Closed(users=CONNECTIONS), duration_ns=seconds * 1_000_000_000 - warmup_ns)
    traffic = drive(oracle, load, warmup_ns=warmup_ns, cpu=core)
    return sum(interval.counts.completed for interval in traffic.intervals), traffic.rate_per_s


def sample(client: Client, oracle: Oracle, seconds: int, core: int) -> Sample:
    """One run, with the CPU time of the client's whole process, its start and end included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    requests, rate = client(oracle, seconds, core)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return Sample((user + system) * 1e9 / requests, user / (user + system), rate)


def ratio(ours: list[float], theirs: list[float]) -> str:
    """Mean ratio of paired runs with its 95% interval: Student's t on the logarithms."""
    logs = np.log(ours) - np.log(theirs)
    half = float(student.ppf(0.975, len(logs) - 1)) * float(logs.std(ddof=1)) / len(logs) ** 0.5
    mean = float(logs.mean())
    return f"{np.exp(mean):.3f} [{np.exp(mean - half):.3f}, {np.exp(mean + half):.3f}]"


def section(engines: list[Sample], wrks: list[Sample], seconds: int) -> str:
    """The Markdown of the result."""
    version = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout.split(" Copyright")[0]
    rows = [
        f"| {name} | {np.mean([s.cpu_ns_per_request for s in runs]) / 1000:.2f} us"
        f" | {np.mean([s.user_share for s in runs]):.0%} | {np.mean([s.requests_per_s for s in runs]):,.0f} |"
        for name, runs in (("redline-engine", engines), ("wrk", wrks))
    ]
    cpu = ratio([s.cpu_ns_per_request for s in engines], [s.cpu_ns_per_request for s in wrks])
    rate = ratio([s.requests_per_s for s in engines], [s.requests_per_s for s in wrks])
    return "\n".join(
        [
            "## Engine against wrk",
            "",
            f"{len(engines)} pairs of runs of {seconds} s, order alternating, {CONNECTIONS} connections,",
            f"`null` on one core, the client on another. {machine()}; {engine_version()}; {version.strip()}.",
            "",
            "| client | CPU per request | of it in user space | requests per second |",
            "|---|---|---|---|",
            *rows,
            f"| **ratio, engine to wrk** | **{cpu}** | | **{rate}** |",
        ]
    )


def main() -> None:
    """Run the pairs and print the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="pairs of runs, at least 3 (10)")
    parser.add_argument("--seconds", type=int, default=4, help="length of a run, at least 1 (4)")
    asked = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if asked.rounds < 3 or asked.seconds < 1:
        raise UsageError("an interval needs three rounds of a second at least", hint="--rounds 10 --seconds 4")
    if shutil.which("wrk") is None:
        raise UsageError("wrk is not installed, so there is nothing to compare with", hint="apt-get install wrk")
    if len(cores) < 2:
        raise UsageError("server and client need a core each, and there is one", hint="use a machine with two cores")
    engines: list[Sample] = []
    wrks: list[Sample] = []
    pair: list[tuple[Client, list[Sample]]] = [(engine, engines), (wrk, wrks)]
    with running(build_oracle(), "null", cpu=cores[0]) as oracle:
        for number in range(asked.rounds):
            for client, samples in pair if number % 2 == 0 else reversed(pair):
                samples.append(sample(client, oracle, asked.seconds, cores[1]))
            print(f"round {number + 1}: engine {engines[-1]}, wrk {wrks[-1]}", file=sys.stderr)
    print(section(engines, wrks, asked.seconds))


if __name__ == "__main__":
    try:
        main()
    except RedlineError as error:
        sys.exit(str(error))
