"""`redline run`: plan, build, measure, report."""

import os
import shlex
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from redline.cli import exits, places
from redline.cli.building import build_all, refuse_changed
from redline.cli.check import show_plan
from redline.cli.progress import Progress
from redline.cli.selection import (
    AsJson,
    Duration,
    Options,
    Quick,
    Scenarios,
    Seed,
    Servers,
    Trials,
    Users,
    read_overrides,
)
from redline.cli.summary import print_report
from redline.cli.workbench import Workbench, workbench
from redline.errors import RedlineError, UsageError
from redline.model import CellReport, Manifest, Plan, Report, Suite
from redline.plugins.executors.local import LocalExecutor
from redline.report import build_report
from redline.report.renderers import RENDERERS
from redline.session import run_session
from redline.store import RunStore
from redline.suite import Overrides, files_beside, load_catalogue, make_plan, read_suite, read_text

_VIEWS = {"report.html": "html", "results.csv": "csv", "results.json": "json"}


def run(
    suite: Annotated[
        Path | None, typer.Argument(metavar="SUITE", help="A suite: a YAML file.", show_default=False)
    ] = None,
    servers: Servers = None,
    scenarios: Scenarios = None,
    options: Options = None,
    users: Users = None,
    duration: Duration = None,
    trials: Trials = None,
    seed: Seed = None,
    quick: Quick = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="The run's directory.")] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="DIR", help="Go on with a run that stopped.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Run a suite: build its servers, measure every cell, write the report."""
    console = Console(stderr=True)
    overrides = read_overrides(servers, scenarios, users, duration, trials, seed, options, quick)
    if resume is not None:
        _refuse_more_than_resume(suite, output, overrides)
        store, bench = _reopen(resume, console)
    elif suite is not None:
        store, bench = _open(suite, overrides, output, console)
    else:
        raise UsageError(
            "no suite is named", hint="try `redline run suites/quickstart.yaml`; `redline list` shows the suites"
        )
    interrupted = _measure(store, bench, console)
    report = _write_views(store)
    if json:
        sys.stdout.write(RENDERERS["json"].render(report).decode())
    else:
        print_report(report, Console())
    console.print(f"report: {(store.folder / 'report.html').resolve()}", soft_wrap=True, highlight=False, markup=False)
    if interrupted:
        console.print(
            f"interrupted; go on with: {places.own_name()} run --resume {store.folder}", soft_wrap=True, markup=False
        )
    code = exits.INTERRUPTED if interrupted else _exit_code(report)
    if code:
        raise typer.Exit(code)


def _refuse_more_than_resume(suite: Path | None, output: Path | None, overrides: Overrides) -> None:
    if suite is not None or output is not None or overrides != Overrides():
        raise UsageError(
            "--resume goes on with a run as it was planned, and takes nothing beside it but --json",
            hint="leave out the suite and the other flags, or start a new run without --resume",
        )


def _open(file: Path, overrides: Overrides, output: Path | None, console: Console) -> tuple[RunStore, Workbench]:
    """Validate, show the plan, build, and write the manifest."""
    folder, text = places.catalogue(file), read_text(file)
    suite = read_suite(text, str(file), load_catalogue(folder), overrides, files_beside(file))
    store = RunStore(output or places.new_run(suite.name))
    store.check_free()
    bench = workbench(folder, places.cache(file))
    show_plan(_plan(suite, bench, {}), console)
    built = build_all(suite, bench.tools.launcher, console)
    plan = _plan(suite, bench, built.unavailable)
    if not plan.trials:
        reasons = "; ".join(sorted({skipped.reason for skipped in plan.skipped}))
        raise RedlineError(f"nothing is left to run: {reasons}", hint="`redline list` says what can be built here")
    store.create(
        Manifest(
            name=store.folder.resolve().name,
            created_unix_ns=time.time_ns(),
            command=shlex.join(["redline", *sys.argv[1:]]),
            suite_file=str(file.resolve()),
            suite_text=text,
            plan=plan,
            environment=bench.environment,
        )
    )
    return store, bench


def _plan(suite: Suite, bench: Workbench, unavailable: dict[str, str]) -> Plan:
    return make_plan(suite, unavailable, refuses=bench.tools.driver.refuses)


def _reopen(folder: Path, console: Console) -> tuple[RunStore, Workbench]:
    """Open a stored run, and make sure that its servers are still what they were."""
    store = RunStore(folder)
    manifest = store.manifest()
    bench = workbench(places.catalogue(Path(manifest.suite_file)), places.cache(Path(manifest.suite_file)))
    built = build_all(
        manifest.plan.suite,
        bench.tools.launcher,
        console,
        only={cell.variant.slug for cell in manifest.plan.cells.values()},
    )
    refuse_changed(built, store.run(), bench.environment)
    return store, bench


def _measure(store: RunStore, bench: Workbench, console: Console) -> bool:
    """Run what is left of the plan. Returns whether it was interrupted."""
    import_module("scipy.stats")  # judging needs it; loading it takes CPU that the first trial should not feel
    if bench.tools.placement.lab_cpus:
        os.sched_setaffinity(0, bench.tools.placement.lab_cpus)
    with store.locked():
        plan = store.manifest().plan
        with Progress(plan, len(store.positions()), console) as progress:
            executor = LocalExecutor(plan, bench.tools, store, progress)
            try:
                run_session(plan, store, executor, progress)
            except KeyboardInterrupt:
                return True
    return False


def _write_views(store: RunStore) -> Report:
    report = build_report(store.run())
    for name, form in _VIEWS.items():
        store.write(name, RENDERERS[form].render(report))
    return report


def _exit_code(report: Report) -> int:
    """1 when a subject could not be run at all, 3 when an objective was not shown to be met."""
    subjects = [cell for cell in report.cells if cell.role == "subject"]
    if not any(cell.valid for cell in subjects) or any(_never_answered(cell) for cell in subjects):
        return exits.COULD_NOT_RUN
    missed = any(not result.met for cell in subjects for result in cell.objectives)
    return exits.MISSED if missed else exits.DONE


def _never_answered(cell: CellReport) -> bool:
    return bool(cell.trials) and not any(trial.rate_per_s and not trial.failure for trial in cell.trials)
