"""Findings about a server's memory and its collector, from what its runtime reported."""

from collections.abc import Sequence
from statistics import median

import numpy as np

from redline.findings.rules import LONG_TAILS, TIME_DEPENDENT, TREND_P, Observation, Rule
from redline.lazily import dataclass
from redline.model import Cell, HistogramTable, RuntimeFacts, Traffic
from redline.quantities import duration, percent, size
from redline.stats import Trial
from redline.stats.samples import Floats
from redline.stats.series import FEWEST_FOR_TREND, slope, trend

BLOCKS = 20
"""Parts of the window. The smallest live set of a part counts, because it varies between cycles."""

EDGE = 3
"""Parts at the beginning and at the end whose median the message gives."""

SHORTEST_FOR_LEAK_S = 30.0
"""Caches fill in the first seconds; growth after that may go on."""

LEAST_GROWTH = 0.02
"""Share of the largest heap: smaller growth is not reported, however steady it is."""

LEAST_GROWN = 4 << 20
"""Bytes: smaller growth is not reported either. Go reports sizes in whole MiB, and no largest heap."""

COUNTS_APART = 2
CLOCKS_APART_NS = 10_000_000
"""The counters are read just before the log: this many safepoints, and this much time, may lie between."""

SLOWEST = 0.01
"""The share of requests that counts as the tail."""

ROTATIONS = 999
ROTATION_P = 0.01
"""The chance of blaming unrelated pauses for slow requests."""

_CONCURRENT = frozenset({"G1", "Shenandoah", "Z"})
"""Collectors that stop the application for a full collection only when they cannot keep up, or when asked."""

_ASKED_FOR = frozenset(
    {"System.gc()", "Metadata GC Threshold", "Heap Inspection Initiated GC", "Heap Dump Initiated GC"}
)


def live_bytes(facts: RuntimeFacts) -> int | None:
    """The live set: the median after collections of the whole heap in the window's second half."""
    later = facts.live_bytes[len(facts.live_bytes) // 2 :]
    return round(median(later)) if later else None


@Rule("heap-pressure", when="requests", note=0.70, warn=0.85, biases=LONG_TAILS)
def heap_pressure(cell: Cell, trial: Trial, facts: RuntimeFacts | None) -> Observation | None:
    """The live set after collections, of the largest heap; or the memory in use, of the limit of a container.

    With a share s alive, a collector visits s / (1 - s) bytes per byte that it frees: 2.3 at 70%, 5.7 at 85%. At its
    container's limit a process is killed.

    Advice: Give it a larger heap (`heap`), or a container with more memory; compare servers at heaps that are large
    enough for all.
    """
    live, heap = (live_bytes(facts), facts.max_heap_bytes) if facts else (None, None)
    limit, peak = cell.variant.memory_limit_bytes, trial.recording.most("rss_bytes", "server")
    shares = [(0.0, "")]
    if live is not None and heap:
        shares.append((live / heap, f"Collections of the whole heap found {size(live)} of {size(heap)} alive"))
    if limit and peak is not None:
        shares.append((peak / limit, f"It used up to {size(peak)} of the {size(limit)} that its container may use"))
    share, what = max(shares)
    return Observation(share, f"{what} ({percent(share)}).")


@Rule("allocation-stall", when="runtime", note=0.0, warn=0.01, biases=LONG_TAILS)
def allocation_stall(traffic: Traffic, facts: RuntimeFacts) -> Observation | None:
    """Time for which threads waited for memory, or the application stood still because a concurrent collector came too
    late.

    The heap is too small for this rate.

    Advice: Give it a larger heap or more cores, lower the rate, or use a collector that stops the application.
    """
    late = [
        collection
        for collection in facts.collections
        if collection.kind == "degenerated"
        or (collection.kind == "full" and facts.collector in _CONCURRENT and collection.cause not in _ASKED_FOR)
    ]
    stopped, stopped_ns = sum(kind.count for kind in late), sum(kind.total_ns for kind in late)
    stalls = facts.stalls
    parts = []
    if stalls.count:
        longest = duration(stalls.histogram.max_ns)
        parts.append(f"threads waited {stalls.count:,} times for memory to be freed, up to {longest}")
    if stopped:
        parts.append(f"{stopped:,} collections came too late and stopped the application for {duration(stopped_ns)}")
    if facts.evacuation_failures:
        parts.append(f"{facts.evacuation_failures:,} collections found no room for what lives")
    if not parts:
        return None
    share = (stalls.total_ns + stopped_ns) / (traffic.seconds * 1e9)
    message = f"The collector did not keep up: {'; '.join(parts)}."
    return Observation(max(share, 1e-9), message)


@Rule("leak-suspected", when="runtime", warn=0.10, biases=TIME_DEPENDENT)
def leak_suspected(traffic: Traffic, facts: RuntimeFacts) -> Observation | None:
    """*From 30 s on.* Growth of the live set over the measurement, by Kendall's test at p < 0.001, of at least 2% of
    the heap.

    Caches fill in the first seconds.

    Advice: Measure for longer: growth that ends was a cache. Compare two heap dumps (`jcmd PID GC.heap_dump`).
    """
    smallest = _smallest(facts, *traffic.window_unix_ns)
    blocks, sizes, block_s = list(smallest), list(smallest.values()), traffic.seconds / BLOCKS
    if traffic.seconds < SHORTEST_FOR_LEAK_S or len(sizes) < FEWEST_FOR_TREND or trend(sizes, TREND_P) <= 0:
        return None
    per_s = slope(blocks, sizes) / block_s
    grown = per_s * (blocks[-1] - blocks[0]) * block_s
    if grown < max(LEAST_GROWTH * (facts.max_heap_bytes or 0), LEAST_GROWN):
        return None
    first, last = median(sizes[:EDGE]), median(sizes[-EDGE:])
    room = (facts.max_heap_bytes or 0) - last
    full = f": at this pace the heap is full in {duration(room / per_s * 1e9)}" if room > 0 else ""
    message = (
        f"What lived after collections of the whole heap grew from {size(first)} to {size(last)} over the "
        f"measurement, by {size(per_s)} a second{full}."
    )
    return Observation(grown / first, message)


def _smallest(facts: RuntimeFacts, start_unix_ns: int, end_unix_ns: int) -> dict[int, float]:
    """The smallest live set by block of the window, in order of time; blocks without one are missing."""
    smallest: dict[int, float] = {}
    for at, live in zip(facts.live_unix_ns, facts.live_bytes, strict=True):
        block = (at - start_unix_ns) * BLOCKS // max(end_unix_ns - start_unix_ns, 1)
        if 0 <= block < BLOCKS:
            smallest[block] = min(smallest.get(block, float(live)), float(live))
    return {block: max(smallest[block], 1.0) for block in sorted(smallest)}


@Rule("collector-log", when="runtime", note=0.05, warn=0.20)
def collector_log(facts: RuntimeFacts) -> Observation | None:
    """Distance of the collector's log from the JVM's own counters, beyond two safepoints or 10 ms.

    Reported pauses come from the log. Where the counters agree, no line was lost or misread.

    Advice: Do not use the pauses of this trial. Report a fault, with the recording and the version of the JDK.
    """
    worst, message = 0.0, ""
    for check in facts.checks:
        of_time = check.name == "safepoint_ns"
        allowed = CLOCKS_APART_NS if of_time else COUNTS_APART
        off = max(abs(check.logged - check.counted) - allowed, 0) / max(check.counted, check.logged, 1)
        if off > worst:
            logged, counted = (duration(n) if of_time else f"{n:,}" for n in (check.logged, check.counted))
            what = "in safepoints" if of_time else check.name
            worst, message = off, f"The log has {logged} {what}, and the JVM's own counter {counted}."
    return Observation(worst, message)


@Rule("pauses-in-tail", when="cell", note=0.25, reassures=True)
def pauses_in_tail(used: Sequence[Trial]) -> Observation | None:
    """Requests among the slowest 1% that ended where a long pause ends, beyond those that do by chance (p < 0.01).

    The tail waited for the collector's pauses, or other safepoints.

    Advice: Compare collectors and heap sizes; the section on memory and pauses has the causes of the pauses.
    """
    tails = [tail for trial in used if (tail := _tail(trial)) is not None]
    total, intervals = sum(float(tail.slow.sum()) for tail in tails), sum(len(tail.slow) for tail in tails)
    if total <= 0:
        return None
    # By chance: with a trial's pauses rotated against its requests, so that both keep their patterns.
    random, met = np.random.default_rng(0), [tail.met() for tail in tails]
    shifts = np.array([random.integers(len(tail.slow), size=ROTATIONS) for tail in tails])
    weights, counts = (
        sum((trial[which][shift] for trial, shift in zip(met, shifts, strict=True)), np.zeros(ROTATIONS))
        for which in (0, 1)
    )
    seen_weight, seen = (sum(float(trial[which][0]) for trial in met) for which in (0, 1))
    p, expected = (1 + int((weights >= seen_weight).sum())) / (1 + ROTATIONS), float(counts.mean())
    if p > ROTATION_P:
        return None
    paused = sum(int((tail.delays_ns > 0).sum()) for tail in tails)
    message = (
        f"{percent(seen / total)} of the slowest {percent(SLOWEST)} of requests ended in the {paused:,} of "
        f"{intervals:,} intervals with a pause long enough to delay them; by chance {percent(expected / total)} would."
    )
    return Observation((seen - expected) / total, message)


@dataclass(frozen=True)
class _Tail:
    """The tail of a trial by interval: its requests that ended there, and the longest delay by pauses."""

    slow: Floats
    delays_ns: Floats

    def met(self) -> tuple[Floats, Floats]:
        """For pauses moved by 0, 1, … intervals: requests times delays, and requests in intervals with a delay."""
        moved = np.array([np.roll(self.delays_ns, by) for by in range(len(self.slow))])
        return moved @ self.slow, (moved > 0) @ self.slow


def _tail(trial: Trial) -> _Tail | None:
    facts, traffic = trial.recording.runtime, trial.traffic
    if facts is None or traffic is None or not facts.longest_pauses:
        return None
    measured = [interval for interval in trial.intervals if interval.phase == "measure" and interval.lasts_ns > 0]
    median_ns, slow_ns = traffic.response.quantiles_ns((0.5, 1 - SLOWEST))
    table = HistogramTable([interval.response for interval in measured])
    delays = np.zeros(len(measured))
    ends = np.array([interval.end_ns for interval in measured])
    for pause in facts.longest_pauses:
        at_ns = pause.end_unix_ns - traffic.epoch_unix_ns
        delay_ns = pause.duration_ns - (slow_ns - median_ns)
        place = int(np.searchsorted(ends, at_ns))
        if delay_ns > 0 and traffic.measure_start_ns <= at_ns and place < len(measured):
            delays[place] += delay_ns
    return _Tail((table.counts - table.counts_up_to(slow_ns)).astype(np.float64), delays)
