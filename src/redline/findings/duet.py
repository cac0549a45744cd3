"""Findings about duets: what makes the ratio of two servers that are loaded in turn doubtful."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from redline.findings import cell, failed, hosts, load, machine, server
from redline.findings.inherited import Inherited
from redline.findings.rules import HOLDS, TIME_DEPENDENT, TOO_ALIKE, TOO_CHEAP, Observation, Rule, judges
from redline.findings.served import Growths
from redline.findings.starts import BASELINE, cpu_of_all, cpu_unknown, first_failures, is_whole, measured, traffic_of
from redline.findings.warm_duet import cost_of, reach
from redline.lazily import dataclass
from redline.model import (
    FEWEST_TRIALS,
    Counts,
    CpuOwner,
    DuetRecording,
    DuetSlice,
    DuetTraffic,
    Grade,
    Histogram,
    StreamTraffic,
)
from redline.quantities import duration, percent
from redline.stats.builds import differing
from redline.stats.duets import Floats, LogRatio, StartRatio, over_starts

WANTED_STARTS = 5


@dataclass(frozen=True)
class SeenDuet:
    """The measured starts of a duet, at least one, and what they show.

    `names`: of the baseline and the server at `target`. `failed`: the failures of other starts. `saturates`: the
    servers set the rate. `cores`: per server, 0 if unknown. `keeps`: the load keeps connections. `insecure`: a
    certificate was not checked. `contrast` weights the servers. Logarithms: `control`, the baseline over itself;
    `ratios`, of the metrics that a duet compares well; `cpu`, of CPU per request by start; `to_come`, how far the ratio
    may yet move, and `unsettled` why. `left_out` counts cold starts that are left out because enough others are warm.
    `growths` of the costs of both, which had `served` so many requests at the end; `writes`: what may change
    them, as requests of other duets have that they `inherited`.
    """

    starts: tuple[DuetRecording, ...]
    names: tuple[str, str]
    target: int
    failed: tuple[str, ...]
    saturates: bool
    cores: int
    keeps: bool
    insecure: bool
    contrast: Floats
    control: LogRatio | None
    ratios: Sequence[LogRatio]
    cpu: Sequence[StartRatio | None]
    unsettled: str
    left_out: int
    to_come: float
    growths: tuple[Growths, Growths]
    served: tuple[float, float]
    writes: tuple[str, ...]
    inherited: Inherited | None

    @property
    def cell_id(self) -> str:
        """The cell that is compared with the baseline."""
        return self.starts[0].cell_ids[self.target]

    @property
    def servers(self) -> int:
        """The number of servers in a start, including the control."""
        return len(traffic_of(self.starts[0]).targets)

    @cached_property
    def traffics(self) -> tuple[DuetTraffic, ...]:
        """The measured traffic by start."""
        return tuple(map(traffic_of, self.starts))

    @cached_property
    def slices(self) -> tuple[DuetSlice, ...]:
        """The measured slices of all starts."""
        return tuple(slice_ for traffic in self.traffics for block in measured(traffic) for slice_ in block.slices)

    @property
    def sides(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """The name and the places of the baseline, which runs twice, and of the server that is compared with it."""
        yield from zip(self.names, ((BASELINE, self.servers - 1), (self.target,)), strict=True)


@Rule("few-starts", when="duet", unit="", note=0.0, warn=3.0, scatters=True)
def few_starts(duet: SeenDuet) -> Observation:
    """Starts missing to five: **note** for four to two, **warn** for one.

    How starts differ is part of the interval: over 4 starts it is 1.6 times as wide as over many, over one it is
    unknown.

    Advice: Give it more time, or more rounds.
    """
    places, servers = (BASELINE, duet.target), duet.starts[0].servers
    running = [name for name, at in zip(duet.names, places, strict=True) if servers[at : at + 1] == (None,)]
    starts = len(duet.starts) - duet.left_out
    if running and starts > 1:
        was, its = ("was", "its") if len(running) == 1 else ("were", "their")
        message = (
            f"{' and '.join(running)} {was} running already, with cores, settings and an age of {its} own: how starts "
            "would differ is not known, and not part of the intervals."
        )
        return Observation(WANTED_STARTS - 1, message, advice="Let Redline start both, if you can.")
    message = (
        "There was one start: how starts differ is not known, and not part of the intervals."
        if starts == 1
        else f"There were only {starts} starts: with more, intervals are narrower."
    )
    return Observation(WANTED_STARTS - starts, message)


@Rule("failed-starts", when="duet", warn=0.0)
def failed_starts(duet: SeenDuet) -> Observation | None:
    """Starts that failed.

    The ratio rests on the starts in which all servers worked, perhaps the better ones.

    Advice: Look in the servers' output for why they failed.
    """
    if not duet.failed:
        return None
    lost, made = len(duet.failed), len(duet.failed) + len(duet.starts)
    return Observation(lost / made, f"{lost} of {made} starts failed: {duet.failed[0].rstrip('.')}.")


@Rule("control", when="duet", warn=0.0, scatters=True)
def control(duet: SeenDuet) -> Observation:
    """The baseline differs from itself, as two servers in the same starts. By chance that happens in 5 of 100 duets.

    The baseline runs twice in each start. Any two servers may differ by as much as these two processes.

    Advice: Compare again. If it persists, look for what makes two processes of one server differ.
    """
    differs = duet.control is not None and _excludes_zero(duet.control) and not duet.unsettled
    message = f"{duet.names[0]} against itself reads as different, which happens by chance in 5 of 100 duets."
    return Observation(float(differs), message)


CPU_BEHIND = Rule(
    "cpu-behind",
    warn=0.0,
    biases=TOO_CHEAP,
    text="""A server that runs already asked another to answer, whose CPU time is not counted.

    The server behind it costs the rest.

    Advice: Compare the addresses of the servers themselves, or read throughput and response times.
    """,
)


@judges("duet")
def owners(duet: SeenDuet) -> Iterator[Observation]:
    """Findings about servers whose CPU time is unknown, or that use uncounted processes.

    If the CPU time of a server is not known, no server can be compared by it.
    """
    names = {BASELINE: duet.names[0], duet.target: duet.names[1], duet.servers - 1: f"the second {duet.names[0]}"}
    for place in range(duet.servers):
        name = names.get(place, "another server of the duet")
        owners = [start.owners[place] for start in duet.starts if start.owners]
        reasons = [owner.unknown for owner in owners if owner.unknown]
        hint = next((owner.hint for owner in owners if owner.hint), "")
        reasons = reasons or [*filter(None, (cpu_unknown(traffic, place) for traffic in duet.traffics))]
        if reasons:
            all_starts = len(duet.starts)
            some = "" if len(reasons) == all_starts else f"In {len(reasons)} of {all_starts} starts, "
            message = f"{some}{'the' if some else 'The'} CPU time of {name} is not known: {reasons[0].rstrip('.')}."
            advice = f"To have it watched, {hint}." if hint else None
            yield Observation(HOLDS, message, rule=machine.cpu_unknown, advice=advice)
            return
        if behind := next((owner for owner in owners if owner.behind and place in (BASELINE, duet.target)), None):
            yield observe_behind(name, behind)


def observe_behind(name: str, owner: CpuOwner) -> Observation:
    """An observation that a server asked others, whose CPU time is not counted."""
    message = (
        f"The CPU time of {name} is that of {', '.join(owner.processes)} alone: what was used at {owner.behind}, which "
        "it asks to answer, is not counted."
    )
    return Observation(HOLDS, message, rule=CPU_BEHIND)


@machine.cpu_beside.also("duet")
def beside(duet: SeenDuet) -> Iterator[Observation]:
    """Services of the same compose file as a server."""
    servers = dict(enumerate(duet.starts[0].servers))
    for place, name in zip((BASELINE, duet.target), duet.names, strict=True):
        server = servers.get(place)
        if server is not None and server.beside:
            yield machine.observe_beside(name, server.beside)


@cell.kept_services.also("duet")
def kept_services(duet: SeenDuet) -> Iterator[Observation]:
    """Services that ran through several starts, of each server."""
    for place, name in zip((BASELINE, duet.target), duet.names, strict=True):
        servers = [start.servers[place] for start in duet.starts if place < len(start.servers)]
        if (said := cell.observe_kept(name, servers)) is not None:
            yield said


@Rule("slow-starts", when="duet", note=0.5)
def slow_starts(duet: SeenDuet) -> Observation | None:
    """Time until services of a compose file were ready, as a share of that and of the first measurement of each start.

    There are fewer starts, and the intervals are wider.

    Advice: With `fresh: service` all other services of the file start once. Or give it more time.
    """
    launched = [start for start in duet.starts if start.launch_ns]
    servers = [server for start in launched for server in start.servers if server is not None and server.beside]
    if not servers:
        return None
    launch_ns = sum(start.launch_ns for start in launched)
    rest_ns = sum(start.took_ns for start in launched) - launch_ns
    message = (
        f"It took {duration(launch_ns / len(launched))} on average until the servers of a start were ready, and "
        f"{duration(rest_ns / len(launched))} to warm them up, to measure and to stop them."
    )
    advice = "Give it more time." if any(server.kept for server in servers) else None
    return Observation(launch_ns / (launch_ns + rest_ns), message, advice=advice)


@machine.engine_paused.also("duet")
def engine_paused(duet: SeenDuet) -> Observation:
    """Blocks that were left out."""
    left_out = sum(traffic.paused_blocks for traffic in duet.traffics)
    share = left_out / (left_out + sum(len(measured(traffic)) for traffic in duet.traffics))
    message = f"{left_out:,} blocks were left out, because the engine stood still while they were measured."
    return Observation(share, message, at_most=Grade.NOTE)


@Rule("cold", when="duet", warn=0.0, biases=TIME_DEPENDENT)
def cold(duet: SeenDuet) -> Iterator[Observation]:
    """Servers were not warm when they were measured, or it is not known.

    The interval allows for how far the ratio may yet move.

    Advice: Give it more time.
    """
    if not duet.saturates and all(cost_of(traffic.blocks, saturates=False) is None for traffic in duet.traffics):
        message = (
            "Whether the servers were warm is not known: the load sets their rates, and their CPU time is unknown."
        )
        yield Observation(HOLDS, message)
    if duet.left_out:
        starts = f"In {duet.left_out} of {len(duet.starts)} starts the servers were not warm"
        yield Observation(HOLDS, f"{starts}: the ratio is that of the others.")
    if not duet.unsettled or any(own.any for own in duet.growths):
        return  # what gets slower has a finding of its own
    yield Observation(HOLDS, f"{duet.unsettled[0].upper()}{duet.unsettled[1:]}: {reach(duet.to_come)}.")


@Rule("rare-costs", when="duet", warn=0.01, biases="rare costs, such as those of a collector, count too little")
def rare_costs(duet: SeenDuet) -> Observation | None:
    """Distance of the ratio by all CPU time from the ratio of usual slices.

    Work in few slices looks like a disturbance, but is a cost.

    Advice: Compare CPU time over all slices, or measure levels by trials of each server alone.
    """
    differences = [
        StartRatio(float(duet.contrast @ np.log(entire)) - usual.value, None)
        for usual, entire in zip(duet.cpu, map(cpu_of_all, duet.traffics), strict=True)
        if usual is not None and entire is not None
    ]
    if len(differences) < FEWEST_TRIALS:
        return None
    apart = over_starts(differences)
    if not _excludes_zero(apart):
        return None
    first, second = duet.names
    message = (
        f"By all its CPU time, {second} takes {percent(abs(math.expm1(apart.value)))} "
        f"{'more' if apart.value > 0 else 'less'} than the ratio to {first} says: what it does in few slices, such as "
        "collecting garbage, counts too little there."
    )
    return Observation(abs(apart.value), message)


@Rule("disagreement", when="duet", warn=0.0)
def disagreement(duet: SeenDuet) -> Observation | None:
    """*Users with zero think time.* One server needs less CPU time per request and has the lower rate, both surely.

    The slower server waits for something else.

    Advice: See what the slower server waits for: a lock, a thread pool, another service.
    """
    both = duet.ratios
    if len(both) < 2 or not all(map(_excludes_zero, both)) or math.prod(ratio.value for ratio in both) <= 0:
        return None
    message = "CPU per request and throughput disagree: one is better for {}, the other for {}.".format(*duet.names)
    return Observation(HOLDS, message)


@failed.errors.also("duet")
def errors(duet: SeenDuet) -> Iterator[Observation]:
    """Requests without a right answer, and the first reasons."""
    for name, places in duet.sides:
        mine = [slice_ for slice_ in duet.slices if slice_.target in places]
        lost, completed = sum(slice_.failed for slice_ in mine), sum(slice_.completed for slice_ in mine)
        if lost:
            why = first_failures(duet.traffics, places)
            message = f"{lost:,} of {lost + completed:,} requests to {name} failed{why and f': {why}'}."
            yield Observation(lost / (lost + completed), message)


@machine.cpu_steal.also("duet")
def steal(duet: SeenDuet) -> Observation:
    """CPU time that the host took away; slices that it disturbed weigh little, so this is never more than a note."""
    share, stolen_ns = _stolen_share(duet.slices), sum(slice_.steal_ns or 0 for slice_ in duet.slices)
    message = (
        f"The host took away {percent(share)} of the CPU time that servers and engine needed ({stolen_ns / 1e6:,.0f} "
        "ms): intervals are wider."
    )
    return Observation(share, message, at_most=Grade.NOTE)


def much_stolen(start: DuetRecording) -> bool:
    """Whether the host took so much CPU time that a trial would get a warning."""
    if not is_whole(start):
        return False
    share = _stolen_share([slice_ for block in measured(traffic_of(start)) for slice_ in block.slices])
    return machine.cpu_steal.grade(share) not in (None, Grade.NOTE)


def _stolen_share(slices: Sequence[DuetSlice]) -> float:
    """Stolen share of the CPU time that servers and engine needed; 0 if unknown."""
    known = [slice_ for slice_ in slices if slice_.steal_ns is not None]
    stolen_ns = sum(slice_.steal_ns or 0 for slice_ in known)
    used_ns = sum(slice_.engine_cpu_ns + sum(filter(None, slice_.cpu_ns)) for slice_ in known)
    return stolen_ns / (stolen_ns + used_ns) if stolen_ns else 0.0


@load.cut_short.also("duet")
def cut_short(duet: SeenDuet) -> Observation:
    """Starts whose measurement was interrupted."""
    cut = sum(traffic.ended != "complete" for traffic in duet.traffics)
    message = f"{cut} of {len(duet.starts)} starts were cut short: they count as far as they were measured."
    if aborted_by := next(filter(None, (traffic.aborted_by for traffic in duet.traffics)), ""):
        message = f"{message[:-1]}. They were aborted by {aborted_by}."
    return Observation(cut / len(duet.starts), message, at_most=Grade.WARN)


@load.send_lateness.also("duet")
def send_lateness(duet: SeenDuet) -> Iterator[Observation]:
    """The engine itself was late, where the load sets the rate."""
    for name, places in () if duet.saturates else duet.sides:
        targets = [traffic.targets[at] for traffic in duet.traffics for at in places]
        late = Histogram.merged(target.lateness for target in targets)
        share, said = load.late_share(late, Histogram.merged(target.response for target in targets))
        message = f"{said}, of requests to {name}."
        advice = load.send_lateness.advice_without_service_times
        yield Observation(share, message, at_most=Grade.WARN, advice=advice)


@load.late_reads.also("duet")
def late_reads(duet: SeenDuet) -> Iterator[Observation]:
    """Messages were read together and late, of the conversations of a server."""
    for name, places in duet.sides:
        seen = StreamTraffic.merged(traffic.targets[at].streams for traffic in duet.traffics for at in places)
        if seen:
            said = load.read_late(seen)
            yield replace(said, message=f"Of {name}: {said.message}", at_most=Grade.WARN)


@hosts.clock_bound.also("duet")
def clock_bound(duet: SeenDuet) -> Iterator[Observation]:
    """How far the hosts' clocks may be apart, in the start where that is the largest part of a one-way time."""
    of_starts = (
        hosts.observe_clocks(traffic.targets[at].one_way, start.hosts)
        for start, traffic in zip(duet.starts, duet.traffics, strict=True)
        for _, places in duet.sides
        for at in places
    )
    yield from sorted(filter(None, of_starts), key=lambda said: said.value)[-1:]


@load.tls_insecure.also("duet")
def tls_insecure(duet: SeenDuet) -> Observation:
    """A certificate was not checked, so any server could have answered."""
    message = "A server's certificate was not checked: any server could have answered."
    return Observation(float(duet.insecure), message)


@Rule("idle-work", when="duet", warn=0.01, scatters=True)
def idle_work(duet: SeenDuet) -> Observation | None:
    """Part of a core that servers used while others were loaded.

    Compilers, collectors and timers disturb others' slices. 1% of a core is as much as many a difference.

    Advice: Give the servers more time to warm up, or switch off what they do on their own.
    """
    # If a server was already running, the baseline and its control are the same process, which is never idle.
    apart = all(start.control_is_apart for start in duet.starts)
    loaded_ns = sum(slice_.end_ns - slice_.start_ns for slice_ in duet.slices)
    if not apart or not loaded_ns:
        return None
    idle_ns = sum(used or 0 for slice_ in duet.slices for at, used in enumerate(slice_.cpu_ns) if at != slice_.target)
    share = idle_ns / loaded_ns
    message = f"Servers that were not loaded used {percent(share)} of a core in the slices of others."
    return Observation(share, message)


@server.standing_cost.also("duet")
def standing_cost(duet: SeenDuet) -> Iterator[Observation]:
    """What each server used in the slices of others, as a share of what it used in its own.

    If a server was already running, the baseline and its control are the same process, which is never idle.
    """
    for name, places in duet.sides if all(start.control_is_apart for start in duet.starts) else ():
        read = [(one, at) for one in duet.slices if one.cpu_ns for at in places if one.cpu_ns[at] is not None]
        own, others = ([one for one in read if (one[0].target == one[1]) is mine] for mine in (True, False))
        own_s, others_s = _seconds(own), _seconds(others)
        answered = sum(slice_.completed for slice_, _ in own)
        if answered and own_s and others_s:
            loaded, unloaded = _cpu_s(own) / own_s, _cpu_s(others) / others_s
            yield from filter(None, [server.observe_standing_cost(name, loaded, unloaded, answered / own_s)])


def _seconds(read: Sequence[tuple[DuetSlice, int]]) -> float:
    return sum(slice_.end_ns - slice_.start_ns for slice_, _ in read) / 1e9


def _cpu_s(read: Sequence[tuple[DuetSlice, int]]) -> float:
    """The CPU time of the servers at these places, each in its slice."""
    return sum(slice_.cpu_ns[at] or 0 for slice_, at in read) / 1e9


@Rule("client-limited", when="duet", note=0.20, biases=TOO_ALIKE)
def client_limited(duet: SeenDuet) -> Observation | None:
    """*Users with zero think time.* Idle cores of the servers.

    A server with idle cores then waits for the client.

    Advice: Read CPU per request, or load the servers by more users.
    """
    known = [slice_ for slice_ in duet.slices if slice_.cpu_ns and slice_.cpu_ns[slice_.target] is not None]
    busy_ns = sum(slice_.cpu_ns[slice_.target] or 0 for slice_ in known)
    first = duet.starts[0]
    cores = len(first.servers[0].cpus) if first.places and first.servers and first.servers[0] else duet.cores
    if not duet.saturates or not cores or not busy_ns:
        return None
    busy = busy_ns / sum(slice_.end_ns - slice_.start_ns for slice_ in known) / cores
    message = (
        f"The servers used {percent(busy)} of their cores: the client limits the rates, so their ratio is closer to 1 "
        "than that of the servers."
    )
    return Observation(1 - busy, message)


@judges("duet")
def connections(duet: SeenDuet) -> Iterator[Observation]:
    """Connections that do not last, though the load would keep them, and bytes that nobody requested."""
    for name, places in duet.sides:
        counts = Counts.merged(traffic.targets[at].counts for traffic in duet.traffics for at in places)
        # No figures, and no milder grade: reconnections at the ends of slices count, and requests there do not.
        if duet.keeps and counts.due and counts.connects_often:
            message = f"Connections to {name} were opened again for most of its requests."
            yield Observation(HOLDS, message, rule=failed.reconnecting)
        if counts.surplus:
            message = f"After {counts.surplus:,} answers {name} sent bytes that nobody had requested."
            yield Observation(counts.surplus / max(counts.due, 1), message, rule=failed.surplus_bytes)


@Rule("answer-sizes", when="duet", note=0.01)
def answer_sizes(duet: SeenDuet) -> Observation | None:
    """Difference of the mean length of two servers' answers, with headers. In trials: from the median server with the
    same protocol, if those of all trials are apart; of several requests, that of the bodies of each.

    Without a specified answer, servers may do different work. A date or a number changes the length by less than 1%.

    Advice: Compare the answers, state what is right by `expect`, or let duets compare them: `--same-answers`.
    """
    ours, theirs = (_answer_size(duet, place) for place in (BASELINE, duet.target))
    return observe_sizes(duet.names, (ours, theirs)) if ours and theirs else None


def observe_sizes(names: tuple[str, str], sizes: tuple[float, float]) -> Observation:
    """An observation of the mean bytes of two servers' answers, which are above 0."""
    (first, second), (ours, theirs) = names, sizes
    message = (
        f"An answer of {first} has {ours:.0f} bytes, an answer of {second} {theirs:.0f}: do both do the same work?"
    )
    return Observation(abs(math.log(theirs / ours)), message)


def _answer_size(duet: SeenDuet, target: int) -> float | None:
    """The mean bytes of an answer with its head, over whole slices, which wait for their answers; None if unknown."""
    slices = (slice_ for traffic in duet.traffics for block in traffic.blocks for slice_ in block.slices)
    own = [slice_ for slice_ in slices if slice_.target == target and not slice_.failed]
    known = [(slice_.bytes_received, slice_.completed) for slice_ in own if slice_.bytes_received is not None]
    answers = sum(completed for _, completed in known)
    return sum(received for received, _ in known) / answers if answers else None


@Rule("parallel", when="duet", note=0.0)
def parallel(duet: SeenDuet) -> Observation | None:
    """Servers were loaded at the same time, on separate cores.

    Sets of cores differ; drawing them for each start makes that a part of the interval.

    Advice: Nothing needs to be done. Load the servers in turn for a narrower interval.
    """
    places = [start.places for start in duet.starts if start.places]
    if not places:
        return None
    sets = [Counter(place[server] for place in places) for server in (BASELINE, duet.target)]
    first, second = (
        ", ".join(f"set {place + 1} in {starts}" for place, starts in sorted(drawn.items())) for drawn in sets
    )
    message = (
        "Servers were loaded at the same time, each on cores of its own, which were drawn for each start: "
        f"{duet.names[0]} had {first}, {duet.names[1]} {second}."
    )
    return Observation(HOLDS, message)


@judges("duet")
def builds(duet: SeenDuet) -> Iterator[Observation]:
    """How several builds of the servers differ, or that they do not."""
    known = [
        (ratio.value, server.build_number)
        for ratio, start in zip(duet.cpu, duet.starts, strict=True)
        if ratio is not None and start.servers and (server := start.servers[BASELINE])
    ]
    if scatter := differing([value for value, _ in known], [build for _, build in known]):
        message = f"{cell.builds_text(scatter)}, in their ratio: the interval allows for it, by so few builds."
        yield Observation(scatter.between_sd, message, rule=cell.builds_differ)
    for name, place in zip(duet.names, (BASELINE, duet.target), strict=True):
        if alike := cell.identical_builds([start.servers[place] for start in duet.starts if start.servers]):
            message = f"All {alike} builds of {name} are identical, so they add nothing."
            yield Observation(HOLDS, message, rule=cell.builds_alike)


def _excludes_zero(ratio: LogRatio) -> bool:
    low, high = ratio.interval
    return low > 0 or high < 0
