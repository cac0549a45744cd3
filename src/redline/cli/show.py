"""Printing sections on standard output."""

from collections.abc import Iterable

from rich.console import Console

from redline.report.document import Section
from redline.report.render import terminal


def show(sections: Iterable[Section], console: Console | None = None) -> None:
    """Print them as wide as the terminal is; nothing where there are none."""
    console = console or Console()
    if text := terminal.render(sections, console):
        console.print(text, soft_wrap=True)
