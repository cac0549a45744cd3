"""A terminal of some size, and what stands on its screen."""

import io

import pyte
from rich.console import Console


class FakeTerminal(io.StringIO):
    """A stream that is a terminal: what is written to it appears on its screen."""

    def __init__(self, columns: int = 80, lines: int = 24, **environment: str) -> None:
        super().__init__()
        self._begin(columns, lines)
        settings = {"TERM": "xterm-256color", **environment}
        self.console = Console(file=self, width=columns, height=lines, _environ=settings, legacy_windows=False)

    def _begin(self, columns: int, lines: int) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.screen.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self.screen)

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._stream.feed(text)
        return len(text)

    @property
    def shown(self) -> list[str]:
        """The lines down to the last one that is not empty."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")

    def fold(self, columns: int, lines: int = 24) -> None:
        """Make it narrower, as terminals do that fold the lines they show; the cursor stays on its character."""
        row, kept = self.screen.cursor.y, self.shown
        folded = [[line[at : at + columns] for at in range(0, max(1, len(line)), columns)] for line in kept]
        above = sum(map(len, folded[:row]))
        self._begin(columns, lines)
        self.console.width, self.console.height = columns, lines
        self._stream.feed("\n".join(part for parts in folded for part in parts))
        self._stream.feed(f"\x1b[{above + 1};1H")
