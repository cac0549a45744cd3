"""The sums of a meter as families of Prometheus: what it scrapes, and what is written to it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from redline.extras.telemetry.meter import (
    BOUNDS_S,
    ENGINE_CPU,
    REQUESTS,
    RESPONSE,
    SERVER_CPU,
    SERVER_MEMORY,
    SERVICE,
    DurationBuckets,
    MeteredSums,
    MetricName,
    SummingMeter,
    attributes,
)

Labels = Mapping[str, str]
"""What tells the series of a metric apart."""
FamilyKind = Literal["histogram", "counter", "gauge"]
CREATED = "_created"
"""The suffix of the time at which a sum began, in seconds since the epoch."""
_UNITS = {"s": "seconds", "By": "bytes"}


class FamilySample(NamedTuple):
    """A value of a family: the end of its name, its labels, and the value."""

    suffix: str
    labels: Labels
    value: float


class Family(NamedTuple):
    """A metric with all of its samples. `unit` is empty where the metric is a mere number."""

    name: str
    kind: FamilyKind
    unit: str
    about: str
    samples: tuple[FamilySample, ...]


def families(meter: SummingMeter) -> tuple[Family, ...]:
    """Everything that the meter has."""
    every = [(_as_labels(attributes(trial, phase)), sums) for (trial, phase), sums in meter.sums().items()]
    engine = ((labels, sums.engine_cpu_ns / 1e9, sums) for labels, sums in every)
    server = ((labels, sums.server_cpu_ns / 1e9, sums) for labels, sums in every if sums.server_cpu_ns is not None)
    memory = (
        FamilySample("", labels, sums.server_rss_bytes) for labels, sums in every if sums.server_rss_bytes is not None
    )
    return (
        _family(SERVICE, "histogram", _buckets((labels, sums, sums.service) for labels, sums in every)),
        _family(RESPONSE, "histogram", _buckets((labels, sums, sums.response) for labels, sums in every)),
        _family(REQUESTS, "counter", _totals(_requests(every))),
        _family(ENGINE_CPU, "counter", _totals(engine)),
        _family(SERVER_CPU, "counter", _totals(server)),
        _family(SERVER_MEMORY, "gauge", memory),
    )


def _as_labels(about: Mapping[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in about.items()}


def _family(metric: MetricName, kind: FamilyKind, samples: Iterable[FamilySample]) -> Family:
    unit = _UNITS.get(metric.unit, "")
    name = metric.name.replace(".", "_")
    return Family(f"{name}_{unit}" if unit else name, kind, unit, metric.about, tuple(samples))


def _buckets(series: Iterable[tuple[Labels, MeteredSums, DurationBuckets]]) -> Iterator[FamilySample]:
    for labels, sums, times in series:
        below = 0
        for bound, number in zip((*map(str, BOUNDS_S), "+Inf"), times.counts, strict=True):
            below += number
            yield FamilySample("_bucket", {**labels, "le": bound}, below)
        yield FamilySample("_count", labels, times.count)
        yield FamilySample("_sum", labels, times.sum_s)
        yield FamilySample(CREATED, labels, sums.began_unix_ns / 1e9)


def _totals(series: Iterable[tuple[Labels, float, MeteredSums]]) -> Iterator[FamilySample]:
    for labels, value, sums in series:
        yield FamilySample("_total", labels, value)
        yield FamilySample(CREATED, labels, sums.began_unix_ns / 1e9)


def _requests(every: Iterable[tuple[Labels, MeteredSums]]) -> Iterator[tuple[Labels, float, MeteredSums]]:
    for labels, sums in every:
        for kind, number in sums.requests.items():
            if number or not kind:
                yield {**labels, **({"error_type": kind} if kind else {})}, number, sums
