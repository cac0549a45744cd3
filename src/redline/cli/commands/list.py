"""`redline list`: the catalogue, the scenarios and the suites, or some servers, and what can be built here."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redline.cli import places
from redline.cli.command_line import ListFlags
from redline.cli.commands.build import matching
from redline.cli.contracts import ListedServer, ListedSuite, ListResult
from redline.cli.flags import split
from redline.cli.show import Terminal, write_json
from redline.errors import UsageError
from redline.model import ServerEntry
from redline.plugins.launchers.process import ProcessLauncher
from redline.suite import Catalogue, load_catalogue, load_suite

_STATE_STYLE = {"built": "green", "not built": "dim", "cannot be built": "yellow"}


def execute(flags: ListFlags) -> None:
    """List servers, scenarios and suites, or only some servers, with the state of their builds."""
    folder, cache = places.of_suite()
    catalogue, globs = load_catalogue(folder), split(flags.names)
    launcher = ProcessLauncher(folder, cache)
    suites = () if globs else places.suites()
    scenarios = () if globs else catalogue.scenarios.values()
    result = ListResult(
        servers=tuple(_listed(entry, launcher) for entry in matching(catalogue.servers, globs)),
        scenarios={scenario.name: scenario.about for scenario in scenarios},
        suites=tuple(ListedSuite(file=_near(file), about=_about(file, catalogue)) for file in suites),
    )
    if flags.json:
        write_json(result)
    else:
        _print(result, Terminal())


def _listed(entry: ServerEntry, launcher: ProcessLauncher) -> ListedServer:
    state, reason = launcher.availability(entry)
    options = {name: option.values for name, option in entry.options.items()}
    return ListedServer(
        name=entry.name,
        kind=entry.kind,
        about=entry.about,
        runtime=entry.runtime,
        options=options,
        protocols=entry.serves,
        upstream=entry.upstream,
        state=state,
        reason=reason,
    )


def _about(file: Path, catalogue: Catalogue) -> str:
    try:
        return load_suite(file, catalogue).about
    except UsageError as error:
        return f"not valid: {error.message}"


def _near(file: Path) -> str:
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)


def _called(file: str) -> str:
    """The name by which `redline run` finds a ready suite; its path where it is below this folder."""
    path = Path(file)
    return path.stem if path.is_absolute() and places.ready_suite(Path(path.stem)) == path else file


def _table(title: str, listed: list[ListedServer]) -> Table:
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for heading in ("name", "runtime", "here", "options", "what it is"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "name")
    for server in listed:
        options = "  ".join(f"{name}={'|'.join(map(str, values))}" for name, values in server.options.items())
        here = Text(server.state + (f": {server.reason}" if server.reason else ""), style=_STATE_STYLE[server.state])
        legs = f" ({', '.join(server.protocols)} → {', '.join(server.upstream)})" if server.upstream else ""
        table.add_row(Text(server.name), server.runtime, here, Text(options), Text(server.about + legs))
    return table


def _print(result: ListResult, console: Console) -> None:
    kinds = (("Servers", "server"), ("Proxies", "proxy"))
    listed = [(title, [server for server in result.servers if server.kind == kind]) for title, kind in kinds]
    tables = [_table(title, servers) for title, servers in listed if servers]
    for title, rows in (
        ("Scenarios", list(result.scenarios.items())),
        ("Suites", [(_called(suite.file), suite.about) for suite in result.suites]),
    ):
        listing = Table(title=title, title_justify="left", box=None, show_header=False, pad_edge=False)
        for name, about in rows:
            listing.add_row(Text(name), Text(about))
        tables += [listing] if rows else []
    for at, table in enumerate(tables):
        if at:
            console.print()
        console.print(table)
