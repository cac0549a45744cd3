"""`redline build`: build servers of the catalogue, and show which are built."""

from collections.abc import Collection
from fnmatch import fnmatchcase

import typer
from rich.table import Table
from rich.text import Text

from redline.asking import places
from redline.asking.asks import split
from redline.asking.catalogues import read_catalogues
from redline.cli import exits
from redline.cli.build_view import BuildView, print_failures
from redline.cli.command_line import BuildFlags
from redline.cli.contracts import BuildResult, BuiltServer
from redline.cli.progress import progress_console
from redline.cli.show import Terminal, write_json
from redline.errors import Problem, UsageError
from redline.launching.process import ProcessLauncher
from redline.model import ServerEntry, Variant
from redline.ports import BuildOutcome
from redline.quantities import did_you_mean

_STYLE = {"built": "green", "stood": "dim", "failed": "yellow"}
_NS_PER_S = 1e9


def execute(flags: BuildFlags) -> None:
    """Build the servers that are not built yet; a build command builds all its servers at once."""
    (folder, cache), known, globs = places.of_suite(), read_catalogues(), split(flags.names)
    # Without a name, build what the user wrote: nobody who has a catalogue wants all of ours built.
    servers = known.merged.servers if globs else known.nearest.servers
    entries = tuple(servers[name] for name in matching(servers, globs))
    launcher, console = ProcessLauncher(folder, cache), progress_console(flags)
    with BuildView(console) as view:
        defaults = ({name: option.default for name, option in entry.options.items()} for entry in entries)
        variants = [Variant(entry=entry, options=options) for entry, options in zip(entries, defaults, strict=True)]
        outcome = launcher.build(variants, view)
    result = build_result(entries, outcome)
    if flags.json:
        write_json(result)
    else:
        long = {name: error for name, error in outcome.failures.items() if "\n" in error.message}
        print_failures(BuildOutcome(failures=long), console)  # these have more lines than a table shows
        Terminal().print(_table(result, outcome))
    if outcome.failures:
        raise typer.Exit(exits.COULD_NOT_RUN)


def matching(names: Collection[str], globs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of servers that match, or whose family does; all without globs.

    Raises UsageError with every glob that matches nothing.
    """
    families = dict.fromkeys(name.partition(".")[0] for name in names)
    problems = tuple(
        Problem(
            f"no server of the catalogue matches `{glob}`",
            did_you_mean(glob, (*names, *families)) or f"the catalogue has the families {', '.join(families)}",
        )
        for glob in globs
        if not any(_matches(name, glob) for name in names)
    )
    if problems:
        raise UsageError.of_problems(problems)
    return tuple(name for name in names if not globs or any(_matches(name, glob) for glob in globs))


def _matches(name: str, glob: str) -> bool:
    return fnmatchcase(name, glob) or fnmatchcase(name.partition(".")[0], glob)


def build_result(entries: tuple[ServerEntry, ...], outcome: BuildOutcome) -> BuildResult:
    """The result in its published form."""
    return BuildResult(servers=tuple(_built(entry.name, outcome) for entry in entries))


def _built(name: str, outcome: BuildOutcome) -> BuiltServer:
    took_ns = outcome.took_ns.get(name)
    error = outcome.failures.get(name)
    if error is not None:
        reason, hint = error.message, error.hint
        return BuiltServer(name=name, state="failed", hash=None, took_ns=took_ns, reason=reason, hint=hint)
    state = "stood" if took_ns is None else "built"
    return BuiltServer(name=name, state=state, hash=outcome.hashes[name], took_ns=took_ns)


def _table(result: BuildResult, outcome: BuildOutcome) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("server", "state", "why"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "why")
    for server in result.servers:
        took = f" in {server.took_ns / _NS_PER_S:.1f} s" if server.took_ns is not None else ""
        state = {"built": f"built now{took}", "stood": "up to date", "failed": f"failed{took}"}[server.state]
        error = outcome.failures.get(server.name)
        why = f"{error.reason}; {error.hint}" if error else ""
        table.add_row(Text(server.name), Text(state, style=_STYLE[server.state]), Text(why))
    return table
