"""`redline load`: the engine on a server that is already running."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from redline.cli import exits
from redline.cli.beforehand import load_what_judges
from redline.cli.flags import DETECTED, AsJson, at_least_one, duration_ns
from redline.cli.load_shape import Arrivals, Backends, Pressure, read_load
from redline.cli.load_target import read_picks, read_request, read_tls, read_url, running_server
from redline.cli.load_view import live_line, load_result, print_load
from redline.cli.one_line import OneLine
from redline.cli.passing_log import passing_log
from redline.errors import UsageError
from redline.findings.warming import Watch
from redline.model import Cell, EngineMode, Recording, Scenario, Variant
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.plugins.probes.process_tree import ProcessTreeProbe
from redline.ports import Drive, Endpoint
from redline.suite import DETECTION_NS


def load(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Such as http://127.0.0.1:8080/path, or https://.", show_default=False)
    ],
    connections: Annotated[
        int, typer.Option("-c", "--connections", "--users", metavar="N", help="Connections; users in a closed load.")
    ] = 64,
    duration: Annotated[str, typer.Option("-d", "--duration", metavar="TIME", help="How long is measured.")] = "10s",
    rate: Annotated[
        str | None, typer.Option("-R", "--rate", metavar="N", help="Open load: requests per second.")
    ] = None,
    arrivals: Annotated[
        Arrivals | None,
        typer.Option("--arrivals", metavar="poisson|uniform", help="Open load: when requests fall due; poisson."),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Open load: due times, one a line, in place of -R.")
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", metavar="N", help="Requests in flight on a connection: pipelined, or streams.")
    ] = 1,
    think: Annotated[
        str | None, typer.Option("--think", metavar="TIME|exp:TIME", help="Closed load: from an answer to the next.")
    ] = None,
    pace: Annotated[
        str | None, typer.Option("--pace", metavar="N", help="Closed load: requests per second of each user.")
    ] = None,
    stages: Annotated[
        list[str] | None,
        typer.Option("--stage", metavar="TO:TIME", help="Go to so many users, or such a rate, in that time."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", help="End it when so many requests have fallen due.")
    ] = None,
    requests_per_connection: Annotated[
        int | None, typer.Option("--requests-per-connection", metavar="N", help="Then a connection is replaced.")
    ] = None,
    http2: Annotated[bool, typer.Option("--http2", metavar="", help="Speak HTTP/2: by ALPN, or at once.")] = False,
    insecure: Annotated[
        bool, typer.Option("--insecure", metavar="", help="Take any certificate; the result says so.")
    ] = False,
    cacert: Annotated[
        Path | None, typer.Option("--cacert", metavar="FILE", help="PEM: trusted in place of the system's.")
    ] = None,
    backend: Annotated[
        Backends, typer.Option("--backend", metavar="auto|epoll|io_uring", help="How the engine drives its sockets.")
    ] = Backends.AUTO,
    spin: Annotated[
        bool, typer.Option("--spin", metavar="", help="Engine workers poll, each on a core of its own.")
    ] = False,
    threads: Annotated[int, typer.Option("-t", "--threads", metavar="N", help="Engine workers.")] = 1,
    headers: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="'K: V'", help="A request header.")
    ] = None,
    method: Annotated[
        str | None, typer.Option("-X", "--method", metavar="METHOD", help="GET, or POST with a body.")
    ] = None,
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT|@FILE", help="The request's body.")] = None,
    status: Annotated[int, typer.Option("--status", metavar="N", help="The right answer's status.")] = 200,
    warmup: Annotated[
        str, typer.Option("--warmup", metavar="TIME|auto", help="Loaded before it is measured; auto: until steady.")
    ] = "1s",
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="When a request is given up.")] = "5s",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of all that is drawn, such as arrivals.")] = 1,
    json: AsJson = False,
) -> None:
    """Load a running server: closed with -c users, or open at -R requests per second."""
    endpoint, path = read_url(url)
    tls = read_tls(url, cacert, insecure=insecure)
    request = read_request(path, method, headers or [], body, status)
    cell = Cell(
        variant=Variant(entry=running_server(endpoint, tls), http="2" if http2 else "1.1", tls=tls),
        scenario=Scenario(name="load", request=request, picks=read_picks(request)),
        load=read_load(
            Pressure(
                connections=connections,
                duration_ns=duration_ns("-d", duration),
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
        timeout_ns=duration_ns("--timeout", timeout),
        engine=EngineMode(backend=backend.value, spin=spin),
    )
    if cell.warmup_detect and cell.load.changes:
        raise UsageError(
            "--warmup auto wants a load that does not change by design", hint="give a time, such as --warmup 10s"
        )
    recording = _record(cell, endpoint, at_least_one("-t", threads), seed, Console(stderr=True))
    traffic = recording.traffic
    if traffic is not None and traffic.ended == "interrupted" and traffic.seconds <= 0:
        raise KeyboardInterrupt  # before its measurement began there is nothing to tell
    result = load_result(url, cell, recording)
    if json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    else:
        print_load(result, Console())
    if result.ended == "interrupted":
        raise typer.Exit(exits.INTERRUPTED)
    if not result.valid:
        raise typer.Exit(exits.COULD_NOT_RUN)


def _record(cell: Cell, endpoint: Endpoint, threads: int, seed: int, console: Console) -> Recording:
    """Put the load on and keep what was seen; Ctrl-C ends it early and keeps it too."""
    load_what_judges()
    probe = ProcessTreeProbe(peer=endpoint.host)
    started_unix_ns = time.time_ns()
    with passing_log() as log, OneLine(console) as line:
        drive = Drive(
            cell=cell,
            endpoint=endpoint,
            seed=seed,
            cpus=(),
            workers=min(threads, cell.load.connections),
            log=log,
            keep_interrupted=True,
            on_start=lambda pid: probe.follow("engine", pid),
            on_interval=lambda interval: line.show(Text(live_line(cell, interval))),
            is_warm=Watch(cell).is_warm if cell.warmup_detect else None,
        )
        try:
            traffic = EngineDriver(find_engine()).drive(drive)
        finally:
            series = probe.finish()
    return Recording(
        cell_id=cell.id, round=0, position=0, seed=seed, started_unix_ns=started_unix_ns, traffic=traffic, series=series
    )
