"""What a search over a suite will do, and how long that takes at most."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from redline.cli.limit_asked import load_told
from redline.model import Cell, Open, Plan
from redline.quantities import duration, rate
from redline.running.probing import template
from redline.search.curve import SHARES
from redline.suite import expected_trial_ns

_PAST_THE_EDGE = 8
"""Probes that the load past the edge is as long as, or somewhat less."""


def show_plan(plan: Plan, most_probes: int, ignored: Sequence[str], beyond: bool, console: Console) -> None:
    """The cells, the loads that are no template for probes, and the most that it takes."""
    if ignored:
        console.print(f"not searched, since it is closed: {', '.join(ignored)}", style="dim", highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("server", "scenario", "load", "begins at", "probes", "warm-up"):
        table.add_column(heading, overflow="fold")
    for cell in plan.cells.values():
        table.add_row(
            escape(cell.variant.slug),
            cell.scenario.name,
            cell.load.name,
            rate(_first_per_s(cell)),
            load_told(template(cell)),
            f"{'≤ ' if cell.warmup_detect else ''}{duration(cell.warmup_ns)}",
        )
    console.print(table)
    for skipped in plan.skipped:
        console.print(f"skipped: {skipped.slug}: {skipped.reason}", style="yellow", markup=False)
    longest_ns = sum(most_ns(cell, most_probes, plan.suite.trials, beyond) for cell in plan.cells.values())
    starts = 1 + plan.suite.trials
    console.print(
        f"\n{len(plan.cells)} cells, each at most {most_probes + len(SHARES)} probes on {starts} starts of its server:"
        f" at most about {duration(longest_ns)}, neither building counted nor waiting for a host that takes CPU time",
        highlight=False,
    )


def most_ns(cell: Cell, most_probes: int, trials: int, beyond: bool) -> int:
    """About the most that the search on a cell takes, in nanoseconds."""
    probe_ns = cell.load.duration_ns + template(cell).warmup_ns
    loads = most_probes + len(SHARES) + (_PAST_THE_EDGE if beyond else 0)
    approach_ns = min(cell.load.duration_ns, cell.warmup_ns)
    start_ns = expected_trial_ns(cell) - cell.load.duration_ns + approach_ns
    return loads * probe_ns + (1 + trials) * start_ns


def _first_per_s(cell: Cell) -> float:
    shape = cell.load.shape
    return shape.rate_per_s or 0.0 if isinstance(shape, Open) else 0.0
