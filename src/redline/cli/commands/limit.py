"""`redline limit`: the highest rate at which servers meet an objective."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import typer
from rich.console import Console

from redline.cli import exits, limit_suite, places
from redline.cli.command_line import Arrivals
from redline.cli.flags import read_overrides
from redline.cli.limit_asked import Asked
from redline.cli.limit_url import Over, limit_url
from redline.cli.show import show
from redline.errors import UsageError
from redline.report.render import LIMIT_RENDERERS
from redline.report.sections.limit import limit_summary

PROBES, PRECISION = 12, "3%"
_LIKE_A_URL = re.compile(r"\w+://.*|[^/]+:\d+(/.*)?|localhost(/.*)?")


def limit(
    target: str | None,
    objective: list[str] | None,
    servers: list[str] | None,
    scenarios: list[str] | None,
    options: list[str] | None,
    quick: bool,
    duration: str | None,
    warmup: str | None,
    start: str | None,
    probes: int,
    precision: str,
    trials: int | None,
    no_beyond: bool,
    seed: int | None,
    output: Path | None,
    resume: Path | None,
    arrivals: Arrivals | None,
    connections: int | None,
    timeout: str | None,
    headers: list[str] | None,
    method: str | None,
    body: str | None,
    status: int | None,
    http2: bool,
    insecure: bool,
    cacert: Path | None,
    threads: int | None,
    json: bool,
) -> None:
    """Find the highest rate at which servers meet an objective, as an interval: of a suite, or of what is running."""
    over = Over(arrivals, connections, timeout, headers, method, body, status, http2, insecure, cacert, threads)
    of_suites: dict[str, object] = {
        "-s": servers,
        "-m": scenarios,
        "-w": options,
        "--quick": quick,
        "--trials": trials,
        "--no-beyond": no_beyond,
        "-o": output,
    }
    asked = Asked(target or "", objective or [], start, probes, precision, duration, warmup, seed, json)
    if resume is not None:
        given = _given(over) | of_suites | _given_of(asked)
        _refuse(given, "--resume goes on with a search as it was planned, and takes no")
        _suite(None, resume, json=json)
    elif target is None:
        url = "http://127.0.0.1:8080/ --objective 'p99 < 200ms'"
        hint = f"try `redline limit suites/limit.yaml`, or `redline limit {url}`"
        raise UsageError("neither a suite nor a URL is named", hint=hint)
    elif target.startswith(("http://", "https://")):
        _refuse({**of_suites, "--resume": resume}, f"{target} is running already, and takes no")
        limit_url(asked, over)
    else:
        _refuse_half_a_url(target)
        _refuse(_given(over), f"{target} is a suite, which says itself what is asked how, and takes no")
        overrides = read_overrides(servers, scenarios, None, duration, None, seed, options, quick, warmup)
        _suite((asked, limit_suite.Wanted(overrides, trials, output, beyond=not no_beyond)), None, json=json)


def _refuse_half_a_url(target: str) -> None:
    """Raises UsageError for what looks like a URL and is not taken for one."""
    if _LIKE_A_URL.fullmatch(target) and not Path(target).exists():
        url = f"http://{target.partition('://')[2] or target}"
        raise UsageError(f"{target} is no suite, and a URL begins with http:// or https://", hint=f"try {url}")


def _given(over: Over) -> dict[str, object]:
    flags = {
        "--arrivals": over.arrivals,
        "-c": over.connections,
        "--timeout": over.timeout,
        "-H": over.headers,
        "-X": over.method,
        "--body": over.body,
        "--status": over.status,
        "--http2": over.http2,
        "--insecure": over.insecure,
        "--cacert": over.cacert,
        "-t": over.threads,
    }
    return dict(flags)


def _given_of(asked: Asked) -> dict[str, object]:
    return {
        "a suite": asked.target,
        "--objective": asked.objectives,
        "--start": asked.start,
        "-d": asked.duration,
        "--warmup": asked.warmup,
        "--seed": asked.seed,
        "--probes": asked.probes != PROBES,
        "--precision": asked.precision != PRECISION,
    }


def _refuse(flags: Mapping[str, object], why: str) -> None:
    """Raises UsageError for flags that were given and mean nothing there."""
    given = [flag for flag, value in flags.items() if value not in (None, False, "", [])]
    if given:
        raise UsageError(f"{why} {', '.join(given)}", hint=f"leave out {', '.join(given)}: `redline limit -h`")


def _suite(begun: tuple[Asked, limit_suite.Wanted] | None, resume: Path | None, *, json: bool) -> None:
    """Search a suite, or go on with it; how the searches ended is the exit code."""
    console = Console(stderr=True)
    if begun is not None:
        opened = limit_suite.begin(*begun, console)
    else:
        assert resume is not None, "one of the two is given"
        opened = limit_suite.reopen(resume, console)
    report, interrupted = limit_suite.go_on(opened, console)
    if json:
        sys.stdout.write(LIMIT_RENDERERS["json"].render(report).decode())
    else:
        show(limit_summary(report))
    folder = opened.store.folder
    page = (folder / "limit.html").resolve()
    console.print(f"report: {page}", soft_wrap=True, highlight=False, markup=False)
    if interrupted:
        again = f"{places.own_name()} limit --resume {folder}"
        console.print(f"interrupted; go on with: {again}", soft_wrap=True, markup=False)
        raise typer.Exit(exits.INTERRUPTED)
    if any(cell.ended != "converged" for cell in report.cells):
        raise typer.Exit(exits.COULD_NOT_RUN)
