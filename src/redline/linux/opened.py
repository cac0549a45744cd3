"""Which files are opened while something runs: inotify(7), which sees all processes, also in containers."""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Self

_OPEN, _OVERFLOW, _IS_FOLDER = 0x20, 0x4000, 0x40000000
_HEAD = struct.Struct("iIII")
_MOST_READ = 1 << 16


class OpenedFiles:
    """Watches files until it is closed. It watches their folders, so that thousands of files take few watches.

    Raises OSError where the kernel gives no watch, such as when the user has too many.
    """

    def __init__(self, files: Iterable[Path], listings: Iterable[Path] = ()) -> None:
        """`listings` are folders of which it matters that somebody reads the names in them."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise _error()
        self._names: dict[int, tuple[Path, set[str]]] = {}
        by_folder: dict[Path, set[str]] = {}
        for file in files:
            by_folder.setdefault(file.parent, set()).add(file.name)
        for folder in listings:
            by_folder.setdefault(folder, set()).add("")
        try:
            for folder, names in by_folder.items():
                watch = self._libc.inotify_add_watch(self._fd, os.fsencode(folder), _OPEN)
                if watch < 0:
                    raise _error()
                self._names.setdefault(watch, (folder, set()))[1].update(names)
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watch."""
        os.close(self._fd)

    def seen(self) -> frozenset[str]:
        """The watched files and listings that somebody opened since the last call; `?` if events were lost."""
        opened = set[str]()
        while True:
            try:
                events = os.read(self._fd, _MOST_READ)
            except BlockingIOError:
                return frozenset(opened)
            at = 0
            while at < len(events):
                watch, mask, _, length = _HEAD.unpack_from(events, at)
                name = os.fsdecode(events[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0"))
                at += _HEAD.size + length
                if mask & _OVERFLOW:
                    opened.add("?")
                elif watch in self._names and (name or mask & _IS_FOLDER) and name in self._names[watch][1]:
                    opened.add(str(self._names[watch][0] / name))


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
