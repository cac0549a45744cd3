"""What commands do with their flags alike: what is refused, and how the command was given."""

import shlex
import sys

from redline.cli.command_line import AbFlags, HistoryFlags, ReportFlags
from redline.driving.secrets import masked
from redline.errors import UsageError


def refuse(flags: tuple[str, ...], why: str) -> None:
    """Raise UsageError if any of these flags is given, since they have no effect there."""
    if flags:
        named = ", ".join(flags)
        raise UsageError(f"{why} {named}", hint=f"leave out {named}; `--help` shows what each flag is for")


def form_of(flags: AbFlags | ReportFlags | HistoryFlags) -> str | None:
    """Return the format of a report. Raises UsageError if both `--json` and another `--format` are given."""
    if flags.json and flags.form not in (None, "json"):
        raise UsageError(f"--json and --format {flags.form} are two formats", hint="give either")
    return "json" if flags.json else flags.form


def command_line() -> str:
    """Return the command as it was given, without secrets."""
    return shlex.join(["redline", *masked(sys.argv[1:])])
