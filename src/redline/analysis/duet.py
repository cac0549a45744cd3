"""What duets say: how a server compares with the baseline over fresh starts, and the reasons to doubt it. Pure."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from redline.findings.cell import builds_text, identical_builds
from redline.findings.failed import failures_text
from redline.findings.warm_duet import FEWEST_BLOCKS, Course, are_warm, cost_of, course, still_to_come
from redline.model import (
    Comparison,
    Counts,
    DuetBlock,
    DuetRecording,
    DuetSlice,
    DuetTraffic,
    Grade,
    Metric,
    Run,
    Verdict,
)
from redline.model.estimate import DuetComparison, DuetFinding
from redline.model.failures import earliest
from redline.quantities import percent
from redline.stats import FEWEST_TRIALS, decide
from redline.stats.builds import differing
from redline.stats.duets import Floats, LogRatio, Slices, StartRatio, over_starts

BASELINE, COMPARED = 0, 1
"""The places of the first servers in a start; the last one, the control, is the baseline once more."""
IDLE = 0.01
"""From this share of a core on, a server that is not loaded disturbs the slices of the others."""
FAILING = 0.01
"""Of a server that fails more of its requests, nobody knows what the others cost."""
BUSY = 0.8
"""Under users with zero think time, a server that uses less of its cores than this waits for the client."""
RARE = 0.01
"""What is in few slices moves the ratio little: from this share of a server's cost on it is worth a word."""


@dataclass(frozen=True)
class Duet:
    """The starts of a duet that were measured, one at least, and one server of it, compared with the baseline.

    `names` are those of the baseline and of that server. `failed` says of the other starts what went wrong, and
    `saturates` whether the servers set the rate. `detects`: the warm-up was to end when the servers are warm. `cores`
    is how many each has, 0 where that is not known. `keeps`: the load has its connections for all requests.
    """

    starts: tuple[DuetRecording, ...]
    names: tuple[str, str] = ("A", "B")
    target: int = COMPARED
    failed: tuple[str, ...] = ()
    saturates: bool = True
    detects: bool = False
    cores: int = 0
    keeps: bool = True

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """What it compares well. The rate of any other load is what a schedule or its users say."""
        return (Metric.CPU_PER_REQUEST, Metric.THROUGHPUT) if self.saturates else (Metric.CPU_PER_REQUEST,)

    def ratio(self, metric: Metric) -> LogRatio | None:
        """The server over both copies of the baseline; None where no start knows the metric.

        Its interval allows for how far the ratio may yet move where servers were not warm.
        """
        found = self._contrast(metric, self._against_baseline)
        return found and replace(found, bias=self._to_come)

    def control(self, metric: Metric) -> LogRatio | None:
        """The baseline over itself, as two servers of it; None where no start knows the metric of both."""
        contrast = np.zeros(self._servers)
        contrast[BASELINE] -= 1
        contrast[-1] += 1
        return self._contrast(metric, contrast)

    @property
    def _against_baseline(self) -> Floats:
        contrast = np.zeros(self._servers)
        contrast[[BASELINE, -1]] = -0.5
        contrast[self.target] = 1
        return contrast

    @property
    def _servers(self) -> int:
        return len(traffic_of(self.starts[0]).targets)

    def _contrast(self, metric: Metric, contrast: Floats) -> LogRatio | None:
        of_starts = zip(self._of_starts(metric, contrast), self.starts, strict=True)
        known = [(each, start.host) for each, start in of_starts if each is not None]
        hosts = [host for _, host in known if host]
        return over_starts([each for each, _ in known], hosts) if known else None

    def _of_starts(self, metric: Metric, contrast: Floats) -> list[StartRatio | None]:
        """Of each start, None where a server of it has no value.

        A percentile is that of all requests of a start, because a slice has too few.
        """
        if metric in _OF_SLICE:
            return [each.ratio(contrast) if each else None for each in self._slices[metric]]
        q = {Metric.P50: 0.5, Metric.P99: 0.99}[metric]
        times = [[each.response.quantiles_ns([q])[0] for each in traffic_of(start).targets] for start in self.starts]
        return [StartRatio(float(contrast @ np.log(each)), None) if all(each) else None for each in times]

    @cached_property
    def _slices(self) -> Mapping[Metric, list[Slices | None]]:
        return {metric: [_slices(metric, traffic_of(start)) for start in self.starts] for metric in _OF_SLICE}

    def findings(self) -> Iterator[DuetFinding]:
        """The reasons to doubt what it says."""
        if self.failed:
            message = f"{len(self.failed)} of {len(self.failed) + len(self.starts)} starts failed: {self.failed[0]}"
            yield DuetFinding(kind="failed-starts", grade=Grade.WARN, message=message)
        control = self.control(Metric.CPU_PER_REQUEST)
        if control is not None and _excludes_zero(control) and not self.unsettled:
            message = f"{self.names[0]} against itself reads as different, which happens by chance in 5 of 100 duets"
            yield DuetFinding(kind="control", grade=Grade.WARN, message=message)
        yield from self._owners()
        if left_out := sum(traffic_of(start).paused_blocks for start in self.starts):
            message = f"{left_out:,} blocks were left out, because the engine stood still while they were measured"
            yield DuetFinding(kind="engine-paused", grade=Grade.NOTE, message=message)
        yield from self._cold()
        yield from self._rare_costs()
        yield from self._disagreement()
        yield from self._of_slices()
        yield from self._connections()
        yield from self._of_places()
        yield from self._of_builds()

    @property
    def unsettled(self) -> str:
        """Why the ratio may yet move, and its interval is wider than by chance; empty where servers were warm."""
        if self._cold_starts:
            return f"in {self._cold_starts} of {len(self.starts)} starts the servers were not warm"
        return "the servers were not warm: their ratio still moved while it was measured" if self._to_come else ""

    @cached_property
    def _cold_starts(self) -> int:
        return sum(each.cold is not None for each in self._courses)

    @cached_property
    def _to_come(self) -> float:
        return still_to_come(self._courses)

    @cached_property
    def _courses(self) -> list[Course]:
        return [
            course(
                traffic_of(start).blocks,
                self._against_baseline,
                are_cold=self._was_cold(start),
                saturates=self.saturates,
            )
            for start in self.starts
        ]

    def _was_cold(self, start: DuetRecording) -> bool:
        """Whether the servers of a start were not warm before it was measured.

        A warm-up of a fixed length ends whenever it does; then they are cold if they were not warm even later.
        """
        blocks = traffic_of(start).blocks
        if self.detects:
            blocks = tuple(block for block in blocks if block.phase == "warmup")
        elif len(blocks) < FEWEST_BLOCKS:
            return False
        return not are_warm(blocks, apart=None not in start.servers, saturates=self.saturates)

    def hinges_on_warmth(self, ratio: LogRatio, judged: Callable[[LogRatio], Verdict]) -> bool:
        """Whether servers that were not warm, rather than chance, are why it is not known more precisely."""
        by_chance = replace(ratio, bias=0.0)
        low, high = by_chance.interval
        return bool(self.unsettled) and (ratio.bias > (high - low) / 2 or judged(by_chance) is not judged(ratio))

    @cached_property
    def failing(self) -> str | None:
        """Which of both servers failed too many requests for any comparison, and how; None where neither did."""
        return failing(self.starts, self.names, self.target)

    def _owners(self) -> Iterator[DuetFinding]:
        """Whose CPU time is not known, and who works for a server without being counted.

        That of any server keeps all of them from being compared by it.
        """
        names = {BASELINE: self.names[0], self.target: self.names[1], self._servers - 1: f"the second {self.names[0]}"}
        for server_at in range(self._servers):
            name = names.get(server_at, "another server of the duet")
            owners = [each.owners[server_at] for each in self.starts if each.owners]
            reasons = [each.unknown for each in owners if each.unknown]
            reasons = reasons or [*filter(None, (_cpu_unknown(traffic_of(each), server_at) for each in self.starts))]
            if reasons:
                some = "" if len(reasons) == len(self.starts) else f"in {len(reasons)} of {len(self.starts)} starts, "
                message = f"{some}the CPU time of {name} is not known: {reasons[0]}"
                yield DuetFinding(kind="cpu-unknown", grade=Grade.WARN, message=message)
                return
            if behind := next((each for each in owners if each.behind and server_at in (BASELINE, self.target)), None):
                message = (
                    f"the CPU time of {name} is that of {', '.join(behind.processes)} alone: what was used at "
                    f"{behind.behind}, which it asks to answer, is not counted"
                )
                yield DuetFinding(kind="cpu-behind", grade=Grade.WARN, message=message)

    def _cold(self) -> Iterator[DuetFinding]:
        """Servers that were not warm, or may not have been, and what that does to the interval."""
        if not self.saturates and all(
            cost_of(traffic_of(each).blocks, saturates=False) is None for each in self.starts
        ):
            message = (
                "whether the servers were warm is not known: the load sets their rates, and their CPU time is unknown"
            )
            yield DuetFinding(kind="cold", grade=Grade.WARN, message=message)
        if not self.unsettled:
            return
        if math.isfinite(self._to_come):
            reach = f"the ratio may yet move by {percent(math.expm1(self._to_come))}, which the interval allows for"
        else:
            reach = "how far the ratio may yet move is not known, so it has no interval"
        message = f"{self.unsettled}: {reach}; give more time"
        yield DuetFinding(kind="cold", grade=Grade.WARN, message=message)

    def _rare_costs(self) -> Iterator[DuetFinding]:
        """A collector that runs in few slices is a cost like any other, but its slices look like disturbed ones."""
        contrast, differences = self._against_baseline, []
        all_usual = self._of_starts(Metric.CPU_PER_REQUEST, contrast)
        for usual, entire in zip(all_usual, map(cpu_of_all, map(traffic_of, self.starts)), strict=True):
            if usual is not None and entire is not None:
                differences.append(StartRatio(float(contrast @ np.log(entire)) - usual.value, None))
        if len(differences) < FEWEST_TRIALS:
            return
        apart = over_starts(differences)
        if _excludes_zero(apart) and abs(apart.value) > RARE:
            more = "more" if apart.value > 0 else "less"
            one, other = self.names
            message = (
                f"by all its CPU time, {other} takes {percent(abs(math.expm1(apart.value)))} {more} than the ratio to"
                f" {one} says: what it does in few slices, such as collecting garbage, counts too little there"
            )
            yield DuetFinding(kind="rare-costs", grade=Grade.WARN, message=message)

    def _disagreement(self) -> Iterator[DuetFinding]:
        """With zero think time, CPU per request and rate are one story: more CPU, fewer requests."""
        both = [ratio for metric in self.metrics if (ratio := self.ratio(metric)) is not None]
        if len(both) > 1 and all(map(_excludes_zero, both)) and math.prod(each.value for each in both) > 0:
            one, other = self.names
            message = f"CPU per request and throughput disagree: one is better for {one}, the other for {other}"
            yield DuetFinding(kind="disagreement", grade=Grade.WARN, message=message)

    def _of_slices(self) -> Iterator[DuetFinding]:
        slices = [each for start in self.starts for block in measured(traffic_of(start)) for each in block.slices]
        last = self._servers - 1
        for name, targets in zip(self.names, ((BASELINE, last), (self.target,)), strict=True):
            mine = [each for each in slices if each.target in targets]
            failed, completed = sum(each.failed for each in mine), sum(each.completed for each in mine)
            if failed:
                why = _first_failures(map(traffic_of, self.starts), targets)
                message = f"{failed:,} of {failed + completed:,} requests to {name} failed{why and f': {why}'}"
                yield DuetFinding(kind="errors", grade=Grade.WARN, message=message)
        loaded_ns = sum(each.end_ns - each.start_ns for each in slices)
        idle_ns = sum(used or 0 for each in slices for target, used in enumerate(each.cpu_ns) if target != each.target)
        # Of servers that run already, the baseline and its control are one process, which is never idle.
        apart = all(None not in start.servers for start in self.starts)
        if apart and loaded_ns and idle_ns / loaded_ns > IDLE:
            used = percent(idle_ns / loaded_ns)
            message = f"servers that were not loaded used {used} of a core in the slices of others"
            yield DuetFinding(kind="idle-work", grade=Grade.WARN, message=message)
        slices = [each for each in slices if each.cpu_ns and each.cpu_ns[each.target] is not None]
        loaded_ns = sum(each.end_ns - each.start_ns for each in slices)
        busy_ns = sum(each.cpu_ns[each.target] or 0 for each in slices)
        first = self.starts[0]
        cores = len(first.servers[0].cpus) if first.places and first.servers and first.servers[0] else self.cores
        if self.saturates and cores and busy_ns and busy_ns / loaded_ns / cores < BUSY:
            message = (
                f"the servers used {percent(busy_ns / loaded_ns / cores)} of their cores: the client limits the"
                " rates, so their ratio is closer to 1 than that of the servers"
            )
            yield DuetFinding(kind="client-limited", grade=Grade.NOTE, message=message)

    def _connections(self) -> Iterator[DuetFinding]:
        """Connections that do not last, though the load would keep them."""
        for name, places in zip(self.names, ((BASELINE, -1), (self.target,)), strict=True):
            counts = Counts.merged(traffic_of(start).targets[at].counts for start in self.starts for at in places)
            if self.keeps and counts.due and counts.connects_often:
                # No figures: those of reconnections include the ends of slices, in which requests do not count.
                message = f"connections to {name} were opened again for most of its requests"
                yield DuetFinding(kind="reconnecting", grade=Grade.WARN, message=message)
            if counts.surplus:
                message = f"after {counts.surplus:,} answers {name} sent bytes that nobody had requested"
                yield DuetFinding(kind="surplus-bytes", grade=Grade.WARN, message=message)

    def _of_places(self) -> Iterator[DuetFinding]:
        """How the sides were swapped, where servers were loaded at the same time."""
        places = [each.places for each in self.starts if each.places]
        if places:
            sets = [Counter(each[server] for each in places) for server in (BASELINE, self.target)]
            message = (
                "servers were loaded at the same time, each on cores of its own, which were drawn for each start:"
                f" {self.names[0]} had {_often(sets[0])}, {self.names[1]} {_often(sets[1])}"
            )
            yield DuetFinding(kind="parallel", grade=Grade.NOTE, message=message)

    def _of_builds(self) -> Iterator[DuetFinding]:
        """How several builds of the servers differ, or that they do not."""
        values = self._of_starts(Metric.CPU_PER_REQUEST, self._against_baseline)
        known = [
            (ratio.value, server.build_number)
            for ratio, start in zip(values, self.starts, strict=True)
            if ratio is not None and start.servers and (server := start.servers[BASELINE])
        ]
        if found := differing([value for value, _ in known], [build for _, build in known]):
            message = f"{builds_text(found)}, in their ratio: the interval knows starts, and only so many builds"
            yield DuetFinding(kind="builds-differ", grade=Grade.WARN, message=message)
        for name, server_at in zip(self.names, (BASELINE, self.target), strict=True):
            if alike := identical_builds([start.servers[server_at] for start in self.starts if start.servers]):
                message = f"all {alike} builds of {name} are identical, so they add nothing"
                yield DuetFinding(kind="builds-alike", grade=Grade.NOTE, message=message)


def failing(starts: Sequence[DuetRecording], names: tuple[str, str], target: int = COMPARED) -> str | None:
    """Which server failed too many requests for any comparison, and why; None where neither did.

    Of all starts with traffic: those that came no farther than their warm-up say most about what fails.
    """
    for name, places in zip(names, ((BASELINE, -1), (target,)), strict=True):
        loads = [traffic_of(start) for start in starts if start.traffic is not None]
        ended = sum((_ended(traffic, place) for traffic in loads for place in places), Counter[str]())
        bad = {kind: number for kind, number in ended.items() if number and kind != "ok"}
        if sum(bad.values()) > FAILING * ended.total():
            kinds = ", ".join(f"{kind.replace('_', ' ')} {number:,}" for kind, number in bad.items() if kind)
            why = "; ".join(filter(None, (kinds, _first_failures(loads, places))))
            said = f"{sum(bad.values()):,} of {ended.total():,} requests to {name} failed"
            return f"{said}: {why}" if why else said
    return None


def _first_failures(loads: Iterable[DuetTraffic], places: Sequence[int]) -> str:
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


def _often(sets: Counter[int]) -> str:
    """`set 1 in 4 starts, set 2 in 5`."""
    return ", ".join(f"set {place + 1} in {starts}" for place, starts in sorted(sets.items()))


Duets = Mapping[tuple[str, str], Duet]
"""By the ids of a cell and its baseline."""


def duets_of(run: Run) -> Duets:
    """The duets of a run that were measured at least once."""
    starts: dict[tuple[str, ...], list[DuetRecording]] = {}
    for recording in run.duets:
        starts.setdefault(recording.cell_ids, []).append(recording)
    plan, cores = run.manifest.plan, len(run.manifest.environment.server_cpus)
    found = {}
    for cell_ids, made in starts.items():
        whole = tuple(each for each in made if is_whole(each))
        failed = tuple(each.failure.message for each in made if each.failure is not None)
        baseline = plan.cells[cell_ids[BASELINE]]
        for target, cell_id in enumerate(cell_ids[COMPARED:-1] if whole else (), COMPARED):
            names = baseline.variant.slug, plan.cells[cell_id].variant.slug
            found[cell_id, baseline.id] = Duet(
                whole,
                names,
                target,
                failed,
                saturates=baseline.load.saturates,
                detects=baseline.warmup_detect,
                cores=cores,
                keeps=baseline.load.shape.requests_per_connection is None,
            )
    return found


def in_duet(alone: Comparison, duets: Duets) -> Comparison:
    """A comparison by trials of each server alone, or in its place that of the duet of both, if this knows the metric.

    What disturbs trials alone until they are invalid disturbs both servers of a duet, which compares them still.
    """
    duet = duets.get((alone.cell_id, alone.baseline_id))
    if duet is None or alone.metric not in duet.metrics:
        return alone
    if duet.failing is not None:
        nothing = dict.fromkeys(("ratio", "p", "p_equivalent"))
        return alone.model_copy(update={**nothing, "refused": duet.failing})
    ratio, control = duet.ratio(alone.metric), duet.control(alone.metric)
    if ratio is None:
        return alone
    contrast = ratio.contrast

    def judge(ratio: LogRatio) -> Verdict:
        return decide(ratio.contrast.ratio, alone.threshold, higher_is_better=alone.metric.higher_is_better).verdict

    about = DuetComparison(
        starts=ratio.starts,
        parallel=any(each.places for each in duet.starts),
        between_sd=ratio.between_sd,
        blocks_se=ratio.blocks_se,
        control=control.contrast.ratio if control else None,
        alone=alone.ratio,
        unsettled=duet.unsettled if duet.hinges_on_warmth(ratio, judge) else "",
        findings=tuple(duet.findings()),
    )
    judged: dict[str, object] = dict.fromkeys(("p", "p_equivalent"))
    if alone.primary and ratio.starts >= FEWEST_TRIALS:
        judged = {"p": contrast.p, "p_equivalent": contrast.p_equivalent(alone.threshold)}
    known = {"ratio": contrast.ratio, "refused": "", "rounds": None, "caveat": "", "duet": about}
    return alone.model_copy(update={**known, **judged})


def is_whole(recording: DuetRecording) -> bool:
    """Whether this start has a block that was measured, and nothing failed."""
    return recording.failure is None and recording.traffic is not None and bool(measured(recording.traffic))


def traffic_of(recording: DuetRecording) -> DuetTraffic:
    """Of a start that was measured."""
    assert recording.traffic is not None, "starts without traffic were left out"
    return recording.traffic


def measured(traffic: DuetTraffic) -> list[DuetBlock]:
    """Its blocks after the warm-up."""
    return [block for block in traffic.blocks if block.phase == "measure"]


def _excludes_zero(ratio: LogRatio) -> bool:
    low, high = ratio.interval
    return low > 0 or high < 0


def _slices(metric: Metric, traffic: DuetTraffic) -> Slices | None:
    """Those of one start; None where a server has no value."""
    known = [
        (each.target, math.log(value))
        for block in measured(traffic)
        for each in block.slices
        if (value := _OF_SLICE[metric](each))
    ]
    if {server for server, _ in known} != set(range(len(traffic.targets))):
        return None
    if metric is Metric.CPU_PER_REQUEST and any(_cpu_unknown(traffic, at) for at in range(len(traffic.targets))):
        return None
    servers, logs = zip(*known, strict=True)
    return Slices(np.array(servers), np.array(logs))


def _cpu_per_request(of: DuetSlice) -> float | None:
    used = of.cpu_ns[of.target] if of.cpu_ns else None
    return used / of.completed if used and of.completed else None


def _cpu_unknown(traffic: DuetTraffic, target: int) -> str:
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


def _throughput(of: DuetSlice) -> float | None:
    return of.measured / of.measured_ns if of.measured_ns else None


_OF_SLICE = {Metric.CPU_PER_REQUEST: _cpu_per_request, Metric.THROUGHPUT: _throughput}
