"""A panel: lines at the end of a terminal's output that change in place, and are gone at the end."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import ControlType, Segment
from rich.text import Text

from redline.cli import interrupts, question
from redline.visible import printable

LEAST_S = 0.5
"""Between two paints, at least: painting takes CPU time of the machine that is measured."""
PLAIN_S = 10.0
"""Where nothing can change in place, a line says this often how far it is, unless another line was printed."""
ENDS_EARLY = "ending early with what was measured; Ctrl-C again stops at once"
"""What the first Ctrl-C does where nothing can be asked."""
NO_ANSWER_YET = "nothing has been measured yet: stopping without an answer"
_LONGEST_WAIT_S = 1.0
_GAP = 2
_LEAST_REST = 8
"""Columns: fewer letters of a name say nothing."""

Frame = Callable[[Console], Iterable[Text]]
"""Makes the lines of a panel for a console; called only when they are painted."""


def is_live(console: Console) -> bool:
    """Whether lines can change in place: it is a terminal, whatever FORCE_COLOR says, and not a dumb one.

    The log of a CI job is none, also where its commands have a terminal.
    """
    if console.quiet or getattr(console, "is_plain", False) or os.environ.get("CI", "") not in ("", "0", "false"):
        return False
    return console.is_terminal and console.file.isatty() and not console.is_dumb_terminal


class Panel:
    """Lines that are painted in place on a terminal, twice a second at most; elsewhere the first two, now and then.

    It has no thread of its own: it is painted by the thread that brings something new, and only then.

    Between two paints the cursor rests on the first character of the panel. A terminal that becomes narrower folds
    lines, and then nobody knows how many are above the cursor, but all that is below it belongs to the panel.

    At the first Ctrl-C a question stands above the panel; where nobody can answer it, `on_interrupt`.
    """

    def __init__(
        self,
        console: Console,
        *,
        alive: bool = True,
        on_interrupt: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._on_interrupt = on_interrupt
        self._clock = clock
        self.is_live = alive and is_live(console)
        self.is_shown = alive and not console.quiet
        self._frame: Frame | None = None
        self._painted_s = -math.inf
        self._printed_s = clock()
        self._to_say = ""
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        if self.is_live and self._on_interrupt:
            interrupts.listeners.append(self._interrupted)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_live:
            return
        with suppress(ValueError):
            interrupts.listeners.remove(self._interrupted)
        # An interrupt may have come just after the lock was taken.
        is_held = self._lock.acquire(timeout=_LONGEST_WAIT_S)
        try:
            self._frame = None
            self._paint()
        finally:
            if is_held:
                self._lock.release()

    def show(self, frame: Frame, *, now: bool = False) -> None:
        """Show these lines from now on; unless they are to be seen `now`, not before the next paint is due."""
        if not self.is_live:
            if self.is_shown and self._clock() - self._printed_s >= PLAIN_S:
                self._print(_as_plain(list(frame(self._console)), self._console.width))
            return
        with self._lock:
            self._frame = frame
            if now or self._clock() - self._painted_s >= LEAST_S:
                self._paint()

    def print(self, text: Text) -> None:
        """Print something that stays, above the panel."""
        if not self.is_live:
            self._print(text)
            return
        with self._lock:
            self._erase()
            self._print(text)
            self._paint()

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=not self.is_live, highlight=False)
        self._printed_s = self._clock()

    @property
    def has_answer(self) -> bool:
        """Whether there is an answer if it ends now."""
        return True

    def _interrupted(self) -> None:
        """Ask, or say what the interrupt does, from a signal handler: whoever holds the lock says it, if it is held."""
        if not self.has_answer:
            self._to_say = NO_ANSWER_YET
        else:
            self._to_say = question.TEXT if self._is_ours and question.ask() else self._on_interrupt
        if self._lock.acquire(blocking=False):
            try:
                self._paint()
            finally:
                self._lock.release()

    def _paint(self) -> None:
        """Paint the latest frame, or nothing; the lock is held."""
        if not self._is_ours:
            return
        if self._to_say:
            said, self._to_say = Text(self._to_say, style="bold"), ""
            self._erase()
            self._print(said)
        if self._frame is None:
            self._erase()
            return
        lines = list(self._frame(self._console))
        self._console.print(_Painted(lines[: max(1, self._console.height - 1)]), crop=False)
        self._painted_s = self._clock()

    def _erase(self) -> None:
        if self._painted_s > -math.inf and self._is_ours:
            self._console.print(_Painted(()), crop=False)

    @property
    def _is_ours(self) -> bool:
        """Whether this process may paint on its terminal: a job in the background leaves it to the user's shell."""
        try:
            return os.tcgetpgrp(self._console.file.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True


def _as_plain(lines: Sequence[Text], width: int) -> Text:
    """The first two lines as a line of a log; as two, the second one indented, where they do not fit."""
    first, *others = lines
    if not others or not others[0].plain.strip():
        return first
    fits = first.cell_len + _GAP + others[0].cell_len < width
    return Text.assemble(first, " " * _GAP if fits else "\n    ", others[0])


def _control(code: str, kind: ControlType) -> Segment:
    return Segment(code, None, [(kind,)])


_START = _control("\r", ControlType.CARRIAGE_RETURN)
_CLEAR_REST = _control("\x1b[K", ControlType.ERASE_IN_LINE)
_CLEAR_BELOW = _control("\x1b[J", ControlType.CLEAR)


class _Painted:
    """Lines that replace all that is below the cursor, which returns to the first of them."""

    def __init__(self, lines: Sequence[Text]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _START
        room = options.update(width=max(1, options.max_width - 1))  # in the last column some terminals fold
        for at, line in enumerate(self._lines):
            if at:
                yield Segment.line()
            line.no_wrap, line.overflow, line.end = True, "ellipsis", ""
            yield from console.render(line, room)
            yield _CLEAR_REST
        yield _CLEAR_BELOW
        if len(self._lines) > 1:
            yield _control(f"\x1b[{len(self._lines) - 1}A", ControlType.CURSOR_UP)
        yield _START


Part = tuple[str, str]
"""A text that stands whole or not at all, with its style."""


def fitted(console: Console, *parts: Part | None, rest: str = "") -> Text:
    """A line of as many whole parts as fit, the first ones first: a number is never cut. A `rest` of words may be."""
    room = max(1, console.width - 1)
    made = Text()
    for text, style in filter(None, parts):
        said = printable(text)
        needed = cell_len(said) + (_GAP if made else 0)
        if said and (not made or made.cell_len + needed <= room):
            made.append(" " * _GAP if made else "").append(said, style)
    if rest and made.cell_len + _GAP + _LEAST_REST <= room:
        made.append(" " * _GAP if made else "").append(printable(rest), "dim")
    return made
