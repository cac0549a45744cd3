"""`redline run`: plan, build, measure, report."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import typer
from rich.console import Console

from redline.cli import exits, places
from redline.cli.command_line import RunFlags
from redline.cli.commands.check import show_plans
from redline.cli.flags import command_line, read_suite_file, refuse
from redline.cli.quiet import wait_until_quiet
from redline.cli.session_view import SessionView
from redline.cli.show import Terminal, show
from redline.cli.streams import write_document
from redline.errors import UsageError
from redline.model import CellReport, Report
from redline.plugins.machine import plan_placement
from redline.report.render import RENDERERS
from redline.report.sections.run import run_summary
from redline.running.assembly import Cluster
from redline.running.parallel import check_cores
from redline.running.session import Outcome, RunSession, Source
from redline.storage.runs import RunStore
from redline.suite import make_capacity_plan, make_plan


def execute(flags: RunFlags) -> None:
    """Run a suite: build its servers, measure every cell, write the report."""
    console = Terminal(stderr=True)
    with ExitStack() as stack:
        cluster = Cluster(flags.on, stack, places.of_suite)
        if flags.resume is not None:
            refuse(
                flags.given(but={"resume", "on", "trials", "wait_quiet", "json"}),
                "--resume continues a run as it was planned, and takes no",
            )
            session = _resumed(flags.resume, cluster, console, flags.trials)
        elif flags.suite is not None:
            session = _create(flags.suite, flags, cluster, console)
        else:
            raise UsageError(
                "no suite is named", hint="try `redline run suites/quickstart.yaml`; `redline list` shows the suites"
            )
        if flags.wait_quiet:
            wait_until_quiet(console)
        outcome = session.execute()
    _, report = outcome.parts[-1]
    try:
        if flags.json:
            write_document(RENDERERS["json"](report))
        else:
            show(run_summary(report))
    finally:  # whoever cannot be shown it finds it there
        _print_where(session.store, outcome, console)
    code = exits.INTERRUPTED if outcome.interrupted else exit_code(tuple(report for _, report in outcome.parts))
    if code:
        raise typer.Exit(code)


def _print_where(whole: RunStore, outcome: Outcome, console: Console) -> None:
    """Print where the report of each part is, and how an interrupted run is resumed."""
    for store, _ in outcome.parts:
        said = "report" if store.folder == whole.folder else "capacity"
        page = (store.folder / "report.html").resolve()
        console.print(f"{said}: {page}", soft_wrap=True, highlight=False, markup=False)
    if outcome.interrupted:
        again = f"{places.own_name()} run --resume {whole.folder}"
        console.print(f"interrupted; resume with: {again}", soft_wrap=True, markup=False)


def _resumed(folder: Path, cluster: Cluster, console: Console, trials: int | None) -> RunSession:
    if RunStore(folder).kind == "search":
        raise UsageError(f"{folder} holds a search", hint=f"resume it with: redline limit --resume {folder}")
    return RunSession.resume(folder, cluster.bench_for, SessionView(console), trials)


def _create(file: Path, flags: RunFlags, cluster: Cluster, console: Console) -> RunSession:
    """Validate a suite, show what will be done, and build. Raises RedlineError."""
    suite, text = read_suite_file(file, flags)
    folder = flags.output or places.new_run(suite.name)
    RunStore(folder).check_free()
    bench, suite, changed = cluster.prepare(file, suite)
    for reason in changed:
        console.print(reason, style="yellow", highlight=False, markup=False)
    plan = make_plan(suite)
    if not bench.pairs:
        check_cores(plan, plan_placement().cores)
    show_plans(make_capacity_plan(suite), plan, console)
    source = Source(command_line(), str(file.resolve()), text)
    return RunSession.create(suite, source, folder, bench, SessionView(console))


def exit_code(reports: Sequence[Report]) -> int:
    """1 when a subject of any part could not be run at all; 3 when an objective of the last was not shown to be met.

    Objectives are for what the suite asks about: a server whose capacity is sought is asked for all it has.
    """
    if any(_could_not_run(report) for report in reports):
        return exits.COULD_NOT_RUN
    missed = any(result.state != "met" for cell in _subjects(reports[-1]) for result in cell.objectives)
    return exits.MISSED if missed else exits.DONE


def _subjects(report: Report) -> list[CellReport]:
    return [cell for cell in report.cells if cell.role == "subject"]


def _could_not_run(report: Report) -> bool:
    subjects = _subjects(report)
    answered = any(cell.valid or _judged(cell) for cell in subjects)
    return not answered or any(_never_answered(cell) for cell in subjects)


def _judged(cell: CellReport) -> bool:
    """Whether all of its objectives are known to be met or missed, though it may be invalid."""
    return bool(cell.objectives) and all(result.known for result in cell.objectives)


def _never_answered(cell: CellReport) -> bool:
    return bool(cell.trials) and not any(trial.rate_per_s and not trial.failure for trial in cell.trials)
