"""The `redline` command. The only place that turns errors into exit codes.

0 done, 1 could not run, 2 wrong input, 3 an objective or `--fail-on` was missed, 130 interrupted.
"""

import io
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import NoReturn

import typer

from redline import __version__
from redline.cli import exits
from redline.errors import RedlineError

COMMANDS = {
    "run": "redline.cli.commands.run:run",
    "check": "redline.cli.commands.check:check",
    "build": "redline.cli.commands.build:build",
    "load": "redline.cli.commands.load:load",
    "limit": "redline.cli.commands.limit:limit",
    "report": "redline.cli.commands.reports:report",
    "compare": "redline.cli.commands.reports:compare",
    "history": "redline.cli.commands.history:history",
    "judge": "redline.cli.commands.judge:judge",
    "list": "redline.cli.commands.list:list_catalogue",
    "doctor": "redline.cli.commands.doctor:doctor",
    "selftest": "redline.cli.commands.selftest:selftest",
}


def command_line(first: str | None = None) -> typer.Typer:
    """The commands, as `redline --help` lists them; only one when `first`, the first argument, is its name.

    Importing all of them takes longer than most of them run.
    """
    app = typer.Typer(
        help=root.__doc__,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name in [first] if first in COMMANDS else COMMANDS:
        module, function = COMMANDS[name].split(":")
        app.command(name)(getattr(import_module(module), function))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"redline {__version__}")
        raise typer.Exit


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
        command_line(sys.argv[1] if sys.argv[1:] else None)(standalone_mode=True)
    except RedlineError as error:
        for problem in error.problems:
            sys.stderr.write(f"redline: {problem}\n")
        sys.exit(error.exit_code)
    sys.exit(exits.DONE)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Being told to end is like Ctrl-C: stop the servers, keep what was measured."""
    raise KeyboardInterrupt
