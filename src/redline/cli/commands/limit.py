"""`redline limit`: the highest rate at which servers meet an objective."""

import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from redline.cli import places
from redline.cli.began import command_began_s
from redline.cli.command_line import WHILE_IT_RUNS, LimitFlags
from redline.cli.experiment import Output, finish_resumed, finish_search
from redline.cli.flags import refuse
from redline.cli.limit_flags import AskedSearch, is_suite, read_servers_search, read_suites_search
from redline.cli.origins import FromRepository, project_here, read_project_file
from redline.cli.progress import progress_console
from redline.cli.project_builds import build_named, build_servers
from redline.cli.request_flags import OF_REQUEST, check_targets_are_whole
from redline.cli.search_view import show_search_plan
from redline.cli.session_view import SessionView
from redline.cli.targets import check_targets
from redline.cli.telemetry import metered
from redline.cli.turns import turn_of
from redline.cli.way_flags import OF_WAYS
from redline.errors import UsageError
from redline.model import Verdict
from redline.plugins.launchers.variables import check_variables
from redline.running.assembly import Workplace
from redline.running.searching import SearchSession
from redline.storage.runs import RunStore
from redline.suite.project import PROJECT_FILE, Project

_OF_REQUESTS = {*OF_REQUEST, "requests", "path", "http2", "no_keepalive", *OF_WAYS}
_OF_SERVERS = {"git", "lasts", "arrivals", "replay", "connections", "timeout", "threads", "threshold", *_OF_REQUESTS}
_OF_SUITES = {"servers", "loads", "options", "quick", "on"}
_WITH_RESUME = {"resume", "on", "wait_quiet", "fail_on", "json", *WHILE_IT_RUNS}


def execute(flags: LimitFlags) -> None:
    """Find the highest rate at which servers meet an objective, as an interval."""
    began_s, console = command_began_s(), progress_console(flags)
    fail_on = tuple(Verdict(verdict) for verdict in flags.fail_on)
    with ExitStack() as stack:
        meter = stack.enter_context(metered(flags, console))
        on_usage = None if meter is None else meter.usage
        turn = turn_of(flags, "redline limit", console, flags.on)
        workplace = Workplace(flags.on, stack, places.of_suite, on_usage, turn)
        view = SessionView(console, meter)
        output = Output("limit", "json" if flags.json else None, fail_on, flags.wait_quiet, meter=meter)
        if flags.resume is not None:
            refuse(flags.given(but=_WITH_RESUME), "--resume continues it as it was planned, and takes no")
            finish_resumed(flags.resume, workplace, output, console)
            return
        session = created(flags, workplace, view, console, began_s)
        finish_search(session, replace(output, is_kept=session.is_kept), view, console)


def created(
    flags: LimitFlags, workplace: Workplace, view: SessionView, console: Console, began_s: float | None = None
) -> SearchSession:
    """The search that the flags ask for, with its servers built, in a new directory. Raises RedlineError.

    `began_s`: when its time began by the monotonic clock, if that was before.
    """
    began_s = time.monotonic() if began_s is None else began_s
    here, project = FromRepository(Path.cwd()), _project(flags)
    if (suites := [target for target in flags.targets if is_suite(target)]) and project is None:
        why = f"{suites[0]} is a suite, which says itself what is asked how, and takes no"
        refuse(flags.given(among=_OF_SERVERS), why)
        asked = read_suites_search(flags, here)
        folder = flags.output or places.new_run(f"limit-{asked.request.suite.name}".replace(" ", "-"))
    else:
        refuse(
            flags.given(among=_OF_SUITES - ({"servers"} if project else set())),
            "without a suite, a search takes no",
        )
        check_targets_are_whole(flags.targets)
        asked = read_servers_search(flags, here, project)
        folder = flags.output or Path(workplace.stack.enter_context(tempfile.TemporaryDirectory()), "search")
    return _opened(asked, project, folder, flags, workplace, view, console, began_s)


def _project(flags: LimitFlags) -> Project | None:
    """Return the redline.yaml that is the only target, or this folder's if there is no target. Raises UsageError."""
    if not flags.targets and flags.git is None:
        if (project := project_here()) is not None:
            return project
        hint = (
            "name a server, as in `redline limit './server --port {port}' --objective 'p99 < 200ms'`; "
            f"or write a {PROJECT_FILE}: `redline init './server --port {{port}}'`"
        )
        raise UsageError(f"no server and no suite is named, and there is no {PROJECT_FILE} here or above", hint=hint)
    projects = [target for target in flags.targets if Path(target).name == PROJECT_FILE]
    if not projects:
        return None
    if len(flags.targets) > 1:
        raise UsageError(f"{projects[0]} is searched alone", hint="name its servers in the file, and no other target")
    return read_project_file(Path(projects[0]))


def _opened(
    asked: AskedSearch,
    project: Project | None,
    folder: Path,
    flags: LimitFlags,
    workplace: Workplace,
    view: SessionView,
    console: Console,
    began_s: float,
) -> SearchSession:
    """Show the plan, build, and open the directory. Raises RedlineError."""
    request, source = asked.request, asked.source
    check_targets(request.suite, flags.mine)
    check_variables(request.suite.variants)
    RunStore(folder).check_free()
    waits_and_builds_s = time.monotonic()
    workplace.take_turn()
    if project is not None:
        build_servers(project, request.suite, console)
    for target in flags.targets if project is None else ():
        if is_suite(target):
            build_named(places.ready_suite(Path(target)).resolve().parent, request.suite, console)
    began_s += time.monotonic() - waits_and_builds_s  # which take none of the time
    bench = workplace.bench(Path(source.file), request.suite)
    plan = request.plan()
    if source.file or len(request.suite.variants) > 1 or not request.suite.variants[0].is_attached:
        for note in asked.not_compared:
            console.print(note, style="yellow", highlight=False, markup=False, soft_wrap=True)
        show_search_plan(plan, asked.most_probes, asked.ignored, asked.unprofiled, request.terms, console)
    is_kept = bool(source.file) or flags.output is not None
    return SearchSession.create(request, source, folder, bench, view, is_kept=is_kept, began_s=began_s)
