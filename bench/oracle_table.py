"""The engine's own error: for servers of known answers, the truth beside what the engine says.

Prints a section for results.md.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.queueing import mm1_responses
from bench.rig import build_oracle, drive, engine_version, machine, running
from redline.errors import RedlineError
from redline.model import Load, Open

QUANTILES = (0.5, 0.9, 0.99, 0.999)
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class Case:
    """A discipline, the load on it, the quantiles of its response time in seconds, and how far chance moves them."""

    name: str
    arguments: tuple[str, ...]
    load: Open
    seconds: int
    truth: Callable[[float], float]
    spread: Callable[[float], float] = lambda _q: 0.0


def uniform(rate: float, connections: int = 256) -> Open:
    """Arrivals at even distances."""
    return Open(rate_per_s=rate, arrivals="uniform", connections=connections)


def mm1(arrival_rate: float, service_rate: float, seconds: int) -> Case:
    """One worker under Poisson arrivals: exponential with the difference of the rates."""

    def spread(q: float) -> float:
        n = round(arrival_rate * seconds)
        rng = np.random.default_rng(5)
        found = [np.quantile(mm1_responses(arrival_rate, service_rate, n, rng), q) for _ in range(200)]
        return float(np.std(found))

    return Case(
        f"M/M/1, {arrival_rate:,.0f} of {service_rate:,.0f} per second, Poisson",
        ("exponential", "--rate", f"{service_rate:.0f}", "--seed", "11"),
        Open(rate_per_s=arrival_rate, arrivals="poisson", connections=512),
        seconds,
        lambda q: -math.log(1 - q) / (service_rate - arrival_rate),
        spread,
    )


CASES = (
    Case("null, 1,000 per second", ("null",), uniform(1000), 10, lambda _q: 0.0),
    Case("fixed 5 ms, 1,000 per second", ("fixed", "--delay", "5ms"), uniform(1000), 10, lambda _q: 0.005),
    Case("fixed 5 ms, 10,000 per second", ("fixed", "--delay", "5ms"), uniform(10_000, 512), 10, lambda _q: 0.005),
    mm1(500, 1000, 30),
    mm1(1600, 2000, 30),
    Case(
        "stall of 100 ms every 1 s, 1,000 per second",
        ("stall", "--every", "1s", "--for", "100ms"),
        uniform(1000),
        10,
        lambda q: max(0.0, 0.1 - (1 - q)),
    ),
)


def three_us(*values_ns: int) -> str:
    """`12 / 88 / 1034`, in microseconds."""
    return " / ".join(f"{value_ns / 1000:.0f}" for value_ns in values_ns)


def row(binary: Path, case: Case) -> str:
    """One line of the table: truth and observation at each quantile, in milliseconds."""
    load = Load(name="open", shape=case.load, duration_ns=case.seconds * _SECOND_NS)
    with running(binary, *case.arguments) as oracle:
        traffic = drive(oracle, load)
    cells = [case.name]
    for q in QUANTILES:
        truth_ms, spread_ms = case.truth(q) * 1000, case.spread(q) * 1000
        chance = f" ± {1.96 * spread_ms:.2f}" if spread_ms else ""
        cells.append(f"{truth_ms:.2f}{chance} / {traffic.response.quantile_ns(q) / 1e6:.3f}")
    own, late = oracle.lateness, traffic.lateness
    cells.append(three_us(own.late_p50_ns, own.late_p99_ns, own.late_max_ns) if own else "")
    cells.append(three_us(late.quantile_ns(0.5), late.quantile_ns(0.99), late.max_ns))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Run every case and print the section."""
    binary = build_oracle()
    heads = ["server and load", *(f"p{q * 100:g} ms" for q in QUANTILES)]
    print("## The oracle table\n")
    print("Response time: truth / engine. ± is the 95% range of chance in a run of that length (simulated).")
    print(
        "Lateness in us, p50 / p99 / max: the oracle's own after the truth, and the engine's. A large max is a pause of"
    )
    print("the machine, which all that queued in it bear.")
    print(f"{machine()}; {engine_version()}; oracle and engine not pinned.\n")
    print(f"| {' | '.join(heads)} | oracle late | engine late |")
    print(f"|{'---|' * (len(heads) + 2)}")
    for case in CASES:
        print(row(binary, case), flush=True)


if __name__ == "__main__":
    try:
        main()
    except RedlineError as error:
        sys.exit(str(error))
