"""From what was recorded of a case to its judged points. Pure."""

from dataclasses import dataclass, field, replace

import numpy as np

from redline.model import Histogram, Interval, Recording, Traffic
from redline.selftest.chance import Chance
from redline.selftest.judge import Machine, Truth, goal_ns, judge
from redline.selftest.results import QUANTILES, Noise, Point, Quantile

SLICES = 3
_SHARED_CORES = 2


def quantiles(histogram: Histogram) -> tuple[Quantile, ...]:
    """Those that a selftest reports."""
    values = histogram.quantiles_ns(QUANTILES)
    return tuple(Quantile(q=q, ns=ns) for q, ns in zip(QUANTILES, values, strict=True))


def at(found: tuple[Quantile, ...], q: float) -> float:
    """The nanoseconds at q; 0 where it is not reported."""
    return next((each.ns for each in found if each.q == q), 0.0)


@dataclass(frozen=True)
class Way:
    """The round trip of one connection against a server that does nothing: measured before the cases, and after."""

    before: Histogram
    after: Histogram
    both: Histogram = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "both", Histogram.merged((self.before, self.after)))

    @property
    def median_ns(self) -> float:
        """Of both."""
        return self.both.quantile_ns(0.5)

    @property
    def drift_ns(self) -> float:
        """How far the median moved from the selftest's begin to its end."""
        return abs(self.after.quantile_ns(0.5) - self.before.quantile_ns(0.5))


@dataclass(frozen=True)
class Ground:
    """What is known of the machine besides the cases.

    - awake: the round trip when each request follows the answer before it
    - resting: with a pause between two requests, in which the cores of client and server go to sleep
    - sleeper: how late it wakes one who does nothing but sleep
    """

    awake: Way
    resting: Way
    sleeper: Histogram

    @property
    def shortest_ns(self) -> float:
        """The shortest median: another's work may keep cores awake that would rest."""
        return min(each.quantile_ns(0.5) for way in (self.awake, self.resting) for each in (way.before, way.after))


def noise(recording: Recording, traffic: Traffic, server_late: tuple[Quantile, ...], cores: int) -> Noise:
    """What the machine did over the measurement."""
    window_ns = max(1, traffic.measure_end_ns - traffic.measure_start_ns)

    def share(counter: float | None, of: int = 1) -> float | None:
        return None if counter is None else max(0.0, counter / window_ns / of)

    return Noise(
        stolen_share=share(recording.increase("steal_ns", "machine"), cores),
        pressure_share=share(recording.increase("cpu_pressure_ns", "machine")),
        engine_waited_share=share(recording.increase("run_delay_ns", "engine")),
        server_waited_share=share(recording.increase("run_delay_ns", "server")),
        engine_late=quantiles(traffic.lateness),
        server_late=server_late,
    )


def lost_share(seen: Noise, spreads: float) -> float:
    """Of the time, in which engine or server had no core, times how much longer a queue takes to catch up.

    Steal is known for all cores together: what matters is what hit the two that engine and server run on. Of an engine
    that never waited, the probe, which gives way to it, was itself kept from looking: then the pressure stands for it.
    """
    lost = _SHARED_CORES * (seen.stolen_share or 0.0)
    lost += (seen.engine_waited_share or seen.pressure_share or 0.0) + (seen.server_waited_share or 0.0)
    return min(1.0, lost * spreads)


def slices(traffic: Traffic) -> tuple[Histogram, ...]:
    """The measurement in parts of equal length; what came in the drain belongs to the last."""
    measured = [interval for interval in traffic.intervals if interval.phase == "measure"]
    drained = [interval for interval in traffic.intervals if interval.phase == "drain"]
    length = max(1, traffic.measure_end_ns - traffic.measure_start_ns)
    parts: list[list[Interval]] = [[] for _ in range(SLICES)]
    for interval in measured:
        middle = (interval.start_ns + interval.end_ns) / 2 - traffic.measure_start_ns
        parts[min(SLICES - 1, max(0, int(middle / length * SLICES)))].append(interval)
    parts[-1] += drained
    return tuple(Histogram.merged(interval.response for interval in part) for part in parts)


def spread_ns(parts: tuple[Histogram, ...], q: float) -> float:
    """Half of the distance between the largest and the smallest answer of the slices."""
    answers = [part.quantile_ns(q) for part in parts if part.count]
    return float(np.ptp(answers)) / 2 if answers else 0.0


@dataclass(frozen=True)
class Measured:
    """A case as it was measured: the answers, the slices that may be compared, and what the machine did.

    What is held together is answered one after the other: the last of it `burst_ns` later than the first.
    """

    response: Histogram
    lateness: Histogram
    slices: tuple[Histogram, ...]
    seen: Noise
    spreads: float
    burst_ns: float
    goals: dict[float, float]
    idles: bool = False
    held_share: float = 0.0
    held_ns: float = 0.0

    def way(self, ground: Ground) -> Way:
        """The round trip of a machine that is as busy as in this case."""
        return ground.resting if self.idles else ground.awake

    def machine(self, ground: Ground, q: float) -> Machine:
        """The evidence at one percentile."""
        way = self.way(ground)
        return Machine(
            lost_share=lost_share(self.seen, self.spreads),
            way_ns=way.both.quantile_ns(q) - way.median_ns,
            late_ns=self.lateness.quantile_ns(q),
            sleeper_ns=ground.sleeper.quantile_ns(q),
            spread_ns=spread_ns(self.slices, q),
            drift_ns=way.drift_ns,
            pressure_share=self.seen.pressure_share or 0.0,
            held_share=self.held_share,
        )


def judged(measured: Measured, chances: tuple[Chance, ...], ground: Ground) -> tuple[Point, ...]:
    """Every percentile with its truth, answer and judgement."""
    points = []
    for chance in chances:
        truth = _truth(chance, ground, measured)
        points.append(judge(truth, measured.response.quantile_ns(chance.q), measured.machine(ground, chance.q)))
    return tuple(points)


def _allowance_ns(chance: Chance, measured: Measured) -> float:
    """What a stop does not hold is answered at once, and so without the lateness of those that had to wait."""
    if measured.held_share and chance.high_s <= 0:
        return 0.0
    return at(measured.seen.server_late, chance.q) + measured.burst_ns


def _truth(chance: Chance, ground: Ground, measured: Measured) -> Truth:
    way, shortest = measured.way(ground).median_ns, ground.shortest_ns
    truth_ns = chance.truth_s * 1e9 + way
    truth = Truth(
        q=chance.q,
        truth_ns=truth_ns,
        low_ns=chance.low_s * 1e9 + min(way, shortest),
        high_ns=chance.high_s * 1e9 + way,
        allowance_ns=_allowance_ns(chance, measured),
        goal_ns=goal_ns(chance.q, truth_ns),
        scale_ns=measured.held_ns if chance.high_s > 0 else 0.0,
    )
    return replace(truth, goal_ns=measured.goals.get(chance.q, truth.goal_ns))
