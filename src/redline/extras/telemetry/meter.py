"""Sums over the intervals of a load while it runs, as counters and histograms.

Names and units are those of OpenTelemetry's conventions for HTTP clients where there are any
(https://opentelemetry.io/docs/specs/semconv/http/http-metrics/), and `redline.…` where there are none.
"""

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from redline.cli.telemetry import MeteredTrial
from redline.model import Cell, DuetBlock, DuetRecording, Histogram, Interval, Recording, Suite
from redline.model.kept import KeptRequests
from redline.model.traffic import Phase
from redline.ports import ServerUsage

BOUNDS_S = (
    *(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025),
    *(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
"""Upper bounds of the buckets in seconds: those that OpenTelemetry advises for HTTP, and shorter ones."""
MOST_TRIALS = 32
"""The most recent trials are shown: what is asked for often has to stay short."""
OTHER_ERROR = "_OTHER"
"""OpenTelemetry's `error.type` where the kind of an error is not known, as within a duet."""

_BOUNDS_NS = np.array([round(bound * 1e9) for bound in BOUNDS_S], dtype=np.int64)


@dataclass
class DurationBuckets:
    """A histogram: requests by the first bound that they do not exceed, the last count those beyond all bounds.

    A time counts as the highest that the engine's histograms do not tell from it, at most 0.1% more.
    """

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    sum_s: float = 0.0
    least_s: float = math.inf
    most_s: float = -math.inf

    def add(self, times: Histogram) -> None:
        """Count these durations too."""
        values_ns, counts = times.buckets()
        if not len(values_ns):
            return
        places = np.searchsorted(_BOUNDS_NS, values_ns)
        added = np.bincount(places, weights=counts, minlength=len(self.counts))
        self.counts = [before + int(more) for before, more in zip(self.counts, added, strict=True)]
        self.sum_s += times.mean_ns * times.count / 1e9
        self.least_s = min(self.least_s, int(values_ns[0]) / 1e9)
        self.most_s = max(self.most_s, int(values_ns[-1]) / 1e9)

    @property
    def count(self) -> int:
        """All of them."""
        return sum(self.counts)


@dataclass
class MeteredSums:
    """What was seen of a trial in a phase since `began_unix_ns`.

    `requests` are by their `error.type`, which is empty for right answers. The server's CPU time and its latest memory
    are None where they are not read.
    """

    began_unix_ns: int
    requests: Counter[str] = field(default_factory=Counter)
    service: DurationBuckets = field(default_factory=DurationBuckets)
    response: DurationBuckets = field(default_factory=DurationBuckets)
    engine_cpu_ns: int = 0
    server_cpu_ns: int | None = None
    server_rss_bytes: int | None = None

    def copied(self) -> "MeteredSums":
        """The same sums, which do not grow."""
        service, response = (replace(times, counts=[*times.counts]) for times in (self.service, self.response))
        return replace(self, requests=self.requests.copy(), service=service, response=response)


class TracedTraffic(NamedTuple):
    """The single requests that were kept of a trial, or of a server of a duet, whose addresses are not known."""

    kept: KeptRequests | None
    epoch_unix_ns: int
    addresses: tuple[str, ...] = ()


class Traces(Protocol):
    """Where the traces of requests go."""

    def check(self, suite: Suite) -> None:
        """Raise UsageError for requests that begin no trace."""

    def send(self, trial: MeteredTrial, cell: Cell, traffic: TracedTraffic) -> None:
        """Send the traces of a trial."""


class SummingMeter:
    """Takes in what loads show of themselves, in any thread, and gives the sums of the most recent trials."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._trials: OrderedDict[MeteredTrial, dict[Phase, MeteredSums]] = OrderedDict()
        self.traces: Traces | None = None
        self._read: tuple[tuple[MeteredTrial, int] | None, int] = None, 0

    def begin(self, *trials: MeteredTrial) -> None:
        """Trials begin, or are repeated: they have nothing yet."""
        with self._lock:
            for trial in trials:
                self._trials.pop(trial, None)

    def interval(self, trial: MeteredTrial, interval: Interval) -> None:
        """Add an interval of a trial."""
        with self._lock:
            sums = self._sums(trial, interval.phase, interval.lasts_ns)
            for kind, number in interval.counts.outcomes:
                sums.requests["" if kind == "ok" else kind] += number
            sums.service.add(interval.service)
            sums.response.add(interval.response)
            sums.engine_cpu_ns += interval.engine_cpu_ns

    def usage(self, cell: Cell, phase: Phase, usage: ServerUsage) -> None:
        """Add what a server used until the end of the interval that was just added, the latest one of its cell."""
        with self._lock:
            trial = next((trial for trial in reversed(self._trials) if trial.cell == cell.slug), None)
            sums = self._trials[trial].get(phase) if trial is not None else None
            if trial is None or sums is None:
                return
            sums.server_rss_bytes = usage.rss_bytes
            if usage.cpu_ns is not None:
                watch, before_ns = self._read
                before_ns = before_ns if watch == (trial, usage.began_unix_ns) else 0
                sums.server_cpu_ns = (sums.server_cpu_ns or 0) + max(0, usage.cpu_ns - before_ns)
                self._read = (trial, usage.began_unix_ns), usage.cpu_ns

    def block(self, trials: tuple[MeteredTrial, ...], block: DuetBlock) -> None:
        """Add a block of a duet, whose targets are these trials. Its times are known when the duet has ended."""
        with self._lock:
            lasted_ns = block.slices[-1].end_ns - block.slices[0].start_ns if block.slices else 0
            for part in block.slices:
                sums = self._sums(trials[part.target], block.phase, lasted_ns)
                sums.requests[""] += part.completed
                sums.requests[OTHER_ERROR] += part.failed
                sums.engine_cpu_ns += part.engine_cpu_ns
                for trial, cpu_ns in zip(trials, part.cpu_ns, strict=False):
                    if cpu_ns is not None:
                        used = self._sums(trial, block.phase, lasted_ns)
                        used.server_cpu_ns = (used.server_cpu_ns or 0) + cpu_ns

    def check(self, suite: Suite) -> None:
        """Raise UsageError for a suite whose requests begin no trace, where traces are asked for."""
        if self.traces is not None:
            self.traces.check(suite)

    def trial(self, trial: MeteredTrial, cell: Cell, recording: Recording) -> None:
        """Send the traces of a trial that has ended."""
        if self.traces is not None and (traffic := recording.traffic) is not None:
            self.traces.send(trial, cell, TracedTraffic(traffic.kept, traffic.epoch_unix_ns, traffic.addresses))

    def ended(self, trials: tuple[MeteredTrial, ...], cells: tuple[Cell, ...], duet: DuetRecording) -> None:
        """Add the times that were measured in a duet, whose targets are these trials, and send their traces."""
        if (traffic := duet.traffic) is None:
            return
        if self.traces is not None:
            for trial, cell, target in zip(trials, (*cells, cells[0]), traffic.targets, strict=True):
                self.traces.send(trial, cell, TracedTraffic(target.kept, traffic.epoch_unix_ns))
        with self._lock:
            for trial, target in zip(trials, traffic.targets, strict=False):
                sums = self._sums(trial, "measure")
                sums.service.add(target.service)
                sums.response.add(target.response)

    def sums(self) -> Mapping[tuple[MeteredTrial, Phase], MeteredSums]:
        """What was seen so far of the most recent trials."""
        with self._lock:
            return {
                (trial, phase): sums.copied()
                for trial, phases in self._trials.items()
                for phase, sums in phases.items()
            }

    def _sums(self, trial: MeteredTrial, phase: Phase, lasted_ns: int = 0) -> MeteredSums:
        """The sums of a trial in a phase; new ones began before what is added, which lasted so long."""
        phases = self._trials.setdefault(trial, {})
        self._trials.move_to_end(trial)  # searches on many cells take turns
        while len(self._trials) > MOST_TRIALS:
            self._trials.popitem(last=False)
        if phase not in phases:
            phases[phase] = MeteredSums(time.time_ns() - lasted_ns)
        return phases[phase]


def attributes(trial: MeteredTrial, phase: Phase) -> dict[str, str]:
    """The attributes of all that is seen of a trial in a phase."""
    return {
        "redline.cell": trial.cell,
        "redline.trial": trial.trial,
        "redline.server": trial.server,
        "redline.phase": phase,
    }


class MetricName(NamedTuple):
    """A metric by its name at OpenTelemetry, its unit there, and what it is."""

    name: str
    unit: str
    about: str


SERVICE = MetricName("http.client.request.duration", "s", "From when a request was written to the end of its answer.")
RESPONSE = MetricName("redline.response.duration", "s", "From when a request was due to the end of its answer.")
REQUESTS = MetricName("redline.requests", "{request}", "Requests by outcome; without error.type those answered right.")
ENGINE_CPU = MetricName("redline.engine.cpu.time", "s", "CPU time of the load engine.")
SERVER_CPU = MetricName("redline.server.cpu.time", "s", "CPU time of the server, without its proxies.")
SERVER_MEMORY = MetricName("redline.server.memory.usage", "By", "Resident memory of the server, without its proxies.")
