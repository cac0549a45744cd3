"""What it costs to judge a run: to read its recordings, to judge them, and to write its views.

`python -m bench.judging` makes synthetic runs of several sizes, as `redline run` stores them, and prints a section for
results.md. Each size is judged by a process of its own, so that its peak of memory is its own, and then again by
another, which finds what the first one kept.
"""

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from redline.cli.declaring import collect_garbage
from redline.model import Manifest
from redline.storage.runs import RunStore, stored_json

SEED = 20_260_901
VARIETY = 12
"""Different recordings of each load. The trials of a run are drawn from these, under the names of their own cells."""


@dataclass(frozen=True)
class Size:
    """A run of so many servers, scenarios under the first of a closed and an open load, and trials of each cell."""

    servers: int
    scenarios: int
    trials: int
    ceiling: str | None = None
    loads: int = 2


SIZES = {
    "18 cells x 9": Size(servers=2, scenarios=3, trials=9, ceiling="oracle.null"),
    "10 cells x 5": Size(servers=5, scenarios=1, trials=5),
    "100 cells x 5": Size(servers=10, scenarios=5, trials=5),
    "1000 cells x 5": Size(servers=50, scenarios=10, trials=5),
}


def store(size: Size, folder: Path) -> int:
    """Store a synthetic run in `folder`. Returns the bytes of its recordings."""
    from tests.fakes.behaviour import GOOD  # noqa: PLC0415 - imports scipy, which the judging process must pay itself
    from tests.fakes.recordings import SATURATE, SIMPLE_GET, STEADY, simulated_run  # noqa: PLC0415

    empty = simulated_run(
        {f"fake.server{number}": GOOD for number in range(size.servers)},
        trials=size.trials,
        scenarios=tuple(SIMPLE_GET.model_copy(update={"name": f"Get{number}"}) for number in range(size.scenarios)),
        loads=(SATURATE, STEADY)[: size.loads],
        baseline="fake.server0",
        ceiling=size.ceiling,
        done=0,
    )
    RunStore(folder).create(empty.manifest)
    drawn = np.random.default_rng(SEED)
    cells = empty.manifest.plan.cells
    pool = {load: list(_variety(empty.manifest, load, drawn)) for load in {one.load.name for one in cells.values()}}
    stored = 0
    for trial in empty.manifest.plan.trials:
        cell = cells[trial.cell_id]
        content = pool[cell.load.name][int(drawn.integers(VARIETY))]
        for name in ("cell_id", "round", "position"):
            content = content.replace(f'"{name}": {_NAMED[name]}', f'"{name}": {json.dumps(getattr(trial, name))}', 1)
        (folder / "recordings" / f"{trial.position:04d}-{cell.slug}.json").write_text(content)
        stored += len(content)
    return stored


_NAMED = {"cell_id": '"CELL"', "round": "777", "position": "777"}


def _variety(manifest: Manifest, load: str, drawn: np.random.Generator) -> Iterator[str]:
    """Recordings of servers whose speeds differ by 3%, as they are stored, under the names in `_NAMED`."""
    from tests.fakes.behaviour import GOOD  # noqa: PLC0415
    from tests.fakes.recordings import simulated_recording  # noqa: PLC0415

    cell = next(one for one in manifest.plan.cells.values() if one.load.name == load)
    for seed in range(VARIETY):
        speed = float(np.exp(drawn.normal(0.0, 0.03)))
        behaviour = replace(GOOD, rate_per_s=GOOD.rate_per_s * speed, response_ns=GOOD.response_ns / speed)
        made = simulated_recording(cell, behaviour, round_=777, position=777, seed=seed)
        yield stored_json(made.model_copy(update={"cell_id": "CELL"})).decode()


def judge(folder: Path) -> dict[str, float]:
    """Judge the run and write its views. CPU seconds by stage, those of copies of the process included.

    `page_bytes` are of the page, `total` is the CPU time of the process, `clock` the time since it began to judge,
    and `peak_mb` and `copies_mb` are the most memory of the process and of one of its copies, which shares most of it.
    """
    spent = {}
    began = _cpu_s()

    def done(stage: str) -> None:
        nonlocal began
        now = _cpu_s()
        spent[stage], began = now - began, now

    gc.disable()
    from redline.running.views import run_report, write_views  # noqa: PLC0415 - what imports cost is a part of it

    done("import")
    collect_garbage()  # as commands do
    at, store = time.perf_counter(), RunStore(folder)
    report = run_report(store)
    done("judge")
    write_views(store, report)
    done("write")
    spent["page_bytes"] = (folder / "report.html").stat().st_size
    spent["total"] = _cpu_s()
    spent["clock"] = time.perf_counter() - at
    spent["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent["copies_mb"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return spent


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Print a table with two rows for each size: judged for the first time, and with what was kept of that."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"of {', '.join(map(repr, SIZES))}; default: all")
    parser.add_argument("--judge", type=Path, metavar="RUN", help="judge this stored run, and print its costs as JSON")
    given = parser.parse_args()
    if given.judge:
        print(json.dumps(judge(given.judge)))
        return
    print("## Judging a run\n")
    columns = ["import", "judge", "write", "total", "clock"]
    heads = ["cells x trials", "trials", "stored MB", *(f"{name} s" for name in columns), "peak MB", "of a copy MB"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name in given.sizes or SIZES:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "run"
            stored = store(SIZES[name], folder)
            trials = len(RunStore(folder).manifest().plan.trials)
            command = [sys.executable, "-m", "bench.judging", "--judge", str(folder)]
            for row in (name, f"{name}, again"):
                costs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                figures = [f"{costs[column]:.2f}" for column in columns]
                memory = [f"{costs[key]:.0f}" for key in ("peak_mb", "copies_mb")]
                print(f"| {' | '.join([row, str(trials), f'{stored / 1e6:.0f}', *figures, *memory])} |", flush=True)


if __name__ == "__main__":
    main()
