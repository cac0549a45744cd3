"""Every command with its flags, as `redline --help` shows them.

A command is a class of flags, whose docstring is its help. `execute` in the module of the same name in
`redline.cli.commands` gets the flags as one value. That module is imported when the command runs, and this module
imports nothing heavy. So `--version`, `--help` and shell completion answer at once.
"""

from collections.abc import Callable, Container
from contextvars import ContextVar
from enum import StrEnum
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.core import TyperCommand, TyperOption

from redline import defaults
from redline.cli import interrupts
from redline.errors import UsageError

if TYPE_CHECKING:  # it reads YAML, which nobody waits for who asks for help
    from redline.suite.schema.document import Document

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
FLAGS: "dict[str, type[Flags]]" = {}
"""The flags of each command by its name."""
F = TypeVar("F", bound="Flags")
_TYPED: ContextVar[frozenset[str]] = ContextVar("typed", default=frozenset())
"""The fields given on the command line; typer tells only their values."""


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


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Flags:
    """The flags of a command as one value; class attributes declare them. A dataclass takes longer to create.

    `typed` are the fields given on the command line. A caller in Python also says what `called` it, and may give
    its requests as `listed`, where a command line has them in a file.
    """

    def __init__(self, **values: object) -> None:
        self.typed = frozenset[str]()
        self.called = ""
        self.listed: Document | None = None
        vars(self).update({name: declared.default for name, declared in self.declared().items()} | values)

    @classmethod
    def declared(cls) -> dict[str, Any]:
        """The declaration of every field for typer; inherited fields first."""
        return {name: getattr(cls, name) for name in get_type_hints(cls)}

    def written(self) -> dict[str, str]:
        """Map fields to flags with their values, as users write them."""
        return {
            name: f"{declared.param_decls[0]} {getattr(self, name)}"
            for name, declared in self.declared().items()
            if declared.param_decls
        }

    def given(self, *, among: Container[str] = (), but: Container[str] = ()) -> tuple[str, ...]:
        """Return the flags that differ from their defaults, as users write them: those in `among`, or all but `but`."""
        return tuple(
            declared.param_decls[0] if declared.param_decls else declared.metavar
            for name, declared in self.declared().items()
            if name not in but and (not among or name in among) and getattr(self, name) != declared.default
        )


class _StrictCommand(TyperCommand):
    """A command that refuses a flag given twice if it takes one value; typer would use the last value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises UsageError."""
        if not ctx.resilient_parsing:  # shell completion reads half a command line
            values, _, given = self.make_parser(ctx).parse_args(args=list(args))
            # An argument is among them also where it is left out, without a value.
            _TYPED.set(frozenset(option.name for option in given if values.get(option.name) is not None))
            for option in given:
                takes_one = isinstance(option, TyperOption) and not option.multiple and not option.is_flag
                if takes_one and given.count(option) > 1:
                    flag = "/".join(option.opts)
                    raise UsageError(f"{flag} is given twice", hint="it takes one value: leave out the other")
        return super().parse_args(ctx, args)


def _command(name: str, *, words_follow: bool = False) -> Callable[[type[F]], type[F]]:
    """Declare a command by the class of its flags. With `words_follow`, flags after an argument are part of it."""

    def declare(kind: type[F]) -> type[F]:
        def run(**flags: object) -> None:
            command = import_module(f"redline.cli.commands.{name}")
            interrupts.raise_interrupts()
            _check_folder()
            given = kind(**flags)
            given.typed = _TYPED.get()
            command.execute(given)

        hints = get_type_hints(kind)
        parameters = [
            Parameter(field, Parameter.KEYWORD_ONLY, default=declared, annotation=hints[field])
            for field, declared in kind.declared().items()
        ]
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        settings = {"allow_interspersed_args": not words_follow}
        app.command(name, cls=_StrictCommand, help=kind.__doc__, context_settings=settings)(run)
        FLAGS[name] = kind
        return kind

    return declare


def _check_folder() -> None:
    """Raise UsageError if the current folder has been removed: no file in it or above it can be opened."""
    try:
        Path.cwd()
    except OSError as error:
        message = f"the current folder cannot be used: {error.strerror}"
        raise UsageError(message, hint="change to a folder that exists, with cd") from error


def _argument(metavar: str, text: str, default: Any = ...) -> Any:
    return typer.Argument(default, metavar=metavar, help=text, show_default=False)


def _flag(
    names: str,
    metavar: str | None,
    text: str,
    default: Any = None,
    shown: bool | str = True,
    completed: tuple[str, ...] = (),
) -> Any:
    """Declare a flag: its names, separated by spaces, the placeholder of its value, its help, and its shown default.

    `completed` are values that a shell completes, where others may be given too.
    """
    complete = (lambda incomplete: [name for name in completed if name.startswith(incomplete)]) if completed else None
    return typer.Option(
        default, *names.split(), metavar=metavar, help=text, show_default=shown, autocompletion=complete
    )


def _switch(names: str, text: str) -> Any:
    return _flag(names, None, text, default=False)


def _list(names: str, metavar: str, text: str) -> Any:
    """A flag that may be given several times."""
    return _flag(names, metavar, text, default=[], shown=False)


Arrivals: TypeAlias = Literal["poisson", "uniform"]
REPORT_FORMATS = (
    "html",
    "csv",
    "json",
    "md",
    "junit",
    "bmf",
    "benchmark",
    "annotations",
    "hgrm",
    "hlog",
    "intervals-csv",
    "intervals-ndjson",
    "collapsed",
    "speedscope",
    "svg",
)
SlugForm: TypeAlias = Literal["short", "full"]
DuetMetric: TypeAlias = Literal["cpu", "throughput", "p50", "p75", "p90", "p95", "p99"]


class FailOnVerdict(StrEnum):
    """Verdicts that make a command exit with 3. An enum, since typer takes no lists of literals."""

    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"


_SUITE = "A suite: a YAML file; without it, redline.yaml of this folder or above it."
_FAIL_ON = "Exit with 3 on this verdict."
_WAIT_QUIET = "Wait until other processes leave the machine idle, for 5 minutes at most."
_AS_JSON = "Print JSON of a published schema to stdout."
_OPENMETRICS = "Serve metrics of the load while it runs: http://127.0.0.1:PORT/metrics."
_OTLP = "Push the same metrics to a collector of OpenTelemetry."


class SelectionFlags(Flags):
    """The part of a suite, or of runs, that is selected."""

    servers: list[str] = _list("-s --server", "GLOB,…", "Only these servers, such as 'rust.*'.")
    scenarios: list[str] = _list("-m --scenario", "NAME,…", "Only these scenarios.")


class RequestFlags(Flags):
    """The request, and how to reach the server."""

    headers: list[str] = _list("-H --header", "'K: V'", "A request header.")
    method: str | None = _flag("-X --method", "METHOD", "GET by default, POST with a body.")
    body: str | None = _flag("--body", "TEXT|@FILE", "The request's body.")
    status: int | None = _flag("--status", "N", "The expected status; 200 by default.")
    requests: Path | None = _flag(
        "--requests", "FILE", "A list of requests; or a log, HAR, OpenAPI, …: see `redline import`."
    )
    scenarios: list[str] = _list("-m --scenario --request", "NAME,…", "Only these requests or scenarios.")
    timeout: str | None = _flag("--timeout", "TIME", "Give up on a request after this time; 5s by default.")
    http2: bool = _switch("--http2", "Speak HTTP/2: by ALPN over TLS, else from the start.")
    insecure: bool = _switch("--insecure", "Accept any certificate; the result says so.")
    cacert: Path | None = _flag("--cacert", "FILE", "PEM: trusted in place of the system's authorities.")
    mine: list[str] = _list("--target-is-mine", "HOST", "Confirm that HOST is yours to load; remembered.")


class SuiteFlags(SelectionFlags):
    """The selection and the settings of a suite."""

    loads: list[str] = _list("-l --load", "NAME,…", "Only these loads.")
    options: list[str] = _list(
        "-w --with", "NAME=VALUE,…", "Only servers with this value of an option; servers without the option stay."
    )
    users: int | None = _flag("-u --users", "N", "Users of every closed load.")
    duration: str | None = _flag("-d --duration", "TIME", "Length of every load, such as 25s.")
    warmup: str | None = _flag("--warmup", "TIME|auto", "Load before each measurement: 30s, or until steady.")
    trials: int | None = _flag("--trials", "N", "Trials of every cell; with --resume, in all.")
    seed: int | None = _flag("--seed", "N", "Seed of the order and of the arrivals.")
    quick: bool = _switch("--quick", "Every cell, but shorter: as `quick` in the suite says.")
    profile: list[str] = _list(
        "--profile", "KIND,…", "A further trial of each cell with a profiler: cpu, wall, alloc, lock, engine."
    )
    scale: str | None = _flag("--scale", "FACTOR", "Every rate times this, such as 0.2 or 20%; names of loads say so.")
    screen: bool = _switch("--screen", "A fraction of each server's variants: which of its axes matter?")


@_command("run")
class RunFlags(SuiteFlags):
    """Run a suite, or compare the servers of redline.yaml: build, measure every cell, report."""

    suite: Path | None = _argument("SUITE", _SUITE, None)
    output: Path | None = _flag("-o --output", "DIR", "Where to keep it.")
    resume: Path | None = _flag("--resume", "DIR", "Resume a run that stopped.")
    on: str | None = _flag("--on", "ADDRESS", "Run on the hosts of a Ray cluster: its address, or `auto`.")
    fail_on: list[FailOnVerdict] = _list("--fail-on", "slower|inconclusive", _FAIL_ON)
    wait_quiet: bool = _switch("--wait-quiet", _WAIT_QUIET)
    openmetrics: int | None = _flag("--openmetrics", "PORT", _OPENMETRICS)
    otlp: str | None = _flag("--otlp", "URL", _OTLP)
    json: bool = _switch("--json", _AS_JSON)


@_command("profile")
class ProfileFlags(RunFlags):
    """Where does the CPU time go? Run a suite, or redline.yaml, with a profiler: cpu, unless --profile names others.

    It is redline run, whose flags it has: profilers get further trials, and results are kept in the same way.
    """


@_command("check")
class CheckFlags(SuiteFlags):
    """Validate a suite and print its plan.

    Every problem of the file is printed at once, with line, column and a hint.
    """

    suite: Path | None = _argument("SUITE", _SUITE, None)
    json: bool = _switch("--json", _AS_JSON)


@_command("init", words_follow=True)
class InitFlags(Flags):
    """Write a redline.yaml for your server: ask it once, and show what it answers.

    Then redline run measures it, and compares it with any other that you add. Flags stand before the server.
    """

    words: list[str] = _argument(
        "COMMAND|URL|curl …|FILE",
        "Such as './server --port {port}', http://127.0.0.1:8080/, a command of curl, a Procfile, compose file, "
        "OpenAPI, or HAR.",
        [],
    )
    build: str | None = _flag("--build", "COMMANDS", "What builds the server, for sh; it runs first.")
    path: str | None = _flag("--path", "PATH", "A command or a compose file: what is requested; / by default.")
    requests: Path | None = _flag("--requests", "FILE", "What is requested: a log, HAR, OpenAPI, …: see import.")


@_command("import")
class ImportFlags(Flags):
    """Turn a file of other requests into a list: a log, a recording, an API's description, targets, commands of curl.

    Shows what becomes of the file, and sends nothing. `load`, `limit` and `ab` take such a file as --requests too.
    """

    file: Path = _argument("FILE", "An access log, HAR, OpenAPI document, targets of Vegeta, or commands of curl.")
    form: str | None = _flag(
        "--format",
        "NAME",
        "log, envoy, json-log, har, openapi, curl, vegeta or vegeta-json; by default seen from the content.",
    )
    output: Path | None = _flag("-o --output", "FILE", "Write the list there, as --requests reads it.")
    keep: list[str] = _list("--keep", "NAME,…", "Keep these secrets: headers, parameters, fields, sign-ins of OpenAPI.")
    host: str | None = _flag("--host", "HOST", "Requests to this host; by default the most frequent.")
    most: int | None = _flag("--most", "N", "At most this many different requests: the most frequent.", shown="500")


@_command("build")
class BuildFlags(Flags):
    """Build the servers of the catalogue that are not built yet."""

    names: list[str] | None = _argument("GLOB,…", "Servers of the catalogue, such as 'http4s.*'; all by default.", None)
    json: bool = _switch("--json", _AS_JSON)


@_command("load")
class LoadFlags(RequestFlags):
    """Load a running server, or the server of redline.yaml, and print its latency and throughput.

    The load is closed with -c users, or open with -R requests per second.
    """

    url: str | None = _argument(
        "URL", "Such as http://127.0.0.1:8080/path, or https://; without it, the server of redline.yaml.", None
    )
    like: str | None = _flag(
        "--like", "'COMMAND'", "The load of a command of wrk, wrk2, hey, oha, h2load, vegeta, ab or k6."
    )
    connections: int = _flag(
        "-c --connections --users", "N", "Connections; users in a closed load.", defaults.LOAD_CONNECTIONS
    )
    connections_at_start: int | None = _flag(
        "--connections-at-start", "N", "Open load: those opened at the start; by default all."
    )
    duration: str = _flag("-d --duration", "TIME", "How long to measure.", defaults.LOAD_LENGTH)
    rate: str | None = _flag("-R --rate", "N", "Open load: requests per second.")
    arrivals: Arrivals | None = _flag("--arrivals", "poisson|uniform", "Open load: when requests are due; poisson.")
    replay: Path | None = _flag("--replay", "FILE", "Open load: due times, one per line, without -R.")
    depth: int = _flag("--depth", "N", "Requests in flight on a connection: pipelined, or streams.", 1)
    think: str | None = _flag("--think", "TIME|exp:TIME", "Closed load: think time between answer and request.")
    pace: str | None = _flag("--pace", "N", "Closed load: requests per second of each user.")
    stages: list[str] = _list("--stage", "TO:TIME", "Change to this many users, or this rate, over this time.")
    count: int | None = _flag("--count", "N", "Stop when this many requests were due.")
    objective: list[str] = _list("--objective", "'p99 < 50ms, …'", "What has to be met; exit with 3 when missed.")
    requests_per_connection: int | None = _flag(
        "--requests-per-connection", "N", "Replace a connection after N requests."
    )
    backend: Literal["auto", "epoll", "io_uring"] = _flag(
        "--backend", "auto|epoll|io_uring", "How the engine drives its sockets.", "auto"
    )
    spin: bool = _switch("--spin", "Engine workers poll; give each a core of its own.")
    threads: int = _flag("-t --threads", "N", "Engine workers, at most one per connection.", 1)
    warmup: str = _flag(
        "--warmup", "TIME|auto", "Load before the measurement; auto: until steady.", defaults.LOAD_WARM_UP
    )
    seed: int = _flag("--seed", "N", "Seed of everything random, such as arrivals.", 1)
    output: Path | None = _flag("-o --output", "DIR", "Keep the recording there, with a report.")
    spectrum: bool = _switch("--spectrum", "Print the whole distribution of response times too, as wrk2 does.")
    stream: bool = _switch("--stream", "Print each interval to stdout as it ends, as a line of JSON; the result last.")
    openmetrics: int | None = _flag("--openmetrics", "PORT", _OPENMETRICS)
    otlp: str | None = _flag("--otlp", "URL", _OTLP)
    json: bool = _switch("--json", _AS_JSON)


@_command("limit")
class LimitFlags(RequestFlags):
    """Find the highest rate that meets an objective, as an interval: of servers, or of those of suites.

    Several are probed in turn, and compared with the first.
    """

    targets: list[str] = _argument(
        "TARGET…",
        "Commands such as './server --port {port}', URLs, revisions, suites (YAML files); by default redline.yaml.",
        [],
    )
    git: str | None = _flag("--git", "A..B", "Two revisions, built and started as redline.yaml says.")
    path: str | None = _flag("--path", "PATH", "Commands and revisions: what is requested; / by default.")
    objective: list[str] = _list(
        "--objective",
        "[NAME:]'p99 < 200ms, …'",
        "The objective, in place of the suite's; several share their probes.",
    )
    servers: list[str] = SuiteFlags.servers
    loads: list[str] = SuiteFlags.loads
    options: list[str] = SuiteFlags.options
    quick: bool = SuiteFlags.quick
    lasts: str | None = _flag("--for", "TIME", "About the most that it takes in all; sets the length of probes.")
    duration: str | None = _flag("-d --duration", "TIME", "Length of a probe; the suite's, or 5s.")
    warmup: str | None = _flag(
        "--warmup", "TIME|auto", "Load before the first probe of a start; auto: until steady. 1s for a URL."
    )
    start: str | None = _flag(
        "--start", "N", "The first rate, per second; the suite's, or by what the warm-up answered."
    )
    probes: int = _flag("--probes", "N", "At most this many probes per search.", defaults.SEARCH_PROBES)
    precision: str = _flag(
        "--precision", "SHARE", "Stop at this half width of the interval.", defaults.SEARCH_PRECISION
    )
    trials: int | None = _flag("--trials", "N", "Fresh starts at the ends of each interval; 3.")
    no_beyond: bool = _switch("--no-beyond", "Skip the overload test.")
    on: str | None = _flag("--on", "ADDRESS", "Search on the hosts of a Ray cluster: its address, or `auto`.")
    seed: int | None = _flag("--seed", "N", "Seed of the order and of the arrivals.")
    output: Path | None = _flag("-o --output", "DIR", "Where to keep it.")
    resume: Path | None = _flag("--resume", "DIR", "Resume a search that stopped.")
    wait_quiet: bool = _switch("--wait-quiet", _WAIT_QUIET)
    arrivals: Arrivals | None = _flag("--arrivals", "poisson|uniform", "When requests are due.")
    connections: int | None = _flag("-c --connections", "N", "Connections at most; 256.")
    threads: int | None = _flag("-t --threads", "N", "Engine workers, at most -c; 1 for a URL.")
    fail_on: list[FailOnVerdict] = _list("--fail-on", "slower|inconclusive", _FAIL_ON)
    threshold: str | None = _flag("--threshold", "SHARE", "The smallest difference that matters; 2% by default.")
    openmetrics: int | None = _flag("--openmetrics", "PORT", _OPENMETRICS)
    otlp: str | None = _flag("--otlp", "URL", _OTLP)
    json: bool = _switch("--json", _AS_JSON)


@_command("ab")
class AbFlags(RequestFlags):
    """Is B slower than A? For commands, servers that are running, and revisions of a git repository.

    Both are alive at once and are loaded in short slices, so that what disturbs the machine disturbs both. For the
    highest rates that they sustain: redline limit A B.
    """

    a: str | None = _argument(
        "A", "A command, such as './old --port {port}', a URL, or a revision; by default the two of redline.yaml.", None
    )
    b: str | None = _argument("B", "What is compared with it; by default the work tree with a revision.", None)
    git: str | None = LimitFlags.git
    path: str | None = LimitFlags.path
    route: str | None = _flag("--route", "PROXY", "Compare A with itself behind a proxy, such as nginx.")
    lasts: str | None = _flag("--for", "TIME", "How long to measure in all.", shown=defaults.AB_BUDGET)
    load: str = _flag("--load", "closed:N|open:RATE", "Users, or requests per second.", defaults.AB_LOAD)
    metric: DuetMetric = _flag("--metric", "cpu|throughput|p50|p75|p90|p95|p99", "What the verdicts are about.", "cpu")
    same_answers: bool = _switch("--same-answers", "Refuse servers that answer differently.")
    parallel: bool = _switch("--parallel", "Load A and B at the same time, on cores of their own.")
    seed: int = _flag("--seed", "N", "Seed of the order and of the arrivals.", 1)
    output: Path | None = _flag("-o --output", "DIR", "Keep it there.")
    resume: Path | None = _flag("--resume", "DIR", "Resume a comparison that stopped; with --for, go on for longer.")
    write_suite: Path | None = _flag("--write-suite", "FILE", "Write the suite that this is, and measure nothing.")
    fail_on: list[FailOnVerdict] = _list("--fail-on", "slower|inconclusive", _FAIL_ON)
    threshold: str | None = _flag("--threshold", "SHARE", "The smallest difference that matters; 2% by default.")
    wait_quiet: bool = _switch("--wait-quiet", _WAIT_QUIET)
    form: Literal["md"] | None = _flag("--format -f", "md", "For a pull request.")
    openmetrics: int | None = _flag("--openmetrics", "PORT", _OPENMETRICS)
    otlp: str | None = _flag("--otlp", "URL", _OTLP)
    json: bool = _switch("--json", _AS_JSON)


@_command("report")
class ReportFlags(Flags):
    """Show a stored run, comparison, search or load.

    A summary in the terminal, or on stdout a document for people, programs or CI.
    """

    run: Path = _argument(
        "RUN", "A directory that run, ab, limit or load made, its results.json (or .json.gz), or a result of wrk or k6."
    )
    form: str | None = _flag(
        "--format -f",
        f"{'|'.join(REPORT_FORMATS)}|…",
        "Render it to stdout, in full; or its distributions, intervals, profiles and plots, for other tools.",
        completed=REPORT_FORMATS,
    )
    output: Path | None = _flag(
        "-o --output", "DIR", "hgrm, collapsed, speedscope, svg: write all of them to files there."
    )
    slug: SlugForm = _flag(
        "--slug", "short|full", "csv, hgrm, hlog: full names have all axes, threads, connections, duration.", "short"
    )
    json: bool = _switch("--json", _AS_JSON)


@_command("compare")
class CompareFlags(Flags):
    """Compare two runs, or the variants of one run with its baseline.

    Prints ratios with 95% intervals, and verdicts.
    """

    run: Path = _argument("RUN", "A run's directory.")
    other: Path | None = _argument(
        "RUN_B", "Compared with RUN; without it, RUN's own variants with its baseline.", None
    )
    fail_on: list[FailOnVerdict] = _list("--fail-on", "slower|inconclusive", _FAIL_ON)
    anyway: bool = _switch("--anyway", "Compare two runs whose environments differ gravely.")
    json: bool = _switch("--json", _AS_JSON)


@_command("history")
class HistoryFlags(SelectionFlags):
    """Follow every cell across runs: where it became faster or slower."""

    paths: list[Path] = _argument(
        "DIR|FILE…",
        "A folder that holds runs, such as runs/; results of wrk, wrk2, hey, h2load, oha, vegeta or k6, to be shown.",
    )
    recent: int | None = _flag("--recent", "N", "Only regressions of the last N runs fail.")
    fail_on: Literal["regression"] | None = _flag(
        "--fail-on", "regression", "Exit with 3 when a cell became slower and still is."
    )
    form: Literal["html", "md"] | None = _flag("--format -f", "html|md", "A page, or a text for a pull request.")
    json: bool = _switch("--json", _AS_JSON)


@_command("judge")
class JudgeFlags(Flags):
    """Judge a stored run by today's rules.

    Shows which findings differ from its stored results.
    """

    run: Path = _argument("RUN", "A run's directory.")
    write: bool = _switch("--write", "Write report.html, results.csv and results.json again.")
    json: bool = _switch("--json", _AS_JSON)


@_command("list")
class ListFlags(Flags):
    """List servers, scenarios and suites.

    Shows which servers are built, and which cannot be built here and why.
    """

    names: list[str] | None = _argument("GLOB,…", "Only these servers, such as 'http4s.*'.", None)
    json: bool = _switch("--json", _AS_JSON)


@_command("doctor")
class DoctorFlags(Flags):
    """Examine this machine: cores, clocks, limits, other load.

    Every check comes with advice.
    """

    hosts: str | None = _flag("--hosts", "ADDRESS", "Examine the hosts of a Ray cluster, and their clocks.")
    json: bool = _switch("--json", _AS_JSON)


@_command("cache")
class CacheFlags(Flags):
    """List what Redline keeps in the user's cache.

    Built servers of the installed catalogue, JDKs, and other things that are made again when they are missing.
    """

    clean: bool = _switch("--clean", "Remove all of it; no run may be going on.")


@_command("selftest")
class SelftestFlags(Flags):
    """Test the engine against servers with known answers.

    Shows the truth, the measured value, the error, and whether that is good enough.
    """

    peers: bool = _switch("--peers", "Run other load generators on the PATH as well.")
    seconds: float | None = _flag("--seconds", "N", "Length of each case.", shown="as each case needs")
    case: list[str] = _list("--case", "NAME", "Only this case; may be given again.")
    json: bool = _switch("--json", _AS_JSON)
