"""`redline ab A B`: which of two servers needs less, with an interval that a noisy machine does not spoil."""

import re
import shlex
import sys
import tempfile
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from redline.analysis.duet import judge
from redline.cli import exits
from redline.cli.command_line import AbFlags
from redline.cli.flags import naming, read_flag, read_schema
from redline.cli.load_flags import read_picks, read_request, read_tls, read_url
from redline.cli.show import OneLine, show
from redline.errors import DriveError, UsageError
from redline.model import (
    AttachedServer,
    Build,
    Cell,
    DuetBlock,
    DuetRecording,
    Load,
    Metric,
    Ready,
    Scenario,
    ServerEntry,
    Start,
    Variant,
    Verdict,
)
from redline.model.catalogue import names_in_braces
from redline.quantities import parse_duration
from redline.report.render import markdown
from redline.report.sections.ab import ab_sections
from redline.running.assembly import duet_tools
from redline.running.duet import DuetPlan, DuetTools, run_duet
from redline.suite.schema.load import LoadSchema

_LONGEST_START_NS, _SHORTEST_START_NS, _STARTS = 4_000_000_000, 500_000_000, 12
"""How long a start is measured, and how many there should be where --for leaves them so little."""
_WARMUP_NS = 500_000_000
_METRICS = {"cpu": Metric.CPU_PER_REQUEST, "throughput": Metric.THROUGHPUT, "p50": Metric.P50, "p99": Metric.P99}
_LOG_LINES = 10
_HINTS = {
    "launch": (
        "try the command by hand, with a port in place of {port}; --path and --status say what is requested;"
        " start servers that take longer yourself, and compare their URLs"
    ),
    "load": "start the command by hand, with a port in place of {port}, and use `redline load` on it",
}
"""By stage: the logs that other hints name are gone with their folder."""
_LOAD = re.compile(r"closed:(\d+)|open:(.+)")


def execute(flags: AbFlags) -> None:
    """Compare two commands, or two servers that are running."""
    with naming("--for"):
        lasts_ns = parse_duration(flags.lasts)
    plan, tools = read_plan(flags, lasts_ns)
    metric, closed = _METRICS[flags.metric], plan.cells[0].load.saturates
    if metric is Metric.THROUGHPUT and not closed:
        raise UsageError("--metric throughput: an open load has the rate of its schedule", hint="use cpu or p99")
    recordings, interrupted = _measure(plan, tools)
    report = judge((flags.a, flags.b), metric, recordings, closed=closed, cores=len(tools.placement.server_cpus))
    if report is None:
        if interrupted or any(each.traffic and each.traffic.ended == "interrupted" for each in recordings):
            raise KeyboardInterrupt
        raise DriveError(
            f"nothing can be said of {flags.metric}: too little was measured",
            hint="give --for more time; CPU time is known of servers on this machine only",
        )
    if flags.json:
        sys.stdout.write(report.model_dump_json(indent=2) + "\n")
    elif flags.form is not None:
        sys.stdout.buffer.write(markdown.render(ab_sections(report)))
    else:
        show(ab_sections(report))
    if interrupted or report.interrupted:
        raise typer.Exit(exits.INTERRUPTED)
    if report.verdict in {Verdict(each.value) for each in flags.fail_on}:
        raise typer.Exit(exits.MISSED)


def _measure(plan: DuetPlan, tools: DuetTools) -> tuple[list[DuetRecording], bool]:
    """The recordings of all starts, and whether an interrupt ended them early. Raises DriveError."""
    made: list[DuetRecording] = []
    with tempfile.TemporaryDirectory() as scratch, OneLine(Console(stderr=True)) as progress:

        def block_seen(start: int, block: DuetBlock) -> None:
            progress.show(Text(f"start {start + 1} · block {block.index + 1} · {block.phase}"))

        try:
            made.extend(run_duet(plan, tools, Path(scratch), block_seen))
        except KeyboardInterrupt:
            if not made:  # a list takes in what it is extended by one by one
                raise
            return made, True
    if (failure := made[-1].failure) is not None:
        lines = failure.log_tail.splitlines()[-_LOG_LINES:]
        said = "".join(f"\n    {text}" for text in lines) if len(lines) > 1 else ""  # the message has the last one
        hint = failure.hint if plan.once else _HINTS.get(failure.stage, failure.hint)
        raise DriveError(failure.message + said, hint=hint)
    return made, False


def read_plan(flags: AbFlags, lasts_ns: int) -> tuple[DuetPlan, DuetTools]:
    """The servers, of which A runs twice as a control, and what they are made with. Raises UsageError."""
    running = [text.startswith(("http://", "https://")) for text in (flags.a, flags.b)]
    if running[0] != running[1]:
        raise UsageError("one of the two is a URL and the other a command", hint="give two URLs, or two commands")
    each_ns = min(max(lasts_ns // _STARTS, _SHORTEST_START_NS), _LONGEST_START_NS)
    load = _load(flags, lasts_ns - _WARMUP_NS if all(running) else each_ns)
    make = _attached if all(running) else _started
    names = ("A", "B", "A-again")
    cells = tuple(make(text, name, flags, load) for name, text in zip(names, (flags.a, flags.b, flags.a), strict=True))
    paths = [cell.scenario.requests[0].path for cell in cells[:2]]
    if paths[0] != paths[1]:
        raise UsageError(f"A is asked for {paths[0]} and B for {paths[1]}", hint="give URLs of the same path")
    seed = read_flag("--seed", flags.seed, "seed")
    plan = DuetPlan(cells, seed, lasts_ns, once=all(running), same_answers=flags.same_answers)
    return plan, duet_tools(cells, Path.cwd())


def _load(flags: AbFlags, duration_ns: int) -> Load:
    written = _LOAD.fullmatch(flags.load)
    if written is None:
        raise UsageError(f"--load {flags.load} is not a load", hint="write closed:64 (users) or open:2000/s (a rate)")
    if duration_ns <= 0:
        raise UsageError(f"--for {flags.lasts} is too short", hint="give 10s at least")
    users, rate = written.groups()
    shape = {"closed": {"users": int(users)}} if users else {"open": {"rate": rate}}
    flag = f"--load {flags.load}"
    given: dict[str | int, str] = {"users": flag, "rate": flag, "for": f"--for {flags.lasts}"}
    return read_schema(LoadSchema, given, {**shape, "for": f"{duration_ns // 1_000_000}ms"}).load("load", ())


def _attached(url: str, _name: str, flags: AbFlags, load: Load) -> Cell:
    endpoint, path = read_url(url)
    if flags.path is not None:
        raise UsageError(f"--path {flags.path}: the URLs name their paths", hint="leave out --path")
    variant = Variant(
        entry=AttachedServer(host=endpoint.host, port=endpoint.port), tls=read_tls(url, None, insecure=False)
    )
    return _cell(variant, path, flags, load)


def _started(command: str, name: str, flags: AbFlags, load: Load) -> Cell:
    try:
        parts = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"{name}: {command!r} is not a command: {error}", hint="quote it as a shell would") from None
    if not any("port" in names_in_braces(part) for part in parts):
        hint = "write {port} where the command takes the port that it is to listen on"
        raise UsageError(f"{name}: {command!r} has no {{port}}", hint=hint)
    unknown = {each for part in parts for each in names_in_braces(part)} - {"port", "cpus", "scratch"}
    if unknown:
        hint = "known are {port}, {cpus} and {scratch}"
        raise UsageError(f"{name}: {{{min(unknown)}}} means nothing", hint=hint)
    path = flags.path or "/"
    runtime = "jvm" if Path(parts[0]).name == "java" else "native"
    entry = ServerEntry(
        name=name,
        about=command,
        runtime=runtime,
        family_folder=".",
        build=Build(run=("true",), inputs=("*",), outputs=(".",)),
        start=Start(command=parts),
        ready=Ready(path=path, status=flags.status),
    )
    return _cell(Variant(entry=entry), path, flags, load)


def _cell(variant: Variant, path: str, flags: AbFlags, load: Load) -> Cell:
    request = read_request(path, None, flags.headers, None, flags.status)
    return Cell(
        variant=variant,
        scenario=Scenario(name="requests", request=request, picks=read_picks(request)),
        load=load,
        warmup_ns=_WARMUP_NS,
        timeout_ns=5_000_000_000,
    )
