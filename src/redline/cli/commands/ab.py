"""`redline ab A B`: which of two servers needs less, with an interval that a noisy machine does not spoil."""

import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from redline.analysis.ab import failing, is_interrupted, judge
from redline.cli import exits
from redline.cli.checkouts import Checkout, read_checkout
from redline.cli.command_line import AbFlags
from redline.cli.flags import naming, read_flag, read_schema
from redline.cli.load_flags import read_picks, read_request, read_tls, read_url
from redline.cli.quiet import wait_until_quiet
from redline.cli.show import OneLine, show
from redline.errors import DriveError, UsageError
from redline.model import (
    AttachedServer,
    Cell,
    DuetBlock,
    DuetRecording,
    Load,
    Metric,
    Scenario,
    Variant,
    Verdict,
)
from redline.quantities import parse_duration
from redline.report.render import markdown
from redline.report.sections.ab import ab_sections
from redline.running.assembly import duet_tools
from redline.running.duet import FEWEST_STARTS, DuetPlan, DuetTools, run_duet
from redline.suite.project import PROJECT_FILE, Project, command_entry, ready_of
from redline.suite.schema.load import LoadSchema

_LONGEST_START_NS, _SHORTEST_START_NS, _STARTS = 4_000_000_000, 500_000_000, 12
"""How long a start is measured, and how many there should be where --for leaves them so little."""
_WARMUP_NS = 500_000_000
_LONGEST_JVM_START_NS, _SHORT_JVM_START_NS, _JVM_STARTS = 60_000_000_000, 30_000_000_000, 5
"""The same of virtual machines, warm-up included; the second is kept where --for leaves too little for so many."""
_SERVERS = 3
"""A, B, and A once more as a control: each has its share of a start's warm-up and load."""
_METRICS = {"cpu": Metric.CPU_PER_REQUEST, "throughput": Metric.THROUGHPUT, "p50": Metric.P50, "p99": Metric.P99}
_LOG_LINES = 10
_HINTS = {
    "launch": (
        "try the command by hand, with a port in place of {port}; --path and --status say what is requested;"
        " start servers that take longer yourself, and compare their URLs"
    ),
    "load": "start the command by hand, with a port in place of {port}, and use `redline load` on it",
}
_PROJECT_HINTS = {
    **_HINTS,
    "launch": f"in {PROJECT_FILE}, `start` is how it is started, and `ready` when it is ready: path, status, within",
}
"""By stage: the logs that other hints name are gone with their folder."""
_LOAD = re.compile(r"closed:(\d+)|open:(.+)")


def execute(flags: AbFlags) -> None:
    """Compare two commands, or two servers that are running."""
    with naming("--for"):
        lasts_ns = parse_duration(flags.lasts)
    checkout = _checkout(flags)
    plan, tools = read_plan(flags, lasts_ns, checkout.project if checkout else None)
    metric, closed = _METRICS[flags.metric], plan.cells[0].load.saturates
    if metric is Metric.THROUGHPUT and not closed:
        raise UsageError("--metric throughput: an open load has the rate of its schedule", hint="use cpu or p99")
    if checkout is None:
        names = flags.a or "", flags.b or ""
        _wait(flags)
        recordings, interrupted = _measure(plan, tools, {} if plan.once else _HINTS)
    else:
        names = checkout.names
        hints = {stage: f"A is {names[0]}, B {names[1]}; {hint}" for stage, hint in _PROJECT_HINTS.items()}
        with checkout.built() as (one, other):
            _wait(flags)
            recordings, interrupted = _measure(_in_folders(plan, (one, other)), tools, hints)
    cores, detects = len(tools.placement.server_cpus), plan.cells[0].warmup_detect
    report = judge(names, metric, recordings, closed=closed, cores=cores, detects=detects)
    interrupted = interrupted or is_interrupted(recordings)
    if (failed := failing(recordings)) is not None:
        raise DriveError(failed, hint="`redline load` shows when they fail; --status says which status is right")
    if report is None:
        if interrupted:
            raise KeyboardInterrupt
        raise DriveError(
            f"nothing can be said of {flags.metric}: too little was measured",
            hint="give --for more time; CPU time is known of servers on this machine only",
        )
    report = report.model_copy(update={"interrupted": interrupted})
    if flags.json:
        sys.stdout.write(report.model_dump_json(indent=2) + "\n")
    elif flags.form is not None:
        sys.stdout.buffer.write(markdown.render(ab_sections(report)))
    else:
        show(ab_sections(report))
    if interrupted:
        raise typer.Exit(exits.INTERRUPTED)
    if report.verdict in {Verdict(each.value) for each in flags.fail_on}:
        raise typer.Exit(exits.MISSED)


def _wait(flags: AbFlags) -> None:
    if flags.wait_quiet:
        wait_until_quiet(Console(stderr=True))


def _measure(plan: DuetPlan, tools: DuetTools, hints: Mapping[str, str]) -> tuple[list[DuetRecording], bool]:
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
        raise DriveError(failure.message + said, hint=hints.get(failure.stage, failure.hint))
    return made, False


def _checkout(flags: AbFlags) -> Checkout | None:
    """The two revisions; None without `--git`. Raises UsageError."""
    if flags.git is None:
        return None
    checkout = read_checkout(flags.git)
    if checkout.leaves_out_changes:
        start = checkout.revisions[0].name
        message = (
            f"changes that are not committed are not measured; `--git {start}` compares {start} with the work tree"
        )
        Console(stderr=True).print(message, style="yellow", markup=False, highlight=False, soft_wrap=True)
    return checkout


def _in_folders(plan: DuetPlan, folders: tuple[Path, ...]) -> DuetPlan:
    def moved(cell: Cell, folder: Path) -> Cell:
        entry = cell.variant.catalogued.model_copy(update={"family_folder": str(folder)})
        return cell.model_copy(update={"variant": cell.variant.model_copy(update={"entry": entry})})

    return replace(plan, cells=tuple(map(moved, plan.cells, folders)))


def read_plan(flags: AbFlags, lasts_ns: int, project: Project | None = None) -> tuple[DuetPlan, DuetTools]:
    """The servers, of which A runs twice as a control, and what they are made with. Raises UsageError.

    Those of a project get their folders when they are built.
    """
    if project is not None and flags.a is not None:
        raise UsageError(f"--git names both sides, and so does {flags.a}", hint="leave out --git, or A and B")
    if project is not None and (flags.path is not None or flags.headers or flags.status is not None):
        hint = "leave out --path, -H and --status"
        raise UsageError(f"`check` in {PROJECT_FILE} says what is requested", hint=hint)
    if project is None and (flags.a is None or flags.b is None):
        hint = "give two commands such as './old --port {port}', two URLs, or --git main..HEAD"
        raise UsageError("there are no two servers to compare", hint=hint)
    texts = (flags.a or "", flags.b or "")
    running = [text.startswith(("http://", "https://")) for text in texts]
    if running[0] != running[1]:
        raise UsageError("one of the two is a URL and the other a command", hint="give two URLs, or two commands")
    each_ns = min(max(lasts_ns // _STARTS, _SHORTEST_START_NS), _LONGEST_START_NS)
    load = _load(flags, lasts_ns - _WARMUP_NS if all(running) else each_ns)
    names = ("A", "B")
    if project is not None:
        cells = tuple(_of_project(project, name, load) for name in names)
    else:
        make = _attached if all(running) else _started
        cells = tuple(make(text, name, flags, load) for name, text in zip(names, texts, strict=True))
    if any(cell.variant.runtime == "jvm" for cell in cells):
        cells = tuple(_warming(cell, lasts_ns) for cell in cells)
    paths = [cell.scenario.requests[0].path for cell in cells]
    if paths[0] != paths[1]:
        raise UsageError(f"A is asked for {paths[0]} and B for {paths[1]}", hint="give URLs of the same path")
    seed = read_flag("--seed", flags.seed, "seed")
    plan = DuetPlan(cells, seed, lasts_ns, once=all(running), same_answers=flags.same_answers)
    return plan, duet_tools(cells)


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
    lasts = f"{duration_ns // _SERVERS // 1_000_000}ms"
    return read_schema(LoadSchema, given, {**shape, "for": lasts}).load("load", ())


def _attached(url: str, _name: str, flags: AbFlags, load: Load) -> Cell:
    endpoint, path = read_url(url)
    if flags.path is not None:
        raise UsageError(f"--path {flags.path}: the URLs name their paths", hint="leave out --path")
    variant = Variant(
        entry=AttachedServer(host=endpoint.host, port=endpoint.port), tls=read_tls(url, None, insecure=False)
    )
    return _cell(variant, _scenario(path, flags), load)


def _started(command: str, name: str, flags: AbFlags, load: Load) -> Cell:
    scenario = _scenario(flags.path or "/", flags)
    with naming(name):
        entry = command_entry(name, command, ready_of(scenario), str(Path.cwd()))
    return _cell(Variant(entry=entry), scenario, load)


def _of_project(project: Project, name: str, load: Load) -> Cell:
    entry = project.entry.model_copy(update={"name": name})
    return _cell(Variant(entry=entry), project.scenario, load)


def _warming(cell: Cell, lasts_ns: int) -> Cell:
    """In fewer and longer starts, each of which is measured for a quarter of its time, or sooner if it is warm sooner.

    A virtual machine may take tens of seconds until it has compiled what a request needs.
    """
    start_ns = max(
        min(lasts_ns // _JVM_STARTS, _LONGEST_JVM_START_NS), min(lasts_ns // FEWEST_STARTS, _SHORT_JVM_START_NS)
    )
    load = cell.load.model_copy(update={"duration_ns": start_ns // 4 // _SERVERS})
    changed = {"load": load, "warmup_ns": start_ns * 3 // 4 // _SERVERS, "warmup_detect": True}
    return cell.model_copy(update=changed)


def _scenario(path: str, flags: AbFlags) -> Scenario:
    request = read_request(path, None, flags.headers, None, 200 if flags.status is None else flags.status)
    return Scenario(name="requests", request=request, picks=read_picks(request))


def _cell(variant: Variant, scenario: Scenario, load: Load) -> Cell:
    return Cell(
        variant=variant, scenario=scenario, load=load, warmup_ns=_WARMUP_NS // _SERVERS, timeout_ns=5_000_000_000
    )
