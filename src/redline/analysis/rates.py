"""Whether two response times may be held against each other: only where as much was asked of both. Pure."""

from collections.abc import Sequence

from redline.model import Closed, Load, Metric, Recording
from redline.quantities import percent
from redline.stats import SHARES

RATE_TOLERANCE = 0.01
"""By so much may what was answered differ from what was due, and one rate from another."""
_FEWEST = 10
"""And by so many requests: at the ends of a short window some are always under way."""

CAVEAT = (
    "Users of a closed load wait for their answers, so response times follow from the throughput (Little's law), which "
    "differs: no finding of its own. An open load asks as much of both."
)


def refused_for_rate(load: Load, metric: Metric, ours: Sequence[Recording], theirs: Sequence[Recording]) -> str:
    """Why the response times of two cells may not be compared; empty when they may, and for other metrics.

    Where a schedule decides what is asked, a server that does not keep up is compared at another rate, and its
    response times say how long the trial was.
    """
    if metric not in SHARES or _waits(load):
        return ""
    for name, side in (("the cell", ours), ("the baseline", theirs)):
        due, completed = _totals(side)
        if due > 0 and abs(due - completed) > max(RATE_TOLERANCE * due, _FEWEST):
            return (
                f"{name} answered {percent(completed / due)} of what was due: response times are compared only where "
                f"both answer what they were asked, to {percent(RATE_TOLERANCE)}"
            )
    return ""


def caveat_of_rate(load: Load, metric: Metric, ours: Sequence[Recording], theirs: Sequence[Recording]) -> str:
    """What to know of the ratio of two response times whose rates came out different; empty when there is nothing."""
    if metric not in SHARES or not _waits(load):
        return ""
    rates = [_rate(side) for side in (ours, theirs)]
    return CAVEAT if max(rates) > (1 + RATE_TOLERANCE) * min(rates) else ""


def _waits(load: Load) -> bool:
    """Whether users ask again only when they were answered, so that the server decides how much is asked of it."""
    return isinstance(load.shape, Closed) and load.shape.pace_per_s is None


def _totals(side: Sequence[Recording]) -> tuple[int, int]:
    counts = [recording.traffic.counts for recording in side if recording.traffic]
    return sum(each.due for each in counts), sum(each.completed for each in counts)


def _rate(side: Sequence[Recording]) -> float:
    seconds = sum(recording.traffic.seconds for recording in side if recording.traffic)
    return _totals(side)[1] / seconds if seconds > 0 else 0.0
