"""Lines on stdout while a load runs, written by a thread of their own: a slow reader must not hold up the load."""

import sys
import threading
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from redline.model import Frozen


class LineStream:
    """Writes values as lines of JSON, in order. On exit it waits until all are written.

    Where stdout fails, such as in a pipe whose reader is gone, the next `write` and the exit raise that OSError.
    """

    def __init__(self) -> None:
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="stream", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lines.put(None)
        if not isinstance(error, KeyboardInterrupt):
            self._thread.join()
        if error is None:
            self._check()

    def write(self, value: Frozen) -> None:
        """Write a value soon. Raises OSError where an earlier value could not be written."""
        self._check()
        self._lines.put(f"{value.model_dump_json()}\n")

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                sys.stdout.write(line)
                sys.stdout.flush()
        except OSError as error:
            self._error = error
