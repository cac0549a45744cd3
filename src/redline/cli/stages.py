"""A run in one part or two: capacities that rates are a share of are measured first, as a run in RUN/capacity.

Whatever is left of a run is read off its directory, so `--resume` goes on from any point: in the first part, after it,
and in the second, which is all there is of a suite without such rates.
"""

import os
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from redline.analysis import build_report, capacities
from redline.analysis.precision import enough
from redline.cli import places
from redline.cli.beforehand import load_what_judges
from redline.cli.building import Built, build_all, refuse_changed
from redline.cli.commands.check import show_plans
from redline.cli.progress import Progress
from redline.errors import RedlineError, StoreError
from redline.model import Manifest, Plan, Report
from redline.plugins.executors.local import LocalExecutor
from redline.report.render import RENDERERS
from redline.running.assembly import Workbench, workbench
from redline.running.session import run_session
from redline.storage.runs import RunStore
from redline.suite import (
    Capacities,
    Overrides,
    capacity_loads,
    files_beside,
    load_catalogue,
    make_capacity_plan,
    make_plan,
    read_suite,
    read_text,
)

_VIEWS = {"report.html": "html", "results.csv": "csv", "results.json": "json"}


def capacity_of(folder: Path) -> RunStore:
    """Where a run in this directory keeps its first part, when it has one."""
    return RunStore(folder / "capacity")


def holds_run(store: RunStore) -> bool:
    """Whether a run was begun there."""
    return (store.folder / "run.json").is_file()


@dataclass(frozen=True)
class Opened:
    """A run that can be gone on with; `unavailable` says by variant slug why a server cannot be run."""

    store: RunStore
    bench: Workbench
    unavailable: Mapping[str, str]

    @property
    def first(self) -> RunStore:
        """Where capacities are kept, when the suite needs them."""
        return capacity_of(self.store.folder)


@dataclass(frozen=True)
class Progressed:
    """How far it came: the parts that have something to show, last one last."""

    parts: tuple[tuple[RunStore, Report], ...]
    interrupted: bool


def begin(file: Path, overrides: Overrides, output: Path | None, console: Console) -> Opened:
    """Validate, show what will be done, build, and write the manifest of the first part that there is."""
    folder, text = places.catalogue(file), read_text(file)
    suite = read_suite(text, str(file), load_catalogue(folder), overrides, files_beside(file))
    store = RunStore(output or places.new_run(suite.name))
    _check_free(store)
    bench = workbench(folder, places.cache(file))
    show_plans(make_capacity_plan(suite), make_plan(suite), console)
    opened = Opened(store, bench, build_all(suite, bench.tools.launcher, console).unavailable)
    name = store.folder.resolve().name
    if capacity_loads(suite):
        store, name = opened.first, f"{name}/{opened.first.folder.name}"
        plan = make_capacity_plan(suite, opened.unavailable)
    else:
        plan = make_plan(suite, opened.unavailable, Capacities())
    _check_left(plan, "`redline list` says what can be built here")
    store.create(
        Manifest(
            name=name,
            created_unix_ns=time.time_ns(),
            command=shlex.join(["redline", *sys.argv[1:]]),
            suite_file=str(file.resolve()),
            suite_text=text,
            plan=plan,
            environment=bench.environment,
        )
    )
    return opened


def reopen(folder: Path, console: Console) -> Opened:
    """Open a stored run, and make sure that its servers are still what they were in all that was measured."""
    store = RunStore(folder)
    runs = [one.run() for one in (capacity_of(folder), store) if holds_run(one)]
    manifest = runs[0].manifest if runs else store.manifest()
    file = Path(manifest.suite_file)
    bench = workbench(places.catalogue(file), places.cache(file))
    planned = {cell.variant.slug for run in runs for cell in run.manifest.plan.cells.values()}
    only = planned if holds_run(store) else None  # what is still to be planned may need the others too
    built = build_all(manifest.plan.suite, bench.tools.launcher, console, only)
    lost = {slug: reason for slug, reason in built.unavailable.items() if slug in planned}
    for run in runs:
        refuse_changed(Built(built.hashes, lost, built.runtimes), run, bench.environment)
    return Opened(store, bench, built.unavailable)


def go_on(opened: Opened, console: Console) -> Progressed:
    """Run what is left of it, and write the views of what was measured."""
    load_what_judges()
    shown: list[tuple[RunStore, Report]] = []
    first, store = opened.first, opened.store
    if holds_run(first):
        interrupted = False
        if not holds_run(store):
            _say(console, f"part 1 of 2: the capacity, kept in {first.folder}")
            interrupted = _measure(first, opened.bench, console)
        shown.append((first, write_views(first)))
        if interrupted:
            return Progressed(tuple(shown), interrupted)
        if not holds_run(store):
            _plan_second(opened, console)
        _say(console, "part 2 of 2: rates as shares of the capacity")
    interrupted = _measure(store, opened.bench, console)
    return Progressed((*shown, (store, write_views(store))), interrupted)


def write_views(store: RunStore) -> Report:
    """Judge what is stored, and keep what can be looked at."""
    report = build_report(store.run())
    for name, form in _VIEWS.items():
        store.write(name, RENDERERS[form].render(report))
    return report


def _plan_second(opened: Opened, console: Console) -> None:
    """Give the other loads their rates, and write the manifest of the run itself."""
    found = opened.first.run()
    suite = found.manifest.plan.suite
    plan = make_plan(suite, opened.unavailable, capacities(found))
    told = {skipped.slug for skipped in make_plan(suite, opened.unavailable).skipped}
    for skipped in plan.skipped:
        if skipped.slug not in told:
            console.print(f"skipped: {skipped.slug}: {skipped.reason}", style="yellow", markup=False)
    _check_left(plan, f"what was measured shows why: redline report {opened.first.folder}")
    opened.store.create(
        found.manifest.model_copy(
            update={
                "name": opened.store.folder.resolve().name,
                "created_unix_ns": time.time_ns(),
                "plan": plan,
                "environment": opened.bench.environment,
            }
        )
    )


def _measure(store: RunStore, bench: Workbench, console: Console) -> bool:
    """Run what is left of the plan. Returns whether it was interrupted."""
    if bench.tools.placement.lab_cpus:
        os.sched_setaffinity(0, bench.tools.placement.lab_cpus)
    with store.locked():
        plan = store.manifest().plan
        with Progress(plan, len(store.positions()), console) as progress:
            executor = LocalExecutor(plan, bench.tools, store, progress)
            try:
                run_session(plan, store, executor, progress, enough)
            except KeyboardInterrupt:
                return True
    return False


def _check_left(plan: Plan, hint: str) -> None:
    if not plan.trials:
        reasons = "; ".join(sorted({skipped.reason for skipped in plan.skipped}))
        raise RedlineError(f"nothing is left to run: {reasons}", hint=hint)


def _check_free(store: RunStore) -> None:
    store.check_free()
    if holds_run(capacity_of(store.folder)):
        raise StoreError(f"{store.folder} already holds a run", hint=f"go on with: redline run --resume {store.folder}")


def _say(console: Console, line: str) -> None:
    console.print(line, style="bold", highlight=False, markup=False, soft_wrap=True)
