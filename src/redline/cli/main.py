"""The `redline` command. The only place that turns errors into exit codes.

0 done, 1 could not run, 2 wrong input, 3 an objective or `--fail-on` was missed, 130 interrupted.
"""

import io
import signal
import sys
from types import FrameType
from typing import NoReturn

import typer

from redline import __version__
from redline.cli import exits
from redline.cli.build import build
from redline.cli.check import check
from redline.cli.doctor import doctor
from redline.cli.history import history
from redline.cli.judge import judge
from redline.cli.limit import limit
from redline.cli.listing import list_catalogue
from redline.cli.load import load
from redline.cli.reports import compare, report
from redline.cli.run import run
from redline.cli.selftest import selftest
from redline.errors import RedlineError

app = typer.Typer(
    help="A performance lab for HTTP servers whose numbers nobody has to doubt.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run)
app.command("check")(check)
app.command("build")(build)
app.command("load")(load)
app.command("limit")(limit)
app.command("report")(report)
app.command("compare")(compare)
app.command("history")(history)
app.command("judge")(judge)
app.command("list")(list_catalogue)
app.command("doctor")(doctor)
app.command("selftest")(selftest)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redline {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """A performance lab for HTTP servers whose numbers nobody has to doubt."""
    del version


def run_command_line() -> NoReturn:
    """Run the command line and exit. Typer itself exits with 130 on Ctrl-C, and with 1 when nobody reads our output."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign loses the sign, not the summary
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup asks to outlive its terminal
            signal.signal(number, _interrupt)
    try:
        app(standalone_mode=True)
    except RedlineError as error:
        for problem in error.problems:
            sys.stderr.write(f"redline: {problem}\n")
        sys.exit(error.exit_code)
    sys.exit(exits.DONE)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Being told to end is like Ctrl-C: stop the servers, keep what was measured."""
    raise KeyboardInterrupt
