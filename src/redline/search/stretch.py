"""Probes that send a recording: the same stretch of it at each speed, so that their answers compare. Pure.

A stretch is the beginning of the recording. At twice the speed it has the same requests in half the time. What fills
the time of a probe at each speed would be other traffic at each of them.
"""

from bisect import bisect_left
from itertools import pairwise

from redline.model import Load, Open
from redline.model.load import SentStretch

FEWEST = 100
"""The fewest requests of a stretch: fewer say next to nothing."""
_PARTS = 10
SPAN = 5.0
"""How many times shorter or longer than asked a probe may be: a search tries faster and slower than its first speed."""


def asked_stretch(load: Load) -> SentStretch:
    """The stretch that lasts as long as the load says at its speed, with at least `FEWEST` requests if there are."""
    shape = load.open_shape
    return stretch_of(shape, max(FEWEST, bisect_left(shape.replayed_ns, load.duration_ns)))


def shortest_probe_ns(load: Load) -> int:
    """The shortest time that a probe may take: that of a recording is shorter at a higher speed."""
    return int(load.duration_ns / SPAN) if load.is_replay else load.duration_ns


def due_in(load: Load) -> int:
    """How many requests of its recording fall due while a load lasts."""
    return bisect_left(load.open_shape.replayed_ns, load.duration_ns)


def stretch_of(shape: Open, requests: int) -> SentStretch:
    """The first requests of a recording, about as many as asked for, or all of them.

    It ends when the next request is due. All of a recording ends a mean gap after the last.
    """
    times = shape.replayed_ns
    if requests < len(times) and times[requests] > times[0]:
        held, ends_ns = bisect_left(times, times[requests]), times[requests]
    else:
        held, ends_ns = len(times), round(times[-1] * len(times) / max(len(times) - 1, 1))
    edges = [bisect_left(times, ends_ns * tenth / _PARTS, hi=held) for tenth in range(_PARTS + 1)]
    busiest = max(later - earlier for earlier, later in pairwise(edges))
    recorded_ns = max(1, round(ends_ns * shape.speed))
    return SentStretch(requests=held, recorded_ns=recorded_ns, peak=busiest * _PARTS / held)


def at_rate(load: Load, stretch: SentStretch, rate_per_s: float) -> Load:
    """The load that sends a stretch of its recording at the speed at which its mean is this rate."""
    return at_speed(load, stretch, rate_per_s / stretch.per_s)


def at_speed(load: Load, stretch: SentStretch, speed: float) -> Load:
    """The load that sends a stretch of its recording so many times as fast as it was recorded."""
    sent = load.open_shape.cut(stretch).sped(speed)
    return load.shaped(sent).lasting(max(1, round(stretch.recorded_ns / speed)))


def without_times(load: Load) -> Load:
    """The load as a probe keeps it: the plan has the times of its recording, which may be many."""
    if not isinstance(load.shape, Open) or load.shape.stretch is None:
        return load
    return load.shaped(load.shape.without_times)
