"""What prints on a terminal: sections, and a line that changes in place."""

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from redline.report.document import Section
from redline.report.render import terminal


def show(sections: Iterable[Section], console: Console | None = None) -> None:
    """Print them as wide as the terminal is; nothing where there are none."""
    console = console or Console()
    if text := terminal.render(sections, console):
        console.print(text, soft_wrap=True)


class OneLine:
    """A line that changes in place on a terminal, and is not there elsewhere.

    Drawn only when it has something new: a thread that redraws on its own would take CPU from a load.
    """

    def __init__(self, console: Console, *, alive: bool = True) -> None:
        self._shown = console.is_terminal and alive
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._shown:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._live.stop()

    def show(self, line: Text) -> None:
        """Put this in the place of what was there."""
        if self._shown:
            line.no_wrap, line.overflow = True, "ellipsis"
            self._live.update(line, refresh=True)
