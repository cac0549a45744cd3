"""`redline limit`: the highest rate at which servers meet an objective."""

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from redline.cli import places
from redline.cli.command_line import LimitFlags
from redline.cli.experiment import Output, finish_resumed, finish_search
from redline.cli.flags import refuse
from redline.cli.limit_flags import read_servers_search, read_suite_search
from redline.cli.origins import FromRepository
from redline.cli.request_flags import check_targets_are_whole
from redline.cli.session_view import SessionView, show_search_plan
from redline.cli.show import Terminal
from redline.cli.targets import check_target
from redline.errors import UsageError
from redline.model import AttachedServer, Verdict
from redline.running.assembly import Workplace
from redline.running.searching import SearchSession
from redline.storage.runs import RunStore
from redline.suite import make_plan

_OF_REQUESTS = {"headers", "method", "body", "status", "requests", "path", "http2", "insecure", "cacert"}
_OF_SERVERS = {"git", "lasts", "arrivals", "connections", "timeout", "threads", "threshold", "mine", *_OF_REQUESTS}
_OF_SUITES = {"servers", "loads", "options", "quick", "on"}
_WITH_RESUME = {"resume", "on", "wait_quiet", "fail_on", "json"}


def execute(flags: LimitFlags) -> None:
    """Find the highest rate at which servers meet an objective, as an interval."""
    console = Terminal(stderr=True)
    view = SessionView(console)
    fail_on = tuple(Verdict(verdict) for verdict in flags.fail_on)
    output = Output("limit", "json" if flags.json else None, fail_on, flags.wait_quiet)
    with ExitStack() as stack:
        workplace = Workplace(flags.on, stack, places.of_suite)
        if flags.resume is not None:
            refuse(flags.given(but=_WITH_RESUME), "--resume continues it as it was planned, and takes no")
            finish_resumed(flags.resume, workplace, output, console)
            return
        if not flags.targets and flags.git is None:
            url = "http://127.0.0.1:8080/ --objective 'p99 < 200ms'"
            hint = f"try `redline limit suites/limit.yaml`, or `redline limit {url}`"
            raise UsageError("no server and no suite is named", hint=hint)
        if suites := [target for target in flags.targets if Path(target).suffix in {".yaml", ".yml"}]:
            if len(flags.targets) > 1:
                raise UsageError(f"{suites[0]} is a suite, which names all servers", hint="leave out the others")
            why = f"{suites[0]} is a suite, which says itself what is asked how, and takes no"
            refuse(flags.given(among=_OF_SERVERS), why)
            session = _of_suite(Path(suites[0]), flags, workplace, view, console)
        else:
            refuse(flags.given(among=_OF_SUITES), "without a suite, a search takes no")
            check_targets_are_whole(flags.targets)
            session = _of_servers(flags, workplace, view, console, stack)
        finish_search(session, replace(output, is_kept=session.is_kept), view, console)


def _of_servers(
    flags: LimitFlags, workplace: Workplace, view: SessionView, console: Console, stack: ExitStack
) -> SearchSession:
    """Search servers that the flags name, in a directory that goes with the command unless one was named."""
    asked = read_servers_search(flags, FromRepository(Path.cwd()))
    suite, terms = asked.request.suite, asked.request.terms
    for variant in suite.variants:
        if isinstance(variant.entry, AttachedServer):
            check_target(variant.entry.host, flags.mine)
    folder = flags.output or Path(stack.enter_context(tempfile.TemporaryDirectory()), "search")
    RunStore(folder).check_free()
    bench = workplace.bench(Path(), suite)
    if len(suite.variants) > 1 or not suite.variants[0].is_attached:
        most = terms.probes + 2 * max(terms.trials, 1) * len(terms.sets)
        show_search_plan(make_plan(suite), most, (), (), terms.beyond, console)
    is_kept = flags.output is not None
    return SearchSession.create(asked.request, asked.source, folder, bench, view, is_kept=is_kept)


def _of_suite(
    file: Path, flags: LimitFlags, workplace: Workplace, view: SessionView, console: Console
) -> SearchSession:
    """Validate the suite, show what will be done, and build. Raises RedlineError."""
    asked = read_suite_search(file, flags)
    request = asked.request
    folder = flags.output or places.new_run(f"limit-{request.suite.name}")
    RunStore(folder).check_free()
    bench = workplace.bench(file, request.suite)
    terms = request.terms
    most = terms.probes + 2 * terms.trials * len(terms.sets)
    show_search_plan(make_plan(request.suite), most, asked.ignored, asked.unprofiled, terms.beyond, console)
    return SearchSession.create(request, asked.source, folder, bench, view)
