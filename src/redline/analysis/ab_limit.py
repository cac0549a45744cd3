"""The ratio of two limits that were found in one session."""

from math import exp, hypot, log

from redline.analysis.ab import ALIKE
from redline.model import Verdict
from redline.model.ab_limit import AbLimitReport
from redline.model.duet import Ratio
from redline.model.limits import CellLimit, LimitAnswer


def judge_limits(
    names: tuple[str, str],
    objective: str,
    searches: tuple[CellLimit, CellLimit],
    *,
    seconds: float,
    interrupted: bool = False,
) -> AbLimitReport:
    """The report. There is no verdict while a limit is not known, or known by single rates only."""
    one, other = (next(iter(cell.limits), None) for cell in searches)
    confidence = None if one is None or other is None else _confidence(one, other)
    ratio = None if one is None or other is None else _ratio(one, other, independent=confidence is not None)
    known = ratio if confidence is not None else None
    return AbLimitReport(
        a=names[0],
        b=names[1],
        objective=objective,
        ratio=ratio,
        confidence=confidence if ratio else None,
        verdict=Verdict.INCONCLUSIVE if known is None else _verdict(known),
        seconds=seconds,
        interrupted=interrupted,
        searches=searches,
    )


def _confidence(one: LimitAnswer, other: LimitAnswer) -> float | None:
    both = one.confidence, other.confidence
    return None if None in both else min(each for each in both if each is not None)


def _ratio(one: LimitAnswer, other: LimitAnswer, *, independent: bool) -> Ratio | None:
    """Of the middles on a logarithmic scale; None while an end is not known.

    Independent errors add by their squares. Intervals that nobody knows the confidence of add as they are.
    """
    logs = [_middle_and_half(each) for each in (one, other)]
    if logs[0] is None or logs[1] is None:
        return None
    (middle_a, half_a), (middle_b, half_b) = logs[0], logs[1]
    half, value = (hypot(half_a, half_b) if independent else half_a + half_b), middle_b - middle_a
    return Ratio(value=exp(value), low=exp(value - half), high=exp(value + half))


def _middle_and_half(answer: LimitAnswer) -> tuple[float, float] | None:
    low, high = answer.passed_per_s, answer.failed_per_s
    if low is None or high is None or low <= 0:
        return None
    return (log(low) + log(high)) / 2, (log(high) - log(low)) / 2


def _verdict(ratio: Ratio) -> Verdict:
    low, high = ratio.low or 0.0, ratio.high or 0.0
    if not low <= 1 <= high:
        return Verdict.FASTER if low > 1 else Verdict.SLOWER
    return Verdict.EQUIVALENT if low > 1 / (1 + ALIKE) and high < 1 + ALIKE else Verdict.INCONCLUSIVE
