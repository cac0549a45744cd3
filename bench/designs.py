"""How much narrower a duet's interval is than that of interleaved trials: `python -m bench.designs [--pairs 10]`.

hyper against axum, CPU per request: a minute of `redline ab`, then a minute of `redline run` with interleaved trials of
a second, and so on, in an order that changes. Prints the half widths and the ratio of both with its 95% interval.
"""

import argparse
import json
import math
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.duets import REDLINE, ratio_of, stolen
from bench.rig import CHECKOUT, engine_version, machine
from redline.stats.distributions import t_quantile

SECONDS = 60
TRIALS = 17
"""Trials per server that take about as long as the duet: one second, half a second of warm-up, a fresh start."""
SUITE = """
servers: [rust.hyper, rust.axum]
baseline: rust.hyper
scenarios: [SimpleGet]
loads: {{saturate: {{closed: {{users: 64}}, for: 1s}}}}
warmup: 500ms
trials: {trials}
seed: {seed}
"""


def duet(seed: int) -> float:
    """The half width of axum over hyper in a minute of slices, as a log ratio."""
    folder = CHECKOUT / "catalogue" / "rust" / "target" / "release"
    commands = [f"{folder / name} --port {{port}} --routes 128 --threads 1" for name in ("hyper", "axum")]
    found = answer("ab", *commands, "--path", "/path0", "--for", f"{SECONDS}s", "--seed", str(seed), "--json")
    return half_width(found)


def interleaved(seed: int) -> float:
    """The same in a minute of trials of each server alone."""
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite.yaml"
        suite.write_text(SUITE.format(trials=TRIALS, seed=seed))
        found = answer("run", str(suite), "-o", f"{folder}/run", "--json")
    return half_width(found)


def answer(*command: str) -> dict[str, Any]:
    """The JSON that `redline` prints."""
    done = subprocess.run([REDLINE, *command], capture_output=True, text=True, check=True, timeout=600, cwd=CHECKOUT)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def half_width(report: dict[str, Any]) -> float:
    """Half the width of the interval of the CPU time per request, on logarithms."""
    ratio = ratio_of(report, "cpu-per-request")
    assert ratio is not None, report["comparisons"]
    return (math.log(ratio["high"]) - math.log(ratio["low"])) / 2


def main() -> None:
    """Measure in turns, and print a line for each pair and the ratio over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    pairs = parser.parse_args().pairs
    subprocess.run([REDLINE, "build", "rust.*"], check=True, cwd=CHECKOUT, capture_output=True)
    print(f"{machine()}; {engine_version()}")
    began, gains = stolen(), []
    for number in range(pairs):
        widths, seconds = {}, {}
        for design in (duet, interleaved)[:: 1 if number % 2 else -1]:
            start = time.monotonic()
            widths[design] = design(number)
            seconds[design] = time.monotonic() - start
        gains.append(math.log(widths[interleaved] / widths[duet]))
        print(
            f"duet ±{widths[duet]:.2%} in {seconds[duet]:.0f} s, interleaved ±{widths[interleaved]:.2%} in"
            f" {seconds[interleaved]:.0f} s: {math.exp(gains[-1]):.1f} times",
            flush=True,
        )
    steal, total = (after - before for after, before in zip(stolen(), began, strict=True))
    mean, error = statistics.mean(gains), statistics.stdev(gains) / math.sqrt(pairs)
    low, high = (math.exp(mean + side * t_quantile(0.975, pairs - 1) * error) for side in (-1, 1))
    interval = f"95% interval {low:.1f} to {high:.1f}"
    print(f"duets are {math.exp(mean):.1f} times as narrow ({interval}); {steal / total:.1%} steal")


if __name__ == "__main__":
    main()
