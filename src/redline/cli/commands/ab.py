"""`redline ab A B`: which of two servers needs less, with an interval that a noisy machine does not spoil."""

import re
import tempfile
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import typer
from rich.text import Text

from redline.cli import exits, places
from redline.cli.ab_limit import find_limits, read_limits
from redline.cli.ab_view import judged, print_report, too_little, write_views
from redline.cli.build_view import BuildView
from redline.cli.command_line import DEFAULT_BUDGET, AbFlags
from redline.cli.flags import command_line, naming, read_flag, read_schema, refuse
from redline.cli.load_flags import read_picks, read_request, read_tls, read_url
from redline.cli.quiet import wait_until_quiet
from redline.cli.show import OneLine, Terminal
from redline.cli.targets import check_target
from redline.errors import UsageError
from redline.model import (
    AttachedServer,
    Cell,
    DuetBlock,
    Load,
    Metric,
    Scenario,
    ServerEntry,
    Variant,
    Verdict,
)
from redline.model.duet import AbPlan, AbReport, CheckoutPair, DuetPlan
from redline.plugins.launchers.command import named_files
from redline.plugins.machine import plan_placement
from redline.plugins.revisions import WORK_TREE, Repository
from redline.quantities import duration, parse_duration
from redline.running.assembly import built, duet_environment, duet_tools
from redline.running.duet import DuetLogs, is_over, run_duet
from redline.running.parallel import sides
from redline.running.session import refuse_other_machine
from redline.storage.comparisons import ComparisonStore
from redline.suite import read_text, referenced_files
from redline.suite.budget import start_times
from redline.suite.project import PROJECT_FILE, Own, Project, read_project
from redline.suite.schema.load import LoadSchema
from redline.suite.urls import as_url, is_like_a_url, is_url

SERVERS = 3
"""A, B, and A once more as a control."""
_METRICS = {"cpu": Metric.CPU_PER_REQUEST, "throughput": Metric.THROUGHPUT, "p50": Metric.P50, "p99": Metric.P99}
_LOAD = re.compile(r"closed:(\d+)|open:(.+)")
_WITH_RESUME = {"resume", "lasts", "fail_on", "threshold", "wait_quiet", "form", "json"}


def execute(flags: AbFlags) -> None:
    """Compare two commands, two revisions, or two servers that are running; or resume that."""
    if flags.limit or flags.objective is not None:
        _find_limits(flags)
    else:
        _compare(flags)


def _compare(flags: AbFlags) -> None:
    console, kept = Terminal(stderr=True), flags.resume or flags.output
    threshold = _threshold(flags)
    with tempfile.TemporaryDirectory() if kept is None else nullcontext(kept) as folder:
        store = ComparisonStore(Path(folder))
        plan = _planned(flags, store) if flags.resume is None else _resumed(flags, store)
        with nullcontext() if plan.checkout is None else built(plan.checkout, BuildView(console)) as folders:
            if flags.wait_quiet:
                wait_until_quiet(console)
            if flags.resume is None:
                store.create(plan)
            interrupted = _measure(store, plan, folders, log_is_kept=kept is not None)
        if kept is not None:
            console.print(f"kept in {kept}", soft_wrap=True, highlight=False, markup=False)
        report = judged(plan, store.duets())
        if report is None and not interrupted:
            raise too_little(plan, store.duets())
        if report is not None:
            write_views(store, report)
    if report is not None:
        print_report(report, "json" if flags.json else flags.form)
    if report is None or interrupted or report.interrupted:
        if kept is not None:
            again = f"{places.own_name()} ab --resume {kept}"
            console.print(f"interrupted; resume with: {again}", soft_wrap=True, highlight=False, markup=False)
        raise typer.Exit(exits.INTERRUPTED)
    _gate(report, flags, threshold)


def _gate(report: AbReport, flags: AbFlags, threshold: float | None) -> None:
    """Exit with 3 for an unwanted verdict, and with 1 where cold servers left none: then nothing has passed."""
    tolerated = threshold is not None and report.verdict is Verdict.SLOWER and not report.ratio.is_beyond(threshold)
    if report.verdict in {Verdict(each.value) for each in flags.fail_on} and not tolerated:
        raise typer.Exit(exits.MISSED)
    within = threshold is not None and report.ratio.is_within(threshold)
    if flags.fail_on and report.unsettled and report.verdict in (Verdict.INCONCLUSIVE, Verdict.SLOWER) and not within:
        raise typer.Exit(exits.COULD_NOT_RUN)


def _find_limits(flags: AbFlags) -> None:
    checkout, project = (None, None) if flags.git is None else read_checkout(flags.git)
    duet = read_plan(flags, _lasts_ns(DEFAULT_BUDGET), project)
    a, b = map(str, checkout.revisions) if checkout else (flags.a or "", flags.b or "")
    request = read_limits(flags, (a, b), duet.cells, from_project=project is not None)
    with nullcontext() if checkout is None else built(checkout, BuildView(Terminal(stderr=True))) as folders:
        if flags.wait_quiet:
            wait_until_quiet(Terminal(stderr=True))
        find_limits(request if folders is None else replace(request, cells=_in_folders(request.cells, folders)), flags)


def _threshold(flags: AbFlags) -> float | None:
    """The relative difference that `--fail-on slower` tolerates. Raises UsageError."""
    if flags.threshold is None:
        return None
    if all(verdict.value != Verdict.SLOWER for verdict in flags.fail_on):
        raise UsageError("--threshold is of --fail-on slower", hint="add --fail-on slower, or leave it out")
    return float(read_flag("--threshold", flags.threshold, "threshold"))


def _planned(flags: AbFlags, store: ComparisonStore) -> AbPlan:
    """What the flags say. Raises UsageError, StoreError where it cannot be kept, and DriveError without an engine."""
    lasts_ns = _lasts_ns(flags.lasts or DEFAULT_BUDGET)
    checkout, project = (None, None) if flags.git is None else read_checkout(flags.git)
    duet = read_plan(flags, lasts_ns, project)
    metric = _METRICS[flags.metric]
    if metric is Metric.THROUGHPUT and not duet.cells[0].load.saturates:
        raise UsageError("--metric throughput: an open load has the rate of its schedule", hint="use cpu or p99")
    store.check_free()
    a, b = map(str, checkout.revisions) if checkout else (flags.a or "", flags.b or "")
    return AbPlan(
        created_unix_ns=time.time_ns(),
        command=command_line(),
        a=a,
        b=b,
        metric=metric,
        duet=duet,
        checkout=checkout,
        files={} if checkout else _files(duet),
        environment=duet_environment(),
    )


def _resumed(flags: AbFlags, store: ComparisonStore) -> AbPlan:
    """What is stored, for as long as --for says now. Raises RedlineError where it cannot go on as it began."""
    refuse(flags.given(but=_WITH_RESUME), "--resume continues a comparison as it was planned, and takes no")
    plan = store.plan()
    store.check_folders("duets")
    duet = plan.duet
    if flags.lasts is not None:
        duet = duet.model_copy(update={"lasts_ns": _lasts_ns(flags.lasts)})
    if duet.lasts_ns < plan.duet.lasts_ns:
        message = f"--for {flags.lasts} is less than the {duration(plan.duet.lasts_ns)} that {store.folder} began with"
        raise UsageError(message, hint="leave out --for, or give more")
    if duet.once and duet != plan.duet:
        hint = "leave out --for, or compare them anew"
        raise UsageError("--for: servers behind URLs have one start, whose length is planned", hint=hint)
    if is_over(duet, store.duets()):
        hint = "compare them anew" if duet.once else f"go on for longer: --for {2 * duet.lasts_ns // 10**9}s"
        raise UsageError(f"{store.folder} was measured for all of its {duration(duet.lasts_ns)}", hint=hint)
    now = {} if plan.checkout else _files(duet)
    for file in sorted(plan.files.keys() | now.keys()):
        if plan.files.get(file) != now.get(file):
            hint = "start a new comparison: all starts must be of the same servers"
            raise UsageError(f"{file} is not what it was when this comparison began", hint=hint)
    refuse_other_machine(plan.environment, duet_environment(), "this comparison")
    return plan.model_copy(update={"duet": duet})


def _lasts_ns(text: str) -> int:
    with naming("--for"):
        return parse_duration(text)


def _files(duet: DuetPlan) -> dict[str, str]:
    entries = (cell.variant.entry for cell in duet.cells)
    return {
        file: digest
        for entry in entries
        if isinstance(entry, ServerEntry)
        for file, digest in named_files(entry.start.command, Path(entry.family_folder)).items()
    }


def _measure(store: ComparisonStore, plan: AbPlan, folders: tuple[Path, ...] | None, *, log_is_kept: bool) -> bool:
    """Make the starts that the store lacks, and keep each. Returns whether an interrupt ended them."""
    duet = plan.duet
    if folders is not None:
        duet = duet.model_copy(update={"cells": _in_folders(duet.cells, folders)})
    tools, logs = duet_tools(duet.cells), DuetLogs(store.logs, log_is_kept)
    with store.locked(), OneLine(Terminal(stderr=True)) as progress:
        store.put(plan)

        def block_seen(start: int, block: DuetBlock) -> None:
            progress.show(Text(f"start {start + 1} · block {block.index + 1} · {block.phase}"))

        try:
            for recording in run_duet(duet, tools, logs, block_seen, store.duets()):
                store.save_duet(recording, duet.cells[0])
        except KeyboardInterrupt:
            return True
    return False


def _in_folders(cells: tuple[Cell, ...], folders: tuple[Path, ...]) -> tuple[Cell, ...]:
    def moved(cell: Cell, folder: Path) -> Cell:
        entry = cell.variant.catalogued.model_copy(update={"family_folder": str(folder)})
        return cell.model_copy(update={"variant": cell.variant.model_copy(update={"entry": entry})})

    return tuple(map(moved, cells, folders))


def read_checkout(written: str) -> tuple[CheckoutPair, Project]:
    """What `--git` means here, and how its servers are started and asked. Raises UsageError.

    Prints a warning where there are changes that are not committed, and are not compared.
    """
    here = Path.cwd()
    repository = Repository.around(here)
    revisions = repository.range(written)
    folders = [each for each in (here, *here.parents) if each.is_relative_to(repository.folder)]
    file = next((folder / PROJECT_FILE for folder in folders if (folder / PROJECT_FILE).is_file()), None)
    if file is None:
        hint = "write one that has at least `start: ./server --port {port}`, and `build:` with what builds it"
        raise UsageError(f"there is no {PROJECT_FILE} in {here} or above it", hint=f"{hint}: docs/guide/ab.md")
    project = read_project(
        read_text(file), str(file.relative_to(here) if file.parent == here else file), referenced_files(file)
    )
    if repository.has_changes() and revisions[1].name != WORK_TREE:
        start = revisions[0].name
        message = (
            f"changes that are not committed are not measured; `--git {start}` compares {start} with the work tree"
        )
        Terminal(stderr=True).print(message, style="yellow", markup=False, highlight=False, soft_wrap=True)
    below = str(file.parent.relative_to(repository.folder))
    made = CheckoutPair(repository=str(repository.folder), revisions=revisions, build=project.build, below=below)
    return made, project


def read_plan(flags: AbFlags, lasts_ns: int, project: Project | None = None) -> DuetPlan:
    """The servers, of which A runs twice as a control, and how they are loaded. Raises UsageError.

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
    running = [is_url(text) for text in texts]
    if half := next((text for text in texts if is_like_a_url(text)), None):
        raise UsageError(f"{half} is neither a command nor a URL of http:// or https://", hint=f"try {as_url(half)}")
    if running[0] != running[1]:
        raise UsageError("one of the two is a URL and the other a command", hint="give two URLs, or two commands")
    times = start_times(lasts_ns, SERVERS, once=all(running))
    load = _load(flags, times.measure_ns)
    names = ("A", "B")
    if project is not None:
        cells = tuple(_of_project(project, name, load, times.warmup_ns) for name in names)
    else:
        make = _attached if all(running) else _started
        cells = tuple(make(text, name, flags, load, times.warmup_ns) for name, text in zip(names, texts, strict=True))
    paths = [cell.scenario.requests[0].path for cell in cells]
    if paths[0] != paths[1]:
        raise UsageError(f"A is asked for {paths[0]} and B for {paths[1]}", hint="give URLs of the same path")
    seed = read_flag("--seed", flags.seed, "seed")
    if flags.parallel and all(running):
        hint = "give commands, or leave out --parallel"
        raise UsageError("--parallel: the servers are running already, so nobody can give them cores", hint=hint)
    if flags.parallel:
        sides(plan_placement().cores, SERVERS)
    return DuetPlan(
        cells=cells,
        seed=seed,
        lasts_ns=lasts_ns,
        once=all(running),
        same_answers=flags.same_answers,
        parallel=flags.parallel,
    )


def _load(flags: AbFlags, measure_ns: int) -> Load:
    written = _LOAD.fullmatch(flags.load)
    if written is None:
        raise UsageError(f"--load {flags.load} is not a load", hint="write closed:64 (users) or open:2000/s (a rate)")
    users, rate = written.groups()
    shape = {"closed": {"users": int(users)}} if users else {"open": {"rate": rate}}
    flag = f"--load {flags.load}"
    given: dict[str | int, str] = {"users": flag, "rate": flag, "for": f"--for {flags.lasts or DEFAULT_BUDGET}"}
    lasts = f"{measure_ns // 1_000_000}ms"
    return read_schema(LoadSchema, given, {**shape, "for": lasts}).load("load", ())


def _attached(url: str, _name: str, flags: AbFlags, load: Load, warmup_ns: int) -> Cell:
    endpoint, path = read_url(url)
    check_target(endpoint.host, flags.mine)
    if flags.path is not None:
        raise UsageError(f"--path {flags.path}: the URLs name their paths", hint="leave out --path")
    variant = Variant(
        entry=AttachedServer(host=endpoint.host, port=endpoint.port), tls=read_tls(url, None, insecure=False)
    )
    return _cell(variant, _scenario(path, flags), load, warmup_ns)


def _started(command: str, name: str, flags: AbFlags, load: Load, warmup_ns: int) -> Cell:
    scenario = _scenario(flags.path or "/", flags)
    with naming(name):
        entry = Own(command=command, folder=str(Path.cwd())).entry(name, scenario)
    return _cell(Variant(entry=entry), scenario, load, warmup_ns)


def _of_project(project: Project, name: str, load: Load, warmup_ns: int) -> Cell:
    entry = project.server(name)
    return _cell(Variant(entry=entry), project.scenarios[0], load, warmup_ns)


def _scenario(path: str, flags: AbFlags) -> Scenario:
    request = read_request(path, None, flags.headers, None, 200 if flags.status is None else flags.status)
    return Scenario(name="requests", request=request, picks=read_picks(request))


def _cell(variant: Variant, scenario: Scenario, load: Load, warmup_ns: int) -> Cell:
    return Cell(
        variant=variant,
        scenario=scenario,
        load=load,
        warmup_ns=warmup_ns,
        warmup_detect=True,
        timeout_ns=5_000_000_000,
    )
