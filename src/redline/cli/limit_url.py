"""`redline limit URL`: the search on a server that is running."""

import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from redline.analysis.limits import Subject, cell_limit, probe
from redline.cli import exits
from redline.cli.beforehand import load_what_judges
from redline.cli.command_line import Arrivals
from redline.cli.flags import DETECTED, at_least_one, duration_ns, read_seed, read_timeout, read_workers
from redline.cli.limit_asked import Asked, load_told, probe_ns, read_sets, within_timeout
from redline.cli.limit_view import Broken, Ended, answers, ending, probe_line, wait_line, warm_line
from redline.cli.load_target import read_picks, read_request, read_server, read_tls, read_url
from redline.cli.load_view import live_line
from redline.cli.one_line import OneLine
from redline.cli.passing_log import passing_log, without_log
from redline.cli.show import show
from redline.errors import DriveError, UsageError
from redline.model import Cell, Finding, Interval, Load, Open, Scenario
from redline.model.limits import LimitProbe, LimitReport, LimitStart
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.plugins.machine import read_environment
from redline.plugins.probes.process_tree import ProcessTreeProbe
from redline.ports import Placement
from redline.quantities import rate
from redline.report.sections.limit import limit_summary
from redline.running.probing import Prober, template
from redline.running.recording_driver import WatchedDriver
from redline.running.steal_retry import Patience
from redline.search import Converged, Evidence, Proposal, Search
from redline.search.client import disturbed
from redline.suite import DETECTION_NS
from redline.suite.schema.load import MOST_CONNECTIONS


@dataclass(frozen=True)
class Over:
    """What a URL is asked with, which a suite says itself; None where a flag was left out."""

    arrivals: Arrivals | None = None
    connections: int | None = None
    timeout: str | None = None
    headers: list[str] | None = None
    method: str | None = None
    body: str | None = None
    status: int | None = None
    http2: bool = False
    insecure: bool = False
    cacert: Path | None = None
    threads: int | None = None


@dataclass
class _Searched:
    """A search and what it is made with."""

    search: Search
    prober: Prober
    driver: WatchedDriver
    probes: list[LimitProbe] = field(default_factory=list)
    warm_ups: list[LimitStart] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def limit_url(asked: Asked, over: Over) -> None:
    """Search, and print the answer; how the search ended is the exit code."""
    if not asked.objectives:
        raise UsageError("nothing says what is to be met", hint="give --objective 'p99 < 200ms, errors < 0.1%'")
    sets = read_sets(asked.objectives)
    cell, seed = _cell(asked, over), 1 if asked.seed is None else read_seed(asked.seed)
    within_timeout(sets, cell.timeout_ns, f"--timeout {over.timeout or '5s'}")
    search = Search(sets, asked.settings(cell.load.duration_ns, asked.start_per_s or 1000.0))
    workers = read_workers(1 if over.threads is None else over.threads, cell.load.connections)
    driver, console, started_unix_ns = EngineDriver(find_engine()), Console(stderr=True), time.time_ns()
    environment = read_environment(driver.version(), driver.sha256(), Placement())
    load_what_judges()
    with passing_log() as log:
        objectives = tuple(each for one in sets.values() for each in one)
        endpoint = read_url(asked.target)[0]
        watched = WatchedDriver(driver, lambda: (ProcessTreeProbe(peer=endpoint.host),))
        prober = Prober(watched, cell, endpoint, workers, seed, log, objectives)
        _verify(prober)
        made = _Searched(search, prober, watched)
        end = _run(made, console)
    asked_of = f"{cell.scenario.request.method} {cell.scenario.request.path}"
    subject = Subject(asked.target, asked.target, asked_of, load_told(template(cell)))
    beyond = "that is for suites, whose servers are Redline's own"
    told = cell_limit(subject, ending(end), answers(search, end), made.probes, beyond)
    report = LimitReport(
        url=asked.target,
        started_unix_ns=started_unix_ns,
        command=shlex.join(["redline", *sys.argv[1:]]),
        seed=seed,
        precision=search.settings.precision,
        environment=environment,
        cells=(told.model_copy(update={"findings": tuple(made.findings), "starts": tuple(made.warm_ups)}),),
    )
    _tell(report, end, json=asked.json)


def _cell(asked: Asked, over: Over) -> Cell:
    """What is asked of whom, with a load that lacks but its rate. Raises UsageError."""
    endpoint, path = read_url(asked.target)
    tls = read_tls(asked.target, over.cacert, insecure=over.insecure)
    status = 200 if over.status is None else over.status
    request = read_request(path, over.method, over.headers or [], over.body, status, http2=over.http2)
    detected = asked.warmup == DETECTED
    connections = 256 if over.connections is None else at_least_one("-c", over.connections, MOST_CONNECTIONS)
    shape = Open(rate_per_s=1.0, arrivals=(over.arrivals or Arrivals.POISSON).value, connections=connections)
    return Cell(
        variant=read_server(endpoint, tls, http2=over.http2),
        scenario=Scenario(name="limit", request=request, picks=read_picks(request)),
        load=Load(name="probe", shape=shape, duration_ns=probe_ns("-d", asked.duration or "5s")),
        warmup_ns=DETECTION_NS if detected else duration_ns("--warmup", asked.warmup or "1s", least_ns=0),
        warmup_detect=detected,
        timeout_ns=read_timeout(over.timeout or "5s"),
    )


def _tell(report: LimitReport, end: Ended, *, json: bool) -> None:
    if json:
        sys.stdout.write(report.model_dump_json(indent=2) + "\n")
    else:
        show(limit_summary(report))
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


def _run(made: _Searched, console: Console) -> Ended:
    """The search to its end. Ctrl-C ends it, or a DriveError, and what was seen is kept.

    Raises DriveError when nothing was seen before it.
    """
    search, prober = made.search, made.prober
    patience = Patience(lambda seconds: console.print(Text(wait_line(seconds), style="dim"), soft_wrap=True))
    try:
        while isinstance(step := search.next(), Proposal):
            if prober.cell.warmup_ns and not made.warm_ups:
                _warm(made, step, console)
            search.saw(patience.undisturbed(step, lambda again: _probe(made, again, console, patient=patience.left)))
    except KeyboardInterrupt:
        return None
    except DriveError as error:
        broken = Broken(without_log(error, prober.log))
        if not made.probes:
            raise broken.error from error
        return broken
    return step


def _probe(made: _Searched, step: Proposal, console: Console, *, patient: bool) -> Evidence:
    """One more, shown and kept. Raises KeyboardInterrupt and DriveError, also where the server did not outlive it."""
    prober = made.prober
    with OneLine(console) as line:
        prober.on_interval = _shown(line, prober.cell)
        evidence = prober.probe(step, 1 + len(made.probes))
    found = made.driver.findings(prober.cell.id, len(made.probes))
    evidence = disturbed(evidence, found, prober.objectives, patient=patient)
    made.findings.extend(found)
    made.probes.append(probe(evidence, step.why))
    console.print(Text(probe_line(evidence, step.why, len(made.probes))), soft_wrap=True)
    _raise_if_gone(prober, evidence)
    return evidence


def _warm(made: _Searched, first: Proposal, console: Console) -> None:
    """Before its first probe. Raises KeyboardInterrupt and DriveError."""
    with OneLine(console) as line:
        made.prober.on_interval = _shown(line, made.prober.cell)
        made.warm_ups.append(made.prober.warm(first.rate_per_s, 0))
    console.print(Text(warm_line(made.warm_ups[-1]), style="dim"), soft_wrap=True)


def _raise_if_gone(prober: Prober, evidence: Evidence) -> None:
    """Raises DriveError when the server did not outlive the probe."""
    if wrong := prober.gone(evidence):
        message = f"the server gives no right answer any more after {rate(evidence.rate_per_s)}: {wrong}"
        raise DriveError(message, hint="see whether it is still running, and what it printed")


def _shown(line: OneLine, cell: Cell) -> Callable[[Interval], None]:
    return lambda interval: line.show(Text(live_line(cell, interval)))
