"""`redline load`: the engine on a server that is already running."""

import sys
import tempfile
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from redline.cli import exits
from redline.cli.command_line import Arrivals, Backends
from redline.cli.flags import DETECTED, duration_ns, read_seed, read_timeout, read_workers
from redline.cli.load_shape import LoadFlags, read_load
from redline.cli.load_target import read_picks, read_request, read_server, read_tls, read_url
from redline.cli.load_view import live_line, load_result, print_load
from redline.cli.one_line import OneLine
from redline.errors import DriveError, UsageError
from redline.model import Cell, EngineMode, PlannedTrial, Recording, Scenario
from redline.running.assembly import attached
from redline.running.record import LoadOptions, record_load
from redline.suite import DETECTION_NS


def load(
    url: str,
    connections: int,
    duration: str,
    rate: str | None,
    arrivals: Arrivals | None,
    replay: Path | None,
    depth: int,
    think: str | None,
    pace: str | None,
    stages: list[str] | None,
    count: int | None,
    requests_per_connection: int | None,
    http2: bool,
    insecure: bool,
    cacert: Path | None,
    backend: Backends,
    spin: bool,
    threads: int,
    headers: list[str] | None,
    method: str | None,
    body: str | None,
    status: int,
    warmup: str,
    timeout: str,
    seed: int,
    json: bool,
) -> None:
    """Load a running server: closed with -c users, or open at -R requests per second."""
    endpoint, path = read_url(url)
    tls = read_tls(url, cacert, insecure=insecure)
    request = read_request(path, method, headers or [], body, status, http2=http2)
    cell = Cell(
        variant=read_server(endpoint, tls, http2=http2),
        scenario=Scenario(name="load", request=request, picks=read_picks(request)),
        load=read_load(
            LoadFlags(
                connections=connections,
                duration=duration,
                rate=rate,
                arrivals=arrivals,
                replay=replay,
                depth=depth,
                think=think,
                pace=pace,
                stages=tuple(stages or ()),
                requests_per_connection=requests_per_connection,
                count=count,
            )
        ),
        warmup_ns=DETECTION_NS if warmup == DETECTED else duration_ns("--warmup", warmup, least_ns=0),
        warmup_detect=warmup == DETECTED,
        timeout_ns=read_timeout(timeout),
        engine=EngineMode(backend=backend.value, spin=spin),
    )
    if cell.warmup_detect and cell.load.changes:
        raise UsageError(
            "--warmup auto wants a load that does not change by design", hint="give a time, such as --warmup 10s"
        )
    workers = read_workers(threads, cell.load.connections)
    recording = _record(cell, workers, read_seed(seed), Console(stderr=True))
    result = load_result(url, cell, recording)
    if json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    else:
        print_load(result, Console())
    if result.ended == "interrupted":
        raise typer.Exit(exits.INTERRUPTED)
    if not result.valid:
        raise typer.Exit(exits.COULD_NOT_RUN)


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
        with tools.launcher.running(cell.variant, tools.placement, log) as server:
            recording = record_load(cell, planned, server, tools, options)
    if recording.traffic is None and recording.failure is not None:
        raise DriveError(recording.failure.message, hint=recording.failure.hint)
    return recording
