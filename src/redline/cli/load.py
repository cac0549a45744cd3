"""`redline load`: the engine on a server that is already running."""

import sys
import tempfile
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer
from rich.console import Console

from redline.cli import exits
from redline.cli.load_view import live_line, load_result, print_load
from redline.cli.selection import AsJson, duration_ns
from redline.errors import UsageError
from redline.model import (
    Body,
    Build,
    Cell,
    Closed,
    Expected,
    Load,
    Open,
    Recording,
    Request,
    Scenario,
    ServerEntry,
    Start,
    Variant,
)
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.plugins.probes.process_tree import ProcessTreeProbe
from redline.ports import Drive, Endpoint

_DEFAULT_PORT = 80


class Arrivals(StrEnum):
    """When the requests of an open load fall due."""

    POISSON = "poisson"
    UNIFORM = "uniform"


def load(
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as http://127.0.0.1:8080/path.", show_default=False)],
    connections: Annotated[
        int, typer.Option("-c", "--connections", metavar="N", help="Connections; users in a closed load.")
    ] = 64,
    duration: Annotated[str, typer.Option("-d", "--duration", metavar="TIME", help="How long is measured.")] = "10s",
    rate: Annotated[
        float | None, typer.Option("-R", "--rate", metavar="N", help="Open load: requests per second.")
    ] = None,
    arrivals: Annotated[
        Arrivals, typer.Option("--arrivals", help="Open load: when requests fall due.")
    ] = Arrivals.POISSON,
    threads: Annotated[int, typer.Option("-t", "--threads", metavar="N", help="Engine workers.")] = 1,
    headers: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="'K: V'", help="A request header.")
    ] = None,
    method: Annotated[
        str | None, typer.Option("-X", "--method", metavar="METHOD", help="GET, or POST with a body.")
    ] = None,
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT|@FILE", help="The request's body.")] = None,
    status: Annotated[int, typer.Option("--status", metavar="N", help="The right answer's status.")] = 200,
    warmup: Annotated[str, typer.Option("--warmup", metavar="TIME", help="Loaded before it is measured.")] = "1s",
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="When a request is given up.")] = "5s",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of poisson arrivals.")] = 1,
    json: AsJson = False,
) -> None:
    """Load a running server: closed with -c users, or open at -R requests per second."""
    endpoint, path = read_url(url)
    _refuse_small(connections, threads, rate)
    shape = (
        Closed(users=connections)
        if rate is None
        else Open(rate_per_s=rate, arrivals=arrivals.value, connections=connections)
    )
    request = Request(
        method=method or ("GET" if body is None else "POST"),
        path=path,
        headers=dict(_header(line) for line in headers or []),
        body=None if body is None else _body(body),
        expect=Expected(status=status),
    )
    scenario = Scenario(name="load", request=request)
    drive_load = Load(name="load", shape=shape, duration_ns=duration_ns("-d", duration))
    cell = Cell(
        variant=Variant(entry=running_server(endpoint)),
        scenario=scenario,
        load=drive_load,
        warmup_ns=duration_ns("--warmup", warmup, least_ns=0),
        timeout_ns=duration_ns("--timeout", timeout),
    )
    recording = _record(cell, endpoint, threads, seed, Console(stderr=True))
    result = load_result(url, cell, recording)
    if json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    else:
        print_load(result, Console())
    if result.ended == "interrupted":
        raise typer.Exit(exits.INTERRUPTED)


def running_server(endpoint: Endpoint) -> ServerEntry:
    """The entry of a server that somebody else runs."""
    nothing = ("already", "running")
    return ServerEntry(
        name=f"{endpoint.host}:{endpoint.port}",
        about="already running",
        runtime="",
        family_folder="",
        build=Build(run=nothing, inputs=nothing, outputs=nothing),
        start=Start(command=nothing),
    )


def read_url(url: str) -> tuple[Endpoint, str]:
    """Host and port, and the path with its query. Raises UsageError for what the engine cannot reach."""
    parts = urlsplit(url if "//" in url else f"http://{url}")
    if parts.scheme != "http":
        raise UsageError(f"{url}: cannot load {parts.scheme}://", hint="the engine speaks plain HTTP/1.1: use http://")
    try:
        port = parts.port or _DEFAULT_PORT
    except ValueError as error:
        raise UsageError(f"{url}: {error}", hint="write it like http://127.0.0.1:8080/path") from None
    if not parts.hostname:
        raise UsageError(f"{url}: no host", hint="write it like http://127.0.0.1:8080/path")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Endpoint(parts.hostname, port), path


def _record(cell: Cell, endpoint: Endpoint, threads: int, seed: int, console: Console) -> Recording:
    """Put the load on and keep what was seen; Ctrl-C ends it early and keeps it too."""
    probe = ProcessTreeProbe()
    started_unix_ns = time.time_ns()
    with tempfile.TemporaryDirectory() as scratch, console.status("connecting") as status:
        drive = Drive(
            cell=cell,
            endpoint=endpoint,
            seed=seed,
            cpus=(),
            workers=min(threads, cell.load.connections),
            log=Path(scratch) / "engine.log",
            keep_interrupted=True,
            on_start=lambda pid: probe.follow("engine", pid),
            on_interval=lambda interval: status.update(live_line(cell, interval)),
        )
        try:
            traffic = EngineDriver(find_engine()).drive(drive)
        finally:
            series = probe.finish()
    return Recording(
        cell_id=cell.id, round=0, position=0, seed=seed, started_unix_ns=started_unix_ns, traffic=traffic, series=series
    )


def _refuse_small(connections: int, threads: int, rate: float | None) -> None:
    for flag, number in (("-c", connections), ("-t", threads)):
        if number < 1:
            raise UsageError(f"{flag} {number} is not possible", hint=f"give {flag} a whole number from 1")
    if rate is not None and not rate > 0:
        raise UsageError(f"-R {rate:g} is not a rate", hint="give -R a number above 0, in requests per second")


def _header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"-H {line!r} is not a header", hint="write it like -H 'Accept: text/plain'")
    return name.strip(), value.strip()


def _body(text: str) -> Body:
    if not text.startswith("@"):
        return Body(text=text)
    try:
        return Body(raw=Path(text[1:]).read_bytes())
    except OSError as error:
        raise UsageError(
            f"--body {text}: {error.strerror}", hint="name a file that can be read, as --body @FILE"
        ) from None
