"""`redline limit`: the highest rate at which a running server meets an objective."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from redline.cli import exits
from redline.cli.contracts import LimitResult
from redline.cli.limit_view import Broken, Ended, limit_result, print_limit, probe_line
from redline.cli.load_shape import Arrivals
from redline.cli.load_target import read_picks, read_request, read_tls, read_url, running_server
from redline.cli.load_view import live_line
from redline.cli.one_line import OneLine
from redline.cli.passing_log import passing_log, without_log
from redline.cli.selection import AsJson, at_least_one, duration_ns
from redline.errors import DriveError, UsageError
from redline.model import Cell, Interval, Load, Objective, Open, Scenario, Variant
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.probing import Prober
from redline.search import Converged, Proposal, Search, Settings
from redline.search.steps import QUANTILES
from redline.suite import WrongValueError, parse_objectives, parse_rate, parse_share

FEWEST_REQUESTS = 100
"""In a probe of the lowest rate that is tried: fewer say next to nothing."""
SHORTEST_PROBE_NS = 1_000_000_000
FEW_ERRORS = "errors < 1%"
"""What a set of objectives asks for that says nothing of errors."""


def limit(
    url: Annotated[str, typer.Argument(metavar="URL", help="Such as http://127.0.0.1:8080/path.", show_default=False)],
    objective: Annotated[
        list[str],
        typer.Option(
            "--objective",
            metavar="[NAME:]'p99 < 200ms, …'",
            help="What has to be met; several share their probes.",
            show_default=False,
        ),
    ],
    arrivals: Annotated[
        Arrivals, typer.Option("--arrivals", metavar="poisson|uniform", help="When requests fall due.")
    ] = Arrivals.POISSON,
    connections: Annotated[int, typer.Option("-c", "--connections", metavar="N", help="Connections at most.")] = 256,
    duration: Annotated[str, typer.Option("-d", "--duration", metavar="TIME", help="Length of a probe.")] = "5s",
    warmup: Annotated[str, typer.Option("--warmup", metavar="TIME", help="Loaded before a probe counts.")] = "1s",
    start: Annotated[str, typer.Option("--start", metavar="N", help="The first rate, per second.")] = "1000",
    probes: Annotated[int, typer.Option("--probes", metavar="N", help="Probes at most.")] = 12,
    precision: Annotated[str, typer.Option("--precision", metavar="SHARE", help="Half width to reach.")] = "3%",
    timeout: Annotated[str, typer.Option("--timeout", metavar="TIME", help="When a request is given up.")] = "5s",
    headers: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="'K: V'", help="A request header.")
    ] = None,
    method: Annotated[str | None, typer.Option("-X", "--method", metavar="METHOD", help="GET, or POST.")] = None,
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT|@FILE", help="The request's body.")] = None,
    status: Annotated[int, typer.Option("--status", metavar="N", help="The right answer's status.")] = 200,
    http2: Annotated[bool, typer.Option("--http2", metavar="", help="Speak HTTP/2.")] = False,
    insecure: Annotated[bool, typer.Option("--insecure", metavar="", help="Take any certificate.")] = False,
    cacert: Annotated[Path | None, typer.Option("--cacert", metavar="FILE", help="PEM: trusted.")] = None,
    threads: Annotated[int, typer.Option("-t", "--threads", metavar="N", help="Engine workers.")] = 1,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of the first probe's arrivals.")] = 1,
    json: AsJson = False,
) -> None:
    """Find the highest rate at which a running server meets an objective, as an interval."""
    sets = _read_sets(objective)
    endpoint, path = read_url(url)
    timeout_ns = duration_ns("--timeout", timeout)
    _within_timeout(sets, timeout_ns, timeout)
    tls = read_tls(url, cacert, insecure=insecure)
    request = read_request(path, method, headers or [], body, status)
    at_least_one("-c", connections)
    shape = Open(rate_per_s=1.0, arrivals=arrivals.value, connections=connections)
    cell = Cell(
        variant=Variant(entry=running_server(endpoint, tls), http="2" if http2 else "1.1", tls=tls),
        scenario=Scenario(name="limit", request=request, picks=read_picks(request)),
        load=Load(name="probe", shape=shape, duration_ns=_probe_ns(duration)),
        warmup_ns=duration_ns("--warmup", warmup, least_ns=0),
        timeout_ns=timeout_ns,
    )
    seconds = cell.load.duration_ns / 1e9
    settings = Settings(
        lowest_per_s=FEWEST_REQUESTS / seconds,
        start_per_s=_quantity("--start", start, parse_rate),
        probes=at_least_one("--probes", probes),
        precision=_quantity("--precision", precision, parse_share),
    )
    search, console = Search(sets, settings), Console(stderr=True)
    workers = min(at_least_one("-t", threads), connections)
    with passing_log() as log:
        asked = tuple(each for one in sets.values() for each in one)
        prober = Prober(EngineDriver(find_engine()), cell, endpoint, workers, seed, log, asked)
        _verify(prober)
        end = _run(search, prober, console)
    _tell(limit_result(url, search, end, seed), end, json=json)


def _tell(result: LimitResult, end: Ended, *, json: bool) -> None:
    """Print the answer; how the search ended is the exit code."""
    if json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    else:
        print_limit(result, Console())
    if isinstance(end, Broken):
        sys.stderr.write(f"redline: {end.error}\n")
    if end is None:
        raise typer.Exit(exits.INTERRUPTED)
    if not isinstance(end, Converged):
        raise typer.Exit(exits.COULD_NOT_RUN)


def _verify(prober: Prober) -> None:
    """Ask once before anything is measured: fast failures would pass for speed. Raises DriveError."""
    wrong = prober.driver.verify(prober.cell, prober.endpoint)
    if wrong is not None:
        hint = "ask the server by hand; --status, -H, -X and --body say what is asked and which status is right"
        raise DriveError(f"the server's answer is wrong: {wrong}", hint=hint)


def _run(search: Search, prober: Prober, console: Console) -> Ended:
    """The search to its end. Ctrl-C ends it, or a DriveError, and what was seen is kept.

    Raises DriveError when nothing was seen before it.
    """
    try:
        while isinstance(step := search.next(), Proposal):
            with OneLine(console) as line:
                prober.on_interval = _shown(line, prober.cell)
                evidence = prober.probe(step, len(search.evidence))
            search.saw(evidence)
            console.print(Text(probe_line(evidence, step.why, len(search.evidence))), soft_wrap=True)
    except KeyboardInterrupt:
        return None
    except DriveError as error:
        broken = Broken(without_log(error, prober.log))
        if not search.evidence:
            raise broken.error from error
        return broken
    return step


def _shown(line: OneLine, cell: Cell) -> Callable[[Interval], None]:
    return lambda interval: line.show(Text(live_line(cell, interval)))


def _read_sets(texts: list[str]) -> dict[str, tuple[Objective, ...]]:
    """Objectives by name; one without a name is its own. Raises UsageError.

    Where nothing is said of errors, fewer than 1% are asked for: a server that only refuses is fast.
    """
    sets: dict[str, tuple[Objective, ...]] = {}
    for text in texts:
        name, colon, conditions = text.partition(":")
        try:
            found = parse_objectives(conditions if colon else text)
        except WrongValueError as error:
            raise UsageError(f"--objective: {error.message}", hint=error.hint) from None
        name = (name if colon else text).strip()
        if name in sets:
            raise UsageError(f"--objective: `{name}` is given twice", hint="write both in one, with a comma")
        told = any(each.metric == "errors" for each in found)
        sets[name] = found if told else (*found, *parse_objectives(FEW_ERRORS))
    return sets


def _within_timeout(sets: dict[str, tuple[Objective, ...]], timeout_ns: int, timeout: str) -> None:
    """Raises UsageError for a limit of latency that no request can exceed, since it is given up before."""
    for each in (one for conditions in sets.values() for one in conditions):
        if each.metric in (*QUANTILES, "max") and each.limit >= timeout_ns:
            raise UsageError(
                f"--objective: `{each.text}` cannot be told from --timeout {timeout}, when a request is given up",
                hint="raise --timeout well above the limit",
            )


def _probe_ns(text: str) -> int:
    found_ns = duration_ns("-d", text)
    if found_ns < SHORTEST_PROBE_NS:
        raise UsageError(f"-d {text} is too short", hint="a probe takes 1 s at least: give -d 1s or more")
    return found_ns


def _quantity(flag: str, text: str, parse: Callable[[str], float]) -> float:
    try:
        found = parse(text)
    except WrongValueError as error:
        raise UsageError(f"{flag}: {error.message}", hint=error.hint) from None
    if found <= 0:
        raise UsageError(f"{flag} {text} is not possible", hint=f"give {flag} more than 0")
    return found
