"""What each metric reads from the recordings of trials."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, TypeVar

import numpy as np

from redline.lazily import dataclass
from redline.model import (
    AgreedTls,
    Counts,
    Failure,
    FixedWork,
    Histogram,
    HistogramTable,
    Interval,
    JourneyTraffic,
    Metric,
    OneWay,
    Recording,
    ServerFacts,
    StreamTraffic,
    Subject,
    Traffic,
)
from redline.model.hosts import one_way_bound_ns
from redline.model.kept import KeptRequest
from redline.model.traffic import Requests
from redline.stats.gaps import Gap, gaps_at
from redline.stats.late_reads import is_sure
from redline.stats.samples import BATCHES, Floats, Merged, Ratios, Sample, batch_sums

T = TypeVar("T")
QUANTILE_OF = {
    Metric.P50: 0.5,
    Metric.P75: 0.75,
    Metric.P90: 0.9,
    Metric.P95: 0.95,
    Metric.P99: 0.99,
    Metric.P999: 0.999,
    Metric.P9999: 0.9999,
}

MESSAGE_QUANTILES = {
    Metric.FIRST_MESSAGE_P50: ("first-message", 0.5),
    Metric.FIRST_MESSAGE_P95: ("first-message", 0.95),
    Metric.GAP_P50: ("gap", 0.5),
    Metric.GAP_P99: ("gap", 0.99),
    Metric.PER_MESSAGE_P50: ("per-message", 0.5),
    Metric.PUSH_P50: ("push", 0.5),
    Metric.PUSH_P99: ("push", 0.99),
    Metric.JITTER_P99: ("jitter", 0.99),
}
"""The times of messages, and their quantile, of metrics that only conversations have."""

BY_CHANCE = 4.0
"""In standard deviations: two counts differ by more once in 16,000 times."""

PAGE_BYTES = 4096
"""Memory is counted in pages, so trials that agree to the byte agree to a page."""

FEWEST_BEYOND = 10
"""The fewest requests beyond a reported percentile: 10 determine it to a third of the tail's own scale."""


def message_times(streams: StreamTraffic | None, metric: Metric) -> Histogram | None:
    """The times of which a metric of conversations is a quantile, if there are enough of them."""
    name, q = MESSAGE_QUANTILES[metric]
    times = streams.times(name) if streams else None
    return times if times is not None and enough_beyond(times.count, q) else None


def enough_beyond(count: int, q: float) -> bool:
    """Whether `count` requests are enough for their quantile `q`; for the lower half any number is."""
    return count >= enough(q)


@cache
def enough(q: float) -> int:
    """The fewest requests of which, but for rounding, `FEWEST_BEYOND` lie beyond the quantile."""
    needed = requests_needed(q)
    while needed > 1 and round((needed - 1) * (1 - q), 6) >= FEWEST_BEYOND:
        needed -= 1
    return needed


def requests_needed(q: float) -> int:
    """The fewest requests that are enough for the quantile `q`: 100,000 for 0.9999."""
    return 1 if q <= 0.5 else math.ceil(round(FEWEST_BEYOND / (1 - q), 6))


def chance_at_ends(completed: int, response: Histogram, seconds: float) -> float:
    """How far the answered requests of a window differ from the due ones by chance; the same of several such windows.

    By Little's law, rate x response time are in flight at each end. The variance of a difference of counts is their
    sum.
    """
    return BY_CHANCE * math.sqrt(2 * completed * response.mean_ns / 1e9 / seconds) if seconds > 0 else 0.0


class Trial:
    """A recording with derived values, computed at most once. It holds large decoded data, so do not keep it."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.traffic = traffic = recording.traffic
        self._increases: dict[tuple[str, Subject], float | None] = {}
        self._made: dict[Hashable, Any] = {}
        if traffic is not None:
            Histogram.decode_all(traffic.main_times)

    def increase(self, name: str, subject: Subject) -> float | None:
        """The growth of a counter over the measurement window; None if it is not known."""
        key = name, subject
        if key not in self._increases:
            self._increases[key] = self.recording.increase(name, subject)
        return self._increases[key]

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """What is made of the recording under this name: made at most once."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """The intervals of the traffic; empty without traffic."""
        return self.traffic.intervals if self.traffic else ()

    @cached_property
    def totals(self) -> list[int]:
        """The requests in every interval that have an outcome."""
        return [interval.counts.outcomes.total for interval in self.intervals]

    @cached_property
    def interval_quantiles_ns(self) -> list[tuple[int, int, int]]:
        """The p50, p90 and p99 of the response time in every interval; 0 without a request."""
        return [(p50, p90, p99) for p50, p90, p99 in self.responses.quantiles_ns((0.5, 0.9, 0.99)).tolist()]

    @cached_property
    def responses(self) -> HistogramTable:
        """The response times of every interval."""
        return HistogramTable([interval.response for interval in self.intervals])

    @cached_property
    def gaps(self) -> dict[float, Gap]:
        """The gaps in which percentiles of its response times lie."""
        return gaps_at(self.traffic.response, [*QUANTILE_OF.values()]) if self.traffic else {}

    @cached_property
    def answered(self) -> int:
        """Right answers that the rate counts: see `Traffic.answered`; 0 without traffic."""
        return self.traffic.answered if self.traffic else 0

    @property
    def rate_per_s(self) -> float:
        """Right answers per second within the window; 0 without traffic."""
        seconds = self.traffic.seconds if self.traffic else 0.0
        return self.answered / seconds if seconds > 0 else 0.0

    @cached_property
    def server_cpu_ns(self) -> float | None:
        """CPU time of the server's and its hops' processes within the measurement window; None if not known.

        Answers cost CPU time: if it is 0 although requests were answered, other processes answered them.
        """
        used, answered = self.increase("cpu_ns", "server"), self.traffic is not None and self.traffic.counts.completed
        return None if used == 0 and answered else used

    @cached_property
    def cpu_per_request_ns(self) -> float | None:
        """The server's CPU time per right answer within the window; None if not known."""
        completed = self.traffic.counts.completed if self.traffic else 0
        return self.server_cpu_ns / completed if self.server_cpu_ns is not None and completed > 0 else None

    @cached_property
    def numbers(self) -> "TrialNumbers":
        """The numbers for estimates, which outlive the recording."""
        recording, traffic, parts = self.recording, self.traffic, self._parts
        most = [part.most_memory_bytes for part in parts if part.most_memory_bytes is not None]
        return TrialNumbers(
            cell_id=recording.cell_id,
            round=recording.round,
            position=recording.position,
            perturbed=recording.perturbed,
            server=recording.server,
            host=recording.host,
            failure=recording.failure,
            traffic=MeasuredTraffic.of(traffic, self.answered) if traffic else None,
            server_cpu_ns=self.server_cpu_ns if traffic else None,
            most_memory_bytes=sum(most) if len(most) == len(parts) else None,
            fixed_work=recording.fixed_work,
            clock_bound_ns=one_way_bound_ns(recording.hosts),
            parts=parts if len(parts) > 1 else (),
        )

    @property
    def _parts(self) -> tuple["PartNumbers", ...]:
        """The server, then its hops."""
        recording, parts = self.recording, []
        for subject, name in recording.parts.items():
            memory = recording.find("rss_bytes", subject)
            cpu_ns = recording.sampled_increase("cpu_ns", subject)
            parts.append(PartNumbers(name, cpu_ns, max(memory.values) if memory else None))
        return tuple(parts)


@dataclass(frozen=True, slots=True)
class MeasuredTraffic:
    """The totals of a trial's traffic, and the numbers of its intervals within the window."""

    counts: Counts
    seconds: float
    response: Histogram
    service: Histogram
    lateness: Histogram
    first_byte: Histogram | None
    handshakes: Histogram | None
    upgrades: Histogram | None
    one_way: OneWay | None
    tls: AgreedTls | None
    encoded: tuple[str, ...]
    in_window: int
    """Right answers that the rate counts: see `Traffic.answered`."""
    answered: tuple[int, ...]
    lasted_s: tuple[float, ...]
    responses: tuple[Histogram, ...]
    """The numbers of every measured interval; answers after the window's end belong to the last interval."""
    threads: int
    """The number of the engine's threads."""
    requests: Requests = ()
    streams: StreamTraffic | None = None
    journeys: JourneyTraffic | None = None
    slowest: tuple[KeptRequest, ...] = ()
    starts_ns: int = 0
    """When the measurement started, from the epoch of the load, from which times of requests count."""

    @classmethod
    def of(cls, traffic: Traffic, answered: int) -> "MeasuredTraffic":
        """The numbers of this traffic, with its right answers that the rate counts."""
        measured = [interval for interval in traffic.intervals if interval.phase == "measure"]
        responses = [interval.response for interval in measured]
        drained = [
            interval.response for interval in traffic.intervals if interval.phase == "drain" and interval.response.count
        ]
        if drained:
            responses = [*responses[:-1], Histogram.merged([*responses[-1:], *drained])]
        return cls(
            counts=traffic.counts,
            seconds=traffic.seconds,
            response=traffic.response,
            service=traffic.service,
            lateness=traffic.lateness,
            first_byte=traffic.first_byte,
            handshakes=traffic.all_handshakes,
            upgrades=traffic.all_upgrades,
            one_way=traffic.measured_one_way,
            tls=traffic.tls,
            encoded=traffic.encoded,
            in_window=answered,
            answered=tuple(interval.counts.completed for interval in measured),
            lasted_s=tuple(interval.lasts_ns / 1e9 for interval in measured),
            responses=tuple(responses),
            threads=traffic.engine.workers,
            requests=traffic.requests,
            streams=traffic.streams,
            journeys=traffic.journeys,
            slowest=traffic.kept.slowest if traffic.kept else (),
            starts_ns=traffic.measure_start_ns,
        )

    def compress(self) -> None:
        """Free the decoded histograms, which are large."""
        others = [request.response for request in self.requests] + ([self.journeys.response] if self.journeys else [])
        for histogram in (self.response, self.service, self.lateness, self.first_byte, *self.responses, *others):
            if histogram is not None:
                histogram.compress()

    @property
    def rate_per_s(self) -> float:
        """Right answers per second within the window."""
        return self.in_window / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class PartNumbers:
    """The use of resources by the server alone, or by a proxy in front of it."""

    name: str
    cpu_ns: float | None
    most_memory_bytes: float | None


@dataclass(frozen=True, slots=True)
class TrialNumbers:
    """The numbers of a recording for estimates, comparisons and reports. CPU time and memory include proxies."""

    cell_id: str
    round: int
    position: int
    perturbed: bool
    server: ServerFacts | None
    failure: Failure | None
    traffic: MeasuredTraffic | None
    server_cpu_ns: float | None
    most_memory_bytes: float | None
    fixed_work: tuple[FixedWork, ...] = ()
    host: str = ""
    """The host on which its server ran; empty for this host."""
    clock_bound_ns: int | None = 0
    """How far the clocks of its hosts may be apart, in nanoseconds; None if that is not known."""
    parts: tuple[PartNumbers, ...] = ()
    """The server, then the proxies in front of it from the client's on; empty without a proxy."""

    def of_part(self, place: int) -> "TrialNumbers":
        """The same numbers with the CPU time and memory of this part alone."""
        part = self.parts[place]
        return replace(self, server_cpu_ns=part.cpu_ns, most_memory_bytes=part.most_memory_bytes)

    def has_metric(self, metric: Metric) -> bool:
        """Whether the recording has the metric."""
        if self.traffic is None:
            return False
        if metric in (Metric.THROUGHPUT, Metric.RECEIVED):
            return self.traffic.seconds > 0
        if metric is Metric.CPU_PER_REQUEST:
            return self.traffic.counts.completed > 0 and self.server_cpu_ns is not None
        if metric is Metric.MEMORY:
            return self.most_memory_bytes is not None
        if metric in MESSAGE_QUANTILES:
            has_times = message_times(self.traffic.streams, metric) is not None
            return has_times and is_sure(self.traffic.streams, *MESSAGE_QUANTILES[metric])
        return self.traffic.response.count > 0


def merged_of(trials: Sequence[TrialNumbers]) -> Merged:
    """The response times of these trials. Raises ValueError for one without traffic."""
    traffics = _traffics(trials)
    return Merged([traffic.response for traffic in traffics], [traffic.responses for traffic in traffics])


def sample_of(trials: Sequence[TrialNumbers], metric: Metric, merged: Merged | None = None) -> Sample:
    """The sample of a metric, which all trials must have, in their order.

    `merged` are their response times, if at hand. Raises ValueError for a trial without traffic.
    """
    sample = _of_messages(trials, metric) if metric in MESSAGE_QUANTILES else _sample_of(trials, metric, merged)
    sample.hosts = tuple(trial.host for trial in trials) if all(trial.host for trial in trials) else ()
    return sample


def _of_messages(trials: Sequence[TrialNumbers], metric: Metric) -> Sample:
    times = [message_times(traffic.streams, metric) or Histogram() for traffic in _traffics(trials)]
    return Merged(times).sample(MESSAGE_QUANTILES[metric][1])


def _sample_of(trials: Sequence[TrialNumbers], metric: Metric, merged: Merged | None) -> Sample:
    traffics = _traffics(trials)
    if metric is Metric.THROUGHPUT:
        in_window = [traffic.in_window for traffic in traffics]
        return Ratios(_array(in_window), _array([traffic.seconds for traffic in traffics]), batches=_answered(traffics))
    if metric is Metric.RECEIVED:
        received = [traffic.counts.bytes_received for traffic in traffics]
        return Ratios(_array(received), _array([traffic.seconds for traffic in traffics]))
    if metric is Metric.MEAN:
        counts = _array([traffic.response.count for traffic in traffics])
        return Ratios(_array([traffic.response.mean_ns for traffic in traffics]) * counts, counts)
    if metric is Metric.CPU_PER_REQUEST:
        # It has no batches: a late reading moves CPU time to the next batch.
        completed = _array([traffic.counts.completed for traffic in traffics])
        return Ratios(_array([trial.server_cpu_ns or 0.0 for trial in trials]), completed)
    if metric is Metric.MEMORY:
        most = _array([trial.most_memory_bytes or 0.0 for trial in trials])
        return Ratios(most, np.ones(len(trials)), resolution=PAGE_BYTES / max(float(most.mean()), PAGE_BYTES))
    return (merged or merged_of(trials)).sample(QUANTILE_OF[metric])


def _traffics(trials: Sequence[TrialNumbers]) -> list[MeasuredTraffic]:
    traffic = [trial.traffic for trial in trials if trial.traffic is not None]
    if len(traffic) < len(trials):
        raise ValueError("a trial has no traffic")
    return traffic


def _answered(traffics: Sequence[MeasuredTraffic]) -> tuple[Floats, Floats] | None:
    """Right answers and seconds by trial and batch."""
    batches = min([BATCHES, *(len(traffic.answered) for traffic in traffics)])
    if batches < 2:
        return None
    answers = np.array([batch_sums(traffic.answered, batches) for traffic in traffics])
    return answers, np.array([batch_sums(traffic.lasted_s, batches) for traffic in traffics])


def _array(values: Sequence[float]) -> Floats:
    return np.array(values, dtype=np.float64)
