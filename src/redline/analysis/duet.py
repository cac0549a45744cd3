"""Compare a server with its baseline over fresh starts of duets, with the reasons for doubt. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from redline.analysis.results import too_few_for
from redline.analysis.slices import OF_SLICE, slices_in, slices_of
from redline.findings import judge_duet
from redline.findings.duet import SeenDuet
from redline.findings.duet_machine import is_disturbed
from redline.findings.inherited import Inherited, inherited
from redline.findings.served import Counts, Growths, at_equal_counts, growths, in_all, served
from redline.findings.starts import (
    BASELINE,
    COMPARED,
    block_ns,
    counted,
    failing,
    is_whole,
    measured,
    traffic_of,
    why_lost,
)
from redline.findings.two_modes import gap_text, gaps_of
from redline.findings.warm_duet import Course, are_warm, course, fewest_blocks, still_to_come
from redline.model import (
    Cell,
    Comparison,
    DuetBlock,
    DuetRecording,
    Finding,
    Histogram,
    Metric,
    Run,
    Verdict,
)
from redline.model.duet import TargetTraffic
from redline.model.estimate import FEWEST_TRIALS, DuetComparison
from redline.model.hdr import PRECISION
from redline.stats import QUANTILE_OF, LogRatios, decide, enough_beyond
from redline.stats.duets import Floats, LogRatio, Slices, StartRatio, over_starts, shares_around
from redline.stats.late_reads import ends_ns
from redline.stats.trials import MESSAGE_QUANTILES, enough, message_times
from redline.suite.budget import advised, longest_of_conversations_ns
from redline.wording import part


def _quantile(metric: Metric) -> float:
    return MESSAGE_QUANTILES[metric][1] if metric in MESSAGE_QUANTILES else QUANTILE_OF[metric]


def _resolution(metric: Metric, contrast: Floats) -> float:
    """The relative step of a metric's contrast: a percentile lies anywhere in its histogram's slot."""
    return 0.0 if metric in OF_SLICE else _resolution_of_quantiles(contrast)


def _resolution_of_quantiles(contrast: Floats) -> float:
    return PRECISION * float(np.linalg.norm(contrast))


def _times(target: TargetTraffic, metric: Metric) -> Histogram | None:
    """The times of which the metric is a quantile; None if they are not known."""
    return message_times(target.streams, metric) if metric in MESSAGE_QUANTILES else target.response


@dataclass(frozen=True)
class Duet:
    """A server of a duet, compared with the baseline over the measured starts, at least one.

    `names` are those of the baseline and the server. `failed` says why other starts are lost. `saturates`: the
    servers set the rate. `detects`: the warm-up should end when the servers are warm. `cores` is the number of cores
    per server; 0 if not known. `keeps`: the load keeps its connections for all requests. `writes` names the requests
    that may change the servers. `inherited`: requests of other duets in the same starts have changed them before.
    """

    starts: tuple[DuetRecording, ...]
    names: tuple[str, str] = ("A", "B")
    target: int = COMPARED
    failed: tuple[str, ...] = ()
    saturates: bool = True
    detects: bool = False
    cores: int = 0
    keeps: bool = True
    insecure: bool = False
    writes: tuple[str, ...] = ()
    inherited: Inherited | None = None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that it compares well. The rate of an unsaturated load says nothing about the server."""
        return (Metric.CPU_PER_REQUEST, Metric.THROUGHPUT) if self.saturates else (Metric.CPU_PER_REQUEST,)

    def ratio(self, metric: Metric) -> LogRatio | None:
        """The ratio of the server to both copies of the baseline; None if no start has the metric.

        If servers were not warm, its interval allows for how far the ratio may yet move, and that of a percentile for
        how far other work may have moved it. If they get slower as they serve, it is the ratio after equal numbers of
        requests, and the interval allows for half of what that changes.
        """
        if metric not in self._ratios:
            self._ratios[metric] = self._ratio(metric)
        return self._ratios[metric]

    @cached_property
    def _ratios(self) -> dict[Metric, LogRatio | None]:
        return {}

    def _ratio(self, metric: Metric) -> LogRatio | None:
        ratio = self._contrast(metric, self._against_baseline)
        if ratio is None or metric in OF_SLICE:
            return ratio and replace(ratio, bias=self._to_come + self._by_counts(metric))
        targets = [traffic_of(start).targets[place] for start in self.counting for place in (BASELINE, -1)]
        moved = self._moved([_times(target, metric) or Histogram() for target in targets], _quantile(metric))
        of_messages = metric in MESSAGE_QUANTILES
        to_come = self._to_come_of_conversations + self._read_late(metric) if of_messages else self._to_come
        return replace(ratio, bias=to_come + self._by_counts(metric) + moved)

    def _read_late(self, metric: Metric) -> float:
        """How far messages that were read late may have moved the ratio of their times, as a logarithm; or infinity."""
        seen = [target.streams for start in self.counting for target in traffic_of(start).targets]
        ends = [ends_ns(streams, *MESSAGE_QUANTILES[metric]) for streams in seen if streams]
        apart = (math.log(high / low) if low else math.inf for low, high in ends if high > low)
        return 2 * max(apart, default=0.0)

    @cached_property
    def _gaps(self) -> dict[Metric, str]:
        """Why percentiles are not compared that lie in a gap of a server's response times."""
        texts: dict[Metric, str] = {}
        for name, at in zip(self.names, (BASELINE, self.target), strict=True):
            made = Histogram.merged(traffic_of(start).targets[at].response for start in self.counting)
            texts |= {metric: f"{name}: {gap_text(metric, gap)}" for metric, gap in gaps_of(made).items()}
        return texts

    def unstable(self, metric: Metric) -> str:
        """`A: No stable p90: …`, if a percentile of either server lies in a gap; otherwise empty."""
        return self._gaps.get(metric, "") if metric in QUANTILE_OF else ""

    def tells(self, metric: Metric) -> bool:
        """Whether it has an interval for a percentile: enough requests, and starts that tell it from chance."""
        if metric not in self._told:
            ratio = None if self.too_few(metric) or self.unstable(metric) else self.ratio(metric)
            self._told[metric] = ratio is not None and ratio.contrast.ratio.low is not None
        return self._told[metric]

    @cached_property
    def _told(self) -> dict[Metric, bool]:
        return {}

    def of_request(self, at: int, q: float) -> LogRatio | None:
        """The ratio of a request's response time at a quantile (0 to 1) to both copies of the baseline.

        `at` is the request's place in its scenario. None if fewer than three starts have enough of its requests.
        """
        contrast, ratios, of_baseline = self._against_baseline, list[StartRatio](), list[Histogram]()
        for start, out in zip(self.starts, self._left_out, strict=True):
            requests = [target.requests[at] for target in traffic_of(start).targets if at < len(target.requests)]
            made = [request.response for request in requests]
            times = [own.quantile_ns(q) for own in made if enough_beyond(own.count, q)]
            if not out and len(times) == self._servers and all(times):
                ratios.append(StartRatio(float(contrast @ np.log(times)), None))
                of_baseline += [made[BASELINE], made[-1]]
        if len(ratios) < FEWEST_TRIALS:
            return None
        ratio = over_starts(ratios, resolution=_resolution_of_quantiles(contrast))
        return replace(ratio, bias=self._to_come + self._moved(of_baseline, q))

    def _moved(self, of_baseline: Sequence[Histogram], q: float) -> float:
        """How far other work may have moved a percentile, as a logarithm; 0 where it took little of the machine."""
        times = Histogram.merged(of_baseline)
        if not self._is_disturbed or not times.count:
            return 0.0
        slices = min(sum(1 for start in self.counting for _ in slices_of(start, at)) for at in range(self._servers))
        low, high = shares_around(q, slices)
        least, usual, most = (math.log(max(time, 1)) for time in times.quantiles_ns([low, q, high]))
        return max(most - usual, usual - least)

    @cached_property
    def _is_disturbed(self) -> bool:
        return is_disturbed(self.counting)

    def why_unknown(self, metric: Metric) -> str:
        """Why no start has a ratio in a metric."""
        silent = [
            name
            for name, at in zip(self.names, (BASELINE, self.target), strict=True)
            if not any(slice_.completed for start in self.counting for slice_ in slices_of(start, at))
        ]
        if silent:
            return f"{' and '.join(silent)} gave no right answer in the slices that were measured"
        if any(self._slices.get(metric, ())):
            return "in so few slices with answers the servers cannot be told apart from the order in which they ran"
        if metric not in MESSAGE_QUANTILES:
            return f"{metric} is not known of every server of a start"
        if zero := [self.names[at != BASELINE] for at in (BASELINE, self.target) if self._is_zero(metric, at)]:
            return f"{metric} is zero for {' and '.join(zero)}: its messages came together"
        return self._too_few_messages(metric)

    def _is_zero(self, metric: Metric, at: int) -> bool:
        """Whether the times of a server have this percentile in a start, and it is 0."""
        of_starts = [_times(traffic_of(start).targets[at], metric) for start in self.starts]
        return any(
            made is not None and made.count > 0 and not made.quantile_ns(_quantile(metric)) for made in of_starts
        )

    def _too_few_messages(self, metric: Metric) -> str:
        """Which server had too few of the times of messages, and how long a comparison with enough takes."""
        name, q = MESSAGE_QUANTILES[metric]

        def times(start: DuetRecording, at: int) -> int:
            streams = traffic_of(start).targets[at].streams
            known = streams.times(name) if streams else None
            return known.count if known is not None else 0

        places = (BASELINE, self.target)
        had, at = min((max(times(start, at) for start in self.starts), at) for at in places)
        said = f"a start had {had:,} of {self.names[places.index(at)]}, and {metric} needs {enough(q):,}"
        lasted_ns = max(block_ns(start) * (len(measured(traffic_of(start))) + 1) for start in self.starts)
        needed_ns = lasted_ns * enough(q) // max(had, 1)
        text = advised(lambda budget_ns: longest_of_conversations_ns(budget_ns, 1, once=self.attached) >= needed_ns)
        return f"{said}: give {part('budget', text)}" if had and text else said

    def logs(self, metric: Metric) -> LogRatios:
        """The log ratios of all starts that have the metric."""
        starts = self._of_starts(metric, self._against_baseline)
        logs = np.array([start.value for start in starts if start is not None])
        return LogRatios(logs, _resolution(metric, self._against_baseline))

    @property
    def attached(self) -> bool:
        """Whether all of its servers were already running."""
        return {server for start in self.starts for server in start.servers} == {None}

    def requests(self) -> int:
        """The due requests of the server that got the fewest, over all starts that count."""
        due = np.array([[target.counts.due for target in traffic_of(start).targets] for start in self.counting])
        return int(due.sum(axis=0).min())

    def too_few(self, metric: Metric) -> str:
        """Why there are too few requests for the metric; empty if there are enough."""
        return too_few_for(metric, self.requests())

    @property
    def build(self) -> str:
        """The build of the compared server; empty if there are several, or it is not known."""
        return self._build_at(self.target)

    @property
    def baseline_build(self) -> str:
        """The build of the baseline; empty if there are several, or it is not known."""
        return self._build_at(BASELINE)

    def _build_at(self, place: int) -> str:
        builds = {facts.build for start in self.starts if start.servers and (facts := start.servers[place])}
        return builds.pop() if len(builds) == 1 else ""

    def control(self, metric: Metric) -> LogRatio | None:
        """The ratio of the baseline's two copies; None if no start has the metric of both."""
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
        return self._over_starts(self._of_starts(metric, contrast), _resolution(metric, contrast))

    def _over_starts(self, ratios: Sequence[StartRatio | None], resolution: float = 0.0) -> LogRatio | None:
        of_starts = zip(ratios, self.starts, strict=True)
        known = [(ratio, start) for ratio, start in of_starts if ratio is not None]
        hosts = [start.host for _, start in known if start.host]
        builds = [str(facts.build_number) for _, start in known if start.servers and (facts := start.servers[BASELINE])]
        return over_starts([ratio for ratio, _ in known], hosts, builds, resolution) if known else None

    def _of_starts(self, metric: Metric, contrast: Floats) -> list[StartRatio | None]:
        """The ratio of every start; None for a start that is left out or in which a server has no value.

        A percentile is that of all requests of a start, because a slice has too few.
        """
        if metric in OF_SLICE:
            of_starts = [slices.ratio(contrast) if slices else None for slices in self._slices[metric]]
        else:
            of_targets = [[_times(target, metric) for target in traffic_of(start).targets] for start in self.starts]
            q = _quantile(metric)
            times = [[made.quantile_ns(q) if made else 0 for made in of_start] for of_start in of_targets]
            of_starts = [StartRatio(float(contrast @ np.log(time)), None) if all(time) else None for time in times]
        return [None if out else ratio for ratio, out in zip(of_starts, self._left_out, strict=True)]

    @cached_property
    def _slices(self) -> Mapping[Metric, list[Slices | None]]:
        return {
            metric: [slices_in(metric, start, blocks) for start, blocks in zip(self.even, self._counted, strict=True)]
            for metric in OF_SLICE
        }

    @cached_property
    def _served(self) -> list[Counts]:
        return served(self.starts)

    @cached_property
    def growths(self) -> tuple[Growths, Growths]:
        """How the costs of the baseline and of the server grow with what they have served."""
        places = ((BASELINE, self._servers - 1), (self.target,))
        first, second = (growths(self.starts, self._served, own) for own in places)
        return first, second

    @property
    def _grows(self) -> bool:
        return any(own.any for own in self.growths)

    @cached_property
    def even(self) -> tuple[DuetRecording, ...]:
        """The starts as if the servers had served as many requests in every slice, where that changes their costs."""
        if not self._grows:
            return self.starts
        first, second = self.growths
        of = {BASELINE: first, self._servers - 1: first, self.target: second}
        return tuple(
            at_equal_counts(start, counts, of) for start, counts in zip(self.starts, self._served, strict=True)
        )

    @cached_property
    def _lopsided(self) -> Mapping[Metric, float]:
        """How far what the servers had served moves their ratios, as logarithms; empty where costs do not grow."""
        return {metric: self._moved_by_counts(metric) for metric in (OF_SLICE if self._grows else ())}

    def _by_counts(self, metric: Metric) -> float:
        """How far what the servers had served may still bias a ratio."""
        before = self.inherited.bias if self.inherited is not None and metric in OF_SLICE else 0.0
        return self._lopsided.get(metric, 0.0) / 2 + before

    def _moved_by_counts(self, metric: Metric) -> float:
        numbers = [frozenset(block.index for block in blocks) for blocks in self._counted]
        raw = [
            slices_in(metric, start, [block for block in traffic_of(start).blocks if block.index in counted])
            for start, counted in zip(self.starts, numbers, strict=True)
        ]
        ratios = [slices.ratio(self._against_baseline) if slices else None for slices in raw]
        measured = [None if out else ratio for ratio, out in zip(ratios, self._left_out, strict=True)]
        uneven, even = self._over_starts(measured), self._contrast(metric, self._against_baseline)
        return abs(uneven.value - even.value) if uneven and even else 0.0

    @cached_property
    def _cold(self) -> list[bool]:
        return [self._was_cold(start) for start in self.even]

    @property
    def counting(self) -> list[DuetRecording]:
        """The starts that count for its ratios."""
        return [start for start, out in zip(self.starts, self._left_out, strict=True) if not out]

    @property
    def left_out(self) -> int:
        """The number of starts that do not count because they were cold and enough others were warm."""
        return sum(self._left_out)

    @cached_property
    def _left_out(self) -> list[bool]:
        """Which starts do not count: cold starts, if enough others, and most, were warm.

        This does not select ratios: the rule looks only at how costs move in the warm-up.
        """
        warm = self._cold.count(False)
        return [cold and warm >= FEWEST_TRIALS and 2 * warm > len(self.starts) for cold in self._cold]

    @cached_property
    def _counted(self) -> list[list[DuetBlock]]:
        """The blocks of every start that count for its ratios."""
        return [
            counted(traffic_of(start), after_mix=start.after_mix)
            if self.detects and not cold
            else measured(traffic_of(start))
            for start, cold in zip(self.even, self._cold, strict=True)
        ]

    @property
    def counted_blocks(self) -> list[tuple[DuetRecording, frozenset[int]]]:
        """Every start with the numbers of its blocks that count; none of a start that is left out."""
        starts = zip(self.starts, self._counted, self._left_out, strict=True)
        return [(start, frozenset(() if out else (block.index for block in blocks))) for start, blocks, out in starts]

    def after(self, starts: int) -> "Duet":
        """The comparison as it was after so many starts, at least one; what is known of each start is kept."""
        made = replace(self, starts=self.starts[:starts])
        vars(made).update(
            growths=self.growths,
            even=self.even[:starts],
            _served=self._served[:starts],
            _cold=self._cold[:starts],
            _counted=self._counted[:starts],
            _slices={metric: slices[:starts] for metric, slices in self._slices.items()},
            _course_of=self._course_of[:starts],
            _course_of_conversations=self._course_of_conversations[:starts],
        )
        return made

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The reasons to doubt the comparison."""
        ratios = [ratio for metric in self.metrics if (ratio := self.ratio(metric)) is not None]
        seen = SeenDuet(
            self.even,
            self.names,
            self.target,
            self.failed,
            saturates=self.saturates,
            cores=self.cores,
            keeps=self.keeps,
            insecure=self.insecure,
            contrast=self._against_baseline,
            control=self.control(Metric.CPU_PER_REQUEST),
            ratios=ratios,
            cpu=self._of_starts(Metric.CPU_PER_REQUEST, self._against_baseline),
            unsettled=self.unsettled,
            left_out=self.left_out,
            to_come=self._to_come,
            growths=self.growths,
            served=self._served_in_all,
            writes=self.writes,
            inherited=self.inherited,
        )
        return judge_duet(seen)

    @property
    def _served_in_all(self) -> tuple[float, float]:
        """How many requests the processes of the baseline and of the server had served at the end, on average."""
        of_starts = [in_all(start, counts) for start, counts in zip(self.starts, self._served, strict=True)]
        first, second = (float(np.mean([start[at] for start in of_starts])) for at in (BASELINE, self.target))
        return first, second

    @property
    def unsettled(self) -> str:
        """Why the ratio may yet move, which widens its interval; empty if the servers were warm."""
        cold = sum(course.cold is not None for course in self._courses)
        if self._grows:
            lopsided = any(self._lopsided[metric] > LOPSIDED for metric in self.metrics)
            rising = [name for name, own in zip(self.names, self.growths, strict=True) if own.any]
            gets = f"{' and '.join(rising)} {'gets' if len(rising) == 1 else 'get'} slower with what is served"
            return f"{gets}, and the ratio depends on how much that was" if cold or self._to_come or lopsided else ""
        if self.inherited is not None and self.inherited.bias > max(LOPSIDED, self._to_come):
            return self.inherited.said(self.names)
        if cold:
            return f"in {cold} of {len(self.starts)} starts the servers were not warm"
        return "the servers were not warm: their ratio still moved while it was measured" if self._to_come else ""

    @cached_property
    def _to_come(self) -> float:
        return still_to_come(self._courses)

    @cached_property
    def _to_come_of_conversations(self) -> float:
        return still_to_come(self._counting_of(self._course_of_conversations))

    @cached_property
    def _course_of(self) -> list[Course]:
        """The courses of all starts."""
        return self._courses_by(of_conversations=False)

    @cached_property
    def _course_of_conversations(self) -> list[Course]:
        return self._courses_by(of_conversations=True)

    def _courses_by(self, *, of_conversations: bool) -> list[Course]:
        return [
            course(
                traffic_of(start).blocks,
                len(blocks),
                self._against_baseline,
                are_cold=cold,
                saturates=self.saturates,
                of_conversations=of_conversations,
            )
            for start, blocks, cold in zip(self.even, self._counted, self._cold, strict=True)
        ]

    @property
    def _courses(self) -> list[Course]:
        """The courses of the starts that count."""
        return self._counting_of(self._course_of)

    def _counting_of(self, courses: Sequence[Course]) -> list[Course]:
        return [course for course, out in zip(courses, self._left_out, strict=True) if not out]

    def _was_cold(self, start: DuetRecording) -> bool:
        """Whether the servers of a start were not warm before the measurement.

        A fixed warm-up may end too early; servers then count as cold only if they were not warm later either.
        """
        blocks = traffic_of(start).blocks
        if self.detects:
            blocks = tuple(block for block in blocks if block.phase == "warmup")
        elif len(blocks) < fewest_blocks(blocks):
            return False
        return not are_warm(blocks, apart=start.control_is_apart, saturates=self.saturates, after_mix=start.after_mix)

    def hinges_on_warmth(self, ratio: LogRatio, verdict_of: Callable[[LogRatio], Verdict]) -> bool:
        """Whether cold servers, rather than chance, limit the precision of the ratio."""
        by_chance = replace(ratio, bias=0.0)
        low, high = by_chance.interval
        wide = ratio.bias > (high - low) / 2
        return bool(self.unsettled) and (wide or verdict_of(by_chance) is not verdict_of(ratio))

    @cached_property
    def failing(self) -> str | None:
        """The server that failed too many requests for any comparison, and why; None if neither did."""
        return failing(self.starts, self.names, self.target)


LOPSIDED = 0.005
"""The least change of a logarithm by equal counts that is worth a word."""


def _insecure(cell: Cell) -> bool:
    return cell.variant.tls is not None and cell.variant.tls.insecure


Duets = Mapping[tuple[str, str], Duet]
"""Duets by the ids of a cell and its baseline."""
Failures = Mapping[tuple[str, str], str]
"""Why no start was measured, by the ids of a cell and its baseline."""
NO_FAILURES: Failures = {}


def duets_of(run: Run) -> Duets:
    """The duets of a run with at least one measured start."""
    starts: dict[tuple[str, ...], list[DuetRecording]] = {}
    for recording in run.duets:
        starts.setdefault(recording.cell_ids, []).append(recording)
    plan, cores = run.manifest.plan, len(run.manifest.environment.server_cpus)
    duets, before = {}, inherited(run)
    for cell_ids, made in starts.items():
        whole = tuple(recording for recording in made if is_whole(recording))
        slugs = [plan.cells[cell_id].variant.slug for cell_id in cell_ids[:-1]]
        failed = tuple(why for recording in made if (why := why_lost(recording, slugs)))
        baseline = plan.cells[cell_ids[BASELINE]]
        for target, cell_id in enumerate(cell_ids[COMPARED:-1] if whole else (), COMPARED):
            names = baseline.variant.slug, plan.cells[cell_id].variant.slug
            duets[cell_id, baseline.id] = Duet(
                whole,
                names,
                target,
                failed,
                saturates=baseline.load.saturates,
                detects=baseline.warmup_detect,
                cores=cores,
                keeps=baseline.load.shape.requests_per_connection is None
                and not baseline.scenario.ends_connections(baseline.variant.http),
                insecure=_insecure(baseline) or _insecure(plan.cells[cell_id]),
                writes=baseline.scenario.writes,
                inherited=before.get((cell_id, cell_ids[BASELINE])),
            )
    return duets


def failures_of(run: Run) -> Failures:
    """Why no start of a duet was measured, of the first of its starts: such as a request that was answered wrongly."""
    cells = run.manifest.plan.cells
    measured = {recording.cell_ids for recording in run.duets if is_whole(recording)}
    failures: dict[tuple[str, str], str] = {}
    for recording in run.duets:
        names = [cells[cell_id].variant.slug for cell_id in recording.cell_ids[:-1]]
        if recording.cell_ids not in measured and (why := why_lost(recording, names)):
            for cell_id in recording.cell_ids[COMPARED:-1]:
                failures.setdefault((cell_id, recording.cell_ids[BASELINE]), why)
    return failures


def in_duet(comparison: Comparison, duet: Duet) -> Comparison:
    """The comparison by the duet, beside that by trials alone, if any; unchanged if the duet lacks the metric.

    Disturbances that make trials invalid affect both servers of a duet, which still compares them.
    """
    if duet.failing is not None:
        return comparison.refuse(duet.failing)
    if why := duet.too_few(comparison.metric) or duet.unstable(comparison.metric):
        return comparison.refuse(why)
    ratio, control = duet.ratio(comparison.metric), duet.control(comparison.metric)
    if ratio is None:
        return comparison if comparison.ratio is not None else comparison.refuse(duet.why_unknown(comparison.metric))
    contrast = ratio.contrast

    def judge(ratio: LogRatio) -> Verdict:
        higher = comparison.metric.higher_is_better
        return decide(ratio.contrast.ratio, comparison.threshold, higher_is_better=higher).verdict

    about = DuetComparison(
        starts=ratio.starts,
        left_out=duet.left_out,
        parallel=any(start.places for start in duet.starts),
        attached=duet.attached,
        between_sd=ratio.between_sd,
        blocks_se=ratio.batch_se,
        control=control.contrast.ratio if control else None,
        alone=comparison.ratio,
        of_starts=tuple(np.exp(duet.logs(comparison.metric).logs).tolist()),
        unsettled=duet.unsettled if duet.hinges_on_warmth(ratio, judge) else "",
        bias=ratio.bias if math.isfinite(ratio.bias) else None,
        findings=duet.findings,
    )
    return comparison.by_duet(about, contrast.ratio, contrast.p, contrast.p_equivalent(comparison.threshold))
