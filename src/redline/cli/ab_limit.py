"""`redline ab --limit`: the limits of two servers, found in one session, and their ratio."""

import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console

from redline.analysis.ab_limit import judge_limits
from redline.analysis.search_state import FIRST_PER_S, search_state, without_paths
from redline.cli import exits
from redline.cli.ab_view import failure_error
from redline.cli.command_line import AbFlags
from redline.cli.flags import command_line, naming, refuse
from redline.cli.limit_flags import TRIALS, Sets, read_sets, within_timeout
from redline.cli.session_view import SearchView, SessionView
from redline.cli.show import Terminal, show
from redline.cli.streams import write_document
from redline.errors import LaunchError, RedlineError, UsageError
from redline.model import (
    AttachedServer,
    Cell,
    Load,
    Manifest,
    Open,
    Plan,
    PlannedTrial,
    Suite,
    Verdict,
)
from redline.model.runtime import COMPILES_WHILE_RUNNING
from redline.model.search import SearchTerms
from redline.ports import Launch
from redline.quantities import duration, parse_duration
from redline.report.render import markdown
from redline.report.sections.ab_limit import ab_limit_sections
from redline.running.assembly import Workbench, attached, commands
from redline.running.record import failure_of
from redline.running.searching import SearchSession
from redline.storage.runs import RunStore
from redline.suite import SHORTEST_PROBE_NS

LASTS = "4m"
PROBES, PRECISION, CONNECTIONS = 12, 0.03, 256
"""Of each of the two searches."""
_SETTLE_SHARE, _SETTLE_NS = 0.2, 1_000_000_000
"""Of a probe, and at most: loaded before each counts; a start is warmed up for twice as long."""
_OF_WARM_UPS = 0.5
"""The share of the time in which servers that compile while they run may be warmed up until they are steady."""
_MEANINGLESS = {"threshold", "load", "metric", "same_answers", "output", "resume"}


@dataclass(frozen=True)
class LimitsRequest:
    """What is searched of both servers, and how: see SearchTerms. `lasts_ns` is about the most that it takes.

    `from_project`: redline.yaml says how they are started.
    """

    names: tuple[str, str]
    sets: Sets
    cells: tuple[Cell, ...]
    seed: int
    lasts_ns: int
    from_project: bool

    @property
    def trials(self) -> int:
        """Fresh starts at the ends of each limit; 0 where the servers run already, and cannot be started again."""
        return _trials(self.cells[0])


def read_limits(
    flags: AbFlags, names: tuple[str, str], cells: tuple[Cell, ...], *, from_project: bool = False
) -> LimitsRequest:
    """What is searched; `cells` say what the servers are and what they are asked. Raises UsageError."""
    if not flags.limit:
        raise UsageError("--objective is what limits are searched for", hint="add --limit, or leave out --objective")
    refuse(flags.given(among=_MEANINGLESS), "--limit finds the rates itself, stores nothing, and takes no")
    if flags.objective is None:
        raise UsageError("nothing says what is to be met", hint="give --objective 'p99 < 200ms, errors < 0.1%'")
    sets = read_sets([flags.objective])
    within_timeout(sets, cells[0].timeout_ns, f"the timeout, {duration(cells[0].timeout_ns)}")
    lasts = flags.lasts or LASTS
    with naming("--for"):
        lasts_ns = parse_duration(lasts)
    compiles = any(cell.variant.runtime in COMPILES_WHILE_RUNNING for cell in cells)
    probed = _probed(cells, lasts_ns, compiles=compiles)
    return LimitsRequest(names, sets, probed, flags.seed, lasts_ns, from_project)


def _probed(cells: tuple[Cell, ...], lasts_ns: int, *, compiles: bool) -> tuple[Cell, ...]:
    found = tuple(_cell(cell, name, lasts_ns, compiles=compiles) for name, cell in zip("AB", cells, strict=True))
    if found[0].load.duration_ns < SHORTEST_PROBE_NS:
        raise UsageError(
            f"--for {lasts_ns / 1e9:g}s is too short for two limits", hint=f"give {LASTS}, or leave it out"
        )
    return found


def as_they_run(request: LimitsRequest, bench: Workbench) -> LimitsRequest:
    """With a warm-up until it is steady if a start shows that a server compiles while it runs.

    Raises LaunchError, and UsageError where there is too little time for that.
    """
    if request.cells[0].warmup_detect:
        return request
    runtimes = set[str]()
    with tempfile.TemporaryDirectory() as logs:
        for cell in request.cells:
            launch = Launch(cell.variant, bench.tools.placement, Path(logs, cell.load.name))
            with bench.tools.launcher.running(launch) as server:
                runtimes |= server.runtimes
    if not runtimes & COMPILES_WHILE_RUNNING:
        return request
    return replace(request, cells=_probed(request.cells, request.lasts_ns, compiles=True))


def _cell(cell: Cell, name: str, lasts_ns: int, *, compiles: bool) -> Cell:
    """The cell with a probe as its load; its name makes two URLs of one server two cells."""
    trials = _trials(cell)
    starts, loads_ns = 2 * (1 + trials), lasts_ns * (1 - _OF_WARM_UPS if compiles else 1)
    probe_ns = int(loads_ns / (_most_probes(trials) * (1 + _SETTLE_SHARE) + starts * 2 * _SETTLE_SHARE))
    load = Load(name=name, shape=Open(rate_per_s=FIRST_PER_S, connections=CONNECTIONS), duration_ns=probe_ns)
    warmup_ns = min(int(_SETTLE_SHARE * probe_ns), _SETTLE_NS)
    if compiles:
        warmup_ns = int(lasts_ns * _OF_WARM_UPS) // starts
    return cell.model_copy(update={"load": load, "warmup_ns": warmup_ns, "warmup_detect": compiles})


def _trials(cell: Cell) -> int:
    """Fresh starts at the ends of each limit; none of servers that run already."""
    return 0 if isinstance(cell.variant.entry, AttachedServer) else TRIALS


def _most_probes(trials: int) -> int:
    """Of both searches; see `Settings.most_probes`. Without fresh starts each end has one more probe at least."""
    return 2 * (PROBES + 2 * max(trials, 1))


def find_limits(request: LimitsRequest, flags: AbFlags) -> None:
    """Search both, and print what was found; the verdict is the exit code."""
    console, began = Terminal(stderr=True), time.monotonic()
    most = f"at most {_most_probes(request.trials)} probes in about {duration(request.lasts_ns)}"
    console.print(f"{most}, not counting waits for a host that takes CPU time", highlight=False, soft_wrap=True)
    bench = commands() if request.trials else attached(request.cells[0].variant)
    try:
        request = as_they_run(request, bench)
    except LaunchError as error:
        _View(console, request).broken(error)
    with tempfile.TemporaryDirectory() as scratch:
        store, plan = RunStore(Path(scratch, "search")), _plan(request, bench)
        store.create(plan)
        session = SearchSession(store, plan, bench, _View(console, request), is_kept=False, by_probe=True)
        _, interrupted = session.execute()
        one, other = (search_state(plan, cell, store.probes(cell)).limit() for cell in request.cells)
    seconds, (objective,) = time.monotonic() - began, request.sets
    searches = without_paths(one), without_paths(other)
    report = judge_limits(request.names, objective, searches, seconds=seconds, interrupted=interrupted)
    if flags.json:
        sys.stdout.write(report.model_dump_json(indent=2) + "\n")
    elif flags.form is not None:
        write_document(markdown.render(ab_limit_sections(report)))
    else:
        show(ab_limit_sections(report))
    if interrupted:
        raise typer.Exit(exits.INTERRUPTED)
    if report.ratio is None:
        raise typer.Exit(exits.COULD_NOT_RUN)
    if report.verdict in {Verdict(each.value) for each in flags.fail_on}:
        raise typer.Exit(exits.MISSED)


def _plan(request: LimitsRequest, bench: Workbench) -> Manifest:
    first = request.cells[0]
    starts = max(request.trials, 1)
    suite = Suite(
        name="A against B",
        variants=tuple(cell.variant for cell in request.cells),
        scenarios=(first.scenario,),
        loads=tuple(cell.load for cell in request.cells),
        warmup_ns=first.warmup_ns,
        warmup_detect=first.warmup_detect,
        trials=starts,
        seed=request.seed,
        timeout_ns=first.timeout_ns,
    )
    trials = tuple(
        PlannedTrial(cell_id=cell.id, round=number, position=2 * number + at, seed=request.seed)
        for number in range(starts)
        for at, cell in enumerate(request.cells)
    )
    return Manifest(
        kind="search",
        name="ab",
        created_unix_ns=time.time_ns(),
        command=command_line(),
        suite_file="",
        suite_text="",
        plan=Plan(suite=suite, cells={cell.id: cell for cell in request.cells}, trials=trials),
        environment=bench.environment,
        search=SearchTerms(
            url="" if request.trials else " ".join(request.names),
            sets=dict(request.sets),
            start_per_s=None,
            by_warm_up=True,
            probes=PROBES,
            precision=PRECISION,
            trials=request.trials,
            beyond=False,
            curve=False,
            workers=None if request.trials else 1,
        ),
    )


class _View(SessionView):
    """Names the server of each probe. What breaks one search ends both."""

    def __init__(self, console: Console, request: LimitsRequest) -> None:
        super().__init__(console)
        self._request = request

    def cell(self, cell: Cell, number: int, cells: int, *, alone: bool = True) -> SearchView:
        """Show a turn of the search on a cell."""
        del number, cells, alone
        return SearchView(cell, self._console, f"{cell.load.name} ")

    def broken(self, error: RedlineError) -> NoReturn:
        """Raise it with a hint that fits."""
        request = self._request
        if isinstance(error, LaunchError):
            failure = failure_of("launch", error.kind, error, error.log_tail)
        else:
            failure = failure_of("load", "engine", error)
        once = not request.trials
        raise failure_error(failure, request.names, from_project=request.from_project, once=once)
