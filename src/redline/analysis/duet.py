"""The answer of a duet: B against A, with A against itself as a control, from the recordings of its starts."""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from redline.model import DuetBlock, DuetRecording, DuetTraffic, Grade, Metric, Verdict
from redline.model.duet import AbFinding, AbMetric, AbReport, Ratio
from redline.quantities import percent
from redline.stats.duets import Floats, LogRatio, over_starts

A, B, CONTROL = 0, 1, 2
"""The places of the servers in a start; without a control there are two."""
ALIKE = 0.02
"""An interval within this of 1 says that both are alike."""
IDLE = 0.01
"""From this share of a core on, a server that is not loaded disturbs the other's slices."""
SIZES = 0.01
"""Answers whose sizes differ by more than this share are said to differ; a header with a date or a number does not."""
BUSY = 0.8
"""Under a closed load without think times, a server that uses less of its cores than this waits for the client."""


def judge(
    names: tuple[str, str], metric: Metric, recordings: Sequence[DuetRecording], *, closed: bool, cores: int
) -> AbReport | None:
    """The report; None where no start has a complete block. `cores` are those of each server, 0 where not known."""
    starts = [each for each in recordings if each.traffic is not None and _measured(each.traffic)]
    if not starts:
        return None
    metrics = [found for each in _metrics(closed=closed) if (found := _compare(each, starts)) is not None]
    chosen = next((each for each in metrics if each.metric is metric), None)
    if chosen is None:
        return None
    last = starts[-1]
    ended_ns = _traffic(last).epoch_unix_ns + max(
        each.end_ns for block in _traffic(last).blocks for each in block.slices
    )
    return AbReport(
        a=names[A],
        b=names[B],
        metric=metric,
        ratio=chosen.ratio,
        verdict=chosen.verdict,
        self_ratio=chosen.self_ratio,
        starts=len(starts),
        seconds=(ended_ns - recordings[0].started_unix_ns) / 1e9,
        interrupted=any(_traffic(each).ended != "complete" for each in starts),
        also=tuple(each for each in metrics if each is not chosen),
        findings=tuple(_findings(starts, metrics, closed=closed, cores=cores)),
    )


def _metrics(*, closed: bool) -> tuple[Metric, ...]:
    """An open load's throughput is what its schedule says, and no comparison."""
    rate = (Metric.THROUGHPUT,) if closed else ()
    return (Metric.CPU_PER_REQUEST, *rate, Metric.P50, Metric.P99)


def _compare(metric: Metric, starts: Sequence[DuetRecording]) -> AbMetric | None:
    ratio = _ratio(metric, starts, B)
    if ratio is None:
        return None
    control = _ratio(metric, starts, CONTROL) if len(_traffic(starts[0]).targets) > CONTROL else None
    return AbMetric(
        metric=metric,
        ratio=_shown(ratio),
        verdict=_verdict(ratio, metric),
        self_ratio=control and _shown(control),
    )


def _ratio(metric: Metric, starts: Sequence[DuetRecording], target: int) -> LogRatio | None:
    """A target over A; None where the metric was not read in every start."""
    found = [_log_ratios(metric, _traffic(each), target) for each in starts]
    whole = [each for each in found if each is not None and len(each)]
    return over_starts(whole) if len(whole) == len(starts) else None


def _log_ratios(metric: Metric, traffic: DuetTraffic, target: int) -> Floats | None:
    """One value for each block; of a percentile one for the start, because a slice has too few requests."""
    match metric:
        case Metric.CPU_PER_REQUEST:
            return _by_block(traffic, target, _cpu_per_request)
        case Metric.THROUGHPUT:
            return _by_block(traffic, target, _throughput)
        case _:
            q = {Metric.P50: 0.5, Metric.P99: 0.99}[metric]
            base, other = (traffic.targets[each].response.quantiles_ns([q])[0] for each in (A, target))
            return np.array([math.log(other / base)]) if base and other else None


def _by_block(traffic: DuetTraffic, target: int, of: Callable[[DuetBlock, int], float | None]) -> Floats | None:
    values = [(of(block, A), of(block, target)) for block in _measured(traffic)]
    logs = [math.log(other / base) for base, other in values if base and other]
    return np.array(logs) if logs else None


def _cpu_per_request(block: DuetBlock, target: int) -> float | None:
    slices = [each for each in block.slices if each.target == target]
    used = [each.cpu_ns[target] if each.cpu_ns else None for each in slices]
    completed = sum(each.completed for each in slices)
    known = [each for each in used if each is not None]
    return sum(known) / completed if completed and len(known) == len(used) else None


def _throughput(block: DuetBlock, target: int) -> float | None:
    slices = [each for each in block.slices if each.target == target]
    measured_ns = sum(each.measured_ns for each in slices)
    return sum(each.measured for each in slices) / measured_ns * 1e9 if measured_ns else None


def _shown(ratio: LogRatio) -> Ratio:
    known = math.isfinite(ratio.high)
    return Ratio(
        value=math.exp(ratio.value),
        low=math.exp(ratio.low) if known else None,
        high=math.exp(ratio.high) if known else None,
    )


def _verdict(ratio: LogRatio, metric: Metric) -> Verdict:
    if ratio.low > 0 or ratio.high < 0:
        return Verdict.FASTER if (ratio.low > 0) == metric.higher_is_better else Verdict.SLOWER
    alike = math.log1p(ALIKE)
    return Verdict.EQUIVALENT if -alike < ratio.low and ratio.high < alike else Verdict.INCONCLUSIVE


def _findings(
    starts: Sequence[DuetRecording], metrics: Sequence[AbMetric], *, closed: bool, cores: int
) -> Iterable[AbFinding]:
    if len(starts) == 1:
        message = "there was one start: how starts differ is not known, and not part of the intervals"
        yield AbFinding(kind="one-start", grade=Grade.WARN, message=message)
    elif len(starts) < 5:
        message = f"there were only {len(starts)} starts: give --for more time for narrower intervals"
        yield AbFinding(kind="few-starts", grade=Grade.NOTE, message=message)
    for each in metrics:
        own = each.self_ratio
        if each.metric is Metric.CPU_PER_REQUEST and own and own.low and own.high and not own.low <= 1 <= own.high:
            message = "A against itself reads as different, which happens by chance in 5 of 100 runs"
            yield AbFinding(kind="control", grade=Grade.WARN, message=message)
    yield from _disagreement(metrics)
    slices = [each for start in starts for block in _measured(_traffic(start)) for each in block.slices]
    for target, name in enumerate(("A", "B", "A")):
        mine = [each for each in slices if each.target == target]
        failed, completed = sum(each.failed for each in mine), sum(each.completed for each in mine)
        if failed:
            message = f"{failed:,} of {failed + completed:,} requests to {name} failed"
            yield AbFinding(kind="errors", grade=Grade.WARN, message=message)
    sizes = [_answer_size(starts, target) for target in (A, B)]
    if all(sizes) and abs(math.log(sizes[B] / sizes[A])) > SIZES:
        message = f"an answer of A has {sizes[A]:.0f} bytes, one of B {sizes[B]:.0f}: do both do the same work?"
        yield AbFinding(kind="answer-sizes", grade=Grade.NOTE, message=message)
    loaded_ns = sum(each.end_ns - each.start_ns for each in slices)
    idle_ns = sum(used or 0 for each in slices for target, used in enumerate(each.cpu_ns) if target != each.target)
    # Of servers that run already, A and its control are one process, which is never idle in the slices of either.
    apart = all(None not in start.servers for start in starts)
    if apart and loaded_ns and idle_ns / loaded_ns > IDLE:
        message = f"servers that were not loaded used {percent(idle_ns / loaded_ns)} of a core in the slices of others"
        yield AbFinding(kind="idle-work", grade=Grade.WARN, message=message)
    busy_ns = sum(each.cpu_ns[each.target] or 0 for each in slices if each.cpu_ns)
    if closed and cores and busy_ns and busy_ns / loaded_ns / cores < BUSY:
        message = (
            f"the servers used {percent(busy_ns / loaded_ns / cores)} of their cores: the client limits the rates,"
            " so their ratio is closer to 1 than that of the servers"
        )
        yield AbFinding(kind="client-limited", grade=Grade.NOTE, message=message)


def _answer_size(starts: Sequence[DuetRecording], target: int) -> float:
    """The mean number of bytes of an answer with its head; 0 where none came."""
    counts = [_traffic(each).targets[target].counts for each in starts]
    answers = sum(sum(each.status.values()) for each in counts)
    return sum(each.bytes_received for each in counts) / answers if answers else 0.0


def _disagreement(metrics: Sequence[AbMetric]) -> Iterable[AbFinding]:
    """CPU per request and throughput are one story under a closed load; where their verdicts are opposite, say so."""
    verdicts = {each.metric: each.verdict for each in metrics}
    both = {verdicts.get(Metric.CPU_PER_REQUEST), verdicts.get(Metric.THROUGHPUT)}
    if both == {Verdict.FASTER, Verdict.SLOWER}:
        message = "CPU per request and throughput disagree: one is better for B, the other for A"
        yield AbFinding(kind="disagreement", grade=Grade.WARN, message=message)


def _traffic(recording: DuetRecording) -> DuetTraffic:
    assert recording.traffic is not None, "starts without traffic were left out"
    return recording.traffic


def _measured(traffic: DuetTraffic) -> list[DuetBlock]:
    return [block for block in traffic.blocks if block.phase == "measure"]
