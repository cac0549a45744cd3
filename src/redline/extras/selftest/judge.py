"""Judge the recording of a case: right, wrong, or too noisy to say. Pure.

An error is *off* only if nothing measured in the same run explains it. The rules in order:

1. An answer that is too *small* is never the machine's fault, because noise only adds; only a round trip that has
   changed since its measurement may explain it.
2. If chance and the server's own lateness alone exceed half of the truth (within a stop, half of its length), it is too
   noisy to say.
3. These two are subtracted from the error. The rest is `ok` if it is within the goal.
4. If an answer is too large, it is too noisy to say if the machine explains the excess over the goal: some process
   waited for a core for a fifth of the time; or lost time affects at least half as many requests as lie beyond the
   percentile, without those that the law itself holds; or the round trip's own tail, the wake-ups of a mere sleeper (as
   far as the engine was late by as much) and the spread of the case's own slices add up to the excess.
5. The maximum is a single request: if it is too large, that says nothing; if it is too small, a request was left out.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats

from redline.extras.selftest.results import QUANTILES, Check, Judgement, Noise, Point, Quantile
from redline.extras.selftest.truth import Chance
from redline.model import Histogram, Recording, Traffic
from redline.quantities import duration, percent
from redline.stats.samples import Floats

GOAL_NS = 20_000.0
GOAL_SHARE = 0.01
UNTOLD_SHARE = 0.5
SPOILING_SHARE = 0.5
BUSY_PRESSURE = 0.2
STANDSTILL_NS = 1e9
ALPHA = 1e-3
"""Significance level of the tests of arrivals."""
SLICES = 3
_SHARED_CORES = 2


@dataclass(frozen=True)
class Truth:
    """The true value at `q` with its allowances, in nanoseconds; see Point.

    The uncertainty is compared with the truth, or with `scale_ns` if that is larger: at the edge of a stop the truth is
    0, and a hundredth of the stop is small.
    """

    q: float
    truth_ns: float
    low_ns: float
    high_ns: float
    allowance_ns: float
    goal_ns: float
    scale_ns: float = 0.0


@dataclass(frozen=True)
class Machine:
    """The machine's influence at a percentile in the same run, in nanoseconds except for shares.

    - lost_share: of the time without a core for engine or server, and until a queue had caught up
    - pressure_share: of the time, in which some process waited for a core
    - held_share: of the requests, those that lie beyond the percentile by the law itself
    - way_ns: the round trip's quantile above its median
    - late_ns: the engine's lateness; sleeper_ns: that of a mere sleeper, outside the cases
    - spread_ns: between the slices of the case
    - drift_ns: change of the round trip's median during the selftest
    """

    lost_share: float = 0.0
    way_ns: float = 0.0
    late_ns: float = 0.0
    sleeper_ns: float = 0.0
    spread_ns: float = 0.0
    drift_ns: float = 0.0
    pressure_share: float = 0.0
    held_share: float = 0.0

    @property
    def explained_ns(self) -> float:
        """The largest excess over the truth that the machine explains."""
        late_ns = min(self.late_ns, self.sleeper_ns)
        return self.way_ns + late_ns + self.spread_ns + self.drift_ns

    def spoils(self, q: float) -> bool:
        """Whether lost time may explain half of the requests beyond q."""
        if q >= 1 or self.lost_share <= 0:
            return False
        beyond = 1 - q
        if beyond > self.held_share - 1e-9:
            beyond -= self.held_share
        return self.lost_share >= SPOILING_SHARE * beyond

    @property
    def busy(self) -> bool:
        """Whether other processes compete for the cores."""
        return self.pressure_share >= BUSY_PRESSURE


def goal_ns(q: float, truth_ns: float) -> float:
    """The goal: 20 us at the median; beyond it 1% of the truth, if that is larger."""
    return GOAL_NS if q <= 0.5 else max(GOAL_NS, GOAL_SHARE * truth_ns)


def judge(truth: Truth, answer_ns: float, machine: Machine) -> Point:
    """Judge an answer at a percentile."""
    judgement, reason = _judgement(truth, answer_ns, machine)
    held_to = {name: value for name, value in vars(truth).items() if name != "scale_ns"}
    error_ns = answer_ns - truth.truth_ns
    return Point(**held_to, answer_ns=answer_ns, error_ns=error_ns, judgement=judgement, reason=reason)


def _judgement(truth: Truth, answer_ns: float, machine: Machine) -> tuple[Judgement, str]:
    below = truth.low_ns - answer_ns - truth.goal_ns
    above = answer_ns - truth.high_ns - truth.allowance_ns - truth.goal_ns
    unknown = (truth.high_ns - truth.low_ns) / 2 + truth.allowance_ns
    if below > machine.drift_ns:
        return "off", f"{duration(below + truth.goal_ns)} less than can be"
    if below > 0:
        return "too noisy to say", f"the round trip's median moved by {duration(machine.drift_ns)}"
    if unknown > max(UNTOLD_SHARE * max(truth.truth_ns, truth.scale_ns), truth.goal_ns):
        return "too noisy to say", f"chance and the server's lateness make {duration(unknown)} of it"
    if above <= 0:
        return "ok", ""
    return _too_large(truth.q, above, machine)


def _too_large(q: float, above_ns: float, machine: Machine) -> tuple[Judgement, str]:
    if q >= 1:
        return "too noisy to say", "one request, and too slow: any pause of the machine does that"
    rivals = _rivals(q, machine)
    if rivals:
        return "too noisy to say", rivals
    if above_ns <= machine.explained_ns:
        return "too noisy to say", f"this machine strays by {duration(machine.explained_ns)} at this percentile"
    return "off", f"{duration(above_ns)} past the goal, and this machine explains {duration(machine.explained_ns)}"


def _rivals(q: float, machine: Machine) -> str:
    """Why other processes determine this percentile; empty if they do not."""
    if machine.spoils(q):
        return f"time without a core reaches {_about(machine.lost_share)} of the requests"
    if machine.busy:
        return f"some process waited for a core for {_about(machine.pressure_share)} of the time"
    return ""


def _about(share: float) -> str:
    return percent(round(share, 3)) if share >= 0.001 else percent(share)


def check_late(name: str, q: float, late_ns: float, limit_ns: float, machine: Machine) -> Check:
    """Compare the engine's lateness with its goal; a mere sleeper's lateness is the machine's part."""
    judgement: Judgement = "ok"
    reason = ""
    if late_ns > limit_ns:
        rivals = _rivals(q, machine)
        reason = rivals or f"a mere sleeper is late by {duration(machine.sleeper_ns)} here"
        judgement = "too noisy to say" if rivals or late_ns - machine.sleeper_ns <= limit_ns else "off"
    return Check(name=name, value=late_ns, limit=limit_ns, unit="ns", judgement=judgement, reason=reason)


@dataclass(frozen=True)
class UniformFit:
    """The largest distance between observations and law, and its critical value at level ALPHA."""

    distance: float
    critical: float


def against_uniform(shares: Floats) -> UniformFit:
    """Test numbers between 0 and 1 against the uniform law (Kolmogorov and Smirnov); an empty sample does not fit."""
    if len(shares) == 0:
        return UniformFit(1.0, 0.0)
    distance = float(stats.kstest(shares, "uniform").statistic)
    return UniformFit(distance, float(stats.kstwo.isf(ALPHA, len(shares))))


def exponential_gaps(arrivals_s: Floats, rate_per_s: float) -> UniformFit:
    """Test gaps against those of a Poisson process: exponential with its rate."""
    return against_uniform(-np.expm1(-rate_per_s * np.diff(np.sort(arrivals_s))))


def even_lateness(arrivals_s: Floats, rate_per_s: float) -> Floats:
    """How far each arrival is behind an even schedule, in seconds, relative to the least late arrival.

    The schedule's origin is not known to the receiver, so a constant delay cannot be seen.
    """
    ordered = np.sort(arrivals_s)
    behind = ordered - np.arange(len(ordered)) / rate_per_s
    return np.asarray(behind - np.min(behind))


def check_fit(name: str, fit: UniformFit, gap_ns: float, machine: Machine) -> Check:
    """Judge a fit. A receiver that wakes up late shifts the distance by that share of the mean gap."""
    judgement: Judgement = "ok"
    reason = ""
    if fit.distance > fit.critical:
        shift = machine.sleeper_ns / gap_ns + machine.lost_share
        judgement = "too noisy to say" if fit.distance - shift <= fit.critical else "off"
        reason = f"late wake-ups and lost time of this machine shift it by {shift:.2g}"
    return Check(name=name, value=fit.distance, limit=fit.critical, unit="distance", judgement=judgement, reason=reason)


def check_answers(wrong: int, overdue: int, longest: Machine) -> Check:
    """Check that every request has its right answer: good percentiles must not hide losses.

    Requests may be `overdue` because the machine stood still; `longest` is its evidence at the maximum.
    """
    judgement: Judgement = "off" if wrong or overdue else "ok"
    reason = ""
    stood_ns = max(longest.late_ns, longest.sleeper_ns, longest.way_ns)
    if wrong:
        reason = "requests without their right answer"
    elif overdue and stood_ns >= STANDSTILL_NS:
        judgement, reason = "too noisy to say", f"the machine stood still for up to {duration(stood_ns)}"
    elif overdue:
        reason = "requests that were not answered in time"
    return Check(
        name="wrong answers", value=wrong + overdue, limit=0, unit="requests", judgement=judgement, reason=reason
    )


def worst(judgements: list[Judgement]) -> Judgement:
    """The worst judgement: off, then too noisy to say, then ok."""
    order: tuple[Judgement, ...] = ("off", "too noisy to say")
    return next((judgement for judgement in order if judgement in judgements), "ok")


def quantiles(histogram: Histogram) -> tuple[Quantile, ...]:
    """The quantiles that a selftest reports."""
    values = histogram.quantiles_ns(QUANTILES)
    return tuple(Quantile(q=q, ns=ns) for q, ns in zip(QUANTILES, values, strict=True))


def at(reported: tuple[Quantile, ...], q: float) -> float:
    """The value at q in nanoseconds; 0 where it is not reported."""
    return next((quantile.ns for quantile in reported if quantile.q == q), 0.0)


@dataclass(frozen=True)
class Way:
    """The round trip of a connection to a server that does nothing, before and after the cases."""

    before: Histogram
    after: Histogram

    @cached_property
    def both(self) -> Histogram:
        """Both measurements, merged."""
        return Histogram.merged((self.before, self.after))

    @property
    def median_ns(self) -> float:
        """The median of both measurements."""
        return self.both.quantile_ns(0.5)

    @property
    def drift_ns(self) -> float:
        """The change of the median between both measurements."""
        return abs(self.after.quantile_ns(0.5) - self.before.quantile_ns(0.5))


@dataclass(frozen=True)
class Ground:
    """Measurements of the machine besides the cases.

    - awake: the round trip when each request follows the answer before it
    - resting: with a pause between two requests, in which the cores of client and server go to sleep
    - sleeper: how late it wakes a process that only sleeps
    """

    awake: Way
    resting: Way
    sleeper: Histogram

    @property
    def shortest_ns(self) -> float:
        """The shortest median: other work may keep cores awake that would sleep."""
        return min(
            histogram.quantile_ns(0.5) for way in (self.awake, self.resting) for histogram in (way.before, way.after)
        )


def noise(recording: Recording, traffic: Traffic, server_late: tuple[Quantile, ...], cores: int) -> Noise:
    """The machine's noise during the measurement."""
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
    """The share of time without a core for engine or server, times the factor by which a queue prolongs it.

    Steal is known only for all cores together, but only steal on the cores of engine and server matters. If the engine
    never waited, the monitor, which has a lower priority, may have been kept from running: the pressure then counts.
    """
    lost = _SHARED_CORES * (seen.stolen_share or 0.0)
    lost += (seen.engine_waited_share or seen.pressure_share or 0.0) + (seen.server_waited_share or 0.0)
    return min(1.0, lost * spreads)


def slices(traffic: Traffic) -> tuple[Histogram, ...]:
    """The measurement in parts of equal length; answers in the drain belong to the last part."""
    length = max(1, traffic.measure_end_ns - traffic.measure_start_ns)
    parts: list[list[Histogram]] = [[] for _ in range(SLICES)]
    for interval in traffic.intervals:
        middle = (interval.start_ns + interval.end_ns) / 2 - traffic.measure_start_ns
        if interval.phase != "warmup":
            parts[min(SLICES - 1, max(0, int(middle / length * SLICES)))].append(interval.response)
    return tuple(map(Histogram.merged, parts))


def spread_ns(parts: tuple[Histogram, ...], q: float) -> float:
    """Half the distance between the largest and the smallest answer of the slices."""
    answers = [part.quantile_ns(q) for part in parts if part.count]
    return float(np.ptp(answers)) / 2 if answers else 0.0


@dataclass(frozen=True)
class Measured:
    """A measured case: the answers, the slices that may be compared, and the machine's noise.

    Requests that are held together are answered in sequence: the last `burst_ns` after the first.
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
        """The round trip of a machine as busy as in this case."""
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
    """All percentiles with truth, answer and judgement."""
    points, way_ns = [], measured.way(ground).median_ns
    for chance in chances:
        # Requests outside a stop are answered at once, without the lateness of those that had to wait.
        at_once = chance.high_s <= 0 and measured.held_share > 0
        truth_ns = chance.truth_s * 1e9 + way_ns
        truth = Truth(
            q=chance.q,
            truth_ns=truth_ns,
            low_ns=chance.low_s * 1e9 + min(way_ns, ground.shortest_ns),
            high_ns=chance.high_s * 1e9 + way_ns,
            allowance_ns=0.0 if at_once else at(measured.seen.server_late, chance.q) + measured.burst_ns,
            goal_ns=measured.goals.get(chance.q, goal_ns(chance.q, truth_ns)),
            scale_ns=measured.held_ns if chance.high_s > 0 else 0.0,
        )
        points.append(judge(truth, measured.response.quantile_ns(chance.q), measured.machine(ground, chance.q)))
    return tuple(points)
