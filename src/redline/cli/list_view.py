"""Print `redline list`: a row for each server, or all that is known of some servers."""

import os
from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from redline.cli.contracts import ListedServer, ListResult, OutdatedResult
from redline.model.catalogue import option_text

_UNLIMITED = 100_000
"""The width when stdout is not a terminal, so that no row for `grep` is cut off."""
_STATES = {"built": "built", "not built": "", "cannot be built": "cannot", "in place": ""}
_STYLE = {"built": "green", "cannot": "yellow"}


def show_overview(result: ListResult, console: Console) -> None:
    """Print a row for each server, scenario and suite, cut off at the edge of the terminal."""
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNLIMITED
    width = max(len(server.name) for server in result.servers if _is_row(server))
    for title, servers in _groups(result.servers):
        rows = [(server.name, _STATES[server.state], _about(server, servers)) for server in servers if _is_row(server)]
        _print(title, rows, width, console)
    _print("Scenarios", [(name, "", about) for name, about in result.scenarios.items()], width, console)
    _print("Suites", [(suite.name, "", suite.about) for suite in result.suites], width, console)
    for line in _notes(result.servers):
        console.print(line, style="dim")


def _is_row(server: ListedServer) -> bool:
    """Whether a server has a row: versions, such as `vertx.vanilla@5`, stand in the row of the server itself."""
    return "@" not in server.name


def _about(server: ListedServer, servers: Sequence[ListedServer]) -> str:
    """What a server is; its versions stand first, where no edge cuts them off."""
    versions = [other.name.removeprefix(server.name) for other in servers if other.name.startswith(f"{server.name}@")]
    return f"{', '.join(versions)}: {server.about}" if versions else server.about


def _groups(servers: Iterable[ListedServer]) -> list[tuple[str, list[ListedServer]]]:
    """Group the servers under headings that say where they come from."""
    groups: dict[str, list[ListedServer]] = {}
    for server in servers:
        what = "Proxies" if server.kind == "proxy" else "Servers"
        title = {"redline.yaml": f"{what} of {server.written_in}", "catalogue": f"{what} of your catalogue"}
        groups.setdefault(title.get(server.origin, f"Built-in {what.lower()}"), []).append(server)
    return [*groups.items()]


def _print(title: str, rows: Sequence[tuple[str, str, str]], width: int, console: Console) -> None:
    if not rows:
        return
    console.print(Text(title, style="bold"))
    states = max(len(state) for _, state, _ in rows)
    for name, state, about in rows:
        row = Text(name.ljust(min(width, console.width // 3)))
        row.append(f" {state.ljust(states)}" if states else "", style=_STYLE.get(state, ""))
        row.append(f" {' '.join(about.split())}")
        console.print(row, no_wrap=True, overflow="ellipsis")
    console.print()


def _notes(servers: Sequence[ListedServer]) -> list[str]:
    """Return notes on the rows."""
    notes = ["redline list FAMILY, or SERVER: options, protocols, and what is missing where it `cannot` be built here"]
    hiding = [server.name for server in servers if server.hides_built_in]
    if hiding:
        notes.insert(0, f"in place of the built-in servers of the same names: {', '.join(hiding)}")
    return notes


def show_details(result: ListResult, console: Console) -> None:
    """Print all that is known of the servers, and the options of each family once."""
    families = groupby(result.servers, key=lambda server: (server.written_in, server.name.partition(".")[0]))
    for at, ((file, _), family) in enumerate(families):
        servers = [*family]
        if at:
            console.print()
        for server in servers:
            _show_server(server, console)
        _show_options(servers, console)
        console.print(Text(f"written in {file}", style="dim"), soft_wrap=True)


def _show_server(server: ListedServer, console: Console) -> None:
    console.print(Text(server.name, style="bold"))
    behind = f" → {', '.join(server.upstream)}" if server.upstream else ""
    state = server.state + (f": {server.reason}" if server.reason else "")
    facts = [*filter(None, [server.runtime, f"speaks {', '.join(server.protocols)}{behind}", state])]
    facts += ["in place of the built-in server"] if server.hides_built_in else []
    for text in (server.about, "; ".join(facts)):
        console.print(Padding(Text(text), (0, 0, 0, 2)))


def _show_options(servers: Sequence[ListedServer], console: Console) -> None:
    """Print the options of a family, those that several servers share once."""
    having: dict[tuple[str, str], list[str]] = {}
    for server in servers:
        for name, values in server.options.items():
            option = server.about_options[name]
            about = f"{option.about}: " if option.about else ""
            text = f"{about}{', '.join(map(option_text, values))}; {option_text(option.default)} by default"
            having.setdefault((name, text), []).append(server.name.partition(".")[2])
    if not having:
        return
    console.print(Text("options", style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 0, 0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for (name, text), owners in sorted(having.items(), key=lambda item: item[0][0]):
        only = "" if len(owners) == len(servers) else f" ({', '.join(owners)})"
        table.add_row(Text(name), Text(text + only))
    console.print(Padding(table, (0, 0, 0, 2)))


def show_outdated(result: OutdatedResult, console: Console) -> None:
    """Print a row for each package of which there is a newer release, and why others are not known."""
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNLIMITED
    if result.outdated:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name in ("package", "in the catalogue", "newest", "in"):
            table.add_column(name, overflow="fold")
        for row in result.outdated:
            table.add_row(*map(Text, (row.package, row.version, row.newest, ", ".join(row.files))))
        console.print(table)
    known = result.packages - sum(len(each.packages) for each in result.unanswered)
    if not result.packages:
        console.print("no build file of the catalogue names a package in a version", highlight=False)
    elif known and not result.outdated:
        console.print(
            f"all {known} packages are the newest" if known > 1 else "the only package is the newest", highlight=False
        )
    for each in result.unanswered:
        first, count = each.packages[0], len(each.packages)
        names = first if count == 1 else f"{count} packages, such as {first}"
        text = f"{each.registry}: the newest release is not known of {names}: {each.reason}"
        console.print(Text(text, style="yellow"), soft_wrap=True)
