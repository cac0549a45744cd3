"""Report profiled trials: CPU by library, functions, threads, and differences."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from redline.errors import RedlineError
from redline.model import (
    CellReport,
    Comparison,
    Estimate,
    FlameGraph,
    FrameShare,
    HeatMap,
    HeatRow,
    Library,
    LibraryShare,
    Metric,
    Points,
    ProfileChange,
    ProfileFacts,
    ProfileKind,
    ProfileReport,
    Recording,
    Slice,
    Stacks,
    Subject,
    ThreadShare,
    Traffic,
)
from redline.model.profile import LibraryRuntime
from redline.profiles.libraries import Libraries
from redline.profiles.overhead import overhead
from redline.stats import holm_adjust
from redline.stats.shares import METHOD_NONE, CostChange, MeasuredShare, TrialWeights, error_of, share
from redline.stats.stacks import cut_weight, flame_graph, normal, self_weights, thread_weights, total_weights

LEAST = 0.001
"""Trees leave out frames with a smaller share."""
_MOST_NODES, _FEWEST_NODES, _ALL_NODES = 4_000, 800, 40_000
"""The most frames in a tree, and in all trees of a report: a page can carry them."""
_FRAMES = 25
_CHANGED_FRAMES = 25
_COLUMNS = 120
_ROWS = 12
_SLOW = 0.1
"""The share of the engine's intervals, those with the highest p99, that are slow moments."""
_FEWEST_INTERVALS = 10
_NOTHING = Counter[Slice | None]()
_Of = Literal["own", "anywhere", "frames"]
_Key = tuple[str, ProfileKind, Subject]
"""A cell's id, a kind, and the subject of the profile."""
_OF_JVMS = "async-profiler"
_HIGHER = 1.2
"""The least ratio of the highest to the lowest rate for a comparison of the two."""
_METHOD_QUOTIENT = "from the intervals of both, on a log scale (MOVER)"


def profile_reports(
    recordings: Iterable[Recording],
    read: Callable[[str], Stacks],
    libraries: Sequence[Library],
    cells: Sequence[CellReport],
    comparisons: Iterable[Comparison],
) -> tuple[ProfileReport, ...]:
    """A report for every cell and kind of profile, in the order of the cells.

    `recordings` are those of profiled trials; `read` returns stacks by file name, and may raise RedlineError.
    `libraries` is the table of libraries. `comparisons` have the ratios of CPU time to the baselines'.
    """
    tables: dict[LibraryRuntime | None, Libraries] = {
        runtime: Libraries(libraries, runtime) for runtime in (None, "jvm", "engine")
    }
    groups: dict[_Key, list[Recording]] = {}
    for recording in recordings:
        if recording.profile is not None:
            kind, subject = recording.profile.kind, recording.profile.subject
            groups.setdefault((recording.cell_id, kind, subject), []).append(recording)
    against: dict[str, Comparison] = {}
    for comparison in sorted(comparisons, key=lambda comparison: comparison.metric is not Metric.CPU_PER_REQUEST):
        against.setdefault(comparison.cell_id, comparison)
    places = {cell.cell_id: place for place, cell in enumerate(cells)}
    keys = sorted((key for key in groups if key[0] in places), key=lambda key: places[key[0]])
    made = {key: _Profile(tuple(groups[key]), read, tables[_runtime(groups[key])]) for key in keys}
    nodes = max(_FEWEST_NODES, min(_MOST_NODES, _ALL_NODES // max(1, len(made))))
    by_rate = _by_rate(made, {cell.cell_id: cell for cell in cells})
    profiles = []
    for key, profile in made.items():
        compared = against.get(key[0])
        other = made.get((compared.baseline_id, *key[1:])) if compared else None
        change = None
        if compared and other and not (profile.problem or other.problem):
            ratio = compared.ratio if compared.metric is Metric.CPU_PER_REQUEST else None
            change = profile.change(other, compared.baseline_id, ratio)
        profiles.append(_report(cells[places[key[0]]], profile, change, by_rate.get(key), nodes))
    return tuple(profiles)


def _runtime(recordings: Iterable[Recording]) -> LibraryRuntime | None:
    """The runtime of the profiled program, if it matters: async-profiler samples only JVMs."""
    for recording in recordings:
        if recording.profile is not None and recording.profile.subject == "engine":
            return "engine"
        if recording.profile is not None and recording.profile.subject == "server":
            said = recording.runtime.runtime if recording.runtime else ""
            if said == "jvm" or recording.profile.profiler.startswith(_OF_JVMS):
                return "jvm"
    return None


def _by_rate(made: "Mapping[_Key, _Profile]", cells: Mapping[str, CellReport]) -> dict["_Key", ProfileChange]:
    """The change from a server's lowest profiled rate to the highest, by the key of the profile at the highest."""
    groups: dict[tuple[str, ...], list[tuple[float, _Key]]] = {}
    for key, profile in made.items():
        cell = cells[key[0]]
        rate = cell.known.get(Metric.THROUGHPUT)
        if rate is not None and not profile.problem:
            groups.setdefault((cell.server, cell.route, cell.scenario, *key[1:]), []).append((rate.value, key))
    changes = {}
    for members in groups.values():
        (low, lowest), (high, highest) = min(members), max(members)
        if high >= _HIGHER * low:
            own, other = (cells[key[0]].known.get(Metric.CPU_PER_REQUEST) for key in (highest, lowest))
            ratio = _quotient(own, other) if own and other and min(own.value, other.value) > 0 else None
            changes[highest] = made[highest].change(made[lowest], lowest[0], ratio)
    return changes


def _quotient(estimate: Estimate, other: Estimate) -> Estimate:
    """The quotient of estimates from different trials.

    The interval follows from theirs (MOVER: Zou and Donner, 2008).
    """
    value, own_ends, other_ends = math.log(estimate.value / other.value), estimate.log_interval, other.log_interval
    low = high = None
    if own_ends and other_ends:
        (own_low, own_high), (other_low, other_high) = own_ends, other_ends
        centre, other_centre = math.log(estimate.value), math.log(other.value)
        low = math.exp(value - math.hypot(centre - own_low, other_high - other_centre))
        high = math.exp(value + math.hypot(own_high - centre, other_centre - other_low))
    method = _METHOD_QUOTIENT if low else METHOD_NONE
    return Estimate(value=math.exp(value), low=low, high=high, unit="ratio", n=min(estimate.n, other.n), method=method)


@dataclass(frozen=True)
class _TrialStacks:
    """The normalised stacks of a trial within its measurement, with its slices in order of time."""

    stacks: Stacks
    slices: tuple[Slice | None, ...]
    slow: frozenset[Slice]
    traffic: Traffic | None

    @classmethod
    def of(cls, recording: Recording, stacks: Stacks) -> "_TrialStacks":
        """The stacks of a trial, without samples from outside the measurement if their times are known."""
        traffic, slices = recording.traffic, stacks.slices
        if traffic is not None and slices:
            start, end = traffic.window_unix_ns
            slices = tuple(slice_ for slice_ in slices if start <= (slice_.start + slice_.end) / 2 < end)
            weights = {stack: weight for stack, weight in stacks.weights.items() if stack.slice in set(slices)}
            stacks = Stacks(weights, slices)
        slow = frozenset(_slow(slices, traffic)) if traffic else frozenset[Slice]()
        of_classes = recording.profile is not None and recording.profile.kind in ("alloc", "lock")
        return cls(normal(stacks, of_classes=of_classes), slices or (None,), slow, traffic)

    def part(
        self, weights: Mapping[Slice | None, int], whole: Mapping[Slice | None, int], *, of: bool | None
    ) -> TrialWeights:
        """The weights by slice: all (`of` None), those of slow moments (True), or the others (False)."""
        places = [slice_ for slice_ in self.slices if of is None or (slice_ in self.slow) is of]
        return TrialWeights(
            np.array([weights.get(place, 0) for place in places], dtype=float),
            np.array([whole.get(place, 0) for place in places], dtype=float),
        )


@dataclass(frozen=True)
class _Profile:
    """The trials of a cell and kind of profile."""

    recordings: tuple[Recording, ...]
    read: Callable[[str], Stacks]
    libraries: Libraries

    @property
    def facts(self) -> ProfileFacts:
        return next(recording.profile for recording in self.recordings if recording.profile)

    @cached_property
    def _read(self) -> tuple[tuple[_TrialStacks, ...], str]:
        trials, problem = list[_TrialStacks](), ""
        for recording in self.recordings:
            name = recording.profile.stacks if recording.profile else None
            failed = recording.failure.message if recording.failure else ""
            failed = failed or (recording.profile.problem if recording.profile else "")
            if name is None or failed:
                problem = problem or failed or "the profiler left no stacks"
                continue
            try:
                trials.append(_TrialStacks.of(recording, self.read(name)))
            except RedlineError as error:
                problem = problem or error.message
        if not sum(trial.stacks.total for trial in trials):
            return (), problem or "nothing was sampled during the measurement"
        return tuple(trials), ""

    @property
    def trials(self) -> tuple[_TrialStacks, ...]:
        return self._read[0]

    @property
    def problem(self) -> str:
        return self._read[1]

    @cached_property
    def stacks(self) -> Stacks:
        return Stacks.merged(trial.stacks for trial in self.trials)

    @cached_property
    def sums(self) -> tuple["_WeightSums", ...]:
        """The sums of weights of every trial."""
        return tuple(_WeightSums.of(trial.stacks, self.libraries) for trial in self.trials)

    def share(self, name: str, of: _Of = "own", *, slow: bool | None = None) -> MeasuredShare:
        """The share of a library or a function; see `_WeightSums` and `_TrialStacks.part`."""
        parts = [
            trial.part(getattr(sums, of).get(name, _NOTHING), sums.whole, of=slow)
            for trial, sums in zip(self.trials, self.sums, strict=True)
        ]
        weight = sum(float(part.whole.sum()) for part in parts)
        samples = self.facts.samples if self.facts.unit != "samples" else round(weight)
        return share(parts, samples)

    def names(self, of: _Of = "anywhere") -> tuple[str, ...]:
        """All names with any share."""
        return tuple(dict.fromkeys(name for sums in self.sums for name in getattr(sums, of)))

    def change(self, other: "_Profile", cell_id: str, cpu: Estimate | None) -> ProfileChange:
        """The change against the profile of a cell.

        With the ratio of CPU times, it is in parts of that cell's CPU per request. If the ratio is not known, shares
        are compared instead.
        """
        ratio = cpu if self.facts.kind == "cpu" and self.facts.subject == "server" else None
        error = error_of(ratio) if ratio else None

        def both(of: _Of) -> Iterator[tuple[str, MeasuredShare, MeasuredShare]]:
            for name in dict.fromkeys((*self.names(of), *other.names(of))):
                yield name, self.share(name, of), other.share(name, of)

        shares = {name: own.minus(base) for name, own, base in both("own")}
        if ratio is None or error is None or ratio.says_nothing:
            return _change(cell_id, None, shares, {name: own.minus(base) for name, own, base in both("frames")})
        points, frames = (
            {name: CostChange(own, base, ratio.value, error) for name, own, base in both(of)}
            for of in ("own", "frames")
        )
        return _change(cell_id, ratio, points, frames, shares)

    def slow(self) -> ProfileChange | None:
        """The change from the rest of the profile to its slow moments."""
        if not any(trial.slow for trial in self.trials):
            return None

        def points(of: _Of) -> dict[str, MeasuredShare]:
            return {
                name: self.share(name, of, slow=True).minus(self.share(name, of, slow=False)) for name in self.names(of)
            }

        libraries = points("own")
        if any(share.method == METHOD_NONE for share in libraries.values()):
            return None
        return _change("", None, libraries, points("frames"))


@dataclass(frozen=True)
class _WeightSums:
    """Weights by slice: self and total weight of libraries, self weight of frames, and the weight of all stacks."""

    own: dict[str, Counter[Slice | None]]
    anywhere: dict[str, Counter[Slice | None]]
    frames: dict[str, Counter[Slice | None]]
    whole: Counter[Slice | None]

    @classmethod
    def of(cls, stacks: Stacks, libraries: Libraries) -> "_WeightSums":
        """The sums over the stacks of a trial, without frames of less than LEAST of the whole."""
        total, heavy = stacks.total, self_weights(stacks)
        made = cls({}, {}, {}, Counter())
        for stack, weight in stacks.weights.items():
            made.whole[stack.slice] += weight
            made.own.setdefault(libraries.of_stack(stack), Counter())[stack.slice] += weight
            if stack.frames and heavy[stack.frames[-1]] >= LEAST * total:
                made.frames.setdefault(stack.frames[-1], Counter())[stack.slice] += weight
            for name in libraries.names_on(stack):
                made.anywhere.setdefault(name, Counter())[stack.slice] += weight
        return made


def _report(
    cell: CellReport, profile: _Profile, change: ProfileChange | None, by_rate: ProfileChange | None, nodes: int
) -> ProfileReport:
    facts = profile.facts
    cpu = cell.known.get(Metric.CPU_PER_REQUEST)
    names = sorted(
        profile.names(), key=lambda name: (-profile.share(name).value, -profile.share(name, "anywhere").value, name)
    )
    shown = [name for name in names if profile.share(name, "anywhere").value >= LEAST]
    profiles = [recording.profile for recording in profile.recordings if recording.profile]
    return ProfileReport(
        cell_id=cell.cell_id,
        slug=cell.slug,
        server=cell.server,
        scenario=cell.scenario,
        load=cell.load,
        kind=facts.kind,
        subject=facts.subject,
        profiler=facts.profiler,
        event=facts.event,
        interval=facts.interval,
        unit=facts.unit,
        samples=sum(facts.samples for facts in profiles),
        lost=sum(facts.lost for facts in profiles),
        positions=tuple(recording.position for recording in profile.recordings),
        cpu_per_request_ns=cpu.value if cpu and facts.subject == "server" and facts.kind == "cpu" else None,
        overhead=overhead(profile.recordings),
        libraries=tuple(
            LibraryShare(
                name=name, share=profile.share(name).estimate(), total=profile.share(name, "anywhere").estimate()
            )
            for name in shown
        ),
        frames=_frames(profile.stacks, profile.libraries),
        threads=_threads(profile.stacks),
        change=change,
        by_rate=by_rate,
        slow=profile.slow(),
        graph=_graph(profile, nodes),
        heat=_heat(profile),
        native=next((facts.native for facts in profiles if facts.native), ()),
        files=tuple(file for facts in profiles for file in facts.files),
        cut=cut_weight(profile.stacks) / max(profile.stacks.total, 1),
        deepest=max((facts.deepest for facts in profiles), default=0),
        unknown=profile.libraries.why_unknown(profile.stacks),
        problem=profile.problem,
    )


_Changes = Mapping[str, MeasuredShare | CostChange]


def _change(
    against: str, ratio: Estimate | None, libraries: _Changes, frames: _Changes, shares: _Changes | None = None
) -> ProfileChange:
    """A change whose libraries, including `shares` if compared as well, are a family, and its functions another."""
    ps = [change.p for changes in (libraries, shares or {}) for change in changes.values()]
    adjusted = _adjusted(ps)
    return ProfileChange(
        against=against,
        ratio=ratio,
        libraries=_points(libraries, adjusted[: len(libraries)]),
        frames=_points(frames, _adjusted([change.p for change in frames.values()]))[:_CHANGED_FRAMES],
        shares=_points(shares or {}, adjusted[len(libraries) :]),
    )


def _adjusted(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """P-values adjusted by Holm's method; unknown p-values count too."""
    adjusted = holm_adjust([1.0 if p is None else p for p in ps])
    return tuple(None if p is None else value for p, value in zip(ps, adjusted, strict=True))


def _points(changes: _Changes, adjusted: Sequence[float | None]) -> tuple[Points, ...]:
    """The changes worth reporting, the largest first."""
    points = [
        Points(name=name, points=_estimate(change), p_adjusted=p)
        for (name, change), p in zip(changes.items(), adjusted, strict=True)
        if abs(change.value) >= LEAST
    ]
    return tuple(sorted(points, key=lambda points: (-abs(points.points.value), points.name)))


def _estimate(change: MeasuredShare | CostChange) -> Estimate:
    return change.estimate() if isinstance(change, CostChange) else change.estimate(-math.inf, math.inf)


def _frames(stacks: Stacks, libraries: Libraries) -> tuple[FrameShare, ...]:
    own, anywhere, whole = self_weights(stacks), total_weights(stacks), stacks.total
    owners: dict[str, Counter[str]] = {}
    for stack, weight in stacks.weights.items():
        if stack.frames:
            owners.setdefault(stack.frames[-1], Counter())[libraries.of_stack(stack)] += weight
    return tuple(
        FrameShare(
            frame=frame,
            library=owners[frame].most_common(1)[0][0],
            self_share=weight / whole,
            total_share=anywhere[frame] / whole,
        )
        for frame, weight in sorted(own.items(), key=lambda item: (-item[1], item[0]))[:_FRAMES]
        if weight >= LEAST * whole
    )


def _threads(stacks: Stacks) -> tuple[ThreadShare, ...]:
    return tuple(
        ThreadShare(name=name, threads=threads, share=weight / stacks.total)
        for name, (threads, weight) in thread_weights(stacks).items()
        if name and weight >= LEAST * stacks.total
    )


def _graph(profile: _Profile, nodes: int) -> FlameGraph:
    slow = frozenset[Slice]().union(*(trial.slow for trial in profile.trials))

    def library_of(frame: str, depth: int) -> str:
        if depth == 0:
            return profile.libraries.of_thread(frame)
        library = profile.libraries.of_frame(frame)
        return library.name if library else ""

    return flame_graph(profile.stacks, library_of, least=LEAST, most=nodes, slow=slow)


def _slow(slices: Sequence[Slice], traffic: Traffic) -> Iterable[Slice]:
    """The slices whose middles lie in the profiled intervals with the highest p99."""
    if not slices:
        return
    measured = [
        interval
        for interval in traffic.intervals
        if interval.phase == "measure"
        and interval.response.count
        and slices[0].start <= traffic.epoch_unix_ns + (interval.start_ns + interval.end_ns) / 2 < slices[-1].end
    ]
    if len(measured) < _FEWEST_INTERVALS:
        return
    ranked = sorted(measured, key=lambda interval: interval.response.quantile_ns(0.99), reverse=True)
    slow = [(interval.start_ns, interval.end_ns) for interval in ranked[: max(1, round(_SLOW * len(ranked)))]]
    for slice_ in slices:
        middle = (slice_.start + slice_.end) / 2 - traffic.epoch_unix_ns
        if any(start <= middle < end for start, end in slow):
            yield slice_


def _heat(profile: _Profile) -> HeatMap | None:
    """The heaviest libraries in the first trial with samples, with all others together; None without samples."""
    sampled = (
        (trial, sums)
        for trial, sums in zip(profile.trials, profile.sums, strict=True)
        if trial.slices != (None,) and sums.whole.total()
    )
    trial, sums = next(sampled, (None, None))
    if trial is None or sums is None:
        return None
    own, whole = sums.own, sums.whole
    slices = [slice_ for slice_ in trial.slices if slice_ is not None]
    width = math.ceil(len(slices) / _COLUMNS)
    columns = [slices[at : at + width] for at in range(0, len(slices), width)]
    ranked = sorted(own, key=lambda name: (-own[name].total(), name))
    rows = {name: own[name] for name in ranked[:_ROWS]}
    if ranked[_ROWS:]:
        rows["all others"] = sum((own[name] for name in ranked[_ROWS:]), Counter())
    return HeatMap(
        column_s=(columns[0][-1].end - columns[0][0].start) / 1e9,
        totals=tuple(sum(whole[slice_] for slice_ in column) for column in columns),
        p99_ns=tuple(_p99(column, trial.traffic) for column in columns),
        slow=tuple(any(slice_ in trial.slow for slice_ in column) for column in columns),
        rows=tuple(
            HeatRow(name=name, weights=tuple(sum(weights[slice_] for slice_ in column) for column in columns))
            for name, weights in rows.items()
        ),
    )


def _p99(column: Sequence[Slice], traffic: Traffic | None) -> int | None:
    if traffic is None:
        return None
    start, end = column[0].start - traffic.epoch_unix_ns, column[-1].end - traffic.epoch_unix_ns
    touched = [
        interval.response.quantile_ns(0.99)
        for interval in traffic.intervals
        if interval.phase == "measure"
        and interval.response.count
        and interval.start_ns < end
        and interval.end_ns > start
    ]
    return max(touched, default=None)
