"""Findings about duets: what makes the ratio of two servers that are loaded in turn doubtful."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from redline.findings.cell import builds_text, identical_builds
from redline.findings.failed import failures_text
from redline.findings.rules import graded
from redline.findings.warm_duet import cost_of
from redline.model import (
    FEWEST_TRIALS,
    Counts,
    DuetBlock,
    DuetRecording,
    DuetSlice,
    DuetTraffic,
    Finding,
    FindingKind,
    Grade,
)
from redline.model.failures import earliest
from redline.quantities import percent
from redline.stats.builds import differing
from redline.stats.duets import Floats, LogRatio, StartRatio, over_starts

BASELINE, COMPARED = 0, 1
"""The places of the first servers in a start; the last one, the control, is the baseline once more."""
WANTED_STARTS = 5
FAILING = 0.01
"""If a server fails more of its requests, nobody knows what the others cost."""
BUSY = 0.8
"""Under users with zero think time, a server that uses less of its cores than this waits for the client."""


@dataclass(frozen=True)
class SeenDuet:
    """What findings look at: the measured starts of a duet, of which there is one at least, and what they say.

    `names` are those of the baseline and of the server at `target`. `failed` says what went wrong in other starts.
    `saturates`: the servers set the rate. `cores` of each server, 0 if unknown. `keeps`: the load keeps connections.
    `control` is the baseline over itself, `ratios` are those of the metrics that a duet compares well, and `cpu` has
    the ratio of CPU per request of each start, all logarithms; `contrast` weights the servers for it. `unsettled` says
    why the ratio may yet move, and `to_come` how far, as a logarithm.
    """

    starts: tuple[DuetRecording, ...]
    names: tuple[str, str]
    target: int
    failed: tuple[str, ...]
    saturates: bool
    cores: int
    keeps: bool
    contrast: Floats
    control: LogRatio | None
    ratios: Sequence[LogRatio]
    cpu: Sequence[StartRatio | None]
    unsettled: str
    to_come: float

    @property
    def cell_id(self) -> str:
        """The cell that is compared with the baseline."""
        return self.starts[0].cell_ids[self.target]

    @property
    def servers(self) -> int:
        """How many run in a start, the control included."""
        return len(traffic_of(self.starts[0]).targets)

    @cached_property
    def traffics(self) -> tuple[DuetTraffic, ...]:
        """What was measured, by start."""
        return tuple(map(traffic_of, self.starts))

    @cached_property
    def slices(self) -> tuple[DuetSlice, ...]:
        """The measured slices of all starts."""
        return tuple(each for traffic in self.traffics for block in measured(traffic) for each in block.slices)

    @property
    def sides(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The name and the places of the baseline, which runs twice, and of the server that is compared with it."""
        yield from zip(self.names, ((BASELINE, self.servers - 1), (self.target,)), strict=True)

    def counts(self, places: Sequence[int]) -> Counts:
        """What the servers at these places were asked and answered."""
        return Counts.merged(traffic.targets[at].counts for traffic in self.traffics for at in places)


def judge_duet(duet: SeenDuet) -> tuple[Finding, ...]:
    """All findings about a duet."""
    judges = (
        _few_starts,
        _failed_starts,
        _control,
        _owners,
        _engine_paused,
        _cold,
        _rare_costs,
        _disagreement,
        _errors,
        _idle_work,
        _client_limited,
        _connections,
        _answer_sizes,
        _parallel,
        _builds,
    )
    return tuple(finding for judge in judges for finding in judge(duet))


def _few_starts(duet: SeenDuet) -> tuple[Finding, ...]:
    starts = len(duet.starts)
    message = (
        "There was one start: how starts differ is not known, and not part of the intervals."
        if starts == 1
        else f"There were only {starts} starts: with more, intervals are narrower."
    )
    return graded(FindingKind.FEW_STARTS, WANTED_STARTS - starts, message, duet.cell_id)


def _failed_starts(duet: SeenDuet) -> tuple[Finding, ...]:
    if not duet.failed:
        return ()
    failed, made = len(duet.failed), len(duet.failed) + len(duet.starts)
    message = f"{failed} of {made} starts failed: {duet.failed[0].rstrip('.')}."
    return graded(FindingKind.FAILED_STARTS, failed / made, message, duet.cell_id)


def _control(duet: SeenDuet) -> tuple[Finding, ...]:
    if duet.control is None or not _excludes_zero(duet.control) or duet.unsettled:
        return ()
    message = f"{duet.names[0]} against itself reads as different, which happens by chance in 5 of 100 duets."
    return graded(FindingKind.CONTROL, 1.0, message, duet.cell_id)


def _owners(duet: SeenDuet) -> Iterator[Finding]:
    """Whose CPU time is not known, and who works for a server without being counted.

    If that of one server is not known, none can be compared by it.
    """
    names = {BASELINE: duet.names[0], duet.target: duet.names[1], duet.servers - 1: f"the second {duet.names[0]}"}
    for place in range(duet.servers):
        name = names.get(place, "another server of the duet")
        owners = [each.owners[place] for each in duet.starts if each.owners]
        reasons = [each.unknown for each in owners if each.unknown]
        reasons = reasons or [*filter(None, (cpu_unknown(each, place) for each in duet.traffics))]
        if reasons:
            all_starts = len(duet.starts)
            some = "" if len(reasons) == all_starts else f"In {len(reasons)} of {all_starts} starts, "
            message = f"{some}{'the' if some else 'The'} CPU time of {name} is not known: {reasons[0].rstrip('.')}."
            yield from graded(FindingKind.CPU_UNKNOWN, 1.0, message, duet.cell_id)
            return
        if behind := next((each for each in owners if each.behind and place in (BASELINE, duet.target)), None):
            message = (
                f"The CPU time of {name} is that of {', '.join(behind.processes)} alone: what was used at "
                f"{behind.behind}, which it asks to answer, is not counted."
            )
            yield from graded(FindingKind.CPU_BEHIND, 1.0, message, duet.cell_id)


def _engine_paused(duet: SeenDuet) -> tuple[Finding, ...]:
    left_out = sum(traffic.paused_blocks for traffic in duet.traffics)
    if not left_out:
        return ()
    share = left_out / (left_out + sum(len(measured(traffic)) for traffic in duet.traffics))
    message = f"{left_out:,} blocks were left out, because the engine stood still while they were measured."
    return graded(FindingKind.ENGINE_PAUSED, share, message, duet.cell_id, at_most=Grade.NOTE)


def _cold(duet: SeenDuet) -> Iterator[Finding]:
    """Servers that were not warm, or may not have been, and what that does to the interval."""
    if not duet.saturates and all(cost_of(each.blocks, saturates=False) is None for each in duet.traffics):
        message = (
            "Whether the servers were warm is not known: the load sets their rates, and their CPU time is unknown."
        )
        yield from graded(FindingKind.COLD, 1.0, message, duet.cell_id)
    if not duet.unsettled:
        return
    if math.isfinite(duet.to_come):
        reach = f"the ratio may yet move by {percent(math.expm1(duet.to_come))}, which the interval allows for"
    else:
        reach = "how far the ratio may yet move is not known, so it has no interval"
    message = f"{duet.unsettled[0].upper()}{duet.unsettled[1:]}: {reach}."
    yield from graded(FindingKind.COLD, 1.0, message, duet.cell_id)


def _rare_costs(duet: SeenDuet) -> tuple[Finding, ...]:
    """A collector that runs in few slices is a cost like any other, but its slices look like disturbed ones."""
    differences = [
        StartRatio(float(duet.contrast @ np.log(entire)) - usual.value, None)
        for usual, entire in zip(duet.cpu, map(cpu_of_all, duet.traffics), strict=True)
        if usual is not None and entire is not None
    ]
    if len(differences) < FEWEST_TRIALS:
        return ()
    apart = over_starts(differences)
    if not _excludes_zero(apart):
        return ()
    one, other = duet.names
    message = (
        f"By all its CPU time, {other} takes {percent(abs(math.expm1(apart.value)))} "
        f"{'more' if apart.value > 0 else 'less'} than the ratio to {one} says: what it does in few slices, such as "
        "collecting garbage, counts too little there."
    )
    return graded(FindingKind.RARE_COSTS, abs(apart.value), message, duet.cell_id)


def _disagreement(duet: SeenDuet) -> tuple[Finding, ...]:
    """With zero think time, CPU per request and rate are one story: more CPU, fewer requests."""
    both = duet.ratios
    if len(both) < 2 or not all(map(_excludes_zero, both)) or math.prod(each.value for each in both) <= 0:
        return ()
    one, other = duet.names
    message = f"CPU per request and throughput disagree: one is better for {one}, the other for {other}."
    return graded(FindingKind.DISAGREEMENT, 1.0, message, duet.cell_id)


def _errors(duet: SeenDuet) -> Iterator[Finding]:
    for name, places in duet.sides:
        mine = [each for each in duet.slices if each.target in places]
        failed, completed = sum(each.failed for each in mine), sum(each.completed for each in mine)
        if failed:
            why = first_failures(duet.traffics, places)
            message = f"{failed:,} of {failed + completed:,} requests to {name} failed{why and f': {why}'}."
            yield from graded(FindingKind.ERRORS, failed / (failed + completed), message, duet.cell_id)


def _idle_work(duet: SeenDuet) -> tuple[Finding, ...]:
    # Of servers that run already, the baseline and its control are one process, which is never idle.
    apart = all(None not in start.servers for start in duet.starts)
    loaded_ns = sum(each.end_ns - each.start_ns for each in duet.slices)
    if not apart or not loaded_ns:
        return ()
    idle_ns = sum(used or 0 for each in duet.slices for at, used in enumerate(each.cpu_ns) if at != each.target)
    share = idle_ns / loaded_ns
    message = f"Servers that were not loaded used {percent(share)} of a core in the slices of others."
    return graded(FindingKind.IDLE_WORK, share, message, duet.cell_id)


def _client_limited(duet: SeenDuet) -> tuple[Finding, ...]:
    known = [each for each in duet.slices if each.cpu_ns and each.cpu_ns[each.target] is not None]
    busy_ns = sum(each.cpu_ns[each.target] or 0 for each in known)
    first = duet.starts[0]
    cores = len(first.servers[0].cpus) if first.places and first.servers and first.servers[0] else duet.cores
    if not duet.saturates or not cores or not busy_ns:
        return ()
    busy = busy_ns / sum(each.end_ns - each.start_ns for each in known) / cores
    message = (
        f"The servers used {percent(busy)} of their cores: the client limits the rates, so their ratio is closer to 1 "
        "than that of the servers."
    )
    return graded(FindingKind.CLIENT_LIMITED, 1 - busy, message, duet.cell_id)


def _connections(duet: SeenDuet) -> Iterator[Finding]:
    """Connections that do not last, though the load would keep them, and bytes that nobody requested."""
    for name, places in duet.sides:
        counts = duet.counts(places)
        # No figures, and no milder grade: reconnections at the ends of slices count, and requests there do not.
        if duet.keeps and counts.due and counts.connects_often:
            message = f"Connections to {name} were opened again for most of its requests."
            yield from graded(FindingKind.RECONNECTING, 1.0, message, duet.cell_id)
        if counts.surplus:
            message = f"After {counts.surplus:,} answers {name} sent bytes that nobody had requested."
            yield from graded(FindingKind.SURPLUS_BYTES, counts.surplus / max(counts.due, 1), message, duet.cell_id)


def _answer_sizes(duet: SeenDuet) -> tuple[Finding, ...]:
    """Nobody may have said what the right answer is, so servers that do different work may be compared."""
    sizes = [_answer_size(duet, place) for place in (BASELINE, duet.target)]
    known = [each for each in sizes if each]
    if len(known) < 2:
        return ()
    one, other = duet.names
    message = (
        f"An answer of {one} has {known[0]:.0f} bytes, an answer of {other} {known[1]:.0f}: do both do the same work?"
    )
    return graded(FindingKind.ANSWER_SIZES, abs(math.log(known[1] / known[0])), message, duet.cell_id)


def _answer_size(duet: SeenDuet, target: int) -> float | None:
    """The mean number of bytes of an answer with its head; None where it is not known.

    A slice waits for all of its answers, so it holds whole ones. What came in the measured time alone would not do: it
    lacks the answers at the end of each slice, whose share depends on how fast the server is.
    """
    received = answers = 0
    for each in (each for traffic in duet.traffics for block in traffic.blocks for each in block.slices):
        if each.target == target and each.bytes_received is not None and not each.failed:
            received += each.bytes_received
            answers += each.completed
    return received / answers if answers else None


def _parallel(duet: SeenDuet) -> tuple[Finding, ...]:
    """How the sides were swapped, where servers were loaded at the same time."""
    places = [each.places for each in duet.starts if each.places]
    if not places:
        return ()
    sets = [Counter(each[server] for each in places) for server in (BASELINE, duet.target)]
    message = (
        "Servers were loaded at the same time, each on cores of its own, which were drawn for each start: "
        f"{duet.names[0]} had {_often(sets[0])}, {duet.names[1]} {_often(sets[1])}."
    )
    return graded(FindingKind.PARALLEL, 1.0, message, duet.cell_id)


def _often(sets: Counter[int]) -> str:
    """`set 1 in 4 starts, set 2 in 5`."""
    return ", ".join(f"set {place + 1} in {starts}" for place, starts in sorted(sets.items()))


def _builds(duet: SeenDuet) -> Iterator[Finding]:
    """How several builds of the servers differ, or that they do not."""
    known = [
        (ratio.value, server.build_number)
        for ratio, start in zip(duet.cpu, duet.starts, strict=True)
        if ratio is not None and start.servers and (server := start.servers[BASELINE])
    ]
    if scatter := differing([value for value, _ in known], [build for _, build in known]):
        message = f"{builds_text(scatter)}, in their ratio: the interval knows starts, and only so many builds."
        yield from graded(FindingKind.BUILDS_DIFFER, scatter.between_sd, message, duet.cell_id)
    for name, place in zip(duet.names, (BASELINE, duet.target), strict=True):
        if alike := identical_builds([start.servers[place] for start in duet.starts if start.servers]):
            message = f"All {alike} builds of {name} are identical, so they add nothing."
            yield from graded(FindingKind.BUILDS_ALIKE, float(alike - 1), message, duet.cell_id)


def failing(starts: Sequence[DuetRecording], names: tuple[str, str], target: int = COMPARED) -> str | None:
    """Which server failed too many requests for any comparison, and why; None where neither did.

    All starts with traffic count: those that came no farther than their warm-up say most about what fails.
    """
    for name, places in zip(names, ((BASELINE, -1), (target,)), strict=True):
        loads = [traffic_of(start) for start in starts if start.traffic is not None]
        ended = sum((_ended(traffic, place) for traffic in loads for place in places), Counter[str]())
        bad = {kind: number for kind, number in ended.items() if number and kind != "ok"}
        if sum(bad.values()) > FAILING * ended.total():
            kinds = ", ".join(f"{kind.replace('_', ' ')} {number:,}" for kind, number in bad.items() if kind)
            why = "; ".join(filter(None, (kinds, first_failures(loads, places))))
            said = f"{sum(bad.values()):,} of {ended.total():,} requests to {name} failed"
            return f"{said}: {why}" if why else said
    return None


def first_failures(loads: Iterable[DuetTraffic], places: Sequence[int]) -> str:
    """The first failure of each outcome at these places: `first timeout: no answer within 5 s`; empty for none."""
    text = failures_text(earliest(each for one in loads for at in places for each in one.targets[at].failures))
    return f"first {text}" if text else ""


def _ended(traffic: DuetTraffic, place: int) -> Counter[str]:
    """How the measured requests to a server ended; before any was measured, how many failed, without their kinds."""
    measured = Counter(dict(traffic.targets[place].counts.outcomes))
    if measured.total():
        return measured
    target = place % len(traffic.targets)
    slices = [each for block in traffic.blocks for each in block.slices if each.target == target]
    return Counter({"ok": sum(each.completed for each in slices), "": sum(each.failed for each in slices)})


def is_whole(recording: DuetRecording) -> bool:
    """Whether this start has a block that was measured, and nothing failed."""
    return recording.failure is None and recording.traffic is not None and bool(measured(recording.traffic))


def traffic_of(recording: DuetRecording) -> DuetTraffic:
    """The traffic of a start that was measured."""
    assert recording.traffic is not None, "starts without traffic were left out"
    return recording.traffic


def measured(traffic: DuetTraffic) -> list[DuetBlock]:
    """Its blocks after the warm-up."""
    return [block for block in traffic.blocks if block.phase == "measure"]


def cpu_unknown(traffic: DuetTraffic, target: int) -> str:
    """Why nobody knows what a server used in most of the slices in which it answered; empty where that is known."""
    slices = [each for block in measured(traffic) for each in block.slices if each.target == target and each.completed]
    used = [each.cpu_ns[target] if each.cpu_ns else None for each in slices]
    if 2 * used.count(0) > len(used):
        return "its processes used none while it answered, so others answer"
    if 2 * (used.count(0) + used.count(None)) > len(used):
        return "some of its processes came or went while it was loaded, or could not be read"
    return ""


def cpu_of_all(traffic: DuetTraffic) -> Floats | None:
    """The CPU time per request of each server, over all of its slices; None where that of one is not known."""
    used, answered = np.zeros(len(traffic.targets)), np.zeros(len(traffic.targets))
    for each in (each for block in measured(traffic) for each in block.slices):
        time_ns = each.cpu_ns[each.target] if each.cpu_ns else None
        if time_ns is None:
            return None
        used[each.target] += time_ns
        answered[each.target] += each.completed
    return used / answered if used.all() and answered.all() else None


def _excludes_zero(ratio: LogRatio) -> bool:
    low, high = ratio.interval
    return low > 0 or high < 0
