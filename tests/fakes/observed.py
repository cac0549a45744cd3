"""What an engine and the monitors would have seen of a trial of a server with a given behaviour."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from redline.findings.arrivals import due_by
from redline.model import (
    AgreedTls,
    Cell,
    Closed,
    Counts,
    Engine,
    Histogram,
    Interval,
    OneWay,
    Open,
    Outcomes,
    Series,
    Signed,
    Subject,
    Traffic,
)
from redline.model.traffic import Phase
from tests.fakes.behaviour import Behaviour

INTERVAL_NS = 100_000_000


def observed_traffic(cell: Cell, behaviour: Behaviour, rng: Generator, started_unix_ns: int) -> Traffic:
    """The engine's observations."""
    measured_ns = int(cell.load.duration_ns * behaviour.measured)
    end_ns = cell.warmup_ns + measured_ns
    intervals = [
        _interval(cell, behaviour, rng, phase, index, start, stop)
        for index, (phase, start, stop) in enumerate(_slices(cell.warmup_ns, end_ns))
    ]
    measured = [interval for interval in intervals if interval.phase != "warmup"]
    return Traffic(
        engine=Engine(name="simulated", version="0", backend="none", workers=1, cpus=(1,) if behaviour.pinned else ()),
        connections=cell.load.connections,
        connect_ns=800_000,
        epoch_unix_ns=started_unix_ns + 40_000_000,
        measure_start_ns=cell.warmup_ns,
        measure_end_ns=end_ns,
        ended=behaviour.ended,
        counts=Counts.merged(interval.counts for interval in measured),
        response=Histogram.merged(interval.response for interval in measured),
        service=Histogram.merged(interval.service for interval in measured),
        lateness=Histogram.merged(interval.lateness for interval in measured),
        one_way=OneWay.merged(interval.one_way for interval in measured if interval.one_way),
        tls=None if behaviour.handshake_ns is None else AgreedTls(version="1.3", cipher="simulated", alpn="http/1.1"),
        engine_cpu_ns=int(behaviour.engine_busy * measured_ns),
        intervals=tuple(intervals),
    )


def _slices(warmup_ns: int, end_ns: int) -> list[tuple[Phase, int, int]]:
    phases: tuple[tuple[Phase, int, int], ...] = (("warmup", 0, warmup_ns), ("measure", warmup_ns, end_ns))
    slices: list[tuple[Phase, int, int]] = []
    for phase, begin, end in phases:
        slices += [(phase, at, min(at + INTERVAL_NS, end)) for at in range(begin, end, INTERVAL_NS)]
    return [*slices, ("drain", end_ns, end_ns + 1_000_000)]


def _interval(
    cell: Cell, behaviour: Behaviour, rng: Generator, phase: Phase, index: int, start_ns: int, end_ns: int
) -> Interval:
    progress = max(0.0, (start_ns - cell.warmup_ns) / cell.load.duration_ns)
    speed = behaviour.cold_share if start_ns < behaviour.cold_s * 1e9 else 1.0
    noise = float(np.exp(rng.normal(0.0, behaviour.noise)))
    rate, mean_ns = _rate_and_mean(cell, behaviour, progress, noise, speed)
    seconds = 0.0 if phase == "drain" else (end_ns - start_ns) / 1e9
    due = round(rate * seconds)
    if isinstance(cell.load.shape, Open) and seconds > 0:
        due = _due(cell, behaviour, rng, start_ns, end_ns)
    first = phase == "measure" and start_ns == cell.warmup_ns
    bad = {kind: count for kind, count in behaviour.outcomes.items() if first}
    shape = rng.lognormal(np.log(mean_ns) - behaviour.spread**2 / 2, behaviour.spread, due)
    pause_ns = behaviour.pauses_s.get(index, 0.0) * 1e9
    shape[: round(rate * pause_ns / 1e9)] += np.linspace(0, pause_ns, min(round(rate * pause_ns / 1e9), due))
    late = rng.exponential(behaviour.lateness_ns, due)
    counts = Counts(
        due=due,
        sent=due,
        waited=round(due * behaviour.waited),
        completed=round((due - sum(bad.values())) * behaviour.achieved),
        bytes_sent=due * 64,
        bytes_received=round(due * 120 * (1.0 - behaviour.shrinks * (progress >= 0.5))),
        status={"2xx": due - sum(bad.values())},
        exhausted=behaviour.exhausted if first else 0,
        outcomes=Outcomes(**{"ok": due - sum(bad.values()), **bad}),
    )
    return Interval(
        phase=phase,
        index=index,
        start_ns=start_ns,
        end_ns=end_ns,
        counts=counts,
        response=Histogram.of(shape),
        service=Histogram.of(shape * 0.97),
        lateness=Histogram.of(late),
        handshake=_handshakes(cell, behaviour, rng, first=start_ns == 0),
        one_way=_one_way(behaviour, shape),
        engine_cpu_ns=int(behaviour.engine_busy * (end_ns - start_ns)),
    )


def _due(cell: Cell, behaviour: Behaviour, rng: Generator, start_ns: int, end_ns: int) -> int:
    """Requests of an open load that fall due between two times since the epoch."""
    shape, into_ns = cell.load.shape, (start_ns - cell.warmup_ns, end_ns - cell.warmup_ns)
    assert isinstance(shape, Open)
    if into_ns[0] < 0:
        return round((shape.rate_per_s or 0.0) * (end_ns - start_ns) / 1e9)
    begin, end = (due_by(shape, ns) * behaviour.offered for ns in into_ns)
    excess = behaviour.clumps if start_ns // INTERVAL_NS % 2 else -behaviour.clumps
    if shape.arrivals != "poisson" or behaviour.even:
        return round((round(end) - round(begin)) * (1.0 + excess))
    return int(rng.spawn(1)[0].poisson((end - begin) * (1.0 + excess)))


def _handshakes(cell: Cell, behaviour: Behaviour, rng: Generator, *, first: bool) -> Histogram | None:
    if behaviour.handshake_ns is None:
        return None
    return Histogram.of(rng.exponential(behaviour.handshake_ns, cell.load.connections if first else 0))


def _one_way(behaviour: Behaviour, response_ns: NDArray[np.float64]) -> OneWay | None:
    ahead = behaviour.clock_ahead_ns
    if ahead is None:
        return None

    def signed(values: NDArray[np.float64]) -> Signed:
        return Signed(negative=Histogram.of(-values[values < 0]), positive=Histogram.of(values[values >= 0]))

    return OneWay(to_server=signed(response_ns / 2 + ahead), from_server=signed(response_ns / 2 - ahead))


def _rate_and_mean(
    cell: Cell, behaviour: Behaviour, progress: float, noise: float, speed: float
) -> tuple[float, float]:
    """Requests due per second and mean response time in ns, as far into the measurement as `progress` says."""
    growth = 1.0 + behaviour.trend * (progress - 0.5)
    if behaviour.course:
        speed *= behaviour.course[min(int(progress * len(behaviour.course)), len(behaviour.course) - 1)]
    shape = cell.load.shape
    if isinstance(shape, Closed):
        rate = behaviour.rate_per_s * growth * noise * speed
        users = shape.mean_users(cell.load.duration_ns)
        return rate, users * shape.depth / rate * 1e9 * behaviour.littles_law
    assert shape.mean_per_s is not None, "recordings are simulated as probes send them"
    return shape.mean_per_s, behaviour.response_ns * growth * noise / speed


def observed_series(behaviour: Behaviour, traffic: Traffic) -> tuple[Series, ...]:
    """The monitors' observations, from a little before that traffic until a little after it."""
    start = traffic.epoch_unix_ns - 20_000_000
    end = traffic.epoch_unix_ns + traffic.measure_end_ns + 120_000_000
    times = tuple(range(start, end, INTERVAL_NS))

    def counter(name: str, subject: Subject, share: float) -> Series:
        values = tuple(share * (at - start) for at in times)
        return Series(name=name, unit="ns", subject=subject, kind="counter", times_unix_ns=times, values=values)

    def gauge(name: str, unit: str, subject: Subject, value: float) -> Series:
        values = tuple(value * (0.9 + 0.1 * i / len(times)) for i in range(1, len(times) + 1))
        return Series(name=name, unit=unit, subject=subject, kind="gauge", times_unix_ns=times, values=values)

    busy = behaviour.server_busy + behaviour.engine_busy + behaviour.others_busy
    return (
        counter("cpu_ns", "server", behaviour.server_busy),
        counter("cpu_ns", "engine", behaviour.engine_busy),
        counter("run_delay_ns", "engine", behaviour.run_delay),
        counter("run_delay_ns", "server", behaviour.server_run_delay),
        *(
            _steps(name, times, behaviour.replaced + behaviour.helpers)
            for name in ("processes_started", "processes_ended")
        ),
        _steps("processes_replaced", times, behaviour.replaced).model_copy(update={"kind": "gauge"}),
        gauge("rss_bytes", "B", "server", behaviour.rss_bytes),
        counter("busy_ns", "machine", busy),
        counter("steal_ns", "machine", behaviour.steal),
        counter("cpu_pressure_ns", "machine", behaviour.pressure),
    )


def _steps(name: str, times: tuple[int, ...], to: int) -> Series:
    """A counter of the server that grows from 0 to that number halfway."""
    values = tuple(float(to * (2 * at >= len(times))) for at in range(len(times)))
    return Series(name=name, unit="1", subject="server", kind="counter", times_unix_ns=times, values=values)
