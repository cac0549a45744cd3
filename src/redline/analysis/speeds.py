"""The speed of the server's cores in every trial, and of every pair of hosts before the run. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median

import numpy as np

from redline.analysis.judged import JudgedCell
from redline.findings import pairs_differ
from redline.findings.starts import cpu_of_all, is_whole, traffic_of
from redline.model import DuetRecording, Finding, PairSpeed
from redline.stats import Spread, TrialNumbers, contrast_of

METHOD = "t interval over the starts of all pairs"
FEWEST = 5
"""The fewest trials with a median to compare with."""


def core_speeds(judged: Mapping[str, JudgedCell]) -> dict[int, float]:
    """The speed of the cores in every trial, by its position: 1.4 if 40% faster than in the run's median trial.

    It is that of the fixed work before or after the load, whichever is closer to 1, or 1 if the two are on different
    sides of 1. Trials without a measurement are left out, and so are all trials of a run with fewer than `FEWEST`.
    """
    trials = [trial.numbers for cell in judged.values() for trial in cell.trials if trial.numbers.fixed_work]
    if len(trials) < FEWEST:
        return {}
    took_ns: dict[int, list[int]] = {}
    for trial in trials:
        for work in trial.fixed_work:
            took_ns.setdefault(work.cpu, []).extend((work.before_ns, work.after_ns))
    usual_ns = {cpu: median(all_ns) for cpu, all_ns in took_ns.items()}
    return {trial.position: speed for trial in trials if (speed := _speed(trial, usual_ns)) is not None}


def _speed(trial: TrialNumbers, usual_ns: Mapping[int, float]) -> float | None:
    own = trial.server.cpus if trial.server else ()
    works = [work for work in trial.fixed_work if work.cpu in own]
    if not works:
        return None
    before = fmean(math.log(usual_ns[work.cpu] / work.before_ns) for work in works)
    after = fmean(math.log(usual_ns[work.cpu] / work.after_ns) for work in works)
    return math.exp(min(before, after, key=abs)) if before * after > 0 else 1.0


def pair_speeds(calibration: Sequence[DuetRecording]) -> tuple[PairSpeed, ...]:
    """CPU per request of every pair of hosts, by the host of its servers, and its ratio to that of the other pairs."""
    logs: dict[str, list[float]] = {start.host: [] for start in calibration if start.host}
    for start in filter(is_whole, calibration):
        used = cpu_of_all(traffic_of(start))
        if start.host and used is not None:
            logs[start.host].append(float(np.log(used).mean()))
    failed = Counter(start.host for start in calibration if not is_whole(start))
    known = {host: values for host, values in logs.items() if values}
    freedom = sum(len(values) - 1 for values in known.values())
    squares = sum(float(np.square(np.array(values) - np.mean(values)).sum()) for values in known.values())
    means = {host: float(np.mean(values)) for host, values in known.items()}
    speeds = []
    for host in logs:
        others = [other for other in known if other != host]
        ratio = None
        if host in known and others and freedom:
            away = means[host] - float(np.mean([means[other] for other in others]))
            of_others = sum(1 / len(known[other]) for other in others) / len(others) ** 2
            spread = Spread(squares / freedom * (1 / len(known[host]) + of_others), freedom)
            ratio = contrast_of(math.exp(away), {METHOD: spread}, len(known[host])).ratio
        used_ns = math.exp(means[host]) if host in known else None
        speeds.append(PairSpeed(host=host, cpu_per_request_ns=used_ns, ratio=ratio, failed=failed[host]))
    return tuple(speeds)


def differing_pairs(judged: Mapping[str, JudgedCell], pairs: Sequence[PairSpeed]) -> dict[str, tuple[Finding, ...]]:
    """The findings about cells that ran on several pairs of hosts of which any differs, by cell id."""
    findings = {}
    for cell_id, cell in judged.items():
        hosts = {trial.host for trial in cell.used}
        if len(hosts) > 1:
            findings[cell_id] = pairs_differ(cell.cell, [pair for pair in pairs if pair.host in hosts])
    return findings
