"""Every command with its flags, as `redline --help` shows them.

This module imports nothing heavy, so `--version`, `--help` and shell completion answer at once. A command's own module
is imported when the command runs: its function has the same parameters as the declaration here.
"""

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
IMPLEMENTATIONS: dict[Callable[..., None], str] = {}
"""Where the work of each declared command is done."""


def _command(implementation: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare a command that is done by a function, `module:function` below `redline.cli.commands`."""

    def declare(declared: Callable[..., None]) -> Callable[..., None]:
        @wraps(declared)
        def run(**flags: object) -> None:
            module, function = implementation.split(":")
            getattr(import_module(f"redline.cli.commands.{module}"), function)(**flags)

        app.command(declared.__name__.removesuffix("_"))(run)
        IMPLEMENTATIONS[run] = implementation
        return run

    return declare


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version as of  # noqa: PLC0415 - it takes as long as all the rest

        typer.echo(f"redline {of('redline')}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """A performance lab for HTTP servers whose numbers nobody has to doubt."""
    del version


class Arrivals(StrEnum):
    """When the requests of an open load are due."""

    POISSON = "poisson"
    UNIFORM = "uniform"


class Backends(StrEnum):
    """How the engine drives its sockets."""

    AUTO = "auto"
    EPOLL = "epoll"
    IO_URING = "io_uring"


class ReportFormat(StrEnum):
    """What a report can be rendered as."""

    HTML = "html"
    CSV = "csv"
    JSON = "json"
    MD = "md"


class HistoryFormat(StrEnum):
    """What a history can be rendered as, other than the terminal and JSON."""

    MD = "md"


class FailOnVerdict(StrEnum):
    """Verdicts that make `redline compare` exit with 3."""

    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"


class FailOnChange(StrEnum):
    """Changes that make `redline history` exit with 3."""

    REGRESSION = "regression"


Suite = Annotated[Path, typer.Argument(metavar="SUITE", help="A suite: a YAML file.", show_default=False)]
SuiteOrNone = Annotated[Path | None, typer.Argument(metavar="SUITE", help="A suite: a YAML file.", show_default=False)]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run's directory.", show_default=False)]
Servers = Annotated[
    list[str] | None, typer.Option("-s", "--server", metavar="GLOB,…", help="Only these servers, such as 'rust.*'.")
]
Scenarios = Annotated[
    list[str] | None, typer.Option("-m", "--scenario", metavar="NAME,…", help="Only these scenarios.")
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "-w",
        "--with",
        metavar="NAME=VALUE,…",
        help="Only servers with this value of an option; servers without the option stay.",
    ),
]
Users = Annotated[int | None, typer.Option("-u", "--users", metavar="N", help="Users of every closed load.")]
Duration = Annotated[
    str | None, typer.Option("-d", "--duration", metavar="TIME", help="Length of every load, such as 25s.")
]
Warmup = Annotated[
    str | None,
    typer.Option("--warmup", metavar="TIME|auto", help="Load before each measurement: 30s, or until steady."),
]
Trials = Annotated[int | None, typer.Option("--trials", metavar="N", help="Trials of every cell.")]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="Seed of the order and of the arrivals.")]
Quick = Annotated[bool, typer.Option("--quick", help="Every cell, but shorter: as `quick` in the suite says.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON of a published schema to stdout.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where to keep it.")]


@_command("run:run")
def run(
    suite: SuiteOrNone = None,
    servers: Servers = None,
    scenarios: Scenarios = None,
    options: Options = None,
    users: Users = None,
    duration: Duration = None,
    warmup: Warmup = None,
    trials: Trials = None,
    seed: Seed = None,
    quick: Quick = False,
    output: Output = None,
    resume: Annotated[Path | None, typer.Option("--resume", metavar="DIR", help="Resume a run that stopped.")] = None,
    json: AsJson = False,
) -> None:
    """Run a suite: build its servers, measure every cell, report."""


@_command("check:check")
def check(
    suite: Suite,
    servers: Servers = None,
    scenarios: Scenarios = None,
    options: Options = None,
    users: Users = None,
    duration: Duration = None,
    warmup: Warmup = None,
    trials: Trials = None,
    seed: Seed = None,
    quick: Quick = False,
    json: AsJson = False,
) -> None:
    """Validate a suite and print its plan.

    Every problem of the file is printed at once, with line, column and a hint.
    """


@_command("build:build")
def build(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="GLOB,…", help="Servers of the catalogue, such as 'http4s.*'; all by default."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Build the servers of the catalogue that are not built yet."""


@_command("load:load")
def load(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Such as http://127.0.0.1:8080/path, or https://.", show_default=False)
    ],
    connections: Annotated[
        int, typer.Option("-c", "--connections", "--users", metavar="N", help="Connections; users in a closed load.")
    ] = 64,
    duration: Annotated[str, typer.Option("-d", "--duration", metavar="TIME", help="How long to measure.")] = "10s",
    rate: Annotated[
        str | None, typer.Option("-R", "--rate", metavar="N", help="Open load: requests per second.")
    ] = None,
    arrivals: Annotated[
        Arrivals | None,
        typer.Option("--arrivals", metavar="poisson|uniform", help="Open load: when requests are due; poisson."),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option("--replay", metavar="FILE", help="Open load: due times, one per line, without -R.")
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", metavar="N", help="Requests in flight on a connection: pipelined, or streams.")
    ] = 1,
    think: Annotated[
        str | None,
        typer.Option("--think", metavar="TIME|exp:TIME", help="Closed load: think time between answer and request."),
    ] = None,
    pace: Annotated[
        str | None, typer.Option("--pace", metavar="N", help="Closed load: requests per second of each user.")
    ] = None,
    stages: Annotated[
        list[str] | None,
        typer.Option("--stage", metavar="TO:TIME", help="Change to this many users, or this rate, over this time."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", help="Stop when this many requests were due.")
    ] = None,
    requests_per_connection: Annotated[
        int | None,
        typer.Option("--requests-per-connection", metavar="N", help="Replace a connection after N requests."),
    ] = None,
    http2: Annotated[
        bool, typer.Option("--http2", help="Speak HTTP/2: by ALPN over TLS, else from the start.")
    ] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="Accept any certificate; the result says so.")] = False,
    cacert: Annotated[
        Path | None, typer.Option("--cacert", metavar="FILE", help="PEM: trusted instead of the system's.")
    ] = None,
    backend: Annotated[
        Backends, typer.Option("--backend", metavar="auto|epoll|io_uring", help="How the engine drives its sockets.")
    ] = Backends.AUTO,
    spin: Annotated[bool, typer.Option("--spin", help="Engine workers poll; give each a core of its own.")] = False,
    threads: Annotated[
        int, typer.Option("-t", "--threads", metavar="N", help="Engine workers, at most one per connection.")
    ] = 1,
    headers: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="'K: V'", help="A request header.")
    ] = None,
    method: Annotated[
        str | None, typer.Option("-X", "--method", metavar="METHOD", help="GET by default, POST with a body.")
    ] = None,
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT|@FILE", help="The request's body.")] = None,
    status: Annotated[int, typer.Option("--status", metavar="N", help="The expected status.")] = 200,
    warmup: Annotated[
        str, typer.Option("--warmup", metavar="TIME|auto", help="Load before the measurement; auto: until steady.")
    ] = "1s",
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Give up on a request after this time.")
    ] = "5s",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of everything random, such as arrivals.")] = 1,
    json: AsJson = False,
) -> None:
    """Load a running server, and print its latency and throughput.

    The load is closed with -c users, or open with -R requests per second.
    """


@_command("limit:limit")
def limit(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="SUITE|URL", help="A suite, or a running server: http://127.0.0.1:8080/path.", show_default=False
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            "--objective",
            metavar="[NAME:]'p99 < 200ms, …'",
            help="The objective, instead of the suite's; several share their probes.",
            show_default=False,
        ),
    ] = None,
    servers: Servers = None,
    scenarios: Scenarios = None,
    options: Options = None,
    quick: Quick = False,
    duration: Annotated[
        str | None, typer.Option("-d", "--duration", metavar="TIME", help="Length of a probe; 5s for a URL.")
    ] = None,
    warmup: Annotated[
        str | None,
        typer.Option(
            "--warmup", metavar="TIME|auto", help="Load before the first probe; auto: until steady. 1s for a URL."
        ),
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="N", help="The first rate, per second; 1000 for a URL.")
    ] = None,
    probes: Annotated[int, typer.Option("--probes", metavar="N", help="At most this many probes per search.")] = 12,
    precision: Annotated[
        str, typer.Option("--precision", metavar="SHARE", help="Stop at this half width of the interval.")
    ] = "3%",
    trials: Annotated[
        int | None, typer.Option("--trials", metavar="N", help="Fresh starts at the ends of each interval; 3.")
    ] = None,
    no_beyond: Annotated[bool, typer.Option("--no-beyond", help="Skip the overload test.")] = False,
    seed: Seed = None,
    output: Output = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="DIR", help="Resume a search that stopped.")
    ] = None,
    arrivals: Annotated[
        Arrivals | None, typer.Option("--arrivals", metavar="poisson|uniform", help="URL: when requests are due.")
    ] = None,
    connections: Annotated[
        int | None, typer.Option("-c", "--connections", metavar="N", help="URL: connections at most; 256.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="URL: give up on a request after this time; 5s.")
    ] = None,
    headers: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="'K: V'", help="URL: a request header.")
    ] = None,
    method: Annotated[str | None, typer.Option("-X", "--method", metavar="METHOD", help="URL: GET, or POST.")] = None,
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT|@FILE", help="URL: the request's body.")] = None,
    status: Annotated[int | None, typer.Option("--status", metavar="N", help="URL: the expected status; 200.")] = None,
    http2: Annotated[bool, typer.Option("--http2", help="URL: speak HTTP/2.")] = False,
    insecure: Annotated[bool, typer.Option("--insecure", help="URL: accept any certificate.")] = False,
    cacert: Annotated[
        Path | None, typer.Option("--cacert", metavar="FILE", help="URL: PEM, trusted instead of the system's.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("-t", "--threads", metavar="N", help="URL: engine workers, at most -c; 1.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Find the highest rate that meets an objective, as an interval.

    Of every server of a suite, or of the running server behind a URL.
    """


@_command("report:report")
def report(
    run: RunFolder,
    form: Annotated[
        ReportFormat | None,
        typer.Option("--format", "-f", metavar="html|csv|json|md", help="Render it to stdout, in full."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show a stored run again.

    A summary in the terminal, or html, csv, json or md on stdout.
    """


@_command("compare:compare")
def compare(
    run: RunFolder,
    other: Annotated[
        Path | None,
        typer.Argument(metavar="RUN_B", help="Compared with RUN; without it, RUN's own variants with its baseline."),
    ] = None,
    fail_on: Annotated[
        list[FailOnVerdict] | None,
        typer.Option("--fail-on", metavar="slower|inconclusive", help="Exit with 3 on this verdict."),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare two runs whose environments differ gravely.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Compare two runs, or the variants of one run with its baseline.

    Prints ratios with 95% intervals, and verdicts.
    """


@_command("history:history")
def history(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Holds runs, such as runs/.", show_default=False)],
    servers: Servers = None,
    scenarios: Scenarios = None,
    recent: Annotated[
        int | None, typer.Option("--recent", metavar="N", help="Only regressions of the last N runs fail.")
    ] = None,
    fail_on: Annotated[
        FailOnChange | None,
        typer.Option("--fail-on", metavar="regression", help="Exit with 3 when a cell became slower and still is."),
    ] = None,
    form: Annotated[
        HistoryFormat | None, typer.Option("--format", "-f", metavar="md", help="For a pull request.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Follow every cell across runs: where it became faster or slower."""


@_command("judge:judge")
def judge(
    run: RunFolder,
    write: Annotated[
        bool, typer.Option("--write", help="Write report.html, results.csv and results.json again.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Judge a stored run by today's rules.

    Shows which findings differ from its stored results.
    """


@_command("list:list_catalogue")
def list_(json: AsJson = False) -> None:
    """List servers, scenarios and suites.

    Shows which servers are built, and which cannot be built here and why.
    """


@_command("doctor:doctor")
def doctor(json: AsJson = False) -> None:
    """Examine this machine: cores, clocks, limits, other load.

    Each with what to do about it.
    """


@_command("selftest:selftest")
def selftest(
    peers: Annotated[bool, typer.Option("--peers", help="Run other load generators on the PATH as well.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="N", help="Length of each case.", show_default="as each case needs"),
    ] = None,
    case: Annotated[
        list[str] | None, typer.Option("--case", metavar="NAME", help="Only this case; may be given again.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Test the engine against servers with known answers.

    Shows the truth, the measured value, the error, and whether that is good enough.
    """
