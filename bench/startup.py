"""What `redline` costs from Enter to its answer, beside bounds and other tools: `python -m bench.startup [ROUNDS]`.

The invocations take turns, so that a disturbance of the machine falls on all of them. The first line is the interpreter
alone, which no command can undercut. CPU is the command's own, without that of processes that it starts, and then with
them. A load lasts for its warm-up and its measurement in any case: its time is what it takes beyond these. Other tools
are those on the PATH.
"""

import os
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROUNDS = 11
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


@contextmanager
def oracle() -> Iterator[str]:
    """The URL of a server that answers at once."""
    found = shutil.which("redline-oracle", path=str(Path(sys.executable).parent)) or "redline-oracle"
    with subprocess.Popen([found, "null"], stdout=subprocess.PIPE, text=True) as server:
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
    for called, seconds in measure(int(sys.argv[1]) if sys.argv[1:] else ROUNDS).items():
        print(row(called, seconds))
