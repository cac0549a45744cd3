"""How late open loads are sent, and what that costs, by rate: `python -m bench.lateness ENGINE [ENGINE]`.

With two engines, the second is measured against the first: they take turns, A B A B. The server has the first core, the
engine the second one. The machine's steal and the time that others took of its cores are printed beside the figures.
"""

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.cost.engine import BACKENDS, WARMUP_NS, Exchange, Work, events_of, uniform
from bench.rig import build_oracle, machine, running
from redline.model import Histogram

RATES_PER_S = (100, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
PAIRS = 5
SECONDS = 4.0
_SERVER_CORE, _ENGINE_CORE = 0, 1
_US = 1_000


@dataclass(frozen=True)
class Late:
    """One load: percentiles in microseconds, CPU time as a share of a core."""

    late_p50_us: float
    late_p99_us: float
    response_p50_us: float
    response_p99_us: float
    service_p50_us: float
    cpu_share: float


def measure(engine: Path, port: int, rate_per_s: int, backend: str, seconds: float) -> Late:
    """One load of an engine. Raises DriveError when there is no result."""
    work = Work(Exchange(port=port), uniform(rate_per_s, 16), seconds, (_ENGINE_CORE,))
    events = events_of(["taskset", "--cpu-list", str(_ENGINE_CORE), str(engine)], work.job(backend), seconds + 30)
    return read(events[-1], seconds - WARMUP_NS / 1e9)


def read(result: dict[str, Any], seconds: float) -> Late:
    """What the result says."""
    late, response, service = (Histogram.decode(result[name]) for name in ("lateness", "response", "service"))
    return Late(
        late_p50_us=late.quantile_ns(0.5) / _US,
        late_p99_us=late.quantile_ns(0.99) / _US,
        response_p50_us=response.quantile_ns(0.5) / _US,
        response_p99_us=response.quantile_ns(0.99) / _US,
        service_p50_us=service.quantile_ns(0.5) / _US,
        cpu_share=result["engine_cpu_ns"] / 1e9 / seconds,
    )


def cpu_ticks() -> tuple[int, int, int]:
    """Ticks of all cores: all, idle, stolen."""
    ticks = [int(text) for text in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4], ticks[7]


def row(name: str, measured: list[Late]) -> str:
    """The median of each figure."""
    fields = ("late_p50_us", "late_p99_us", "response_p50_us", "response_p99_us", "service_p50_us")
    medians = [statistics.median(getattr(late, field) for late in measured) for field in fields]
    cpu = statistics.median(late.cpu_share for late in measured)
    return f"{name:>24} " + " ".join(f"{median:13.1f}" for median in medians) + f" {cpu:8.1%}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.lateness", description=__doc__)
    parser.add_argument("engines", nargs="+", type=Path, metavar="ENGINE")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rate", type=int, action="append", dest="rates", metavar="PER_S")
    parser.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0])
    given = parser.parse_args()
    print(f"{machine()}; {given.backend}; medians of {given.pairs} loads of {given.seconds:g} s")
    print(f"{'':>24} {'late p50 us':>13} {'late p99 us':>13} {'resp p50 us':>13} {'resp p99 us':>13} "
          f"{'serv p50 us':>13} {'CPU':>8}")  # fmt: skip
    before = cpu_ticks()
    with running(build_oracle(), "null", cpu=_SERVER_CORE) as oracle:
        for rate_per_s in given.rates or RATES_PER_S:
            measured: dict[Path, list[Late]] = {engine: [] for engine in given.engines}
            for _ in range(given.pairs):
                for engine in given.engines:
                    late = measure(engine, oracle.endpoint.port, rate_per_s, given.backend, given.seconds)
                    measured[engine].append(late)
            for engine, loads in measured.items():
                print(row(f"{rate_per_s:,}/s {engine.name[-12:]}", loads), flush=True)
    every, idle, stolen = (now - then for now, then in zip(cpu_ticks(), before, strict=True))
    print(f"all cores meanwhile: {1 - idle / every:.0%} busy, {stolen / every:.1%} stolen")


if __name__ == "__main__":
    main()
