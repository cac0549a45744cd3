"""Printing sections on standard output."""

from collections.abc import Iterable

from rich.console import Console

from redline.report.document import Section
from redline.report.render import terminal


def show(sections: Iterable[Section], console: Console | None = None) -> None:
    """Print them, as wide as the terminal is."""
    console = console or Console()
    console.print(terminal.render(sections, console), soft_wrap=True)
