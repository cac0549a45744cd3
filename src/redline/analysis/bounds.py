"""What is known of each number of a load that an invalid finding touches: a bound, or only why it is not known."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from redline.analysis.percentiles import percentiles
from redline.findings import Touch, Touched, is_late_at
from redline.findings.arrivals import bunched_sends
from redline.findings.two_modes import by_metric, gap_text, gaps_of, unstable_percentile
from redline.lazily import dataclass
from redline.model import Bound, Finding, Histogram, Metric, Percentile
from redline.stats import QUANTILE_OF, Trial, enough_beyond
from redline.stats.gaps import Gap, gaps_at


class HasTimes(Protocol):
    """The traffic of a load, with its times."""

    @property
    def response(self) -> Histogram:
        """From when each request was due."""

    @property
    def service(self) -> Histogram:
        """From when each request was written."""

    @property
    def lateness(self) -> Histogram:
        """From when each request was due until the engine took it up."""


@dataclass(frozen=True)
class Times:
    """The response times of loads, and what bounds them from below.

    `bunched`: a late engine sent requests in bunches, which wait for each other in the server. `known_gaps` are those
    of the response times, if they are at hand.
    """

    loads: tuple[HasTimes, ...]
    bunched: bool = False
    known_gaps: Mapping[float, Gap] | None = None

    @classmethod
    def of(cls, traffics: Iterable[HasTimes], findings: Iterable[Finding] = ()) -> "Times":
        """The times of these loads together, with the findings about them."""
        return cls(tuple(traffics), _is_bunched(findings))

    @classmethod
    def of_trial(cls, trial: Trial, traffic: HasTimes, findings: Iterable[Finding] = ()) -> "Times":
        """The times of a trial with this traffic."""
        return cls((traffic,), _is_bunched(findings), trial.gaps)

    @cached_property
    def response(self) -> Histogram:
        """The response times of all loads."""
        return _together([load.response for load in self.loads])

    @cached_property
    def service(self) -> Histogram:
        """The service times of all loads."""
        return _together([load.service for load in self.loads])

    @cached_property
    def lateness(self) -> Histogram:
        """How late the engine took up the requests of all loads."""
        return _together([load.lateness for load in self.loads])

    def left_at(self, q: float | None, touch: Touch | None) -> Touch | None:
        """What a finding leaves of a percentile, or of the mean if `q` is None: lateness touches what it makes up.

        None if the number itself is known.
        """
        if touch is None or touch.leaves != "at most":
            return touch
        return touch if is_late_at(q, self.lateness, self.response) else None

    def ends_ns(self, q: float | None, touch: Touch) -> tuple[float | None, float | None]:
        """The least and the most that a percentile, or the mean, can be.

        A response took at least its service time, unless it waited for others that were late with it. A queue's
        departures are delayed by no more than its arrivals, so a client that is late by at most M lengthens no response
        time by more than M.
        """
        whole = _at(self.response, q)
        if touch.leaves == "unknown" or not self.response.count:
            return None, None
        if touch.leaves == "at least":
            return whole, None
        is_below = not self.bunched and self.service.count >= self.response.count
        service = _at(self.service, q) if is_below else 0.0
        return max(service, whole - self.lateness.max_ns, 0.0), whole

    @cached_property
    def gaps(self) -> Mapping[Metric, Gap]:
        """The percentiles that lie in a gap of the response times."""
        return gaps_of(self.response) if self.known_gaps is None else by_metric(self.known_gaps)

    def bound(self, metric: Metric, touch: Touch | None) -> Bound | None:
        """What is known in place of the mean or a percentile; None if the number is known, or too few were measured."""
        q = QUANTILE_OF.get(metric)
        left = self.left_at(q, touch)
        if not enough_beyond(self.response.count, q or 0.0):
            return None
        if left is None:
            gap = self.gaps.get(metric)
            return None if gap is None else bound_of_gap(metric, gap)
        low, high = self.ends_ns(q, left)
        return bound_by(left, metric, low, high)

    def points(self, touch: Touch | None) -> tuple[Percentile, ...]:
        """The distribution with its bounds, without what is not known."""
        return tuple(self._points(touch))

    def _points(self, touch: Touch | None) -> Iterator[Percentile]:
        for measured, point in zip(percentiles(self.response), known_points(self.response), strict=True):
            left = self.left_at(measured.q, touch)
            if left is None:
                yield point
            elif left.leaves == "at least":
                yield Percentile(q=measured.q, ns=measured.ns, bound="at least")
            elif left.leaves == "at most":
                low, _ = self.ends_ns(measured.q, left)
                yield Percentile(q=measured.q, ns=measured.ns, bound="at most", at_least_ns=round(low or 0.0))


def known_points(response: Histogram) -> tuple[Percentile, ...]:
    """The distribution of response times that no finding touches; one in a gap has the ends between which it lies."""
    points = percentiles(response)
    gaps = gaps_at(response, [point.q for point in points if 0 < point.q < 1])
    return tuple(
        point
        if (gap := gaps.get(point.q)) is None
        else Percentile(q=point.q, ns=gap.most_ns, bound="at most", at_least_ns=gap.least_ns)
        for point in points
    )


def _together(parts: Sequence[Histogram]) -> Histogram:
    return parts[0] if len(parts) == 1 else Histogram.merged(parts)


def _is_bunched(findings: Iterable[Finding]) -> bool:
    return any(finding.kind == bunched_sends.kind for finding in findings)


def _at(times: Histogram, q: float | None) -> float:
    return times.mean_ns if q is None else float(times.quantile_ns(q))


def load_bounds(
    touched: Touched,
    times: Times,
    rate_per_s: float,
    received_per_s: float,
    of_times: Iterable[Metric] = (Metric.MEAN, *QUANTILE_OF),
) -> dict[Metric, Bound]:
    """What is known in place of the numbers of a load that its findings hide; `of_times` are those of its times."""
    bounds = {}
    if touch := touched.get("throughput"):
        for metric, value in ((Metric.THROUGHPUT, rate_per_s), (Metric.RECEIVED, received_per_s)):
            bounds[metric] = bound_by(touch, metric, value if touch.leaves == "at least" else None)
    for metric in of_times:
        if bound := times.bound(metric, touched.get("response times")):
            bounds[metric] = bound
    return bounds


def bound_of_gap(metric: Metric, gap: Gap) -> Bound:
    """What is known of a percentile that lies in a gap."""
    reason, kind = gap_text(metric, gap), unstable_percentile.kind
    return Bound(at_least=gap.least_ns, at_most=gap.most_ns, unit=metric.unit, finding=kind, reason=reason)


def bound_by(touch: Touch, metric: Metric, low: float | None = None, high: float | None = None) -> Bound:
    """A bound of a metric, with the finding that hides the number."""
    unit, finding = metric.unit, touch.finding
    return Bound(at_least=low, at_most=high, unit=unit, finding=finding.kind, reason=finding.message)
