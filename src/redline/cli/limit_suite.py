"""`redline limit SUITE`: what is searched, where it is kept, and how it is gone on with."""

import os
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from redline.cli import places
from redline.cli.beforehand import load_what_judges
from redline.cli.building import Built, build_all, refuse_changed
from redline.cli.flags import at_least_one
from redline.cli.limit_asked import Asked, read_sets, with_few_errors, within_timeout
from redline.cli.limit_cells import CellSearcher, report_of
from redline.cli.limit_plan_view import show_plan
from redline.errors import RedlineError, UsageError
from redline.model import Manifest, Objective, Plan, Run, Suite
from redline.model.limit_plan import LimitPlan
from redline.model.limits import CellLimit, LimitReport
from redline.quantities import duration
from redline.report.render import LIMIT_RENDERERS
from redline.running.assembly import Workbench, workbench
from redline.storage.searches import LimitStore
from redline.suite import Overrides, files_beside, load_catalogue, make_plan, read_suite, read_text, to_search

TRIALS = 3
"""Fresh starts at the ends of each answer."""

_VIEWS = {"limit.html": "html", "limit.md": "md"}


@dataclass(frozen=True)
class Wanted:
    """What only a suite's search is asked for."""

    overrides: Overrides
    trials: int | None
    output: Path | None
    beyond: bool


@dataclass(frozen=True)
class Opened:
    """A search that can be gone on with; `built` has by variant slug what its servers were built from."""

    store: LimitStore
    plan: LimitPlan
    bench: Workbench
    built: Built


def begin(asked: Asked, wanted: Wanted, console: Console) -> Opened:
    """Validate, show what will be done, build, and write down what was asked."""
    file = Path(asked.target)
    folder, text = places.catalogue(file), read_text(file)
    trials = _trials(wanted.trials)
    whole = read_suite(text, str(file), load_catalogue(folder), wanted.overrides, files_beside(file))
    suite, ignored = to_search(whole, trials)
    sets = _sets(asked, suite)
    within_timeout(sets, suite.timeout_ns, f"`timeout` {duration(suite.timeout_ns)}")
    store = LimitStore(wanted.output or places.new_run(f"limit-{suite.name}"))
    store.check_free()
    bench = workbench(folder, places.cache(file))
    settings = asked.settings(min(load.duration_ns for load in suite.loads), 1.0, trials)
    show_plan(make_plan(suite), settings.most_probes(len(sets)), ignored, wanted.beyond, console)
    built = build_all(suite, bench.tools.launcher, console)
    plan = LimitPlan(
        manifest=_manifest(make_plan(suite, built.unavailable), file, text, store, bench),
        sets=sets,
        start_per_s=asked.start_per_s,
        probes=settings.probes,
        precision=settings.precision,
        trials=trials,
        beyond=wanted.beyond,
    )
    _check_left(plan.manifest.plan)
    store.create(plan)
    return Opened(store, plan, bench, built)


def reopen(folder: Path, console: Console) -> Opened:
    """Open a stored search, and make sure that its servers and this machine are still what they were."""
    store = LimitStore(folder)
    plan = store.plan()
    file, asked = Path(plan.manifest.suite_file), plan.manifest.plan
    bench = workbench(places.catalogue(file), places.cache(file))
    planned = {cell.variant.slug for cell in asked.cells.values()}
    built = build_all(asked.suite, bench.tools.launcher, console, planned)
    refuse_changed(built, Run(manifest=plan.manifest, recordings=()), bench.environment)
    for cell in _ended(store):
        if built.hashes.get(cell.server) != cell.build or built.runtimes.get(cell.server, "") != cell.runtime_version:
            raise RedlineError(
                f"{cell.server} is not what it was when this search began",
                hint="start a new search: the cells of one search must be of one build and one runtime",
            )
    return Opened(store, plan, bench, built)


def go_on(opened: Opened, console: Console) -> tuple[LimitReport, bool]:
    """Search the cells that have no end yet. Returns what is known, and whether it was interrupted."""
    load_what_judges()
    if opened.bench.tools.placement.lab_cpus:
        os.sched_setaffinity(0, opened.bench.tools.placement.lab_cpus)
    store, interrupted = opened.store, False
    with store.locked():
        found = {cell.slug: cell for cell in _ended(store)}
        for number, cell_id in enumerate(order := _order(opened.plan.manifest.plan), 1):
            cell = opened.plan.manifest.plan.cells[cell_id]
            if cell.slug in found:
                continue
            searcher = CellSearcher(opened.plan, opened.bench.tools, store, opened.built, cell, tuple(found.values()))
            console.print(f"[{number}/{len(order)}] {cell.slug}", style="bold", markup=False, highlight=False)
            found[cell.slug] = told = searcher.run(console)
            store.save(report_of(opened.plan, found.values()))
            if told.ended == "interrupted":
                interrupted = True
                break
    report = report_of(opened.plan, found.values())
    write_views(store, report)
    return report, interrupted


def write_views(store: LimitStore, report: LimitReport) -> None:
    """Keep what was found, and what can be looked at."""
    store.save(report)
    for name, form in _VIEWS.items():
        store.write(name, LIMIT_RENDERERS[form].render(report))


def _ended(store: LimitStore) -> tuple[CellLimit, ...]:
    """The cells that have their end; one that was interrupted begins again."""
    report = store.report()
    return tuple(cell for cell in report.cells if cell.ended != "interrupted") if report else ()


def _order(plan: Plan) -> list[str]:
    """The cells, one after the other: in the seeded order of the plan's first round."""
    return [trial.cell_id for trial in plan.trials if trial.round == 0]


def _trials(asked: int | None) -> int:
    trials = TRIALS if asked is None else at_least_one("--trials", asked)
    if trials < 2:
        raise UsageError(
            f"--trials {trials} says nothing of how starts differ", hint="give --trials 2 or more, or leave it out"
        )
    return trials


def _sets(asked: Asked, suite: Suite) -> dict[str, tuple[Objective, ...]]:
    """The flags' objectives, else the suite's. Raises UsageError when there are none."""
    if asked.objectives:
        return read_sets(asked.objectives)
    if suite.objective_sets:
        return with_few_errors(suite.objective_sets)
    if suite.objectives:
        return with_few_errors({", ".join(each.text for each in suite.objectives): suite.objectives})
    raise UsageError(
        "nothing says what is to be met",
        hint="give --objective 'p99 < 200ms, errors < 0.1%', or write `objective: p99 < 200ms` in the suite",
    )


def _manifest(plan: Plan, file: Path, text: str, store: LimitStore, bench: Workbench) -> Manifest:
    return Manifest(
        name=store.folder.resolve().name,
        created_unix_ns=time.time_ns(),
        command=shlex.join(["redline", *sys.argv[1:]]),
        suite_file=str(file.resolve()),
        suite_text=text,
        plan=plan,
        environment=bench.environment,
    )


def _check_left(plan: Plan) -> None:
    if not plan.cells:
        reasons = "; ".join(sorted({skipped.reason for skipped in plan.skipped}))
        raise RedlineError(f"nothing is left to search: {reasons}", hint="`redline list` says what can be built here")
