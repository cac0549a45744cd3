"""Read the counters that a HotSpot JVM keeps in a file for `jstat`, without attaching or work for the JVM.

Source of the format: `perfMemory.hpp` and `perfData.hpp` of OpenJDK, version 2.0, which JDK 8 to 25 write.
"""

import os
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redline.linux import procfs

_PROLOGUE = struct.Struct("<IBBBBiiqii")  # the magic number is big-endian, all else as the byte order says
_ENTRY = struct.Struct("<iiibBBBi")
_MAGIC = 0xC0C0FECA
_LITTLE_ENDIAN = 1
_LONG = struct.Struct("<q")
_MOST_BYTES = 1 << 20
FREQUENCY = "sun.os.hrt.frequency"
"""Ticks per second, the unit of every counter of time."""


@dataclass(frozen=True)
class _File:
    """`/tmp/hsperfdata_USER/PID`, with the process's own root and its number in its own namespace."""

    process: str
    user: int
    folder: str
    name: str

    def content(self) -> bytes:
        """Return the content, without following links; empty unless the process's user owns the file."""
        try:
            with procfs.temporary_files(self.process) as temporary:
                folder = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=temporary)
                try:
                    file = os.open(self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
                finally:
                    os.close(folder)
            try:
                status = os.fstat(file)
                ours = stat.S_ISREG(status.st_mode) and status.st_uid == self.user
                return os.read(file, min(status.st_size, _MOST_BYTES)) if ours else b""
            finally:
                os.close(file)
        except OSError:
            return b""


@dataclass(frozen=True)
class PerfData:
    """The counters of a JVM: the positions of 64-bit numbers in the file, and the texts, which do not change."""

    file: _File
    places: dict[str, int]
    texts: dict[str, str]

    @classmethod
    def of(cls, pid: int, proc: str = "/proc") -> "PerfData | None":
        """Read a process's counters; None if it is no JVM, keeps none (`-XX:-UsePerfData`), or may not be read."""
        read = ((file, file.content()) for file in _files_of(f"{proc}/{pid}"))
        file, content = next((pair for pair in read if pair[1]), (None, b""))
        return cls._read(file, content) if file else None

    @classmethod
    def _read(cls, file: _File, content: bytes) -> "PerfData | None":
        """Parse a file; None for another format, or if it is not complete yet."""
        places: dict[str, int] = {}
        texts: dict[str, str] = {}
        try:
            magic, order, major, _, accessible, *_, at, count = _PROLOGUE.unpack_from(content)
            if (magic, order, major, accessible) != (_MAGIC, _LITTLE_ENDIAN, 2, 1):
                return None
            for _ in range(count):
                length, name_at, size, kind, *_, value_at = _ENTRY.unpack_from(content, at)
                name = content[at + name_at : content.index(b"\0", at + name_at)].decode("ascii", "replace")
                if size == 0 and kind == ord("J") and 0 < at + value_at <= len(content) - _LONG.size:
                    places[name] = at + value_at
                elif kind == ord("B"):
                    raw = content[at + value_at : at + value_at + size]
                    texts[name] = raw.partition(b"\0")[0].decode("utf-8", "replace")
                if length <= 0:
                    return None
                at += length
        except (struct.error, ValueError):
            return None
        return cls(file, places, texts)

    def values(self, *names: str) -> dict[str, int]:
        """Return the current values of these counters, as far as they exist."""
        content = self.file.content()
        known = ((name, self.places.get(name)) for name in names)
        return {
            name: _LONG.unpack_from(content, at)[0]
            for name, at in known
            if at is not None and at + _LONG.size <= len(content)
        }

    def matching(self, start: str, end: str) -> list[str]:
        """Names of counters with this prefix and suffix."""
        return [name for name in self.places if name.startswith(start) and name.endswith(end)]


def _files_of(process: str) -> Iterator[_File]:
    """Files that may be the process's, as far as it is known and its `/tmp` may be read."""
    status = procfs.read_bytes(f"{process}/status")
    line = next((line for line in status.split(b"\n") if line.startswith(b"NSpid:")), b"")
    inner = line.split()[-1].decode() if line else Path(process).name
    try:
        user = Path(process).stat().st_uid
        with procfs.temporary_files(process) as temporary:
            folders = [name for name in os.listdir(temporary) if name.startswith("hsperfdata_")]  # noqa: PTH208
    except OSError:
        return
    yield from (_File(process, user, folder, inner) for folder in folders)
