"""`redline limit`: the highest rate at which servers meet an objective."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from redline.asking import naming, places
from redline.asking.asks import SearchAsk
from redline.asking.catalogues import named_in
from redline.asking.opening import Command, source_of
from redline.asking.origins import FromRepository, project_here, read_project_file
from redline.asking.requests import OF_REQUEST, check_targets_are_whole
from redline.asking.search import search_document
from redline.asking.searching import (
    AskedSearch,
    is_suite,
    read_servers_search,
    read_suites_search,
    written_objective,
)
from redline.asking.ways import OF_WAYS, Placed
from redline.cli.asks import search_ask
from redline.cli.began import command_began_s
from redline.cli.browser import check_is_kept
from redline.cli.command_line import WHILE_IT_RUNS, LimitFlags
from redline.cli.destination import Destination
from redline.cli.experiment import Output, finish_resumed, finish_search
from redline.cli.flags import command_line, refuse
from redline.cli.progress import progress_console
from redline.cli.project_builds import build_named, build_servers
from redline.cli.search_view import show_search_plan
from redline.cli.session_view import SessionView
from redline.cli.suite_files import OF_MEASURING, WHY, write_suite
from redline.cli.targets import check_targets
from redline.cli.telemetry import metered
from redline.cli.turns import turn_of
from redline.errors import UsageError
from redline.launching.variables import check_variables
from redline.model import Verdict
from redline.model.search import SearchTerms
from redline.running.assembly import Workplace
from redline.running.manifests import Source
from redline.running.searching import SearchSession
from redline.storage.runs import RunStore
from redline.suite.project import PROJECT_FILE, Project
from redline.wording import as_argument, part

_OF_REQUESTS = {*OF_REQUEST, "requests", "path", "http2", "no_keepalive", *OF_WAYS}
_OF_SERVERS = {"git", "budget", "arrivals", "replay", "connections", "timeout", "threads", "threshold", *_OF_REQUESTS}
_OF_SUITES = {"servers", "loads", "options", "quick", "on"}
_OF_SEARCHES = {"probes", "precision", "trials", "no_beyond"}
"""What a search takes beside its suite."""
_WITH_RESUME = {"resume", "on", "wait_quiet", "fail_on", "json", *WHILE_IT_RUNS}


def execute(flags: LimitFlags) -> None:
    """Find the highest rate at which servers meet an objective, as an interval."""
    began_s, console = command_began_s(), progress_console(flags)
    fail_on = tuple(Verdict(verdict) for verdict in flags.fail_on)
    if flags.write_suite is not None:
        refuse(flags.given(among=OF_MEASURING | _OF_SUITES | {"threads"}), WHY)
        _write_suite(flags, flags.write_suite, console)
        return
    kept = Destination.at(flags.output)
    is_kept = kept.page is not None or flags.resume is not None or any(map(is_suite, flags.targets))
    check_is_kept(opens=flags.open, is_kept=is_kept)
    with ExitStack() as stack:
        meter = stack.enter_context(metered(flags, console))
        on_usage = None if meter is None else meter.usage
        turn = turn_of("redline limit", console, flags.wait, alone=flags.alone, on=flags.on)
        workplace = Workplace(flags.on, stack, places.of_suite, on_usage, turn)
        view = SessionView(console, meter)
        form = "json" if flags.json else None
        output = Output("limit", form, fail_on, flags.wait_quiet, kept=kept, meter=meter, opens=flags.open)
        if fail_on and flags.git is None and [*map(is_suite, flags.targets)] == [False]:
            hint = "name a second server, or leave out --fail-on"
            raise UsageError("a search of one server compares nothing, so no verdict can fail it", hint=hint)
        if flags.resume is not None:
            refuse(flags.given(but=_WITH_RESUME), "--resume continues it as it was planned, and takes no")
            finish_resumed(flags.resume, workplace, output, console)
            return
        session = created(search_ask(flags), command_line, kept.folder, workplace, view, console, began_s)
        finish_search(session, replace(output, is_kept=session.is_kept), view, console)


def _write_suite(flags: LimitFlags, file: Path, console: Console) -> None:
    """Write what flags ask for as a suite. Raises RedlineError."""
    ask = search_ask(flags)
    here, project = FromRepository(Path.cwd()), _project(ask)
    if project is None and (suites := [target for target in ask.targets if is_suite(target)]):
        raise UsageError(f"{suites[0]} is written already", hint=f"change a copy of it, or leave out {suites[0]}")
    check_targets_are_whole(ask.targets if project is None else ())
    if ask.scenarios and ask.requests is None and not named_in(ask.targets).servers:
        hint = f"select them later: redline limit {as_argument(file)} -m {','.join(ask.scenarios)}"
        raise UsageError("-m selects requests of redline.yaml, all of which belong to the suite", hint=hint)
    if ask.budget is not None:
        message = part("budget", ask.budget) + " bounds the whole search, which a suite does not"
        raise UsageError(message, hint=f"give {part('duration')}, the length of a probe")
    terms = read_servers_search(ask, here, project).request.terms

    def made(ask: SearchAsk, placed: Placed, project: Project | None) -> dict[str, object]:
        document = search_document(ask, here.ends, placed, project, named_in(ask.targets))
        return document | ({"objective": written_objective(ask, terms.sets)} if ask.objective else {})

    command = ["limit"]
    for name in ask.differing(_OF_SEARCHES):
        value = getattr(ask, name)
        command += [part(name)] if value is True else [part(name), str(value)]
    if not terms.beyond and not ask.no_beyond:
        command.append(part("no_beyond"))
    write_suite(ask, file, project, made, console, command, [*_differs(terms)])


def _differs(terms: SearchTerms) -> Iterator[str]:
    """What a search of the suite does otherwise."""
    if terms.by_probe:
        yield "servers are searched one after the other, and do not take turns by probe"
    if terms.by_warm_up:
        yield "the first rate is that of the load, and does not depend on the warm-up"
    if terms.workers is not None:
        yield f"the engine has a worker on each of its cores, not {terms.workers}"


def created(
    ask: SearchAsk,
    command: Command,
    keep: Path | None,
    workplace: Workplace,
    view: SessionView,
    console: Console,
    began_s: float | None = None,
) -> SearchSession:
    """The search that is asked for, with its servers built, in a new directory. Raises RedlineError.

    `began_s`: when its time began by the monotonic clock, if that was before.
    """
    began_s = time.monotonic() if began_s is None else began_s
    here, project = FromRepository(Path.cwd()), _project(ask)
    if (suites := [target for target in ask.targets if is_suite(target)]) and project is None:
        why = f"{suites[0]} is a suite, which says itself what is asked how, and takes no"
        naming.refuse(ask.given(_OF_SERVERS), why)
        asked = read_suites_search(ask, here)
        folder = keep or places.new_run(f"limit-{asked.request.suite.name}".replace(" ", "-"))
    else:
        without = _OF_SUITES - ({"servers"} if project else set())
        naming.refuse(ask.given(without), "without a suite, a search takes no")
        check_targets_are_whole(ask.targets)
        asked = read_servers_search(ask, here, project)
        folder = keep or Path(workplace.stack.enter_context(tempfile.TemporaryDirectory()), "search")
    source = Source(command(), asked.file, asked.text) if asked.file else source_of(ask, command, asked.text)
    is_kept = bool(asked.file) or keep is not None
    return _opened(asked, source, project, folder, ask, workplace, view, console, began_s, is_kept=is_kept)


def _project(ask: SearchAsk) -> Project | None:
    """Return the redline.yaml that is the only target, or this folder's if there is no target. Raises UsageError."""
    if not ask.targets and ask.git is None:
        if (project := project_here()) is not None:
            return project
        hint = (
            "name a server by its URL or its command, such as './server --port {port}', and give "
            f"{part('objective', 'p99 < 200ms')}; or write a {PROJECT_FILE}: see `redline init --help`"
        )
        raise UsageError(f"no server and no suite is named, and there is no {PROJECT_FILE} here or above", hint=hint)
    projects = [target for target in ask.targets if Path(target).name == PROJECT_FILE]
    if not projects:
        return None
    if len(ask.targets) > 1:
        raise UsageError(f"{projects[0]} is searched alone", hint="name its servers in the file, and no other target")
    return read_project_file(Path(projects[0]))


def _opened(
    asked: AskedSearch,
    source: Source,
    project: Project | None,
    folder: Path,
    ask: SearchAsk,
    workplace: Workplace,
    view: SessionView,
    console: Console,
    began_s: float,
    *,
    is_kept: bool,
) -> SearchSession:
    """Show the plan, build, and open the directory. Raises RedlineError."""
    request = asked.request
    check_targets(request.suite, ask.target_is_mine)
    check_variables(request.suite.variants)
    view.check(request.suite)
    RunStore(folder).check_free()
    waits_and_builds_s = time.monotonic()
    workplace.take_turn()
    if project is not None:
        build_servers(project, request.suite, console)
    for target in ask.targets if project is None else ():
        if is_suite(target):
            build_named(places.ready_suite(Path(target)).resolve().parent, request.suite, console)
    began_s += time.monotonic() - waits_and_builds_s  # which take none of the time
    bench = workplace.bench(Path(source.file), request.suite)
    plan = request.plan()
    if source.file or len(request.suite.variants) > 1 or not request.suite.variants[0].is_attached:
        for note in asked.not_compared:
            console.print(note, style="yellow", highlight=False, markup=False, soft_wrap=True)
        show_search_plan(plan, asked.most_probes, asked.ignored, asked.unprofiled, request.terms, console)
    return SearchSession.create(request, source, folder, bench, view, is_kept=is_kept, began_s=began_s)
