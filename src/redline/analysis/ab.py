"""The answer of `redline ab`: B against A, with A against itself as a control, from the recordings of all starts."""

from collections.abc import Sequence

from redline.analysis.duet import Duet
from redline.findings.starts import is_whole
from redline.model import DuetRecording, Metric, Verdict
from redline.model.duet import AbMetric, AbReport, Ratio
from redline.quantities import duration
from redline.stats import decide
from redline.stats.duets import LogRatio

ALIKE = 0.02
"""An interval within this of 1 says that both are alike."""


def judge(  # noqa: PLR0913 - what was measured, and how
    names: tuple[str, str],
    metric: Metric,
    recordings: Sequence[DuetRecording],
    *,
    closed: bool,
    cores: int,
    detects: bool = False,
) -> AbReport | None:
    """The report; None where no start has a complete block.

    `cores` are those of each server, 0 where not known; `detects` says that the warm-up was to end with warm servers.
    Where CPU time is not known the rate is compared, and the median response time of what is loaded at a given rate.
    """
    duet = Duet(tuple(filter(is_whole, recordings)), saturates=closed, detects=detects, cores=cores)
    if not duet.starts:
        return None
    metrics = [found for each in (*duet.metrics, Metric.P50, Metric.P99) if (found := _compare(each, duet)) is not None]
    chosen = next((each for each in metrics if each.metric is metric), None)
    if chosen is None and metric is Metric.CPU_PER_REQUEST:
        chosen = next(iter(metrics), None)  # a finding says why CPU time is not known
    if chosen is None:
        return None
    return AbReport(
        a=names[0],
        b=names[1],
        metric=chosen.metric,
        ratio=chosen.ratio,
        verdict=chosen.verdict,
        self_ratio=chosen.self_ratio,
        starts=len(duet.starts),
        seconds=sum(each.took_ns for each in recordings) / 1e9,
        interrupted=is_interrupted(recordings),
        unsettled=duet.unsettled if _hangs_on_warmth(chosen.metric, duet) else "",
        also=tuple(each for each in metrics if each is not chosen),
        findings=duet.findings(),
    )


def nothing_due(recordings: Sequence[DuetRecording]) -> str:
    """Says that the load asked some server for nothing in all that time; empty where each had a request."""
    loads = [each.traffic for each in recordings if each.traffic is not None and each.traffic.blocks]
    slices = [each for load in loads for block in load.blocks for each in block.slices]
    loaded = {each.target for each in slices if each.completed or each.failed}
    if not slices or loaded == set(range(len(loads[0].targets))):
        return ""
    seconds = sum(each.end_ns - each.start_ns for each in slices) / len(loads[0].targets)
    lacking = "" if not loaded else " to one of the servers"
    return f"nothing fell due{lacking} in {duration(seconds)} of load"


def is_interrupted(recordings: Sequence[DuetRecording]) -> bool:
    """Whether the load of some start was cut, be it before its first block."""
    return any(each.traffic is not None and each.traffic.ended != "complete" for each in recordings)


def _hangs_on_warmth(metric: Metric, duet: Duet) -> bool:
    ratio = duet.ratio(metric)
    return ratio is not None and duet.hinges_on_warmth(ratio, lambda each: _verdict(each, metric))


def _compare(metric: Metric, duet: Duet) -> AbMetric | None:
    ratio, control = duet.ratio(metric), duet.control(metric)
    if ratio is None:
        return None
    verdict = _verdict(ratio, metric)
    return AbMetric(metric=metric, ratio=_shown(ratio), verdict=verdict, self_ratio=control and _shown(control))


def _shown(ratio: LogRatio) -> Ratio:
    found = ratio.contrast.ratio
    known = not found.says_nothing
    return Ratio(value=found.value, low=found.low if known else None, high=found.high if known else None)


def _verdict(ratio: LogRatio, metric: Metric) -> Verdict:
    return decide(ratio.contrast.ratio, ALIKE, higher_is_better=metric.higher_is_better).verdict
