"""A terminal of a user: the command runs on it, and what stands on its screen is seen."""

import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyte

CTRL_C = b"\x03"
_STEP_S = 0.05


class UsersTerminal:
    """A command on a terminal of its own. `screens` holds what was seen after each piece of output."""

    def __init__(self, main: int, process: "subprocess.Popen[bytes]", columns: int, lines: int) -> None:
        self._main, self.process = main, process
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.screens: list[list[str]] = []

    @property
    def shown(self) -> list[str]:
        """The lines down to the last one that is not empty."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")

    @property
    def text(self) -> str:
        """All that stands on the screen as one line, so that what the terminal wrapped is whole."""
        return "".join(self.screen.display).rstrip()

    def type(self, keys: bytes) -> None:
        """Press these keys."""
        os.write(self._main, keys)

    def resize(self, columns: int, lines: int) -> None:
        """Make the window another size."""
        termios.tcsetwinsize(self._main, (lines, columns))
        self.screen.resize(lines, columns)

    def until(self, is_seen: Callable[[list[str]], bool], within_s: float = 60) -> list[str]:
        """The screen once it shows that. Fails after this time, or at the end of the command."""
        deadline = time.monotonic() + within_s
        while not is_seen(self.shown):
            assert time.monotonic() < deadline, self.shown
            assert self._read(), ("the command has ended", self.shown)
        return self.shown

    def end(self, within_s: float = 60) -> int:
        """Wait for the command's end; returns its exit code."""
        deadline = time.monotonic() + within_s
        while self._read():
            assert time.monotonic() < deadline, self.shown
        return self.process.wait(timeout=10)

    def _read(self) -> bool:
        """Take in some output; False once there is no more."""
        has_ended = self.process.poll() is not None
        if not select.select([self._main], [], [], _STEP_S)[0]:
            return not has_ended
        self._stream.feed(os.read(self._main, 65536))
        self.screens.append(self.shown)
        return True


@contextmanager
def on_terminal(
    command: Sequence[str | Path],
    folder: Path,
    environment: Mapping[str, str],
    columns: int = 80,
    lines: int = 100,
) -> Iterator[UsersTerminal]:
    """Run a command on a terminal of this size; it is killed in the end, if it still runs."""
    main, other = pty.openpty()
    termios.tcsetwinsize(other, (lines, columns))
    process = subprocess.Popen(
        # The first terminal that a new session opens becomes its own, so that Ctrl-C reaches the command.
        ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(other), *command],
        cwd=folder,
        env={"TERM": "xterm-256color", **environment},
        start_new_session=True,
    )
    try:
        yield UsersTerminal(main, process, columns, lines)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(main)
        os.close(other)  # not before: a terminal that nobody has open cannot be read
