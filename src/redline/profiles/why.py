"""Why compared servers differ: sampled duets divide the difference of CPU time per request among functions. Pure."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from redline.errors import RedlineError
from redline.findings.starts import COMPARED, measured
from redline.model import (
    CellReport,
    CodeCost,
    Comparison,
    CounterChange,
    DuetBlock,
    DuetRecording,
    Estimate,
    Library,
    Manifest,
    Metric,
    Run,
    Stacks,
    WhyReport,
)
from redline.profiles.counters import counter_changes
from redline.profiles.libraries import Libraries
from redline.profiles.touched import touched_among
from redline.stats.accounting import FEWEST_STARTS, MeanDifference, PartCost, SampledServer, SampledStart, account
from redline.stats.distributions import t_quantile
from redline.stats.frame_changes import frame_changes
from redline.stats.samples import CONFIDENCE
from redline.stats.stacks import normal

_METHOD = "t interval over sampled starts"
_METHOD_WHOLE = "the ratio without a profiler, of the baseline's CPU time"
_METHOD_REST = "from the intervals of the whole and of its parts"
_NO_FRAME, _BELOW = "[unknown]", ";"
_OF_JVMS = "async-profiler"
_PLACE = re.compile(r"(?<= )(?:\S*/)?([^/\s:]+):\d+:\d+$")


def why_reports(run: Run, cells: Sequence[CellReport], comparisons: Iterable[Comparison]) -> tuple[WhyReport, ...]:
    """A report for every server of a duet that was to be sampled; empty unless the suite asks for it."""
    plan = run.manifest.plan
    if not plan.suite.why or run.profiles is None:
        return ()
    ratios = {
        (comparison.cell_id, comparison.baseline_id): comparison.ratio
        for comparison in comparisons
        if comparison.metric is Metric.CPU_PER_REQUEST
    }
    levels = {cell.cell_id: cell.known.get(Metric.CPU_PER_REQUEST) for cell in cells}
    made = list[WhyReport]()
    libraries = run.profiles.libraries() if run.sampled else ()
    for cell_ids in dict.fromkeys(duet.cell_ids for duet in plan.duets):
        sampled = _SampledDuet(run.manifest, cell_ids, run.sampled, run.profiles.stacks, libraries)
        for target, cell_id in enumerate(cell_ids[COMPARED:], COMPARED):
            whole = _whole(ratios.get((cell_id, cell_ids[0])), levels.get(cell_ids[0]))
            own = [duet for duet in run.duets if duet.cell_ids[:-1] == cell_ids]
            changes = counter_changes(own, sampled.recordings, target, plan.suite.threshold)
            made.append(sampled.report(target, whole, changes))
    return tuple(made)


def _whole(ratio: Estimate | None, level: Estimate | None) -> Estimate | None:
    """The difference without a profiler; None if the ratio or the baseline's CPU time is not known."""
    if ratio is None or level is None:
        return None
    low, high = (None if end is None else (end - 1) * level.value for end in (ratio.low, ratio.high))
    return Estimate(
        value=(ratio.value - 1) * level.value, low=low, high=high, unit="ns", n=ratio.n, method=_METHOD_WHOLE
    )


@dataclass(frozen=True)
class _Server:
    """A server of a sampled start by function, stack and library; its CPU time per request before it was sampled."""

    functions: SampledServer
    stacks: SampledServer
    libraries: SampledServer
    owners: Mapping[str, str]
    unsampled_ns: float | None


class _SampledDuet:
    """The sampled starts of a duet."""

    def __init__(
        self,
        manifest: Manifest,
        cell_ids: tuple[str, ...],
        recordings: Iterable[DuetRecording],
        read: Callable[[str], Stacks],
        table: Sequence[Library],
    ) -> None:
        self._plan, self._cell_ids, self._read = manifest.plan, cell_ids, read
        self._touched = manifest.touched
        self.recordings = [made for made in recordings if made.cell_ids[:-1] == cell_ids]
        profilers = [facts.profiler for made in self.recordings for facts in made.profiles]
        self._libraries, self._of_jvms = Libraries(table), Libraries(table, "jvm")
        self._profiler = " and ".join(dict.fromkeys(filter(None, profilers)))
        self._problem, self._starts = "", list[tuple[_Server, ...]]()
        for recording in self.recordings:
            try:
                self._starts.append(tuple(self._servers(recording)))
            except _NoProfileError as error:
                self._problem = self._problem or str(error)
            except RedlineError as error:
                self._problem = self._problem or error.message

    def _servers(self, recording: DuetRecording) -> Iterator[_Server]:
        """Yield the servers of a start. Raises _NoProfileError and RedlineError."""
        if recording.failure is not None:
            raise _NoProfileError(recording.failure.message)
        if wrong := next((facts.problem for facts in recording.profiles if facts.problem), ""):
            raise _NoProfileError(wrong)
        before, during = _divided(recording)
        if not during:
            raise _NoProfileError("the load was over before all servers were sampled")
        for target, facts in enumerate(recording.profiles):
            cpu_ns = _cpu_ns(during, target)
            if cpu_ns is None or facts.stacks is None:
                raise _NoProfileError("the CPU time of the sampled servers is not known")
            functions, libraries, owners = Counter[str](), Counter[str](), dict[str, Counter[str]]()
            paths, known = Counter[str](), self._of_jvms if facts.profiler.startswith(_OF_JVMS) else self._libraries
            for stack, weight in normal(self._read(facts.stacks)).weights.items():
                frames = tuple(map(_without_place, stack.frames)) or (_NO_FRAME,)
                function, library = frames[-1], known.of_stack(stack)
                functions[function] += weight
                paths[_BELOW.join(frames)] += weight
                libraries[library] += weight
                owners.setdefault(function, Counter())[library] += weight
            if not functions.total():
                raise _NoProfileError("nothing was sampled during the measurement")
            yield _Server(
                SampledServer(cpu_ns, functions),
                SampledServer(cpu_ns, paths),
                SampledServer(cpu_ns, libraries),
                {function: counted.most_common(1)[0][0] for function, counted in owners.items()},
                _cpu_ns(before, target),
            )

    def report(self, target: int, whole: Estimate | None, counters: tuple[CounterChange, ...]) -> WhyReport:
        """The report of the server at this place."""
        starts = [start for start in self._starts if len(start) > target + 1]
        uncounted = next(
            (facts.uncounted for made in self.recordings for facts in made.profiles if facts.uncounted), ""
        )
        cell_id, baseline_id = self._cell_ids[target], self._cell_ids[0]
        if len(starts) < FEWEST_STARTS:
            problem = self._why_not(len(starts))
            return WhyReport(
                cell_id=cell_id,
                baseline_id=baseline_id,
                starts=len(starts),
                whole_ns=whole,
                counters=counters,
                uncounted=uncounted,
                problem=problem,
            )
        compared = [_start([server.functions for server in start], target) for start in starts]
        paths = [pair for start in starts for server in start for pair in server.stacks.samples.items()]
        touched = touched_among({frame for path, _ in paths for frame in path.split(_BELOW)}, self._touched or ())
        functions = account(compared, touched)
        libraries = account([_start([server.libraries for server in start], target) for start in starts])
        owners = {name: owner for start in starts for server in start for name, owner in server.owners.items()}
        callers = dict[str, Counter[str]]()
        for path, weight in paths:
            *above, function = path.split(_BELOW)
            caller = next((frame for frame in reversed(above) if frame in touched), "")
            callers.setdefault(function, Counter())[caller] += weight
        used = [start[place].functions for start in starts for place in (0, target, -1)]
        return WhyReport(
            cell_id=cell_id,
            baseline_id=baseline_id,
            starts=len(starts),
            lost=len(self.recordings) - len(starts),
            lost_because=self._problem,
            whole_ns=whole,
            profiler=self._profiler,
            samples=sum(sum(server.samples.values()) for server in used),
            functions=tuple(
                self._cost_in_range(part, owners[part.name], callers[part.name]) for part in functions.parts
            ),
            tested=functions.tested,
            touched=self._touched,
            touched_tested=functions.expected,
            others_ns=_estimate(functions.others),
            rest_ns=None if whole is None else _rest(whole, functions.whole),
            libraries=tuple(_cost(part) for part in libraries.parts),
            frames=frame_changes([_start([server.stacks for server in start], target) for start in starts]),
            counters=counters,
            uncounted=uncounted,
            overhead=_overhead(starts),
        )

    def _cost_in_range(self, part: PartCost, library: str, callers: Counter[str]) -> CodeCost:
        """The cost of a function, and whether the range of commits touches it, or what calls it: by its samples."""
        if self._touched is None:
            return _cost(part, library)
        caller, samples = callers.most_common(1)[0]
        below = caller if samples > callers.total() / 2 and not part.expected else ""
        return _cost(part, library, touched=part.expected, below=below)

    def _why_not(self, starts: int) -> str:
        slugs = [self._plan.cells[cell_id].variant.slug for cell_id in self._cell_ids]
        for skipped in self._plan.unprofiled:
            if skipped.slug in [f"{slug}: cpu" for slug in slugs]:
                return f"{skipped.slug.removesuffix(': cpu')} cannot be sampled: {skipped.reason}"
        if self._problem:
            return self._problem
        return f"{starts} sampled starts, and {FEWEST_STARTS} are the fewest that tell a difference from chance"


def _without_place(frame: str) -> str:
    """A function of JavaScript without its folder, line and column, which differ between two copies of a source."""
    return _PLACE.sub(r"\1", frame)


class _NoProfileError(Exception):
    """A sampled start that cannot be used; the text says why."""


def _start(servers: Sequence[SampledServer], target: int) -> SampledStart:
    return SampledStart((servers[0], servers[-1]), servers[target])


def _divided(recording: DuetRecording) -> tuple[list[DuetBlock], list[DuetBlock]]:
    """The measured blocks before any server was sampled, and those while all were. Raises _NoProfileError."""
    traffic, times = recording.traffic, [(facts.started, facts.stopped) for facts in recording.profiles]
    if traffic is None or not times:
        raise _NoProfileError("the servers were not sampled")
    begins = [started for started, _ in times if started is not None]
    ends = [stopped for _, stopped in times if stopped is not None]
    if len(begins) < len(times) or len(ends) < len(times):
        raise _NoProfileError("the profiler did not sample to the end")
    epoch, first = traffic.epoch_unix_ns, min(started.start for started in begins)
    last, end = max(started.end for started in begins), min(stopped.start for stopped in ends)
    blocks = [
        (epoch + block.slices[0].start_ns, epoch + block.slices[-1].end_ns, block)
        for block in measured(traffic)
        if block.slices
    ]
    before = [block for _, ended, block in blocks if ended <= first]
    return before, [block for began, ended, block in blocks if began >= last and ended <= end]


def _cpu_ns(blocks: Iterable[DuetBlock], target: int) -> float | None:
    """The CPU time per request of a server in its slices; None if it is not known."""
    slices = [slice_ for block in blocks for slice_ in block.slices if slice_.target == target]
    used = [slice_.cpu_ns[target] if slice_.cpu_ns else None for slice_ in slices]
    known, completed = [ns for ns in used if ns is not None], sum(slice_.completed for slice_ in slices)
    return sum(known) / completed if completed and len(known) == len(used) and sum(known) else None


def _cost(part: PartCost, library: str = "", *, touched: bool | None = None, below: str = "") -> CodeCost:
    return CodeCost(
        name=part.name,
        library=library,
        before_ns=part.before_ns,
        after_ns=part.after_ns,
        difference_ns=_estimate(part.difference),
        p_adjusted=part.p_adjusted,
        touched=touched,
        below=below,
    )


def _estimate(difference: MeanDifference) -> Estimate:
    low, high = difference.value - difference.half_width, difference.value + difference.half_width
    return Estimate(value=difference.value, low=low, high=high, unit="ns", n=difference.freedom + 1, method=_METHOD)


def _rest(whole: Estimate, accounted: MeanDifference) -> Estimate:
    """The whole without what the sampled starts account for; both are independent."""
    value = whole.value - accounted.value
    low = high = None
    if whole.low is not None and whole.high is not None:
        low = value - math.hypot(whole.value - whole.low, accounted.half_width)
        high = value + math.hypot(whole.high - whole.value, accounted.half_width)
    starts = min(whole.n, accounted.freedom + 1)
    return Estimate(value=value, low=low, high=high, unit="ns", n=starts, method=_METHOD_REST)


def _overhead(starts: Sequence[Sequence[_Server]]) -> Estimate | None:
    """CPU time per request of all servers while sampled over that before; None if it is not known of a start."""
    logs = list[float]()
    for start in starts:
        pairs = [(server.functions.cpu_ns, server.unsampled_ns) for server in start]
        ratios = [math.log(sampled / unsampled) for sampled, unsampled in pairs if unsampled]
        if len(ratios) < len(start):
            return None
        logs.append(float(np.mean(ratios)))
    value, error = float(np.mean(logs)), float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    half = t_quantile((1 + CONFIDENCE) / 2, len(logs) - 1) * error
    return Estimate(
        value=math.exp(value),
        low=math.exp(value - half),
        high=math.exp(value + half),
        unit="ratio",
        n=len(logs),
        method=_METHOD,
    )
