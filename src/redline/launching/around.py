"""Commands around a start of a server: `before` it starts, to `prepare` it once it is ready, and `after` it stopped."""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from redline.errors import LaunchError
from redline.files import as_store_error, open_anew
from redline.launching.commands import hint_of, started
from redline.launching.error_lines import error_line
from redline.launching.failures import tail
from redline.launching.guard import LaunchOrder, how_ended
from redline.launching.warden import Redactor
from redline.ports import Launch
from redline.quantities import clip

WITHIN_S = 300.0
_MOST_KEPT_BYTES = 1 << 20
_READ_LINES = 60
_LOOK_S = 0.1
_Key = Literal["before", "prepare", "after"]
_one_at_a_time = threading.Lock()
"""Servers may start at the same time, but their commands are the user's: what they share, nobody knows."""


@dataclass(frozen=True)
class Around:
    """The commands around a start, which run in the server's folder and environment, with PORT and SCRATCH in it."""

    launch: Launch
    order: LaunchOrder
    port: int
    scratch: Path
    within_s: float = WITHIN_S

    @contextmanager
    def set_up(self) -> Iterator[None]:
        """Run `before`, and in any case `after` in the end. Raises LaunchError.

        An error or an interrupt within the block has precedence over an error of `after`.
        """
        start = self.launch.variant.catalogued.start
        try:
            self._run("before", start.before)
            yield
        except BaseException:
            with suppress(LaunchError):
                self._run("after", start.after)
            raise
        self._run("after", start.after)

    def prepare(self) -> None:
        """Run `prepare`: the server is ready. Raises LaunchError."""
        self._run("prepare", self.launch.variant.catalogued.start.prepare)

    def _run(self, key: _Key, command: str | None) -> None:
        if command is None:
            return
        while not _one_at_a_time.acquire(timeout=_LOOK_S):
            self._check_wanted(key)
        try:
            self._run_alone(key, command)
        finally:
            _one_at_a_time.release()

    def _check_wanted(self, key: _Key) -> None:
        if key != "after":
            self.launch.check_wanted()

    def _ended(self, key: _Key, process: "subprocess.Popen[bytes]") -> int | None:
        """The return code of a command; None if it did not end in time."""
        deadline = time.monotonic() + self.within_s
        while (left_s := deadline - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(_LOOK_S, left_s))
            self._check_wanted(key)
        return None

    def _run_alone(self, key: _Key, command: str) -> None:
        began_ns = time.monotonic_ns()
        log = self.order.log.with_name(f"{self.order.log.stem}-{key}{self.order.log.suffix}")
        env = {**self.order.env, "PORT": str(self.port), "SCRATCH": str(self.scratch)}
        name, code = self.launch.variant.slug, None
        try:
            # Not a pipe: a process that the command leaves running, such as a database, may go on writing to it.
            with tempfile.TemporaryFile() as output:
                try:
                    with started(["sh", "-e", "-c", command], self.order.folder, env, output.fileno()) as process:
                        code = self._ended(key, process)
                finally:
                    self._keep(output, log)
        except OSError as error:
            message = f"{name}: `{key}` could not be run: {error.strerror}"
            raise LaunchError(message, hint=hint_of(error)) from error
        finally:
            self.launch.on_setup(time.monotonic_ns() - began_ns)
        if code == 0:
            return
        how = f"did not end within {self.within_s:g} s" if code is None else f"ended {how_ended(code)}"
        words = error_line(tail(log, _READ_LINES))
        said = f"its last words: {words}" if words else "it wrote nothing"
        by_hand = f"run it by hand in {self.order.folder.resolve()}, with PORT={self.port}: {clip(command.strip())}"
        longer = f"it runs for each start of the server: let `build` do what takes long, or {by_hand}"
        hint = longer if code is None else by_hand
        raise LaunchError(f"{name}: `{key}` {how}; {said}", hint=hint, log_tail=tail(log))

    def _keep(self, output: BinaryIO, log: Path) -> None:
        """Keep the end of a command's output, without secrets. Raises StoreError."""
        redactor = Redactor(self.order.secrets)
        cut = max(0, output.seek(0, os.SEEK_END) - _MOST_KEPT_BYTES)
        output.seek(max(0, cut - redactor.longest))  # so that the cut leaves no part of a secret
        kept = redactor.passed(output.read(_MOST_KEPT_BYTES + redactor.longest), last=True)
        with as_store_error(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            with open_anew(log) as file:
                file.write(kept[redactor.longest :] if cut else kept)
