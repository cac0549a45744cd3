"""`redline load`: the engine on a server that is already running."""

import sys
import tempfile
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from redline.cli import exits
from redline.cli.command_line import LoadFlags
from redline.cli.contracts import LoadResult
from redline.cli.flags import read_flag, read_warm_up_flag, read_workers
from redline.cli.load_flags import read_load, read_objectives, read_target
from redline.cli.load_view import live_line, load_result, load_section
from redline.cli.show import OneLine, Terminal, show
from redline.errors import DriveError, UsageError
from redline.model import Cell, EngineMode, PlannedTrial, Recording
from redline.ports import Launch, LoadOptions
from redline.running.assembly import attached
from redline.running.record import record_load


def execute(flags: LoadFlags) -> None:
    """Load a running server: closed with -c users, or open at -R requests per second."""
    variant, scenario = read_target(flags.url, flags, "load")
    warmup_ns, warmup_detect = read_warm_up_flag(flags.warmup)
    cell = Cell(
        variant=variant,
        scenario=scenario,
        load=read_load(flags),
        warmup_ns=warmup_ns,
        warmup_detect=warmup_detect,
        timeout_ns=read_flag("--timeout", flags.timeout or "5s", "timeout"),
        engine=EngineMode(backend=flags.backend, spin=flags.spin),
    )
    if cell.warmup_detect and cell.load.changes:
        raise UsageError(
            "--warmup auto wants a load that does not change by design", hint="give a time, such as --warmup 10s"
        )
    objectives = read_objectives(flags.objective, cell.load)
    workers = read_workers(flags.threads, cell.load.connections)
    seed = read_flag("--seed", flags.seed, "seed")
    recording = _record(cell, workers, seed, Terminal(stderr=True))
    result = load_result(flags.url, cell, recording, objectives)
    if flags.json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    else:
        show([load_section(result)])
    if result.ended == "interrupted":
        raise typer.Exit(exits.INTERRUPTED)
    if code := exit_code(result):
        raise typer.Exit(code)


def exit_code(result: LoadResult) -> int:
    """3 when an objective was missed; else 1 when nothing is known, for an invalid load; else 3 when one is not known.

    An invalid load that shows all objectives to be met has answered what was asked.
    """
    states = {one.state for one in result.objectives}
    if "missed" in states:
        return exits.MISSED
    if not result.valid and states != {"met"}:
        return exits.COULD_NOT_RUN
    return exits.MISSED if "not known" in states else exits.DONE


def _record(cell: Cell, threads: int, seed: int, console: Console) -> Recording:
    """Put the load on and record it; Ctrl-C ends it early and keeps what was seen. Raises DriveError."""
    planned = PlannedTrial(cell_id=cell.id, round=0, position=0, seed=seed)
    tools = attached(cell.variant).tools
    with tempfile.TemporaryDirectory() as scratch, OneLine(console) as line:
        log = Path(scratch) / "engine.log"
        options = LoadOptions(
            log=log,
            log_is_kept=False,
            workers=threads,
            keep_interrupted=True,
            on_interval=lambda interval: line.show(Text(live_line(cell, interval))),
        )
        with tools.launcher.running(Launch(cell.variant, tools.placement, log)) as server:
            recording = record_load(cell, planned, server, tools, options)
    if recording.traffic is None and recording.failure is not None:
        raise DriveError(recording.failure.message, hint=recording.failure.hint)
    return recording
