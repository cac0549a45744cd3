"""Simulated recordings and runs of servers with a given behaviour."""

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.random import Generator

from redline.model import (
    Body,
    Build,
    Cell,
    Closed,
    Environment,
    Expected,
    Load,
    Manifest,
    Objective,
    Open,
    Plan,
    PlannedTrial,
    Recording,
    Request,
    Run,
    Scenario,
    Series,
    ServerEntry,
    ServerFacts,
    Start,
    Suite,
    Traffic,
    Variant,
)
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.observed import observed_series, observed_traffic

EPOCH_UNIX_NS = 1_790_000_000_000_000_000
TRIAL_NS = 2_000_000_000
WARMUP_NS = 250_000_000
MEASURE_NS = 1_000_000_000
CORES = 2

SATURATE = Load(name="saturate", shape=Closed(users=64), duration_ns=MEASURE_NS)
STEADY = Load(name="steady", shape=Open(rate_per_s=5000, connections=64, arrivals="uniform"), duration_ns=MEASURE_NS)
SLOW = Load(name="slow", shape=Open(rate_per_s=200, connections=16, arrivals="uniform"), duration_ns=MEASURE_NS)

SIMPLE_GET = Scenario(name="SimpleGet", request=Request(path="/path0", expect=Expected(body="path0")))
SIMPLE_GET_MULTI = Scenario(name="SimpleGetMulti", request=Request(path="/path127", expect=Expected(body="path127")))
POST_BYTES = Scenario(
    name="PostBytes",
    request=Request(method="POST", path="/bytes0", body=Body(size=256), expect=Expected(body="bytes0 256")),
)


def simulated_variant(name: str = "rust.hyper") -> Variant:
    """A variant without options of an entry that is never built."""
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


@dataclass(frozen=True)
class _Trial:
    """A simulated trial; `text` has everything on which its traffic depends."""

    text: str
    cell: Cell = field(compare=False)
    behaviour: Behaviour = field(compare=False)
    seed: int = field(compare=False)
    started_unix_ns: int = field(compare=False)

    @classmethod
    def of(cls, cell: Cell, behaviour: Behaviour, seed: int, started_unix_ns: int) -> "_Trial":
        text = f"{cell.model_dump_json()} {behaviour} {seed} {started_unix_ns}"
        return cls(text, cell, behaviour, seed, started_unix_ns)


@lru_cache(maxsize=1024)
def _observed(trial: _Trial) -> tuple[Traffic, tuple[Series, ...]]:
    """What was seen of a trial; many tests simulate the same."""
    rng = np.random.default_rng(trial.seed)
    traffic = observed_traffic(trial.cell, trial.behaviour, rng, trial.started_unix_ns)
    return traffic, observed_series(trial.behaviour, traffic)


def simulated_recording(
    cell: Cell, behaviour: Behaviour = GOOD, *, round_: int = 0, position: int = 0, seed: int = 1
) -> Recording:
    """A trial of the cell on a server with this behaviour; the same seed gives the same recording."""
    failed_before_load = behaviour.failure is not None and behaviour.failure.stage in ("launch", "verify")
    started = EPOCH_UNIX_NS + position * TRIAL_NS
    traffic, series = (None, ()) if failed_before_load else _observed(_Trial.of(cell, behaviour, seed, started))
    return Recording(
        cell_id=cell.id,
        round=round_,
        position=position,
        seed=seed,
        started_unix_ns=started,
        server=None if failed_before_load else _server(behaviour),
        traffic=traffic,
        series=series,
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
    """A whole run of the servers named in `behaviours` (and the ceiling); trials have random effects of their own.

    `trial_effect` is the sigma of the log of a trial's speed, `drift` the relative growth of the machine's speed from
    first to last round; `done` cuts the run after this many trials.
    """
    subjects = behaviours or {"rust.hyper": GOOD, "rust.axum": replace(GOOD, rate_per_s=18_000.0)}
    servers = {**subjects, ceiling: replace(GOOD, rate_per_s=60_000.0)} if ceiling else dict(subjects)
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
        variants=tuple(simulated_variant(name) for name in subjects),
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


def with_trials(run: Run, changed: dict[int, Behaviour]) -> Run:
    """The run with another behaviour in the trials at these positions."""
    cells = run.manifest.plan.cells
    recordings = tuple(
        simulated_recording(cells[r.cell_id], changed[r.position], round_=r.round, position=r.position, seed=r.seed)
        if r.position in changed
        else r
        for r in run.recordings
    )
    return run.model_copy(update={"recordings": recordings})


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
