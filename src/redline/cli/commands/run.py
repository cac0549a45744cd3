"""`redline run`: plan, build, measure, report."""

from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from redline.asking import places
from redline.asking.asks import SuiteAsk
from redline.asking.naming import naming
from redline.asking.opening import Command
from redline.asking.origins import read_project_file
from redline.asking.suites import read_suite_file, suite_or_project
from redline.cli.asks import suite_ask
from redline.cli.command_line import WHILE_IT_RUNS, RunFlags
from redline.cli.destination import Destination
from redline.cli.experiment import Output, check_compares, create, finish, finish_resumed
from redline.cli.flags import command_line, refuse
from redline.cli.progress import progress_console
from redline.cli.project_builds import build_named, build_servers
from redline.cli.session_view import SessionView
from redline.cli.targets import check_targets
from redline.cli.telemetry import Meter, metered
from redline.cli.turns import turn_of
from redline.errors import UsageError
from redline.launching.variables import check_variables
from redline.model import Suite, Verdict
from redline.quantities import parse_duration
from redline.running.assembly import Workplace
from redline.running.manifests import Source
from redline.running.quiet import Quiet
from redline.running.session import RunSession
from redline.storage.runs import RunStore
from redline.suite.project import PROJECT_FILE
from redline.wording import part


def execute(flags: RunFlags) -> None:
    """Build the servers of a suite or of redline.yaml, measure every cell, and write the report."""
    console, kept = progress_console(flags), Destination.at(flags.output)
    with ExitStack() as stack:
        meter = stack.enter_context(metered(flags, console))
        on_usage = None if meter is None else meter.usage
        turn = turn_of("redline run", console, flags.wait, alone=flags.alone, on=flags.on)
        workplace = Workplace(flags.on, stack, places.of_suite, on_usage, turn)
        output = _output(flags, kept, meter)
        if flags.resume is not None:
            refuse(
                flags.given(but={"resume", "on", "trials", "more", "fail_on", "wait_quiet", "json", *WHILE_IT_RUNS}),
                "--resume continues it as it was planned, and takes no",
            )
            finish_resumed(flags.resume, workplace, output, console, trials=flags.trials)
        else:
            file, ask = suite_or_project(flags.suite), suite_ask(flags)
            view = SessionView(console, meter)
            if output.more_ns or output.fail_on:
                check_compares(read_suite_file(file, ask)[0], file, output)
            finish(created(file, ask, command_line, kept.folder, workplace, view, console), output, console)


def created(
    file: Path,
    ask: SuiteAsk,
    command: Command,
    keep: Path | None,
    workplace: Workplace,
    view: SessionView,
    console: Console,
) -> RunSession:
    """The run of a suite's file, with its servers built, in a new directory. Raises RedlineError."""
    suite, text = read_suite_file(file, ask)
    return created_of(suite, Source(command(), str(file.resolve()), text), file, keep, workplace, view, console)


def created_of(
    suite: Suite,
    source: Source,
    file: Path,
    keep: Path | None,
    workplace: Workplace,
    view: SessionView,
    console: Console,
) -> RunSession:
    """The run of a suite, which is in a file or would be. Raises RedlineError."""
    check_targets(suite)
    check_variables(suite.variants)
    view.check(suite)
    folder = keep or places.new_run(suite.name)
    RunStore(folder).check_free()
    workplace.take_turn()
    if file.name == PROJECT_FILE:
        build_servers(read_project_file(file), suite, console)
    else:
        build_named(file.resolve().parent, suite, console)
    return create(suite, source, folder, workplace, view, console)


def _output(flags: RunFlags, kept: Destination, meter: Meter | None) -> Output:
    fail_on = tuple(Verdict(verdict) for verdict in flags.fail_on)
    form, brief = "json" if flags.json else None, not flags.verbose
    if flags.on is not None and flags.wait_quiet is not None:
        hint = "leave one out: hosts are not waited for"
        raise UsageError("--wait-quiet looks at this machine, and --on measures on others", hint=hint)
    with naming(part("wait_quiet")):
        quiet = None if flags.wait_quiet is None else Quiet(parse_duration(flags.wait_quiet) / 1e9)
    with naming(part("more")):
        more_ns = 0 if flags.more is None else parse_duration(flags.more)
    return Output(
        *("run", form, fail_on),
        kept=kept,
        meter=meter,
        opens=flags.open,
        is_brief=brief,
        is_whole=flags.verbose,
        quiet=quiet,
        more_ns=more_ns,
    )
