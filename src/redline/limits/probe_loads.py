"""The loads of a search: how long they take, what they are called, and what they showed. Pure."""

from typing import Literal

from redline.model import Cell, Closed, Interval, Load, Plan, Traffic
from redline.model.load import SentStretch
from redline.model.search import ProbeRecording
from redline.model.timeline import SearchedLoad
from redline.quantities import duration
from redline.search import ProbeSlice
from redline.search.curve import CURVE_SHARES
from redline.search.stretch import FEWEST, SPAN
from redline.suite import expected_trial_ns

SETTLE_NS = 1_000_000_000
"""The longest warm-up of a probe on a warm server: its connections are new."""

OVERLOAD_TEST = 8
"""The length of the overload test in probes, at most."""

FIRST_PER_S, FIRST_USERS = 1000.0, 64
"""The first rate, and the first number of users, if neither the terms nor the cell's load sets it."""
MOST_USERS = 1_000_000
JOIN_PER_S = 1000
"""How many users join per second, at most, where each holds on to a conversation: handshakes are no storm then."""
FIRST_SHARE = 0.7
"""The first rate as a share of the rate at the end of the warm-up: usually below the limit, its double above."""


def under_probe(cell: Cell, load: Load) -> Cell:
    """The cell under the load of a probe: the server is warm by then. Users of conversations join over its warm-up."""
    ramps_up = isinstance(load.shape, Closed) and load.shape.ramps_up
    joins_ns = load.connections * 1_000_000_000 // JOIN_PER_S if ramps_up else 0
    return cell.under(load, warmup_ns=max(min(SETTLE_NS, cell.warmup_ns), joins_ns))


def with_users(cell: Cell, users: int) -> Load:
    """The closed load of a cell with so many users; those who hold on to WebSockets or streams join one by one."""
    talks = any(request.websocket or request.stream for request in cell.scenario.requests)
    return cell.load.of_users(users, ramps_up=talks and not cell.scenario.unmeasured)


def longest_ns(plan: Plan, most_probes: int, *, beyond: bool) -> int:
    """Roughly the longest time for the searches on a plan's cells, in nanoseconds."""
    loads, starts = most_probes + len(CURVE_SHARES) + (OVERLOAD_TEST if beyond else 0), 1 + plan.suite.trials
    return sum(lasts_ns(cell, loads, starts) for cell in plan.cells.values())


def lasts_ns(cell: Cell, loads: int, starts: int) -> int:
    """How long so many probes take on so many starts of the cell's server, roughly, in nanoseconds."""
    longest = SPAN if cell.load.is_replay else 1
    probe_ns = int(cell.load.duration_ns * longest) + min(SETTLE_NS, cell.warmup_ns)
    approach_ns = min(cell.load.duration_ns, cell.warmup_ns)
    load_ns = cell.load.duration_ns + cell.load.unloaded_ns(cell.load.duration_ns)
    start_ns = expected_trial_ns(cell) - load_ns + approach_ns
    return loads * probe_ns + starts * start_ns


def answered_at_last_per_s(traffic: Traffic) -> float:
    """Right answers per second in the second half of a load: at first it connects, and a server may be cold."""
    late = traffic.intervals[len(traffic.intervals) // 2 :]
    seconds = sum(interval.lasts_ns for interval in late) / 1e9
    return sum(interval.counts.completed for interval in late) / max(seconds, 1e-9)


def requests_per_journey(traffic: Traffic) -> float:
    """How many requests a journey has, as far as journeys came; 1 for other scenarios, whose rate is of requests."""
    journeys = traffic.journeys
    return max(traffic.counts.due / journeys.due, 1.0) if journeys is not None and journeys.due else 1.0


def lowest_per_s(probe_ns: int) -> float:
    """The lowest rate that is worth a probe of that length."""
    return FEWEST / (probe_ns / 1e9)


def load_text(cell: Cell, stretch: SentStretch | None = None) -> str:
    """Describe the probes of a cell: `open, poisson, 256 connections, 5.00 s after 1.00 s`.

    By users: `closed, 5.00 s after 1.00 s`; of conversations `… or more, in which users join, 1,000 a second at most`.
    Of a recording: `open, the first 1,200 of 36,000 recorded requests, in 20.5 s at 1x, 256 connections, after 1.00 s`.
    """
    load, after = cell.load, f"after {duration(min(SETTLE_NS, cell.warmup_ns))}"
    if load.by_users:
        shape = with_users(cell, 1).shape
        joins = isinstance(shape, Closed) and shape.ramps_up
        longer = f" or more, in which users join, {JOIN_PER_S:,} per second at most" if joins else ""
        return f"closed, {duration(load.duration_ns)} {after}{longer}"
    shape = load.open_shape
    connections = f"{shape.connections:,} connections"
    if not shape.is_replay:
        return f"open, {shape.arrivals}, {connections}, {duration(load.duration_ns)} {after}"
    every = len(shape.replayed_ns)
    if stretch is None:
        return f"open, {every:,} recorded requests, {connections}, {after}"
    sent = f"the first {stretch.requests:,} of {every:,}" if stretch.requests < every else f"all {every:,}"
    return f"open, {sent} recorded requests, in {duration(stretch.recorded_ns)} at 1x, {connections}, {after}"


def slice_of(interval: Interval, *, cut: bool = False) -> ProbeSlice:
    """A slice from an interval of the measurement, or of the drain, which has no length: nothing falls due in it.

    `cut`: Redline ended the load, so requests without an answer by then are no errors.
    """
    counts, measured = interval.counts, interval.phase == "measure"
    ended_by_us = counts.outcomes.in_flight + counts.outcomes.unsent if cut else 0
    return ProbeSlice(
        seconds=(interval.end_ns - interval.start_ns) / 1e9 if measured else 0.0,
        due=counts.due,
        answered=counts.completed if measured else counts.outcomes.ok,
        errors=counts.outcomes.errors - ended_by_us,
        response=interval.response,
    )


def searched_load(made: ProbeRecording, traffic: Traffic, probe: int, *, by_users: bool) -> SearchedLoad:
    """When the load ran, and at which rate, or with how many users; `probe` is its index if it is a probe."""
    phase: Literal["warmup", "approach", "probe", "overload"] = "probe"
    if made.phase in ("warmup", "approach", "overload"):
        phase = made.phase
    return SearchedLoad(
        phase=phase,
        start=made.start,
        measured_from_s=traffic.measure_start_ns / 1e9,
        ends_s=traffic.measure_end_ns / 1e9,
        rate_per_s=made.rate_per_s or None,
        users=made.load.connections if by_users else None,
        answered_per_s=answered_at_last_per_s(traffic),
        probe=probe if phase == "probe" else None,
    )
