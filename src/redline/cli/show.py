"""Print on a terminal: its console, sections, and a line that changes in place."""

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from redline import render
from redline.cli.panel import Panel
from redline.model import Frozen
from redline.visible import visible

if TYPE_CHECKING:
    from redline.document.blocks import Section

_NARROWEST = 20
"""The fewest columns that a line is broken into: in fewer, words fall apart."""
_SIZES = ("COLUMNS", "LINES")


class Terminal(Console):
    """A console that prints texts as `visible` and without markup: only the lab sets colours and moves the cursor.

    A `quiet` one prints nothing but what it is made to, a `plain` one has no lines that change in place. A width of 0
    in COLUMNS says that nobody knows it.
    """

    def __init__(self, *, stderr: bool = False, quiet: bool = False, plain: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        file = getattr(stream, "behind", stream)
        known = {name: value for name, value in os.environ.items() if name not in _SIZES or value.strip("0")}
        super().__init__(file=file, stderr=stderr, quiet=quiet, markup=False, emoji=False, _environ=known)
        is_narrow = self.width < _NARROWEST
        if is_narrow:  # a width that is set no longer follows the terminal's
            self.width = _NARROWEST
        self.is_plain = plain

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the output in pieces: texts, and control sequences that move the cursor."""
        seen = self._escaped(renderable) if isinstance(renderable, Text) else renderable
        for segment in super().render(seen, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def _escaped(self, text: Text) -> Text:
        """Escape invisible characters of a text before it is broken into lines."""
        if visible(text.plain) == text.plain:
            return text
        made = text.blank_copy()
        for piece in text.render(self):
            made.append(visible(piece.text), piece.style)
        return made


def show(sections: "Iterable[Section]", console: Console | None = None) -> None:
    """Print sections as wide as the terminal; nothing if there are none."""
    console = console or Terminal()
    if text := render.as_text(sections, console):
        console.print(text, soft_wrap=True)


def insist(console: Console, text: str, style: str = "") -> None:
    """Print an error, or how to go on, also on a quiet console."""
    was, console.quiet = console.quiet, False
    try:
        console.print(text, style=style, soft_wrap=True, highlight=False, markup=False)
    finally:
        console.quiet = was


def write_json(result: Frozen) -> None:
    """Write a result as JSON on stdout."""
    sys.stdout.write(result.model_dump_json(indent=2) + "\n")


class OneLine(Panel):
    """A panel of a line that changes in place on a terminal, and is not there elsewhere."""

    def say(self, line: Text) -> None:
        """Replace the line at once."""
        self.show(lambda _console: (line,), now=True)
