"""Findings about whether the requests of an open load fell due, and were sent, by its schedule."""

from bisect import bisect_left
from collections.abc import Sequence

from redline.findings.failed import instead_of_cores
from redline.findings.rules import ARRIVALS_P, EVERYTHING, LONG_TAILS, Observation, Rule
from redline.lazily import dataclass
from redline.model import Cell, HistogramTable, Interval, Open, Traffic
from redline.quantities import duration
from redline.stats.distributions import chi2_tails, poisson_two_sided

FEWEST_DUE = 20
"""The fewest expected requests of an interval for which chi-square fits a Poisson count."""

FEWEST_SLICES = 5


@dataclass(frozen=True)
class DueSlice:
    """An interval: the requests due in it, those expected, and how many may be counted in a neighbour.

    A request counts in the interval in which the engine took it up, which may be later than that of its due time.
    """

    due: int
    expected: float
    shifted: float

    @property
    def off(self) -> float:
        """The distance from the expected count, beyond what lateness explains."""
        return max(abs(self.due - self.expected) - self.shifted, 0.0)


@Rule("arrivals", when="requests", invalid=0.0, touches=EVERYTHING)
def arrivals(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Open loads that were complete.* The number of requests that fell due, in total or in an interval, is not that of
    the schedule; for Poisson arrivals, three tests at p < 0.00001 decide.

    The number due is known: exactly, or for Poisson arrivals by its distribution.

    Advice: Do not use these numbers. Report a fault of the engine, with the recording.
    """
    shape = cell.load.shape
    if not isinstance(shape, Open) or traffic.ended != "complete" or cell.load.count is not None:
        return None  # the end of the window of a load that was cut short or has a count is not known to a request
    if cell.scenario.journey is not None:
        return _journeys_due(shape, traffic)
    intervals = [interval for interval in traffic.intervals if interval.phase != "warmup"]
    # Lateness can only excuse a fault, so it is examined only if there is a fault.
    fault = _fault(shape, traffic, _slices(shape, traffic, intervals, [0] * len(intervals)))
    if fault:
        latest_ns = HistogramTable([interval.lateness for interval in intervals]).max_ns.tolist()
        fault = _fault(shape, traffic, _slices(shape, traffic, intervals, latest_ns))
    return Observation(1.0, f"What fell due does not follow the schedule: {fault}.") if fault else None


def _journeys_due(shape: Open, traffic: Traffic) -> Observation | None:
    """The journeys that fell due, in total: intervals count requests, most of which follow answers."""
    made = traffic.journeys
    if made is None or made.rows_used_up:
        return None
    expected = due_by(shape, traffic.measure_end_ns - traffic.measure_start_ns)
    allowed = 1 + traffic.engine.processes
    is_random = shape.arrivals == "poisson"
    fault = poisson_fault(made.due, expected, ()) if is_random else _exact_fault(made.due, expected, (), allowed)
    return Observation(float(bool(fault)), f"What fell due does not follow the schedule: of journeys, {fault}.")


def _fault(shape: Open, traffic: Traffic, slices: Sequence[DueSlice]) -> str:
    """A deviation that the schedule rules out, or nearly so; empty if there is none."""
    expected = due_by(shape, traffic.measure_end_ns - traffic.measure_start_ns)
    if shape.arrivals == "poisson":
        return poisson_fault(traffic.counts.due, expected, slices)
    return _exact_fault(traffic.counts.due, expected, slices, 1 + traffic.engine.processes)


@Rule("bunched-sends", when="requests", unit=" requests", note=10.0, warn=100.0, biases=LONG_TAILS)
def bunched_sends(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Open loads.* Requests that fall due between the p10 and the p90 of the engine's lateness.

    What falls due while the engine is late goes out at once: the last of a bunch of ten waits for nine service times.

    Advice: Give the engine a core of its own or more workers, or lower the rate.
    """
    if not isinstance(cell.load.shape, Open):
        return None
    rate_per_s = traffic.counts.due / traffic.seconds
    early_ns, late_ns = traffic.lateness.quantiles_ns((0.1, 0.9))
    bunch = rate_per_s * (late_ns - early_ns) / 1e9
    if bunched_sends.grade(bunch) is None:
        return None
    message = (
        f"The engine took up requests {duration(early_ns)} (p10) to {duration(late_ns)} (p90) after they were due, and "
        f"{bunch:,.0f} fall due in between: they went out in bunches."
    )
    return Observation(bunch, message, advice=instead_of_cores(cell, traffic))


def due_by(shape: Open, ns: int) -> float:
    """The scheduled requests in the first `ns` of the measurement; the mean if arrivals are random."""
    if shape.arrivals == "replayed":
        return float(bisect_left(shape.replayed_ns, ns))
    rate, left_ns, area = shape.rate_per_s or 0.0, ns, 0.0
    for stage in shape.stages:
        taken_ns = min(stage.over_ns, left_ns)
        reached = rate + (stage.to - rate) * taken_ns / stage.over_ns if stage.over_ns else stage.to
        area += (rate + reached) / 2 * taken_ns
        rate, left_ns = reached, left_ns - taken_ns
    return (area + rate * left_ns) / 1e9


def poisson_fault(due: int, expected: float, slices: Sequence[DueSlice]) -> str:
    """A deviation that Poisson arrivals show less than once in 1 / ARRIVALS_P trials; empty if there is none.

    The total and the counts of intervals are Poisson. The squared distances in units of the variance sum to chi-square
    (the index of dispersion of counts; Cox and Lewis, The Statistical Analysis of Series of Events, 1966).
    """
    if poisson_two_sided(due, expected) < ARRIVALS_P:
        return f"{due:,} requests fell due where {expected:,.0f} ± {2 * expected**0.5:,.0f} should have"
    judged = [slice_ for slice_ in slices if slice_.expected >= FEWEST_DUE]
    n = len(judged)
    if n < FEWEST_SLICES:
        return ""
    clumped = sum(slice_.off**2 / slice_.expected for slice_ in judged)
    # Lateness moves requests across the ends of intervals, which only increases the differences of counts.
    regular = sum((slice_.due - slice_.expected) ** 2 / slice_.expected for slice_ in judged)
    if chi2_tails(clumped, n)[1] < ARRIVALS_P:
        how, squares = "in clumps", clumped
    elif chi2_tails(regular, n)[0] < ARRIVALS_P:
        how, squares = "too evenly", regular
    else:
        return ""
    dispersion = f"the index of dispersion over {n} intervals is {squares / n:.2g}"
    return f"requests fell due {how}: {dispersion}, and of Poisson arrivals it is near 1"


def _exact_fault(due: int, expected: float, slices: Sequence[DueSlice], allowed: int) -> str:
    """A deviation from a schedule without chance; `allowed` is what rounding at both ends explains."""
    if abs(due - expected) > allowed:
        return f"{due:,} requests fell due where {expected:,.0f} should have"
    worst = max(slices, key=lambda slice_: slice_.off, default=None)
    if worst is None or worst.off <= allowed:
        return ""
    return f"in one interval {worst.due:,} requests fell due where {worst.expected:,.0f} should have"


def _slices(shape: Open, traffic: Traffic, intervals: Sequence[Interval], latest_ns: Sequence[int]) -> list[DueSlice]:
    """The due requests of the measured intervals; `latest_ns` is the longest lateness in every interval."""
    slices, oldest_ns = [], traffic.measure_end_ns
    for interval, late_ns in zip(reversed(intervals), reversed(latest_ns), strict=True):
        reaches_ns = interval.start_ns - late_ns
        if interval.phase == "measure" and interval.lasts_ns > 0:
            slices.append(_slice(shape, traffic, interval, reaches_ns, oldest_ns))
        oldest_ns = min(oldest_ns, reaches_ns)  # a stall may last for several intervals
    return slices[::-1]


def _slice(shape: Open, traffic: Traffic, interval: Interval, reaches_ns: int, oldest_ns: int) -> DueSlice:
    """The due requests of an interval. They reach back to `reaches_ns`, those of later intervals to `oldest_ns`."""

    def due(from_ns: int, to_ns: int) -> float:
        begins_ns = traffic.measure_start_ns
        return due_by(shape, to_ns - begins_ns) - due_by(shape, max(min(from_ns, to_ns) - begins_ns, 0))

    shifted = due(reaches_ns, interval.start_ns) + due(oldest_ns, interval.end_ns)
    return DueSlice(interval.counts.due, due(interval.start_ns, interval.end_ns), shifted)
