"""`redline check`: validate a suite and show what it would do."""

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from redline.cli import places
from redline.cli.contracts import check_result
from redline.cli.selection import (
    AsJson,
    Duration,
    Options,
    Quick,
    Scenarios,
    Seed,
    Servers,
    SuiteFile,
    Trials,
    Users,
    read_overrides,
)
from redline.model import Plan
from redline.report.format import duration as shown
from redline.suite import expected_length_ns, load_catalogue, load_suite, make_plan


def check(
    suite: SuiteFile,
    servers: Servers = None,
    scenarios: Scenarios = None,
    options: Options = None,
    users: Users = None,
    duration: Duration = None,
    trials: Trials = None,
    seed: Seed = None,
    quick: Quick = False,
    json: AsJson = False,
) -> None:
    """Validate a suite and print its plan; every problem at once, with file, line, column and a hint."""
    overrides = read_overrides(servers, scenarios, users, duration, trials, seed, options, quick)
    plan = make_plan(load_suite(suite, load_catalogue(places.catalogue(suite)), overrides))
    if json:
        sys.stdout.write(check_result(plan, expected_length_ns(plan)).model_dump_json(indent=2) + "\n")
    else:
        show_plan(plan, Console())


def show_plan(plan: Plan, console: Console) -> None:
    """The plan as a table, what is skipped, and how long it will take."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("server", "scenario", "load", "warm-up", "measured", "trials"):
        table.add_column(
            heading, overflow="fold", justify="right" if heading in {"warm-up", "measured", "trials"} else "left"
        )
    for cell_id, cell in plan.cells.items():
        name = cell.variant.slug + (" (ceiling)" if cell.role == "ceiling" else "")
        count = sum(trial.cell_id == cell_id for trial in plan.trials)
        times = (shown(cell.warmup_ns), shown(cell.load.duration_ns), str(count))
        table.add_row(escape(name), cell.scenario.name, cell.load.name, *times)
    console.print(table)
    for skipped in plan.skipped:
        console.print(f"skipped: {skipped.slug}: {skipped.reason}", style="yellow", markup=False)
    console.print(
        f"\n{len(plan.cells)} cells, {len(plan.trials)} trials, seed {plan.suite.seed}:"
        f" about {shown(expected_length_ns(plan))}, building not counted",
        highlight=False,
    )
