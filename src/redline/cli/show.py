"""Print on a terminal: its console, sections, and a line that changes in place."""

import sys
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from redline.model import Frozen
from redline.report.document import Section
from redline.report.render import terminal
from redline.visible import visible


class Terminal(Console):
    """A console that prints texts as `visible` and without markup: only the lab sets colours and moves the cursor."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        super().__init__(file=getattr(stream, "behind", stream), stderr=stderr, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the output in pieces: texts, and control sequences that move the cursor."""
        seen = self._seen(renderable) if isinstance(renderable, Text) else renderable
        for segment in super().render(seen, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def _seen(self, text: Text) -> Text:
        """Escape invisible characters of a text before it is broken into lines."""
        if visible(text.plain) == text.plain:
            return text
        made = text.blank_copy()
        for piece in text.render(self):
            made.append(visible(piece.text), piece.style)
        return made


def show(sections: Iterable[Section], console: Console | None = None) -> None:
    """Print sections as wide as the terminal; nothing if there are none."""
    console = console or Terminal()
    if text := terminal.render(sections, console):
        console.print(text, soft_wrap=True)


def write_json(result: Frozen) -> None:
    """Write a result as JSON on stdout."""
    sys.stdout.write(result.model_dump_json(indent=2) + "\n")


class OneLine:
    """A line that changes in place on a terminal, and is not printed elsewhere.

    It is drawn only when it has changed: a thread that redraws on its own would take CPU from a load.
    """

    def __init__(self, console: Console, *, alive: bool = True) -> None:
        self._shown = console.is_terminal and alive
        self._live = Live(
            console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )

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
        """Replace the line."""
        if self._shown:
            line.no_wrap, line.overflow = True, "ellipsis"
            self._live.update(line, refresh=True)
