"""Findings about servers that get slower as they serve: their state grows by requests, and no warm-up ends that."""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from redline.findings.duet import SeenDuet
from redline.findings.rules import ALL_BUT_COUNTS, TIME_DEPENDENT, TREND_P, Observation, Rule
from redline.findings.warm_duet import reach
from redline.findings.warming import KEPT_UP
from redline.model import Cell, Closed, Grade, Traffic
from redline.quantities import duration, percent
from redline.stats import Trial
from redline.stats.growth import CostGrowth, ServedCosts, growth

POINTS = 10
"""The stretches of a trial: tenths of its measurement."""
MOST_WRITES_NAMED = 3
UNEVEN = 1.1
"""Servers that served this many times the requests of the other had not served alike."""


@Rule(
    "slows-as-it-serves",
    when="answers",
    probes="all",
    note=0.02,
    warn=0.10,
    invalid=1.0,
    biases=TIME_DEPENDENT,
    scatters=True,
    touches=ALL_BUT_COUNTS,
)
def slows_as_it_serves(cell: Cell, trial: Trial) -> Observation | None:
    """How much more CPU time a request takes at the end of the measurement than at its beginning, if it rises all along
    (Kendall's test, p < 0.001), by a Theil-Sen line over what was served. In a duet over all starts, of wall time where
    CPU time is not known, at most **warn**: its ratio is that after equal numbers of requests. Also of requests that
    others, such as a mix that writes, made dearer before.

    State that grows by requests (rows, sessions, a log, a cache without a limit) makes each answer dearer, so the level
    depends on how long it was measured. It may also grow by time: one load cannot tell.

    Advice: Start the server anew before each measurement, and measure over a fixed number of requests (`count` of a
    load) or for less time: more time makes it worse. Look for what grows.
    """
    found = growth_of(trial)
    if found is None or cell.load.changes:
        return None
    message = f"It gets slower as it serves: {_rise(found)}.{_because(cell.scenario.writes)}"
    at_most = Grade.INVALID if isinstance(cell.load.shape, Closed) else Grade.WARN
    return Observation(found.share, message, at_most=at_most)


@slows_as_it_serves.also("duet")
def slows_in_a_duet(duet: SeenDuet) -> Observation | None:
    """How the servers of a duet get slower as they serve."""
    known = [(name, own.any, own.cpu is None) for name, own in zip(duet.names, duet.growths, strict=True)]
    rising = [(name, found, by_wall) for name, found, by_wall in known if found is not None]
    if not rising and duet.inherited is not None:
        bias = math.expm1(duet.inherited.bias)
        changed = duet.inherited.said(duet.names)
        message = f"{changed[0].upper()}{changed[1:]}: that may be {percent(bias)} of the ratio, as the interval says."
        return Observation(bias, message, at_most=Grade.WARN)
    if not rising:
        return None
    said = [
        f"{name} gets slower as it serves: {_rise(found, 'time' if by_wall else 'CPU')}"
        for name, found, by_wall in rising
    ]
    message = f"{'. '.join(said)}.{_because(duet.writes)} {_counts(duet)}"
    return Observation(max(found.share for _, found, _ in rising), message, at_most=Grade.WARN)


def _counts(duet: SeenDuet) -> str:
    """What the servers had served, where it differs, and what the ratio is of."""
    ours, theirs = duet.served
    first, second = duet.names
    apart = max(ours, theirs) > UNEVEN * min(ours, theirs)
    served = f"{first} had served {ours:,.0f} requests at the end of a start, {second} {theirs:,.0f}: " if apart else ""
    ratio = "the ratio is that after equal numbers of requests"
    if duet.unsettled and duet.to_come:
        ratio = f"{ratio}, and still moved: {reach(duet.to_come)}"
    text = f"{served}{ratio}."
    return text[0].upper() + text[1:]


def _rise(found: CostGrowth, of: str = "CPU") -> str:
    """`+0.3 µs of CPU per 1,000 requests, 12% over the 40,000 of a measurement`."""
    by = duration(1000 * found.per_request)
    return f"+{by} of {of} per 1,000 requests, {percent(found.share)} over the {found.requests:,} of a measurement"


def _because(writes: Sequence[str]) -> str:
    """That its requests probably change it; empty if none does."""
    if not writes:
        return ""
    named = ", ".join(writes[:MOST_WRITES_NAMED])
    more = f" and {len(writes) - MOST_WRITES_NAMED} more" if len(writes) > MOST_WRITES_NAMED else ""
    return f" The requests seem to change it: {named}{more} may write what makes later ones dearer."


def growth_of(trial: Trial) -> CostGrowth | None:
    """How the CPU time of a request grows with what the server has served in a trial; None if not, or not known.

    A backlog that grows makes requests dearer as well: nothing is known of a server that does not keep up.
    """
    traffic = trial.traffic
    if traffic is None or traffic.ended != "complete" or traffic.counts.completed < KEPT_UP * traffic.counts.due:
        return None
    points = _points(trial, traffic)
    return growth([points], TREND_P) if points is not None else None


def explains(found: CostGrowth | None, change: float) -> bool:
    """Whether a relative change of a rate or of response times is what a growth of the cost makes of it."""
    return found is not None and abs(math.log1p(max(change, -0.99))) <= 2 * math.log1p(found.share)


@lru_cache(64)
def _tenths(n: int) -> list[int]:
    """The ends of `POINTS` parts of n intervals, the longer ones first, and where the first begins."""
    return [0, *np.cumsum([len(part) for part in np.array_split(np.arange(n), POINTS)]).tolist()]


def _points(trial: Trial, traffic: Traffic) -> ServedCosts | None:
    """The cost of a request in stretches of the measurement, and what had been served by their middle."""
    recording = trial.recording
    whose = [recording.find("cpu_ns", part) for part in recording.parts]
    intervals = list(zip(trial.intervals, trial.totals, strict=True))
    measured = [pair for pair in intervals if pair[0].phase == "measure" and pair[0].lasts_ns > 0]
    if recording.hosts or not all(whose) or len(measured) < POINTS:
        return None
    before = sum(total for interval, total in intervals if interval.phase == "warmup")
    points = []
    for first, past in pairwise(_tenths(len(measured))):
        own = measured[first:past]
        answers = sum([interval.counts.completed for interval, _ in own])
        window = (traffic.epoch_unix_ns + own[0][0].start_ns, traffic.epoch_unix_ns + own[-1][0].end_ns)
        used = [series.increase(*window) for series in whose if series is not None]
        if None in used or not answers or (cpu_ns := sum(filter(None, used))) <= 0:
            return None
        requests = sum([total for _, total in own])
        points.append((before + requests / 2, cpu_ns / answers))
        before += requests
    return ServedCosts(*np.array(points, dtype=np.float64).T)
