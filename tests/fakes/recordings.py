"""Simulated recordings and runs: what an engine and the probes would have seen of a server that behaves as told.

The defaults are a good trial, of which nothing is to be doubted: server and engine on cores of their own, the server
the limit, Little's law kept, no errors. A test changes one field of `Behaviour` to provoke one doubt.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from redline.findings.arrivals import due_by
from redline.model import (
    AgreedTls,
    Body,
    Build,
    Cell,
    Closed,
    Counts,
    Engine,
    Environment,
    Expected,
    Failure,
    Histogram,
    Interval,
    Load,
    Manifest,
    Objective,
    OneWay,
    Open,
    Outcomes,
    Plan,
    PlannedTrial,
    Recording,
    Request,
    Run,
    Scenario,
    Series,
    ServerEntry,
    ServerFacts,
    Signed,
    Start,
    Subject,
    Suite,
    Traffic,
    Variant,
)
from redline.model.traffic import Phase

EPOCH_UNIX_NS = 1_790_000_000_000_000_000
TRIAL_NS = 2_000_000_000
INTERVAL_NS = 100_000_000
WARMUP_NS = 250_000_000
MEASURE_NS = 1_000_000_000
CORES = 2

SATURATE = Load(name="saturate", shape=Closed(users=64), duration_ns=MEASURE_NS)
STEADY = Load(name="steady", shape=Open(rate_per_s=5000, connections=64, arrivals="uniform"), duration_ns=MEASURE_NS)

SIMPLE_GET = Scenario(name="SimpleGet", request=Request(path="/path0", expect=Expected(body="path0")))
SIMPLE_GET_MULTI = Scenario(name="SimpleGetMulti", request=Request(path="/path127", expect=Expected(body="path127")))
POST_BYTES = Scenario(
    name="PostBytes",
    request=Request(method="POST", path="/bytes0", body=Body(size=256), expect=Expected(body="bytes0 256")),
)


@dataclass(frozen=True)
class Behaviour:
    """How the simulated server, engine and machine behave in one trial; shares are 0 to 1."""

    rate_per_s: float = 20_000.0
    """Throughput under a closed load; an open load has its own rate."""
    response_ns: float = 200_000.0
    """Mean response time under an open load; a closed load has it from Little's law."""
    spread: float = 0.4
    """Sigma of the lognormal response time."""
    trend: float = 0.0
    """Relative growth of the rate (closed) or of the response time (open) over the measurement."""
    cold_s: float = 0.0
    """So long after its first request the server has another speed, `cold_share` of the later one."""
    cold_share: float = 1.0
    noise: float = 0.01
    """Sigma of the rate from interval to interval."""
    achieved: float = 1.0
    """Share of what is due that an open load answers within the window."""
    offered: float = 1.0
    """What falls due of what an open load's schedule has."""
    clumps: float = 0.0
    """Relative excess and lack of what falls due in every other interval of an open load."""
    even: bool = False
    """Poisson arrivals that are no more uneven than uniform ones."""
    waited: float = 0.0
    """Share of an open load's requests that find no connection free."""
    shrinks: float = 0.0
    """Relative loss of bytes of each answer in the second half of the measurement."""
    littles_law: float = 1.0
    """By how much the response times are wrong."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Requests that did not end well, by kind, placed in the first measured interval."""
    server_busy: float = 0.98
    engine_busy: float = 0.55
    run_delay: float = 0.0
    """Share of the time for which the engine's threads wanted a core and had none."""
    server_run_delay: float = 0.0
    """Time for which the server's threads wanted a core and had none, over the time of one core."""
    replaced: int = 0
    """Processes of the server that end halfway and are replaced."""
    helpers: int = 0
    """Processes of the server that begin under load and end halfway."""
    log_bytes: int = 200
    lateness_ns: float = 3_000.0
    steal: float = 0.0
    others_busy: float = 0.01
    pressure: float = 0.02
    rss_bytes: int = 20_000_000
    pinned: bool = True
    perturbed: bool = False
    ended: Literal["complete", "interrupted", "deadline"] = "complete"
    measured: float = 1.0
    """Share of the planned measurement that was made."""
    exhausted: int = 0
    """Of the outcomes `connect`, those for want of something on the engine's side."""
    handshake_ns: float | None = None
    """Mean time of a TLS handshake, on every connection before the load; without TLS when None."""
    clock_ahead_ns: float | None = None
    """By how much the server's clock is ahead of ours; answers do not tell it when None."""
    failure: Failure | None = None


GOOD = Behaviour()


def simulated_variant(name: str = "rust.hyper") -> Variant:
    """A variant without options of an entry that nobody will build."""
    entry = ServerEntry(
        name=name,
        about=f"simulated {name}",
        runtime="native",
        family_folder=f"catalogue/{name.split('.', 1)[0]}",
        build=Build(run=("true",), inputs=("src/**",), outputs=("server",)),
        start=Start(command=("{folder}/server", "--port", "{port}")),
    )
    return Variant(entry=entry)


def simulated_cell(
    server: str = "rust.hyper",
    scenario: Scenario = SIMPLE_GET,
    load: Load = SATURATE,
    *,
    ceiling: bool = False,
) -> Cell:
    """A cell of a simulated server."""
    return Cell(
        variant=simulated_variant(server),
        scenario=scenario,
        load=load,
        warmup_ns=WARMUP_NS,
        timeout_ns=5_000_000_000,
        role="ceiling" if ceiling else "subject",
    )


def simulated_recording(
    cell: Cell, behaviour: Behaviour = GOOD, *, round_: int = 0, position: int = 0, seed: int = 1
) -> Recording:
    """One trial of the cell on a server that behaves so; the same seed gives the same recording."""
    failed_before_load = behaviour.failure is not None and behaviour.failure.stage in ("launch", "verify")
    started = EPOCH_UNIX_NS + position * TRIAL_NS
    traffic = None if failed_before_load else _traffic(cell, behaviour, np.random.default_rng(seed), started)
    return Recording(
        cell_id=cell.id,
        round=round_,
        position=position,
        seed=seed,
        started_unix_ns=started,
        server=None if failed_before_load else _server(behaviour),
        traffic=traffic,
        series=() if traffic is None else _series(behaviour, traffic),
        perturbed=behaviour.perturbed,
        failure=behaviour.failure,
        stages_ns={"launch": 30_000_000, "verify": 2_000_000, "load": 1_400_000_000, "stop": 10_000_000},
        log_bytes=None if traffic is None else behaviour.log_bytes,
    )


def simulated_run(
    behaviours: dict[str, Behaviour] | None = None,
    *,
    trials: int = 5,
    scenarios: tuple[Scenario, ...] = (SIMPLE_GET,),
    loads: tuple[Load, ...] = (SATURATE, STEADY),
    ceiling: str | None = "oracle.null",
    baseline: str | None = "rust.hyper",
    objectives: tuple[Objective, ...] = (),
    seed: int = 1,
    trial_effect: float = 0.01,
    drift: float = 0.0,
    done: int | None = None,
) -> Run:
    """A whole run of the servers named in `behaviours` (and the ceiling), each trial with its own random effect.

    `trial_effect` is the sigma of the log of a trial's speed, `drift` the relative growth of the machine's speed from
    first to last round; `done` cuts the run after so many trials.
    """
    told = behaviours or {"rust.hyper": GOOD, "rust.axum": replace(GOOD, rate_per_s=18_000.0)}
    servers = {**told, ceiling: replace(GOOD, rate_per_s=60_000.0)} if ceiling else dict(told)
    cells = [
        simulated_cell(server, scenario, load, ceiling=server == ceiling)
        for server in servers
        for scenario in scenarios
        for load in loads
    ]
    rng = np.random.default_rng(seed)
    planned = _planned(cells, trials, rng)
    by_id = {cell.id: cell for cell in cells}
    recordings = []
    for trial in planned[:done]:
        speed = float(np.exp(rng.normal(0.0, trial_effect)) * (1.0 + drift * trial.round / max(trials - 1, 1)))
        behaviour = _faster(servers[by_id[trial.cell_id].variant.slug], speed)
        recordings.append(
            simulated_recording(
                by_id[trial.cell_id], behaviour, round_=trial.round, position=trial.position, seed=trial.seed
            )
        )
    suite = Suite(
        name="simulated",
        about="a suite that nobody ran",
        variants=tuple(simulated_variant(name) for name in told),
        baseline=baseline,
        ceiling=simulated_variant(ceiling) if ceiling else None,
        scenarios=scenarios,
        loads=loads,
        warmup_ns=WARMUP_NS,
        trials=trials,
        seed=seed,
        objectives=objectives,
    )
    manifest = Manifest(
        name="20260921-101500-simulated",
        created_unix_ns=EPOCH_UNIX_NS,
        command="redline run suites/simulated.yaml",
        suite_file="suites/simulated.yaml",
        suite_text="servers: [rust.hyper, rust.axum]\n",
        plan=Plan(suite=suite, cells=by_id, trials=planned),
        environment=simulated_environment(),
    )
    return Run(manifest=manifest, recordings=tuple(recordings))


def simulated_environment() -> Environment:
    """A machine of two cores, one for the server and one for the engine."""
    return Environment(
        redline="0.1.0",
        engine="0.1.0",
        commit="0123456789ab",
        python="3.11.7",
        os="Debian GNU/Linux 12",
        kernel="6.1.0",
        hostname="simulated",
        cpu_model="Simulated CPU @ 3.00GHz",
        cores=CORES,
        cores_online=CORES,
        memory_bytes=8 * 1024**3,
        open_files_soft=1024,
        open_files_hard=4096,
        port_range=(32768, 60999),
        cgroup="v2",
        steal_share=0.0,
        busy_share=0.01,
        server_cpus=(0,),
        engine_cpus=(1,),
    )


def _planned(cells: list[Cell], trials: int, rng: Generator) -> tuple[PlannedTrial, ...]:
    order = [(round_, int(index)) for round_ in range(trials) for index in rng.permutation(len(cells))]
    return tuple(
        PlannedTrial(cell_id=cells[index].id, round=round_, position=position, seed=int(rng.integers(2**31)))
        for position, (round_, index) in enumerate(order)
    )


def _faster(behaviour: Behaviour, speed: float) -> Behaviour:
    return replace(behaviour, rate_per_s=behaviour.rate_per_s * speed, response_ns=behaviour.response_ns / speed)


def _traffic(cell: Cell, behaviour: Behaviour, rng: Generator, started_unix_ns: int) -> Traffic:
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
        counts=_summed([interval.counts for interval in measured]),
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
    shape = cell.load.shape
    if isinstance(shape, Closed):
        rate = behaviour.rate_per_s * growth * noise * speed
        users = shape.mean_users(cell.load.duration_ns)
        return rate, users * shape.depth / rate * 1e9 * behaviour.littles_law
    assert shape.rate_per_s is not None, "replayed arrivals are not simulated"
    return shape.rate_per_s, behaviour.response_ns * growth * noise / speed


def _summed(parts: list[Counts]) -> Counts:
    def total(name: str) -> int:
        return sum(getattr(part, name) for part in parts)

    outcomes = {name: sum(getattr(p.outcomes, name) for p in parts) for name in Outcomes.model_fields}
    plain = [name for name in Counts.model_fields if name not in ("status", "outcomes")]
    status = {"2xx": sum(part.status.get("2xx", 0) for part in parts)}
    return Counts(**{name: total(name) for name in plain}, status=status, outcomes=Outcomes(**outcomes))


def _steps(name: str, times: tuple[int, ...], to: int) -> Series:
    """A counter of the server that grows from 0 to that number halfway."""
    values = tuple(float(to * (2 * at >= len(times))) for at in range(len(times)))
    return Series(name=name, unit="1", subject="server", kind="counter", times_unix_ns=times, values=values)


def _server(behaviour: Behaviour) -> ServerFacts:
    return ServerFacts(
        pid=4242,
        command=("server", "--port", "40001"),
        port=40001,
        cpus=(0,) if behaviour.pinned else (),
        build="0123456789abcdef",
        runtime_version="simulated 1.0",
        ready_ns=25_000_000,
    )


def _series(behaviour: Behaviour, traffic: Traffic) -> tuple[Series, ...]:
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
