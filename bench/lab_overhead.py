"""What the lab itself adds to a trial: all its time beyond the server's start, the warm-up and the measurement.

`python -m bench.lab_overhead RUN...` reads stored runs and prints a section for results.md.
"""

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from redline.errors import RedlineError
from redline.model import Cell, Environment, Recording, Stage
from redline.storage.runs import RunStore

STAGES: tuple[Stage, ...] = ("launch", "verify", "load", "stop")


@dataclass(frozen=True)
class Overhead:
    """One trial's overhead in nanoseconds, by stage."""

    by_stage: dict[Stage, int]

    @property
    def total_ns(self) -> int:
        """Total time of all stages, in nanoseconds."""
        return sum(self.by_stage.values())


def overhead(recording: Recording, cell: Cell) -> Overhead | None:
    """The overhead of a complete trial; None for one that failed or ended early.

    The launch counts without the time to the server's first right answer, the load without warm-up and measurement.
    """
    whole = recording.traffic is not None and recording.traffic.ended == "complete"
    if not whole or recording.failure is not None or recording.server is None:
        return None
    needed = {"launch": recording.server.ready_ns, "load": cell.warmup_ns + cell.load.duration_ns}
    return Overhead({stage: recording.stages_ns[stage] - needed.get(stage, 0) for stage in STAGES})


def section(title: str, environment: Environment, by_runtime: dict[str, list[Overhead]]) -> str:
    """A table in Markdown: per runtime the median and the largest overhead, and the median of each stage, in ms."""
    machine = f"{environment.cpu_model}, {environment.cores} cores, Linux {environment.kernel}"
    lines = [
        f"{title}. {machine}; redline {environment.redline}, engine {environment.engine}.",
        "",
        "| runtime | trials | median ms | max ms | " + " | ".join(f"of it {stage}" for stage in STAGES) + " |",
        "|---|---|---|---|" + "---|" * len(STAGES),
    ]
    for runtime, trials in sorted(by_runtime.items()):
        totals = [trial.total_ns / 1e6 for trial in trials]
        stages = " | ".join(f"{median(trial.by_stage[stage] for trial in trials) / 1e6:.1f}" for stage in STAGES)
        lines.append(f"| {runtime} | {len(trials)} | {median(totals):.0f} | {max(totals):.0f} | {stages} |")
    return "\n".join(lines)


def main() -> None:
    """Print one table for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a directory that `redline run` made")
    runs = [RunStore(folder).run() for folder in parser.parse_args().runs]
    print("## What the lab adds to a trial\n")
    for run in runs:
        by_runtime: dict[str, list[Overhead]] = defaultdict(list)
        for recording in run.recordings:
            cell = run.manifest.plan.cells[recording.cell_id]
            found = overhead(recording, cell)
            if found is not None:
                by_runtime[cell.variant.runtime].append(found)
        title = f"Run {run.manifest.name}, {len(run.recordings)} trials"
        print(section(title, run.manifest.environment, by_runtime), end="\n\n")


if __name__ == "__main__":
    try:
        main()
    except RedlineError as error:
        sys.exit(str(error))
