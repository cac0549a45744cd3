"""What else surely differs between compared servers: counters per request, start by start. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from redline.findings.starts import BASELINE, measured
from redline.model import CounterChange, Counts, DuetRecording, DuetSlice, Estimate
from redline.stats.accounting import ALPHA, FEWEST_STARTS, paired_difference
from redline.stats.families import holm_adjust

_METHOD = "t interval over starts"


class _Counter(NamedTuple):
    """A counter, shown `per_request`, or as the level at the end of a start.

    It is the `series` of that name, or what the engine counts: `of_slice` in each slice, `of_target` in all of them.
    """

    name: str
    series: str
    unit: str
    per_request: bool = True
    of_slice: Callable[[DuetSlice], int | None] | None = None
    of_target: Callable[[Counts], int] | None = None


_COUNTERS = (
    _Counter("waits (voluntary context switches)", "context_switches_voluntary", "1"),
    _Counter("preemptions (involuntary context switches)", "context_switches_involuntary", "1"),
    _Counter("waiting for a core", "run_delay_ns", "ns"),
    _Counter("page faults without a disk (minor)", "minor_faults", "1"),
    _Counter("page faults from a disk (major)", "major_faults", "1"),
    _Counter("compiling by the JVM, CPU time", "compiler_cpu_ns", "ns"),
    _Counter("collecting by the JVM, CPU time", "collector_cpu_ns", "ns"),
    _Counter("pauses of the JVM (safepoints)", "safepoints", "1"),
    _Counter("time in pauses of the JVM", "safepoint_ns", "ns"),
    _Counter("bytes received", "", "B", of_slice=lambda one: one.bytes_received),
    _Counter("connections opened again", "", "1", of_target=lambda counts: counts.reconnects),
    _Counter("memory at the end", "rss_bytes", "B", per_request=False),
    _Counter("threads at the end", "threads", "1", per_request=False),
    _Counter("open files at the end", "descriptors", "1", per_request=False),
)


_CALLS, _FEWEST_CALLS = "syscalls:", 0.01
"""The series of system calls, and how many per request make a row."""


def _calls_of(starts: Iterable[DuetRecording]) -> Iterator[_Counter]:
    """Yield a counter for each kind of system call that was counted."""
    series = (one.name for start in starts for own in start.server_series for one in own)
    for name in dict.fromkeys(name for name in series if name.startswith(_CALLS)):
        yield _Counter(f"system calls: {name.removeprefix(_CALLS)}", name, "1")


def counter_changes(
    duets: Iterable[DuetRecording], sampled: Iterable[DuetRecording], target: int, threshold: float
) -> tuple[CounterChange, ...]:
    """The counters that are known of both servers in FEWEST_STARTS starts or more; the table is a family.

    System calls are counted in the warm-up of `sampled` starts, all else in starts without a profiler.
    """
    starts, of_calls = (
        [duet for duet in made if duet.is_complete and duet.control_is_apart] for made in (duets, sampled)
    )
    known = list[tuple[_Counter, list[float], list[float]]]()
    for counter in (*_COUNTERS, *_calls_of(of_calls)):
        is_call = counter.series.startswith(_CALLS)
        known_of = (_pair(start, target, counter) for start in (of_calls if is_call else starts))
        pairs = [pair for pair in known_of if pair is not None]
        is_rare = is_call and max(map(max, pairs), default=0.0) < _FEWEST_CALLS
        if len(pairs) >= FEWEST_STARTS and not is_rare:
            known.append((counter, [before for before, _ in pairs], [after for _, after in pairs]))
    differences = [paired_difference(np.array(after) - np.array(before)) for _, before, after in known]
    adjusted = holm_adjust([difference.p for difference in differences])
    changes = list[CounterChange]()
    for (counter, before, after), difference, p in zip(known, differences, adjusted, strict=True):
        low, high = difference.value - difference.half_width, difference.value + difference.half_width
        level = float(np.mean(before))
        within = max(abs(low), abs(high)) <= threshold * level
        changed: Literal["surely", "surely not", "not decided"] = "surely not" if within else "not decided"
        if p < ALPHA and not within:
            changed = "surely"
        changes.append(
            CounterChange(
                name=counter.name,
                per_request=counter.per_request,
                before=level,
                after=float(np.mean(after)),
                difference=Estimate(
                    value=difference.value, low=low, high=high, unit=counter.unit, n=len(before), method=_METHOD
                ),
                p_adjusted=p,
                changed=changed,
            )
        )
    return tuple(changes)


def _pair(start: DuetRecording, target: int, counter: _Counter) -> tuple[float, float] | None:
    """The mean of the baseline and its control, and the value of the server; None if one of them is not known."""
    assert start.traffic is not None, "it is complete"
    control = len(start.traffic.targets) - 1
    values = [_value(start, place, counter) for place in (BASELINE, control, target)]
    first, second, after = values
    if first is None or second is None or after is None:
        return None
    return (first + second) / 2, after


def _value(start: DuetRecording, place: int, counter: _Counter) -> float | None:
    assert start.traffic is not None, "it is complete"
    slices = [one for block in measured(start.traffic) for one in block.slices if one.target == place]
    if not slices:
        return None
    completed = sum(one.completed for one in slices)
    if counter.of_target is not None:
        return counter.of_target(start.traffic.targets[place].counts) / completed if completed else None
    if counter.of_slice is not None:
        known = [count for one in slices if (count := counter.of_slice(one)) is not None]
        return sum(known) / completed if completed and len(known) == len(slices) else None
    own = start.server_series[place] if place < len(start.server_series) else ()
    series = next((one for one in own if one.subject == "server" and one.name == counter.series), None)
    if series is None:
        return None
    if not counter.per_request:
        return series.values[-1]
    # Threads are looked at seldom, but surely before the load and after it, so the warm-up counts too.
    since_ns, until_ns = (
        at - start.traffic.epoch_unix_ns for at in (series.times_unix_ns[0], series.times_unix_ns[-1])
    )
    loaded = [one for block in start.traffic.blocks for one in block.slices if one.target == place]
    requests = _completed(loaded, since_ns, until_ns)
    return (series.values[-1] - series.values[0]) / requests if requests else None


def _completed(slices: Sequence[DuetSlice], since_ns: float, until_ns: float) -> float:
    """The number of requests that a server completed in a time; of slices that are partly in it, their share."""
    total = 0.0
    for one in slices:
        inside = min(until_ns, one.end_ns) - max(since_ns, one.start_ns)
        if inside > 0:
            total += one.completed * inside / (one.end_ns - one.start_ns)
    return total
