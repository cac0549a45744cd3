"""What `redline` costs from Enter to its answer, beside bounds and other tools: `python -m bench.startup [ROUNDS]`.

The invocations take turns, so that a disturbance of the machine falls on all of them. The first line is the interpreter
alone, which no command can undercut. CPU is the command's own, without that of processes that it starts, and then with
them. A load lasts for its warm-up and its measurement in any case: its time is what it takes beyond these. Other tools
are those on the PATH.

The last lines say how long commands take to the first request of their first load, which warms servers up, by what
they store: URLs are those of servers that are ready, and commands start one.
"""

import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from redline.storage.runs import RunStore

ROUNDS = 11
ORACLE = shutil.which("redline-oracle", path=str(Path(sys.executable).parent)) or "redline-oracle"
BARE = "python -c pass"
COMPLETIONS = ("redline his", "redline load --req")
MEASURED = (0, 1)
"""Exit codes of a load that was made; 1 if its numbers are doubted, as on a busy machine."""
LOAD_S = 2.0
"""The warm-up and the measurement of `load -d 1s`."""
PEERS = {
    "wrk": "wrk -t1 -c64 -d1s --latency {url}",
    "oha": "oha --no-tui -c 64 -z 1s {url}",
    "hey": "hey -c 64 -z 1s {url}",
    "autocannon": "autocannon -c 64 -d 1 {url}",
    "vegeta": "sh -c 'echo GET {url} | vegeta attack -duration 1s -rate 0 -max-workers 64 | vegeta report'",
}
"""A closed load of a second by 64 connections, without a warm-up."""


class Bound(NamedTuple):
    """The most seconds of CPU, and of time, that an invocation may take."""

    cpu_s: float
    time_s: float


AT_ONCE = Bound(0.05, 0.05)
BOUNDS = {"redline --version": AT_ONCE, "redline --help": AT_ONCE, "redline load URL -d 1s": Bound(0.25, 0.3)}

MOST_TO_FIRST_S = 0.5
SUITE = """\
servers: [{{url: {url}, name: a}}, {{url: {other}, name: b}}]
scenarios: [{{name: get, method: GET, path: /}}]
loads: {{one: {{closed: {{users: 16}}, for: 1s}}}}
trials: 1
"""


class Taken(NamedTuple):
    """What an invocation took, in seconds."""

    cpu_s: float
    all_cpu_s: float
    """With the processes that it started and waited for."""
    time_s: float


class Invocation(NamedTuple):
    """A command line with its further environment, and for how long it works in any case."""

    command: list[str]
    env: dict[str, str] = {}
    works_s: float = 0.0


def invocations(url: str) -> dict[str, Invocation]:
    """All of them by what they are called."""
    redline = str(Path(sys.executable).with_name("redline"))
    words = ("--version", "--help", "load --help", "list --help")
    made = {BARE: Invocation([sys.executable, "-c", "pass"])}
    made |= {f"redline {args}": Invocation([redline, *args.split()]) for args in words}
    for line in COMPLETIONS:
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_REDLINE_COMPLETE": "complete_bash"}
        made[f"completion of `{line}`"] = Invocation([redline], asked)
    for name in ("redline", "redline-engine"):
        command = [str(Path(sys.executable).with_name(name)), "load", url, "-d", "1s"]
        made[f"{name} load URL -d 1s"] = Invocation(command, works_s=LOAD_S)
    for name, line in PEERS.items():
        if shutil.which(name):
            made[name] = Invocation(shlex.split(line.format(url=url)), works_s=1.0)
    return made


def taken(invocation: Invocation) -> Taken:
    """Make it, and return what it took. Raises CalledProcessError."""
    # As people start it: with modules that are compiled once.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    quiet, env = subprocess.DEVNULL, inherited | invocation.env
    began_s = time.perf_counter()
    with subprocess.Popen(invocation.command, env=env, stdout=quiet, stderr=quiet) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        took_s = time.perf_counter() - began_s
        of_children = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[13:15]
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in MEASURED:
        raise subprocess.CalledProcessError(process.returncode, invocation.command)
    children_s = sum(map(int, of_children)) / os.sysconf("SC_CLK_TCK")
    all_s = used.ru_utime + used.ru_stime
    return Taken(all_s - children_s, all_s, took_s - invocation.works_s)


def to_first_s(command: list[str]) -> float:
    """From Enter to the first request of the first load, in seconds, of a command that measures. Raises as `taken`."""
    with tempfile.TemporaryDirectory() as folder:
        began_ns = time.time_ns()
        taken(Invocation([*command, "-o", f"{folder}/run"]))
        store = RunStore(Path(folder) / "run")
        loads = (*(made.traffic for made in store.recordings()), *(made.traffic for made in store.duets()))
        return (min(traffic.epoch_unix_ns for traffic in loads if traffic is not None) - began_ns) / 1e9


def first_loads(url: str, other: str, suite: Path) -> dict[str, list[str]]:
    """Command lines that measure, by what they are called."""
    redline = str(Path(sys.executable).with_name("redline"))
    suite.write_text(SUITE.format(url=url, other=other))
    server = f"{ORACLE} null --port {{port}}"
    return {
        "redline load URL": [redline, "load", url, "-d", "1s"],
        "redline ab URL URL": [redline, "ab", url, other, "--for", "4s"],
        "redline ab COMMAND COMMAND": [redline, "ab", server, server, "--for", "4s"],
        "redline run SUITE of URLs": [redline, "run", str(suite)],
    }


def measure_first(rounds: int) -> dict[str, list[float]]:
    """How long commands take to the first request, round by round."""
    took: dict[str, list[float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        commands = first_loads(stack.enter_context(oracle()), stack.enter_context(oracle()), folder / "suite.yaml")
        for number in range(rounds + 1):
            for name, command in commands.items():
                seen_s = to_first_s(command)
                if number:
                    took.setdefault(name, []).append(seen_s)
    return took


@contextmanager
def oracle() -> Iterator[str]:
    """The URL of a server that answers at once."""
    with subprocess.Popen([ORACLE, "null"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://{server.stdout.readline().split()[-1]}/"
        finally:
            server.terminate()


def measure(rounds: int) -> dict[str, list[Taken]]:
    """What each invocation took, round by round. The round before the first fills the caches."""
    took: dict[str, list[Taken]] = {}
    with oracle() as url:
        for number in range(rounds + 1):
            for name, invocation in invocations(url).items():
                seen = taken(invocation)
                if number:
                    took.setdefault(name, []).append(seen)
    return took


def row(name: str, took: list[Taken]) -> str:
    """`redline --version   CPU 0.021 s (at most 0.05)   time 0.022 s (at most 0.05)`: the medians."""
    cpu_s, all_s, time_s = (statistics.median(values) for values in zip(*took, strict=True))
    bound = BOUNDS.get(name)
    most_cpu, most_time = (f" (at most {most:.2f})" if bound else "" for most in (bound or AT_ONCE))
    return f"{name:34} CPU {cpu_s:.3f} s{most_cpu:16} in all {all_s:.3f} s  time {time_s:.3f} s{most_time}"


if __name__ == "__main__":
    asked = int(sys.argv[1]) if sys.argv[1:] else ROUNDS
    for called, costs in measure(asked).items():
        print(row(called, costs))
    for called, seconds in measure_first(asked).items():
        print(f"{called:34} to its first request {statistics.median(seconds):.3f} s (at most {MOST_TO_FIRST_S:.2f})")
