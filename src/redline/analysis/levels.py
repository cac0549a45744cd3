"""The levels of servers that were measured only in duets, from their own slices. Pure."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from redline.analysis.bounds import bound_by
from redline.findings import Touch
from redline.findings.failed import WRONG, errors, trial_failed, wrong_answers
from redline.findings.rules import Rule
from redline.findings.starts import BASELINE, cpu_of_all, failed_at, is_whole, measured, traffic_of
from redline.findings.two_modes import gaps_of
from redline.model import (
    Bound,
    DuetRecording,
    Estimate,
    Finding,
    Grade,
    Histogram,
    Metric,
    Run,
)
from redline.model.duet import TargetTraffic
from redline.model.hosts import one_way_bound_ns
from redline.model.kept import KeptRequest
from redline.model.percentile import Effect, TimeName
from redline.stats import QUANTILE_OF, enough_beyond
from redline.stats.duets import StartRatio, over_starts

METHOD = "t interval over fresh starts, of the slices of a duet"


@dataclass(frozen=True)
class SlicedCell:
    """A cell in all its starts of duets, with its place in every start; `made` are the starts with a measured block.

    `name` is that of its server.
    """

    cell_id: str
    name: str
    starts: tuple[tuple[DuetRecording, int], ...]

    @cached_property
    def made(self) -> tuple[tuple[DuetRecording, int], ...]:
        """The starts that were measured."""
        return tuple((start, place) for start, place in self.starts if is_whole(start))

    @cached_property
    def traffic(self) -> tuple[TargetTraffic, ...]:
        """Its measured traffic in every start."""
        return tuple(traffic_of(start).targets[place] for start, place in self.made)

    @property
    def timed(self) -> tuple[TargetTraffic, ...]:
        """The same; none if a finding hides its times."""
        return () if self.finding else self.traffic

    @property
    def leaves(self) -> Effect | None:
        """What a finding leaves of its numbers."""
        return "unknown" if self.finding else None

    @property
    def threads(self) -> tuple[int, ...]:
        """The number of the engine's threads in every measured start."""
        return tuple(traffic_of(start).engine.workers for start, _ in self.made)

    @property
    def opening(self) -> dict[TimeName, list[Histogram | None]]:
        """The handshakes of TLS and of WebSockets within its measured slices, by start."""
        traffic = self.timed
        return {"handshake": [it.handshake for it in traffic], "upgrade": [it.upgrade for it in traffic]}

    @property
    def kept(self) -> Iterator[tuple[int, int, tuple[KeptRequest, ...]]]:
        """The number of every measured start, when its first measured slice began, and its slowest requests."""
        for (start, _), target in zip(self.made, self.traffic, strict=True):
            if target.kept is not None and not self.finding:
                began_ns = measured(traffic_of(start))[0].slices[0].start_ns
                yield start.round + 1, began_ns, target.kept.slowest

    @property
    def clock_bounds(self) -> list[int | None]:
        """The most that the hosts' clocks may be apart in every measured start, in ns; None where nobody says it."""
        return [one_way_bound_ns(start.hosts) for start, _ in self.made]

    def estimates(self) -> dict[Metric, Estimate]:
        """Those that were measured, if no finding hides them."""
        return {} if self.finding else self._measured

    def bounds(self) -> dict[Metric, Bound]:
        """Why those that were measured are not known."""
        left = Touch("unknown", self.finding) if self.finding else None
        return {metric: bound_by(left, metric) for metric in self._measured} if left else {}

    @cached_property
    def _measured(self) -> dict[Metric, Estimate]:
        """Throughput, mean, CPU per request and percentiles, if every measured start has them."""
        values: dict[Metric, Sequence[float | None]] = {
            Metric.THROUGHPUT: [_rate(start, place) for start, place in self.made],
            Metric.MEAN: [target.response.mean_ns for target in self.traffic],
            Metric.CPU_PER_REQUEST: [_cpu_ns(start, place) for start, place in self.made],
        }
        gaps = gaps_of(Histogram.merged(target.response for target in self.traffic))
        for metric, q in QUANTILE_OF.items():
            if metric not in gaps and all(enough_beyond(target.response.count, q) for target in self.traffic):
                values[metric] = [float(target.response.quantile_ns(q)) for target in self.traffic]
        return {
            metric: _estimate(metric, [value for value in known if value])
            for metric, known in values.items()
            if known and all(known)
        }

    def facts(self, name: str) -> str:
        """The distinct values of a fact that its servers reported: `build` or `runtime_version`."""
        servers = [start.servers[place] for start, place in self.starts if place < len(start.servers)]
        return ", ".join(dict.fromkeys(filter(None, (str(getattr(server, name)) for server in servers if server))))

    @cached_property
    def finding(self) -> Finding | None:
        """Why it has no level: no start came to its measurement, or the server failed too many requests."""
        failures = [start.failure for start, _ in self.starts if start.failure]
        if failures and not self.made:
            first = failures[0]
            message = f"No start came to its measurement. The first failed in stage {first.stage}: {first.message}"
            return self._invalid(trial_failed, message, first.hint)
        for place in dict.fromkeys(place for _, place in self.starts):
            starts = [start for start, own in self.starts if own == place]
            bad, why = failed_at(starts, self.name, (BASELINE, -1) if place == BASELINE else (place,))
            if why:
                wrong = sum(bad[kind] for kind in WRONG)
                return self._invalid(wrong_answers if 2 * wrong >= bad.total() else errors, f"{why}.")
        return None

    def _invalid(self, rule: Rule, message: str, advice: str = "") -> Finding:
        advice = advice or rule.advice
        return Finding(kind=rule.kind, grade=Grade.INVALID, message=message, advice=advice, cell_id=self.cell_id)


def sliced_cells(run: Run) -> dict[str, SlicedCell]:
    """Every cell of the plan by its id; the second server of a baseline counts as a control alone."""
    starts: dict[str, list[tuple[DuetRecording, int]]] = {cell_id: [] for cell_id in run.manifest.plan.cells}
    for recording in run.duets:
        for place, cell_id in enumerate(recording.cell_ids[:-1]):
            if cell_id in starts:
                starts[cell_id].append((recording, place))
    cells = run.manifest.plan.cells
    return {cell_id: SlicedCell(cell_id, cells[cell_id].variant.slug, tuple(own)) for cell_id, own in starts.items()}


def _rate(start: DuetRecording, place: int) -> float | None:
    slices = [slice_ for block in measured(traffic_of(start)) for slice_ in block.slices if slice_.target == place]
    measured_ns = sum(slice_.measured_ns for slice_ in slices)
    return sum(slice_.measured for slice_ in slices) / measured_ns * 1e9 if measured_ns else None


def _cpu_ns(start: DuetRecording, place: int) -> float | None:
    known = cpu_of_all(traffic_of(start))
    return None if known is None else float(known[place])


def _estimate(metric: Metric, values: Sequence[float]) -> Estimate:
    """The geometric mean over starts; a single start has no interval."""
    ratio = over_starts([StartRatio(math.log(value), None) for value in values]).contrast.ratio
    return Estimate(value=ratio.value, low=ratio.low, high=ratio.high, unit=metric.unit, n=len(values), method=METHOD)
