"""The output streams: they make everything that the lab prints, by any library, `visible`.

Servers, certificates, catalogues, suites and stored runs may contain control sequences that a terminal obeys.
"""

import contextlib
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from redline.visible import visible


class LossyStream:
    """Stderr that loses what it cannot write: neither a full disk nor a closed pipe may end a measurement."""

    def __init__(self, behind: TextIO) -> None:
        self.behind = behind

    def write(self, text: str) -> int:
        """Write a text, or lose it."""
        with contextlib.suppress(OSError):
            self.behind.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, ignoring failures."""
        with contextlib.suppress(OSError):
            self.behind.flush()

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the stream."""
        return getattr(self.behind, name)


class VisibleStream:
    """Stdout or stderr. `behind` is the wrapped stream, for a `Terminal`, whose own colours pass."""

    def __init__(self, behind: TextIO | LossyStream) -> None:
        self.behind = behind

    def write(self, text: str) -> int:
        """Write a text with its invisible characters escaped."""
        self.behind.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the lines."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the stream, such as `flush`."""
        return getattr(self.behind, name)


def write_bytes(content: bytes) -> None:
    """Write a picture to stdout as it is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.flush()


def write_document(content: bytes) -> None:
    """Write a report to stdout as UTF-8, whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(visible(content.decode()).encode())
    sys.stdout.flush()
