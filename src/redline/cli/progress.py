"""What a command says on stderr while it works: its progress, nothing (`--quiet`), or every step (`--verbose`)."""

import logging
import time

from rich.console import Console
from rich.text import Text

from redline.cli.declaring import ProgressFlags
from redline.cli.show import Terminal
from redline.errors import UsageError


def progress_console(flags: ProgressFlags) -> Terminal:
    """Where progress is printed. Errors are `insist`ed upon there, however quiet it is. Raises UsageError."""
    if flags.quiet and flags.verbose:
        raise UsageError("--quiet and --verbose ask for the opposite", hint="leave one of them out")
    console = Terminal(stderr=True, quiet=flags.quiet, plain=flags.verbose)
    if flags.verbose:
        steps = logging.getLogger("redline")
        steps.handlers = [_StepHandler(console)]
        steps.setLevel(logging.DEBUG)
        steps.propagate = False
    return console


class _StepHandler(logging.Handler):
    """Prints each step with the time since the command began."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._began = time.monotonic()

    def emit(self, record: logging.LogRecord) -> None:
        since_s = time.monotonic() - self._began
        text = Text(f"{since_s:8.3f} s  {record.getMessage()}", style="dim")
        self._console.print(text, soft_wrap=True, highlight=False)
