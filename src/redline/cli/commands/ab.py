"""`redline ab A B`: which of two servers needs less, with an interval that a noisy machine does not spoil."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from rich.console import Console

from redline.cli import places
from redline.cli.ab_document import ab_document
from redline.cli.command_line import AbFlags
from redline.cli.experiment import Output, create, finish, finish_resumed
from redline.cli.flags import command_line, naming, refuse, split
from redline.cli.origins import FromRepository, project_here
from redline.cli.project_builds import build_servers
from redline.cli.request_flags import describes_requests, placed_here, referenced
from redline.cli.show import Terminal
from redline.cli.targets import check_targets
from redline.cli.written import plain, read_written
from redline.errors import UsageError
from redline.files import as_store_error, write_atomically
from redline.model import Verdict
from redline.plugins.launchers.variables import check_variables
from redline.quantities import parse_duration
from redline.running.assembly import Workplace
from redline.running.session import RunSession, Source
from redline.storage.runs import RunStore
from redline.suite import referenced_files
from redline.suite.loading import AS_WRITTEN
from redline.suite.validate.overrides import Overrides

_WITH_RESUME = {"resume", "lasts", "fail_on", "wait_quiet", "form", "json"}


def execute(flags: AbFlags) -> None:
    """Compare two servers; or resume that; or write the suite that it is."""
    console, kept = Terminal(stderr=True), flags.resume or flags.output
    if flags.write_suite is not None:
        _write_suite(flags, flags.write_suite, console)
        return
    with ExitStack() as stack:
        workplace = Workplace(None, stack, places.of_suite)
        fail_on = tuple(Verdict(verdict) for verdict in flags.fail_on)
        form = "json" if flags.json else flags.form
        output = Output("ab", form, fail_on, flags.wait_quiet, is_kept=kept is not None)
        if flags.resume is not None:
            refuse(flags.given(but=_WITH_RESUME), "--resume continues it as it was planned, and takes no")
            with naming("--for"):
                budget_ns = None if flags.lasts is None else parse_duration(flags.lasts)
            finish_resumed(flags.resume, workplace, output, console, budget_ns=budget_ns)
        else:
            folder = kept or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "ab"
            finish(_created(flags, folder, workplace, console), output, console)


def _created(flags: AbFlags, folder: Path, workplace: Workplace, console: Console) -> RunSession:
    here = FromRepository(Path.cwd())
    project = project_here(servers=2) if flags.a is None and flags.git is None else None
    document = ab_document(flags, here.ends, placed_here(flags), project)
    _warn_of_changes(document, here, console)
    by_file = "scenarios" not in document or (project is not None and not describes_requests(flags))
    overrides = Overrides(scenarios=split(flags.scenarios)) if by_file else AS_WRITTEN
    suite, text = read_written(document, "ab", referenced(flags, project), here.origins(), overrides)
    check_targets(suite, flags.mine)
    check_variables(suite.variants)
    if project is not None:
        RunStore(folder).check_free()
        build_servers(project, suite, console)
    source = Source(command_line(), text=text, kind="comparison")
    return create(suite, source, folder, workplace, console, shows_plan=False)


def _warn_of_changes(document: Mapping[str, object], here: FromRepository, console: Console) -> None:
    """Print a warning where there are changes that are not committed, and are not compared."""
    revisions = tuple(server["revision"] for server in plain(document)["servers"] if "revision" in server)
    if revisions and here.leaves_out_changes(revisions):
        start = revisions[0]
        message = (
            f"changes that are not committed are not measured; `redline ab {start}` compares {start} with the work tree"
        )
        console.print(message, style="yellow", markup=False, highlight=False, soft_wrap=True)


def _write_suite(flags: AbFlags, file: Path, console: Console) -> None:
    """Write the suite that the flags are, once it reads as `redline run` will read it. Raises RedlineError."""
    if flags.scenarios and flags.requests is None:
        hint = f"select them later: redline run {file} -m {','.join(flags.scenarios)}"
        raise UsageError("-m selects requests of redline.yaml, all of which belong to the suite", hint=hint)
    if file.exists():
        raise UsageError(f"{file} exists already", hint="give another name, or remove it")
    document = ab_document(flags, FromRepository(Path.cwd()).ends, partial(os.path.relpath, start=file.parent))
    command = shlex.join([places.own_name(), "run", str(file)])
    origins = FromRepository(file.parent.resolve()).origins()
    _, text = read_written(document, str(file), referenced_files(file), origins)
    with as_store_error(file):
        write_atomically(file, f"# Measure it with: {command}\n{text}".encode())
    console.print(f"measure it with: {command}", soft_wrap=True, highlight=False, markup=False)
