"""How long `redline` takes to answer when it measures nothing: `python -m bench.startup [ROUNDS]`.

The invocations take turns, so that a disturbance of the machine falls on all of them. The first line is the interpreter
alone, which no command can undercut.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time

ROUNDS = 11
BARE = "python -c pass"
REDLINE = ("--version", "--help", "load --help", "list --help")
COMPLETIONS = ("redline his", "redline load --req")


def invocations() -> dict[str, tuple[list[str], dict[str, str]]]:
    """The command line and the further environment of each, by what it is called."""
    redline = shutil.which("redline", path=os.path.dirname(sys.executable)) or "redline"  # noqa: PTH120
    found: dict[str, tuple[list[str], dict[str, str]]] = {BARE: ([sys.executable, "-c", "pass"], {})}
    found |= {f"redline {args}": ([redline, *args.split()], {}) for args in REDLINE}
    for line in COMPLETIONS:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        found[f"completion of `{line}`"] = ([redline], {"_REDLINE_COMPLETE": "complete_bash", **words})
    return found


def measure(rounds: int) -> dict[str, list[float]]:
    """Seconds of each invocation, round by round. The round before the first fills the caches."""
    seconds: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, (command, env) in invocations().items():
            begin = time.perf_counter()
            subprocess.run(command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, check=True, timeout=60)
            if number:
                seconds.setdefault(name, []).append(time.perf_counter() - begin)
    return seconds


if __name__ == "__main__":
    for name, taken in measure(int(sys.argv[1]) if sys.argv[1:] else ROUNDS).items():
        print(f"{name:38} median {statistics.median(taken):.3f} s   best {min(taken):.3f} s   of {len(taken)}")
