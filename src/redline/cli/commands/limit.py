"""`redline limit`: the highest rate at which servers meet an objective."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

import typer
from rich.console import Console

from redline.analysis.compare import unwanted
from redline.cli import exits, places
from redline.cli.command_line import LimitFlags
from redline.cli.flags import refuse
from redline.cli.limit_flags import read_servers_search, read_suite_search
from redline.cli.origins import FromRepository
from redline.cli.quiet import wait_until_quiet
from redline.cli.session_view import SessionView, show_search_plan
from redline.cli.show import Terminal, show
from redline.cli.streams import write_document
from redline.cli.targets import check_target
from redline.errors import UsageError
from redline.model import AttachedServer, Verdict
from redline.model.limits import LimitReport
from redline.report.render import LIMIT_RENDERERS
from redline.report.sections.limit import limit_summary
from redline.running.assembly import Cluster
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
    with ExitStack() as stack:
        cluster = Cluster(flags.on, stack, places.of_suite)
        if flags.resume is not None:
            refuse(flags.given(but=_WITH_RESUME), "--resume continues a search as it was planned, and takes no")
            if RunStore(flags.resume).manifest().kind != "search":
                hint = f"resume it with: {places.own_name()} run --resume {flags.resume}"
                raise UsageError(f"{flags.resume} holds no search", hint=hint)
            session = SearchSession.resume(flags.resume, cluster.bench_for, view)
        elif not flags.targets and flags.git is None:
            url = "http://127.0.0.1:8080/ --objective 'p99 < 200ms'"
            hint = f"try `redline limit suites/limit.yaml`, or `redline limit {url}`"
            raise UsageError("no server and no suite is named", hint=hint)
        elif suites := [target for target in flags.targets if Path(target).suffix in {".yaml", ".yml"}]:
            if len(flags.targets) > 1:
                raise UsageError(f"{suites[0]} is a suite, which names all servers", hint="leave out the others")
            why = f"{suites[0]} is a suite, which says itself what is asked how, and takes no"
            refuse(flags.given(among=_OF_SERVERS), why)
            session = _of_suite(Path(suites[0]), flags, cluster, view, console)
        else:
            refuse(flags.given(among=_OF_SUITES), "without a suite, a search takes no")
            session = _of_servers(flags, cluster, view, console, stack)
        _finish(session, flags, view, console)


def _of_servers(
    flags: LimitFlags, cluster: Cluster, view: SessionView, console: Console, stack: ExitStack
) -> SearchSession:
    """Search servers that the flags name, in a directory that goes with the command unless one was named."""
    asked = read_servers_search(flags, FromRepository(Path.cwd()))
    suite, terms = asked.request.suite, asked.request.terms
    for variant in suite.variants:
        if isinstance(variant.entry, AttachedServer):
            check_target(variant.entry.host, flags.mine)
    folder = flags.output or Path(stack.enter_context(tempfile.TemporaryDirectory()), "search")
    RunStore(folder).check_free()
    bench = cluster.bench(Path(), suite)
    if len(suite.variants) > 1 or not suite.variants[0].is_attached:
        most = terms.probes + 2 * max(terms.trials, 1) * len(terms.sets)
        show_search_plan(make_plan(suite), most, (), (), terms.beyond, console)
    is_kept = flags.output is not None
    return SearchSession.create(asked.request, asked.source, folder, bench, view, is_kept=is_kept)


def _of_suite(file: Path, flags: LimitFlags, cluster: Cluster, view: SessionView, console: Console) -> SearchSession:
    """Validate the suite, show what will be done, and build. Raises RedlineError."""
    asked = read_suite_search(file, flags)
    request = asked.request
    folder = flags.output or places.new_run(f"limit-{request.suite.name}")
    RunStore(folder).check_free()
    bench = cluster.bench(file, request.suite)
    terms = request.terms
    most = terms.probes + 2 * terms.trials * len(terms.sets)
    show_search_plan(make_plan(request.suite), most, asked.ignored, asked.unprofiled, terms.beyond, console)
    return SearchSession.create(request, asked.source, folder, bench, view)


def _finish(session: SearchSession, flags: LimitFlags, view: SessionView, console: Console) -> None:
    """Search, and print what was found; how the searches ended is the exit code."""
    if flags.wait_quiet:
        wait_until_quiet(console)
    view.keeps_errors, view.by_probe = not session.manifest.suite_file, session.manifest.terms.by_probe
    report, interrupted = session.execute()
    if view.keeps_errors and view.error is not None:
        if any(cell.ended == "broken" and not cell.probes for cell in report.cells):
            raise view.error
        view.print_error(view.error)
    if not session.is_kept:
        report = report.without_recordings
    try:
        if flags.json:
            write_document(LIMIT_RENDERERS["json"](report))
        else:
            show(limit_summary(report))
    finally:  # whoever cannot be shown it finds it there
        if session.is_kept:
            _print_where(session.store.folder, console, interrupted=interrupted)
    if interrupted:
        raise typer.Exit(exits.INTERRUPTED)
    code = exit_code(report, tuple(Verdict(verdict) for verdict in flags.fail_on))
    if code:
        raise typer.Exit(code)


def exit_code(report: LimitReport, fail_on: tuple[Verdict, ...] = ()) -> int:
    """1 if a search came to no answer; 3 for an unwanted verdict."""
    if any(cell.ended != "converged" for cell in report.cells):
        return exits.COULD_NOT_RUN
    return exits.MISSED if unwanted(report.comparisons, fail_on) else exits.DONE


def _print_where(folder: Path, console: Console, *, interrupted: bool) -> None:
    """Print where the report is, and how an interrupted search is resumed."""
    page = (folder / "report.html").resolve()
    console.print(f"report: {page}", soft_wrap=True, highlight=False, markup=False)
    if interrupted:
        again = f"{places.own_name()} limit --resume {folder}"
        console.print(f"interrupted; resume with: {again}", soft_wrap=True, markup=False)
