"""`redline limit`: the highest rate at which servers meet an objective."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

import typer
from rich.console import Console

from redline.cli import exits, places
from redline.cli.command_line import LimitFlags
from redline.cli.flags import command_line, refuse
from redline.cli.limit_flags import read_suite_search, read_url_search
from redline.cli.quiet import wait_until_quiet
from redline.cli.session_view import SessionView, show_search_plan
from redline.cli.show import Terminal, show
from redline.cli.streams import write_document
from redline.errors import UsageError
from redline.report.render import LIMIT_RENDERERS
from redline.report.sections.limit import limit_summary
from redline.running.assembly import Cluster, attached
from redline.running.searching import SearchRequest, SearchSession
from redline.running.session import Source
from redline.storage.runs import RunStore
from redline.suite import make_plan
from redline.suite.urls import as_url, is_like_a_url, is_url

_OF_REQUESTS = {"headers", "method", "body", "status", "http2", "insecure", "cacert"}
_OF_URLS = {"arrivals", "connections", "timeout", "threads", "mine", *_OF_REQUESTS}
_OF_SUITES = {"servers", "scenarios", "loads", "options", "quick", "trials", "no_beyond", "on"}


def execute(flags: LimitFlags) -> None:
    """Find the highest rate at which servers meet an objective, as an interval: of a suite, or of what is running."""
    console, target = Terminal(stderr=True), flags.target
    view = SessionView(console)
    with ExitStack() as stack:
        cluster = Cluster(flags.on, stack, places.of_suite)
        if flags.resume is not None:
            given = flags.given(but={"resume", "on", "wait_quiet", "json"})
            refuse(given, "--resume continues a search as it was planned, and takes no")
            if RunStore(flags.resume).manifest().kind != "search":
                hint = f"resume it with: {places.own_name()} run --resume {flags.resume}"
                raise UsageError(f"{flags.resume} holds no search", hint=hint)
            _finish(SearchSession.resume(flags.resume, cluster.bench_for, view), flags, view, console)
        elif target is None:
            url = "http://127.0.0.1:8080/ --objective 'p99 < 200ms'"
            hint = f"try `redline limit suites/limit.yaml`, or `redline limit {url}`"
            raise UsageError("neither a suite nor a URL is named", hint=hint)
        elif is_url(target):
            refuse(flags.given(among=_OF_SUITES), f"{target} is running already, and takes no")
            _limit_url(read_url_search(target, flags), flags, view, console)
        else:
            _refuse_half_a_url(target)
            why = f"{target} is a suite, which says itself what is asked how, and takes no"
            refuse(flags.given(among=_OF_URLS), why)
            _finish(_create(Path(target), flags, cluster, view, console), flags, view, console)


def _create(file: Path, flags: LimitFlags, cluster: Cluster, view: SessionView, console: Console) -> SearchSession:
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


def _limit_url(request: SearchRequest, flags: LimitFlags, view: SessionView, console: Console) -> None:
    """Search a running server, in a directory that goes with the command unless one was named."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = flags.output or Path(scratch) / "search"
        bench = attached(request.suite.variants[0])
        is_kept = flags.output is not None
        session = SearchSession.create(request, Source(command_line()), folder, bench, view, is_kept=is_kept)
        _finish(session, flags, view, console)


def _finish(session: SearchSession, flags: LimitFlags, view: SessionView, console: Console) -> None:
    """Search, and print what was found; how the searches ended is the exit code."""
    if flags.wait_quiet:
        wait_until_quiet(console)
    view.keeps_errors = not session.manifest.suite_file
    report, interrupted = session.execute()
    if view.keeps_errors and view.error is not None:
        if not report.cells[0].probes:
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
    if any(cell.ended != "converged" for cell in report.cells):
        raise typer.Exit(exits.COULD_NOT_RUN)


def _print_where(folder: Path, console: Console, *, interrupted: bool) -> None:
    """Print where the report is, and how an interrupted search is resumed."""
    page = (folder / "report.html").resolve()
    console.print(f"report: {page}", soft_wrap=True, highlight=False, markup=False)
    if interrupted:
        again = f"{places.own_name()} limit --resume {folder}"
        console.print(f"interrupted; resume with: {again}", soft_wrap=True, markup=False)


def _refuse_half_a_url(target: str) -> None:
    """Raises UsageError for what looks like a URL and is not taken for one."""
    if is_like_a_url(target) and not Path(target).exists():
        message = f"{target} is no suite, and a URL begins with http:// or https://"
        raise UsageError(message, hint=f"try {as_url(target)}")
