"""How pairs of hosts compare, by the duets of one server with itself that were made on each before the run. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from redline.analysis.duet import cpu_of_all, is_whole, traffic_of
from redline.analysis.judged import JudgedCell
from redline.findings import pairs_differ
from redline.model import DuetRecording, Finding, PairSpeed
from redline.stats import Spread, contrast_of

METHOD = "t interval over the starts of all pairs"


def pair_speeds(calibration: Sequence[DuetRecording]) -> tuple[PairSpeed, ...]:
    """Of each pair of hosts, by the host of its servers: CPU per request, and its ratio to that of the other pairs."""
    logs: dict[str, list[float]] = {each.host: [] for each in calibration if each.host}
    for each in filter(is_whole, calibration):
        used = cpu_of_all(traffic_of(each))
        if each.host and used is not None:
            logs[each.host].append(float(np.log(used).mean()))
    failed = Counter(each.host for each in calibration if not is_whole(each))
    known = {host: values for host, values in logs.items() if values}
    freedom = sum(len(values) - 1 for values in known.values())
    squares = sum(float(np.square(np.array(values) - np.mean(values)).sum()) for values in known.values())
    means = {host: float(np.mean(values)) for host, values in known.items()}
    found = []
    for host in logs:
        others = [other for other in known if other != host]
        ratio = None
        if host in known and others and freedom:
            away = means[host] - float(np.mean([means[other] for other in others]))
            of_others = sum(1 / len(known[other]) for other in others) / len(others) ** 2
            spread = Spread(squares / freedom * (1 / len(known[host]) + of_others), freedom)
            ratio = contrast_of(math.exp(away), {METHOD: spread}, len(known[host])).ratio
        used_ns = math.exp(means[host]) if host in known else None
        found.append(PairSpeed(host=host, cpu_per_request_ns=used_ns, ratio=ratio, failed=failed[host]))
    return tuple(found)


def differing_pairs(judged: Mapping[str, JudgedCell], pairs: Sequence[PairSpeed]) -> dict[str, tuple[Finding, ...]]:
    """By the ids of cells that ran on several pairs, that one of these differs from the others."""
    found = {}
    for cell_id, one in judged.items():
        hosts = {trial.host for trial in one.used}
        if len(hosts) > 1:
            found[cell_id] = pairs_differ(one.cell, [pair for pair in pairs if pair.host in hosts])
    return found
