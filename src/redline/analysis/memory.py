"""The memory and the pauses of a cell, over its used trials, or all trials if it is invalid."""

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from redline.findings.memory import live_bytes
from redline.model import Cell, Durations, Histogram, MemoryReport, PauseMark, RuntimeFacts, Traffic
from redline.model.runtime import CollectionKind, CollectionSum
from redline.stats import Trial

MOST_MARKS = 60
"""The number of a cell's pauses that a plot shows individually: the longest."""


def memory_report(cell: Cell, trials: Sequence[Trial]) -> MemoryReport | None:
    """The report of the runtime's facts in these trials of a cell; None without any facts."""
    spoke = [(trial, facts, trial.traffic) for trial in trials if (facts := trial.recording.runtime) and trial.traffic]
    if not spoke:
        return None
    every, trials = [facts for _, facts, _ in spoke], [trial for trial, _, _ in spoke]
    seconds = sum(traffic.seconds for _, _, traffic in spoke)
    pauses = _merged(facts.pauses for facts in every)
    live = [known for facts in every if (known := live_bytes(facts)) is not None]
    per_s, completed = _allocated_per_s(every), sum(traffic.counts.completed for _, _, traffic in spoke)
    return MemoryReport(
        runtime=every[0].runtime,
        collector=every[0].collector,
        trials=len(spoke),
        seconds=seconds,
        allocated_per_s=per_s,
        allocated_per_request=per_s * seconds / completed if per_s is not None and completed else None,
        live_bytes=round(median(live)) if live else None,
        most_used_bytes=_most(facts.most_used_bytes for facts in every),
        heap_bytes=_peak(trials, "heap_capacity_bytes"),
        max_heap_bytes=_most(facts.max_heap_bytes for facts in every),
        peak_rss_bytes=_peak(trials, "rss_bytes"),
        limit_bytes=cell.variant.container.memory_bytes if cell.variant.container else None,
        pauses=pauses,
        paused_share=sum(map(_paused_ns, every)) / (seconds * 1e9) if seconds > 0 else 0.0,
        to_safepoint=_merged(facts.to_safepoint for facts in every if facts.runtime == "jvm"),
        stalls=_merged(facts.stalls for facts in every),
        collections=_summed(every),
        evacuation_failures=sum(facts.evacuation_failures for facts in every),
        humongous=sum(facts.humongous for facts in every),
        collector_cores=_cores(trials, "collector_cpu_ns", seconds),
        compiler_cores=_cores(trials, "compiler_cpu_ns", seconds),
        compiler_waits=_cores(trials, "compiler_wait_ns", seconds),
        longest=_marks(spoke),
    )


def _paused_ns(facts: RuntimeFacts) -> int:
    """Older recordings have only the sum."""
    return facts.pauses.total_ns if facts.paused_ns is None else facts.paused_ns


def _merged(parts: Iterable[Durations]) -> Durations:
    known = list(parts)
    return Durations(
        count=sum(part.count for part in known),
        total_ns=sum(part.total_ns for part in known),
        histogram=Histogram.merged(part.histogram for part in known),
    )


def _allocated_per_s(every: Sequence[RuntimeFacts]) -> float | None:
    """The mean of the trials' rates, weighted with the time for which they are known."""
    known = [(facts.allocated_bytes, facts.allocating_ns) for facts in every if facts.allocated_bytes is not None]
    ns = sum(over for _, over in known)
    return sum(count for count, _ in known) * 1e9 / ns if ns > 0 else None


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _peak(trials: Iterable[Trial], name: str) -> int | None:
    """The largest value of a gauge of the server in the measurement of any of the trials."""
    values = (trial.recording.most(name, "server") for trial in trials)
    return _most(None if value is None else round(value) for value in values)


def _cores(trials: Sequence[Trial], name: str, seconds: float) -> float | None:
    """The increase of a counter of time of the server over all windows, in cores; None if a trial's is not known."""
    grown = [trial.increase(name, "server") for trial in trials]
    known = [growth for growth in grown if growth is not None]
    return sum(known) / (seconds * 1e9) if len(known) == len(grown) and seconds > 0 else None


def _summed(every: Iterable[RuntimeFacts]) -> tuple[CollectionSum, ...]:
    """The collections by kind and cause, the longest first."""
    counts, totals = Counter[tuple[CollectionKind, str]](), Counter[tuple[CollectionKind, str]]()
    for facts in every:
        for collection in facts.collections:
            counts[collection.kind, collection.cause] += collection.count
            totals[collection.kind, collection.cause] += collection.total_ns
    return tuple(
        CollectionSum(kind=kind, cause=cause, count=counts[kind, cause], total_ns=total)
        for (kind, cause), total in totals.most_common()
    )


def _marks(spoke: Iterable[tuple[Trial, RuntimeFacts, Traffic]]) -> tuple[PauseMark, ...]:
    marks = [
        PauseMark(
            position=trial.recording.position,
            at_s=(pause.start_unix_ns - traffic.epoch_unix_ns) / 1e9,
            duration_ns=pause.duration_ns,
            cause=pause.cause,
        )
        for trial, facts, traffic in spoke
        for pause in facts.longest_pauses
    ]
    longest = sorted(marks, key=lambda mark: -mark.duration_ns)[:MOST_MARKS]
    return tuple(sorted(longest, key=lambda mark: (mark.at_s, mark.position)))
