"""The output of k6, https://k6.io: its summary as JSON, and `--out json`, a sample per line."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from redline.extras.peers.outputs.reading import PeerOutput, json_object, latencies, member, number, rough, whole
from redline.extras.peers.outputs.vegeta import instant_ns
from redline.model.histogram import Histogram

QUANTILES = {
    0.5: "p(50)",
    0.75: "p(75)",
    0.9: "p(90)",
    0.95: "p(95)",
    0.99: "p(99)",
    0.999: "p(99.9)",
    1.0: "max",
}
_MS = 1e6
_NS = 1e9
_AT_ONCE = 100_000
"""The number of samples that are put into a histogram together."""


def knows(report: Mapping[str, Any]) -> bool:
    """Whether it is a summary: from `--summary-export`, or as `handleSummary` gets it."""
    return "http_req_duration" in member(report, "metrics") or "http_reqs" in member(report, "metrics")


def knows_sample(sample: Mapping[str, Any]) -> bool:
    """Whether it is a line of `--out json`."""
    return sample.get("type") in ("Metric", "Point") and "metric" in sample and "data" in sample


def read(output: str) -> PeerOutput:
    """Read k6's times, which are in milliseconds. The median is `med`, or p(50) if that was requested."""
    report = json_object(output)
    times, requests, failing = (
        member(metric, "values") or metric
        for metric in (
            member(member(report, "metrics"), name) for name in ("http_req_duration", "http_reqs", "http_req_failed")
        )
    )
    count = whole(requests.get("count"))
    share = number(failing.get("rate", failing.get("value")))
    known = latencies({"p(50)": times.get("med")} | times, QUANTILES, _MS)
    lasts = number(member(report, "state").get("testRunDurationMs"), 1e-3)
    failed = None if share is None or share > 1 or count is None else round(share * count)
    return PeerOutput(
        known,
        None if count is None else count - (failed or 0),
        number(requests.get("rate")),
        f"{share:.2%} failed" if share else "",
        failed=failed,
        load="" if lasts is None else f"{rough(lasts)} s",
    )


@dataclass
class _Samples:
    """The sums of the samples of `--out json`."""

    times: Histogram = field(default_factory=Histogram)
    batch: list[float] = field(default_factory=list)
    failed: int = 0
    instants: tuple[int, int] | None = None
    urls: set[str] = field(default_factory=set)

    def take(self, metric: object, value: float, data: Mapping[str, Any]) -> None:
        """Add the point of a metric."""
        if metric == "http_req_failed":
            self.failed += value > 0
        if metric != "http_req_duration":
            return
        self.batch.append(value * _MS)
        if len(self.batch) == _AT_ONCE:
            self.settle()
        url, instant = member(data, "tags").get("url"), instant_ns(data.get("time"))
        if isinstance(url, str) and len(self.urls) <= 1:
            self.urls.add(url)
        if instant is not None:
            first, last = self.instants or (instant, instant)
            self.instants = min(first, instant), max(last, instant)

    def settle(self) -> None:
        """Put the latest times into the histogram."""
        self.times, self.batch = Histogram.merged((self.times, Histogram.of(self.batch))), []

    def output(self) -> PeerOutput:
        """Return the result of all samples."""
        self.settle()
        count = self.times.count
        if not count:
            return PeerOutput()
        first, last = self.instants or (None, None)
        lasts_s = (last - first) / _NS if first is not None and last is not None else 0.0
        return PeerOutput(
            dict(zip(QUANTILES, map(float, self.times.quantiles_ns(tuple(QUANTILES))), strict=True)),
            max(count - self.failed, 0),
            (count - 1) / lasts_s if lasts_s > 0 else None,  # the first request begins the span
            f"{self.failed / count:.2%} failed" if self.failed else "",
            failed=self.failed,
            url=next(iter(self.urls)) if len(self.urls) == 1 else "",
            started_unix_ns=first,
        )


def read_samples(lines: Iterable[str]) -> PeerOutput:
    """Read the times of `--out json`, however many there are. Raises ValueError on a line that is no sample."""
    samples = _Samples()
    for at, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            sample = json.loads(text)
        except (ValueError, RecursionError):
            sample = None
        if not isinstance(sample, dict) or not knows_sample(sample):
            raise ValueError(f"line {at} is no sample of k6")
        value = number(member(sample, "data").get("value"))
        if sample["type"] == "Point" and value is not None:
            samples.take(sample["metric"], value, member(sample, "data"))
    return samples.output()
