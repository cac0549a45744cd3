"""Findings about percentiles that lie between two kinds of requests, quick and slow."""

from collections.abc import Iterator, Mapping

from redline.findings.rules import Observation, Rule
from redline.model import Histogram, Metric
from redline.quantities import duration, percent
from redline.stats import QUANTILE_OF, Trial
from redline.stats.gaps import APART, Gap, gaps_at


def gaps_of(times: Histogram) -> dict[Metric, Gap]:
    """The percentiles that lie in a gap of a distribution, with that gap."""
    return by_metric(gaps_at(times, [*QUANTILE_OF.values()]))


def by_metric(gaps: Mapping[float, Gap]) -> dict[Metric, Gap]:
    """The gaps of percentiles by their metrics."""
    return {metric: gaps[q] for metric, q in QUANTILE_OF.items() if q in gaps}


def gap_text(metric: Metric, gap: Gap) -> str:
    """`No stable p90: 9.8% of the requests took 19.6 ms or longer, the others at most 240 µs.`."""
    slow = f"{percent(gap.above)} of the requests took {duration(gap.high_ns)} or longer"
    return f"No stable {metric.words}: {slow}, the others at most {duration(gap.low_ns)}."


@Rule("unstable-percentile", when="answers", note=APART, unit="")
def unstable_percentile(trial: Trial) -> Iterator[Observation]:
    """A percentile lies in a gap of the response times: the share of slow requests is within 5% of the rest beyond it,
    or within three standard errors, and slow ones took at least twice as long. On either side are 20 requests or more,
    and in the gap at most a tenth of them: **note**.

    Which side the percentile is on is chance. It is not said as a number, but by its bounds, and not compared.

    Advice: Compare the share of slow requests, or a percentile that lies clear of the gap; find out which requests are
    the slow ones.
    """
    for metric, gap in by_metric(trial.gaps).items():
        yield Observation(gap.high_ns / gap.low_ns, gap_text(metric, gap))
