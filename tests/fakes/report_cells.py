"""Handmade cells of a report: their trials, estimates, percentiles and timelines."""

import math
import random
from functools import cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from redline.model import (
    RESPONSE_TIMES,
    CellReport,
    Comparison,
    Counts,
    Estimate,
    Finding,
    FindingKind,
    Grade,
    Histogram,
    Metric,
    Moment,
    Outcomes,
    Percentile,
    Report,
    TrialReport,
    Verdict,
)
from redline.stats import QUANTILE_OF

TRIALS = 5
QS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)
LOADS = {"saturate": "closed, 64 users, 1s", "steady": "open, 20000/s poisson, 1s"}


def estimate(value: float, relative: float, unit: str, n: int = TRIALS) -> Estimate:
    """A value with an interval of `relative` to both sides; none with fewer than two trials."""
    low, high = (value * (1 - relative), value * (1 + relative)) if n > 1 else (None, None)
    return Estimate(value=value, low=low, high=high, unit=unit, n=n, method="bootstrap of the mean, BCa")


def comparison(
    metric: Metric, cell_id: str, baseline_id: str, ratio: float, relative: float, *, primary: bool = True
) -> Comparison:
    """The verdict that the interval allows, at a threshold of 2%; none for a metric that is not primary."""
    low, high = ratio * (1 - relative), ratio * (1 + relative)
    if low >= 1 / 1.02 and high <= 1.02:
        verdict = Verdict.EQUIVALENT
    elif low <= 1 <= high:
        verdict = Verdict.INCONCLUSIVE
    else:
        verdict = Verdict.FASTER if (low > 1) == metric.higher_is_better else Verdict.SLOWER
    found = Estimate(value=ratio, low=low, high=high, unit="ratio", n=TRIALS, method="bootstrap of the log ratio")
    return Comparison(
        metric=metric,
        cell_id=cell_id,
        baseline_id=baseline_id,
        ratio=found,
        verdict=verdict if primary else None,
        threshold=0.02,
        primary=primary,
    )


def finding(kind: FindingKind, grade: Grade, message: str, advice: str, cell_id: str) -> Finding:
    return Finding(kind=kind, grade=grade, message=message, advice=advice, cell_id=cell_id)


def cell(
    server: str,
    scenario: str,
    load: str,
    *,
    rate: float,
    p50_us: float,
    tail: float = 0.35,
    baseline: str = "rust.hyper",
    role: Literal["subject", "ceiling"] = "subject",
    trials: int = TRIALS,
) -> CellReport:
    """A cell with log-normal latencies: the same arguments give the same cell."""
    slug = f"{server}.{scenario}.{load}"
    rng = random.Random(slug)
    merged, served = _latencies(p50_us * 1e3, tail, queued=load == "steady")
    cpu_ns = 1.7e9 / rate
    done = int(rate * trials)
    return CellReport(
        cell_id=f"{slug}-{rng.getrandbits(32):08x}",
        slug=slug,
        server=server,
        build=random.Random(server).randbytes(32).hex(),
        runtime_version="rustc 1.95.0",
        scenario=scenario,
        load=load,
        load_text=LOADS[load],
        role=role,
        is_baseline=server == baseline,
        valid=True,
        trials_planned=trials,
        trials=tuple(trial(rng, round_, rate, merged, cpu_ns) for round_ in range(trials)),
        estimates=estimates(rate, merged, cpu_ns, trials),
        counts=Counts(
            due=done,
            sent=done,
            completed=done,
            bytes_received=done * 120,
            outcomes=Outcomes(ok=done),
            status={"2xx": done},
        ),
        response=merged,
        response_percentiles=tuple(Percentile(q=q, ns=merged.quantile_ns(q)) for q in QS),
        service_percentiles=tuple(Percentile(q=q, ns=served.quantile_ns(q)) for q in QS),
        timeline=tuple(m for round_ in range(trials) for m in timeline(rng, round_ * 6, rate, merged)),
        findings=(),
    )


@cache
def _normal_quantiles(count: int) -> NDArray[np.float64]:
    return np.array([NormalDist().inv_cdf((index + 0.5) / count) for index in range(count)])


def _latencies(p50_ns: float, tail: float, *, queued: bool) -> tuple[Histogram, Histogram]:
    """Response and service times: the log-normal's own quantiles; when queued, one in 250 also waited."""
    service = log_normal(p50_ns, tail, 20_000)
    if not queued:
        return service, service
    return Histogram.merged((log_normal(p50_ns * 1.15, tail, 19_920), log_normal(p50_ns * 9, tail, 80))), service


def log_normal(p50_ns: float, sigma: float, count: int) -> Histogram:
    return Histogram.of(p50_ns * np.exp(sigma * _normal_quantiles(count)))


def estimates(rate: float, response: Histogram, cpu_ns: float, trials: int) -> dict[Metric, Estimate]:
    quantiles = {metric: QUANTILE_OF[metric] for metric in RESPONSE_TIMES}
    percentiles = {
        metric: estimate(response.quantile_ns(q), 0.004 / (1 - q) ** 0.4, "ns", trials)
        for metric, q in quantiles.items()
    }
    return {
        Metric.THROUGHPUT: estimate(rate, 0.007, "1/s", trials),
        **percentiles,
        Metric.CPU_PER_REQUEST: estimate(cpu_ns, 0.009, "ns", trials),
        Metric.MEMORY: estimate(12.6e6, 0.02, "B", trials),
    }


def trial(rng: random.Random, round_: int, rate: float, response: Histogram, cpu_ns: float) -> TrialReport:
    return TrialReport(
        position=round_ * 6,
        round=round_,
        used=True,
        rate_per_s=rate * rng.gauss(1, 0.006),
        p50_ns=int(response.quantile_ns(0.5) * rng.gauss(1, 0.01)),
        p99_ns=int(response.quantile_ns(0.99) * rng.gauss(1, 0.05)),
        cpu_per_request_ns=cpu_ns * rng.gauss(1, 0.01),
    )


def timeline(rng: random.Random, position: int, rate: float, response: Histogram) -> list[Moment]:
    p50_ns, p99_ns = response.quantiles_ns((0.5, 0.99))
    moments = []
    for step in range(26):
        at_s = step * 0.1 + 0.05
        cold = math.exp(-at_s / 0.12)
        phase: Literal["warmup", "measure", "drain"] = "warmup" if at_s < 0.5 else "measure" if step < 25 else "drain"
        moments.append(
            Moment(
                position=position,
                phase=phase,
                at_s=at_s,
                rate_per_s=rate * (1 - 0.6 * cold) * rng.gauss(1, 0.015),
                p50_ns=int(p50_ns * (1 + cold) * rng.gauss(1, 0.02)),
                p99_ns=int(p99_ns * (1 + 3 * cold) * rng.lognormvariate(0, 0.12)),
            )
        )
    return moments


def cell_of(report: Report, slug: str) -> CellReport:
    """The report's own cell of that name."""
    return next(cell for cell in report.cells if cell.slug == slug)
