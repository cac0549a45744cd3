"""Simulated histories: runs of a server with a given speed, in memory or stored below a folder."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator

from redline.history.changes import Level
from redline.history.over_runs import SeenRun, Sight
from redline.model import Environment, Load, Manifest, Metric, Run
from redline.model.run import Kind
from redline.stats import Ratios
from redline.stats.estimate import estimate
from tests.fakes.behaviour import GOOD
from tests.fakes.compared import Cost, compared_run
from tests.fakes.recordings import EPOCH_UNIX_NS, SATURATE, simulated_environment, simulated_run
from tests.fakes.stored import kept

DAY_NS = 86_400_000_000_000
CELL = "rust.hyper.SimpleGet.saturate-00000000"


def level(speed: float, rng: Generator, *, trials: int = 5, trial_effect: float = 0.01) -> Level:
    """A run whose trials differ by `trial_effect`, of a server with this many requests per second."""
    answered = speed * np.exp(rng.normal(0.0, trial_effect, trials))
    sample = Ratios(answered, np.ones(trials))
    return Level(estimate(sample, Metric.THROUGHPUT), sample)


def level_series(
    speeds: Sequence[float], seed: int, *, between: float = 0.01, trials: int = 5, trial_effect: float = 0.01
) -> list[Level]:
    """Runs at these speeds, each with an effect of its own with sigma `between`, as machines have from day to day."""
    rng = np.random.default_rng(seed)
    days = np.exp(rng.normal(0.0, between, len(speeds)))
    return [
        level(speed * day, rng, trials=trials, trial_effect=trial_effect)
        for speed, day in zip(speeds, days, strict=True)
    ]


def seen(
    place: int,
    says: Level | str,
    environment: Environment | None = None,
    *,
    suite: str = "nightly",
    build: str = "b0",
    baseline_build: str = "",
) -> SeenRun:
    """The run of the `place`-th day, of one cell."""
    levels = {Metric.THROUGHPUT: says}
    sight = Sight("rust.hyper.SimpleGet.saturate", "subject", build, levels, baseline_build=baseline_build)
    return SeenRun(
        name=f"run-{place:02}",
        folder=f"runs/run-{place:02}",
        suite=suite,
        started_unix_ns=EPOCH_UNIX_NS + place * DAY_NS,
        complete=True,
        threshold=0.02,
        environment=environment or simulated_environment(),
        cells={CELL: sight},
    )


def stored_run(
    folder: Path,
    place: int,
    *,
    speed: float = 2_000.0,
    environment: Environment | None = None,
    loads: tuple[Load, ...] = (SATURATE,),
    server: str = "rust.hyper",
    trials: int = 2,
) -> Run:
    """The run of the `place`-th day, stored as `folder/run-<place>`."""
    behaviour = replace(GOOD, rate_per_s=speed)
    run = simulated_run({server: behaviour}, trials=trials, loads=loads, ceiling=None, baseline=None, seed=place + 1)
    changed = {"name": f"run-{place:02}", "created_unix_ns": EPOCH_UNIX_NS + place * DAY_NS}
    if environment is not None:
        changed["environment"] = environment
    run = run.model_copy(update={"manifest": run.manifest.model_copy(update=changed)})
    kept(folder / run.manifest.name, run)
    return run


def comparison(place: int, factor: float = 1.0, *, kind: Kind = "comparison", b: str = "./b --port {port}") -> Run:
    """The comparison of the `place`-th day, in which a request costs B this many times the CPU time of A."""
    run = compared_run({"home": Cost(factor)}, first_start=100 * place)
    changed = {"name": f"run-{place:02}", "created_unix_ns": EPOCH_UNIX_NS + place * DAY_NS, "kind": kind}
    manifest = run.manifest.model_copy(update=changed)
    manifest = Manifest.model_validate_json(manifest.model_dump_json().replace("./b --port {port}", b))
    return run.model_copy(update={"manifest": manifest})
