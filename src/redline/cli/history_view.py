"""A history as a terminal shows it: what changed first, a line of bars for each cell and metric."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from redline.cli.costs import COLOURS
from redline.model.history import Followed, History
from redline.report.format import label, one_line
from redline.report.render import history_lines as lines

_METRIC = 15


def print_history(history: History, console: Console) -> None:
    """The runs and their eras, then cells that changed, then those that did not, then what is not followed."""
    first, *more = lines.in_words(history)
    console.print(Text(one_line(first), "bold"))
    for line in more:
        console.print(Text(one_line(line), "yellow"))
    found = lines.changed(history)
    kept = [one for one in lines.followed(history) if one not in found]
    if found or kept:
        console.print(Text(lines.counted(history)))
    _section("Changed", found, history, console)
    _section("No change found", kept, history, console)
    alone = lines.alone(history)
    if alone and len(history.runs) > 1:
        console.print()
        console.print(Text(f"Not followed, since one run alone has them: {one_line(', '.join(alone))}", "dim"))


def _section(title: str, cells: Iterable[Followed], history: History, console: Console) -> None:
    by_cell: dict[str, list[Followed]] = {}
    for one in cells:
        by_cell.setdefault(one.cell_id, []).append(one)
    if not by_cell:
        return
    console.print()
    console.print(Text(title, "bold"))
    for members in by_cell.values():
        role = "  ceiling" if members[0].role == "ceiling" else ""
        gone = "" if members[0].current else "  no longer in its suite"
        console.print(Text.assemble(one_line(members[0].slug), (role + gone, "dim")))
        for one in members:
            _print_metric(one, history, console)


def _print_metric(one: Followed, history: History, console: Console) -> None:
    bars = lines.sparkline(one, history)
    last = one_line(lines.last_told(one))
    console.print(Text(f"  {label(one.metric):<{_METRIC}}  {bars}  {last}"), soft_wrap=True)
    for change in one.changes:
        said = Text.assemble(
            ("    " + lines.sign_of(change), COLOURS[change.verdict]), f" {one_line(lines.since(change, history))}"
        )
        console.print(said, soft_wrap=True)
        for more in lines.beside(change, history):
            console.print(Text(f"      {one_line(more)}", "dim"), soft_wrap=True)
