"""`redline run`: plan, build, measure, report."""

from contextlib import ExitStack

from redline.cli import places
from redline.cli.command_line import RunFlags
from redline.cli.experiment import Output, create, finish, finish_resumed
from redline.cli.flags import command_line, read_suite_file, refuse
from redline.cli.show import Terminal
from redline.cli.targets import check_targets
from redline.errors import UsageError
from redline.model import Verdict
from redline.running.assembly import Workplace
from redline.running.session import Source


def execute(flags: RunFlags) -> None:
    """Run a suite: build its servers, measure every cell, write the report."""
    console = Terminal(stderr=True)
    with ExitStack() as stack:
        workplace = Workplace(flags.on, stack, places.of_suite)
        if flags.resume is not None:
            refuse(
                flags.given(but={"resume", "on", "trials", "fail_on", "wait_quiet", "json"}),
                "--resume continues it as it was planned, and takes no",
            )
            finish_resumed(flags.resume, workplace, _output(flags), console, trials=flags.trials)
        elif flags.suite is not None:
            file = places.ready_suite(flags.suite)
            suite, text = read_suite_file(file, flags)
            check_targets(suite)
            source = Source(command_line(), str(file.resolve()), text)
            folder = flags.output or places.new_run(suite.name)
            finish(create(suite, source, folder, workplace, console), _output(flags), console)
        else:
            raise UsageError(
                "no suite is named", hint="try `redline run suites/quickstart.yaml`; `redline list` shows the suites"
            )


def _output(flags: RunFlags) -> Output:
    fail_on = tuple(Verdict(verdict) for verdict in flags.fail_on)
    return Output("run", "json" if flags.json else None, fail_on, flags.wait_quiet)
