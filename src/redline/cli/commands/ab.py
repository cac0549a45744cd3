"""`redline ab A B`: which of two servers needs less, with an interval that a noisy machine does not spoil."""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from rich.console import Console

from redline.asking import places
from redline.asking.asks import ComparisonAsk
from redline.asking.catalogues import catalogue_of, named_in
from redline.asking.comparison import comparison_document
from redline.asking.naming import naming
from redline.asking.opening import Command, source_of
from redline.asking.origins import FromRepository, project_here, project_name
from redline.asking.project import in_its_words, parts_of, scenarios_of, variants_of
from redline.asking.requests import describes_requests, placed_here, referenced
from redline.asking.ways import Placed
from redline.asking.written import plain, read_written
from redline.cli.asks import comparison_ask
from redline.cli.browser import check_is_kept
from redline.cli.command_line import WHILE_IT_RUNS, AbFlags
from redline.cli.destination import Destination
from redline.cli.experiment import Output, create, finish, finish_resumed
from redline.cli.flags import command_line, form_of, refuse
from redline.cli.progress import progress_console
from redline.cli.project_builds import build_servers
from redline.cli.session_view import SessionView
from redline.cli.suite_files import OF_MEASURING, WHY, write_suite
from redline.cli.targets import check_targets
from redline.cli.telemetry import metered
from redline.cli.turns import turn_of
from redline.errors import UsageError
from redline.launching.variables import check_variables
from redline.model import Suite, Verdict
from redline.quantities import parse_duration
from redline.running.assembly import Workplace
from redline.running.session import RunSession
from redline.storage.runs import RunStore
from redline.suite.loading import AS_WRITTEN
from redline.suite.project import Project
from redline.suite.validate.overrides import Overrides
from redline.wording import as_argument, part

_WITH_RESUME = {"resume", "lasts", "fail_on", "wait_quiet", "form", "json", *WHILE_IT_RUNS}


def execute(flags: AbFlags) -> None:
    """Compare two servers, resume a comparison, or write its suite."""
    console, form = progress_console(flags), form_of(flags)
    if flags.write_suite is not None:
        refuse(flags.given(among=OF_MEASURING), WHY)
        _write_suite(comparison_ask(flags), flags.write_suite, console)
        return
    kept = Destination.at(flags.output)
    is_kept = flags.resume is not None or kept.folder is not None
    check_is_kept(opens=flags.open, is_kept=is_kept or kept.page is not None)
    with ExitStack() as stack:
        meter = stack.enter_context(metered(flags, console))
        on_usage = None if meter is None else meter.usage
        turn = turn_of("redline ab", console, flags.wait, alone=flags.alone)
        workplace = Workplace(None, stack, places.of_suite, on_usage, turn)
        fail_on = tuple(Verdict(verdict) for verdict in flags.fail_on)
        output = Output(
            *("ab", form, fail_on, flags.wait_quiet, is_kept, kept, meter, flags.open), is_whole=flags.verbose
        )
        if flags.resume is not None:
            refuse(flags.given(but=_WITH_RESUME), "--resume continues it as it was planned, and takes no")
            with naming("--for"):
                budget_ns = None if flags.lasts is None else parse_duration(flags.lasts)
            finish_resumed(flags.resume, workplace, output, console, budget_ns=budget_ns)
        else:
            folder = kept.folder or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "ab"
            view, ask = SessionView(console, meter), comparison_ask(flags)
            finish(created(ask, command_line, folder, workplace, view, console), output, console)


def _project(ask: ComparisonAsk) -> Project | None:
    """Return the redline.yaml of this folder if no server is named. Raises UsageError."""
    if ask.a is not None or ask.git is not None:
        return None
    project = project_here()
    if project is not None and ask.route is None and variants_of(project) == 1:
        hint = f"add a second server there, or name a revision, such as `redline ab main`; or see {part('route')}"
        raise UsageError(f"{project.document.file} names one server, and ab compares two", hint=hint)
    return project


def _requests(ask: ComparisonAsk) -> int:
    """Count the requests of revisions, with the mix, as the redline.yaml of this folder has them."""
    with suppress(UsageError):
        project = project_here()
        return 1 if project is None else parts_of(scenarios_of(project), ask.scenarios)
    return 1


def created(
    ask: ComparisonAsk, command: Command, folder: Path, workplace: Workplace, view: SessionView, console: Console
) -> RunSession:
    """The comparison that is asked for, with its servers built, in a new directory. Raises RedlineError."""
    suite, text, project = comparison_suite(ask, console)
    view.check(suite)
    RunStore(folder).check_free()
    workplace.take_turn()
    if project is not None:
        build_servers(project, suite, console)
    source = source_of(ask, command, text, "comparison")
    return create(suite, source, folder, workplace, view, console, shows_plan=False)


def comparison_suite(ask: ComparisonAsk, console: Console) -> tuple[Suite, str, Project | None]:
    """The suite that is asked for, its text, and the redline.yaml that names its servers. Raises RedlineError."""
    here = FromRepository(Path.cwd())
    project = _project(ask)
    named = named_in(ask.targets_named)
    document = comparison_document(ask, here.ends, placed_here(ask), project, _requests(ask), named)
    _warn_of_changes(document, here, console)
    by_file = "scenarios" not in document or (project is not None and not describes_requests(ask))
    overrides = Overrides(scenarios=ask.scenarios) if by_file else AS_WRITTEN
    known = catalogue_of(document, Path.cwd())
    name = "ab" if project is None else project_name(project)
    with in_its_words(project):
        suite, text = read_written(document, name, referenced(ask, project), here.origins(), overrides, known)
    check_targets(suite, ask.target_is_mine)
    check_variables(suite.variants)
    return suite, text, project


def _warn_of_changes(document: Mapping[str, object], here: FromRepository, console: Console) -> None:
    """Warn of changes that are not committed, since they are not compared."""
    revisions = tuple(server["revision"] for server in plain(document)["servers"] if "revision" in server)
    if revisions and here.leaves_out_changes(revisions):
        start = revisions[0]
        message = (
            f"changes that are not committed are not measured; `redline ab {start}` compares {start} with the work tree"
        )
        console.print(message, style="yellow", markup=False, highlight=False, soft_wrap=True)


def _write_suite(ask: ComparisonAsk, file: Path, console: Console) -> None:
    """Write what is asked for as a suite. Raises RedlineError."""
    if ask.scenarios and ask.requests is None and not named_in(ask.targets_named).servers:
        hint = f"select them later: redline run {as_argument(file)} -m {','.join(ask.scenarios)}"
        raise UsageError("-m selects requests of redline.yaml, all of which belong to the suite", hint=hint)
    project, ends = _project(ask), FromRepository(Path.cwd()).ends

    def made(ask: ComparisonAsk, placed: Placed, project: Project | None) -> dict[str, object]:
        named = named_in(ask.targets_named)
        return comparison_document(ask, ends, placed, project, _requests(ask), named)

    write_suite(ask, file, project, made, console)
