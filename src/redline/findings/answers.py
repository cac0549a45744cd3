"""Whether right answers keep their length, where nothing but their status is compared under load."""

import math
from collections.abc import Sequence

import numpy as np
import scipy

from redline.findings.doubt import doubt
from redline.findings.groups import two_groups
from redline.findings.rules import TREND_P
from redline.findings.steadiness import trend
from redline.model import Cell, Expected, Finding, FindingKind, Recording, Traffic
from redline.quantities import percent

FEWEST_ANSWERS = 20
"""Answers in an interval below which one that reaches over its end weighs too much."""


def shrinking(cell: Cell, recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """The finding that answers had other lengths at one time of the measurement than at another."""
    if _lengths_are_checked(cell) or _wrong(traffic):
        return ()
    counted = [i.counts for i in traffic.intervals if i.phase == "measure" and i.counts.completed >= FEWEST_ANSWERS]
    return _changed([one.bytes_received / one.completed for one in counted], "intervals", recording)


def shrinking_between(cell: Cell, used: Sequence[Recording]) -> tuple[Finding, ...]:
    """The finding that answers had other lengths in some trials than in others."""
    if _lengths_are_checked(cell):
        return ()
    told = [one.traffic for one in sorted(used, key=lambda one: one.position) if one.traffic]
    counted = [one.counts for one in told if one.counts.completed >= FEWEST_ANSWERS and not _wrong(one)]
    return _changed([one.bytes_received / one.completed for one in counted], "trials", cell)


def _changed(sizes: list[float], parts: str, about: Cell | Recording) -> tuple[Finding, ...]:
    if not all(size > 0 for size in sizes):
        return ()
    split, change = two_groups(sizes), max((trend(sizes), from_end_to_end(sizes)), key=abs)
    if split is not None and split.apart >= abs(change):
        below, above = split.sizes
        message = (
            f"Right answers had {split.upper:,.0f} bytes each in {above} {parts} and {split.lower:,.0f} in {below}, "
            f"headers included."
        )
        return doubt(FindingKind.SHRINKING_ANSWERS, split.apart, message, about)
    message = (
        f"From the first to the last of {len(sizes)} {parts} right answers {'grew' if change > 0 else 'shrank'} by "
        f"{percent(abs(change))}, headers included."
    )
    return doubt(FindingKind.SHRINKING_ANSWERS, abs(change), message, about)


def from_end_to_end(sizes: Sequence[float]) -> float:
    """The relative change from the first third to the last third; 0 when it may be chance, by the t test of the logs.

    It sees what happens once, in the middle, and in the middle of an interval.
    """
    third = len(sizes) // 3
    if third < 2:
        return 0.0
    first, last = np.log(sizes[:third]), np.log(sizes[-third:])
    change = float(last.mean() - first.mean())
    error = math.sqrt((float(first.var(ddof=1)) + float(last.var(ddof=1))) / third)
    if error > 0 and not 2 * scipy.stats.t.sf(abs(change) / error, 2 * third - 2) < TREND_P:
        return 0.0
    return math.expm1(change)


def _lengths_are_checked(cell: Cell) -> bool:
    """Whether an answer of another length is a wrong one: then it has its own finding."""
    return all(_fixes_length(request.expect) for request in cell.scenario.requests)


def _fixes_length(expect: Expected) -> bool:
    if expect.under_load == "status":
        return False
    return expect.body_length is not None or (expect.under_load == "hash" and expect.body_sha256 is not None)


def _wrong(traffic: Traffic) -> bool:
    """Whether there were wrong answers, whose bytes count as well; they have their own finding."""
    outcomes = traffic.counts.outcomes
    return outcomes.unexpected_status + outcomes.unexpected_body + outcomes.malformed > 0
