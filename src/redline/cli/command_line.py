"""Every command with its flags, as `redline --help` shows them.

A command is a class of flags, whose docstring is its help. This module imports nothing heavy, so `--version`, `--help`
and shell completion answer at once.
"""

from enum import StrEnum
from pathlib import Path
from typing import Literal, TypeAlias

from redline import defaults
from redline.cli.declaring import FLAGS, Flags, ProgressFlags, app, argument, command, flag, optional, repeated, switch
from redline.render.formats import FORMATS

__all__ = ["FLAGS", "app"]  # which this module fills, beside the classes of flags

Arrivals: TypeAlias = Literal["poisson", "uniform"]
TlsVersionFlag: TypeAlias = Literal["1.2", "1.3"]
AddressesFlag: TypeAlias = Literal["first", "all"]
SlugForm: TypeAlias = Literal["short", "full"]


class FailOnVerdict(StrEnum):
    """Verdicts that make a command exit with 3. An enum, since typer takes no lists of literals."""

    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"


_SUITE = "A suite: a YAML file; without it, redline.yaml of this folder or above it."
_FAIL_ON = "Exit with 3 on this verdict."
_WAIT_QUIET = "Wait until other processes leave the machine idle, for 5 minutes at most."
_WRITE_SUITE = "Write the suite that this is, and measure nothing."
_AS_JSON = "Print JSON of a published schema to stdout."


class PageFlags(ProgressFlags):
    """What a command does with its page."""

    heading, stand_last = "The page", True

    open: bool = switch("--open", "Open the page in a browser, of what is kept.")


class TelemetryFlags(PageFlags):
    """How a command shows its loads while they run, on stderr and to other tools."""

    heading, stand_last = "Metrics for other tools", True

    openmetrics: int | None = flag(
        "--openmetrics", "PORT", "Serve metrics of the load while it runs: http://127.0.0.1:PORT/metrics."
    )
    otlp: str | None = flag("--otlp", "URL", "Push the same metrics to a collector of OpenTelemetry.")
    remote_write: str | None = flag("--remote-write", "URL", "Write the same metrics to a server of Prometheus.")


class TurnFlags(TelemetryFlags):
    """What a command does about other measurements on this machine."""

    heading, stand_last = "Other measurements on this machine", True

    wait: str | None = optional(
        "--wait",
        "TIME",
        "Wait until nothing else measures on this machine, for an hour at most, or TIME.",
        defaults.WAIT,
    )
    alone: bool = switch("--alone", "Refuse while something else measures, and say to others that this must be alone.")


class TraceFlags(Flags):
    """What a command does with the traces that its requests begin."""

    heading, stand_last = "Traces", True

    otlp_traces: str | None = flag(
        "--otlp-traces", "URL", "Send spans of the slowest requests, and of sampled ones, to a collector, after trials."
    )


WHILE_IT_RUNS = frozenset((*TurnFlags.declared(), *TraceFlags.declared()))
"""Flags that change nothing of what is measured, so that a resumed session takes them too."""


class SelectionFlags(Flags):
    """The part of a suite, or of runs, that is selected."""

    heading = "Selection"

    servers: list[str] = repeated("-s --server", "GLOB,…", "Only these servers, such as 'rust.*'.")
    scenarios: list[str] = repeated("-m --scenario", "NAME,…", "Only these scenarios.")


_REPLAY = "Open load: due times, one per line; or an access log or HAR, whose requests are sent when they were."
_SPEED = "Replay: how much faster than recorded, such as 2x."


class ConnectionFlags(TurnFlags):
    """How to reach the server."""

    heading = "Connection"

    timeout: str | None = flag("--timeout", "TIME", "Give up on a request after this time; 5s by default.")
    http2: bool = switch("--http2", "Speak HTTP/2: by ALPN over TLS, else from the start.")
    no_keepalive: bool = switch("--no-keepalive", "A connection for each request, with `Connection: close`.")
    insecure: bool = switch("--insecure -k", "Accept any certificate; the result says so.")
    cacert: Path | None = flag("--cacert", "FILE", "PEM: trusted in place of the system's authorities.")
    cert: Path | None = flag("--cert -E", "FILE", "PEM: the client's certificate, for a server that asks for it.")
    key: Path | None = flag("--key", "FILE", "PEM: its key; by default in the file of --cert.")
    sni: str | None = flag("--sni", "NAME", "The server's name for TLS, if not the URL's host.")
    tls_min: TlsVersionFlag | None = flag("--tls-min", "1.2|1.3", "The oldest version of TLS.")
    tls_max: TlsVersionFlag | None = flag("--tls-max", "1.2|1.3", "The newest version of TLS.")
    ciphers: str | None = flag("--ciphers", "NAME:…", "Cipher suites that may be negotiated.")
    no_session_resumption: bool = switch("--no-session-resumption", "A whole handshake for each connection.")
    unix_socket: Path | None = flag(
        "--unix-socket", "PATH", "Connect to this Unix socket; the URL's host stays in Host."
    )
    connect_to: list[str] = repeated(
        "--connect-to", "HOST1:PORT1:HOST2:PORT2", "Connect to the second place for URLs of the first."
    )
    resolve: list[str] = repeated(
        "--resolve", "HOST:PORT:ADDRESS,…", "Connect to these addresses for URLs of HOST:PORT."
    )
    addresses: AddressesFlag | None = flag(
        "--addresses", "first|all", "Of several addresses: the first that answers, or all in turn; first."
    )
    sources: list[str] = repeated("--source", "ADDRESS,…", "Connect from these addresses of this machine, in turn.")
    proxy: str | None = flag(
        "--proxy -x", "http://[USER:PASSWORD@]HOST:PORT", "Tunnel each connection through this HTTP proxy: CONNECT."
    )
    mine: list[str] = repeated("--target-is-mine", "HOST", "Confirm that HOST is yours to load; remembered.")


class RequestFlags(ConnectionFlags):
    """The request."""

    heading = "Request"

    headers: list[str] = repeated("-H --header", "'K: V'", "A request header.")
    user_agent: str | None = flag("-A --user-agent", "NAME", "The header User-Agent.")
    cookie: list[str] = repeated("-b --cookie", "NAME=VALUE", "Send this cookie with every request.")
    referer: str | None = flag("-e --referer", "URL", "The header Referer.")
    user: str | None = flag("--user", "NAME:PASSWORD", "Sign in by Basic; the password is stored nowhere.")
    oauth2_bearer: str | None = flag("--oauth2-bearer", "TOKEN", "Sign in by Bearer; the token is stored nowhere.")
    aws_sigv4: str | None = flag(
        "--aws-sigv4", "aws:amz:REGION:SERVICE", "Sign for AWS, with --user KEY:SECRET; the secret is stored nowhere."
    )
    method: str | None = flag("-X --method", "METHOD", "GET by default, POST with a body.")
    head: bool = switch("--head -I", "The method HEAD.")
    body: str | None = flag("--body", "TEXT|@FILE", "The request's body.")
    compressed: bool = switch("--compressed", "Accept gzip, br and zstd: answers are decoded when they are checked.")
    status: int | None = flag("--status", "N", "The expected status; 200 by default.")
    events: str | None = flag(
        "--events", "'sse until N'", "A stream: sse, ndjson, chunks, openai, anthropic; `for TIME`, `message /POINTER`."
    )
    requests: Path | None = flag(
        "--requests", "FILE", "A list of requests; or a log, HAR, OpenAPI, …: see `redline import`."
    )
    scenarios: list[str] = repeated("-m --scenario --request", "NAME,…", "Only these requests or scenarios.")


class SuiteFlags(SelectionFlags):
    """The selection and the settings of a suite."""

    heading = "Settings of the suite"

    loads: list[str] = repeated("-l --load", "NAME,…", "Only these loads.")
    options: list[str] = repeated(
        "-w --with", "NAME=VALUE,…", "Only servers with this value of an option; servers without the option stay."
    )
    users: int | None = flag("-u --users", "N", "Users of every closed load.")
    duration: str | None = flag("-d --duration", "TIME", "Length of every load, such as 25s.")
    warmup: str | None = flag("--warmup", "TIME|auto", "Load before each measurement: 30s, or until steady.")
    trials: int | None = flag("--trials", "N", "Trials of every cell; with --resume, in all.")
    seed: int | None = flag("--seed", "N", "Seed of the order and of the arrivals.")
    quick: bool = switch("--quick", "Every cell, but shorter: as `quick` in the suite says.")
    profile: list[str] = repeated(
        "--profile", "KIND,…", "A further trial of each cell with a profiler: cpu, wall, alloc, lock, engine."
    )
    scale: str | None = flag("--scale", "FACTOR", "Every rate times this, such as 0.2 or 20%; names of loads say so.")
    screen: bool = switch("--screen", "A fraction of each server's variants: which of its axes matter?")


@command("run")
class RunFlags(TurnFlags, TraceFlags, SuiteFlags):
    """Run a suite, or compare the servers of redline.yaml: build, measure every cell, report."""

    suite: Path | None = argument("SUITE", _SUITE, None)
    output: Path | None = flag("-o --output", "DIR|FILE", "Where to keep it; or its report alone, as FILE.html, .md, …")
    resume: Path | None = flag("--resume", "DIR", "Resume a run that stopped.")
    on: str | None = flag("--on", "ADDRESS", "Run on the hosts of a Ray cluster: its address, or `auto`.")
    more: str | None = flag("--more", "TIME", "Then further starts of what is not sure, the undecided first.")
    fail_on: list[FailOnVerdict] = repeated("--fail-on", "slower|inconclusive", _FAIL_ON)
    wait_quiet: str | None = optional(
        "--wait-quiet",
        "TIME",
        "Each start waits until other processes leave the machine idle; 5 minutes in all, or TIME.",
        defaults.QUIET,
    )
    json: bool = switch("--json", _AS_JSON)


@command("profile")
class ProfileFlags(RunFlags):
    """Where does the CPU time go? Run a suite, or redline.yaml, with a profiler: cpu, unless --profile names others.

    It is redline run, whose flags it has: profilers get further trials, and results are kept in the same way.
    """


@command("check")
class CheckFlags(SuiteFlags):
    """Validate a suite and print its plan.

    Every problem of the file is printed at once, with line, column and a hint.
    """

    suite: Path | None = argument("SUITE", _SUITE, None)
    json: bool = switch("--json", _AS_JSON)


@command("init", words_follow=True)
class InitFlags(Flags):
    """Write a redline.yaml for your server: ask it once, and show what it answers.

    Then redline run measures it, and compares it with any other that you add. Flags stand before the server.
    """

    words: list[str] = argument(
        "COMMAND|URL|curl …|FILE",
        "Such as './server --port {port}', http://127.0.0.1:8080/, a command of curl, a Procfile, compose file, "
        "OpenAPI, or HAR.",
        [],
    )
    build: str | None = flag("--build", "COMMANDS", "What builds the server, for sh; it runs first.")
    path: str | None = flag("--path", "PATH", "A command or a compose file: what is requested; / by default.")
    requests: Path | None = flag("--requests", "FILE", "What is requested: a log, HAR, OpenAPI, …: see import.")


@command("import", is_extra=True)
class ImportFlags(Flags):
    """Turn a file of other requests into a list: a log, a recording, an API's description, targets, commands of curl.

    Shows what becomes of the file, and sends nothing. `load`, `limit` and `ab` take such a file as --requests too.
    """

    file: Path = argument("FILE", "An access log, HAR, OpenAPI document, targets of Vegeta, or commands of curl.")
    form: str | None = flag(
        "--format",
        "NAME",
        "log, envoy, json-log, elb, haproxy, w3c, har, openapi, curl, vegeta, vegeta-json or urls; seen from the "
        "content by default.",
    )
    output: Path | None = flag("-o --output", "FILE", "Write the list there, as --requests reads it.")
    times: Path | None = flag(
        "--times", "FILE", "Write there when each of its requests was sent, as --replay reads it; with -o."
    )
    journey: bool = switch(
        "--journey", "Of a HAR: its requests in order as the steps of a journey, with values taken from answers."
    )
    all: bool = switch("--all", "Of a journey: also what pages load, such as pictures and scripts.")
    keep: list[str] = repeated(
        "--keep", "NAME,…", "Keep these secrets: headers, parameters, fields, sign-ins of OpenAPI."
    )
    host: str | None = flag("--host", "HOST", "Requests to this host; by default the most frequent.")
    most: int | None = flag("--most", "N", "At most this many different requests: the most frequent.", shown="500")


@command("build")
class BuildFlags(ProgressFlags):
    """Build the servers of the catalogue that are not built yet."""

    names: list[str] | None = argument("GLOB,…", "Servers of the catalogue, such as 'http4s.*'; all by default.", None)
    json: bool = switch("--json", _AS_JSON)


@command("load")
class LoadFlags(RequestFlags, TraceFlags):
    """Load a running server, a command, a server of the catalogue or of redline.yaml; print latency and throughput.

    The load is closed with -c users, or open with -R requests per second.
    """

    url: str | None = argument(
        "URL|COMMAND",
        "Such as http://127.0.0.1:8080/path, './shop {port}', or vertx.vanilla@5 of the catalogue; without it, that of "
        "redline.yaml.",
        None,
    )
    connections: int = flag(
        "-c --connections --users", "N", "Connections; users in a closed load.", defaults.LOAD_CONNECTIONS
    )
    duration: str = flag("-d --duration", "TIME", "How long to measure.", defaults.LOAD_LENGTH)
    rate: str | None = flag("-R --rate", "N", "Open load: requests per second.")
    path: str | None = flag("--path", "PATH", "A command: what is requested; / by default.")
    like: str | None = flag(
        "--like", "'COMMAND'", "The load of a command of wrk, wrk2, hey, oha, h2load, vegeta, ab or k6."
    )
    connections_at_start: int | None = flag(
        "--connections-at-start", "N", "Open load: those opened at the start; by default all."
    )
    arrivals: Arrivals | None = flag("--arrivals", "poisson|uniform", "Open load: when requests are due; poisson.")
    replay: Path | None = flag("--replay", "FILE", _REPLAY)
    speed: str | None = flag("--speed", "N", _SPEED)
    depth: int = flag("--depth", "N", "Requests in flight on a connection: pipelined, or streams.", 1)
    think: str | None = flag("--think", "TIME|exp:TIME", "Closed load: think time between answer and request.")
    pace: str | None = flag("--pace", "N", "Closed load: requests per second of each user.")
    stages: list[str] = repeated("--stage", "TO:TIME", "Change to this many users, or this rate, over this time.")
    count: int | None = flag("--count", "N", "Stop when this many requests were due; without --warmup, send no others.")
    objective: list[str] = repeated("--objective", "'p99 < 50ms, …'", "What has to be met; exit with 3 when missed.")
    abort_when: list[str] = repeated(
        "--abort-when", "'errors > 5% for 3s'", "What ends the load early, with 3; or a percentile: 'p99 > 1s for 10s'."
    )
    requests_per_connection: int | None = flag(
        "--requests-per-connection", "N", "Replace a connection after N requests."
    )
    follow: bool = switch("--follow", "Follow redirects once before the load, which asks for what they lead to.")
    backend: Literal["auto", "epoll", "io_uring"] = flag(
        "--backend", "auto|epoll|io_uring", "How the engine drives its sockets.", "auto"
    )
    spin: bool = switch("--spin", "Engine workers poll; give each a core of its own.")
    threads: int = flag("-t --threads", "N", "Engine workers, at most one per connection.", 1)
    warmup: str | None = flag("--warmup", "TIME|auto", "Load before it: 1s, or 0s with --count; auto: until steady.")
    seed: int = flag("--seed", "N", "Seed of everything random, such as arrivals.", 1)
    output: Path | None = flag(
        "-o --output", "DIR|FILE", "Keep the recording there, with a report; or the report alone, as FILE.html, .md, …"
    )
    write_suite: Path | None = flag("--write-suite", "FILE", _WRITE_SUITE)
    log: Path | None = flag("--log", "FILE", "Write single requests there, as .parquet or .csv; a sample of very many.")
    spectrum: bool = switch("--spectrum", "Print the whole distribution of response times too, as wrk2 does.")
    stream: bool = switch("--stream", "Print each interval to stdout as it ends, as a line of JSON; the result last.")
    json: bool = switch("--json", _AS_JSON)


@command("limit")
class LimitFlags(RequestFlags, TraceFlags):
    """Find the highest rate, or the most users, that meet an objective, as an interval: of servers, or of suites.

    Several are probed in turn, and compared with the first.
    """

    targets: list[str] = argument(
        "TARGET…",
        "Commands such as './server --port {port}', URLs, servers of the catalogue, revisions, suites (YAML files); "
        "by default redline.yaml.",
        [],
    )
    git: str | None = flag("--git", "A..B", "Two revisions, built and started as redline.yaml says.")
    path: str | None = flag("--path", "PATH", "Commands and revisions: what is requested; / by default.")
    objective: list[str] = repeated(
        "--objective",
        "[NAME:]'p99 < 200ms, …'",
        "The objective, in place of the suite's; several share their probes.",
    )
    abort_when: list[str] = repeated(
        "--abort-when", "'errors > 5% for 3s'", "What ends a probe early, whose rate then is too high; or a percentile."
    )
    servers: list[str] = SuiteFlags.servers
    loads: list[str] = SuiteFlags.loads
    options: list[str] = SuiteFlags.options
    quick: bool = SuiteFlags.quick
    lasts: str | None = flag(
        "--for", "TIME", "The most that the command takes, without builds; sets the length of probes."
    )
    duration: str | None = flag("-d --duration", "TIME", "Length of a probe; the suite's, or 5s.")
    warmup: str | None = flag(
        "--warmup", "TIME|auto", "Load before the first probe of a start; auto: until steady. 1s for a URL."
    )
    by_users: bool = switch("--by-users", "How many users may there be? Vary their number, in place of the rate.")
    start: str | None = flag(
        "--start", "N|Nx", "The first rate, speed of a recording, or users (64); the suite's, or by the warm-up."
    )
    probes: int = flag("--probes", "N", "At most this many probes per search.", defaults.SEARCH_PROBES)
    precision: str = flag("--precision", "SHARE", "Stop at this half width of the interval.", defaults.SEARCH_PRECISION)
    trials: int | None = flag("--trials", "N", "Fresh starts at the ends of each interval; 3.")
    no_beyond: bool = switch("--no-beyond", "Skip the overload test.")
    on: str | None = flag("--on", "ADDRESS", "Search on the hosts of a Ray cluster: its address, or `auto`.")
    seed: int | None = flag("--seed", "N", "Seed of the order and of the arrivals.")
    output: Path | None = flag("-o --output", "DIR|FILE", "Where to keep it; or its report alone, as FILE.html, .md, …")
    resume: Path | None = flag("--resume", "DIR", "Resume a search that stopped.")
    write_suite: Path | None = LoadFlags.write_suite
    wait_quiet: bool = switch("--wait-quiet", _WAIT_QUIET)
    arrivals: Arrivals | None = flag("--arrivals", "poisson|uniform", "When requests are due.")
    replay: Path | None = flag(
        "--replay", "FILE", "Send a log, a HAR or due times: find the highest speed, such as 4x, in place of a rate."
    )
    connections: int | None = flag("-c --connections", "N", "Connections at most; 256.")
    threads: int | None = flag("-t --threads", "N", "Engine workers, at most -c; 1 for a URL.")
    fail_on: list[FailOnVerdict] = repeated("--fail-on", "slower|inconclusive", _FAIL_ON)
    threshold: str | None = flag("--threshold", "SHARE", "The smallest difference that matters; 2% by default.")
    json: bool = switch("--json", _AS_JSON)


@command("ab")
class AbFlags(RequestFlags, TraceFlags):
    """Is B slower than A? For commands, URLs, servers of the catalogue, and revisions of a git repository.

    Both are alive at once and are loaded in short slices, so that what disturbs the machine disturbs both. For the
    highest rates that they sustain: redline limit A B.
    """

    a: str | None = argument(
        "A",
        "A command, such as './old --port {port}', a URL, a server of the catalogue, such as vertx.vanilla@5, or a "
        "revision; by default the two of redline.yaml.",
        None,
    )
    b: str | None = argument("B", "What is compared with it; by default the work tree with a revision.", None)
    git: str | None = LimitFlags.git
    names: str | None = flag("--names", "A,B", "What A and B are called in the answer; a / becomes -.")
    path: str | None = LimitFlags.path
    route: str | None = flag("--route", "PROXY", "Compare A with itself behind a proxy, such as nginx.")
    lasts: str | None = flag("--for", "TIME", "How long to measure in all.", shown="1m a request")
    load: str = flag("--load", "closed:N|open:RATE", "Users, or requests per second.", defaults.AB_LOAD)
    replay: Path | None = flag("--replay", "FILE", _REPLAY)
    speed: str | None = flag("--speed", "N", _SPEED)
    metric: defaults.DuetMetric = flag(
        "--metric", "cpu|throughput|p50|p75|p90|p95|p99|…", "What the verdicts are about.", "cpu"
    )
    abort_when: list[str] = repeated(
        "--abort-when", "'errors > 5% for 3s'", "What ends the comparison early, with 3, if it holds for either server."
    )
    same_answers: bool = switch("--same-answers", "Refuse servers that answer differently.")
    parallel: bool = switch("--parallel", "Load A and B at the same time, on cores of their own.")
    why: bool = switch("--why", "Then sample both by a profiler: in which functions do they differ?")
    builds: int = flag("--builds", "N", "Build each revision so often: layouts of code differ too.", 1)
    seed: int = flag("--seed", "N", "Seed of the order and of the arrivals.", 1)
    output: Path | None = flag("-o --output", "DIR|FILE", "Keep it there; or its report alone, as FILE.html, .md, …")
    resume: Path | None = flag("--resume", "DIR", "Resume a comparison that stopped; with --for, go on for longer.")
    write_suite: Path | None = LoadFlags.write_suite
    fail_on: list[FailOnVerdict] = repeated("--fail-on", "slower|inconclusive", _FAIL_ON)
    threshold: str | None = flag("--threshold", "SHARE", "The smallest difference that matters; 2% by default.")
    wait_quiet: bool = switch("--wait-quiet", _WAIT_QUIET)
    form: Literal["md"] | None = flag("--format -f", "md", "For a pull request.")
    json: bool = switch("--json", _AS_JSON)


@command("bisect")
class BisectFlags(RequestFlags):
    """Which commit made it slower? Builds and measures commits between a good revision and a bad one.

    Each is compared with the older of the two as redline ab does, and the next is the one that tells most. If GOOD is
    the newer one, it finds the commit that made it better.
    """

    good: str | None = argument("GOOD", "A revision that is fast enough.", None)
    bad: str | None = argument(
        "BAD", "A revision that is slower; both are built and started as redline.yaml says.", None
    )
    paths: list[str] = argument("[-- PATH…]", "Commits that touch none of these begin with little weight.", [])
    first_parent: bool = switch("--first-parent", "Take merges as single commits: follow first parents alone.")
    measure: str | None = flag(
        "--measure",
        "COMMAND",
        "Compare the number that this shell command prints last, in each checkout; lower is better.",
    )
    higher_is_better: bool = switch("--higher-is-better", "Of --measure: more is better.")
    path: str | None = AbFlags.path
    lasts: str = flag("--for", "TIME", "How long to measure each commit.", defaults.BISECT_LENGTH)
    load: str = AbFlags.load
    replay: Path | None = AbFlags.replay
    speed: str | None = AbFlags.speed
    metric: defaults.DuetMetric = flag("--metric", "cpu|throughput|p50|p75|p90|p95|p99|…", "What became worse.", "cpu")
    why: bool = switch("--why", "Then compare the commit with its parent: in which functions do they differ?")
    seed: int = AbFlags.seed
    output: Path | None = flag("-o --output", "DIR", "Where to keep it; in runs/ by default.")
    resume: Path | None = flag("--resume", "DIR", "Resume a search that stopped.")
    wait_quiet: bool = AbFlags.wait_quiet
    json: bool = switch("--json", _AS_JSON)


@command("report")
class ReportFlags(Flags):
    """Show a stored run, comparison, search or load; or several runs of a suite side by side.

    A summary in the terminal, or on stdout a document for people, programs or CI.
    """

    runs: list[Path] = argument(
        "RUN…",
        "A directory that run, ab, limit or load made, its results.json (or .json.gz), or a result of wrk or k6. "
        "Several, of other machines or days: what held, and what did not.",
    )
    form: str | None = flag(
        "--format -f",
        f"{'|'.join(FORMATS)}|…",
        "Render it, in full; or its distributions, intervals, profiles and plots, for other tools.",
        completed=(*FORMATS,),
    )
    output: Path | None = flag(
        "-o --output",
        "FILE|DIR",
        "Write it to this file, whose ending says its format; or a format with several files to this directory.",
    )
    open: bool = switch("--open", "Open the page in a browser: that of the directory, or the file of -o.")
    slug: SlugForm = flag(
        "--slug",
        "short|full",
        "csv, parquet, hgrm, hlog: full names have all axes, threads, connections, duration.",
        "short",
    )
    json: bool = switch("--json", _AS_JSON)


@command("compare")
class CompareFlags(Flags):
    """Compare two runs, or the variants of one run with its baseline.

    Prints ratios with 95% intervals, and verdicts.
    """

    run: Path = argument("RUN", "A run's directory.")
    other: Path | None = argument("RUN_B", "Compared with RUN; without it, RUN's own variants with its baseline.", None)
    fail_on: list[FailOnVerdict] = repeated("--fail-on", "slower|inconclusive", _FAIL_ON)
    anyway: bool = switch("--anyway", "Compare two runs whose environments differ gravely.")
    json: bool = switch("--json", _AS_JSON)


@command("history")
class HistoryFlags(SelectionFlags):
    """Follow every cell across runs: where it became faster or slower."""

    paths: list[Path] = argument(
        "DIR|FILE…",
        "A folder that holds runs, such as runs/; results of wrk, wrk2, hey, h2load, oha, vegeta or k6, to be shown.",
    )
    recent: int | None = flag("--recent", "N", "Only regressions of the last N runs fail.")
    fail_on: Literal["regression", "new-regression"] | None = flag(
        "--fail-on",
        "regression|new-regression",
        "Exit with 3 when a cell became slower and still is; new: once for each change.",
    )
    form: Literal["html", "md"] | None = flag("--format -f", "html|md", "A page, or a text for a pull request.")
    json: bool = switch("--json", _AS_JSON)


@command("view")
class ViewFlags(Flags):
    """Show the runs of folders in a browser: all of them, their pages, their history, two compared.

    It prints an address of this machine, which nobody else can guess, and serves it until Ctrl-C. It only reads.
    """

    folders: list[Path] | None = argument("DIR…", "Folders that hold runs, or runs; runs/ by default.", None)
    port: int = flag("--port", "N", "The port on 127.0.0.1.", 0, shown="a free one")
    open: bool = switch("--open", "Open that address in a browser.")


@command("judge")
class JudgeFlags(Flags):
    """Judge a stored run by today's rules.

    Shows which findings differ from its stored results.
    """

    run: Path = argument("RUN", "A run's directory.")
    write: bool = switch("--write", "Write report.html, results.csv and results.json again.")
    json: bool = switch("--json", _AS_JSON)


@command("list")
class ListFlags(Flags):
    """List servers, scenarios and suites.

    Shows which servers are built, and which cannot be built here and why. With --outdated: packages in build files of
    the catalogues of which a registry has a newer release. The registries are those of npm_config_registry,
    PIP_INDEX_URL, GOPROXY and the first mirror in ~/.m2/settings.xml, or the public ones.
    """

    names: list[str] | None = argument("GLOB,…", "Only these servers, such as 'http4s.*'.", None)
    outdated: bool = switch("--outdated", "Ask registries for newer releases of what the catalogues use.")
    json: bool = switch("--json", _AS_JSON)


@command("doctor")
class DoctorFlags(Flags):
    """Examine this machine: cores, clocks, limits, other load.

    Every check comes with advice.
    """

    hosts: str | None = flag("--hosts", "ADDRESS", "Examine the hosts of a Ray cluster, and their clocks.")
    json: bool = switch("--json", _AS_JSON)


@command("cache")
class CacheFlags(Flags):
    """List what Redline keeps in the user's cache.

    Built servers of the installed catalogue, JDKs, and other things that are made again when they are missing.
    """

    clean: bool = switch("--clean", "Remove all of it; no run may be going on.")


@command("selftest", is_extra=True)
class SelftestFlags(Flags):
    """Test the engine against servers with known answers.

    Shows the truth, the measured value, the error, and whether that is good enough.
    """

    peers: bool = switch("--peers", "Run other load generators on the PATH as well.")
    seconds: float | None = flag("--seconds", "N", "Length of each case.", shown="as each case needs")
    case: list[str] = repeated("--case", "NAME", "Only this case; may be given again.")
    json: bool = switch("--json", _AS_JSON)


@command("mcp", is_extra=True)
class McpFlags(Flags):
    """Serve list, load, ab, limit and explain as tools for assistants, by the Model Context Protocol.

    An assistant starts it, and speaks with it on stdin and stdout.
    """
