"""The question that Ctrl-C asks on a terminal: end early with an answer, or stop without one?

What runs ends at once in either case, so nothing more is measured while it waits. It waits for a few seconds only,
and whoever says nothing gets the answer.
"""

import _thread
import atexit
import os
import select
import signal
import sys
import termios
import threading
import time
import tty
from contextlib import suppress

from redline.cli import interrupts

WAITS_S = 5.0
TEXT = "end early with an answer (e) or stop without (s)? e in 5 s"
_LOOK_S = 0.1
_STOPS, _ENDS_EARLY = b"sS", b"eE\r\n"


class EndQuestion:
    """Waits for a key on a terminal: `s` interrupts the main thread once more, as another Ctrl-C does."""

    def __init__(self, terminal: int, *, waits_s: float = WAITS_S) -> None:
        """Begin to wait. Raises termios.error and OSError where `terminal`, an open file, is none."""
        self._terminal = terminal
        self._before = termios.tcgetattr(terminal)
        self._until_s = time.monotonic() + waits_s
        self._over, self._is_closed = threading.Event(), False
        self.stops = False
        tty.setcbreak(terminal, termios.TCSANOW)  # a key counts without Enter
        atexit.register(self._restore)
        _thread.start_new_thread(self._wait, ())  # a Thread waits for locks, and this is a signal's handler

    def settle(self) -> None:
        """Wait until it is answered."""
        self._over.wait(max(0.0, self._until_s - time.monotonic()) + 1)

    def close(self) -> None:
        """Give the terminal back: the question does not matter any more."""
        self._is_closed = True
        self._over.wait(1)

    def _wait(self) -> None:
        try:
            while not self._is_over:
                ready, _, _ = select.select([self._terminal], [], [], _LOOK_S)
                key = os.read(self._terminal, 1) if ready else None
                if key is not None and (not key or key in _ENDS_EARLY):
                    break
                self.stops = key is not None and key in _STOPS
        except OSError:
            pass  # the terminal is gone
        finally:
            self._restore()
            if self.stops:
                main = threading.main_thread().ident
                assert main is not None
                signal.pthread_kill(main, signal.SIGINT)
            self._over.set()

    @property
    def _is_over(self) -> bool:
        """Whether nobody waits for a key any more. Another Ctrl-C answers too, wherever it is heard."""
        return self._is_closed or self.stops or interrupts.is_repeated() or time.monotonic() >= self._until_s

    def _restore(self) -> None:
        with suppress(termios.error, OSError):
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._before)


_asked: list[EndQuestion] = []


def ask() -> bool:
    """Ask on the terminal that is stdin; False where it is none. From a signal's handler: it waits for nothing."""
    try:
        if not os.isatty(sys.stdin.fileno()) or os.tcgetpgrp(sys.stdin.fileno()) != os.getpgrp():
            return False
        _asked.append(EndQuestion(sys.stdin.fileno()))
    except (OSError, ValueError, termios.error):
        return False
    return True


def settle() -> None:
    """Wait for the answer, if there was a question.

    Raises KeyboardInterrupt if it is to stop: by the key, or by another Ctrl-C, which may have found something else to
    end by then.
    """
    if not _asked:
        return
    asked = _asked.pop()
    try:
        asked.settle()
    finally:
        asked.close()
    if asked.stops or interrupts.is_repeated():
        raise KeyboardInterrupt
