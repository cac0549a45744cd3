"""The speed of a server over a measurement: the rate, or the median or a tail of response times, by interval."""

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redline.findings.warming import FEWEST_SAMPLES
from redline.lazily import dataclass
from redline.model import Traffic
from redline.model.traffic import TICK_NS
from redline.quantities import duration, rate
from redline.stats import Trial
from redline.stats.samples import Floats
from redline.stats.series import Plateau, levels

LEAST_STEP = math.log1p(0.05)
"""Levels that differ by less are the same: shared machines wander by a twentieth from second to second."""

RATE, MEDIAN, TAIL = "rate", "p50 response time", "p90 response time"


@dataclass(frozen=True)
class SpeedCourse:
    """The log of the server's speed in each measured interval: its rate, or 1 / a quantile of response times.

    Starts and ends are seconds since the measurement began.
    """

    name: str
    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    speeds: Floats
    requests: tuple[int, ...]

    @cached_property
    def levels(self) -> list[Plateau]:
        """Its levels, in order."""
        return levels(self.speeds, LEAST_STEP)

    def written(self, speed: float) -> str:
        """A speed, as readers know it."""
        return rate(math.exp(speed)) if self.name == RATE else duration(math.exp(-speed))

    def without(self, left_out: NDArray[np.bool_]) -> "SpeedCourse":
        """The course without these intervals."""
        if not left_out.any():
            return self
        kept = np.flatnonzero(~left_out).tolist()
        starts_s, ends_s = (tuple(times[i] for i in kept) for times in (self.starts_s, self.ends_s))
        return SpeedCourse(self.name, starts_s, ends_s, self.speeds[kept], tuple(self.requests[i] for i in kept))


def course(trial: Trial, traffic: Traffic, name: str) -> SpeedCourse:
    """The course of the rate, or of a quantile of response times, without a much shorter last interval."""
    return trial.once(("course", name), lambda: _course(trial, traffic, name))


def _course(trial: Trial, traffic: Traffic, name: str) -> SpeedCourse:
    measured = [(i, interval) for i, interval in enumerate(trial.intervals) if interval.phase == "measure"]
    longest = max((interval.lasts_ns for _, interval in measured), default=0)
    whole = [(i, interval) for i, interval in measured if 0 < interval.lasts_ns >= longest / 2]
    if name == RATE:
        # Half an answer in place of none, since zero has no logarithm.
        speeds = [max(interval.counts.completed, 0.5) / interval.lasts_ns * 1e9 for _, interval in whole]
    else:
        whole = [(i, interval) for i, interval in whole if trial.totals[i] >= FEWEST_SAMPLES]
        column = 0 if name == MEDIAN else 1
        speeds = [1.0 / max(trial.interval_quantiles_ns[i][column], 1) for i, _ in whole]
    since_ns = traffic.measure_start_ns
    return SpeedCourse(
        name,
        tuple((interval.start_ns - since_ns) / 1e9 for _, interval in whole),
        tuple((interval.end_ns - since_ns) / 1e9 for _, interval in whole),
        np.log(speeds),
        tuple(trial.totals[i] for i, _ in whole),
    )


def ticks(traffic: Traffic, width: int, least_ns: int) -> SpeedCourse | None:
    """The course of the rate by ticks, of which `width` are taken together; None if they are shorter than `least_ns`.

    Also None if intervals have no ticks, or end within one.
    """
    measured = [interval for interval in traffic.intervals if interval.phase == "measure"]
    whole = measured[:-1] if measured and measured[-1].lasts_ns % TICK_NS else measured
    if not whole or width * TICK_NS < least_ns:
        return None
    if any(len(interval.ticks) * TICK_NS != interval.lasts_ns for interval in whole):
        return None
    fine = np.concatenate([interval.ticks for interval in whole])
    n, width_s = len(fine) // width, width * TICK_NS / 1e9
    counts = fine[: n * width].reshape(n, width).sum(axis=1)
    since_s = (whole[0].start_ns - traffic.measure_start_ns) / 1e9
    return SpeedCourse(
        RATE,
        tuple((since_s + width_s * np.arange(n)).tolist()),
        tuple((since_s + width_s * np.arange(1, n + 1)).tolist()),
        np.log(np.maximum(counts, 0.5) / width_s),
        tuple(counts.tolist()),
    )


def time_of(seconds: float) -> str:
    """A time since the measurement began, as readers know it."""
    return duration(seconds * 1e9) if seconds else "its beginning"
