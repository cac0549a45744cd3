"""`redline list`: the servers of redline.yaml and the catalogues, scenarios and suites, and what can be built here."""

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.text import Text

from redline.asking import places
from redline.asking.asks import SuiteAsk, split
from redline.asking.catalogues import Catalogues, read_catalogues
from redline.asking.origins import find_project
from redline.asking.suites import read_suite_file
from redline.cli.command_line import ListFlags
from redline.cli.commands.build import matching
from redline.cli.contracts import ListedOption, ListedServer, ListedSuite, ListResult, OutdatedResult
from redline.cli.exits import COULD_NOT_RUN
from redline.cli.list_view import show_details, show_outdated, show_overview
from redline.cli.show import OneLine, Terminal, write_json
from redline.entry_points import extra
from redline.errors import UsageError
from redline.launching.process import ProcessLauncher
from redline.model import ServerEntry, Variant
from redline.suite import Catalogue, load_suite


def execute(flags: ListFlags) -> None:
    """List servers, scenarios and suites; or only some servers, with their options; or what is outdated."""
    if flags.outdated:
        _list_outdated(flags)
        return
    result = list_result(flags.names)
    if flags.json:
        write_json(result)
    elif split(flags.names):
        show_details(result, Terminal())
    else:
        show_overview(result, Terminal())


def _list_outdated(flags: ListFlags) -> None:
    """List what registries have that the catalogues have not. Exits with 1 where a registry did not answer."""
    if split(flags.names):
        raise UsageError("--outdated is for whole catalogues", hint="leave out the names, or --outdated")
    read_catalogues()  # which says what is wrong with them
    catalogues = [folder / "catalogue" for folder in places.projects()]
    with OneLine(Terminal(stderr=True)) as line:

        def say(known: int, packages: int) -> None:
            line.say(Text(f"asking registries: {known} of {packages} packages"))

        result: OutdatedResult = extra("outdated", "--outdated")(catalogues, _near, say)
    if flags.json:
        write_json(result)
    else:
        show_outdated(result, Terminal())
    if result.unanswered:
        raise typer.Exit(COULD_NOT_RUN)


def list_result(wanted: Sequence[str] | None) -> ListResult:
    """All servers, scenarios and suites; or only the servers of these names. Raises UsageError."""
    known, globs = read_catalogues(), split(wanted)
    listed = (*_of_project(known), *_of_catalogues(known))
    names = dict.fromkeys(server.name for server in listed)
    chosen = set(matching(names, globs))
    return ListResult(
        servers=tuple(server for server in listed if server.name in chosen),
        scenarios={} if globs else {name: scenario.about for name, scenario in known.merged.scenarios.items()},
        suites=() if globs else tuple(_suite(file, known.merged) for file in places.suites()),
    )


def _of_project(known: Catalogues) -> tuple[ListedServer, ...]:
    """Return the servers of redline.yaml, in this folder or above it. Raises UsageError with all its problems."""
    file = find_project(Path.cwd())
    if file is None:
        return ()
    suite, _ = read_suite_file(file, SuiteAsk())
    variants = {variant.entry.name: variant for variant in suite.variants}
    return tuple(_in_place(name, variant, _near(file), known) for name, variant in variants.items())


def _in_place(name: str, variant: Variant, written: str, known: Catalogues) -> ListedServer:
    entry = variant.entry
    return ListedServer(
        name=name,
        about=entry.about if isinstance(entry, ServerEntry) else f"running at {entry.host}:{entry.port}",
        runtime=variant.runtime,
        options={},
        protocols=entry.serves if isinstance(entry, ServerEntry) else (variant.serves,),
        state="in place",
        origin="redline.yaml",
        written_in=written,
        hides_built_in=name in known.built_in.servers,
    )


def _of_catalogues(known: Catalogues) -> tuple[ListedServer, ...]:
    launcher = ProcessLauncher(*places.of_suite())
    return tuple(_listed(entry, launcher, known) for entry in known.merged.servers.values())


def _listed(entry: ServerEntry, launcher: ProcessLauncher, known: Catalogues) -> ListedServer:
    state, reason = launcher.availability(entry)
    origin = known.origin(entry)
    return ListedServer(
        name=entry.name,
        kind=entry.kind,
        about=entry.about,
        runtime=entry.runtime,
        options={name: option.values for name, option in entry.options.items()},
        about_options={
            name: ListedOption(about=option.about, default=option.default) for name, option in entry.options.items()
        },
        protocols=entry.serves,
        upstream=entry.upstream,
        state=state,
        reason=reason,
        origin=origin,
        written_in=_near(Path(entry.family_folder) / "server.yaml"),
        hides_built_in=origin != "built-in" and entry.name in known.built_in.servers,
    )


def _suite(file: Path, catalogue: Catalogue) -> ListedSuite:
    """Return a suite as `redline run` takes it: by its name, or by its path if a nearer suite has that name."""
    by_name = Path(file.stem)
    shown = file.stem if places.ready_suite(by_name) == file else _near(file)
    return ListedSuite(file=_near(file), name=shown, about=_about(file, catalogue))


def _about(file: Path, catalogue: Catalogue) -> str:
    try:
        return load_suite(file, catalogue).about
    except UsageError as error:
        return f"not valid: {error.message}"


def _near(file: Path) -> str:
    return str(file.relative_to(Path.cwd())) if file.is_relative_to(Path.cwd()) else str(file)
