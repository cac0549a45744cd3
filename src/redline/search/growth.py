"""Whether a queue only grows: seen after seconds, so that a hopeless probe need not run to its end.

The backlog (due less ended) of a server that keeps up wanders, and comes back. That of one that does not keep up grows
by the same amount in each slice of time, but for chance. So its mean step is compared with the spread of its steps. At
exactly the capacity the backlog is a random walk that cannot fall below zero, and the test's statistic is at most as
large as the absolute value of a standard normal one.

Until a slow server's first answers are there its backlog grows just as straight. So what is before the first outcome
and one long response time after it is not looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np

from redline.model import Histogram
from redline.search.evidence import Evidence, Floats, Slice

SURE = 5.0
"""Standard errors of the mean step: at capacity 6 in ten million at one look; a probe is looked at some fifty times."""

LEAST_SHARE = 0.02
"""Of what fell due, that has to be left over: less is not hopeless, however surely it is known."""

FEWEST = 10
"""Slices before anything is said."""

_LONG = 0.99
"""What is longer than this percentile is less than `LEAST_SHARE`, and cannot make a backlog look hopeless."""

_MUCH_LEFT = 0.3
_QUARTERS = 4


@dataclass(frozen=True)
class Growth:
    """How the backlog grows: per second, as a share of what fell due, and in standard errors."""

    per_s: float
    share: float
    errors: float


def growth(slices: Sequence[Slice]) -> Growth:
    """Of the slices so far, all of which have a length."""
    due = np.array([each.due for each in slices], dtype=np.float64)
    steps = due - np.array([each.ended for each in slices], dtype=np.float64)
    seconds = sum(each.seconds for each in slices)
    if len(slices) < 2 or seconds <= 0 or due.sum() == 0:
        return Growth(0.0, 0.0, 0.0)
    spread = max(float(steps.std(ddof=1)), float(np.sqrt(due.mean())))
    return Growth(
        per_s=float(steps.sum()) / seconds,
        share=float(steps.sum() / due.sum()),
        errors=float(steps.mean() / (spread / np.sqrt(len(steps)))),
    )


def hopeless(slices: Sequence[Slice], patience_s: float = inf) -> bool:
    """Whether more falls due than is done, surely, by enough to matter, and in each quarter of the time so far.

    While nothing at all has ended that is so only after `patience_s`, in seconds: the loosest limit on a response
    time, or the timeout.
    """
    if not _grows(slices):
        return False
    if not any(each.ended for each in slices):
        return sum(each.seconds for each in slices) > patience_s
    return _grows(answering(slices))


def _grows(slices: Sequence[Slice]) -> bool:
    if len(slices) < FEWEST:
        return False
    found = growth(slices)
    return found.errors >= SURE and found.share >= LEAST_SHARE and bool((_quarters(slices) > 0).all())


def answering(slices: Sequence[Slice]) -> Sequence[Slice]:
    """The slices in which what fell due in the probe could have ended: past the first outcome and a long response time.

    Far past its capacity a server's response times grow nearly as fast as time goes by, and nothing would be left.
    There much of what falls due stays, and what ends does not become more: then all from the first outcome on.
    """
    first = next((index for index, each in enumerate(slices) if each.ended), len(slices))
    since = slices[first:]
    seen = Histogram.merged(each.response for each in since)
    if seen.count == 0:
        return since
    long_s, passed_s = seen.quantile_ns(_LONG) / 1e9, np.cumsum([each.seconds for each in since])
    rest = since[int(np.searchsorted(passed_s, long_s)) + 1 :]
    flat = len(rest) < FEWEST <= len(since) and growth(since).share >= _MUCH_LEFT and not _rises(since)
    return since if flat else rest


def _rises(slices: Sequence[Slice]) -> bool:
    """Whether more ends in the later half, by more than one standard deviation of a count."""
    ended = [each.ended for each in slices]
    half = len(ended) // 2
    before, after = sum(ended[:half]), sum(ended[-half:])
    return after - before > float(np.sqrt(before + after))


@lru_cache(maxsize=256)
def overloaded(evidence: Evidence) -> bool:
    """The same of a whole probe, or that it was ended early for it."""
    return evidence.hopeless or hopeless(evidence.timed)


def _quarters(slices: Sequence[Slice]) -> Floats:
    steps = np.array([each.due - each.ended for each in slices], dtype=np.float64)
    return np.array([part.sum() for part in np.array_split(steps, _QUARTERS)])
