"""`redline ab A B`: which of two servers needs less, with an interval that a noisy machine does not spoil."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from redline.cli import places
from redline.cli.ab_document import ab_document
from redline.cli.catalogues import proxies_of
from redline.cli.command_line import WHILE_IT_RUNS, AbFlags
from redline.cli.experiment import Output, create, finish, finish_resumed
from redline.cli.flags import command_line, form_of, naming, refuse, split
from redline.cli.origins import FromRepository, project_here, project_name
from redline.cli.progress import progress_console
from redline.cli.project_builds import build_servers, builds_of
from redline.cli.project_document import in_its_words, parts_of, scenarios_of, variants_of
from redline.cli.request_flags import describes_requests, placed_here, referenced
from redline.cli.session_view import SessionView
from redline.cli.targets import check_targets
from redline.cli.telemetry import metered
from redline.cli.turns import turn_of
from redline.cli.written import plain, read_written
from redline.errors import UsageError
from redline.files import as_store_error, write_atomically
from redline.model import Verdict
from redline.plugins.launchers.variables import check_variables
from redline.quantities import parse_duration
from redline.running.assembly import Workplace
from redline.running.manifests import Source
from redline.running.session import RunSession
from redline.storage.runs import RunStore
from redline.suite import referenced_files
from redline.suite.loading import AS_WRITTEN
from redline.suite.project import Project
from redline.suite.validate.overrides import Overrides

_OF_TELEMETRY = WHILE_IT_RUNS - {"quiet", "verbose"}
_OF_MEASURING = {"resume", "output", "fail_on", "wait_quiet", "form", "json", "mine", *_OF_TELEMETRY}
_WITH_RESUME = {"resume", "lasts", "fail_on", "wait_quiet", "form", "json", *WHILE_IT_RUNS}


def execute(flags: AbFlags) -> None:
    """Compare two servers, resume a comparison, or write its suite."""
    console, kept, form = progress_console(flags), flags.resume or flags.output, form_of(flags)
    if flags.write_suite is not None:
        refuse(flags.given(among=_OF_MEASURING), "--write-suite measures nothing, and takes no")
        _write_suite(flags, flags.write_suite, console)
        return
    with ExitStack() as stack:
        meter = stack.enter_context(metered(flags, console))
        on_usage = None if meter is None else meter.usage
        workplace = Workplace(None, stack, places.of_suite, on_usage, turn_of(flags, "redline ab", console))
        fail_on = tuple(Verdict(verdict) for verdict in flags.fail_on)
        output = Output("ab", form, fail_on, flags.wait_quiet, is_kept=kept is not None, meter=meter)
        if flags.resume is not None:
            refuse(flags.given(but=_WITH_RESUME), "--resume continues it as it was planned, and takes no")
            with naming("--for"):
                budget_ns = None if flags.lasts is None else parse_duration(flags.lasts)
            finish_resumed(flags.resume, workplace, output, console, budget_ns=budget_ns)
        else:
            folder = kept or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "ab"
            view = SessionView(console, meter)
            finish(created(flags, folder, workplace, view, console), output, console)


def _project(flags: AbFlags) -> Project | None:
    """Return the redline.yaml of this folder if no flag names a server. Raises UsageError."""
    if flags.a is not None or flags.git is not None:
        return None
    project = project_here()
    if project is not None and flags.route is None and variants_of(project) == 1:
        hint = "add a second server there, or name a revision, such as `redline ab main`; or see --route"
        raise UsageError(f"{project.document.file} names one server, and ab compares two", hint=hint)
    return project


def _requests(flags: AbFlags) -> int:
    """Count the requests of revisions, with the mix, as the redline.yaml of this folder has them."""
    with suppress(UsageError):
        project = project_here()
        return 1 if project is None else parts_of(scenarios_of(project), split(flags.scenarios))
    return 1


def created(flags: AbFlags, folder: Path, workplace: Workplace, view: SessionView, console: Console) -> RunSession:
    """The comparison that the flags ask for, with its servers built, in a new directory. Raises RedlineError."""
    here = FromRepository(Path.cwd())
    project = _project(flags)
    document = ab_document(flags, here.ends, placed_here(flags), project, _requests(flags))
    _warn_of_changes(document, here, console)
    by_file = "scenarios" not in document or (project is not None and not describes_requests(flags))
    overrides = Overrides(scenarios=split(flags.scenarios)) if by_file else AS_WRITTEN
    known = proxies_of(document, Path.cwd())
    name = "ab" if project is None else project_name(project)
    with in_its_words(project):
        suite, text = read_written(document, name, referenced(flags, project), here.origins(), overrides, known)
    check_targets(suite, flags.mine)
    check_variables(suite.variants)
    RunStore(folder).check_free()
    workplace.take_turn()
    if project is not None:
        build_servers(project, suite, console)
    source = Source(command_line(flags), text=text, kind="comparison")
    if flags.recorded is not None:
        source = replace(source, text=flags.recorded.suite(text), kept=flags.recorded.kept)
    return create(suite, source, folder, workplace, view, console, shows_plan=False)


def _warn_of_changes(document: Mapping[str, object], here: FromRepository, console: Console) -> None:
    """Warn of changes that are not committed, since they are not compared."""
    revisions = tuple(server["revision"] for server in plain(document)["servers"] if "revision" in server)
    if revisions and here.leaves_out_changes(revisions):
        start = revisions[0]
        message = (
            f"changes that are not committed are not measured; `redline ab {start}` compares {start} with the work tree"
        )
        console.print(message, style="yellow", markup=False, highlight=False, soft_wrap=True)


def _write_suite(flags: AbFlags, file: Path, console: Console) -> None:
    """Write the flags as a suite, after checking that `redline run` can read it. Raises RedlineError."""
    if flags.scenarios and flags.requests is None:
        hint = f"select them later: redline run {file} -m {','.join(flags.scenarios)}"
        raise UsageError("-m selects requests of redline.yaml, all of which belong to the suite", hint=hint)
    if file.exists():
        raise UsageError(f"{file} exists already", hint="give another name, or remove it")
    project, placed = _project(flags), partial(os.path.relpath, start=file.parent)
    document = ab_document(flags, FromRepository(Path.cwd()).ends, placed, project, _requests(flags))
    command = shlex.join([places.own_name(), "run", str(file)])
    folder = file.parent.resolve()
    origins, known = FromRepository(folder).origins(), proxies_of(document, folder)
    _, text = read_written(document, str(file), referenced_files(file), origins, catalogue=known)
    builds = builds_of(project) if project is not None else ()
    said = [f"# Measure it with: {command}", *(f"# Built by: {line}" for text in builds for line in text.splitlines())]
    with as_store_error(file):
        write_atomically(file, "\n".join([*said, text]).encode())
    if project is not None and builds:
        message = f"{file} does not build its servers, as {project.document.file} does: see its first lines"
        console.print(message, style="yellow", soft_wrap=True, highlight=False, markup=False)
    console.print(f"measure it with: {command}", soft_wrap=True, highlight=False, markup=False)
