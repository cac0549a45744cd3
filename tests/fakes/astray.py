"""`redline` with an engine that does another load than its job: `astray.py FAULT FOLDER ARGUMENTS...`.

The engine is the real one; only the job is changed on its way. FOLDER gets the script between them.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

CLUMP_NS = 300_000_000
"""Twice the time for all that should fall due."""

AT_MOST = 5_000


def slower(load: dict[str, Any]) -> None:
    """A tenth of the requests is missing."""
    load["open"]["rate_per_s"] *= 0.9


def even(load: dict[str, Any]) -> None:
    """Random arrivals at the distances of a clock."""
    load["open"]["arrivals"] = "uniform"


def clumped(load: dict[str, Any]) -> None:
    """The right number of requests: twice as many for a while, and then none."""
    gap_ns = 1e9 / load["open"].pop("rate_per_s")
    due_ns = (index * gap_ns for index in range(AT_MOST))
    load["open"]["arrivals"] = {"replayed_ns": [int(at_ns - at_ns % (2 * CLUMP_NS) / 2) for at_ns in due_ns]}


def lonelier(load: dict[str, Any]) -> None:
    """A quarter of the users is missing."""
    load["closed"]["users"] = load["closed"]["users"] * 3 // 4


def none(_load: dict[str, Any]) -> None:
    """The job unchanged."""


FAULTS = {each.__name__: each for each in (slower, even, clumped, lonelier, none)}


def engine(fault: str, real: str, arguments: list[str]) -> None:
    """Become the engine, with a changed job."""
    if not arguments:
        job = json.loads(sys.stdin.readline())
        FAULTS[fault](job["load"])
        with os.fdopen(os.memfd_create("job"), "w+b", closefd=False) as file:
            file.write(json.dumps(job).encode() + b"\n")
            file.seek(0)
            file.flush()
            os.dup2(file.fileno(), 0)
    os.execv(real, [real, *arguments])


def lab(fault: str, folder: Path, arguments: list[str]) -> None:
    """Become `redline`, which expects its engine beside its Python: here that is a script."""
    from redline.cli.main import main  # noqa: PLC0415 - the engine's side does without
    from redline.driving.engine_process import ENGINE, find_engine  # noqa: PLC0415

    script = folder / ENGINE
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -I {__file__} --engine {fault} {find_engine()} "$@"\n')
    script.chmod(0o755)
    sys.executable = str(folder / "python")
    sys.argv = ["redline", *arguments]
    sys.exit(main())


if __name__ == "__main__":
    if sys.argv[1] == "--engine":
        engine(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        lab(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
