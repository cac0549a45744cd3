"""`redline check`: validate a suite and print its plan."""

import socket
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.asking import places
from redline.asking.suites import read_suite_file, suite_or_project
from redline.cli.asks import suite_ask
from redline.cli.command_line import CheckFlags
from redline.cli.show import Terminal, write_json
from redline.document.format import count, label
from redline.document.format import duration as shown
from redline.files import read_regular
from redline.launching.variables import check_variables
from redline.lazily import LateModule
from redline.model import AutoTrials, Cell, Plan
from redline.quantities import percent
from redline.running.parallel import check_cores
from redline.storage.reading import MOST_BYTES
from redline.suite import (
    capacity_loads,
    expected_length_ns,
    least_length_ns,
    make_capacity_plan,
    make_plan,
)
from redline.suite.load_text import warmed_by
from redline.suite.screening import axes_of_server, by_server
from redline.watching.machine import plan_placement

if TYPE_CHECKING:
    from redline.analysis import resolution
    from redline.cli import contracts
    from redline.model import report as reports
    from redline.stats import factorial
else:  # what commands that measure show of a plan needs none of these
    factorial, resolution = LateModule("redline.stats.factorial"), LateModule("redline.analysis.resolution")
    reports, contracts = LateModule("redline.model.report"), LateModule("redline.cli.contracts")

_MOST_LINES = 60
_NAMED = 3
"""The most cells that are named with a reason why they are skipped."""
_MOST_RUNS = 20
"""The number of newest runs that are searched for these cells."""


def execute(flags: CheckFlags) -> None:
    """Validate a suite and print its plan; every problem at once, with file, line, column and a hint."""
    validated, _ = read_suite_file(suite_or_project(flags.suite), suite_ask(flags))
    check_variables(validated.variants)
    first, plan = make_capacity_plan(validated), make_plan(validated)
    check_cores(plan, plan_placement().cores)
    folder, shows = last_run(plan)
    if flags.json:
        length_ns = expected_length_ns(first) + expected_length_ns(plan)
        write_json(contracts.check_result(plan, length_ns, least_length_ns(plan), first, shows))
    else:
        show_plans(first, plan, Terminal())
        if text := power_text(plan, folder, shows):
            Terminal().print(text, highlight=False, markup=False)


def last_run(plan: Plan) -> "tuple[Path, tuple[resolution.ShownDifference, ...]]":
    """Return the newest run below `runs/` that compared any of these cells on this machine, and its forecast."""
    for file in sorted(places.RUNS.glob("*/results.json"), key=_began, reverse=True)[:_MOST_RUNS]:
        try:
            report = reports.Report.model_validate_json(read_regular(file, MOST_BYTES))
        except (OSError, ValidationError):
            continue  # `redline report` says what is wrong with it
        if report.environment.hostname == socket.gethostname() and (shows := resolution.forecast(plan, report)):
            return file.parent, shows
    return places.RUNS, ()


def _began(results: Path) -> float:
    """When the run of these results began; `results.json` itself is written again by `judge`."""
    try:
        return (results.parent / "run.json").stat().st_mtime
    except OSError:
        return 0.0


def power_text(plan: Plan, folder: Path, shows: "Sequence[resolution.ShownDifference]") -> str:
    """Say which difference the plan can show; empty if it compares nothing, or goes on until it is precise enough."""
    if plan.suite.auto is not None or not any(
        map(plan.suite.baseline_of, (variant.slug for variant in plan.suite.variants))
    ):
        return ""
    if not shows:
        return f"what difference it can show is not known: {folder}/ has no run of these cells on this machine yet"
    parts = []
    for metric in dict.fromkeys(show.metric for show in shows):
        shown_of_metric = sorted(show.difference for show in shows if show.metric is metric)
        ends = dict.fromkeys(percent(round(end, 3)) for end in (shown_of_metric[0], shown_of_metric[-1]))
        parts.append(f"{' to '.join(ends)} in {label(metric)}")
    return f"{count(plan.suite.trials, 'round')} can show differences of {', '.join(parts)}, by {folder}"


def show_plans(first: Plan, plan: Plan, console: Console) -> None:
    """Print the plan and its length; if rates are shares of a capacity, also the plan that measures the capacity."""
    plans = [plan]
    if loads := capacity_loads(plan.suite):
        plans = [first, plan]
        names = " and ".join(load.name for load in loads)
        console.print(f"part 1 of 2: the capacity under {names}", style="bold", highlight=False)
        console.print(_table(first))
        rates = [(load.name, load.share) for load in plan.suite.loads]
        loads_of_shares = ", ".join(f"{name} ({share.text})" for name, share in rates if share)
        console.print(f"\npart 2 of 2: {loads_of_shares}, by the weakest of each group", style="bold", highlight=False)
    console.print(_table(plan))
    for name, variants in by_server(plan.suite.variants).items() if plan.suite.screened else ():
        axes = axes_of_server(variants)
        if axes.values:
            said = factorial.resolution(factorial.coded(axes.runs, axes.levels))
            part = f"{len(variants)} of {count(plan.suite.screened.get(name, len(variants)), 'variant')}"
            console.print(f"screen of {name}: {part}, resolution {said}", markup=False, highlight=False)
    routes = {cell.variant.route.name: cell.variant.route for cell in plan.cells.values() if cell.variant.route}
    for name, route in routes.items():
        console.print(f"route {name}: {route.text}", markup=False, highlight=False)
    reasons: dict[str, list[str]] = {}
    for skipped in dict.fromkeys(skipped for part in plans for skipped in part.skipped):
        reasons.setdefault(skipped.reason, []).append(skipped.slug)
    for reason, slugs in reasons.items():
        console.print(f"skipped: {_some(slugs)}: {reason}", style="yellow", markup=False)
    for missing in plan.unprofiled:
        console.print(f"not profiled: {missing.slug}: {missing.reason}", style="yellow", markup=False)
    console.print(f"\n{_amount(plans)}, building not counted", highlight=False)
    show_overrun(plan, console)
    if (auto := plan.suite.auto) is not None:
        console.print(_rounds(auto, plan.suite.trials), highlight=False)


def show_overrun(plan: Plan, console: Console) -> None:
    """Warn if the budget is too short for the starts that are always made."""
    auto, least_ns = plan.suite.auto, least_length_ns(plan)
    if auto is not None and auto.budget_ns is not None and least_ns > auto.budget_ns:
        starts = "1 start takes" if auto.at_least == 1 else f"{auto.at_least} starts take"
        text = f"{starts} at least {shown(least_ns)}, more than the {shown(auto.budget_ns)} of the budget"
        console.print(f"{text}; this many are always made", style="yellow", highlight=False, soft_wrap=True)


def _amount(plans: list[Plan]) -> str:
    """Return the number of cells, trials and starts in all, and how long they take."""
    suite, profiled = plans[-1].suite, plans[-1].profiled
    cells, trials, starts = (sum(len(getattr(plan, part)) for plan in plans) for part in ("cells", "trials", "duets"))
    most = "at most " if suite.auto is not None and suite.alone else ""
    duets = f" and {count(starts, 'start')} of duets" if starts else ""
    made = f"{most}{count(trials, 'trial')}{duets}" if suite.alone else "starts of duets"
    if profiled:
        made += f", {count(len(profiled), 'trial')} with a profiler ({', '.join(suite.profile)})"
    lasts = f"{most or 'about '}{shown(sum(map(expected_length_ns, plans)))}"
    return f"{count(cells, 'cell')}, {made}, seed {suite.seed}: {lasts}"


def _rounds(auto: AutoTrials, most: int) -> str:
    rounds = f"{auto.at_least} to {most} rounds" if auto.at_least < most else count(most, "round")
    if auto.precision is None:
        return rounds
    return f"{rounds}, until the main comparisons are within ±{percent(auto.precision)}"


def _some(slugs: list[str]) -> str:
    """Join a few slugs; of many, the first few and the number of the others."""
    more = f" and {len(slugs) - _NAMED} more" if len(slugs) > _NAMED else ""
    return ", ".join(slugs[:_NAMED]) + more


def _table(plan: Plan) -> Table:
    """A row for each cell, or for each server if there are too many cells to read; `--json` has every cell."""
    return _by_cell(plan) if len(plan.cells) <= _MOST_LINES else _by_server(plan)


def _with_columns(texts: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in (*texts, *numbers):
        table.add_column(heading, overflow="fold", justify="left" if heading in texts else "right")
    return table


def _by_server(plan: Plan) -> Table:
    alone = ("trials",) if plan.suite.alone else ()
    table = _with_columns(("server",), ("scenarios", "loads", "cells", *alone))
    trials = Counter(trial.cell_id for trial in plan.trials)
    cells: dict[str, list[tuple[str, Cell]]] = {}
    for cell_id, cell in plan.cells.items():
        cells.setdefault(_server(cell), []).append((cell_id, cell))
    for name, its in cells.items():
        scenarios, loads = ({cell.scenario.name for _, cell in its}, {cell.load.name for _, cell in its})
        made = sum(trials[cell_id] for cell_id, _ in its)
        counts = (len(scenarios), len(loads), len(its), *(made for _ in alone))
        table.add_row(Text(name), *map(str, counts))
    return table


def _server(cell: Cell) -> str:
    return cell.variant.slug + (" (ceiling)" if cell.role == "ceiling" else "")


def _by_cell(plan: Plan) -> Table:
    alone = ("trials",) if plan.suite.alone else ()
    table = _with_columns(("server", "scenario", "load"), ("warm-up", "measured", *alone))
    trials = Counter(trial.cell_id for trial in plan.trials)
    for cell_id, cell in plan.cells.items():
        warmup = f"≤ {shown(cell.warmup_ns)}" if cell.warmup_detect else shown(cell.warmup_ns)
        if by := cell.warmup_by:
            warmup += f" by {warmed_by(by)}"
        times = (warmup, shown(cell.load.duration_ns), *(str(trials[cell_id]) for _ in alone))
        table.add_row(Text(_server(cell)), cell.scenario.name, cell.load.name, *times)
    return table
