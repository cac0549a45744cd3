"""Facts about the starts of a duet, before anything is compared."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from redline.findings.failed import failures_text, never_answered
from redline.findings.warm_duet import fewest_blocks
from redline.model import DuetBlock, DuetRecording, DuetSlice, DuetTraffic, Reach
from redline.model.failures import earliest
from redline.quantities import duration
from redline.stats.samples import Floats

BASELINE, COMPARED = 0, 1
"""The places of the first servers in a start; the last server, the control, is the baseline once more."""
ALIKE = 0.2
"""Slices whose lengths differ by a smaller share have the same length."""
FAILING = 0.01
"""If a server fails more of its requests, the cost of the others is not known."""


def failing(starts: Sequence[DuetRecording], names: tuple[str, str], target: int = COMPARED) -> str | None:
    """The server that failed too many requests for any comparison, and why; None if neither did.

    All starts with traffic count: starts that ended in their warm-up say most about failures.
    """
    sides = zip(names, ((BASELINE, -1), (target,)), strict=True)
    return next(filter(None, (failed_at(starts, name, places)[1] for name, places in sides)), None)


def failed_at(starts: Iterable[DuetRecording], name: str, places: Sequence[int]) -> tuple[Counter[str], str]:
    """The failures of a server by outcome, and what they say; none if it failed few of its requests."""
    loads = [traffic_of(start) for start in starts if start.traffic is not None]
    ended = sum((_ended(traffic, place) for traffic in loads for place in places), Counter[str]())
    bad = Counter({kind: number for kind, number in ended.items() if number and kind != "ok"})
    if bad.total() <= FAILING * ended.total():
        return Counter(), ""
    kinds = ", ".join(f"{kind.replace('_', ' ')} {number:,}" for kind, number in bad.items() if kind)
    why = "; ".join(filter(None, (kinds, first_failures(loads, places), _unanswered(loads, places))))
    said = f"{bad.total():,} of {ended.total():,} requests to {name} failed"
    return bad, f"{said}: {why}" if why else said


def why_lost(start: DuetRecording, names: Sequence[str]) -> str:
    """Why a start gives no ratio; empty if it does, or if an interrupt or a condition of the user ended it.

    `names` are those of its servers, without the control.
    """
    if start.failure is not None:
        return start.failure.message
    if is_whole(start) or start.aborted_by or start.is_interrupted:
        return ""
    traffic = traffic_of(start)
    targets = range(COMPARED, len(names))
    failed = (failing([start], (names[BASELINE], names[target]), target) for target in targets)
    if why := next(filter(None, failed), None):
        return why
    for place, name in enumerate(names):
        if unanswered := _unanswered([traffic], (place,)):
            return f"{name} left {unanswered}"
    slices = [slice_ for block in traffic.blocks for slice_ in block.slices]
    if not slices:
        return "no block of slices was completed"
    lasted = [_lasted_ns([slice_ for slice_ in slices if slice_.target == at]) for at in range(len(names))]
    said = ", ".join(f"{name} {duration(ns)}" for name, ns in zip(names, lasted, strict=True))
    return (
        f"answers take too long: until all were there, a slice lasted {said}, and a block {duration(block_ns(start))}"
    )


def block_ns(start: DuetRecording) -> int:
    """How long a block of a start lasted, at the median; 0 without blocks."""
    blocks = start.traffic.blocks if start.traffic is not None else ()
    lengths = [block.slices[-1].end_ns - block.slices[0].start_ns for block in blocks if block.slices]
    return int(np.median(lengths)) if lengths else 0


def _lasted_ns(slices: Sequence[DuetSlice]) -> float:
    return float(np.median([slice_.end_ns - slice_.start_ns for slice_ in slices])) if slices else 0.0


def first_failures(loads: Iterable[DuetTraffic], places: Sequence[int]) -> str:
    """The first failures by outcome at these places: `first timeout: no answer within 5 s`; empty for none."""
    text = failures_text(earliest(failure for load in loads for at in places for failure in load.targets[at].failures))
    return f"first {text}" if text else ""


def _unanswered(loads: Iterable[DuetTraffic], places: Sequence[int]) -> str:
    """The connections at these places that were never answered; empty if all were, or it is not known."""
    reach = Reach.merged(load.targets[at].reach for load in loads for at in places)
    return never_answered(reach) if reach is not None and reach.stuck else ""


def _ended(traffic: DuetTraffic, place: int) -> Counter[str]:
    """The outcomes of a server's measured requests; if none was measured, the number of failures without kinds."""
    measured = Counter(dict(traffic.targets[place].counts.outcomes))
    if measured.total():
        return measured
    target = place % len(traffic.targets)
    slices = [slice_ for block in traffic.blocks for slice_ in block.slices if slice_.target == target]
    return Counter({"ok": sum(slice_.completed for slice_ in slices), "": sum(slice_.failed for slice_ in slices)})


def is_whole(recording: DuetRecording) -> bool:
    """Whether a start has a measured block and no failure."""
    return recording.failure is None and recording.traffic is not None and bool(measured(recording.traffic))


def traffic_of(recording: DuetRecording) -> DuetTraffic:
    """The traffic of a measured start."""
    assert recording.traffic is not None, "starts without traffic were left out"
    return recording.traffic


def measured(traffic: DuetTraffic) -> list[DuetBlock]:
    """The blocks after the warm-up."""
    return [block for block in traffic.blocks if block.phase == "measure"]


def counted(traffic: DuetTraffic, *, after_mix: bool = False) -> list[DuetBlock]:
    """The blocks that show the cost of a request, if the warm-up ended because the servers were warm.

    The last blocks of the warm-up count too, unless the engine then measured in longer slices, in which cold caches
    cost less.
    """
    warm = [block for block in traffic.blocks if block.phase == "warmup"]
    warm = warm[-(fewest_blocks(warm, after_mix=after_mix) // 2) :]
    after = measured(traffic)
    alike = abs(_median_length_ns(warm) - _median_length_ns(after)) <= ALIKE * _median_length_ns(after)
    return warm + after if warm and alike else after


def _median_length_ns(blocks: Sequence[DuetBlock]) -> float:
    lengths_ns = [slice_.end_ns - slice_.start_ns for block in blocks for slice_ in block.slices]
    return float(np.median(lengths_ns)) if lengths_ns else 0.0


def cpu_unknown(traffic: DuetTraffic, target: int) -> str:
    """Why a server's CPU time is unknown in most of the slices in which it answered; empty if it is known."""
    slices = [
        slice_ for block in measured(traffic) for slice_ in block.slices if slice_.target == target and slice_.completed
    ]
    used = [slice_.cpu_ns[target] if slice_.cpu_ns else None for slice_ in slices]
    if 2 * used.count(0) > len(used):
        return "its processes used none while it answered, so others answer"
    if 2 * (used.count(0) + used.count(None)) > len(used):
        return "some of its processes came or went while it was loaded, or could not be read"
    return ""


def cpu_of_all(traffic: DuetTraffic) -> Floats | None:
    """The CPU time per request of every server, over all of its slices; None if any is not known."""
    used, answered = np.zeros(len(traffic.targets)), np.zeros(len(traffic.targets))
    for slice_ in (slice_ for block in measured(traffic) for slice_ in block.slices):
        time_ns = slice_.cpu_ns[slice_.target] if slice_.cpu_ns else None
        if time_ns is None:
            return None
        used[slice_.target] += time_ns
        answered[slice_.target] += slice_.completed
    return used / answered if used.all() and answered.all() else None
